"""SA on conservative reservations equals one written the obvious way, straight from its rule."""

from math import ceil

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import ToyOracle, ToyTruth, trace_of

from sim.engine.invariants import Checker
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.policies.allocation.sa import SmallestTurnaround
from sim.policies.backfill.conservative import Conservative
from sim.policies.base import Policy
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


@settings(max_examples=150)
@given(
    jobs=st.lists(job, min_size=1, max_size=16),
    everywhere=st.booleans(),
    extra=st.sampled_from(["idle", "never", "always"]),
    most=st.sampled_from([1.0, 1.5, 3.0]),
)
def test_sa_takes_the_earliest_end_among_its_reservations(jobs, everywhere, extra, most):
    """Beyond the request's processor time it goes on idle processors while nobody waits."""
    submits = np.cumsum([one[0] for one in jobs])
    rows = [(s, one[1], runtime(one, one[1])) for s, one in zip(submits, jobs, strict=True)]
    truth = ToyTruth(
        lambda j, n: float(runtime(jobs[j], n)),
        np.array([one[1] for one in jobs]),
        np.full(len(jobs), MACHINE),
    )
    menu = "all" if everywhere else "powers_of_two"
    sa = SmallestTurnaround(menu, extra_area=extra, most_extra_area=most)
    records = simulate(
        Setup(
            trace_of(rows),
            truth,
            Policy(FirstComeFirstServed(), Conservative(), sa),
            ToyOracle(truth),
            Dedicated(MACHINE),
            watchers=(Checker(),),
        )
    )
    got = zip(records.start_time.tolist(), records.allocated.tolist(), strict=True)
    assert list(got) == naive(jobs, everywhere, extra, most)
