"""The world of before: requests drawn apart from curves, jobs as wide as the machine, load 0.8.

Tests whose subject is not the default world say so by these, instead of stating its figures.
"""

from functools import partial

from workloads.models.lublin import Lublin as _Lublin
from workloads.truth.build import build_truth as _build_truth

WORLD = ("workload.load=0.8", "workload.widest=null", "workload.time_limit=null",
         "workload.at_limit=null", "moldability.requests=independent")  # fmt: skip
"""Of a model, as overrides."""

build_truth = partial(_build_truth, requests="independent")
Lublin = partial(_Lublin, load=0.8, widest=None, time_limit=None, at_limit=None)
