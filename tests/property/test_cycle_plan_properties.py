"""The vectorised plan against the rule, cycle by cycle."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from predictors.cycles.checkpointing import place_checkpoints, plan_cycles

SECONDS = st.floats(0.5, 50.0)


def by_the_rule(seconds, predicted, interval):
    """Walk the paper's rule one cycle at a time."""
    places, since = [], 0.0
    for k, (true, guess) in enumerate(zip(seconds, predicted, strict=True)):
        if k and since > 0 and since + guess > interval:
            places.append(k)
            since = 0.0
        since += true
    return places


@settings(max_examples=200)
@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=40), st.integers(5, 120))
def test_places_follow_the_rule(cycles, interval):
    # Multiples of 1/8 add up exactly, so both ways compare the same numbers.
    seconds, predicted = np.round(np.array(cycles).T * 8) / 8
    places = place_checkpoints(np.cumsum(seconds), float(interval), predicted)
    assert places.tolist() == by_the_rule(seconds, predicted, interval)


@settings(max_examples=150)
@given(
    st.lists(SECONDS, min_size=1, max_size=30),
    st.floats(5.0, 100.0),
    st.floats(0.0, 5.0),
    st.floats(1.0, 400.0),
    st.floats(0.0, 1.5),
)
def test_time_balances_and_no_work_is_invented(seconds, interval, cost, limit, at):
    ends = np.cumsum(seconds)
    plan = plan_cycles(ends, interval, cost, limit=limit)
    elapsed = min(at * plan.wall, plan.wall)
    assert np.isclose(plan.computed(elapsed) + plan.overhead(elapsed), elapsed)
    assert 0 <= plan.saved(elapsed) <= plan.finished(elapsed) <= plan.stopped_after
    assert plan.lost(elapsed) >= -1e-9
    assert plan.computed(elapsed) <= ends[-1] + 1e-9
    # Predicted exactly, the limit is never hit: it stops in time.
    assert plan.outcome != "killed"
    if plan.outcome == "stopped":
        assert plan.saved(plan.wall) == plan.stopped_after
