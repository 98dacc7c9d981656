"""A pass over the same state and the same memory gives the same decisions twice."""

import copy

import pytest

from scripts.composing import composed
from scripts.record_results import names
from sim.engine.engine import Engine
from sim.simulation.scene import play, set_scene

pytestmark = pytest.mark.filterwarnings("ignore")
CLUSTERS = {
    "shared": ("cluster=shared", "cluster.processors=16", "cluster.history=1200"),
    "failing": ("cluster=failing", "cluster.mtbf=100000", "cluster.processors=16"),
}


class Twice:
    """A scheduler whose every pass is made by a copy of its memory first."""

    def __init__(self, engine):
        self.engine, self.inner, self.passes = engine, engine.scheduler, 0

    def decide(self):
        engine, state, shared = self.engine, self.engine.state, self.engine.view
        kept = [engine, engine.predictor, engine.machine, engine.work, engine.log, engine.clock]
        kept += [state, state.tables, shared, shared._beliefs, shared.predictor, state.load]
        kept += shared._columns.values()
        kept += [*state.running.values(), *state.ended, *state.moved_ends, *state.resized]
        twin = copy.deepcopy(self.inner, {id(one): one for one in kept})
        first, second = list(twin.decide()), list(self.inner.decide())
        assert first == second
        self.passes += 1
        return second


@pytest.fixture
def schedulers(monkeypatch):
    """Every scheduler that began; runs whose passes are compiled are made in Python, too."""
    begun, begin = [], Engine.__init__

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
