"""What one replication simulates: jobs, truth, machine, runs before the start, a policy on them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from predictors.base import Observation, RuntimePredictor, provider, setting
from predictors.cli.terminal import SILENT, Display
from predictors.in_loop.oracle import NeedsTruth, oracles_under_load
from sim.config import Settings, check_sizes
from sim.engine.protocols import is_exactly
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.engine.watcher import Watcher
from sim.engine.work import SensorNoise
from sim.errors import PolicyError
from sim.machine.base import Machine
from sim.machine.failing import Failing, FailingMachine
from sim.policies.allocation.rigid import Request
from sim.results.outcome import Outcome, outcome
from sim.simulation.build import accepted, build, menu_name, with_menu
from sim.simulation.parts import OBJECT, is_own
from sim.simulation.progress import DAY, ProgressGuard, ProgressWatcher
from sim.simulation.recorded_schedule import RecordedSchedule, is_recorded
from sim.state.records import Records
from workloads.base import GroundTruth, Trace
from workloads.streams import Streams
from workloads.truth.build import build_truth, with_users
from workloads.truth.ground_truth import Truth
from workloads.truth.options import TRUTH_KEYS
from workloads.truth.scales import RecordedJobs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sim.evolving.settings import EvolvingScene


REPETITION = ("applications", "popularity", "sizes", "size", "size_noise")
"""Keys of a workload that say what repeats; they belong to the truth, not to the source."""
KNOWN = ("application", "size_class", "size", "nprocs", "runtime")
"""What is known of a run before the start."""
USUAL_RUNS = 3
"""Calibration runs of each application of a model."""


@dataclass(frozen=True)
class Scene:
    """What run and baseline of one replication share."""

    trace: Trace
    truth: Truth
    machine: Machine
    streams: Streams
    evolving: "EvolvingScene | None" = None

    def figures(self, outcome: Outcome) -> "dict[str, Figure]":
        """Return the pictures of evolving jobs by file name."""
        if self.evolving is None:
            return {}
        from sim.evolving.cycle_plots import evolving_figures

        evolving = self.evolving.after(len(outcome.trace.jobs) - len(self.trace.jobs))
        return evolving_figures(outcome.records, outcome.truth, evolving, self.machine)

    def replay(self, setup: Setup) -> Records:
        """Replay the jobs of a setup: those of the trace, with calibration runs ahead or without.

        Rigid jobs on a machine that does not fail need no more than the engine.
        """
        if self.evolving is None and not isinstance(self.machine, FailingMachine):
            return simulate(setup)
        from sim.evolving.recovery import simulate_recovering  # late: most need it not

        charged = len(setup.trace.jobs) - len(self.trace.jobs)
        evolving = None if self.evolving is None else self.evolving.after(charged)
        return simulate_recovering(setup, evolving)


def source_of(workload: Settings) -> dict[str, Any]:
    """Return the part of the ``workload`` group that the source of jobs takes.

    What repeats belongs to the truth, unless the source itself draws applications.
    """
    if OBJECT in workload:
        return dict(workload)
    taken = accepted(workload["_target_"], "workload")
    return {k: v for k, v in workload.items() if k not in REPETITION or k in taken}


def truth_options(config: Settings) -> dict[str, Any]:
    """Return the keys of ``workload`` and ``moldability`` that `build_truth` takes."""
    repetition = {k: v for k, v in config["workload"].items() if k in REPETITION}
    return repetition | {k: v for k, v in config["moldability"].items() if k in TRUTH_KEYS}


def set_scene(
    config: Settings, replication: int, trace: Trace | None = None, shown: Display = SILENT
) -> Scene:
    """Return jobs, truth and machine of one replication; the workload's jobs unless given."""
    shown.show("sets up the jobs", 0.0)
    streams = Streams(config["seed"], replication)
    asked = config["cluster"]["processors"]
    if trace is None:
        trace = build(source_of(config["workload"]), "workload").trace(streams, asked)
    size = asked or trace.processors or int(trace.jobs["requested_processors"].max())
    curves = {k: v for k, v in config["moldability"].items() if k not in TRUTH_KEYS}
    family = build(curves, "moldability")
    shown.show("sets up their curves", 0.2)  # a fifth of the time goes into the jobs themselves
    truth = build_truth(trace, family, streams, size, **truth_options(config))
    trace = with_users(trace, truth.application, streams)
    if config["workload"].get("applications") != "log":  # invented ones have no names
        words = {part: named for part, named in trace.words.items() if part != "application"}
        trace = replace(trace, words=words)
    for key in ("workload", "moldability"):  # not all of which a class of theirs has taken
        check_sizes(key, config[key])
    cluster, first = config["cluster"], float(trace.jobs["submit_time"].iloc[0])
    has_load = "streams" in accepted(cluster["_target_"], "cluster")
    more = {"streams": streams, "origin": first} if has_load else {}
    machine: Machine = build({**cluster, "processors": size}, "cluster", **more)
    if isinstance(machine, Failing):
        machine = machine.bound(streams, first)
    counts = trace.jobs["requested_processors"].to_numpy()
    changing = build(config["evolving"], "evolving")
    evolving = None if changing is None else changing.scene(counts, streams, machine)
    return Scene(trace, truth, machine, streams, evolving)


@dataclass(frozen=True)
class Played:
    """A finished simulation, and what its predictor and its policy were given.

    Attributes
    ----------
    outcome : Outcome
    known : sequence of Observation
        Runs that were free of charge.
    told_truth : bool
        Whether the predictor holds the true runtimes.
    menu : str or None
        The counts that the policy chose from; None if it chose none by a menu.
    """

    outcome: Outcome
    known: Sequence[Observation]
    told_truth: bool
    menu: str | None = None

    @property
    def known_area(self) -> float:
        """Processor-seconds of the runs that were free of charge."""
        return sum(run.nprocs * run.runtime for run in self.known)

    @property
    def charged(self) -> int:
        """Number of runs that were submitted as jobs."""
        return int((~self.outcome.counted).sum())


def watchers(asked: Settings, progress: Display, trace: Trace, truth: GroundTruth) -> list[Watcher]:
    """Return who watches the engine: a guard on progress, its display, a checker."""
    found: list[Watcher] = [ProgressGuard(asked["stall_events"], asked["stall_time"], trace, truth)]
    if progress is not SILENT:
        found.append(ProgressWatcher(progress, trace))
    if asked["check"]:
        from sim.engine.invariants import Checker

        found.append(Checker())
    return found


def prepare(config: Settings, parts: Settings, scene: Scene, progress: Display = SILENT) -> Setup:
    """Return what the simulation of a policy on a scene is made of; see `play`."""
    policy = build(with_menu(parts["policy"], config["menu"]), "policy")
    predictor: RuntimePredictor = build(parts["predictor"], "predictor")
    predictor = getattr(policy, "predictor", None) or predictor
    trace, truth = scene.trace, scene.truth
    plan = calibration_plan(predictor, scene)
    known: list[Observation] = []
    if plan and setting(predictor, "charge", True):
        trace, truth = charge(trace, truth, plan)
    else:
        known = under_load(plan, scene.machine, truth, scene.streams)
    holder = provider(predictor, NeedsTruth)
    if holder is not None:
        holder.bind_truth(truth.runtimes, scene.streams.key("predictor"))
    if scene.machine.splits_work:
        predictor = oracles_under_load(predictor, truth.communication_shares)
    draws = None
    if not is_exactly(getattr(policy, "allocation", None), Request):  # which looks at none
        luck = scene.streams("adopters").random(len(scene.trace.jobs))
        draws = np.concatenate([np.zeros(len(trace.jobs) - luck.size), luck])
    return Setup(
        trace,
        truth,
        policy,
        predictor,
        scene.machine,
        overrun=config["overrun"],
        adopter_draws=draws,
        known=known,
        watchers=watchers(config["sim"], progress, trace, truth),
        sensor_noise=SensorNoise(scene.streams.key("sensor.efficiency"), config["sensor_noise"]),
    )


def play(config: Settings, parts: Settings, scene: Scene, progress: Display = SILENT) -> Played:
    """Simulate a policy with a predictor, the run's own or the baseline's, on a scene."""
    if is_recorded(parts["policy"]):
        recorded: RecordedSchedule = build(parts["policy"], "policy")
        records = recorded.records(scene.trace, scene.machine, evolving=scene.evolving is not None)
        return Played(outcome(scene.trace, scene.truth, records), [], told_truth=False)
    setup = prepare(config, parts, scene, progress)
    try:
        records = scene.replay(setup)
    except PolicyError as error:
        kind = type(setup.policy)
        whose = "" if is_own(kind) else f"{kind.__name__}: "
        raise PolicyError(f"{whose}{error}") from error
    menu = menu_name(parts["policy"], config["menu"])
    told = provider(setup.predictor, NeedsTruth) is not None
    return Played(outcome(setup.trace, setup.truth, records), setup.known, told, menu)


def calibration_plan(predictor: RuntimePredictor, scene: Scene) -> list[Observation]:
    """Return the runs that a learning predictor asks for before the start.

    One that does not say how many gets `USUAL_RUNS` of each application of a model, and none
    of a file: nobody measured its applications beforehand.
    """
    runs, trace = setting(predictor, "calibration", 0), scene.trace
    if runs is None:
        runs = 0 if trace.is_recorded else USUAL_RUNS
    if not predictor.learns or runs == 0 or not scene.truth.known:
        return []
    first = float(trace.jobs["submit_time"].iloc[0])
    return plan_calibration(scene.truth, runs, scene.machine.processors, scene.streams, first)


def plan_calibration(
    truth: Truth, runs: int, processors: int, streams: Streams, time: float = 0.0
) -> list[Observation]:
    """Plan so many runs of every application, and of every class where sizes are hidden.

    They are known at `time`, seconds. The stream ``calibration`` is used.
    """
    rng = streams("calibration")
    size_class = np.where(np.isnan(truth.size), truth.size_class, -1)
    kinds = np.unique(np.stack([truth.application, size_class]), axis=1).T.tolist()
    plan = []
    for application, label in kinds if runs else []:
        for count in truth.calibration.counts(application, runs, processors).tolist():
            runtime, size = truth.calibration.run(application, label, count, rng)
            plan.append(Observation(application, label, size, count, runtime, time))
    return plan


def charge(trace: Trace, truth: Truth, plan: Sequence[Observation]) -> tuple[Trace, Truth]:
    """Submit calibration runs as rigid jobs at the first submit time, ahead of all others.

    Returns
    -------
    trace : Trace
        With a row a run in front, ``job_id`` -1, -2, …
    truth : Truth
        That knows these jobs too; each communicates as a job of its application would.
    """
    number = len(plan)
    application, size_class, size, count, runtime = (
        np.array([getattr(run, name) for run in plan]) for name in KNOWN
    )
    rows = pd.DataFrame(
        {
            "job_id": -np.arange(1, number + 1),
            "submit_time": trace.jobs["submit_time"].iloc[0],
            "requested_processors": count,
            "reference_runtime": runtime,
            "requested_time": runtime,
        }
    )
    rows = rows.reindex(columns=trace.jobs.columns, fill_value=-1)  # of all else nothing is known
    rows = rows.astype(trace.jobs.dtypes.to_dict())
    jobs = pd.concat([rows, trace.jobs], ignore_index=True)
    models = {
        name: np.concatenate([np.full(number, -1, values.dtype), values])
        for name, values in trace.models.items()
    }
    present, first = np.unique(truth.application, return_index=True)
    never = np.zeros(number, np.bool_)
    known = truth.behind(
        first[np.searchsorted(present, application)],
        RecordedJobs(runtime, count),
        application=application,
        size_class=size_class,
        size=size,
        moldable=never,
        malleable=never,
        min_processors=count,
        max_processors=count,
        serial_time=np.full(number, np.nan),
        serial_time_assumed=never,
    )
    return replace(trace, jobs=jobs, models=models), known


def under_load(
    known: Sequence[Observation], machine: Machine, truth: GroundTruth, streams: Streams
) -> list[Observation]:
    """Return calibration runs as the machine would have played them before the start.

    On a machine without background load they stay as they are. Elsewhere each
    starts at a moment of its own on processors drawn for it, under load of the
    machine's kind at another time. The stream ``load.calibration`` is used.
    """
    elsewhen = getattr(machine, "elsewhen", None)  # which machines without load do not have
    if elsewhen is None or not known:
        return list(known)
    past, rng = elsewhen(), streams("load.calibration")
    _, first = np.unique(truth.application, return_index=True)
    job_of = dict(zip(truth.application[first].tolist(), first.tolist(), strict=True))
    jobs = np.array([job_of[run.application] for run in known])
    counts = np.array([run.nprocs for run in known])
    shares = np.nan_to_num(truth.communication_shares(jobs, counts)).tolist()
    played = []
    for run, share in zip(known, shares, strict=True):
        own = np.sort(rng.choice(past.processors, run.nprocs, replace=False)).tolist()
        nodes, start = tuple((p, p) for p in own), float(rng.uniform(0.0, DAY))
        end = past.completion(start, run.runtime, nodes, share)
        more = {**run.more, **past.measured(nodes, start, end)}
        played.append(replace(run, runtime=end - start, more=more))
    return played
