"""What was measured is believed: corrections of a model by the runs at its counts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictors.residuals import MeasuredCounts

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


@settings(deadline=None)
@given(RUNS)
def test_beliefs_are_positive_and_stay_within_the_residuals(runs):
    model = power_law()
    found = corrected(runs, model)
    assert np.isfinite(found).all()
    assert (found > 0).all()
    ratios = np.array([seconds / model[n] for n, seconds in runs])
    low, high = min(ratios.min(), 1.0), max(ratios.max(), 1.0)
    assert (found >= low * model[1:] * (1 - 1e-9)).all()
    assert (found <= high * model[1:] * (1 + 1e-9)).all()


@settings(deadline=None)
@given(RUNS, st.floats(1e-6, 1e6))
def test_a_change_of_units_scales_beliefs(runs, unit):
    other = corrected([(n, unit * seconds) for n, seconds in runs], power_law(unit))
    np.testing.assert_allclose(other, unit * corrected(runs, power_law()), rtol=1e-9)


@settings(deadline=None)
@given(RUNS.flatmap(lambda runs: st.tuples(st.just(runs), st.permutations(runs))))
def test_the_order_of_runs_does_not_matter_as_long_as_all_are_kept(both):
    runs, shuffled = both
    one, other = (corrected(rows, power_law(), kept=20) for rows in (runs, shuffled))
    np.testing.assert_allclose(other, one, rtol=1e-9)


@settings(deadline=None)
@given(COUNTS, SECONDS, RUNS)
def test_a_belief_tends_to_the_runs_at_its_count(nprocs, seconds, others):
    others = [run for run in others if run[0] != nprocs]
    distances = []
    for number in (1, 4, 16):
        found = corrected([*others, *[(nprocs, seconds)] * number], power_law())[nprocs - 1]
        distances.append(abs(np.log(found / seconds)))
    assert distances[0] >= distances[1] >= distances[2]
    assert distances[2] <= abs(np.log(power_law()[nprocs] / seconds)) / 32 + 1e-9


def test_runs_after_the_comparison_join_it():
    model = power_law()
    measured = MeasuredCounts(2)
    for nprocs in (2, 8):
        measured.add(nprocs, model[nprocs])
    measured.compare(model)
    for ratio in (1.5, 2.0, 3.0):
        measured.add(8, ratio * model[8])
    assert measured.number(8) == 2  # the latest
    assert measured.mean(8) == pytest.approx(np.sqrt(6.0) * model[8])
    factor = 6.0 ** (0.5 * 2 / 2.5)
    found = measured.believed(model, np.array([1, 4, 8, 64])) / model[[1, 4, 8, 64]]
    np.testing.assert_allclose(found, [1.0, np.sqrt(factor), factor, factor])


def test_nothing_is_known_of_a_count_without_runs():
    measured = MeasuredCounts(16)
    measured.add(4, 10.0)
    assert measured.number(8) == 0
    assert np.isnan(measured.mean(8))
