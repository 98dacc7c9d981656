"""Schedules of three to six jobs worked by hand, a case for each rule.

Rows are (submit, processors, runtime[, estimate]) in seconds; the expected
starts follow from the comment above them.
"""

import numpy as np
import pytest
from toys import ToyEstimate, ToyOracle, ToyTruth, replay, rigid, rigid_truth, trace_of

from sim.engine.invariants import Checker
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.policies.allocation.curve import AverageParallelism, EfficiencyAtLeast, Maximum
from sim.policies.allocation.rigid import Fixed, Request
from sim.policies.allocation.sa import SmallestTurnaround
from sim.policies.backfill.conservative import Conservative
from sim.policies.backfill.easy import Easy
from sim.policies.base import Allocation, Policy
from sim.policies.order import FirstComeFirstServed, ShortestFirst, SmallestFirst

pytestmark = pytest.mark.fast

BLOCKED = [(0, 3, 10), (1, 4, 5), (2, 1, 4), (3, 1, 20)]
# 4 processors; job 2 needs them all and waits for job 1, which ends at 10.
# none: 3 and 4 queue behind 2, which ends at 15.
# skip: 3 takes the idle processor at 2, 4 takes it over at 6, 2 waits for 4 to end at 26.
# easy, conservative: 3 ends at 6, in time; 4 would end at 26, after the head's start.

SPARE = [(0, 2, 10), (0, 1, 10), (1, 3, 5), (2, 1, 20)]
# Both running jobs end at 10, the head's shadow time: 4 are free then, one is left over.

SPARE_ONCE = [(0, 2, 10), (1, 3, 5), (2, 1, 20), (2, 1, 20)]
# The head starts at 10 and leaves one over, on which 3 passes it; 4 waits for the head to end.

JUST_IN_TIME = [(0, 3, 10), (1, 4, 5), (2, 1, 8)]
# Job 3 would end at 10, exactly when the head can start: no later, so it may.

SECOND_DELAYED = [(0, 2, 10), (1, 3, 10), (2, 4, 5), (3, 1, 30)]
# Head 2 starts at 10 and leaves one over; EASY lends it to 4 from 3 to 33, so 3 waits until 33.
# With a second reservation, or conservative, 3 holds 20 to 25 and 4 starts at 25.

EARLY_END = [(0, 4, 4, 10), (1, 2, 5, 5), (2, 4, 3, 3), (2, 2, 6, 6)]
# Reserved: 2 at 10, 3 at 15, 4 at 18. Job 1 ends at 4: 2 moves to 4, 3 to 9, 4 to 12.
# EASY at 4 starts 2; 3 waits until 9, and 4 (6 s) would end after that.

OVERRUN = [(0, 2, 10, 4), (1, 3, 2, 2), (2, 1, 5, 5)]
# 3 processors. Job 1's belief runs out at 4 (then 8) and at 8 (then 16): at 8 job 3 seems to
# end at 13, before 16, and starts. Job 1 really ends at 10; the head needs all 3: 13.


@pytest.mark.parametrize(
    ("rows", "processors", "rule", "starts"),
    [
        (BLOCKED, 4, "none", [0, 10, 15, 15]),
        (BLOCKED, 4, "skip", [0, 26, 2, 6]),
        (BLOCKED, 4, "easy", [0, 10, 2, 15]),
        (BLOCKED, 4, "conservative", [0, 10, 2, 15]),
        (BLOCKED, 4, "replan", [0, 10, 2, 15]),
        (SPARE, 4, "easy", [0, 0, 10, 2]),
        (SPARE, 4, "easy2", [0, 0, 10, 2]),
        (SPARE_ONCE, 4, "easy", [0, 10, 2, 15]),
        (SPARE_ONCE, 4, "easy2", [0, 10, 2, 15]),
        (JUST_IN_TIME, 4, "easy", [0, 10, 2]),
        (JUST_IN_TIME, 4, "easy2", [0, 10, 2]),
        (JUST_IN_TIME, 4, "conservative", [0, 10, 2]),
        (SECOND_DELAYED, 4, "easy", [0, 10, 33, 3]),
        (SECOND_DELAYED, 4, "easy2", [0, 10, 20, 25]),
        (SECOND_DELAYED, 4, "conservative", [0, 10, 20, 25]),
        (SECOND_DELAYED, 4, "replan", [0, 10, 20, 25]),
        (EARLY_END, 4, "easy", [0, 4, 9, 12]),
        (EARLY_END, 4, "conservative", [0, 4, 9, 12]),
        (OVERRUN, 3, "easy", [0, 13, 8]),
    ],
)
def test_backfilling(rows: list, processors: int, rule: str, starts: list[float]) -> None:
    records = replay(rows, processors, rigid(rule), watchers=(Checker(),))
    assert records.start_time.tolist() == starts


def test_lowest_numbered_processors_first() -> None:
    records = replay(BLOCKED, 4, rigid("easy"))
    assert list(records.allocations.nodes) == [((0, 2),), ((3, 3),), ((0, 3),), ((0, 0),)]


def test_killed_at_the_requested_time() -> None:
    # Job 1 is killed at 4; the head runs from 4 to 6 on everything; then job 3.
    records = replay(OVERRUN, 3, rigid("easy"), overrun="kill")
    assert records.start_time.tolist() == [0, 4, 6]
    assert records.end_time.tolist() == [4, 6, 11]
    assert records.status == ["killed", "completed", "completed"]


def test_a_job_that_needs_just_its_requested_time_is_not_killed() -> None:
    records = replay([(0, 1, 5, 5)], 1, rigid("none"), overrun="kill")
    assert records.status == ["completed"]


def test_order_decides_who_is_next_and_whom_a_reservation_protects() -> None:
    # One processor: the shortest of the waiting first.
    rows = [(0, 1, 10), (1, 1, 5), (2, 1, 3), (11, 1, 1)]
    records = replay(rows, 1, rigid("none", ShortestFirst()))
    assert records.start_time.tolist() == [0, 14, 10, 13]
    # Four processors, smallest first: 3 comes before 2, holds the reservation at 10,
    # and leaves two over, which are too few for 2.
    rows = [(0, 3, 10), (1, 3, 8), (2, 2, 5)]
    records = replay(rows, 4, rigid("easy", SmallestFirst()))
    assert records.start_time.tolist() == [0, 15, 10]


def amdahl(job: int, n: int) -> float:
    """T(n) = 4 + 12/n: 16, 10, 8, 7, 6.4, 6, 5.71, 5.5 s on 1 to 8 processors."""
    return 4 + 12 / n


def molded(allocation: Allocation, rows: list, backfill: object = None, allowed=None):
    """Replay on 8 processors; all jobs but the ones wider than 5 are moldable up to 8."""
    trace = trace_of(rows)
    reference = trace.jobs["requested_processors"].to_numpy()
    recorded = trace.jobs["reference_runtime"].tolist()
    rigid_jobs = reference > 5
    truth = ToyTruth(
        lambda job, n: recorded[job] if rigid_jobs[job] else amdahl(job, n),
        reference,
        np.where(rigid_jobs, reference, 8),
        allowed,
    )
    truth.min_processors = np.where(rigid_jobs, reference, 1)
    policy = Policy(FirstComeFirstServed(), backfill or Easy(), allocation)
    oracle = ToyOracle(truth)
    return simulate(Setup(trace, truth, policy, oracle, Dedicated(8), watchers=(Checker(),)))


@pytest.mark.parametrize(
    ("allocation", "processors"),
    [
        (Request(), 2),
        (Maximum(), 8),
        (Fixed(5), 5),
        (AverageParallelism(), 3),  # largest speedup 16 / 5.5 = 2.91
        (EfficiencyAtLeast(0.5), 5),  # 16 / (4n + 12) >= 0.5 up to n = 5
        (EfficiencyAtLeast(0.8), 2),
        (EfficiencyAtLeast(1.0), 1),
        (SmallestTurnaround(), 8),
        (SmallestTurnaround(extra_area="idle"), 4),  # 28 processor-seconds; 2 take 20, 8 take 44
        (SmallestTurnaround(extra_area="idle", most_extra_area=1.39), 2),
        (SmallestTurnaround(extra_area="never"), 2),
    ],
)
def test_allocation_on_an_idle_machine(allocation: Allocation, processors: int) -> None:
    records = molded(allocation, [(0, 2, 10)])
    assert records.allocated.tolist() == [processors]
    assert records.end_time[0] == pytest.approx(amdahl(0, processors))


@pytest.mark.parametrize("ripple", [0.0, 1e-12])
def test_the_maximum_takes_no_processors_that_shorten_nothing(ripple: float) -> None:
    # 20/n seconds up to 5 processors, then the same but for the last digits.
    trace = trace_of([(0, 2, 10)])

    def bounded(job: int, n: int) -> float:
        return 20 / min(n, 5) - (n > 5) * ripple * n

    truth = ToyTruth(bounded, np.array([2]), np.array([8]))
    policy = Policy(FirstComeFirstServed(), Easy(), Maximum())
    assert simulate(Setup(trace, truth, policy, ToyOracle(truth), Dedicated(8))).allocated == [5]
    assert simulate(Setup(trace, truth, policy, ToyEstimate(), Dedicated(8))).allocated == [2]


def test_allocation_respects_the_allowed_counts() -> None:
    squares = np.array([1, 4])
    for allocation, processors in ((Maximum(), 4), (Fixed(3), 1), (Fixed(8), 4)):
        records = molded(allocation, [(0, 4, 7)], allowed=squares)
        assert records.allocated.tolist() == [processors]


def test_sa_takes_the_count_with_the_smallest_turnaround() -> None:
    # Six of eight are held until 10. The second, at 1: on 2 now, ends at 11; on 1 at 17; on 4
    # or 8 it starts at 10 and ends at 17 or 15.5. The third, at 2: nothing is free until 10;
    # on 8 from 11 to 16.5; on 4 from 10 to 17; on 2 to 20.
    records = molded(SmallestTurnaround(), [(0, 6, 10), (1, 4, 7), (2, 4, 7)], Conservative())
    assert records.allocated.tolist() == [6, 2, 8]
    assert records.start_time.tolist() == [0, 1, 11]


def test_sa_keeps_the_request_of_those_who_do_not_adopt_it() -> None:
    trace = trace_of([(0, 2, 10), (0, 2, 10), (0, 2, 10)])
    reference = trace.jobs["requested_processors"].to_numpy()
    truth = ToyTruth(amdahl, reference, np.full(3, 8))
    policy = Policy(FirstComeFirstServed(), Conservative(), SmallestTurnaround(adopters=0.5))
    luck = np.array([0.9, 0.2, 0.5])
    records = simulate(
        Setup(trace, truth, policy, ToyOracle(truth), Dedicated(8), adopter_draws=luck)
    )
    assert records.allocated.tolist() == [2, 4, 2]


def test_without_a_curve_the_request_stands() -> None:
    trace = trace_of([(0, 2, 10)])
    reference = trace.jobs["requested_processors"].to_numpy()
    truth = ToyTruth(amdahl, reference, np.array([8]))
    for allocation in (AverageParallelism(), EfficiencyAtLeast(), SmallestTurnaround()):
        policy = Policy(FirstComeFirstServed(), Easy(), allocation)
        records = simulate(Setup(trace, truth, policy, ToyEstimate(), Dedicated(8)))
        assert records.allocated.tolist() == [2]


def test_feedback_lets_a_job_arrive_its_think_time_after_its_predecessor() -> None:
    trace = trace_of([(0, 1, 10), (3, 1, 5), (4, 1, 1)], feedback=True)
    trace.jobs.loc[1, ["preceding_job", "think_time"]] = [1, 7]
    records = simulate(Setup(trace, rigid_truth(trace), rigid("easy"), ToyEstimate(), Dedicated(4)))
    assert records.submit_time.tolist() == [0, 17, 4]
    assert records.start_time.tolist() == [0, 17, 4]


@pytest.mark.parametrize("follower", [1, 2])
def test_jobs_with_feedback_queue_in_the_order_of_the_trace_at_one_instant(follower) -> None:
    """Who arrives as its predecessor ends is there when the scheduler looks."""
    trace = trace_of([(0, 1, 17), (17, 1, 5), (17, 1, 5)], feedback=True)
    trace.jobs.loc[follower, ["preceding_job", "think_time"]] = [1, 0]
    records = simulate(Setup(trace, rigid_truth(trace), rigid("easy"), ToyEstimate(), Dedicated(1)))
    assert records.start_time.tolist() == [0, 17, 22]
    assert records.counters["looks"] == 4
