"""Placing checkpoints in whole cycles, stopping in time."""

import numpy as np
import pytest

from predictors.cycles.checkpointing import place_checkpoints, plan_cycles, stop_before
from predictors.errors import PredictorError


def test_a_cycle_longer_than_the_interval_gets_one_before_and_after():
    ends = np.cumsum([1.0, 1.0, 50.0, 1.0, 1.0])
    assert place_checkpoints(ends, 10.0).tolist() == [2, 3]


def test_never_two_without_a_cycle_between_and_none_at_the_ends():
    ends = np.cumsum(np.full(6, 20.0))
    assert place_checkpoints(ends, 10.0).tolist() == [1, 2, 3, 4, 5]
    assert place_checkpoints([20.0], 10.0).tolist() == []


def test_exactly_the_interval_is_allowed():
    assert place_checkpoints(np.arange(1.0, 7.0), 3.0).tolist() == [3]


def test_predictions_decide_and_truth_counts():
    ends = np.cumsum(np.full(5, 4.0))
    predicted = np.array([np.nan, 4.0, 9.0, 4.0, 4.0])
    # before cycle 2: 8 done, 9 predicted, beyond 12; then 4 done + 4 fit.
    assert place_checkpoints(ends, 12.0, predicted).tolist() == [2]


def test_the_interval_may_change_from_cycle_to_cycle():
    ends = np.cumsum(np.full(8, 1.0))
    assert place_checkpoints(ends, [4, 4, 4, 4, 2, 2, 2, 2]).tolist() == [4, 6]


def test_growing_cycles_shrink_the_intervals_in_cycles():
    places = place_checkpoints(np.cumsum(2.3 + 0.12 * np.arange(200)), 109.545)
    assert places[:2].tolist() == [27, 43]  # as in the paper's Figure 4
    assert (np.diff(places, prepend=0) > 0).all()
    assert (np.diff(np.diff(places, prepend=0)) <= 0).all()


def test_ten_thousand_cycles_are_placed_as_one_by_one():
    lengths = np.random.default_rng(0).gamma(100.0, 0.1, 10_000)
    since, places = 0.0, []
    for finished, length in enumerate(lengths.tolist()):
        if since + length > 600.0:
            places.append(finished)
            since = 0.0
        since += length
    assert place_checkpoints(np.cumsum(lengths), 600.0).tolist() == places


def test_stop_before_the_cycle_that_would_overrun():
    ends = [10.0, 20.0, 30.0, 40.0]
    assert stop_before(ends, 40.0) == 4
    assert stop_before(ends, 39.9) == 3
    assert stop_before(ends, 40.0, final=0.1) == 3
    assert stop_before(ends, 5.0) == 0
    assert stop_before(ends, 35.0, predicted=[10.0, 10.0, 20.0, 1.0]) == 2


def test_plan_follows_wall_time_by_hand():
    # cycles 0-4, 4-8, checkpoint 8-9, 9-13, 13-17, checkpoint 17-18, 18-22
    plan = plan_cycles([4, 8, 12, 16, 20], interval=9, cost=1)
    assert plan.places.tolist() == [2, 4]
    assert plan.wall_ends.tolist() == [4, 8, 13, 17, 22]
    assert plan.saved_ends.tolist() == [9, 18]
    assert (plan.wall, plan.outcome) == (22.0, "completed")
    assert [plan.finished(t) for t in (3.9, 4.0, 8.5, 13.0, 22.0)] == [0, 1, 2, 3, 5]
    assert [plan.saved(t) for t in (8.9, 9.0, 17.9, 18.0, 21.0)] == [0, 2, 2, 4, 4]
    assert [plan.overhead(t) for t in (8.0, 8.5, 9.0, 12.0, 30.0)] == [0, 0.5, 1, 1, 2]
    assert [plan.computed(t) for t in (8.0, 8.5, 10.0, 22.0)] == [8, 8, 9, 20]
    assert [plan.lost(t) for t in (8.5, 9.0, 13.0, 19.0)] == [8, 0, 4, 1]


def test_a_limit_stops_with_a_checkpoint_and_nothing_is_lost():
    plan = plan_cycles([4, 8, 12, 16, 20], interval=9, cost=1, limit=15)
    assert (plan.stopped_after, plan.wall, plan.outcome) == (3, 14.0, "stopped")
    assert plan.saved(14.0) == 3
    assert plan.saved(13.9) == 2
    assert plan.overhead(14.0) == 2.0
    assert plan.lost(14.0) == 0.0


def test_a_checkpoint_due_at_the_stop_is_the_final_one():
    plan = plan_cycles([4, 8, 12, 16], interval=9, cost=1, limit=12)
    assert (plan.stopped_after, plan.places.tolist(), plan.wall) == (2, [], 9.0)


def test_a_checkpoint_due_before_the_cycle_counts_against_the_limit():
    # 8 done, checkpoint 1, cycle 4, final checkpoint 1: 14 would be too late.
    plan = plan_cycles([4, 8, 12, 16], interval=9, cost=1, limit=13.5)
    assert (plan.stopped_after, plan.wall, plan.outcome) == (2, 9.0, "stopped")


def test_without_stopping_the_limit_kills():
    plan = plan_cycles([4, 8, 12, 16, 20], interval=9, cost=1, limit=15, stop_in_time=False)
    assert (plan.outcome, plan.wall, plan.saved(15.0)) == ("killed", 15.0, 2)
    assert plan.lost(15.0) == 6.0


def test_a_low_prediction_runs_into_the_limit():
    predicted = [4, 4, 4, 1, 1]
    plan = plan_cycles([4, 8, 12, 30, 34], np.inf, 0.5, predicted, limit=20)
    assert (plan.outcome, plan.wall) == ("killed", 20.0)


def test_a_margin_stops_earlier_and_survives_a_slow_cycle():
    ends, predicted = [4, 8, 12, 17.5, 22], [4.0] * 5
    late = plan_cycles(ends, np.inf, 0.5, predicted, limit=17)
    early = plan_cycles(ends, np.inf, 0.5, predicted, limit=17, margin=1.5)
    assert (late.outcome, early.outcome, early.stopped_after) == ("killed", "stopped", 3)
    assert early.saved(early.wall) == 3


@pytest.mark.parametrize(
    ("told", "stops", "wall"),
    [
        (1.0, 1, 6.0),  # the cycle under way is finished and saved
        (8.5, 2, 10.0),  # it is writing this checkpoint anyway
        (10.0, 3, 16.0),
        (17.0, 4, 20.0),  # the next checkpoint was due there
        (23.0, 5, 24.0),  # the last cycle needs no checkpoint: it completes
    ],
)
def test_a_run_told_to_stop_saves_the_cycle_under_way(told, stops, wall):
    plan = plan_cycles([4, 8, 12, 16, 20], interval=8, cost=2)
    assert plan.places.tolist() == [2, 4]
    early = plan.told_to_stop(told, np.full(5, 2.0))
    assert (early.stopped_after, early.wall) == (stops, wall)
    if stops < 5:
        assert (early.outcome, early.saved(early.wall)) == ("stopped", stops)
        assert early.overhead(early.wall) + early.computed(early.wall) == early.wall
    assert early.told_to_stop(told, np.full(5, 2.0)) is early


def test_growing_costs_are_paid_where_they_fall():
    plan = plan_cycles([4, 8, 12, 16], interval=5, cost=[1, 2, 3, 4])
    assert plan.costs.tolist() == [2, 3, 4]
    assert plan.wall == 25.0


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: place_checkpoints([1, 2], 0.0), "interval must be positive"),
        (lambda: place_checkpoints([2, 1], 1.0), "never decrease"),
        (lambda: place_checkpoints([], 1.0), "one row of cycle ends"),
        (lambda: place_checkpoints([1, 2], 1.0, [1.0]), "each of 2 cycles"),
        (lambda: plan_cycles([1, 2], limit=0.0), "limit must be positive"),
        (lambda: plan_cycles([1, 2], margin=0.0), "margin must be positive"),
        (lambda: plan_cycles([1, 2], cost=-1.0), "cost must be at least 0"),
    ],
)
def test_bad_values_are_named(call, named):
    with pytest.raises(PredictorError, match=named):
        call()
