"""Wrong variants that whole runs do not tell from right ones, each told apart where it matters."""

from contextlib import nullcontext

import numpy as np
import pytest
from malleables import power_truth
from moldable_toys import mold
from scipy.special import ndtr, stdtrit
from toys import ToyEstimate, ToyOracle, in_python, replay, rigid, rigid_truth, trace_of

from predictors import downey
from predictors.adept.fit import distance_weights
from predictors.adept.search import Problem, search
from predictors.least_squares import PRIOR_ERROR, fit_nonnegative, fit_range
from predictors.under_load.rational import simplest_good
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.policies.allocation.curve import average, knee
from sim.policies.allocation.rigid import Request
from sim.policies.allocation.sa import SmallestTurnaround
from sim.policies.backfill.conservative import repair
from sim.policies.backfill.easy import Easy
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed
from sim.policies.passes.memory import make_memory
from sim.policies.reallocation.equi import Equipartition
from sim.state.decisions import PastErrors
from sim.state.waiting_queue import WaitingQueue, push
from sim.statistics import neighbours

pytestmark = pytest.mark.fast


class Listening(ToyEstimate):
    """A predictor that keeps what it is told."""

    learns = True

    def __init__(self):
        self.observed = []

    def observe(self, observation):
        self.observed.append(observation)
        return False


@pytest.mark.parametrize("way", [nullcontext, in_python], ids=["compiled passes", "in Python"])
def test_a_killed_run_teaches_nothing(way):
    """The first ends just at its limit; the last takes no time, and teaches nothing either."""
    rows = [(0.0, 2, 20.0, 20.0), (0.0, 2, 30.0, 20.0), (5.0, 4, 7.0, 20.0), (50.0, 1, 0.0, 20.0)]
    predictor = Listening()
    trace = trace_of(rows)
    told = (trace, rigid_truth(trace), rigid("easy"), predictor, Dedicated(4))
    with way():
        records = simulate(Setup(*told, overrun="kill"))
    assert records.status == ["completed", "killed", "completed", "completed"]
    assert [run.job for run in predictor.observed] == [0, 2]


def test_who_ends_with_the_last_that_the_head_needs_leaves_extra_processors():
    """At 10 the head's two are there, and two more: the last may run on beside it from 2 on."""
    trace = trace_of([(0.0, 1, 10.0), (0.0, 2, 10.0), (1.0, 2, 5.0), (2.0, 1, 100.0)])
    told = (trace, rigid_truth(trace), rigid("easy"), ToyEstimate(), Dedicated(4))
    assert simulate(Setup(*told)).start_time.tolist() == [0.0, 0.0, 10.0, 2.0]


@pytest.mark.parametrize(("average", "sigma"), [(37.3, 0.4), (11.7, 1.6), (90.1, 0.9)])
def test_the_breakpoint_of_a_noiseless_curve_is_found_within_rounding(average, sigma):
    """Two rounds of refinement in place of four miss it by more."""
    n = np.array([1.0, 4.0, 10.0, 24.0, 60.0, 200.0])
    t = downey.normalised_time(n, average, sigma)
    weights = np.full((1, n.size), 1 / n.size)
    found = search(Problem(n, t, weights, np.array([800.0])))
    best = int(np.argmin(found.wssre[0]))
    at = found.values[0, 0]
    true = average if sigma <= 1 else average + average * sigma - sigma
    assert at[best] == pytest.approx(true, rel=5e-9)


def test_the_margin_of_a_simpler_form_is_a_standard_error_not_a_deviation():
    """25 rows, mean excess 0.06: standard deviation 0.12, standard error 0.024."""
    best = np.full(25, 0.5)
    excess = 0.06 + 0.12 * np.resize([1.0, -1.0], 24)
    simple = best + np.append(excess, 0.06)
    assert simplest_good(np.array([simple, best]), [1, 2]) == 1


def test_neighbouring_batches_are_judged_with_the_correction_for_both_ends():
    """Four batches by hand: means 4, 1, 2, 5, deviations 1, -2, -1, 2, their squares 10.

    Products of neighbours -2, 2, -2; von Neumann adds half the squares of both ends.
    """
    correlation, chance = neighbours(np.array([4.0, 1.0, 2.0, 5.0]))
    products = -2 + 2 - 2
    assert correlation == pytest.approx(products / 10 + (1 + 4) / 20)
    score = correlation * np.sqrt((16 - 1) / (4 - 2))
    assert chance == pytest.approx(ndtr(-score))


def test_a_reservation_for_this_very_instant_that_just_fits_is_kept():
    """Both comparisons in the rule hold with equality: it starts now and takes all that is free.

    Were it lost, the one behind it would keep its own, and it would start after that.
    """
    queue = WaitingQueue(2)
    memory = make_memory(queue.tables, 4)
    for job, processors, start in ((0, 4, 10.0), (1, 1, 12.0)):
        queue.start[push(queue.tables, job, processors, 5.0, 0.0)] = start
    repair(memory, 10.0)
    assert queue.start[queue.places()].tolist() == [10.0, 15.0]


def test_a_range_rests_on_two_prior_degrees_of_freedom():
    """T(n) = 12/n exactly at four counts: no residuals, one coefficient, 2 + 3 degrees."""
    n = np.array([1.0, 2.0, 3.0, 4.0])
    design = (1 / n)[:, None]
    fit = fit_nonnegative(design, 12 / n)
    low, high = fit_range(fit, np.array([[0.125]]), np.array([1.5]), 0.8)
    error = np.sqrt(2 * PRIOR_ERROR**2 / 5) * np.sqrt(1 + 1 / 4)
    assert high / 1.5 == pytest.approx(np.exp(stdtrit(5, 0.9) * error))
    assert 1.5 / low == pytest.approx(high / 1.5)


@pytest.fixture
def noted(monkeypatch):
    """The applications whose runs are compared with what was believed of them."""
    found = []
    monkeypatch.setattr(
        PastErrors, "note", lambda self, application, *run: found.append(application)
    )
    return found


def corrected(trace, truth, predictor, reallocation=None, **options):
    truth.application = np.arange(len(trace.jobs))
    order = FirstComeFirstServed()
    policy = Policy(order, Easy(), Request(), reallocation, error_quantile=0.9)
    simulate(Setup(trace, truth, policy, predictor, Dedicated(4), **options))


def test_a_killed_run_is_no_error_of_prediction(noted):
    trace = trace_of([(0.0, 2, 10.0, 20.0), (0.0, 2, 30.0, 20.0)])
    corrected(trace, rigid_truth(trace), ToyEstimate(), overrun="kill")
    assert noted == [0]


def test_a_run_on_several_counts_is_compared_with_no_belief(noted):
    """Linear jobs of 100 and 40: the first has 4 processors, 2 from 10 to 30, then 4 again."""
    truth = power_truth([100.0, 40.0], [1.0, 1.0], 4)
    trace = trace_of([(0.0, 1, 100.0), (10.0, 1, 40.0)])
    corrected(trace, truth, ToyOracle(truth), Equipartition())
    assert noted == [1]


def test_a_draw_that_equals_the_share_of_adopters_does_not_adopt():
    rows, curves = [(0, 2, 12)], [lambda n: 24 / n]
    assert mold("easy", SmallestTurnaround(adopters=0.0), rows, curves).allocated.tolist() == [2]
    assert mold("easy", SmallestTurnaround(adopters=1.0), rows, curves).allocated.tolist() == [8]


def test_the_average_parallelism_is_rounded_to_the_nearest_count():
    assert average(np.arange(1, 6), np.array([36.0, 20.0, 13.0, 10.5, 10.0]), 36.0) == 3


def test_the_knee_is_where_n_t_squared_is_least():
    """n·T²: 64, 50, 36, 50; n·T is least on one processor."""
    assert knee(np.array([1, 2, 4, 8]), np.array([8.0, 5.0, 3.0, 2.5])) == 2


def test_each_target_has_its_own_largest_distance():
    n, targets = np.array([4.0, 16.0, 64.0]), np.array([128.0, 8.0])
    found = distance_weights(n, targets, 2.0)
    assert found.tolist() == [[124.0, 136.0, 184.0], [108.0, 104.0, 56.0]]


def test_what_ends_at_the_shadow_time_passes_when_processors_come_free():
    """Two are free from 5 on; the head waits for all four until 10, when the last one ends."""
    rows = [(0.0, 2, 5.0), (0.0, 2, 10.0), (1.0, 4, 3.0), (1.0, 2, 5.0), (1.0, 2, 20.0)]
    assert replay(rows, 4, rigid("easy")).start_time.tolist() == [0.0, 0.0, 10.0, 5.0, 13.0]


def test_what_outlasts_the_shadow_time_passes_on_extra_processors_once():
    """The head leaves one of four over when it starts at 10: one job takes that, not two."""
    rows = [(0.0, 2, 5.0), (0.0, 2, 10.0), (1.0, 3, 3.0), (1.0, 1, 50.0), (1.0, 1, 50.0)]
    assert replay(rows, 4, rigid("easy")).start_time.tolist() == [0.0, 0.0, 10.0, 5.0, 13.0]
