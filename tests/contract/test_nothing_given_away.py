"""Nothing that a policy, a predictor or a watcher is handed leads to what it must not know.

Runtimes, requested times and submit times of the toys are drawn so that no two are alike and
none comes about by chance. At some instants of a run everything is walked through that a view,
a scheduler, a predictor, an observation and a watcher lead to.
"""

from collections import deque
from functools import cache
from itertools import cycle, islice
from types import MappingProxyType, MethodType

import numpy as np
import pandas as pd
import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from walking import COLUMNS, attributes_of, numbers_in, reachable

from predictors.base import Wrapper
from predictors.in_loop.oracle import NeedsTruth
from sim.composition import prepare
from sim.config import CONFIG_FOLDER
from sim.engine.engine import Engine
from sim.engine.run import compiled_passes
from sim.errors import SimError
from sim.results.metrics import summarise
from sim.simulation.build import build
from sim.simulation.scene import play, set_scene
from sim.state.decisions import Preferences

prepare()
pytestmark = pytest.mark.filterwarnings("ignore")
POLICIES = sorted({path.stem for path in (CONFIG_FOLDER / "policy").glob("*.yaml")} - {"recorded"})
PREDICTORS = sorted(path.stem for path in (CONFIG_FOLDER / "predictor").glob("*.yaml"))
JOBS, PROCESSORS = 40, 16
TOY = (
    "workload=table", "workload.load=null", "workload.applications=3", "moldability.share=0.9",
    "moldability.malleable=0.5", f"cluster.processors={PROCESSORS}",
)  # fmt: skip
MACHINES = {
    "dedicated": (),
    "failing": ("cluster=failing", "cluster.mtbf=100000"),
    "shared": ("cluster=shared", "cluster.history=1200"),
}
ALIKE = 1e-12
"""Relative difference of numbers that count as the same."""


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table of jobs; no number in it is round."""
    rng = np.random.default_rng(11)
    runtime = rng.lognormal(5.5, 1.0, JOBS) + 8.0
    frame = pd.DataFrame(
        {
            "job_id": np.arange(1, JOBS + 1),
            "submit_time": np.cumsum(rng.exponential(70.0, JOBS)) + rng.random(JOBS),
            "runtime": runtime,
            "requested_processors": 2 ** rng.integers(0, 4, JOBS),
            "requested_time": runtime * rng.uniform(1.1, 4.0, JOBS) + rng.random(JOBS),
            "user": np.arange(JOBS) % 5,
            "application": np.arange(JOBS) % 3,
        }
    )
    path = tmp_path_factory.mktemp("table") / "jobs.csv"
    frame.to_csv(path, index=False, float_format="%.15g")
    return path


@cache
def composed(*overrides):
    with initialize_config_dir(str(CONFIG_FOLDER), version_base="1.3"):
        config = compose("config", overrides=["seed=3", *overrides])
    return OmegaConf.to_container(config, resolve=True)


def learning(predictor):
    """Return what keeps a predictor from runs before the start."""
    learns = "calibration" in OmegaConf.load(CONFIG_FOLDER / f"predictor/{predictor}.yaml")
    return ["predictor.calibration=0"] if learns else []


def is_honest(predictor):
    part = build(composed(f"predictor={predictor}")["predictor"], "predictor")
    return not any(isinstance(one, NeedsTruth) for one in (part, getattr(part, "before", None)))


class Secrets:
    """What nobody may know at an instant, from a run that was played before."""

    def __init__(self, outcome):
        jobs, truth = outcome.trace.jobs, outcome.truth
        self.submit = jobs["submit_time"].to_numpy()
        self.end = np.asarray(outcome.records.end_time)
        counts = np.arange(1, PROCESSORS + 1)
        self.runtimes = [
            np.append(truth.runtimes(job, counts), jobs["reference_runtime"].iat[job])
            for job in range(len(jobs))
        ]
        self.requested = jobs["requested_time"].to_numpy()

    def at(self, now):
        """Return the secrets, ascending, with what each is."""
        told = []
        for job in np.flatnonzero(self.end > now).tolist():
            told += [(seconds, f"runtime of {job}") for seconds in self.runtimes[job]]
            told.append((self.end[job], f"end of {job}"))
            told.append((self.end[job] - now, f"time that is left to {job}"))
        for job in np.flatnonzero(self.submit > now).tolist():
            told.append((self.submit[job], f"submit time of {job}"))
            told.append((self.requested[job], f"requested time of {job}"))
        return sorted((value, what) for value, what in told if np.isfinite(value))


def found_in(roots, secrets):
    """Return by which way which secrets are reached."""
    values, found = np.array([value for value, _ in secrets]), []
    for way, thing in reachable(roots):
        numbers = numbers_in(thing)
        numbers = numbers[np.isfinite(numbers) & (numbers != np.round(numbers, 6))]
        if not (numbers.size and values.size):
            continue
        place = np.searchsorted(values, numbers)
        for near in (np.maximum(place - 1, 0), np.minimum(place, values.size - 1)):
            same = np.abs(values[near] - numbers) <= ALIKE * np.abs(numbers)
            found += [f"{way}: {secrets[k][1]}" for k in near[same].tolist()]
    return found


def handed_out(engine, policy, heard):
    """Return what policies, predictors and watchers are handed."""
    given = {"view": engine.view, "scheduler": engine.scheduler, "predictor": engine.predictor}
    keeper = engine.scheduler
    while keeper is not None:
        given[f"outlook of {type(keeper).__name__}"] = getattr(keeper, "outlook", None)
        keeper = getattr(keeper, "inner", None)
    watched = getattr(engine, "_watched", lambda: engine)
    return {**given, "policy": policy, "observation": heard[-1:], "watched": watched()}


class Walker:
    """Walks in every so many passes, or where passes are compiled when a predictor is told."""

    def __init__(self, monkeypatch, secrets, every):
        self.secrets, self.every = secrets, every
        self.looks, self.walks, self.found = 0, 0, []
        begin, make_pass, learn = Engine.__init__, Engine._pass, Engine.learn

        def begun(engine, setup):
            self.policy, self.heard = setup.policy, []
            begin(engine, setup)

        def passed(engine, now):
            self.look(engine, now)
            make_pass(engine, now)

        def learned(engine, job, processors, runtime, now, *more):
            observe = engine.predictor.observe
            engine.predictor.observe = lambda one: (self.heard.append(one), observe(one))[1]
            learn(engine, job, processors, runtime, now, *more)
            del engine.predictor.observe
            if engine.compiled is not None:
                self.look(engine, engine.view.now)

        monkeypatch.setattr(Engine, "__init__", begun)
        monkeypatch.setattr(Engine, "_pass", passed)
        monkeypatch.setattr(Engine, "learn", learned)

    def look(self, engine, now):
        self.looks += 1
        if self.looks % self.every == 0 and self.walks < 3:
            self.walks += 1
            given = handed_out(engine, self.policy, self.heard)
            self.found += found_in(given, self.secrets.at(now))


def walked(monkeypatch, *overrides, every=17):
    """Walk through a run of some overrides; return what was found, and how often it was done."""
    config = composed(*overrides)
    secrets = Secrets(play(config, config, set_scene(config, 0)).outcome)
    walker = Walker(monkeypatch, secrets, every)
    play(config, config, set_scene(config, 0))
    return walker


PAIRS = [*zip(POLICIES, cycle(PREDICTORS), islice(cycle(MACHINES), len(POLICIES)), strict=False)]


@pytest.mark.parametrize(("policy", "predictor", "machine"), PAIRS)
def test_no_way_leads_to_a_truth_or_a_job_to_come(policy, predictor, machine, table, monkeypatch):
    if not is_honest(predictor):
        predictor = "user_estimate"
    chosen = [*TOY, f"workload.path={table}", f"policy={policy}", f"predictor={predictor}"]
    chosen += learning(predictor)
    monkeypatch.setattr("sim.engine.run.compiled_passes", lambda engine: None)
    try:
        walker = walked(monkeypatch, *chosen, *MACHINES[machine])
    except SimError:  # a policy for another machine
        other = "shared" if machine != "shared" else "dedicated"
        walker = walked(monkeypatch, *chosen, *MACHINES[other])
    assert walker.walks == 3
    assert not walker.found[:5]


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "sa", "sa_easy"])
def test_nor_where_passes_are_compiled(policy, table, monkeypatch):
    chosen = (*TOY, f"workload.path={table}", f"policy={policy}", "predictor=adept")
    walker = walked(monkeypatch, *chosen, "predictor.calibration=0", every=5)
    assert walker.walks == 3
    assert not walker.found[:5]


@pytest.mark.parametrize("policy", ["easy", "conservative", "sa_easy", "iterative", "equi"])
def test_compiled_passes_keep_jobs_to_come_from_the_state_of_a_view(policy, table, monkeypatch):
    seen = []

    def made(engine):
        passes = compiled_passes(engine)
        shown, own = engine.view._state.tables, passes.tables
        seen.append(
            (
                own.belief.any() and own.processors.any(),
                shown.belief.any() or shown.processors.any(),
            )
        )
        return passes

    monkeypatch.setattr("sim.engine.run.compiled_passes", made)
    chosen = (*TOY, f"workload.path={table}", f"policy={policy}", "predictor=oracle")
    config = composed(*chosen)
    play(config, config, set_scene(config, 0))
    assert [shown for _, shown in seen] == [False]
    assert seen[0][0] == (policy in ("easy", "conservative", "equi"))


def test_nor_while_jobs_evolve(monkeypatch):
    toy = ("workload=decks", "workload.cycles=60", "evolving=adaptive", "cluster=failing")
    asks = Preferences(reads_cycle_times=True)
    monkeypatch.setattr("sim.policies.base.Policy.preferences", lambda policy: asks)
    walker = walked(monkeypatch, *toy, "policy=easy", "predictor=dynamic", every=3)
    assert walker.walks == 3
    assert not walker.found[:5]


# Nothing can be written


def write_to(thing):
    """Try to write to a thing in every way that it has; return whether any was let through."""
    if isinstance(thing, COLUMNS):
        tries = [
            lambda: setattr(thing.flags, "writeable", True),
            lambda: thing.__setitem__(0, thing[0] + 1),
        ]
    elif isinstance(thing, dict | MappingProxyType):
        key = next(iter(thing), 0)
        tries = [lambda: thing.__setitem__(key, None), lambda: thing.clear()]
    elif isinstance(thing, list | deque):
        tries = [lambda: thing.append(0), lambda: thing.clear()]
    elif isinstance(thing, set | frozenset):
        tries = [lambda: thing.add(0), lambda: thing.clear()]
    elif isinstance(thing, tuple):
        tries = [lambda: thing.__setitem__(0, None)]
    else:
        tries = [
            lambda name=name: setattr(thing, name, 0)
            for name in attributes_of(thing)
            if not name.startswith("_")
        ]
    let_through = False
    for one in tries:
        try:
            one()
        except (AttributeError, TypeError, ValueError, IndexError):
            continue
        let_through = True
    return let_through


def handed_by(view):
    """Return what a view hands out by its public names."""
    names = [name for name in dir(view) if not name.startswith("_")]
    found = {name: getattr(view, name) for name in names}
    jobs = [*view.running, *view.arrived]
    for job in jobs[:3]:
        for name in ("counts", "extremes"):
            found[f"{name}({job})"] = getattr(view, name)(job)
        found[f"support({job})"] = view.predictor.support(job)
    found["idle()"] = view.machine.idle()
    return {name: one for name, one in found.items() if not isinstance(one, MethodType)}


class Scribbler(Wrapper):
    """A predictor that writes to whatever it is handed."""

    def attach(self, jobs):
        self.jobs, self.written = jobs, []
        super().attach(jobs)

    def _scribble(self, **given):
        self.written += [way for way, one in reachable(given) if write_to(one)]

    def curve(self, job, counts):
        if len(counts) > 1:
            self._scribble(jobs=self.jobs, counts=counts)
        return super().curve(job, counts)


WRITERS = [
    ("easy", "adept", "dedicated"),
    ("conservative", "user_estimate", "failing"),
    ("sa_easy", "adept", "failing"),
    ("equi", "adept", "dedicated"),
    ("pdpa", "user_estimate", "dedicated"),
    ("load_aware", "rational", "shared"),
    ("iterative", "consensus", "dedicated"),
]


def digests(outcome):
    records = outcome.records
    columns = records.submit_time, records.start_time, records.end_time, records.believed_runtime
    return [np.asarray(one).tobytes() for one in columns], summarise(outcome)


@pytest.mark.parametrize(("policy", "predictor", "machine"), WRITERS)
def test_nothing_that_is_handed_out_can_be_written(policy, predictor, machine, table, monkeypatch):
    chosen = [f"workload.path={table}", f"policy={policy}", f"predictor={predictor}"]
    config = composed(*TOY, *chosen, *learning(predictor), *MACHINES[machine])
    monkeypatch.setattr("sim.engine.run.compiled_passes", lambda engine: None)
    usual, written = digests(play(config, config, set_scene(config, 0)).outcome), []
    make_pass, looks = Engine._pass, iter(range(10**6))

    def passed(engine, now):
        if next(looks) % 9 == 5:
            view = engine.view
            stops = (view, engine.predictor)
            ways = reachable(handed_by(view), stops, public=True)
            written.extend(way for way, one in ways if write_to(one))
            for name in [name for name in dir(view) if not name.startswith("_")]:
                with pytest.raises(AttributeError):
                    setattr(view, name, 0)
        make_pass(engine, now)

    monkeypatch.setattr(Engine, "_pass", passed)
    scribblers = []

    def scribbling(node, key, **more):
        made = build(node, key, **more)
        if key == "predictor":
            made = Scribbler(made)
            scribblers.append(made)
        return made

    monkeypatch.setattr("sim.simulation.scene.build", scribbling)
    again = digests(play(config, config, set_scene(config, 0)).outcome)
    assert again == usual
    assert not written[:5]
    assert not scribblers[0].written[:5]
