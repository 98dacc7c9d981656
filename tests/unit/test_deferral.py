"""Jobs whose share rounds to nothing wait (policies.md 4.4, 4.5), against a naive model."""

from itertools import pairwise

import numpy as np
import pytest
from malleables import beliefs_of, members_of, play, power_truth, stretches_of

from sim.engine.invariants import Checker
from sim.policies.allocation.rigid import Request
from sim.policies.backfill.conservative import Conservative
from sim.policies.backfill.easy import Easy
from sim.policies.order import FirstComeFirstServed
from sim.policies.reallocation.hesrpt import HeSrpt
from sim.policies.reallocation.rule import ReallocatingScheduler
from sim.state.decisions import Start

WORK = [101.0, 70.0, 55.0, 31.0, 21.0, 13.0, 9.0]


def naive_ends(work: list[float], processors: int, p: float) -> list[float]:
    """Return ends under heSRPT in whole processors: largest remainders, zeros wait."""
    left, now, ends = dict(enumerate(work)), 0.0, [0.0] * len(work)
    while left:
        ranks = sorted(left, key=lambda job: -left[job])
        edges = [(i / len(ranks)) ** (1 / (1 - p)) * processors for i in range(len(ranks) + 1)]
        exact = [high - low for low, high in pairwise(edges)]
        counts = [int(value + 1e-9) for value in exact]
        by_remainder = sorted(range(len(ranks)), key=lambda i: counts[i] - exact[i])
        for i in by_remainder[: processors - sum(counts)]:
            counts[i] += 1
        rates = {job: count**p for job, count in zip(ranks, counts, strict=True) if count}
        step = min(left[job] / rate for job, rate in rates.items())
        now += step
        for job, rate in rates.items():
            left[job] -= step * rate
            if left[job] < 1e-9:
                ends[job] = now
                del left[job]
    return ends


@pytest.mark.parametrize("processors", [4, 16])
@pytest.mark.parametrize("p", [0.3, 0.8, 0.95])
def test_hesrpt_in_whole_processors(processors: int, p: float) -> None:
    rows = [(0.0, 1, work) for work in WORK]
    truth = power_truth(WORK, [p] * len(WORK), processors)
    records = play(HeSrpt(exponent=p), rows, truth, processors, watchers=(Checker(),))
    np.testing.assert_allclose(records.end_time, naive_ends(WORK, processors, p), rtol=1e-12)
    if processors == 4:
        assert records.start_time.max() > 0.0


@pytest.mark.parametrize("backfill", [None, Conservative()])
def test_the_shortest_gets_everything(backfill: object) -> None:
    """It is SRPT here, so 2, 3 and 5 serial seconds end one after the other."""
    truth = power_truth([5.0, 3.0, 2.0], [0.8] * 3, 4)
    rows = [(0.0, 1, work) for work in (5.0, 3.0, 2.0)]
    records = play(HeSrpt(exponent=0.9999), rows, truth, 4, backfill, watchers=(Checker(),))
    np.testing.assert_allclose(records.end_time, np.array([10.0, 5.0, 2.0]) / 4**0.8, rtol=1e-9)
    assert [len(stretches_of(records, job)) for job in range(3)] == [1, 1, 1]


def deferred_by(scheduler: ReallocatingScheduler) -> list[int]:
    sharing = scheduler.tables[1]
    return sharing.deferred[: sharing.tally["deferred"].item()].tolist()


def test_those_kept_back_count_among_the_jobs_that_are_there() -> None:
    """θ(3, 0.8)·4 = 0.02, 0.51, 3.47: the largest waits, the others get 1 and 3."""
    beliefs = beliefs_of(power_truth([5.0, 3.0, 2.0], [0.8] * 3, 4), 4)
    rule = HeSrpt(exponent=0.8)
    parts = beliefs.view, FirstComeFirstServed(), Easy(), Request()
    scheduler = ReallocatingScheduler(rule, *parts)
    beliefs.view._state.arrived = [0, 1, 2]
    assert scheduler.decide() == [Start(1, 1), Start(2, 3)]
    assert deferred_by(scheduler) == [0]
    beliefs.view._state.arrived = []
    members_of(beliefs, [0, 1, 3])
    beliefs.view._state.tables.scalars["free"] = 0
    assert scheduler.decide() == []
    assert deferred_by(scheduler) == [0]
