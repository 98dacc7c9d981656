"""What was measured is believed: corrections of a model by the runs at its counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictors.in_loop import residuals
from predictors.in_loop.residuals import NUMBER, RAW, SQUARES, MeasuredCounts, prior_runs

pytestmark = pytest.mark.fast

COUNTS = st.integers(1, 40)
SECONDS = st.floats(1e-3, 1e5)
RUNS = st.lists(st.tuples(COUNTS, SECONDS), min_size=1, max_size=20)
ASKED = np.arange(1, 81)


def power_law(scale=1.0):
    """A model's runtimes by count."""
    return scale * np.concatenate([[np.nan], 50.0 / ASKED**0.8])


def corrected(runs, model, kept=16):
    measured = MeasuredCounts(kept)
    for nprocs, runtime in runs:
        measured.add(nprocs, runtime)
    measured.compare(model)
    return measured.believed(model, ASKED)


@given(RUNS)
def test_beliefs_are_positive_and_stay_within_the_residuals(runs):
    model = power_law()
    found = corrected(runs, model)
    assert np.isfinite(found).all()
    assert (found > 0).all()
    ratios = np.array([seconds / model[n] for n, seconds in runs])
    low, high = min(ratios.min(), 1.0), max(ratios.max(), 1.0)
    assert (found >= low * model[1:] * (1 - 1e-9)).all()
    inside = max(n for n, _ in runs)
    assert (found[:inside] <= high * model[1 : inside + 1] * (1 + 1e-9)).all()


@given(RUNS, st.floats(1e-6, 1e6))
def test_a_change_of_units_scales_beliefs(runs, unit):
    other = corrected([(n, unit * seconds) for n, seconds in runs], power_law(unit))
    np.testing.assert_allclose(other, unit * corrected(runs, power_law()), rtol=1e-9)


@given(RUNS.flatmap(lambda runs: st.tuples(st.just(runs), st.permutations(runs))))
def test_the_order_of_runs_does_not_matter_as_long_as_all_are_kept(both):
    runs, shuffled = both
    one, other = (corrected(rows, power_law(), kept=20) for rows in (runs, shuffled))
    np.testing.assert_allclose(other, one, rtol=1e-9)


@given(COUNTS, SECONDS, RUNS)
def test_a_belief_tends_to_the_runs_at_its_count(nprocs, seconds, others):
    others = [run for run in others if run[0] != nprocs]
    distances = []
    for number in (1, 4, 16):
        found = corrected([*others, *[(nprocs, seconds)] * number], power_law())[nprocs - 1]
        distances.append(abs(np.log(found / seconds)))
    assert distances[0] >= distances[1] >= distances[2]
    assert distances[2] <= abs(np.log(power_law()[nprocs] / seconds)) * 2 / 18 + 1e-9


@given(RUNS)
def test_beyond_the_largest_count_no_belief_falls_more_steeply_than_over_the_last_doubling(runs):
    largest = max(n for n, _ in runs)
    earlier = [n for n, _ in runs if n <= largest / 2]
    found = np.concatenate([[np.nan], corrected(runs, power_law())])
    if earlier:
        before = max(earlier)
        slope = np.log(found[largest] / found[before]) / np.log(largest / before)
        beyond = np.arange(largest + 1, 81)
        least = found[largest] * (beyond / largest) ** slope
        assert (found[beyond] >= least * (1 - 1e-9)).all()


def test_a_model_weighs_less_the_more_it_errs_and_more_the_more_runs_scatter():
    numbers = np.full(5, 4.0)
    good, bad = np.full(5, 0.05), np.full(5, 1.0)
    assert prior_runs(np.zeros(1), np.ones(1), 0.0) == pytest.approx(0.75)  # 0.01 / (0.04 / 3)
    assert prior_runs(bad, numbers, 0.15) < 0.05 < prior_runs(good, numbers, 0.15)
    assert prior_runs(bad, numbers, 15.0) > prior_runs(bad, numbers, 0.15)
    assert prior_runs(good, numbers, 15.0) == 2.0


def test_runs_after_the_comparison_join_it():
    model = power_law()
    measured = MeasuredCounts(2)
    for nprocs in (2, 8):
        measured.add(nprocs, model[nprocs])
    measured.compare(model)
    for ratio in (1.5, 2.0, 3.0):
        measured.add(8, ratio * model[8])
    number, mean = measured.kept_at(8)
    assert number == 2  # the latest
    assert mean == pytest.approx(np.sqrt(6.0) * model[8])
    afresh = [(2, model[2]), (8, 2.0 * model[8]), (8, 3.0 * model[8])]
    np.testing.assert_allclose(measured.believed(model, ASKED), corrected(afresh, model))
    scatter = np.log(1.5) ** 2 / 2
    assert measured.table.sums[SQUARES] == pytest.approx(scatter)  # of 2 and 3 alone
    found = np.log(measured.believed(model, np.array([1, 2, 4, 8])) / model[[1, 2, 4, 8]])
    np.testing.assert_allclose(found[[0, 1]], 0.0, atol=1e-12)
    assert found[2] == pytest.approx(found[3] / 2)


def test_ratios_to_a_model_correct_it_as_the_runs_themselves_do():
    model = power_law()
    runs = [(2, 40.0), (4, 20.0), (8, 12.0), (2, 33.0), (4, 21.0), (16, 9.0)]
    ratios = MeasuredCounts(16)
    told = runs[:4]
    ratios.fill(*np.array([[n, seconds / model[n]] for n, seconds in told]).T)
    for nprocs, seconds in runs[4:]:  # one more at a count, and a new count
        ratios.add(nprocs, seconds / model[nprocs])
    figures, known = ratios.table.figures[:, : ratios.counts], ratios.known
    own = (known, figures[RAW], figures[NUMBER], ratios.table.sums[SQUARES])
    found = residuals.corrected(model[ASKED], ASKED, model[known], *own)
    np.testing.assert_allclose(found, corrected(runs, model))


def test_nothing_is_known_of_a_count_without_runs():
    measured = MeasuredCounts(16)
    measured.add(4, 10.0)
    number, mean = measured.kept_at(8)
    assert number == 0
    assert np.isnan(mean)


def test_one_run_beside_a_model_is_believed_in_part():
    model = power_law()
    ratios = [corrected([(8, 2.0 * model[8])] * runs, model)[7] / model[8] for runs in (1, 4, 16)]
    assert 1.0 < ratios[0] < ratios[1] < ratios[2] < 2.0
