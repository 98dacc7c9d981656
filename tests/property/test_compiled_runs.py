"""Runs whose steps are compiled leave the records of the same runs made pass by pass in Python.

Both ways are checked: a checker sees every pass, and with one the same is compiled.
"""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_against_naive import MACHINE, traces
from toys import BACKFILLS, ToyEstimate, ToyOracle, ToyTruth, in_python, replay, rigid, trace_of

from predictors.in_loop.oracle import Oracle
from scripts.composing import composed
from sim.engine.engine import Engine
from sim.engine.event_manager import CompiledRun
from sim.engine.invariants import Checker
from sim.engine.run import compiled_passes, simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.policies.allocation.fair_share import FairShare
from sim.policies.allocation.iterative import Iterative, UtilizationBased
from sim.policies.allocation.local import Fair
from sim.policies.allocation.queue_time import QueueTimeAware
from sim.policies.allocation.rigid import Request
from sim.policies.allocation.sa import SmallestTurnaround
from sim.policies.allocation.turnaround import BestTurnaround
from sim.policies.backfill.conservative import ConservativeScheduler
from sim.policies.backfill.easy import Easy, EasyScheduler
from sim.policies.base import Policy
from sim.policies.molding.base import Candidates
from sim.policies.molding.scheduler import OpenScheduler
from sim.policies.order import FirstComeFirstServed, LargestFirst, ShortestFirst
from sim.policies.reallocation.costs import Constant, Phases
from sim.policies.reallocation.equi import (
    DynamicEquipartition,
    Equipartition,
    GreedyExpansion,
    equal_shares,
)
from sim.policies.reallocation.hesrpt import HeSrpt
from sim.policies.reallocation.marginal import MarginalEfficiency
from sim.policies.reallocation.pdpa import PerformanceDriven
from sim.policies.reallocation.pools import Pools
from sim.simulation.scene import play, set_scene
from sim.state.processors import NodeSets

RULES = ["none", "skip", "easy", "easy2", "conservative", "replan"]


def plain(thing):
    """Return records as plain data that can be compared."""
    if dataclasses.is_dataclass(thing):
        return {f.name: plain(getattr(thing, f.name)) for f in dataclasses.fields(thing)}
    if isinstance(thing, NodeSets):
        return [*thing]
    return [repr(one) for one in thing.tolist()] if isinstance(thing, np.ndarray) else thing


def both(made):
    """Return what a run leaves that may be compiled, checked or not, and what it leaves in Python.

    Parameters
    ----------
    made : callable
        Watchers to the records of the run.
    """
    compiled = plain(made(()))
    assert plain(made((Checker(),))) == compiled
    with in_python():
        return compiled, plain(made((Checker(),)))


def both_replayed(rows, processors, policy, **options):
    """Return the same of rigid jobs."""
    return both(lambda watchers: replay(rows, processors, policy, watchers=watchers, **options))


def both_composed(*asked):
    """Return the same of a configuration."""

    def made(watchers):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("sim.simulation.scene.watchers", lambda *_: watchers)
            config = composed(*asked, "baseline=null")
            return play(config, config, set_scene(config, 0)).outcome.records

    return both(made)


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=150)
@given(rows=traces(), overrun=st.sampled_from(["extend", "kill"]))
def test_compiled_steps_leave_the_same_records(rule, rows, overrun):
    compiled, python = both_replayed(rows, MACHINE, rigid(rule), overrun=overrun)
    assert compiled == python


def crowd(seed, jobs, processors):
    """Draw a long queue of narrow and wide jobs, some of them at once, many of them late."""
    rng = np.random.default_rng(seed)
    submit = np.round(np.cumsum(rng.exponential(2.0, jobs) * (rng.random(jobs) < 0.7)), 1)
    wanted = np.minimum(2 ** rng.integers(0, 7, jobs), processors)
    runtime = np.round(rng.lognormal(4.0, 1.5, jobs), 1)
    guess = np.ceil(runtime * rng.choice([0.1, 1.0, 3.0], jobs) / 60.0) * 60.0
    return list(
        zip(submit.tolist(), wanted.tolist(), runtime.tolist(), guess.tolist(), strict=True)
    )


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(3))
def test_long_queues_leave_the_same_records(rule, seed):
    compiled, python = both_replayed(crowd(seed, 700, 100), 100, rigid(rule))
    assert compiled == python


@pytest.mark.parametrize("jobs", [127, 128, 129])
def test_as_many_runs_as_a_small_integer_holds_and_one_more(jobs):
    rows = [(float(k), 1, 0.5, 1.0) for k in range(jobs)]
    compiled = replay(rows, MACHINE, rigid("easy"))
    assert list(compiled.allocations.nodes) == [((0, 0),)] * jobs


def both_molded(rows, policy, factor, processors=MACHINE, **more):
    """Return what moldable jobs leave in a run that may be compiled, and in one in Python."""
    trace = trace_of(rows)
    reference = trace.jobs["requested_processors"].to_numpy()
    runtime = trace.jobs["reference_runtime"].to_numpy()
    largest = np.where(np.arange(len(rows)) % 4 == 3, 1, processors)
    truth = ToyTruth(
        lambda job, n: (
            runtime[job] if n == reference[job] else runtime[job] * (reference[job] / n) ** 0.8
        ),
        reference,
        np.maximum(largest, reference),
    )
    draws = np.random.default_rng(3).random(len(rows))

    def made(watchers):
        predictor = ToyEstimate() if factor is None else ToyOracle(truth, factor)
        machine = Dedicated(processors)
        setup = Setup(
            trace, truth, policy, predictor, machine, adopter_draws=draws, watchers=watchers, **more
        )
        if factor is not None and not getattr(
            policy.reallocation, "defers", False
        ):  # those may need Python
            assert compiled_passes(Engine(setup)) is not None
        return simulate(setup)

    return both(made)


@pytest.mark.parametrize("factor", [1.0, 0.6])
@pytest.mark.parametrize("backfill", RULES)
@settings(max_examples=80)
@given(rows=traces())
def test_counts_chosen_by_turnaround_leave_the_same_records(backfill, factor, rows):
    policy = Policy(FirstComeFirstServed(), BACKFILLS[backfill], SmallestTurnaround(adopters=0.8))
    compiled, python = both_molded(rows, policy, factor)
    assert compiled == python


class Curious:
    """Reads all that may be known, and chooses a count that hangs on it."""

    def __init__(self):
        self.saw = []

    def choose(self, job, view, outlook):
        """Write down what is seen, and choose."""
        counts = view.counts(job)[:5]
        runs = [*view.running.values(), *view.ended]
        for run in list(view.running)[:: 1 + job % 3]:
            self.saw.append(view.measured_efficiency(run))
        beliefs = np.full(counts.size, view.requested_time[job])
        starts = outlook(counts, beliefs * (1 + job % 2))
        self.saw += [
            *(
                (r.job, r.number, r.nodes, r.processors, r.start, r.believed_end, r.changed)
                for r in runs
            ),
            [(run.job, before) for run, before in view.changes.moved_ends.items()],
            (view.now, view.free, view.machine.idle(), view.others_wait, view.arrived),
            [column.tolist() for column in view.believed_ends],
            (starts.tolist(), view.changes.revised, sorted(view.requests)),
        ]
        return int(counts[int(starts.sum() + 7 * len(runs) + view.free + job) % counts.size])


@pytest.mark.parametrize("backfill", RULES)
@settings(max_examples=80)
@given(
    rows=traces(),
    factor=st.sampled_from([1.0, 0.6, None]),
    overrun=st.sampled_from(["extend", "kill"]),
)
def test_a_rule_in_python_sees_the_same_at_arrivals_and_leaves_the_same_records(
    backfill, rows, factor, overrun
):
    curious = Curious()
    policy = Policy(FirstComeFirstServed(), BACKFILLS[backfill], curious)
    compiled, python = both_molded(rows, policy, factor, overrun=overrun)
    assert compiled == python
    part = len(curious.saw) // 3
    assert curious.saw[:part] == curious.saw[part : 2 * part] == curious.saw[2 * part :]


@settings(max_examples=80)
@given(rows=traces(), factor=st.sampled_from([1.0, 0.6]))
def test_who_chooses_again_by_a_rule_in_python_leaves_the_same_records(rows, factor):
    curious = Curious()
    compiled, python = both_molded(
        rows, Policy(FirstComeFirstServed(), Easy(anew=1.0), curious), factor
    )
    assert compiled == python
    part = len(curious.saw) // 3
    assert curious.saw[:part] == curious.saw[part : 2 * part] == curious.saw[2 * part :]


OPEN_RULES = {
    "fair_share": ("replan", FairShare()),
    "fair_share, kept": ("easy", FairShare(when="submit")),
    "fair_share, all": ("easy", FairShare(sum="queued_and_running")),
    "iterative": ("replan", Iterative(depth=3)),
    "iterative by time": ("replan", Iterative(step="time", counts="all")),
    "utilization": ("replan", UtilizationBased(depth=3)),
    "aggressive": ("easy", BestTurnaround(counts="all")),
    "strict": ("none", BestTurnaround()),
    "greedy": ("conservative", BestTurnaround(counts="all")),
    "fair_share, reserved": ("conservative", FairShare()),
    "iterative, reserved": ("conservative", Iterative(depth=3)),
    "fair": ("skip", Fair()),
    "fair, easy": ("easy", Fair()),
    "skip": ("skip", FairShare(efficiency=0.5)),
    "queue_time": ("none", QueueTimeAware(counts="all")),
    "queue_time, mean": ("none", QueueTimeAware(counts="all", queue_time="mean", longest=50.0)),
}


@pytest.mark.parametrize("rule", OPEN_RULES)
@settings(max_examples=40)
@given(rows=traces(), factor=st.sampled_from([1.0, 0.6]))
def test_open_counts_leave_the_same_records(rule, rows, factor):
    backfill, allocation = OPEN_RULES[rule]
    policy = Policy(FirstComeFirstServed(), BACKFILLS[backfill], allocation)
    compiled, python = both_molded(rows, policy, factor)
    assert compiled == python


class Watchful(BestTurnaround):
    """Takes in what happened before each pass, which only Python can do."""

    def open(self, view):
        return type("Watching", (Candidates,), {"watch": lambda self: None})(view, self)


class Narrowing(BestTurnaround):
    """Narrows in Python."""

    def open(self, view):
        return type("Narrow", (Candidates,), {"narrow": lambda self, memory: 1})(view, self)


def replay_of(view):
    """Return a run of nobody that has no ends by limit."""
    return SimpleNamespace(view=view, kills=False, predictor=Oracle(), submit=np.zeros(0))


@pytest.mark.parametrize(
    ("allocation", "is_compiled"),
    [
        (FairShare(), True),
        (FairShare(when="submit"), True),
        (FairShare(sum="queued_and_running"), True),
        (QueueTimeAware(), True),
        (Fair(), True),
        (Watchful(), False),
        (Narrowing(), False),
    ],
)
def test_open_counts_are_compiled_unless_python_narrows_or_watches(allocation, is_compiled):
    told = SimpleNamespace(learns=False)
    view = SimpleNamespace(predictor=told, processors=4, submit_time=[0.0])
    scheduler = OpenScheduler(view, FirstComeFirstServed(), allocation, 1)
    assert (scheduler.compiled_rule(replay_of(view)) is not None) == is_compiled


SHARING = {
    "equi": Equipartition(),
    "deq": DynamicEquipartition(),
    "deq, useful": DynamicEquipartition(parallelism="useful"),
    "expand": GreedyExpansion(),
    "expand, youngest": GreedyExpansion(victims="youngest"),
    "pools, min": Pools(strategy="min"),
    "pools, pref": Pools(strategy="pref"),
    "pools, average": Pools(strategy="average"),
    "marginal": MarginalEfficiency(),
    "marginal, work": MarginalEfficiency(weight="work"),
    "pdpa": PerformanceDriven(step=2, interval=2.0, stable_interval=7.0),
    "pdpa, reclaiming": PerformanceDriven(step=1, interval=3.0, reclaim=True),
    "hesrpt": HeSrpt(),
    "hesrpt, slowdown": HeSrpt(exponent=0.4, objective="slowdown"),
}


def sharing(rule, order=FirstComeFirstServed):
    return Policy(order(), BACKFILLS["easy"], Request(), SHARING[rule])


@pytest.mark.parametrize("rule", SHARING)
@settings(max_examples=60)
@given(
    rows=traces(),
    factor=st.sampled_from([1.0, 0.6, 3.0, None]),
    order=st.sampled_from([FirstComeFirstServed, ShortestFirst, LargestFirst]),
)
def test_shared_processors_leave_the_same_records(rule, rows, factor, order):
    """With jobs of one count among them, at many instants at once, with a curve and without."""
    compiled, python = both_molded(rows, sharing(rule, order), factor)
    assert compiled == python


@pytest.mark.parametrize("factor", [1.0, 0.4, None])
@pytest.mark.parametrize("rule", SHARING)
def test_processors_shared_by_many_jobs_leave_the_same_records(rule, factor):
    """Of 200 jobs whose runtimes lie in several blocks on 700 processors."""
    rows = [(when, count, took, 2.0 * took) for when, count, took, _ in crowd(5, 200, 300)]
    compiled, python = both_molded(rows, sharing(rule), factor, processors=700)
    assert compiled == python
    assert len(compiled["allocations"]["job"]) > 225


@pytest.mark.parametrize("processors", [64, 700])
@pytest.mark.parametrize(
    "asked",
    [
        "predictor=oracle",
        "predictor=user_estimate",
        "predictor=noisy_oracle",
        "predictor=oracle moldability=stepwise moldability.share=0.7",
        "predictor=oracle moldability.size_exponent=0.3",
        "predictor=oracle moldability.share=0.5 policy/backfill=none workload.jobs=220",
    ],
)
@pytest.mark.parametrize("rule", ["equi", "deq", "expand", "pools", "pdpa", "marginal", "hesrpt"])
def test_shared_processors_leave_the_same_records_with_a_table_and_without(rule, asked, processors):
    """Known and noisy beliefs, of requests alone, of curves of jobs' own, and strict heads."""
    compiled, python = both_composed(
        f"policy={rule}", "workload.jobs=150", *asked.split(),
        f"cluster.processors={processors}", "workload.load=1.1",
    )  # fmt: skip
    assert compiled == python
    assert len(compiled["allocations"]["job"]) > 250


class Waking(Equipartition):
    """Says in one class what is compiled and what only Python can be asked."""

    shares = staticmethod(equal_shares)

    def wake(self, beliefs):
        return beliefs.view.now + 1.0


class StartingOnTwo(Equipartition):
    """Says what is asked before the run."""

    def start_count(self, beliefs, job):
        return min(2, beliefs.view.extremes(job)[1])


@pytest.mark.parametrize(
    ("backfill", "rule", "is_compiled"),
    [
        ("easy", Waking(), False),
        ("easy", StartingOnTwo(), True),
        ("easy", Equipartition(), True),
        ("easy", Equipartition(cost=Constant(0.0)), True),
        ("easy", Equipartition(cost=Constant(1.0)), False),
        ("easy", Equipartition(cost=Phases(1.0, 0.0, 0.0)), False),
        ("easy", Equipartition(distance=1.0), False),
        ("easy", Equipartition(reclaim=False), False),
        ("easy2", Equipartition(), False),
        ("conservative", Equipartition(), False),
        ("easy", DynamicEquipartition(), True),
        ("easy", MarginalEfficiency(), True),
        ("easy", MarginalEfficiency(weight="work"), True),
        ("none", Equipartition(), True),
        ("easy", HeSrpt(), True),
        ("easy", PerformanceDriven(), True),
        ("easy", PerformanceDriven(reclaim=True), True),
    ],
)
def test_sharing_at_no_cost_under_easy_is_compiled(backfill, rule, is_compiled):
    trace = trace_of([(0.0, 1, 5.0), (1.0, 2, 5.0)])
    truth = ToyTruth(lambda job, n: 8.0 / n, np.array([1, 2]), np.array([4, 4]))
    policy = Policy(FirstComeFirstServed(), BACKFILLS[backfill], Request(), rule)
    oracle = Oracle()
    oracle.bind_truth(truth.runtimes, 0)
    engine = Engine(Setup(trace, truth, policy, oracle, Dedicated(4)))
    assert (compiled_passes(engine) is not None) == is_compiled
    engine.kills = True
    assert compiled_passes(engine) is None


@pytest.mark.parametrize("order", ["fcfs", "sjf", "ljf", "wfp3"])
def test_sharing_is_compiled_in_every_order_that_stays(order):
    def seen(engine):
        found.append(compiled_passes(engine))
        return found[0]

    found = []
    asked = "policy=hesrpt", f"policy/order={order}", "predictor=oracle", "workload.jobs=50"
    config = composed(*asked, "baseline=null")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sim.engine.run.compiled_passes", seen)
        play(config, config, set_scene(config, 0))
    assert (found[0] is not None) == (order != "wfp3")


@pytest.mark.parametrize("kind", [EasyScheduler, ConservativeScheduler])
def test_schedulers_of_ones_own_are_not_compiled(kind):
    own = type("Own", (kind,), {"decide": lambda self: []})
    view = SimpleNamespace(predictor=Oracle(), load=None, processors=4, submit_time=[0.0])
    made = [one(view, FirstComeFirstServed(), Request()) for one in (kind, own)]
    assert made[0].compiled_rule(replay_of(view)) is not None
    assert made[1].compiled_rule(replay_of(view)) is None


@pytest.mark.parametrize("reservations", [0, 1, 3])
def test_any_number_of_reservations_is_compiled(reservations):
    view = SimpleNamespace(predictor=Oracle(), load=None, processors=4, submit_time=[0.0])
    scheduler = EasyScheduler(view, FirstComeFirstServed(), Request(), reservations)
    assert scheduler.compiled_rule(replay_of(view)) is not None


@pytest.mark.parametrize(
    ("policy", "predictor"),
    [
        ("fcfs", "adept"),
        ("easy", "amdahl"),
        ("easy policy.backfill.reservations=4", "adept"),
        ("sa_easy policy.backfill.reservations=2 policy.backfill.anew=null", "adept"),
        ("conservative", "adept"),
        ("sa", "adept"),
        ("sa_easy", "adept"),
        ("sa_easy", "regression"),
        ("sa_easy", "noisy_oracle_100"),
        ("efficiency", "repaired"),
    ],
)
def test_predictors_that_learn_leave_the_same_records(policy, predictor):
    """They are told and asked in the same order, of crowded queues, with late jobs."""
    asked = (*f"policy={policy}".split(), f"predictor={predictor}", "workload.load=1.1")
    compiled, python = both_composed(*asked, "workload.jobs=150")
    assert compiled == python


def test_a_start_at_an_instant_that_asks_nobody_is_explained_too():
    """Of 400 jobs with seed 6 one starts where no run that teaches ends and nobody arrives."""
    asked = ("policy=easy", "predictor=adept", "workload.load=1.1", "workload.jobs=400")
    compiled, python = both_composed(*asked, "seed=6")
    assert compiled == python


@pytest.mark.slow
def test_sa_under_easy_has_room_for_a_queue_of_all_jobs():
    """A profile of too few breakpoints is written beyond its end, where nobody looks."""
    asked = ("policy=easy", "policy/allocation=sa", "predictor=oracle", "workload.jobs=1500")
    compiled, python = both_composed(*asked, "workload.load=50")
    assert compiled == python
    assert len(set(compiled["start_time"])) > 500


@pytest.mark.parametrize(
    "asked",
    [
        "policy=sa",
        "policy=sa policy.allocation.adopters=0.5",
        "policy=sa menu=all policy.allocation.extra_area=idle",
        "policy=sa moldability=special",
        "policy=aggressive",
        "policy=iterative menu=all",
        "policy=iterative policy.allocation.advice.repair=always",
        "policy=fair_share",
    ],
)
def test_an_oracle_that_is_asked_of_all_jobs_at_once_leaves_the_same_records(asked):
    """It is said to have been asked as often, and which curves decided."""
    crowded = "workload.load=1.1", "workload.jobs=150", "predictor=oracle"
    compiled, python = both_composed(*asked.split(), *crowded)
    assert compiled == python


@pytest.mark.parametrize("rule", ["sa", "aggressive", "equi"])
def test_an_oracle_of_another_truth_is_believed_as_it_says(rule):
    choosing = {"sa": SmallestTurnaround(), "aggressive": BestTurnaround()}
    trace = trace_of([(when, count, took, 9.0 * took) for when, count, took, _ in crowd(2, 60, 16)])
    truth = ToyTruth(lambda job, n: 8.0 / n, np.ones(60, int), np.full(60, 16))
    allocation = choosing.get(rule, Request())
    shared = Equipartition() if rule == "equi" else None
    policy = Policy(FirstComeFirstServed(), BACKFILLS["easy"], allocation, shared)

    def made(watchers):
        oracle = Oracle()
        oracle.bind_truth(lambda job, counts: 8.0 / counts**0.5, 0)
        setup = Setup(trace, truth, policy, oracle, Dedicated(16), watchers=watchers)
        return simulate(setup)

    compiled, python = both(made)
    assert compiled == python


class NamedRequest(Request):
    """A subclass that overrides nothing."""

    label = "mine"


class OneProcessor(Request):
    """A subclass with a rule of its own."""

    def choose(self, job, view, outlook):
        return 1


class NamedBackfill(Easy):
    """Begins a scheduler of a subclass that overrides nothing."""

    def begin(self, view, order, allocation):
        return NamedScheduler(view, order, allocation)


class NamedScheduler(EasyScheduler):
    """A subclass that overrides nothing."""


class StrictBackfill(Easy):
    """Begins a scheduler of a subclass with a rule of its own."""

    def begin(self, view, order, allocation):
        return HeadsAlone(view, order, allocation)


class HeadsAlone(EasyScheduler):
    """Nobody passes the head."""

    def find_starts(self):
        self.strict, self.backfilling["strict"] = True, True
        return super().find_starts()


@pytest.mark.parametrize(
    ("backfill", "allocation", "is_compiled"),
    [
        (Easy(), NamedRequest(), True),
        (NamedBackfill(), Request(), True),
        (Easy(), OneProcessor(), True),
        (StrictBackfill(), Request(), False),
    ],
)
def test_a_subclass_is_compiled_by_what_it_overrides(
    backfill, allocation, is_compiled, monkeypatch
):
    seen = []

    def passes(*given):
        seen.append(CompiledRun(*given))
        return seen[-1]

    monkeypatch.setattr("sim.engine.run.CompiledRun", passes)
    rows = crowd(5, 200, 100)
    policy = Policy(FirstComeFirstServed(), backfill, allocation)
    own, easy = replay(rows, 100, policy), replay(rows, 100, rigid("easy"))
    assert len(seen) == 1 + is_compiled  # EASY itself is compiled
    assert (plain(own) == plain(easy)) == (is_compiled and not isinstance(allocation, OneProcessor))
