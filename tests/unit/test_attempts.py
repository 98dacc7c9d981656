"""Attempts of evolving jobs: accounts, restarts, limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictors.cycles.checkpointing import FixedRule, NoCheckpoints
from sim.errors import ConfigError
from sim.evolving.settings import Evolving
from sim.evolving.stages import Attempt
from sim.machine.failing import FailingMachine
from workloads.evolving.cycle_costs import CYCLE_MACHINES
from workloads.evolving.phases import DECKS, EvolvingRun

pytestmark = pytest.mark.fast

RUN = EvolvingRun(DECKS["timing_a"], CYCLE_MACHINES["itanium2"], 16, key=3)
SAVING = Evolving(
    interval=FixedRule(500.0), cost_per_cell=0.001, restart=20.0, node_mtbf=1e5, margin=1.3
)


def test_whole_run_pays_its_checkpoints():
    attempt = Attempt(SAVING, RUN, 16, total=7200.0, nodes=8)
    costs = 10.0 + 0.001 * RUN.cells_per_processor(16)[attempt.plan.places]
    assert attempt.plan.costs == pytest.approx(costs)
    assert attempt.wall == pytest.approx(7200.0 + costs.sum())
    account = attempt.account(attempt.wall)
    assert (account.finished, account.saved, account.lost) == (200, 200, 0.0)
    assert account.computed == pytest.approx(7200.0)


def test_without_checkpoints_a_run_takes_its_runtime_to_the_bit():
    attempt = Attempt(Evolving(interval=NoCheckpoints()), RUN, 16, total=7200.3, nodes=8)
    assert attempt.wall == 7200.3
    assert attempt.account(7000.0).saved == 0
    assert attempt.account(7200.3).saved == 200


def test_default_rule_makes_no_checkpoints_where_nothing_fails():
    assert Attempt(Evolving(), RUN, 16, 7200.0, nodes=8).plan.places.size == 0


def test_free_checkpoints_follow_every_cycle():
    saving = Evolving(cost=0.0, node_mtbf=1e6)
    assert Attempt(saving, RUN, 16, 7200.0, nodes=8).plan.places.size == 199


def test_more_nodes_fail_more_often():
    saving = Evolving(node_mtbf=1e6)
    few = Attempt(saving, RUN, 16, 72_000.0, nodes=2).plan.places.size
    assert Attempt(saving, RUN, 16, 72_000.0, nodes=200).plan.places.size > 3 * few > 0


def test_restart_goes_on_from_what_was_saved():
    first = Attempt(SAVING, RUN, 16, 7200.0, nodes=8)
    account = first.account(4000.0)
    again = Attempt(SAVING, RUN, 16, 7200.0, 8, first=account.saved, restart=20.0)
    assert again.account(15.0).restarting == 15.0
    assert again.account(15.0).computed == 0.0
    done = again.account(again.wall)
    assert done.saved == 200
    ends = RUN.cumulative(16, 7200.0)
    assert done.computed + ends[account.saved - 1] == pytest.approx(7200.0)


def test_measured_cycles_partition_the_attempt():
    attempt = Attempt(SAVING, RUN, 16, 7200.0, nodes=8)
    cells, _, ends = attempt.cycles(0.0, attempt.wall)
    assert cells.tolist() == RUN.cells_per_processor(16).tolist()
    early, late = attempt.cycles(0.0, 3000.0)[2], attempt.cycles(3000.0, attempt.wall)[2]
    assert [*early, *late] == ends.tolist()
    assert attempt.account(3000.0).finished == early.size


def test_a_job_gets_through_any_limit_that_lets_it_ahead():
    done, attempts = 0, 0
    while done < 200:
        attempt = Attempt(
            SAVING, RUN, 16, 7200.0, 8, done, limit=900.0, restart=20.0 * (attempts > 0)
        )
        assert not attempt.is_stuck
        assert attempt.wall <= 900.0
        assert attempt.outcome in ("completed", "stopped")
        done, attempts = attempt.account(attempt.wall).saved, attempts + 1
    assert attempts >= 8


def test_a_limit_below_a_cycle_is_stuck():
    attempt = Attempt(SAVING, RUN, 16, 7200.0, 8, 190, limit=40.0, restart=20.0)
    assert attempt.is_stuck


@settings(max_examples=25)
@given(st.integers(0, 1000), st.floats(2000.0, 50_000.0))
def test_nothing_is_lost_through_random_failures(key, mtbf):
    law = {"mtbf": 8 * mtbf, "lifetimes": "weibull", "repair": 0.0}
    nodes = FailingMachine(8, **law, keys=(key, 0))
    failures = (event.time for event in nodes.events() if event.kind == "failure")
    now, done, spent, work, failure = 0.0, 0, 0.0, 0.0, 0.0
    for number in range(10_000):
        attempt = Attempt(SAVING, RUN, 16, 7200.0, 8, done, restart=20.0 * (number > 0))
        while failure <= now:
            failure = next(failures)
        elapsed = min(attempt.wall, failure - now)
        account = attempt.account(elapsed)
        parts = account.computed + account.overhead + account.restarting
        assert parts == pytest.approx(elapsed)
        assert account.saved <= account.finished
        assert account.saved >= done
        work += account.computed - account.lost
        spent, now, done = spent + elapsed, now + elapsed, account.saved
        if done == 200:
            break
    assert done == 200
    assert work == pytest.approx(7200.0)
    assert spent >= 7200.0 - 1e-6


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: Evolving(restart=-1.0), "restart must be at least 0"),
        (lambda: Evolving(node_mtbf=0.0), "node_mtbf must be positive"),
        (lambda: Evolving(margin=0.0), "margin must be positive"),
        (lambda: Evolving(window=0), "window must be at least 1"),
    ],
)
def test_bad_values_are_named(call, named):
    with pytest.raises(ConfigError, match=named):
        call()


def test_a_job_on_slowed_nodes_checkpoints_by_its_own_clock():
    slowed = Attempt(SAVING, RUN, 16, 7200.0, 8, clock=lambda seconds: 2.0 * seconds)
    assert slowed.plan.places.tolist() == Attempt(SAVING, RUN, 16, 14_400.0, 8).plan.places.tolist()
    assert slowed.plan.ends[-1] == 7200.0
    same = Attempt(SAVING, RUN, 16, 7200.0, 8, clock=lambda seconds: seconds)
    assert same.plan.places.tolist() == Attempt(SAVING, RUN, 16, 7200.0, 8).plan.places.tolist()


def test_checkpoints_come_closer_only_while_a_node_is_slowed():
    def slow_later(seconds):
        return seconds + np.maximum(seconds - 3000.0, 0.0)

    plain = Attempt(SAVING, RUN, 16, 7200.0, 8).plan
    slowed = Attempt(SAVING, RUN, 16, 7200.0, 8, clock=slow_later).plan
    before = plain.places[plain.wall_ends[plain.places] < 3000.0]
    assert slowed.places[: before.size].tolist() == before.tolist()
    assert slowed.places.size - before.size > 1.5 * (plain.places.size - before.size)
    ends = slow_later(slowed.wall_ends[slowed.places - 1])
    begun = slow_later(slowed.saved_ends)
    assert (ends[1:] - begun[:-1]).max() < 650.0


def test_a_job_on_slowed_nodes_stops_in_time_by_the_clock():
    slowed = Attempt(SAVING, RUN, 16, 7200.0, 8, limit=4000.0, clock=lambda seconds: 2.0 * seconds)
    assert slowed.outcome == "stopped"
    assert 3600.0 < 2.0 * slowed.wall <= 4000.0


def test_plans_do_not_look_ahead():
    # A cycle is planned from measured cycles alone: changing the later ones
    # leaves the earlier checkpoints where they were.
    ends = RUN.cumulative(16, 7200.0)
    places = Attempt(SAVING, RUN, 16, 7200.0, 8).plan.places
    other = EvolvingRun(DECKS["timing_a"], CYCLE_MACHINES["itanium2"], 16, key=3, cycles=200)
    seconds = np.diff(ends, prepend=0.0)
    seconds[120:] *= 5.0
    other.cumulative = lambda nprocs, total: np.cumsum(seconds)
    changed = Attempt(SAVING, other, 16, 7200.0, 8).plan.places
    assert changed[changed <= 120].tolist() == places[places <= 120].tolist()
    assert changed.tolist() != places.tolist()
