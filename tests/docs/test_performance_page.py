"""The table of growth on the page of performance is that of its results."""

import json

import pytest

from benchmarks.bench_growth import BOUND, presets, table
from tests.contract.test_architecture import ROOT

pytestmark = pytest.mark.fast

ROWS = json.loads((ROOT / "docs/results/growth.json").read_text(encoding="utf-8"))


def test_the_page_has_the_table_of_its_results():
    page = (ROOT / "docs/results/performance.md").read_text(encoding="utf-8")
    assert table(ROWS) in page


def test_every_preset_was_measured_and_those_bound_do_not_grow():
    assert [row["rule"] for row in ROWS[::2]] == presets()
    for row in ROWS:
        assert row["limit"] == "" or row["ratio"] <= row["limit"], row
        assert (row["rule"] in BOUND) == (row["limit"] != "")
