"""Runtime predictors, on their own and in the loop of the simulator.

A name is imported from its module when it is first asked for, so that a command
that needs one model does not pay for all.
"""

import re
from importlib import import_module
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from predictors.adept.model import Adept as Adept
    from predictors.advice import measure_next as measure_next
    from predictors.base import Explanation as Explanation
    from predictors.base import Observation as Observation
    from predictors.base import RuntimePredictor as RuntimePredictor
    from predictors.base import VisibleJobs as VisibleJobs
    from predictors.cli.measurements import read as read
    from predictors.consensus.combination import Consensus as Consensus
    from predictors.curves.laws import Amdahl as Amdahl
    from predictors.curves.laws import LevenbergMarquardt as LevenbergMarquardt
    from predictors.curves.laws import UniversalScalability as UniversalScalability
    from predictors.cycles.offline import OfflineCyclePredictor as OfflineCyclePredictor
    from predictors.cycles.online import OnlineCyclePredictor as OnlineCyclePredictor
    from predictors.errors import NotFittedError as NotFittedError
    from predictors.errors import PredictorError as PredictorError
    from predictors.errors import UndeterminedError as UndeterminedError
    from predictors.regression.barnes import LogLogRegression as LogLogRegression
    from predictors.regression.focal_training import FocalRun as FocalRun
    from predictors.regression.focal_training import train_focal as train_focal
    from predictors.regression.garren import FocusedRegression as FocusedRegression
    from predictors.under_load.rational import RationalPolynomial as RationalPolynomial
_BLOCK = re.findall(r"^    from (\S+) import (\w+) as", Path(__file__).read_text("utf-8"), re.M)
_MODULES = {name: module for module, name in sorted(_BLOCK, key=itemgetter(1))}
"""Public name and the module that defines it, as the block above tells type checkers too."""
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    """Import a public name from its module."""
    if name not in _MODULES:
        raise AttributeError(f"module 'predictors' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(_MODULES)
