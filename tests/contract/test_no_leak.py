"""What a job's runtime does before the job has ended: nothing, to anybody but the oracles.

A log is replayed twice; in the second one job takes another time on every
count. Until the earlier of its two ends, all passes, starts and predictions must
be the same to the last bit. ``MOLDSIM_ALL_PAIRS=1`` runs every preset with every
predictor; the plain tests take each of them at least once.
"""

import os
from dataclasses import FrozenInstanceError, replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from swf_samples import job_line
from toys import in_python

from predictors.in_loop.oracle import NeedsTruth
from sim.composition import prepare
from sim.config import CONFIG_FOLDER
from sim.engine.engine import Engine
from sim.engine.watcher import Watcher
from sim.errors import PolicyError
from sim.machine.base import Dedicated
from sim.simulation.build import build
from sim.simulation.scene import play, set_scene
from sim.state.machine_state import Run
from sim.state.view import View
from workloads.base import Trace

prepare()
POLICIES = sorted({path.stem for path in (CONFIG_FOLDER / "policy").glob("*.yaml")} - {"recorded"})
PREDICTORS = sorted(path.stem for path in (CONFIG_FOLDER / "predictor").glob("*.yaml"))
ORACLES = ["oracle", "repaired", *(name for name in PREDICTORS if name.startswith("noisy_oracle"))]
"""All that holds a handle on the truth; the others must not, see below."""
HONEST = [name for name in PREDICTORS if name not in ORACLES]
EVERY = bool(os.environ.get("MOLDSIM_ALL_PAIRS"))
JOBS, PROCESSORS = 45, 32
CHANGED = {7: 3.0, 11: None}
"""Jobs by place, and by what their runtime is multiplied; None: by something else on each count."""
TOY = (
    "workload=swf", "workload.size=hidden", "workload.sizes=null", "workload.load=null",
    "workload.applications=4", "moldability.share=0.9", "moldability.malleable=0.5",
)  # fmt: skip


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Return a function from a changed job and a factor to a log with requested times."""
    folder = tmp_path_factory.mktemp("logs")

    def write(job=None, factor=1.0):
        rng = np.random.default_rng(5)
        lines = [f"; MaxProcs: {PROCESSORS}"]
        submit = np.cumsum(rng.exponential(60.0, JOBS)).astype(int)
        for k in range(JOBS):
            runtime, count = int(rng.lognormal(5.5, 1.0)) + 8, int(2 ** rng.integers(0, 5))
            asked = int(runtime * rng.uniform(0.7, 4.0)) + 1
            runtime = int(runtime * factor) if k == job else runtime
            fields = {"requested_processors": count, "allocated_processors": count}
            fields |= {"run_time": runtime, "requested_time": asked, "user_id": k % 5}
            fields |= {"executable_number": k % 4, "submit_time": submit[k]}
            lines.append(job_line(job_number=k + 1, **fields))
        path = folder / f"log-{job}-{factor}.swf"
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


@cache
def composed(*overrides):
    with initialize_config_dir(str(CONFIG_FOLDER), version_base="1.3"):
        config = compose("config", overrides=[*TOY, *overrides])
    return OmegaConf.to_container(config, resolve=True)


class Passes(Watcher):
    """Notes when a policy looked, and what it decided."""

    def __init__(self):
        self.noted = []

    def decided(self, engine, decisions):
        self.noted.append((engine.view.now, repr(list(decisions))))

    def finished(self, engine):
        pass


def replayed(config, scene, monkeypatch):
    """Return the passes of a run, its start and end times, and its predictions."""
    passes = Passes()
    monkeypatch.setattr("sim.simulation.scene.watchers", lambda *_: (passes,))
    with in_python():
        return passes.noted, play(config, config, scene).outcome


def seen_until(instant, noted, outcome):
    """Return all that happened before an instant and could be known then."""
    records, tables = outcome.records, outcome.tables
    held, said = records.allocations, tables.predictions
    allocations = sorted(
        (held.start_time.item(k), held.job.item(k), held.processors.item(k))
        for k in np.flatnonzero(held.start_time < instant)
    )
    columns = [name for name in said.columns if name != "actual"]
    predictions = said.loc[said["time"] < instant, columns].to_json(double_precision=15)
    believed = np.asarray(records.believed_runtime)[records.start_time < instant]
    return [one for one in noted if one[0] < instant], allocations, predictions, believed.tobytes()


class Reshaped:
    """A truth in which one job has another curve: its time on n processors times `warp(n)`."""

    def __init__(self, truth, job):
        self.truth, self.job = truth, job
        self.serial_time = truth.serial_time.copy()
        self.serial_time[job] *= self.warp(1)

    def __getattr__(self, name):
        return getattr(self.truth, name)

    @staticmethod
    def warp(counts):
        return 1.0 + (3 * np.asarray(counts) % 7) / 4.0

    def runtimes(self, job, counts):
        return self.truth.runtimes(job, counts) * (self.warp(counts) if job == self.job else 1.0)

    def runtimes_at(self, jobs, counts):
        return self.truth.runtimes_at(jobs, counts) * np.where(
            np.asarray(jobs) == self.job, self.warp(counts), 1.0
        )

    def runtime_on(self, job, count):
        return self.truth.runtime_on(job, count) * (self.warp(count) if job == self.job else 1.0)


def reshaped(scene, job):
    """Return the scene with another curve for a job, by place in the log."""
    at = np.flatnonzero(scene.trace.jobs["job_id"] == job + 1).item()
    jobs = scene.trace.jobs.copy()
    count = jobs["requested_processors"].to_numpy()[at]
    runtimes = jobs["reference_runtime"].to_numpy().copy()
    runtimes[at] *= Reshaped.warp(count)
    jobs["reference_runtime"] = runtimes
    trace = replace(scene.trace, jobs=jobs)
    return replace(scene, trace=trace, truth=Reshaped(scene.truth, at))


def differs(log, monkeypatch, *overrides, changed=tuple(CHANGED)):
    """Return for which of some jobs another runtime shows before either of its ends."""

    def run(job=None, factor=1.0):
        config = composed(f"workload.path={log(job, factor or 1.0)}", *overrides)
        scene = set_scene(config, 0)
        return replayed(config, reshaped(scene, job) if factor is None else scene, monkeypatch)

    shows, usual = [], run()
    for job in changed:
        runs = usual, run(job, CHANGED[job])
        place = [np.flatnonzero(one.trace.jobs["job_id"] == job + 1).item() for _, one in runs]
        ends = [one.records.end_time[at] for (_, one), at in zip(runs, place, strict=True)]
        assert ends[0] != ends[1]
        before, after = (seen_until(min(ends), *one) for one in runs)
        assert len(before[0]) > 3
        if before != after:
            shows.append(job)
    return shows


def pairs():
    """Return policies with predictors: all, or each of them at least once."""
    if EVERY:
        return list(product(POLICIES, HONEST))
    return [(name, HONEST[k % len(HONEST)]) for k, name in enumerate(POLICIES)]


def learning(predictor):
    """Return what keeps a predictor from runs before the start."""
    learns = "calibration" in OmegaConf.load(CONFIG_FOLDER / f"predictor/{predictor}.yaml")
    return ["predictor.calibration=0"] if learns else []


@pytest.mark.parametrize("predictor", PREDICTORS)
def test_only_oracles_ask_for_the_truth(predictor):
    part = build(composed(f"predictor={predictor}")["predictor"], "predictor")
    asks = any(isinstance(one, NeedsTruth) for one in (part, getattr(part, "before", None)))
    assert asks == (predictor in ORACLES)


@pytest.mark.parametrize(("policy", "predictor"), pairs())
def test_no_runtime_shows_before_the_job_has_ended(policy, predictor, log, monkeypatch):
    chosen = (f"policy={policy}", f"predictor={predictor}", *learning(predictor))
    measures = policy == "pdpa"  # the efficiency of running jobs: that stays with the first
    changed = list(CHANGED)[: 1 if measures else None]
    assert not differs(log, monkeypatch, *chosen, changed=changed)


def test_measured_efficiencies_show_another_curve(log, monkeypatch):
    chosen = ("policy=pdpa", "predictor=user_estimate", "policy.reallocation.interval=20")
    share = ("moldability.share=1.0", "moldability.malleable=1.0")
    assert differs(log, monkeypatch, *chosen, *share) == [11]


@pytest.mark.parametrize("cluster", ["shared", "failing"])
@pytest.mark.parametrize("predictor", ["adept", "rational", "consensus"])
def test_nor_on_another_machine(cluster, predictor, log, monkeypatch):
    chosen = (f"cluster={cluster}", f"predictor={predictor}", *learning(predictor))
    assert not differs(log, monkeypatch, "policy=sa", *chosen)


@pytest.mark.parametrize(
    ("policy", "predictor"),
    list(product(POLICIES, ORACLES)) if EVERY else [("sa", name) for name in ORACLES],
)
def test_an_oracle_is_found_out(policy, predictor, log, monkeypatch):
    shows = differs(log, monkeypatch, f"policy={policy}", f"predictor={predictor}")
    assert shows == list(CHANGED)


# What can be asked of the view


class Prying:
    """A policy that tries to read true efficiencies, and starts jobs first come, first served."""

    sensor_noise = noise = 0.0

    def __init__(self, inner):
        self.inner = inner
        self.measured = {}
        self.refused = 0

    def begin(self, view):
        self.view, self.scheduler = view, self.inner.begin(view)
        return self

    def decide(self):
        view = self.view
        for job in range(len(view.submit_time)):
            try:
                answer = view.measured_efficiency(job)
            except PolicyError:
                self.refused += 1
                assert job not in view.running
            else:
                assert answer == view.measured_efficiency(job)
                self.measured.setdefault(job, []).append(answer)
        return self.scheduler.decide()


def test_only_running_jobs_are_measured_and_never_exactly(log, monkeypatch):
    config = composed(f"workload.path={log()}", "policy=fcfs", "predictor=user_estimate")
    policies = []

    def pry(node, key, **more):
        made = build(node, key, **more)
        if key == "policy":
            made = Prying(made)
            policies.append(made)
        return made

    monkeypatch.setattr("sim.simulation.scene.build", pry)
    outcome = play(config, config, set_scene(config, 0)).outcome
    measured, truth = policies[0].measured, outcome.truth
    counts = outcome.trace.jobs["requested_processors"].to_numpy()
    runtimes = outcome.trace.jobs["reference_runtime"].to_numpy()
    exact = truth.serial_time / (counts * runtimes)
    assert policies[0].refused > JOBS
    assert len(measured) > JOBS // 2
    answers = [(value, exact[job]) for job, values in measured.items() for value in values]
    errors = np.log([value / true for value, true in answers])
    assert all(value != true for value, true in answers)
    assert 0.03 < errors.std() < 0.07
    assert len(set(errors)) == len(errors)


class Forging(Prying):
    """Writes runs of its own into the view, and other counts into those that are there."""

    def decide(self):
        view = self.view
        waiting = [job for job in range(len(view.submit_time)) if job not in view.running]
        for job in waiting:
            with pytest.raises(TypeError):
                view.running[job] = Run(job, 0, (), 1, 0.0, 0.0)
            with pytest.raises(PolicyError, match="does not run"):
                view.measured_efficiency(job)
        for job, run in view.running.items():
            with pytest.raises(FrozenInstanceError):
                run.processors += 3
            self.measured.setdefault(job, set()).add(view.measured_efficiency(job))
        return self.scheduler.decide()


def test_a_policy_cannot_assign_to_the_state():
    names = [name for name in dir(View) if not name.startswith("_")]
    assert {"now", "free", "running", "believed_ends", "arrived", "load"} <= set(names)
    view = View.__new__(View)
    assert len(names) <= 25
    for name in names:
        with pytest.raises(AttributeError):
            setattr(view, name, 0)


def test_what_a_policy_writes_into_its_view_opens_no_other_count(log, monkeypatch):
    exactly = ("policy=fcfs", "predictor=user_estimate", "sensor_noise=0")
    config = composed(f"workload.path={log()}", *exactly)
    policies = []

    def forge(node, key, **more):
        made = build(node, key, **more)
        if key == "policy":
            made = Forging(made)
            policies.append(made)
        return made

    monkeypatch.setattr("sim.simulation.scene.build", forge)
    outcome = play(config, config, set_scene(config, 0)).outcome
    jobs = outcome.trace.jobs
    exact = outcome.truth.serial_time / (jobs["requested_processors"] * jobs["reference_runtime"])
    measured = policies[0].measured
    assert len(measured) > JOBS // 2
    assert all(np.allclose(list(values), exact[job]) for job, values in measured.items())


SETTINGS = {
    "dedicated": ("policy=pdpa",),
    "shared": ("cluster=shared", "policy=load_aware", "predictor=rational"),
    "placed": ("cluster=shared", "policy=easy_fastest", "predictor=oracle"),
    "evolving": ("cluster=failing", "evolving=adaptive", "policy=easy", "predictor=dynamic"),
}


def within_reach(root):
    """Yield every object that public names lead to, with the path of names."""
    stack, seen = [("view", root)], set()
    while stack:
        path, thing = stack.pop()
        if id(thing) in seen or isinstance(thing, str | bytes | int | float | np.ndarray | type):
            continue
        seen.add(id(thing))
        yield path, thing
        if isinstance(thing, dict):
            stack += [(f"{path}[{k!r}]", v) for k, v in list(thing.items())[:50]]
        elif isinstance(thing, list | tuple | set):
            stack += [(f"{path}[]", v) for v in list(thing)[:50]]
        elif type(thing).__module__.split(".")[0] in ("sim", "predictors", "workloads"):
            names = [name for name in dir(thing) if not name.startswith("_")]
            found = [(name, getattr(thing, name, None)) for name in names]
            stack += [(f"{path}.{n}", v) for n, v in found if v is not None and not callable(v)]


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_public_name_leads_from_the_view_to_the_truth(setting, log, monkeypatch):
    config = composed(f"workload.path={log()}", *SETTINGS[setting])
    paths = []

    class Wanderer(Passes):
        def decided(self, engine, decisions):
            if len(self.noted) < 20:
                paths.extend(
                    path
                    for path, thing in within_reach(engine.view)
                    if isinstance(thing, Engine | Trace | Dedicated)
                    or any(hasattr(thing, name) for name in ("serial_time", "cpu_at", "during"))
                )
            super().decided(engine, decisions)

    monkeypatch.setattr("sim.simulation.scene.watchers", lambda *_: (Wanderer(),))
    with in_python():
        play(config, config, set_scene(config, 0))
    assert not paths
