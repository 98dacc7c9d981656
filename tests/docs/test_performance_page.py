"""The growth on the page of performance is within its limits."""

import json

import pytest

from benchmarks.bench_growth import BOUND, presets
from tests.contract.test_architecture import ROOT

pytestmark = pytest.mark.fast

ROWS = json.loads((ROOT / "docs/results/performance_growth/data.json").read_text(encoding="utf-8"))[
    "rows"
]

ABOVE = [("iterative", "processors")]
"""What is known to grow by more than its limit; the page says so."""


def test_every_preset_was_measured_and_those_bound_do_not_grow():
    assert [row["rule"] for row in ROWS[::2]] == presets()
    for row in ROWS:
        assert (row["rule"] in BOUND) == (row["limit"] != "")
    above = [(row["rule"], row["grown"]) for row in ROWS if row["ratio"] > (row["limit"] or 99)]
    assert above == ABOVE
