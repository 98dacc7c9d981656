"""Moldable rules on three to six jobs, worked by hand.

Eight processors. Moldable jobs run T(n) = 4 + 12/n seconds: 16, 10, 8, 7, 6.4,
6, 5.71, 5.5 on 1 to 8 processors; efficiency 16 / (4n + 12): 1, 0.8, 0.667,
0.571, 0.5 on 1 to 5. They request 2 processors (10 s).
"""

import numpy as np
import pytest
from moldable_toys import mold, policy, truth_of
from toys import ToyOracle

from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.policies.allocation.fair_share import FairShare
from sim.policies.allocation.iterative import Iterative, UtilizationBased
from sim.policies.allocation.local import Fair, LocalAllocation
from sim.policies.allocation.queue_time import QueueTimeAware
from sim.policies.allocation.turnaround import BestTurnaround


def amdahl(n):
    return 4 + 12 / n


def quick(n):
    """T(n) = 2 + 8/n: 10, 6, 4.67, 4 s."""
    return 2 + 8 / n


def linear(n):
    return 24 / n


def at(*submits):
    """Moldable jobs at these times."""
    return [(submit, 2, 10) for submit in submits]


def outcome(records):
    return records.allocated.tolist(), records.start_time.round(9).tolist()


def test_greedy_takes_the_earliest_end_at_every_start():
    # 8 until 5.5; then 8 (ends 11) beats 4 (12.5) for the second; so for the third.
    for backfill in ("easy", "conservative", "replan", "none"):
        records = mold(backfill, BestTurnaround(), at(0, 1, 2), [amdahl] * 3)
        assert outcome(records) == ([8, 8, 8], [0, 5.5, 11])


def test_a_backfilled_job_takes_the_count_that_fits_the_hole():
    # Four free until 10, when the head needs all. The third runs 4 s on 4 (2 to 6);
    # the fourth, at 3, finds nothing free; at 6 it fits on 4 (6 to 10), exactly.
    rows = [(0, 4, 10), (1, 8, 5), (2, 2, 6), (3, 2, 6)]
    for backfill in ("easy", "conservative", "replan"):
        records = mold(backfill, BestTurnaround(), rows, [None, None, quick, quick])
        assert outcome(records) == ([4, 8, 4, 4], [0, 10, 2, 6])


def test_a_hole_that_is_too_short_for_few_processors_is_left():
    # One is free until 8. On it the third would run 10 s, past the head's start.
    rows = [(0, 7, 8), (1, 8, 5), (2, 2, 6)]
    for backfill in ("easy", "conservative", "replan"):
        records = mold(backfill, BestTurnaround(), rows, [None, None, quick])
        assert outcome(records) == ([7, 8, 8], [0, 8, 13])


def test_the_head_waits_for_a_count_that_ends_earlier():
    # Two are free at 1; on them it would end at 11. On 8 from 3 it ends at 8.5.
    records = mold("easy", BestTurnaround(), [(0, 6, 3), *at(1)], [None, amdahl])
    assert outcome(records) == ([6, 8], [0, 3])


def test_conservative_reservations_change_their_count_when_processors_come_free():
    # Believed twice as long. Reserved: the second on 8 from 20 to 31. All are free at 10
    # already: it moves there. The third, placed behind it at 31, follows to 15.5.
    rows = [(0, 8, 10), *at(1, 2)]
    records = mold("conservative", BestTurnaround(), rows, [None, amdahl, amdahl], factor=2.0)
    assert outcome(records) == ([8, 8, 8], [0, 10, 15.5])
    # Six of eight for 40 s by belief; the second takes 2 from 1 to 21. The third: 2 behind it
    # from 21 to 41 beats 8 from 40. At 5 the six come free: it takes 4 now (ends 19).
    rows = [(0, 6, 5, 5), *at(1, 2)]
    curves = [None, amdahl, amdahl]
    trace, truth = truth_of(rows, curves, 8)
    believed = ToyOracle(truth, 2.0)
    honest = believed.curve
    believed.curve = lambda job, n: honest(job, n) if job else np.full(len(n), 40.0)
    rule = policy("conservative", BestTurnaround())
    records = simulate(Setup(trace, truth, rule, believed, Dedicated(8)))
    assert outcome(records) == ([6, 2, 4], [0, 1, 5])


def test_fair_share_limits_each_job_to_its_share_of_the_work():
    # Alone: all 8. At 5.5 two wait, half the work each: 4, not 8.
    records = mold("easy", FairShare(), at(0, 1, 2), [amdahl] * 3)
    assert outcome(records) == ([8, 4, 4], [0, 5.5, 5.5])
    # At submit: the second waited alone then (8), the third beside it (4); it takes 4 at 11.
    records = mold("easy", FairShare(when="submit"), at(0, 1, 2), [amdahl] * 3)
    assert outcome(records) == ([8, 8, 4], [0, 5.5, 11])
    # With the running job in the sum the second had half of the work then (4), the third a
    # third: ceil(8/3) = 3, so 2.
    rule = FairShare(when="submit", sum="queued_and_running")
    records = mold("easy", rule, at(0, 1, 2), [amdahl] * 3)
    assert outcome(records) == ([8, 4, 2], [0, 5.5, 5.5])
    # Twice the share: everything again.
    records = mold("easy", FairShare(factor=2.0), at(0, 1, 2), [amdahl] * 3)
    assert outcome(records) == ([8, 8, 8], [0, 5.5, 11])


def test_a_long_running_job_does_not_drive_the_others_to_one_processor():
    # One of 4 holds 4·900 s; a job of 16 s has 8·16/3616 of it, up to 1; alone in the queue, all.
    rows = [(0, 4, 900), (1, 4, 7)]
    records = mold("easy", FairShare(sum="queued_and_running"), rows, [None, amdahl])
    assert outcome(records) == ([4, 1], [0, 1])
    records = mold("easy", FairShare(), rows, [None, amdahl])
    assert outcome(records) == ([4, 4], [0, 1])


@pytest.mark.parametrize("backfill", ["easy", "conservative", "replan"])
@pytest.mark.parametrize("when", ["schedule", "submit"])
def test_fair_share_sees_all_arrivals_of_an_instant(backfill, when):
    # ceil(64/40) = 2 processors each: 32 of 40 start at once. Those that are left have 8 each
    # once 8 wait, where the limit follows the queue and reservations are made anew; they start
    # when the first have ended.
    records = mold(backfill, FairShare(when=when), at(*[0] * 40), [amdahl] * 40, processors=64)
    assert records.start_time.tolist() == [0] * 32 + [10] * 8
    assert records.allocated[:32].tolist() == [2] * 32
    later = 8 if when == "schedule" and backfill != "conservative" else 2
    assert records.allocated[32:].tolist() == [later] * 8


def test_queue_time_weighs_few_now_against_more_later():
    # One is free at 1, the other 7 at 4: 16 s now against 3 + 8 s on A = 3.
    rule = QueueTimeAware(counts="all")
    records = mold("none", rule, [(0, 7, 4), *at(1)], [None, amdahl])
    assert outcome(records) == ([7, 3], [0, 4])
    # They come free at 20: now.
    records = mold("none", rule, [(0, 7, 20), *at(1)], [None, amdahl])
    assert outcome(records) == ([7, 1], [0, 1])


@pytest.mark.parametrize("name", ["median", "mean"])
def test_queue_time_by_log_uniform_lifetimes(name):
    # A job of age 1 ends, in the median, at an age of sqrt(1 · longest). With 36 s that is 5 s
    # from now: 5 + 8 < 16. With 100 s it is 9 s: 9 + 8 > 16. The mean needs 2 of 7 processors,
    # P(ended) = 2/7: 36^(2/7) - 1 = 1.8 s. With 10^6 s even 1/7 takes 6.2 s: 6.2 + 10 > 16.
    longest = {"median": (36.0, 100.0), "mean": (36.0, 1e6)}[name]
    for seconds, expected in zip(longest, (([7, 3], [0, 30]), ([7, 1], [0, 1])), strict=True):
        rule = QueueTimeAware(counts="all", queue_time=name, longest=seconds)
        records = mold("none", rule, [(0, 7, 30), *at(1)], [None, amdahl])
        if expected[1][1] == 1:
            assert outcome(records) == expected
        else:
            assert records.start_time[1] > 1


def test_queue_time_settles_heads_one_after_the_other():
    # At 4 all are free: the second takes A = 3, so does the third. Two are left for the fourth:
    # 10 s on them now end before 8 s on 3 from 12 on.
    rule = QueueTimeAware(counts="all")
    records = mold("none", rule, [(0, 7, 4), *at(1, 2, 2)], [None, amdahl, amdahl, amdahl])
    assert outcome(records) == ([7, 3, 3, 2], [0, 4, 4, 4])


def test_lpa_then_first_fit():
    # Two each, as below. Four run until 10 and after; the fifth waits. The sixth needs 3.
    rows = [*at(0, 1, 2, 3, 4), (5, 3, 1)]
    records = mold("skip", LocalAllocation(), rows, [amdahl] * 5 + [None])
    assert outcome(records) == ([2, 2, 2, 2, 2, 3], [0, 1, 2, 3, 10, 12])


def test_lpa_by_its_tables():
    # TOPC'24: area 4n + 12 <= 2·16 up to 5; cap ceil(0.216·8) = 2.
    assert mold("skip", LocalAllocation(), at(0), [amdahl]).allocated.tolist() == [2]
    # ICPP'22: T <= δ(0.211)·5.5 = 19.1 on 1 already.
    rule = LocalAllocation(version="icpp22")
    assert mold("skip", rule, at(0), [amdahl]).allocated.tolist() == [1]
    # Roofline: all of the linear speedup, cap ceil(0.382·8) = 4.
    rule = LocalAllocation("roofline")
    assert mold("skip", rule, at(0), [linear]).allocated.tolist() == [4]


def test_fair_balances_and_caps_waiting_jobs_when_the_ratio_grows():
    # 4 + 12/n: max(area, time) over the least is 1.5 at 3. μ(1.5)·8 = 2.2, cap 3.
    assert mold("skip", Fair(), at(0), [amdahl]).allocated.tolist() == [3]
    # A linear job alone: R = 1, p = 8, cap ceil(0.382·8) = 4. Where 4 + 12/n arrives before it
    # can start, R = 1.5 and its cap is 3.
    assert mold("skip", Fair(), [(0, 2, 12)], [linear]).allocated.tolist() == [4]
    rows = [(0, 8, 5), (1, 2, 12), *at(2)]
    records = mold("skip", Fair(), rows, [None, linear, amdahl])
    assert outcome(records) == ([8, 3, 3], [0, 5, 5])
    # R stays when the job is over, and is none of one that is to come.
    records = mold("skip", Fair(), [*at(0), (20, 2, 12)], [amdahl, linear])
    assert outcome(records) == ([3, 3], [0, 20])
    records = mold("skip", Fair(), [(0, 2, 12), *at(20)], [linear, amdahl])
    assert outcome(records) == ([4, 3], [0, 20])


def test_iteration_stops_where_the_mean_turnaround_does_not_fall():
    # At 4 three wait on 8. On 1 each: ends 20, 20, 20; on 2 each: 14, 14, 14; the first on 4:
    # 11, 14, 14; the second on 4 would push the third to 21; the first on 8 both to 19.5.
    rows = [(0, 8, 4), *at(1, 2, 3)]
    records = mold("replan", Iterative(), rows, [None, amdahl, amdahl, amdahl])
    assert outcome(records) == ([8, 4, 2, 2], [0, 4, 4, 4])
    # By time gained: 6 s each for 2, then 3 s for the first to 4: the same.
    records = mold("replan", Iterative(step="time"), rows, [None, amdahl, amdahl, amdahl])
    assert outcome(records) == ([8, 4, 2, 2], [0, 4, 4, 4])
    # Only the first is considered: 8 until 9.5, then the second.
    records = mold("replan", Iterative(depth=1), rows, [None, amdahl, amdahl, amdahl])
    assert outcome(records) == ([8, 8, 8, 8], [0, 4, 9.5, 15])


def test_utilisation_hands_out_idle_processors_to_the_most_efficient():
    # At 4 three wait on 1 each, 5 idle: the three take a second one, the first two more; ends
    # 11, 14, 14. Nobody starts at 11; the second (of those that end last) on 4 would push the
    # third to 21: stop.
    rows = [(0, 8, 4), *at(1, 2, 3)]
    records = mold("replan", UtilizationBased(), rows, [None, amdahl, amdahl, amdahl])
    assert outcome(records) == ([8, 4, 2, 2], [0, 4, 4, 4])
    # Two wait: 4 each ends at 11; the first on 8 would end the second at 16.5.
    records = mold("replan", UtilizationBased(), rows[:3], [None, amdahl, amdahl])
    assert outcome(records) == ([8, 4, 4], [0, 4, 4])
