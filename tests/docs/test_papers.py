"""The page of the papers: its printed figures are those of the scripts, some of ours recomputed."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks import adept_figure_4, sage_errors
from benchmarks.results import method_studies
from predictors.cycles.checkpointing import young_interval
from predictors.cycles.messages import ALPHASERVER, ITANIUM2
from workloads.evolving.phases import DECKS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "results" / "papers.md").read_text(encoding="utf-8")
WORDS = {"alphaserver": "the AlphaServer's correlate by", "itanium2": "the Itanium's by"}
KEYS = ("case", "runs", "form", "model", "method", "load")
METHODS = [name for name in adept_figure_4.METHODS if "exact search" not in name]


def sage_tables():
    """Return printed and own errors of each machine's table on the page."""
    rows = re.findall(r"^\| (?:1|2|4|8|16) \| (.*) \|$", PAGE, re.M)
    cells = [[pair.split(" / ") for pair in row.split(" | ")] for row in rows]
    both = np.array(cells, float)  # machine and count, column, printed or ours
    return dict(zip(sage_errors.PRINTED, (both[:5], both[5:]), strict=True))


@pytest.mark.parametrize("machine", sage_errors.PRINTED)
def test_the_printed_errors_are_those_of_the_study(machine):
    printed, ours = np.moveaxis(sage_tables()[machine], 2, 0)
    np.testing.assert_allclose(printed, sage_errors.PRINTED[machine])
    said = re.search(rf"{WORDS[machine]} (\d\.\d\d)", PAGE)
    assert said is not None
    correlation = np.corrcoef(ours.ravel(), printed.ravel())[0, 1]
    assert correlation == pytest.approx(float(said[1]), abs=0.02)  # of rounded errors
    few = sage_errors.error_figures(machine, runs=4)
    assert np.abs(few - ours).max() < 1.2  # four of the fifty runs


def test_a_seed_of_the_rational_polynomial_is_computed_again():
    """That of the shortest experiment, by every model that has a row of it."""
    kept = json.loads((ROOT / "docs/results/rational/data.json").read_text("utf-8"))["rows"]
    case, length = next(method_studies.rational_settings(toy=True))
    found = method_studies.rational_rows(case, length, seeds=1)
    mine = {tuple(row[key] for key in KEYS): row["error"][0] for row in kept}
    assert len(found) == sum(row["case"] == case.name for row in kept)
    for row in found:
        assert row["error"][0] == pytest.approx(mine[tuple(row[key] for key in KEYS)], rel=1e-4)


def test_what_else_is_printed_of_sage():
    cells = [f"{DECKS[name].cells:,}" for name in ("timing_a", "timing_b", "timing_c")]
    assert f"| {cells[0]}, {cells[1]} and {cells[2]} cells" in PAGE
    asked = ((ALPHASERVER, 512), (ALPHASERVER, 32), (ALPHASERVER, 256), (ITANIUM2, 1024))
    shown = [f"{1e6 * float(costs.seconds(size)):.2f}" for costs, size in asked]
    assert f"{', '.join(shown[:3])} and {shown[3]} µs" in PAGE
    assert f"{young_interval(10.0, 600.0):.3f} s" in PAGE


def row(method):
    """Return the largest errors of a method on the page, in percent, set by set."""
    shown = method.replace("sigma", "σ").replace("1000", "1,000")
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| {shown} |"))
    return [[float(v) for v in cell.split(", ")] for cell in line.strip("| ").split(" | ")[1:3]]


@pytest.mark.parametrize("method", METHODS)
def test_errors_on_the_curves_of_figure_4(method):
    for errors, name in zip(row(method), adept_figure_4.SETS, strict=True):
        found, _ = adept_figure_4.largest_errors(name, adept_figure_4.METHODS[method])
        assert 100 * found == pytest.approx(errors, rel=0.1, abs=0.006)


def test_the_exact_search_is_perfect_on_figure_4_with_the_unit_known():
    """The flat end of the last curve begins at 25,988 processors, twelve times beyond them all."""
    exact = adept_figure_4.METHODS["ADEPT, exact search, unit of time known"]
    for name in adept_figure_4.SETS:
        assert adept_figure_4.largest_errors(name, exact)[0].max() < 1e-5


def test_who_fails_on_figure_4_is_not_who_fails_in_print():
    """Local descent on the first set, the even exhaustive search on both."""
    first, second = row("Levenberg-Marquardt from A = 50, sigma = 0.5")
    assert max(first) > 50 > 1 > max(second)
    even = row("exhaustive, sigma in 1000 even steps")
    assert min(max(errors) for errors in even) > 20


def test_every_figure_and_table_has_a_row():
    adept, sage = PAGE.split("## SAGE")
    assert all(f"| Table {k}" in adept for k in (1, 2, 3))
    assert all(f"| Figure {k}" in adept for k in range(1, 10))
    assert all(f"| Table {k}" in sage for k in (1, 2))
    assert all(f"| Figure {k}" in sage for k in (1, 4, "5 (a)", "5 (b)", "5 (c)"))
    assert "| Figures 2 and 3" in sage
    assert "| Tables 3 and 4" in sage
