"""EASY-SJBF and EASY++ equal ones written the obvious way, straight from their papers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import NaiveEasyPlus
from test_against_naive import MACHINE, traces
from toys import ToyEstimate, rigid_truth, trace_of

from predictors.base import Observation, VisibleJobs
from predictors.errors import PredictorError
from predictors.in_loop.user_estimate import CORRECTIONS, LastTwo
from sim.engine.invariants import Checker
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.errors import PolicyError
from sim.machine.base import Dedicated
from sim.policies.allocation.fair_share import FairShare
from sim.policies.allocation.rigid import Request
from sim.policies.backfill.easy import Easy
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed

STEPS = (1.0, 3.0, 8.0)


def starts(rows, users, predictor, checked):
    trace = trace_of(rows)
    trace.jobs["user"] = users
    rule = Policy(FirstComeFirstServed(), Easy(candidates="shortest"), Request())
    machine, watchers = Dedicated(MACHINE), (Checker(),) * checked
    setup = Setup(trace, rigid_truth(trace), rule, predictor, machine, watchers=watchers)
    return simulate(setup).start_time.tolist()


@pytest.mark.parametrize("checked", [False, True], ids=["compiled", "python"])
@settings(max_examples=200)
@given(rows=traces())
def test_the_shortest_estimate_is_tried_first(checked, rows):
    expected = NaiveEasyPlus(rows, MACHINE).run()
    assert starts(rows, [-1] * len(rows), ToyEstimate(), checked) == expected


@pytest.mark.parametrize("checked", [False, True], ids=["compiled", "python"])
@settings(max_examples=200)
@given(rows=traces(), dice=st.randoms(use_true_random=False))
def test_predictions_are_means_of_two_and_corrected_step_by_step(checked, rows, dice):
    users = [dice.randrange(2) for _ in rows]
    expected = NaiveEasyPlus(rows, MACHINE, users, STEPS).run()
    assert starts(rows, users, LastTwo(STEPS), checked) == expected


def test_a_shorter_job_passes_one_that_is_ahead_of_it_in_the_queue():
    """4 of 6 are held until 10, and all are wanted next; 2 are free: one of both fits, for 3 s."""
    rows = [(0, 4, 10, 10), (1, 6, 5, 5), (2, 2, 8, 8), (3, 2, 3, 3)]
    rows.append((3, 2, 4, 4))
    assert starts(rows, [-1] * 5, ToyEstimate(), False) == [0, 10, 2, 15, 15]
    rows[2] = (3, 2, 7, 7)
    assert starts(rows, [-1] * 5, ToyEstimate(), False) == [0, 10, 15, 3, 6]


def visible(users, requested):
    number = len(users)
    zero, unknown = np.zeros(number, int), np.full(number, np.nan)
    limit = np.array(requested, float)
    return VisibleJobs(zero, zero - 1, unknown, np.array(users), zero + 4, limit)


def test_a_prediction_is_the_mean_of_the_last_two_up_to_the_request_and_stays():
    predictor, four = LastTwo(), np.array([4])
    predictor.attach(visible([7, 7, 7, 7, 8, 7], [100, 100, 100, 30, 100, 100]))
    assert predictor.curve(5, four) is None
    for job, runtime in ((0, 20.0), (1, 40.0), (2, 60.0)):
        assert not predictor.observe(Observation(0, -1, np.nan, 4, runtime, 0.0, job))
    assert predictor.curve(3, four).tolist() == [30.0]
    assert predictor.explain(3, 4).method == "last_two"
    assert predictor.curve(4, four) is None
    assert predictor.curve(5, four) is None  # as it was when it was submitted
    assert predictor.explain(5, 4).method == "requested_time"
    assert predictor.curve(3, np.array([2])) is None
    assert predictor.corrections.tolist() == list(CORRECTIONS)


@pytest.mark.parametrize("steps", [(0.0,), (5.0, 5.0), (1.0, np.inf)])
def test_corrections_ascend(steps):
    with pytest.raises(PredictorError, match="ascend from above 0"):
        LastTwo(steps)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Easy(candidates="longest"), "longest"),
        (lambda: Easy(2, candidates="shortest"), "reservations=1"),
    ],
)
def test_candidates_are_refused_where_they_make_no_sense(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_open_counts_take_candidates_in_queue_order():
    rows = [(0, 1, 1, 1)]
    trace = trace_of(rows)
    rule = Policy(FirstComeFirstServed(), Easy(candidates="shortest"), FairShare())
    setup = Setup(trace, rigid_truth(trace), rule, ToyEstimate(), Dedicated(MACHINE))
    with pytest.raises(PolicyError, match="keeps counts open; choose queue"):
        simulate(setup)
