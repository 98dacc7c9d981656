"""Reallocation in composition: guard, reclaiming, reservations, learning, mixed jobs."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from malleables import play, power_truth, stretches_of
from toys import BACKFILLS, ToyEstimate, ToyOracle, ToyTruth, in_python

from predictors.curves.laws import Amdahl
from predictors.in_loop.learned import CurvePerApplication
from sim.engine.invariants import Checker
from sim.engine.watcher import Watcher
from sim.engine.work import SensorNoise
from sim.errors import PolicyError
from sim.policies.backfill.easy import EasyScheduler
from sim.policies.passes.malleable import SharedOut, limits_of, make_sharing, still_valid
from sim.policies.reallocation.beliefs import SEARCH, Members
from sim.policies.reallocation.costs import FREE, Constant, Phases, Redistribution
from sim.policies.reallocation.equi import DynamicEquipartition, Equipartition, GreedyExpansion
from sim.policies.reallocation.hesrpt import HeSrpt
from sim.policies.reallocation.marginal import MarginalEfficiency
from sim.policies.reallocation.pdpa import STABLE, PerformanceDriven
from sim.policies.reallocation.pools import Pools
from sim.policies.reallocation.rule import ReallocatingScheduler
from sim.state.run_state import idle_machine

RULES = {
    "equi": Equipartition,
    "deq": DynamicEquipartition,
    "hesrpt": HeSrpt,
    "pools": Pools,
    "expand": GreedyExpansion,
    "marginal": MarginalEfficiency,
    "pdpa": PerformanceDriven,
}
COSTS = [FREE, Constant(2.0), Phases(1.0, 2.0, 3.0), Redistribution(0.5, 8.0, 1.0)]


def mixed_truth(rows: list, largest: int, allowed: np.ndarray | None) -> ToyTruth:
    """Jobs by thirds: rigid, moldable, malleable; T(n) = T(ref) (ref / n)^0.7."""
    reference = np.array([row[1] for row in rows])
    kind = np.arange(len(rows)) % 3
    truth = ToyTruth(
        lambda job, n: rows[job][2] * (reference[job] / n) ** 0.7,
        reference,
        np.where(kind == 0, reference, largest),
        allowed,
    )
    truth.moldable = kind > 0
    truth.malleable = kind == 2
    truth.min_processors = np.where(kind == 0, reference, 1)
    return truth


rows = st.lists(
    st.tuples(
        st.integers(0, 40).map(float),
        st.sampled_from([1, 2, 4, 8]),
        st.integers(1, 40).map(float),
        st.integers(1, 80).map(float),
    ),
    min_size=1,
    max_size=14,
).map(sorted)


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=40)
@given(
    jobs=rows,
    backfill=st.sampled_from(sorted(BACKFILLS)),
    cost=st.sampled_from(COSTS),
    reclaim=st.booleans(),
    powers=st.booleans(),
    distance=st.sampled_from([0.0, 5.0]),
    believed=st.sampled_from(["estimate", "oracle", "late"]),
)
def test_mixed_jobs_go_with_every_rule(
    name: str,
    jobs: list,
    backfill: str,
    cost: object,
    reclaim: bool,
    powers: bool,
    distance: float,
    believed: str,
) -> None:
    """Nothing breaks, the checker agrees, only malleable jobs change, on feasible counts."""
    truth = mixed_truth(jobs, 8, np.array([1, 2, 4, 8]) if powers else None)
    predictors = {
        "estimate": lambda _: ToyEstimate(),
        "oracle": ToyOracle,
        "late": lambda t: ToyOracle(t, 0.4),
    }
    rule = RULES[name](cost, reclaim=reclaim, distance=distance)
    records = play(
        rule, jobs, truth, 8, BACKFILLS[backfill], predictors[believed], watchers=(Checker(),)
    )
    held = records.allocations
    changed = np.flatnonzero(np.bincount(held.job, minlength=len(jobs)) > 1)
    assert truth.malleable[changed].all()
    assert set(records.status) == {"completed"}
    if powers:
        assert set(held.processors[truth.moldable[held.job]]) <= {1, 2, 4, 8}
    seconds = held.end_time - held.start_time
    share = np.bincount(held.job, seconds / truth.runtimes_at(held.job, held.processors), len(jobs))
    if cost is FREE:
        np.testing.assert_allclose(share, 1.0, rtol=1e-9)
    else:
        assert (share >= 1 - 1e-9).all()


# The guard

LINEAR = power_truth([800.0, 80.0], [1.0, 1.0], 8)
TWO = [(0, 1, 800.0), (50, 1, 80.0)]


@pytest.mark.parametrize(("factor", "counts"), [(0.0, [4, 8]), (4.7, [4, 8]), (4.8, [4])])
def test_a_growth_must_pay(factor: float, counts: list[int]) -> None:
    """Both start on 4. At 10 the first has 190 s left there, 95 on 8: 4.75 times the pause."""
    truth = power_truth([800.0, 40.0], [1.0, 1.0], 8)
    rule = Equipartition(Constant(20.0), gain_factor=factor)
    records = play(rule, [(0, 1, 800.0), (0, 1, 40.0)], truth, 8)
    assert [n for _, n in stretches_of(records, 0)] == counts
    assert records.counters["reallocation_time"] == 20.0 * (len(counts) - 1)


@pytest.mark.parametrize(
    ("factor", "counts"),
    [(0.0, [8, 4, 8]), (1.0, [8, 4, 8]), (1.39, [8, 4, 8]), (1.41, [8, 7]), (1.85, [8])],
)
def test_a_shrink_must_be_worth_what_the_victims_lose(factor: float, counts: list[int]) -> None:
    """At 50 the first has 50 s left on 8. Giving up one processor costs it 20 + 50/7 = 27.1 s:
    the second, which else waits 50 s, may make it do so up to a factor of 1.84. Giving up four
    costs it 42.9 s more and spares the second 60 of its 80 s: up to a factor of 1.4.
    At 1.41 the second ends at 130, the first after 70 s and 57.1 more, before it.
    """
    rule = Equipartition(Constant(20.0), gain_factor=factor)
    records = play(rule, TWO, LINEAR, 8, watchers=(Checker(),))
    assert [n for _, n in stretches_of(records, 0)] == counts


@pytest.mark.parametrize("name", sorted(RULES.keys() - {"pdpa"}))
@pytest.mark.parametrize("believed", [ToyOracle, lambda _: ToyEstimate()])
def test_a_job_of_two_seconds_makes_nobody_pause_for_a_thousand(name, believed) -> None:
    """At 500 the first has 731 s left on all 8: the other waits for them, though it fits in."""
    truth = power_truth([8000.0, 2.0], [0.9, 0.9], 8)
    rows = [(0, 1, 8000.0), (500, 1, 2.0)]
    records = play(RULES[name](Constant(1000.0)), rows, truth, 8, predictor=believed)
    held = stretches_of(records, 0)
    assert len(held) == 1
    if held[0][1] == 8:
        assert records.start_time[1] == records.end_time[0]
    free = play(RULES[name](), rows, truth, 8, predictor=believed)
    is_linear = believed is not ToyOracle  # then all 8 are efficient: no pool is smaller
    assert free.start_time[1] == 500.0 or (name == "pools" and is_linear)


def test_room_is_made_where_the_wait_would_be_longer_by_those_who_lose_least() -> None:
    """At 500 the first has 4500 s left: the other gets the one processor it needs, at 1643 s.

    Half of the machine would end it 1.5 s sooner. The first grows no more: 643 s for 1000.
    """
    truth = power_truth([40000.0, 2.0], [1.0, 1.0], 8)
    rows = [(0, 1, 40000.0), (500, 1, 2.0)]
    records = play(Equipartition(Constant(1000.0)), rows, truth, 8, watchers=(Checker(),))
    assert stretches_of(records, 0) == [(0.0, 8), (500.0, 7)]
    assert stretches_of(records, 1) == [(500.0, 1)]


def test_changes_keep_their_distance() -> None:
    """The first makes room at 50; the second ends at 70; the first may grow again at 90."""
    records = play(Equipartition(distance=40.0), TWO, LINEAR, 8, watchers=(Checker(),))
    assert stretches_of(records, 0) == [(0.0, 8), (50.0, 4), (90.0, 8)]


def test_costs_are_paid_by_all_processors_held() -> None:
    records = play(Equipartition(Phases(5.0, 10.0, 0.0)), TWO, LINEAR, 8, watchers=(Checker(),))
    held = records.allocations
    areas = np.bincount(held.job, (held.end_time - held.start_time) * held.processors)
    lost = areas - np.array([800.0, 80.0])
    assert lost.sum() == pytest.approx(records.counters["reallocation_area"])
    assert records.counters["reallocation_time"] == 5.0 + 5.0 + 10.0 + 10.0


# Reservations

HEAD = [(0, 1, 160.0), (0, 4, 100.0), (1, 6, 10.0), (2, 2, 60.0)]
"""A malleable job, a rigid one on half the machine, a rigid head for 6, and a filler."""


def head_truth() -> ToyTruth:
    runtimes = [row[2] for row in HEAD]
    reference = np.array([row[1] for row in HEAD])
    largest = reference.copy()
    largest[0] = 8
    truth = ToyTruth(
        lambda job, n: runtimes[job] / n if job == 0 else runtimes[job], reference, largest
    )
    truth.moldable = truth.malleable = np.array([True, False, False, False])
    truth.min_processors = np.where(truth.moldable, 1, reference)
    return truth


def test_what_jobs_could_give_up_counts_for_starts_where_the_policy_says_so() -> None:
    """With reclaiming the malleable job keeps 1 of the 8 processors: the filler fits in before
    the head's reservation. Without, it holds its 4 until 40, and the filler waits for them.
    """
    shared = play(GreedyExpansion(), HEAD, head_truth(), 8, watchers=(Checker(),))
    assert shared.start_time.tolist() == [0.0, 0.0, 100.0, 2.0]
    kept = play(GreedyExpansion(reclaim=False), HEAD, head_truth(), 8, watchers=(Checker(),))
    assert kept.start_time.tolist() == [0.0, 0.0, 100.0, 40.0]
    assert stretches_of(shared, 0)[:2] == [(0.0, 4), (2.0, 2)]
    assert stretches_of(kept, 0) == [(0.0, 4)]


@settings(max_examples=60)
@given(jobs=rows)
def test_easy_keeps_its_promise_to_the_head(jobs: list) -> None:
    """The shadow time of a head, once promised by right beliefs, is never passed."""
    truth = mixed_truth(jobs, 8, None)
    promised: dict[int, float] = {}

    class Promises(Watcher):
        needs_passes = True

        def passed(self, engine: object) -> None:
            scheduler = engine.scheduler
            assert isinstance(scheduler, ReallocatingScheduler)
            inner = scheduler.inner
            assert isinstance(inner, EasyScheduler)
            if inner.queue.waiting:
                job = inner.queue.job.item(inner.queue.head())
                promised.setdefault(job, inner.backfilling["shadow_time"].item())

        def finished(self, engine: object) -> None:
            pass

    records = play(Equipartition(), jobs, truth, 8, watchers=(Promises(),))
    for job, shadow in promised.items():
        assert records.start_time[job] <= shadow + 1e-6


def reservations_of(scheduler: object) -> dict[int, float]:
    queue = scheduler.inner.queue
    return {queue.job.item(p): queue.start.item(p) for p in queue.places().tolist()}


class Reservations(Watcher):
    """Notes by how much reservations move later, and whether anything excuses it."""

    def __init__(self) -> None:
        self.before: dict[int, float] = {}
        self.later: list[tuple[float, int, float, bool]] = []

    def decided(self, engine: object, decisions: object) -> None:
        view, now = engine.view, engine.view.now
        grown = any(run.believed_end > before for run, before in view.changes.moved_ends.items())
        reserved = reservations_of(engine.scheduler)
        for job, start in reserved.items():
            late = start - self.before.get(job, start)
            if late > 1e-9 * (1 + start):
                self.later.append((now, job, late, grown))
        self.before = reserved

    def finished(self, engine: object) -> None:
        pass


FREE_RULES = sorted(RULES.keys() - {"pdpa"})
OVERRUNS = [
    *((0, 1, 1, 1), (0, 8, 1, 1), (0, 8, 13, 1), *[(1, 1, 1, 1)] * 4, (1, 8, 1, 1)),
    *((2, 1, 1, 1), (2, 8, 1, 1), (13, 2, 2, 1), (14, 1, 1, 1), (14, 4, 1, 1)),
]


@settings(max_examples=200)
@given(
    jobs=rows,
    name=st.sampled_from(FREE_RULES),
    powers=st.booleans(),
    believed=st.sampled_from(["estimate", "oracle", "late"]),
)
def test_a_reservation_moves_later_only_when_a_belief_grows(
    jobs: list, name: str, powers: bool, believed: str
) -> None:
    """Whatever malleable jobs do meanwhile, conservative backfilling keeps its promises."""
    truth = mixed_truth(jobs, 8, np.array([1, 2, 4, 8]) if powers else None)
    predictors = {
        "estimate": lambda _: ToyEstimate(),
        "oracle": ToyOracle,
        "late": lambda t: ToyOracle(t, 0.4),
    }
    noted = Reservations()
    play(
        RULES[name](),
        jobs,
        truth,
        8,
        BACKFILLS["conservative"],
        predictors[believed],
        watchers=(noted,),
    )
    assert all(grown for *_, grown in noted.later)
    if believed == "oracle":
        assert noted.later == []


def test_an_overrun_moves_reservations_by_what_is_kept() -> None:
    """Requested: 56 s on 1; needed: 120 s. It holds all 8 and keeps 1.

    At 1 it has 48 s left on 1: all of the machine is promised for 49. At 7 it outlives its
    belief, 7 s more on 8 are 56 on 1: 63. At 14, 14 more are 112: 126. It ends at 15.
    """
    noted = Reservations()
    truth = power_truth([120.0, 1.0], [1.0, 1.0], 8)
    truth.malleable = truth.moldable = np.array([True, False])
    truth.min_processors, truth.reference = np.array([1, 8]), np.array([1, 8])
    records = play(
        Equipartition(),
        [(0.0, 1, 120.0, 56.0), (1.0, 8, 0.125, 1.0)],
        truth,
        8,
        BACKFILLS["conservative"],
        lambda _: ToyEstimate(),
        watchers=(Checker(), noted),
    )
    assert [(now, job, round(late, 6), grown) for now, job, late, grown in noted.later] == [
        (7.0, 1, 14.0, True),
        (14.0, 1, 63.0, True),
    ]
    assert records.start_time[1] == 15.0


def test_promises_that_still_fit_are_kept_through_overruns() -> None:
    noted = Reservations()
    jobs = [(float(s), n, float(r), float(e)) for s, n, r, e in OVERRUNS]
    truth = mixed_truth(jobs, 8, None)
    rule, conservative = Equipartition(), BACKFILLS["conservative"]
    watchers = (Checker(), noted)
    play(rule, jobs, truth, 8, conservative, lambda _: ToyEstimate(), watchers=watchers)
    assert noted.later
    assert all(grown for *_, grown in noted.later)


def test_without_a_curve_requested_processor_seconds_are_kept_on_any_count() -> None:
    """Requested: 24 s on 2. Started on 8 it is believed to end after 6 s, on 1 after 48."""
    noted: list[float] = []

    class Beliefs(Watcher):
        def decided(self, engine: object, decisions: object) -> None:
            if engine.view.now == 1.0:
                noted.append(engine.view.running[0].believed_end)
                noted.extend(engine.scheduler.lending_view.believed_ends.end)

        def finished(self, engine: object) -> None:
            pass

    truth = power_truth([48.0, 8.0], [1.0, 1.0], 8)
    truth.reference[:] = 2
    jobs = [(0, 2, 24.0), (1, 8, 1.0)]
    told, believed = (Equipartition(), jobs, truth, 8), {"predictor": lambda _: ToyEstimate()}
    with in_python():
        play(*told, **believed, watchers=(Beliefs(),))
    assert noted == pytest.approx([6.0, 1.0 + 40.0])


# Learning and measuring


def test_learned_curves_stay_right_under_reallocation() -> None:
    """Amdahl's law is learned exactly from runs that never kept their count."""
    rng = np.random.default_rng(2)
    number = 40
    submit = np.sort(rng.uniform(0, 900.0, number))
    work = np.full(number, 300.0)
    truth = ToyTruth(
        lambda job, n: work[job] * (0.1 + 0.9 / n), np.ones(number, np.int64), np.full(number, 16)
    )
    learned = CurvePerApplication(Amdahl(), "amdahl", calibration=0, min_counts=2)
    records = play(
        Equipartition(),
        [(s, 1, truth.runtime(0, 1)) for s in submit],
        truth,
        16,
        predictor=lambda _: learned,
    )
    assert len(records.allocations.job) > 3 * number
    counts = np.arange(1, 17)
    np.testing.assert_allclose(learned.curve(0, counts), truth.runtimes(0, counts), rtol=1e-6)


EXACT = SensorNoise(spread=0.0)


def test_pdpa_searches_the_efficient_count() -> None:
    """E(n) = 1/(1 + (n - 1)/20) is 0.7 at 9.57: from 4 it grows to 8, tries 12, undoes that."""
    truth = ToyTruth(
        lambda job, n: 10_000.0 * (1 + (n - 1) / 20) / n,
        np.array([4]),
        np.array([32]),
    )
    rule = PerformanceDriven(interval=10.0, step=4)
    records = play(
        rule, [(0, 4, truth.runtime(0, 4))], truth, 32, sensor_noise=EXACT, watchers=(Checker(),)
    )
    assert stretches_of(records, 0) == [(0.0, 4), (10.0, 8), (20.0, 12), (30.0, 8)]


def test_pdpa_shrinks_the_inefficient_and_lets_others_in_when_stable() -> None:
    """E(n) = 1/(1 + (n - 1)/8): 0.36 at 16, 0.5 or more up to 9."""
    truth = ToyTruth(
        lambda job, n: 1000.0 * (1 + (n - 1) / 8) / n, np.array([16, 4]), np.full(2, 16)
    )
    rule = PerformanceDriven(interval=10.0, step=4, stable_interval=1e6)
    jobs = [(0, 16, truth.runtime(0, 16)), (5, 4, truth.runtime(0, 4))]
    records = play(
        rule, jobs, truth, 16, BACKFILLS["none"], sensor_noise=EXACT, watchers=(Checker(),)
    )
    assert stretches_of(records, 0)[:3] == [(0.0, 16), (10.0, 12), (20.0, 8)]
    assert records.start_time[1] == 20.0  # on what the first, performing badly, gave up at 10


def test_pdpa_grows_as_soon_as_there_is_room() -> None:
    """Measured at 10 to be worth 8, it finds the others taken until 95. A waiting job that
    needs all 8 does not stop it, and starts when it has ended: 95 + (1000 - 4·95) / 8 = 172.5.
    """
    truth = ToyTruth(
        lambda job, n: 1000.0 / n if job == 0 else 95.0, np.array([4, 4, 8]), np.array([8, 4, 8])
    )
    truth.moldable = truth.malleable = np.array([True, False, False])
    truth.min_processors = np.array([1, 4, 8])
    rule = PerformanceDriven(interval=10.0, step=4, reclaim=True)
    jobs = [(0, 4, 250.0), (0, 4, 95.0), (20, 8, 95.0)]
    records = play(rule, jobs, truth, 8, sensor_noise=EXACT, watchers=(Checker(),))
    assert stretches_of(records, 0) == [(0.0, 4), (95.0, 8)]
    assert records.start_time.tolist() == [0.0, 0.0, 172.5]


def searching(**more):
    """Return a search that measures at 100, as far as `more` says."""
    search = np.zeros(1, SEARCH)
    search["due"] = 100.0
    for name, value in more.items():
        search[name] = value
    return search


def shared_by_pdpa(rule, searches, efficiency, total):
    """Return what PDPA gives runs on 8 processors each whose efficiency is measured now."""
    searches = np.concatenate(searches)
    number, searches["new_efficiency"] = searches.size, efficiency
    runs = [SimpleNamespace(job=job, processors=8) for job in range(number)]
    limits = np.full(number, 8), np.full(number, 1), np.full(number, 32)
    view, asked = SimpleNamespace(now=100.0), np.array([8.0, 32.0])
    reads = SimpleNamespace(view=view, read_off=lambda *_: asked)
    return rule.share(reads, Members([*range(number)], runs, *limits, searches), total).tolist()


@pytest.mark.parametrize(
    ("efficiency", "tolerance", "processors"),
    [(0.49, 0.2, 8), (0.47, 0.2, 4), (0.49, 0.1, 4), (0.47, 0.3, 8)],
)
def test_pdpa_searches_again_where_efficiency_changes_by_more_than_the_tolerance(
    efficiency, tolerance, processors
):
    """Of 0.6 before, 0.49 is 18 % less and 0.47 is 22 % less; both are below 0.5."""
    searches = [searching(phase=STABLE, last_efficiency=0.6, measured_on=8)]
    rule = PerformanceDriven(tolerance=tolerance, step=4)
    assert shared_by_pdpa(rule, searches, efficiency, 16) == [processors]


@pytest.mark.parametrize(("total", "shares"), [(20, [8, 12]), (22, [10, 12]), (24, [12, 12])])
def test_pdpa_lets_the_youngest_grow_first(total, shares):
    searches = [searching(), searching()]
    assert shared_by_pdpa(PerformanceDriven(step=4), searches, 0.9, total) == shares


@pytest.mark.parametrize(
    "options", [{"low_efficiency": 0.9}, {"step": 0}, {"interval": 0.0}, {"tolerance": -1.0}]
)
def test_bad_values_of_pdpa_are_named(options: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        PerformanceDriven(**options)


@pytest.mark.parametrize(("strict", "largest"), [(False, [3, 1, 8]), (True, [3, 8, 8])])
def test_where_nobody_gives_up_processors_only_a_strict_head_lets_starts_have_more(strict, largest):
    """Of a run on 3, a job that starts, and one that starts without a curve and requests 8."""
    state = idle_machine(12, 3, 3)
    state.processors[0] = 3
    sharing = make_sharing(Equipartition(reclaim=False), state, strict)
    sharing.jobs["least"], sharing.jobs["most"] = [1, 1, 8], [9, 8, 9]
    sharing.jobs["request"], sharing.tally["running"] = [0, 0, 8], 1
    found = limits_of((state, sharing), np.arange(3), 3, True)
    assert [limit.tolist() for limit in found] == [[3, 0, 0], [1, 1, 8], largest]


@pytest.mark.parametrize(
    ("other", "hold"),
    [
        ({}, True),
        ({"least": [2, 1]}, False),
        ({"largest": [8, 9]}, False),
        ({"jobs": [5, 7]}, False),
        ({"jobs": [5]}, False),
        ({"total": 5}, False),
    ],
)
def test_shares_stand_after_the_starts_where_nothing_of_them_has_changed(other, hold):
    """Of 4 processors, of which one job got 1 and another 3."""
    told = {"jobs": [5, 6], "least": [1, 1], "largest": [8, 8], "total": 4} | other
    jobs, largest = np.array([5, 6]), np.array([8, 8])
    before = SharedOut(jobs, largest, np.array([1, 3]), 4)
    asked = [np.array(told[name]) for name in ("jobs", "least", "largest")]
    assert still_valid(before, *asked, told["total"]) == hold


@pytest.mark.parametrize("former", ["hold_back", "queue_count"])
def test_a_rule_with_a_former_hook_is_refused(former):
    outdated = type("Mine", (Equipartition,), {former: lambda self, beliefs: 0.0})
    with pytest.raises(PolicyError, match=f"Mine.{former} is not asked: it is \\w+ now"):
        outdated()
