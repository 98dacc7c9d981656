"""Each rule on a few jobs, worked by hand.

Eight processors. Moldable jobs run T(n) = 4 + 12/n seconds: 16, 10, 8, 7, 6.4,
6, 5.71, 5.5 on 1 to 8 processors; efficiency 16 / (4n + 12): 1, 0.8, 0.667,
0.571, 0.5 on 1 to 5. They request 2 processors (10 s).
"""

import numpy as np
import pytest
from by_name import mold
from published_rules.equal_share import AdaptiveEqual, AdaptiveStatic, Available
from published_rules.load_efficiency import LoadAdaptive, LoadPredictive
from published_rules.load_interpolated import LoadInterpolated

from sim.policies.allocation.turnaround import BestTurnaround


def amdahl(n):
    return 4 + 12 / n


def linear(n):
    return 24 / n


def at(*submits):
    """Moldable jobs at these times."""
    return [(submit, 2, 10) for submit in submits]


def outcome(records):
    return records.allocated.tolist(), records.start_time.round(9).tolist()


def test_lazy_takes_the_least_count_that_keeps_the_promise():
    # Believed twice as long: promised 20 + 11 = 31. At 10, 2 processors believe in 20 s: 30.
    rows = [(0, 8, 10), *at(1)]
    for backfill, count in (("lazy_easy", 2), ("easy", 8)):
        records = mold(backfill, BestTurnaround(), rows, [None, amdahl], factor=2.0)
        assert outcome(records) == ([8, count], [0, 10])
    # The third is promised nothing before 10. Then 6 are left: 4 believe in 14 s, the least end.
    rows = [(0, 8, 10), *at(1, 2)]
    records = mold("lazy_easy", BestTurnaround(), rows, [None, amdahl, amdahl], factor=2.0)
    assert outcome(records) == ([8, 2, 4], [0, 10, 10])
    # Slack: 5.5 s may become 7.15; 4 processors need 7.
    records = mold("lazy_slack", BestTurnaround(), at(0), [amdahl])
    assert outcome(records) == ([4], [0])


@pytest.mark.parametrize("backfill", ["easy", "conservative", "replan"])
def test_a_plus_sees_all_arrivals_of_an_instant(backfill):
    # Four requests of 2 are as much as the machine: load 1, the least count for everybody.
    rule = LoadInterpolated(counts="all")
    records = mold(backfill, rule, at(0, 0, 0, 0), [amdahl] * 4)
    assert outcome(records) == ([1, 1, 1, 1], [0, 0, 0, 0])


def test_asp_starts_nobody_beyond_those_there_is_room_for():
    # Three wait for 8: 2 each. The first takes 7 at least; 1 is left, too few for the second.
    # At 10 both get half of the machine.
    rows = [(0, 7, 10), (0, 2, 10), (0, 2, 10)]
    records = mold("none", AdaptiveStatic(counts="all"), rows, [None, amdahl, amdahl])
    assert outcome(records) == ([7, 4, 4], [0, 10, 10])
    # Whoever may pass others cannot either.
    records = mold("skip", AdaptiveStatic(counts="all"), rows, [None, amdahl, amdahl])
    assert outcome(records) == ([7, 4, 4], [0, 10, 10])


def test_asp_shares_what_is_free():
    # All 8; then three wait for 8: 2 each and the two left over to the first two.
    records = mold("none", AdaptiveStatic(counts="all"), at(0, 1, 2, 3), [amdahl] * 4)
    assert outcome(records) == ([8, 3, 3, 2], [0, 5.5, 5.5, 5.5])
    # Knee of n·T²: 3. Two jobs leave two idle.
    records = mold("none", AdaptiveStatic(counts="all", cap="knee"), at(0, 0), [amdahl] * 2)
    assert outcome(records) == ([3, 3], [0, 0])


def test_asp_gives_one_each_when_jobs_outnumber_processors():
    records = mold("none", AdaptiveStatic(counts="all"), at(0, 0, 0), [amdahl] * 3, processors=2)
    assert outcome(records) == ([1, 1, 2], [0, 0, 16])


def test_aep_shares_the_machine():
    # All 8. At 5.5 three wait: 8/3 rounds to 3; two start, the third finds 2 free and waits.
    # At 13.5 it is alone: all 8.
    records = mold("none", AdaptiveEqual(counts="all"), at(0, 1, 2, 3), [amdahl] * 4)
    assert outcome(records) == ([8, 3, 3, 8], [0, 5.5, 5.5, 13.5])


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.0, ([3, 3, 2, 3], [0, 0, 0, 8])),  # ASP: the third takes the 2 that are left
        (0.6, ([3, 3, 2, 3], [0, 0, 0, 8])),  # 2 of 3 is enough
        (0.7, ([3, 3, 3, 3], [0, 0, 8, 8])),
        (1.0, ([3, 3, 3, 3], [0, 0, 8, 8])),  # AVG waits for all of A = 16 / 5.5 = 3
    ],
)
def test_downeys_strategies_wait_for_a_share_of_the_average_parallelism(share, expected):
    rule = Available(counts="all", share=share)
    assert outcome(mold("none", rule, at(0, 0, 0, 0), [amdahl] * 4)) == expected


def test_a_plus_interpolates_by_load():
    # M = 8, A = 3, m = 1. Alone x = 2/8: 8 - 0.5·5 = 5.5, so 5. At 1 three wait, x = 6/8:
    # 3 - 0.5·2 = 2; 3 are free, one starts. At 6.4 two wait, x = 1/2: A.
    records = mold("none", LoadInterpolated(counts="all"), at(0, 1, 1, 1), [amdahl] * 4)
    assert outcome(records) == ([5, 2, 3, 3], [0, 1, 6.4, 6.4])


def test_a_plus_by_smoothed_utilisation():
    # Idle until 0: M = 8. At 5.5 the machine was busy for 5.5 s, x = 1 - exp(-5.5/τ).
    # With τ = 5.5 / ln 2 that is 1/2: A.
    records = mold(
        "none",
        LoadInterpolated(counts="all", load="smoothed", time=5.5 / np.log(2)),
        at(0, 5.5),
        [amdahl] * 2,
    )
    assert outcome(records) == ([8, 3], [0, 5.5])


def test_scojo_asks_for_more_efficiency_under_load():
    # x = 2/8: E >= 0.575: 3. At 1 three wait, x = 6/8: E >= 0.725: 2; 5 are free, two start.
    # At 8 one waits: 3 again.
    records = mold("easy", LoadAdaptive(counts="all"), at(0, 1, 1, 1), [amdahl] * 4)
    assert outcome(records) == ([3, 2, 2, 3], [0, 1, 1, 8])


def test_scojo_p_looks_at_the_load_over_the_runtime():
    # Alone: L = 2/8, light, E >= 0.5: 5 until 6.4. At 1 three more: over 10 s the first holds
    # 5·5.4/10 = 2.7, the waiting ones ask for 6: L = 1.09: n <= 2/1.09, so 1.
    records = mold("easy", LoadPredictive(counts="all"), at(0, 1, 1, 1), [amdahl] * 4)
    assert outcome(records) == ([5, 1, 1, 1], [0, 1, 1, 1])
    # Two more: L = 6.7/8, light: 5 each, one after the other.
    records = mold("easy", LoadPredictive(counts="all"), at(0, 1, 1), [amdahl] * 3)
    assert outcome(records) == ([5, 5, 5], [0, 6.4, 12.8])
    # A tolerance lets one start on 3 (5/2 = 2.5 at least).
    records = mold("easy", LoadPredictive(counts="all", tolerance=1.0), at(0, 1), [amdahl] * 2)
    assert outcome(records) == ([8, 8], [0, 5.5])


def test_two_phase_minimises_the_larger_of_time_and_area():
    # Two jobs: d = 7 on 4 each, area 2·28 / 8 = 7. The third waits for the batch to end.
    for backfill in ("batches", "shelves"):
        rule = BestTurnaround(counts="all")
        records = mold(backfill, rule, at(0, 0, 1), [amdahl] * 3)
        assert outcome(records) == ([4, 4, 8], [0, 0, 7])


def table(*seconds):
    """Return a curve from its runtimes on 1, 2, ... processors."""
    return lambda n: float(seconds[n - 1])


def test_asp_divides_what_is_free_again_and_again():
    # At 0 one job, 8 free: 8. At 5.5 three wait for 8: 2 each, and the two left over to the
    # first two. At 13.5 those (8 s on 3) end, 6 are free for the two that came: 3 each.
    rows = at(0, 1, 2, 3, 6, 7)
    records = mold("none", AdaptiveStatic(counts="all"), rows, [amdahl] * 6)
    assert outcome(records) == ([8, 3, 3, 2, 3, 3], [0, 5.5, 5.5, 5.5, 13.5, 13.5])


def test_a_plus_cut_takes_less_than_a_once_many_wait():
    # A = 3, and no more than an equal part of the machine.
    #  0, 1   alone: 3 each, until 8 and 9; 2 are left.
    #  2-4    one, two, three wait: 8, 4, 2.7 rounded 3 each: A, which is not free.
    #  5      four wait: 2 each: the first starts, until 15.
    #  8      three wait, 3 are free: 3, until 16.    9   two wait, 3 are free: 3, until 17.
    # 15      one waits; 2 are free.                 16   5 are: 3.
    rule = AdaptiveEqual(counts="all", cap="average")
    records = mold("none", rule, at(0, 1, 2, 3, 4, 5), [amdahl] * 6)
    assert outcome(records) == ([3, 3, 2, 3, 3, 3], [0, 1, 5, 8, 9, 16])


def test_a_plus_follows_the_smoothed_load_up_and_down():
    # What lies 5.5 s back counts half. M = 8, A = 3, m = 1.
    #  0     idle so far, x = 0: M = 8 processors, until 5.5.
    #  5.5   all busy for 5.5 s: x = 1/2: A. Three wait; two take 3 each (8 s, until 13.5); the
    #        third finds 2.
    # 11     a fifth comes. 6/8 busy for 5.5 s: x = 0.5·0.5 + 0.5·0.75 = 0.625:
    #        3 - 0.25·2 = 2.5, so 2: the third starts, until 21.
    # 13.5   all busy for 2.5 s, 2^(-2.5/5.5) = 0.730: x = 0.730·0.625 + 0.270 = 0.726:
    #        3 - 0.453·2 = 2.09, so 2, until 23.5.
    # 29     4/8 busy for 7.5 s, kept 0.389: 0.389·0.726 + 0.611·0.5 = 0.588; 2/8 for 2.5 s:
    #        0.730·0.588 + 0.270·0.25 = 0.497; idle for 5.5 s: x = 0.248: 8 - 0.497·5 = 5.5: 5.
    rule = LoadInterpolated(counts="all", load="smoothed", time=5.5 / np.log(2))
    records = mold("none", rule, at(0, 1, 2, 3, 11, 29), [amdahl] * 6)
    assert outcome(records) == ([8, 3, 3, 2, 2, 5], [0, 5.5, 5.5, 11, 13.5, 29])


def test_a_plus_follows_what_arrivals_offer():
    # Each asks for 2·T(2) = 20 of the 10·8 that the machine gives in 10 s: x = 1/4 for each
    # that came in the last 10 s. x = 1/4: 8 - 0.5·5 = 5.5, so 5; 1/2: 3; 3/4: 3 - 0.5·2 = 2;
    # 1: 1.
    #  0     one: 5, until 6.4.
    #  1     two: 3, which are free, until 9.
    #  6.4   four came, all within 10 s: 1 each for the two that wait, until 22.4.
    # 11.5   three came since 1.5: 2.
    rule = LoadInterpolated(counts="all", load="forecast", window=10.0)
    records = mold("none", rule, at(0, 1, 2, 3, 11.5), [amdahl] * 5)
    assert outcome(records) == ([5, 3, 1, 1, 2], [0, 1, 6.4, 6.4, 11.5])


def test_scojo_p_reckons_with_arrivals():
    # They ask for 4 (7 s, 28 processor-seconds); each that came in the last 10 s lets
    # 28 / (10·8) = 0.35 of the machine be asked for in future.
    #  0    4/8 + 0.35 = 0.85, light: E >= 0.5 up to 5 processors, until 6.4.
    #  1    over 7 s the first holds 5·5.4/7 = 3.86: (3.86 + 4)/8 + 0.7 = 1.68, heavy: 4/1.68 =
    #       2.4; E >= 0.8 up to 2. On 2 until 11.
    #  2    (5·4.4/7 + 2 + 4)/8 + 1.05 = 2.19: 4/2.19 = 1.8, so 1, which is free.
    # 20    alone: 0.85 again, 5.
    rule = LoadPredictive(counts="all", window=10.0)
    rows = [(0, 4, 7), (1, 4, 7), (2, 4, 7), (20, 4, 7)]
    records = mold("easy", rule, rows, [amdahl] * 4)
    assert outcome(records) == ([5, 2, 1, 5], [0, 1, 2, 20])


@pytest.mark.parametrize(
    ("backfill", "expected"),
    [
        ("batches", ([2, 2, 1, 4], [0, 0, 10, 18])),
        ("shelves", ([2, 2, 2, 4], [0, 0, 10, 14])),
    ],
)
def test_batches_in_two_phases_and_on_two_shelves(backfill, expected):
    # Four processors. Two jobs of 20, 10, 9, 8 s, one of 8, 4, 3, 2.5 s; later the usual one.
    # Within d = 10: 2, 2, 1 processors, area 20 + 20 + 8 = 48 = 4·12; within 9: 27 + 27 + 8 =
    # 4·15.5; within 20: more than 12 anyway. So ω = 12, on 2, 2, 1.
    # Two phases: the third starts when the first two end, at 10, until 18.
    # Two shelves, d = 12: the first two cannot end within 6, so they fill the first shelf. The
    # third takes 2 to end within 6 at the same area, 8: second shelf, 48 = 4·12 of work in all,
    # accepted. It is due at 18 - 4 = 14, but at 10 the machine is idle: 10 to 14.
    # Next batch: within 7 it takes all 4, area 28 = 4·7.
    rows = [(0, 1, 20), (0, 1, 20), (0, 1, 8), (1, 1, 16)]
    wide = table(20, 10, 9, 8)
    curves = [wide, wide, table(8, 4, 3, 2.5), amdahl]
    records = mold(backfill, BestTurnaround(counts="all"), rows, curves, processors=4)
    assert outcome(records) == expected


@pytest.mark.parametrize(
    ("backfill", "expected"),
    [
        ("batches", ([2, 2, 1, 1], [0, 0, 8, 8])),
        ("shelves", ([1, 2, 1, 1], [0, 0, 0, 4])),
    ],
)
def test_two_shelves_with_small_jobs(backfill, expected):
    # Four processors. Jobs of 16, 8, 7, 6.5 s, of 24/n s, and two of 4 s whatever they get.
    # Within 12: 2, 2, 1, 1, area 16 + 24 + 4 + 4 = 48 = 4·12; within 8: 2 and 3, the same area:
    # ω = 12. Two phases: the last two start at 8, all ends at 12.
    # Two shelves, d = 12: the last two are small (4 <= 6). The first cannot end within 6: first
    # shelf, 8 s on 2; as 8 <= 9 it may as well run 16 s <= 18 on 1. The second, same area on 4
    # within 6: second shelf; but with 3 idle below, it takes 2 there, for 12 s. The small ones
    # go one after the other on the fourth processor.
    rows = [(0, 1, 16), (0, 1, 24), (0, 1, 4), (0, 1, 4)]
    curves = [table(16, 8, 7, 6.5), linear, table(4, 4, 4, 4), table(4, 4, 4, 4)]
    records = mold(backfill, BestTurnaround(counts="all"), rows, curves, processors=4)
    assert outcome(records) == expected
