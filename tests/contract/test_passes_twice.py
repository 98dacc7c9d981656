"""A pass over the same state and the same memory gives the same decisions twice."""

import copy

import pytest
from numba import njit

from scripts.composing import composed
from scripts.record_results import names
from sim.engine.engine import Engine
from sim.policies.passes import malleable, memory
from sim.simulation.scene import play, set_scene
from sim.state import run_state
from sim.state.waiting_queue import BY_PLACE, Queue, WaitingQueue

pytestmark = pytest.mark.filterwarnings("ignore")
CLUSTERS = {
    "shared": ("cluster=shared", "cluster.processors=16", "cluster.history=1200"),
    "failing": ("cluster=failing", "cluster.mtbf=100000", "cluster.processors=16"),
}


def copies_of(kind, grows, made=None):
    """Return how to copy a structref, with the tables that compiled code replaces."""
    space = {}
    exec(f"def read(one):\n    return ({''.join(f'one.{name}, ' for name in grows)})", space)
    read, made = njit(space["read"]), made or run_state.maker(kind)

    def copied(one, memo):
        found = dict(zip(grows, read(one), strict=True))
        names = kind.__annotations__
        every = {name: found[name] if name in found else getattr(one, name) for name in names}
        fields = {
            name: value if callable(value) else copy.deepcopy(value, memo)
            for name, value in every.items()
        }
        twin = memo[id(one)] = run_state.structure(made, fields, grows)
        return twin

    return copied


def copied_queue(queue, memo):
    """Return a queue of the same jobs, which goes on by itself."""
    twin = memo[id(queue)] = copy.copy(queue)
    tables = copy.deepcopy(queue.tables, memo)
    rest = {name: value for name, value in vars(queue).items() if name != "tables"}
    vars(twin).update(copy.deepcopy(rest, memo), tables=tables)
    twin._at = tables.at
    for name in ("first", "last", "waiting", "layout"):
        setattr(twin, f"_{name}", tables.at[name])
    for name in BY_PLACE:
        setattr(twin, name, getattr(tables, name))
    return twin


STRUCTURES = {
    run_state.RunState: (run_state.GROWING,),
    memory.RuleMemory: (memory.GROWING,),
    Queue: ((),),
    malleable.SharingMemory: (("allocations",), malleable._make),
}


class Twice:
    """A scheduler whose every pass is made by a copy of its memory first."""

    def __init__(self, engine):
        self.engine, self.inner, self.passes = engine, engine.scheduler, 0

    def decide(self):
        engine, state, shared = self.engine, self.engine.state, self.engine.view
        kept = [engine, engine.predictor, engine.machine, engine.work, engine.log, engine.clock]
        kept += [state, state.tables, shared, shared._beliefs, shared.predictor, state.load]
        kept += vars(shared).values()
        kept += [*state.running.values(), *state.ended, *state.moved_ends, *state.granted]
        twin = copy.deepcopy(self.inner, {id(one): one for one in kept})
        first, second = list(twin.decide()), list(self.inner.decide())
        assert first == second
        self.passes += 1
        return second


@pytest.fixture
def schedulers(monkeypatch):
    """Every scheduler that began; runs whose passes are compiled are made in Python, too."""
    begun, begin = [], Engine.__init__
    for kind, known in STRUCTURES.items():
        monkeypatch.setattr(kind, "__deepcopy__", copies_of(kind, *known), raising=False)
    monkeypatch.setattr(WaitingQueue, "__deepcopy__", copied_queue, raising=False)

    def watched(engine, setup):
        begin(engine, setup)
        engine.scheduler = Twice(engine)
        begun.append(engine.scheduler)

    monkeypatch.setattr(Engine, "__init__", watched)
    return begun


def assert_same_twice(schedulers, *overrides):
    config = composed("baseline=null", *overrides)
    play(config, config, set_scene(config, 0))
    assert schedulers
    assert all(one.passes > 0 for one in schedulers)


@pytest.mark.parametrize("policy", sorted({*names("policy")} - {"recorded"}))
def test_every_preset(policy, schedulers):
    assert_same_twice(schedulers, f"policy={policy}", "predictor=adept", "workload.jobs=20")


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("policy", ["easy", "sa_easy", "conservative", "iterative", "equi"])
def test_other_machines(policy, cluster, schedulers):
    toy = (f"policy={policy}", *CLUSTERS[cluster], "workload.jobs=10")
    assert_same_twice(schedulers, *toy)


def test_running_jobs_that_ask(schedulers):
    evolving = ("workload=decks", "workload.cycles=60", "evolving=adaptive")
    assert_same_twice(schedulers, "policy=expand", "predictor=dynamic", *evolving)
