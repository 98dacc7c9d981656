"""SA on reservations for all who wait equals one written straight from its rule."""

from math import ceil

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from toys import ToyOracle, ToyTruth, trace_of

from predictors.in_loop.oracle import Oracle
from sim.engine.invariants import Checker
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.policies.allocation.sa import SmallestTurnaround
from sim.policies.backfill.conservative import Conservative
from sim.policies.backfill.none import NoBackfill
from sim.policies.base import Backfill, Policy
from sim.policies.order import FirstComeFirstServed

MACHINE = 8
Job = tuple[int, int, int, float]
job = st.tuples(st.integers(0, 3), st.integers(1, MACHINE), st.integers(1, 40), st.floats(0, 1))


def runtime(one: Job, count: int) -> int:
    """Amdahl's law in whole seconds, so that ties are ties."""
    _, _, work, serial = one
    return max(ceil(work * (serial + (1 - serial) / count)), 1)


def naive(jobs: list[Job], everywhere: bool, extra: str, most: float) -> list[tuple[int, int]]:
    """Return start and count of each job: beliefs are right, so no reservation ever moves."""
    held: list[tuple[int, int, int]] = []  # start, end, count
    clock, placed = 0, []

    def fits(start: int, count: int, seconds: int) -> bool:
        instants = [start, *(a for a, _, _ in held if start < a < start + seconds)]
        return all(sum(n for a, b, n in held if a <= t < b) + count <= MACHINE for t in instants)

    asked = 0
    for one in jobs:
        asked = asked * (one[0] == 0) + 1  # how many arrived at this instant
        clock += one[0]
        alone = asked == 1 and all(start < clock for start, _ in placed)
        powers = (1, 2, 4, 8)
        offers = []
        for count in range(1, MACHINE + 1):
            if everywhere or count in powers or count == one[1]:
                seconds = runtime(one, count)
                instants = sorted({clock, *(b for _, b, _ in held if b > clock)})
                start = next(t for t in instants if fits(t, count, seconds))
                area = count * seconds / (one[1] * runtime(one, one[1]))
                at_once = extra == "idle" and alone and start == clock and area <= most
                if area <= 1 or extra == "always" or at_once:
                    offers.append((start + seconds, count, start))
        end, count, start = min(offers)
        held.append((start, end, count))
        placed.append((start, count))
    return placed


def played(
    jobs: list[Job], backfill: Backfill, sa: SmallestTurnaround, known: bool
) -> list[tuple[int, int]]:
    """Return start and count of each job as simulated; compiled where all is known before."""
    submits = np.cumsum([one[0] for one in jobs])
    rows = [(s, one[1], runtime(one, one[1])) for s, one in zip(submits, jobs, strict=True)]
    truth = ToyTruth(
        lambda j, n: float(runtime(jobs[j], n)),
        np.array([one[1] for one in jobs]),
        np.full(len(jobs), MACHINE),
    )
    oracle = Oracle() if known else ToyOracle(truth)
    if known:
        oracle.bind_truth(truth.runtimes, 0)
    records = simulate(
        Setup(
            trace_of(rows),
            truth,
            Policy(FirstComeFirstServed(), backfill, sa),
            oracle,
            Dedicated(MACHINE),
            watchers=(Checker(),),
        )
    )
    return [*zip(records.start_time.tolist(), records.allocated.tolist(), strict=True)]


@settings(max_examples=150)
@given(
    jobs=st.lists(job, min_size=1, max_size=16),
    everywhere=st.booleans(),
    extra=st.sampled_from(["idle", "never", "always"]),
    most=st.sampled_from([1.0, 1.5, 3.0]),
    known=st.booleans(),
)
def test_sa_takes_the_earliest_end_among_its_reservations(jobs, everywhere, extra, most, known):
    """Beyond the request's processor time it goes on idle processors while nobody waits."""
    menu = "all" if everywhere else "powers_of_two"
    sa = SmallestTurnaround(menu, extra_area=extra, most_extra_area=most)
    assert played(jobs, Conservative(), sa, known) == naive(jobs, everywhere, extra, most)


def naive_without_backfilling(jobs: list[Job], always: bool) -> list[tuple[int, int]]:
    """Return start and count of each job where nobody passes the head of the queue."""
    submits = np.cumsum([one[0] for one in jobs]).tolist()
    running: list[tuple[int, int]] = []  # end, count
    waiting: list[tuple[int, int]] = []  # job, count
    placed: dict[int, tuple[int, int]] = {}

    def earliest(held: list[tuple[int, int, int]], now: int, count: int, seconds: int) -> int:
        for start in sorted({now, *(end for _, end, _ in held if end > now)}):
            instants = [start, *(a for a, _, _ in held if start < a < start + seconds)]
            if all(sum(n for a, b, n in held if a <= t < b) + count <= MACHINE for t in instants):
                return start
        raise AssertionError

    def choice(now: int, one: Job) -> int:
        held = [(now, end, count) for end, count in running]
        for job, count in waiting:
            seconds = runtime(jobs[job], count)
            start = earliest(held, now, count, seconds)
            held.append((start, start + seconds, count))
        offers = []
        for count in (n for n in range(1, MACHINE + 1) if n in (1, 2, 4, 8, one[1])):
            seconds = runtime(one, count)
            if always or count * seconds <= one[1] * runtime(one, one[1]):
                offers.append((earliest(held, now, count, seconds) + seconds, count))
        return min(offers)[1]

    arrived = 0
    while len(placed) < len(jobs):
        coming = submits[arrived : arrived + 1]
        now = min([*coming, *(end for end, _ in running)])
        running = [(end, count) for end, count in running if end > now]
        while arrived < len(jobs) and submits[arrived] == now:
            waiting.append((arrived, choice(now, jobs[arrived])))
            arrived += 1
        while waiting and waiting[0][1] + sum(count for _, count in running) <= MACHINE:
            job, count = waiting.pop(0)
            running.append((now + runtime(jobs[job], count), count))
            placed[job] = now, count
    return [placed[job] for job in range(len(jobs))]


PAST_DUE: list[Job] = [
    (4, 7, 34, 0.1), (0, 2, 24, 0.1), (2, 8, 4, 0), (1, 8, 7, 0.6), (4, 6, 8, 0.3)
]  # fmt: skip
"""When the last one arrives, a reservation of a job behind the head should have begun."""


@settings(max_examples=150)
@given(jobs=st.lists(job, min_size=1, max_size=16), always=st.booleans(), known=st.booleans())
@example(jobs=PAST_DUE, always=True, known=True)
def test_sa_without_backfilling_looks_at_reservations_for_all_who_wait(jobs, always, known):
    """One that could begin now waits behind the head; at the next arrival all are made anew."""
    extra = "always" if always else "never"
    sa = SmallestTurnaround("powers_of_two", extra_area=extra)
    got = played(jobs, NoBackfill(), sa, known)
    assert got == naive_without_backfilling(jobs, always)
