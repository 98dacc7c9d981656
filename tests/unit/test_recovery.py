"""A lone job through failures: by hand, in balance, and against the closed form."""

from itertools import repeat

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_walltime import expected_walltime

from benchmarks.single_job_recovery import recover
from predictors.cycles.checkpointing import best_interval, daly_interval, young_interval
from sim.errors import SimError
from sim.machine.failing import FailingMachine


def test_failure_by_hand():
    # 0-10-20, checkpoint 20-21, fails at 25 with 4 lost; 2 s restart, 20 s work.
    result = recover([10, 20, 30, 40], [25], interval=20, cost=1, restart=2)
    assert result.completed
    assert (result.wall, result.lost, result.overhead, result.restarting) == (47, 4, 1, 2)
    assert (result.failures, result.work) == (1, 40)


def test_failure_during_restart_and_checkpoint():
    # fails within the checkpoint (20.5), then within the restart (21.5)
    result = recover([10, 20, 30], [20.5, 21.5], interval=20, cost=1, restart=2)
    assert (result.lost, result.overhead, result.restarting) == (20, 1.5, 3)
    assert result.wall == 30 + 20 + 1.5 + 3


def test_walltime_stop_loses_nothing_and_kill_does():
    ends = np.arange(1, 41) * 10.0
    stop = recover(ends, interval=60, cost=1, restart=2, limit=100)
    kill = recover(ends, interval=60, cost=1, restart=2, limit=100, stop_in_time=False)
    assert stop.completed
    assert stop.lost == 0.0
    assert kill.completed
    assert kill.lost > 0.0
    assert stop.wall < kill.wall
    assert kill.kills > 0
    assert stop.stops > 0


def test_a_restart_is_part_of_the_limit():
    # 30 + 1; three times 4 + 20 + 1, since 4 + 30 + 1 exceeds 34; 4 + 20
    result = recover(np.arange(1, 12) * 10.0, cost=1, restart=4, limit=34)
    assert (result.wall, result.stops, result.completed) == (130.0, 4, True)


def test_without_checkpoints_a_kill_is_the_end():
    result = recover([50, 100, 150], limit=100, stop_in_time=False)
    assert not result.completed
    assert result.work == 0
    assert recover([50, 100, 150], limit=100).completed


def test_a_cycle_beyond_the_limit_is_reported():
    assert not recover([10, 200], limit=100, cost=1).completed
    assert recover([10, 200], limit=100, cost=1).work == 10


def test_hopeless_failures_end():
    result = recover([100.0], failures=np.arange(1, 10**6) * 10.0)
    assert not result.completed


@settings(max_examples=150)
@given(
    st.lists(st.floats(1.0, 30.0), min_size=1, max_size=40),
    st.lists(st.floats(0.5, 200.0), max_size=30),
    st.floats(5.0, 100.0),
    st.floats(0.0, 5.0),
    st.floats(0.0, 5.0),
    st.floats(40.0, 500.0),
    st.booleans(),
)
def test_time_balances_whatever_fails(cycles, gaps, interval, cost, restart, limit, stop):
    result = recover(np.cumsum(cycles), np.cumsum(gaps), interval, cost, restart, None, limit, stop)
    parts = result.work + result.lost + result.overhead + result.restarting
    assert result.wall == pytest.approx(parts)
    assert result.lost >= -1e-9
    if result.completed:
        assert result.work == pytest.approx(np.sum(cycles))
    else:
        assert limit < 500.0  # only a limit can keep a finite list of failures from ending


def expected(work, interval, cost, mtbf, restart):
    """Closed form for whole intervals, the last without a checkpoint."""
    before = expected_walltime(work - interval, interval, cost, mtbf, restart)
    return float(before + expected_walltime(interval, interval, 0.0, mtbf, restart))


def simulated(work, interval, cost, mtbf, restart, runs, key):
    ends = np.arange(1, round(work / 10) + 1) * 10.0
    walls = []
    for run in range(runs):
        nodes = FailingMachine(4, mtbf=4 * mtbf, repair=0.0, keys=(key + run, 0))
        times = (event.time for event in nodes.events() if event.kind == "failure")
        walls.append(recover(ends, times, interval, cost, restart).wall)
    return np.array(walls)


@pytest.mark.parametrize("rule", [young_interval, daly_interval, best_interval])
@pytest.mark.parametrize(("cost", "mtbf", "restart"), [(20.0, 1000.0, 30.0), (100.0, 800.0, 0.0)])
def test_simulated_waste_matches_the_closed_form(rule, cost, mtbf, restart):
    interval = float(np.floor(rule(cost, mtbf) / 10.0) * 10.0)
    work = 12 * interval
    walls = simulated(work, interval, cost, mtbf, restart, 300, key=1000)
    error = walls.std(ddof=1) / np.sqrt(walls.size)
    closed = expected(work, interval, cost, mtbf, restart)
    assert abs(walls.mean() - closed) < 3.0 * error
    assert error < 0.06 * closed


def test_vectorised_simulation_agrees_with_the_closed_form():
    rng = np.random.default_rng(8)
    mtbf, interval, cost, restart, runs = 500.0, 150.0, 25.0, 20.0, 40_000
    spent, left, again = np.zeros(runs), np.ones(runs, dtype=bool), np.zeros(runs)
    while left.any():
        life = rng.exponential(mtbf, runs)
        needed = again + interval + cost
        spent[left] += np.minimum(life, needed)[left]
        left &= life < needed
        again[:] = restart
    closed = float(expected_walltime(interval, interval, cost, mtbf, restart))
    assert abs(spent.mean() - closed) < 3.0 * spent.std() / np.sqrt(runs)


def test_daly_beats_all_fixed_intervals_in_simulation():
    cost, mtbf = 20.0, 1000.0
    work = 2400.0
    common = {"cost": cost, "mtbf": mtbf, "restart": 0.0, "runs": 150, "key": 77}
    daly = simulated(work, float(np.round(daly_interval(cost, mtbf), -1)), **common)
    for interval in (50.0, 800.0):
        assert daly.mean() < simulated(work, interval, **common).mean()


def test_failures_that_do_not_rise_are_refused():
    with pytest.raises(SimError, match="times of failures must rise, got 5 after 25"):
        recover([10.0, 20.0, 30.0], failures=[25.0, 5.0])


def test_bad_restart_is_named():
    with pytest.raises(SimError, match="restart must be at least 0"):
        recover([1.0], restart=-1.0)
    with pytest.raises(SimError, match="below the limit"):
        recover([1.0], restart=5.0, limit=5.0)


def test_endless_failures_may_be_a_generator():
    assert recover([1.0, 2.0], repeat(1e9)).failures == 0
