"""Reservations of many jobs begin where those begin that are searched for from now on."""

import numpy as np
import pytest
from profiles import Profile

from sim.policies.backfill.conservative import replan_soonest
from sim.policies.passes.memory import reserve_rest
from sim.state.availability import BelievedEnds, move_up, reserve_earliest
from sim.state.waiting_queue import WaitingQueue, push


def queue_of(counts, runtimes, first=0):
    """Return jobs that wait from the first place on, without a reservation."""
    queue = WaitingQueue(len(counts))
    for job, (count, runtime) in enumerate(zip(counts, runtimes, strict=True)):
        push(queue.tables, job, count, runtime, 0.0)
    queue.tables.at["first"] = first
    return queue


@pytest.mark.parametrize("processors", [5, 64, 1000])
@pytest.mark.parametrize("powers", [False, True])
@pytest.mark.parametrize("now", [0.0, 1e9 + 0.123])
def test_many_reservations_equal_those_made_one_by_one(processors, powers, now):
    rng = np.random.default_rng(processors)
    for jobs in (65, 300):
        counts = rng.integers(1, processors + 1, jobs)
        runtimes = np.round(rng.lognormal(4.0, 2.0, jobs), 1) + 1e-3
        if powers:
            counts = np.minimum(2 ** rng.integers(0, 9, jobs), processors)
            runtimes = 2.0 ** rng.integers(-12, 12, jobs)
        singly, together = Profile(processors), Profile(processors)
        for profile in (singly, together):
            profile.grow(jobs)
            profile.lay(now, BelievedEnds.of([]))
        queue = queue_of(counts, runtimes)
        reserve_rest(queue.tables, together.holes, now)
        expected = [
            reserve_earliest(singly.holes, now, *job) for job in zip(counts, runtimes, strict=True)
        ]
        assert queue.start[:jobs].tolist() == expected


@pytest.mark.parametrize("processors", [3, 16, 250])
@pytest.mark.parametrize("powers", [False, True])
@pytest.mark.parametrize("now", [0.0, 1e9 + 0.123])
def test_what_matters_now_is_reserved_as_in_the_whole_plan(processors, powers, now):
    rng = np.random.default_rng(processors)
    for jobs in (2, 10, 100, 100, 600, 600):
        ends = np.sort(now + rng.lognormal(4.0, 2.0, 4)).tolist()
        running = [(end, k, max(1, processors // 5)) for k, end in enumerate(ends)]
        running = running[: processors // max(1, processors // 5)]
        counts = rng.integers(1, processors + 1, jobs)
        runtimes = np.round(rng.lognormal(4.0, 2.0, jobs), 1) + 1e-3
        if powers:
            counts = np.minimum(2 ** rng.integers(0, 9, jobs), processors)
            runtimes = 2.0 ** rng.integers(-3, 12, jobs)
        counts[rng.random(jobs) < 0.2] = 0
        whole, soon = Profile(processors), Profile(processors)
        for profile in (whole, soon):
            profile.grow(jobs + 4)
            profile.lay(now, BelievedEnds.of(running))
        first = int(rng.integers(0, 2))
        planned, queue = queue_of(counts, runtimes, first), queue_of(counts, runtimes, first)
        expected, starts = planned.start[:jobs], queue.start[:jobs]
        reserve_rest(planned.tables, whole.holes, now)
        number, soonest = replan_soonest(queue.tables, soon.holes, now)
        assert queue.found[:number].tolist() == np.flatnonzero(expected <= now).tolist()
        assert soonest == expected[expected > now].min(initial=np.inf)
        made = starts < np.inf
        assert starts[made].tolist() == expected[made].tolist()
        assert made[expected <= now].all()
        later = expected > now
        assert starts[later].min(initial=np.inf) == expected[later].min(initial=np.inf)
        reserve_rest(queue.tables, soon.holes, now)
        assert starts.tolist() == expected.tolist()


@pytest.mark.fast
@pytest.mark.parametrize("unit", [1.0, 0.1])
def test_a_reservation_moves_up_as_if_taken_out_and_put_in(unit):
    rng = np.random.default_rng(0)
    for jobs in rng.integers(1, 40, 30).tolist():
        moved, plain = Profile(256), Profile(256)
        starts, runtimes = rng.integers(0, 60, jobs) * unit, rng.integers(0, 30, jobs) * unit
        for start, runtime in zip(starts, runtimes, strict=True):
            for profile in (moved, plain):
                profile.occupy(start, start + runtime, 3)
        for k in rng.permutation(np.tile(np.flatnonzero(starts > 0), 2)):
            before, runtime = starts[k], runtimes[k]
            starts[k] = before * rng.choice([0.0, 0.5, rng.random()])
            if starts[k] < before:
                move_up(moved.holes, before, starts[k], runtime, 3)
                plain.occupy(before, before + runtime, -3)
                plain.occupy(starts[k], starts[k] + runtime, 3)
            for one, other in zip(moved.holes[:2], plain.holes[:2], strict=True):
                assert one[slice(*moved.span)].tolist() == other[slice(*plain.span)].tolist()
