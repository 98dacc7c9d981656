"""Moldable rules followed through several decisions, each reckoned in the comments.

Eight processors, unless said otherwise. The usual moldable job runs T(n) = 4 + 12/n
seconds: 16, 10, 8, 7, 6.4, 6, 5.71, 5.5 on 1 to 8 processors. It asks for 2, and its
average parallelism is A = 16 / 5.5 = 2.9, rounded 3.
"""

import numpy as np
import pytest
from moldable_toys import mold
from test_moldable import amdahl, at, linear, outcome

from sim.policies.allocation.fair_share import FairShare
from sim.policies.allocation.iterative import Iterative, UtilizationBased
from sim.policies.allocation.local import LocalAllocation
from sim.policies.allocation.queue_time import QueueTimeAware
from sim.policies.allocation.sa import SmallestTurnaround
from sim.policies.allocation.turnaround import BestTurnaround


def tenfold(n):
    """T(n) = 40 + 120/n: 160, 100, 80 s on 1 to 3 processors; A = 3."""
    return 10 * amdahl(n)


@pytest.mark.parametrize(
    ("queue_time", "expected"),
    [
        ("believed", ([7, 1, 1, 3], [0, 1, 161, 300])),
        ("median", ([7, 1, 1, 3], [0, 25, 185, 300])),
        ("mean", ([7, 1, 3, 3], [0, 169, 300, 300])),
    ],
)
def test_queue_time_is_weighed_again_while_the_running_job_ages(queue_time, expected):
    # Seven of eight are held from 0 to 300; jobs of 160, 100, 80 s on 1, 2, 3 processors come
    # at 1, 25 and 169. Lifetimes are taken as log-uniform up to 2500 s.
    #
    # believed: the end is known.
    #   1    299 + 80 on 3, or 160 on the free one: now, until 161.
    #  25    nothing is free: the third waits for one processor.
    # 161    139 + 80 = 219 or 160: now, until 321.
    # 169    131 + 80 = 211 on 3, or 152 + 160 on 1: waits. At 300: 3.
    #
    # median (A): a job of age a ends, in the median, at age sqrt(2500 a).
    #   1    a = 1: 49 s more. 49 + 80 = 129 beats 160: waits for 3.
    #  25    a = 25: 250 - 25 = 225 more. 160 on one now, until 185. The third waits.
    # 185    a = 185: 680 - 185 = 495 more. Now, until 345.
    # 300    the seven are free: 3 for the fourth.
    #
    # mean (B): 7·ln(t/a) / ln(2500/a) processors are expected to be free at age t, so that k
    # are at t = a·(2500/a)^(k/7).
    #   1    two more at 2500^(2/7) = 9.4: 8.4 + 80 = 88 beats 160, and 2.1 + 100: waits for 3.
    #  25    25·100^(2/7) = 93: 68 + 80 = 148 on 3; 25·100^(1/7) = 48: 23 + 100 = 123 on 2:
    #        waits for 2 now.
    # 169    169·14.8^(1/7) = 248: 79 + 100 = 179 on 2. 160 on one now, until 329.
    # 300    7 are free: 3 each for the two others.
    rule = QueueTimeAware(counts="all", queue_time=queue_time, longest=2500.0)
    rows = [(0, 7, 300), (1, 2, 100), (25, 2, 100), (169, 2, 100)]
    records = mold("none", rule, rows, [None, tenfold, tenfold, tenfold])
    assert outcome(records) == expected


def test_queue_time_by_the_first_end_among_those_that_would_do():
    # Jobs on 3, 3 and 1 of eight since 0; lifetimes log-uniform up to 1900 s. The fourth comes at
    # 1, when a single job lasts beyond age t with probability 1 - ln t / 7.55, k jobs with its
    # k-th power: one of three has ended, in the median, at ln t = 0.206·7.55, 3.7 s from now;
    # one of two at 0.293·7.55, 8.1 s.
    # One now: 16. Two, which any of the three would free: 3.7 + 10. Three, which the first two
    # would: 8.1 + 8. So it waits for two, and has them at 5, when the third ends.
    rule = QueueTimeAware(counts="all", queue_time="median", longest=1900.0)
    rows = [(0, 3, 40), (0, 3, 40), (0, 1, 5), *at(1)]
    records = mold("none", rule, rows, [None, None, None, amdahl])
    assert outcome(records) == ([3, 3, 1, 2], [0, 0, 0, 5])


@pytest.mark.parametrize(
    ("adopters", "expected"),
    [
        (0.0, ([6, 2, 4, 1, 3], [0, 1, 6, 6, 11])),
        (0.5, ([6, 2, 4, 2, 3], [0, 1, 6, 6, 13])),
        (1.0, ([8, 8, 8, 8, 8], [0, 5.5, 11, 16.5, 22])),
    ],
)
def test_sa_with_adopters_among_rigid_users(adopters, expected):
    # They ask for 6, 2, 4, 1 and 3; adopters try 1, 2, 4, 8 and their request.
    #
    # Half (the second and the fourth):
    #   first     6 from 0 to 6.
    #   second    at 1: 1 until 17; 2 until 11; 4 from 6 to 13; 8 from 6 to 11.5: 2.
    #   third     4 from 6 to 13.
    #   fourth    at 3; free are 0 until 6, 2 until 11, 4 until 13, then 8. 1 until 22; 2 from 6
    #             to 16; 4 from 11 to 18; 8 from 13 to 18.5: 2.
    #   fifth     free are 0 until 11, 2 until 13, then 6: 3 from 13.
    # Nobody: the fourth on 1 from 6 to 22 leaves 3 from 11 for the fifth.
    # Everybody: at each submit the earliest end is that on all 8 behind all others, 5.5 s later:
    #   8 ends at 11 (4 at 12.5, 2 at 15.5), then at 16.5 (18), 22 and 27.5. All are worse off
    #   than where half adopt.
    draws = np.array([0.9, 0.1, 0.7, 0.2, 0.6])
    rows = [(0, 6, 6), (1, 2, 10), (2, 4, 7), (3, 1, 16), (4, 3, 8)]
    rule = SmallestTurnaround(adopters=adopters)
    records = mold("conservative", rule, rows, [amdahl] * 5, adopter_draws=draws)
    assert outcome(records) == expected


@pytest.mark.parametrize(
    ("power", "summed", "expected"),
    [
        (0.0, "queued_and_running", ([8, 4, 4, 4], [0, 5, 5, 11])),
        (1.0, "queued_and_running", ([8, 4, 2, 2], [0, 5, 5, 6])),
        (0.0, "queued", ([8, 4, 4, 8], [0, 5, 5, 12])),
        (1.0, "queued", ([8, 4, 2, 2], [0, 5, 5, 6])),
    ],
)
def test_fair_share_by_work_and_by_efficiency(power, summed, expected):
    # All 8 are held until 5. Then a job of 24/n s and one of the usual kind wait, W = 24 and 16.
    #   by work: 8·24/40 = 4.8, so up to 5, 4 of the powers of two (until 11); 3.2, so up to 4
    #     (until 12). At 11 the last job is reckoned against the one that runs: 8·16/32 = 4.
    #   times efficiency at the request, 1 and 16/20 = 0.8, W is 24 and 12.8: 5.2, up to 6: 4;
    #     2.8, up to 3: 2 (until 15). At 6 the last job is one of 24 + 12.8 + 12.8: 2.1, up to 3;
    #     2 are free, the end is at 16; waiting for more than 2 is not allowed.
    # Where only the queue counts the last job is alone in it, and may take all 8: by work all
    #   are held at 6; 4 from 11 end at 18, 8 from 12 at 17.5. Times efficiency 2 are free, and
    #   end at 16; 4 from 11 end at 18, 8 from 15 at 20.5.
    rule = FairShare(efficiency=power, sum=summed)
    rows = [(0, 8, 5), (1, 2, 12), (2, 2, 10), (6, 2, 10)]
    records = mold("easy", rule, rows, [None, linear, amdahl, amdahl])
    assert outcome(records) == expected


def test_lpa_of_icpp22_and_first_fit():
    # δ(0.211) = 3.47. The usual job may take 3.47·5.5 = 19.1 s: 1 processor (16 s). 24/n s may
    # become 3.47·3 = 10.4: 3 processors (8 s), cut at ceil(0.211·8) = 2 (12 s). 1 + 2 + 1 + 2
    # leave 2; the fifth needs 3 and is passed by the sixth; at 12 there are 5 free.
    rows = [(0, 2, 10), (0, 2, 12), (0, 2, 10), (0, 2, 12), (0, 3, 5), (0, 2, 10)]
    curves = [amdahl, linear, amdahl, linear, None, amdahl]
    records = mold("skip", LocalAllocation(version="icpp22"), rows, curves)
    assert outcome(records) == ([1, 2, 1, 2, 3, 1], [0, 0, 0, 0, 12, 0])


def test_iteration_plans_anew_as_processors_come_free():
    # At 4 three wait: 4, 2, 2, as reckoned in test_moldable. At 11 the first has ended and two
    # wait; 4 are free, all 8 from 14. On 1 each they end at 27, 27; on 2 and 1 at 21, 27; on 2
    # each at 21, 21. The first on 4 (18) would push the second to 14 + 10 = 24, no less in
    # all; the second on 4 would itself end at 14 + 7 = 21: 2 each.
    rows = [(0, 8, 4), *at(1, 2, 3, 5, 6)]
    records = mold("replan", Iterative(), rows, [None, *[amdahl] * 5])
    assert outcome(records) == ([8, 4, 2, 2, 2, 2], [0, 4, 4, 4, 11, 11])


LONG_AND_SHORT = [(0, 8, 4), (1, 2, 24), (2, 2, 4), (5, 2, 10)]
LONG_AND_SHORT_CURVES = [None, lambda n: 48 / n, lambda n: 8 / n, amdahl]


def test_iteration_lets_short_jobs_start_now():
    # At 4 two wait, of 48/n and 8/n s. On 1 each: 52 + 12; doubling loses no efficiency, so
    # the first goes first: 2: 28 + 12; 4: 16 + 12; 8: 10, then the short one 18: no less, undone.
    # The short one on 2: 16 + 8; on 4: 16 + 6; on 8 it would wait until 17. So 4 each.
    # At 6 the last one finds 4 free until 16: 22, 16, 13; on 8 it would end at 21.5.
    records = mold("replan", Iterative(), LONG_AND_SHORT, LONG_AND_SHORT_CURVES)
    assert outcome(records) == ([8, 4, 4, 4], [0, 4, 4, 6])


def test_utilisation_shortens_the_whole_plan():
    # At 4, on 1 each, 6 are idle: the long job, first of equal efficiency, takes 2, then 4; with
    # 3 left the short one takes 2, then 4: the plan ends at 16. Nobody starts where others are
    # idle: the one that ends last takes 8, until 10, the short one then 4, until 12: better. At
    # 10 four are idle beside it: 8, until 11: better. It cannot grow: the long job has 8 now.
    # At 10 the short one and the last wait, 1 each, 6 idle: 2, 4 (E = 1), then with 3 left the
    # last takes 2, 4: until 12 and 17. On 8 from 12 it would end at 17.5: 4 each.
    records = mold("replan", UtilizationBased(), LONG_AND_SHORT, LONG_AND_SHORT_CURVES)
    assert outcome(records) == ([8, 8, 4, 4], [0, 4, 10, 10])


@pytest.mark.parametrize(
    ("quantile", "expected"),
    [
        (None, ([1, 1, 1, 6, 8, 2], [0, 0, 0, 20, 47, 30])),
        (0.9, ([1, 1, 1, 6, 8, 2], [0, 0, 0, 20, 40, 22])),
    ],
)
def test_reservations_stretched_by_past_errors_protect_the_head(quantile, expected):
    # One application, believed half as long as it runs; three runs of 10 s for 5 have ended.
    # At 20 six processors are taken for 20 s, believed 10; at 21 the head asks for all 8. At 22
    # a job of 3 + 28/n s: 31, 17, 10, 6.5 on 1, 2, 4, 8.
    # As believed: the hole ends at 30; on 2 it would take 8.5 s of 8. At 30 the six still run
    #   and are believed to for another 10 s; now 8.5 fit, and the head waits until 47.
    # Stretched by 2: the hole ends at 40; on 2 it takes 17 s of 18. It runs from 22 to 39.
    rows = [*[(0, 1, 10)] * 3, (20, 6, 20), (21, 8, 4), (22, 1, 31)]
    curves = [None] * 5 + [lambda n: 3 + 28 / n]
    records = mold("easy", BestTurnaround(), rows, curves, factor=0.5, error_quantile=quantile)
    assert outcome(records) == expected
