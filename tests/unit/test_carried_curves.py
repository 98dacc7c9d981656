"""A learned curve is used where its runs carry it: what was said of them was near enough."""

import random
from math import log, nan

import numpy as np
import pytest

from predictors.base import Observation, VisibleJobs
from predictors.curves.laws import Amdahl
from predictors.errors import PredictorError
from predictors.in_loop.learned import CurvePerApplication
from predictors.in_loop.learned_sized import RegressionPerApplication
from predictors.regression.barnes import LogLogRegression

pytestmark = pytest.mark.fast
COUNTS = (1, 2, 4, 8)
FOUR = np.array([4])


def learner(kind, applications, **options):
    """A predictor of jobs of these applications, of hidden size, that has seen three counts."""
    if kind == "regression":
        found = RegressionPerApplication(LogLogRegression(), kind, **options)
    else:
        found = CurvePerApplication(Amdahl(), kind, scatter=100.0, **options)
    who = np.array(applications)
    unknown = np.full(who.size, nan)
    found.attach(VisibleJobs(who, who * 0 - 1, unknown, who, who * 0 + 4, unknown))
    for one in sorted(set(applications)):
        for n in COUNTS:
            found.observe(Observation(one, -1, nan, n, 80.0 / n, 0.0))
    return found


@pytest.mark.parametrize("kind", ["amdahl", "regression"])
def test_one_run_far_off_takes_the_curve_away_and_near_ones_bring_it_back(kind):
    strict, free = (learner(kind, [0] * 40, most_error=most) for most in (1.0, None))
    assert strict.curve(0, FOUR) == pytest.approx(20.0)
    assert free.curve(0, FOUR) == pytest.approx(20.0)
    run = Observation(0, -1, nan, 4, 20.0 * np.exp(2.5), 0.0, 0)
    assert strict.observe(run)  # what is believed of those who wait has changed
    free.observe(run)
    errors = [2.5]
    for job in range(1, 40):
        mean = sum(e * e for e in errors) / len(errors)
        closed = (sum(e * e for e in errors) + 2 * mean) / (len(errors) + 2) > 1
        believed = free.curve(job, FOUR)
        assert (strict.curve(job, FOUR) is None) == closed
        assert strict.explain(job, 4).method == ("requested_time" if closed else kind)
        assert free.explain(job, 4).method == kind
        run = Observation(0, -1, nan, 4, believed.item(), 0.0, job)
        strict.observe(run)
        free.observe(run)
        errors.append(0.0)
    assert closed is False


def test_the_gate_is_that_of_its_formula_over_two_applications():
    """Whoever was never asked about counts by the mean over all; no e² counts as more than 9."""
    dice = random.Random(5)
    applications = [dice.randrange(2) for _ in range(120)]
    strict, free = (learner("amdahl", applications, most_error=most) for most in (0.8, None))
    squares, gate, seen = {0: [], 1: []}, {0: True, 1: True}, set()
    for job, own in enumerate(applications):
        count = np.array([dice.choice(COUNTS)])
        believed = free.curve(job, count).item()
        found = strict.curve(job, count)
        assert (found is not None) == gate[own]
        assert found is None or found.item() == believed
        seen.add(gate[own])
        runtime = believed * np.exp(dice.choice([0.1, 0.3, 1.5, 5.0]) * dice.choice([-1, 1]))
        for one in (strict, free):
            one.observe(Observation(own, -1, nan, count.item(), runtime, 0.0, job))
        squares[own].append(min(log(runtime / believed) ** 2, 9.0))
        every = squares[0] + squares[1]
        mean = sum(every) / len(every)
        gate[own] = (sum(squares[own]) + 2 * mean) / (len(squares[own]) + 2) <= 0.8**2
    assert seen == {True, False}


def test_runs_on_counts_that_nobody_asked_about_say_nothing():
    predictor = learner("amdahl", [0] * 4)
    predictor.curve(0, np.array([2, 4]))
    predictor.observe(Observation(0, -1, nan, 8, 1e6, 0.0, 0))
    predictor.observe(Observation(0, -1, nan, 4, 1e6, 0.0, 1))
    assert predictor.curve(2, FOUR) is not None


@pytest.mark.parametrize("kind", ["amdahl", "regression"])
@pytest.mark.parametrize(("factor", "is_used"), [(1.9, True), (2.2, False), (1 / 2.2, False)])
def test_a_curve_is_used_while_its_runs_were_within_a_factor_of_two(kind, factor, is_used):
    predictor = learner(kind, [0] * 2)
    run = Observation(0, -1, nan, 4, predictor.curve(0, FOUR).item() * factor, 0.0, 0)
    predictor.observe(run)
    assert (predictor.curve(1, FOUR) is not None) == is_used


@pytest.mark.parametrize("most", [0.0, -1.0, nan])
def test_the_bound_is_above_0(most):
    with pytest.raises(PredictorError, match="most_error must be positive, or null"):
        CurvePerApplication(Amdahl(), "amdahl", most_error=most)


def test_without_runs_before_the_start_a_curve_is_used_once_runs_have_shown_it():
    """Five runs of e² = 1 come before the first: (5 + n e²) / (5 + n) must fall to the gate's."""
    early, calibrated = (learner("amdahl", [0] * 12, calibration=n) for n in (0, 3))
    assert calibrated.curve(0, FOUR) == pytest.approx(20.0)
    used = []
    for job in range(12):
        used.append(early.curve(job, FOUR) is not None)
        early.observe(Observation(0, -1, nan, 4, 20.0, 0.0, job))
    expected = [2 * (5 / (5 + n)) / (n + 2) <= 0.49 for n in range(12)]
    assert used == expected
    assert 1 < used.index(True) < 6
