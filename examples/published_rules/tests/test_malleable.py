"""HELL and KNEE, worked by hand on a few jobs."""

import numpy as np
import pytest
from malleables import play, power_truth, stretches_of
from published_rules.greedy_curves import Hell, KneeFirst
from test_reallocation_rules import share
from test_ties import shares

from sim.engine.invariants import Checker
from sim.policies.backfill.conservative import Conservative


def test_hell_prefers_efficient_and_short_jobs() -> None:
    """S²/k grows with k for p = 0.8 and falls for p = 0.3: the flat job keeps its least."""
    assert share(Hell(), [50.0, 50.0], [0.8, 0.3], [1, 1], 12) == [11, 1]
    assert share(Hell(), [500.0, 50.0], [0.8, 0.8], [1, 1], 20) == [4, 16]


def test_knee_gives_knees_in_order_of_work() -> None:
    """60/n: the step to n saves 60/(n(n-1)) seconds: knees of 4 and, for 600/n, of 11."""
    assert share(KneeFirst(threshold=4.9), [600.0, 60.0], [1, 1], [1, 1], 14) == [10, 4]
    assert share(KneeFirst(threshold=4.9), [600.0, 60.0], [1, 1], [1, 1], 8) == [4, 4]
    assert share(KneeFirst(threshold=4.9), [600.0, 60.0], [1, 1], [1, 1], 18) == [14, 4]


def test_hell_at_one_half_takes_the_smaller_count():
    """S²/k is the same for every k at p = 0.5: as below it, and not as above it."""

    def under(power, key=0):
        work = [90.0, 30.0, 60.0]
        return shares(Hell(), lambda job, n: work[job] / n**power, 3, 20, key, least=0)

    assert under(0.5) == under(0.499) == [1, 16, 3]
    assert under(0.501) == [0, 16, 4]
    assert all(under(0.5, key) == [1, 16, 3] for key in range(1, 9))


def test_a_job_that_runs_keeps_its_least_count() -> None:
    """The short one comes second and gets all but the processor that the first must keep."""
    truth = power_truth([50.0, 2.0], [0.8] * 2, 4)
    records = play(Hell(), [(0.0, 1, 50.0), (1.0, 1, 2.0)], truth, 4)
    assert stretches_of(records, 0)[:2] == [(0.0, 4), (1.0, 1)]
    assert stretches_of(records, 1) == [(1.0, 3)]


def test_without_reclaiming_nobody_is_kept_back() -> None:
    """The first has all four processors and never shrinks; EASY alone lets the second wait."""
    truth = power_truth([50.0, 2.0], [0.8] * 2, 4)
    rows = [(0.0, 4, 50.0 / 4**0.8), (1.0, 4, 2.0 / 4**0.8)]
    records = play(Hell(reclaim=False), rows, truth, 4)
    assert records.start_time[1] == records.end_time[0]


@pytest.mark.parametrize("backfill", [None, Conservative()])
@pytest.mark.parametrize("rule", [Hell(), KneeFirst(threshold=1e-9)])
def test_the_shortest_gets_everything(rule: object, backfill: object) -> None:
    """Both are SRPT here, so 2, 3 and 5 serial seconds end one after the other."""
    truth = power_truth([5.0, 3.0, 2.0], [0.8] * 3, 4)
    rows = [(0.0, 1, work) for work in (5.0, 3.0, 2.0)]
    records = play(rule, rows, truth, 4, backfill, watchers=(Checker(),))
    np.testing.assert_allclose(records.end_time, np.array([10.0, 5.0, 2.0]) / 4**0.8, rtol=1e-9)
    assert [len(stretches_of(records, job)) for job in range(3)] == [1, 1, 1]


@pytest.mark.parametrize("rule", [Hell(), KneeFirst(threshold=2.0)])
@pytest.mark.parametrize("power", [0.5, 1.0])
def test_no_share_is_decided_by_rounding(rule: object, power: float) -> None:
    def curve(job: int, n: int) -> float:
        return 60.0 / min(n, 9) ** power

    exact = shares(rule, curve, 5, 17)
    assert all(shares(rule, curve, 5, 17, key) == exact for key in range(1, 6))


def test_bad_values_are_named() -> None:
    with pytest.raises(ValueError, match="threshold"):
        KneeFirst(threshold=0.0)
