"""Each reallocation rule, worked by hand on a few jobs."""

import numpy as np
import pytest
from malleables import beliefs_of, members_of, play, power_truth, stretches_of
from toys import ToyEstimate, ToyTruth

from sim.engine.invariants import Checker
from sim.policies.passes.malleable import Claims
from sim.policies.reallocation.equi import DynamicEquipartition, Equipartition, GreedyExpansion
from sim.policies.reallocation.hesrpt import HeSrpt
from sim.policies.reallocation.marginal import MarginalEfficiency, concave_gains, largest_gains
from sim.policies.reallocation.pools import Pools


def share(rule, work, powers, held, total, largest=16, least=1):
    beliefs = beliefs_of(power_truth(work, powers, largest), 64)
    members = members_of(beliefs, held, least)
    return rule.share(beliefs, members, total).tolist()


def test_equi_fills_small_jobs_first() -> None:
    truth = ToyTruth(lambda job, n: 100.0 / n, np.ones(3, np.int64), np.array([2, 16, 16]))
    beliefs = beliefs_of(truth, 16)
    assert Equipartition().share(beliefs, members_of(beliefs, [1, 1, 0]), 13).tolist() == [
        2,
        6,
        5,
    ]


def test_deq_stops_at_the_believed_parallelism() -> None:
    """S = min(n, 4) for the first job: it can use four processors."""
    truth = ToyTruth(
        lambda job, n: 100.0 / (min(n, 4) if job == 0 else n), np.ones(2, np.int64), np.full(2, 16)
    )
    beliefs = beliefs_of(truth, 16)
    for parallelism in ("average", "useful"):
        rule = DynamicEquipartition(parallelism=parallelism)
        assert rule.share(beliefs, members_of(beliefs, [1, 1]), 16).tolist() == [4, 12]


def test_hesrpt_reads_its_exponent_off_the_curves() -> None:
    """θ(2, 1/2) = 1/4, 3/4: the shorter job gets 12 of 16."""
    for rule in (HeSrpt(), HeSrpt(exponent=0.5)):
        assert share(rule, [90.0, 30.0], [0.5, 0.5], [1, 1], 16) == [4, 12]
    assert share(HeSrpt(exponent=0.5), [90.0, 30.0], [0.5, 0.5], [1, 1], 16, largest=9) == [7, 9]
    slow = share(HeSrpt(exponent=0.5, objective="slowdown"), [4.0, 1.0], [0.5, 0.5], [1, 1], 25)
    assert slow == [9, 16]  # (1/25, 24/25), where 16 is the job's largest


def test_expansion_shrinks_the_oldest_and_feeds_starters() -> None:
    assert share(GreedyExpansion(), [9.0] * 3, [1] * 3, [8, 8, 0], 16) == [7, 8, 1]
    assert share(GreedyExpansion(victims="youngest"), [9.0] * 3, [1] * 3, [8, 8, 0], 16) == [
        8,
        7,
        1,
    ]
    assert share(GreedyExpansion(), [9.0] * 3, [1] * 3, [2, 2, 0], 23) == [5, 2, 16]


def test_marginal_gains_equalise() -> None:
    """With S = sqrt(n) for both jobs equal shares maximise the sum; weights shift them."""
    assert share(MarginalEfficiency(minimum=0.0), [90.0, 30.0], [0.5, 0.5], [1, 1], 16) == [8, 8]
    shares = share(
        MarginalEfficiency(minimum=0.0, weight="work"), [80.0, 40.0], [0.5, 0.5], [1, 1], 10
    )
    assert shares == [2, 8]  # d sqrt(n)/w equal where n falls with the square of w
    bounded = share(MarginalEfficiency(minimum=0.2), [90.0], [0.5], [1], 16)
    steps = np.diff(np.sqrt(np.arange(0, 17)))
    assert bounded == [int((steps >= 0.2).sum())]


def test_of_equal_gains_the_smaller_count_comes_first() -> None:
    """As under perfect speedup; a gain of -1 is none, and nothing is given for it."""
    held, least, largest = np.array([0, 0]), np.array([1, 2]), np.array([8, 8])
    gains, none = np.ones((2, 8)), np.zeros(0)

    def claims(total):
        return Claims(gains, held, least, largest, total, none, none, np.zeros(1))

    assert largest_gains(claims(10)).tolist() == [5, 5]
    gains[0, 3:] = -1.0
    assert largest_gains(claims(10)).tolist() == [3, 7]
    assert largest_gains(claims(14)).tolist() == [3, 8]


def test_marginal_gains_see_beyond_a_flat_start() -> None:
    assert concave_gains(np.array([1.0, 1.0, 1.0, 4.0])).tolist() == [1.0] * 4
    assert concave_gains(np.array([1.0, 3.0, 2.0])).tolist() == [1.5, 1.5, 0.0]


# Amdahl with one percent serial: E(n) > 0.95 up to 6, > 0.8 up to 25, > 0.5 up to 100
def amdahl(number: int) -> ToyTruth:
    return ToyTruth(lambda job, n: 1.0 + 99.0 / n, np.ones(number, np.int64), np.full(number, 128))


def pool(strategy: str, held: list[int], total: int) -> list[int]:
    beliefs = beliefs_of(amdahl(len(held)), 256)
    rule = Pools(strategy=strategy)
    assert rule.read_off(beliefs, 0).tolist() == [6, 25, 100]
    assert rule.start_count(beliefs, 0) == 6
    return rule.share(beliefs, members_of(beliefs, held, least=6), total).tolist()


@pytest.mark.parametrize(
    ("strategy", "held", "total", "shares"),
    [
        ("min", [40, 20, 0], 60, [34, 20, 6]),  # the one most above its minimum gives
        ("min", [40, 20, 0], 70, [40, 20, 10]),  # the one least above it grows
        ("average", [40, 20, 0], 60, [34, 20, 6]),
        ("average", [40, 20, 0], 70, [40, 20, 10]),
        ("pref", [40, 30, 0], 90, [40, 30, 20]),  # nobody shrinks for who can start
        ("pref", [40, 30, 0], 75, [25, 25, 25]),  # the starter has 25, victims keep theirs
        ("pref", [26, 25, 0], 60, [26, 25, 9]),  # there is room for the minimum, and for 3 more
        ("pref", [27, 25, 0], 56, [25, 25, 6]),  # (minimum, preferred)
        ("pref", [26, 25, 0], 50, [19, 25, 6]),  # (minimum, minimum)
        ("pref", [10, 30, 0], 100, [45, 30, 25]),  # all to 25 first, then up to the maximum
        ("pref", [10, 0], 30, [10, 20]),  # a starter takes what is free before others grow
        ("pref", [10, 0, 0], 30, [10, 14, 6]),  # and shrinks again for the next one
        ("pref", [40, 0, 0], 60, [34, 20, 6]),  # or lets others do so that are above theirs
    ],
)
def test_pools(strategy: str, held: list[int], total: int, shares: list[int]) -> None:
    assert pool(strategy, held, total) == shares


def test_equal_shares_by_hand() -> None:
    """8 processors, linear jobs of 80 and 24 s of work; the second comes at 2.

    The first has 64 left then; both hold 4; the second ends at 8 with 40 left of the
    first, which ends at 13.
    """
    truth = power_truth([80.0, 24.0], [1.0, 1.0], 8)
    records = play(Equipartition(), [(0, 1, 80.0), (2, 1, 24.0)], truth, 8, watchers=(Checker(),))
    assert records.end_time.tolist() == [13.0, 8.0]
    assert stretches_of(records, 0) == [(0.0, 8), (2.0, 4), (8.0, 8)]
    assert stretches_of(records, 1) == [(2.0, 4)]
    assert records.counters["events"] == 4  # beliefs follow the changes: none expires


def test_three_jobs_share_by_hand() -> None:
    """8 processors, linear jobs of 80, 24 and 12 s of work at 0, 2 and 5; 8, then 4 and 4.

    At 5 the first has 52 left, the second 12: 3, 3 and 2, the oldest before the youngest. The
    second ends at 9 with 40 and 4 left: 4 and 4. The third ends at 10: 36 left on 8, to 14.5.
    """
    truth = power_truth([80.0, 24.0, 12.0], [1.0] * 3, 8)
    jobs = [(0, 1, 80.0), (2, 1, 24.0), (5, 1, 12.0)]
    records = play(Equipartition(), jobs, truth, 8, watchers=(Checker(),))
    assert records.end_time.tolist() == [14.5, 9.0, 10.0]
    assert stretches_of(records, 0) == [(0.0, 8), (2.0, 4), (5.0, 3), (9.0, 4), (10.0, 8)]
    assert stretches_of(records, 2) == [(5.0, 2), (9.0, 4)]


def test_hesrpt_finishes_the_shortest_of_three_first() -> None:
    """S = sqrt(n), 144 processors: θ = 1/9, 3/9, 5/9 are 16, 48, 80; then 36, 108; then all.

    40 s of work on 80 take 40/sqrt(80) = 4.472 s.
    """
    truth = power_truth([90.0, 60.0, 40.0], [0.5] * 3, 144)
    jobs = [(0, 1, 90.0), (0, 1, 60.0), (0, 1, 40.0)]
    records = play(HeSrpt(exponent=0.5), jobs, truth, 144, watchers=(Checker(),))
    first = 40.0 / np.sqrt(80.0)
    second = first + (60.0 - np.sqrt(48.0) * first) / np.sqrt(108.0)
    left = 90.0 - 4.0 * first - 6.0 * (second - first)
    assert [n for _, n in stretches_of(records, 0)] == [16, 36, 144]
    assert [n for _, n in stretches_of(records, 1)] == [48, 108]
    np.testing.assert_allclose(records.end_time, [second + left / 12.0, second, first])


def test_nothing_is_known_without_a_predictor() -> None:
    """The requested time on the requested processors counts as work; jobs still end in full."""
    truth = power_truth([80.0, 24.0], [1.0, 1.0], 8)
    records = play(
        HeSrpt(exponent=0.5),
        [(0, 1, 80.0), (2, 1, 24.0)],
        truth,
        8,
        predictor=lambda _: ToyEstimate(),
        watchers=(Checker(),),
    )
    assert stretches_of(records, 0)[:2] == [(0.0, 8), (2.0, 2)]
    assert records.end_time.tolist() == [13.0, 6.0]


@pytest.mark.parametrize(
    ("rule", "options"),
    [
        (Equipartition, {"gain_factor": -1.0}),
        (Equipartition, {"distance": -1.0}),
        (DynamicEquipartition, {"parallelism": "all"}),
        (HeSrpt, {"exponent": 1.0}),
        (HeSrpt, {"objective": "wait"}),
        (GreedyExpansion, {"victims": "all"}),
        (Pools, {"strategy": "all"}),
        (Pools, {"max_efficiency": 0.9}),
        (MarginalEfficiency, {"weight": "all"}),
        (MarginalEfficiency, {"minimum": 2.0}),
    ],
)
def test_bad_values_are_named(rule: type, options: dict) -> None:
    name = next(iter(options))
    with pytest.raises(ValueError, match=name):
        rule(**options)
