"""One run from its configuration to its artefacts: jobs, truth, policy, simulation, figures."""

import contextlib
import datetime
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from rich.console import Console

from predictors.base import Observation, RuntimePredictor
from predictors.oracle import NeedsTruth
from predictors.wrapper import provider, setting
from sim.artefacts import (
    REQUESTS,
    SIZES,
    Artefacts,
    mean_summary,
    replication_folder,
    write_means,
    write_run,
    write_table,
)
from sim.asking_metrics import requests_frame
from sim.build import accepted, build
from sim.calibration import CalibrationRun, charge, observations, plan_calibration, runs_before
from sim.engine import Watcher, simulate
from sim.evolving import EvolvingScene
from sim.failing import Failing, FailingMachine
from sim.formats import check_formats, write_formats
from sim.given import given_figures
from sim.growing import Site, size_figures
from sim.job_metrics import Figures
from sim.load_calibration import under_load
from sim.load_truth import oracles_under_load
from sim.machine import Machine
from sim.manifest import manifest
from sim.menus import menu_name, with_menu
from sim.metrics import summarise
from sim.outcome import Outcome, outcome
from sim.plots import schedule_figure
from sim.progress import Progress
from sim.recorded import RecordedSchedule, is_recorded
from sim.records import Records
from sim.recoveries import simulate_recovering
from sim.replication import replicated, stopping_rule
from sim.run_folder import DIGEST
from sim.trimming import Trim
from sim.watching import ProgressWatcher
from workloads.base import GroundTruth, Trace
from workloads.streams import Streams
from workloads.truth import TRUTH_KEYS, Truth, build_truth

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPETITION = ("applications", "popularity", "sizes", "size", "size_noise")
"""Keys of a workload that say what repeats; they belong to the truth, not to the source."""


@dataclass(frozen=True)
class Scene:
    """What run and baseline of one replication share.

    Attributes
    ----------
    trace : Trace
    truth : Truth
    machine : Machine
    streams : Streams
    evolving : EvolvingScene or None
    sizes : pandas.DataFrame or None
        What the growth of the machine did to the jobs' sizes.
    """

    trace: Trace
    truth: Truth
    machine: Machine
    streams: Streams
    evolving: EvolvingScene | None = None
    sizes: pd.DataFrame | None = None

    def figures(self, outcome: Outcome) -> "dict[str, Figure]":
        """Return the pictures of evolving jobs by file name."""
        if self.evolving is None:
            return {}
        from sim.cycle_plots import evolving_figures

        charged = len(outcome.trace.jobs) - len(self.trace.jobs)
        evolving = self.evolving.after(charged)
        return evolving_figures(outcome.records, outcome.truth, evolving, self.machine)

    def simulation(self, charged: int) -> Callable[..., Records]:
        """Return what replays jobs, so many calibration runs ahead of those of the trace.

        Rigid jobs on a machine that does not fail need no more than the engine.
        """
        if self.evolving is None and not isinstance(self.machine, FailingMachine):
            return simulate
        evolving = None if self.evolving is None else self.evolving.after(charged)
        return partial(simulate_recovering, evolving=evolving)


def source_of(workload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of the ``workload`` group that the source of jobs takes.

    What repeats belongs to the truth, unless the source itself draws applications.
    """
    taken = accepted(workload["_target_"], "workload")
    return {k: v for k, v in workload.items() if k not in REPETITION or k in taken}


def truth_options(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of ``workload`` and ``moldability`` that `build_truth` takes."""
    repetition = {k: v for k, v in config["workload"].items() if k in REPETITION}
    return repetition | {k: v for k, v in config["moldability"].items() if k in TRUTH_KEYS}


def set_scene(config: Mapping[str, Any], replication: int, trace: Trace | None = None) -> Scene:
    """Return jobs, truth and machine of one replication; the workload's jobs unless given."""
    streams = Streams(config["seed"], replication)
    asked = config["cluster"]["processors"]
    if trace is None:
        trace = build(source_of(config["workload"]), "workload").trace(streams, asked)
    size = asked or trace.processors or int(trace.jobs["requested_processors"].max())
    curves = {k: v for k, v in config["moldability"].items() if k not in TRUTH_KEYS}
    family = build(curves, "moldability")
    truth = build_truth(trace, family, streams, size, **truth_options(config))
    site = build(config["growth"], "growth").grow(Site(size, trace, truth), streams)
    machine = build_machine(config["cluster"], site.processors, site.trace, streams)
    if isinstance(machine, Failing):
        machine = machine.bound(streams, float(trace.jobs["submit_time"].iloc[0]))
    counts = site.trace.jobs["requested_processors"].to_numpy()
    evolving = build(config["evolving"], "evolving").scene(counts, streams, machine)
    return Scene(site.trace, site.truth, machine, streams, evolving, site.sizes)


def build_machine(
    cluster: Mapping[str, Any], processors: int, trace: Trace, streams: Streams
) -> Machine:
    """Return the machine; one with load of its own gets random streams and the first submit."""
    more: dict[str, Any] = {}
    if "streams" in accepted(cluster["_target_"], "cluster"):
        more = {"streams": streams, "origin": float(trace.jobs["submit_time"].iloc[0])}
    machine: Machine = build({**cluster, "processors": processors}, "cluster", **more)
    return machine


def watchers(config: Mapping[str, Any], progress: Progress | None) -> tuple[Watcher, ...]:
    """Return who watches the engine: its checker, and the progress display."""
    found: list[Watcher] = [] if progress is None else [ProgressWatcher(progress)]
    if config["sim"]["check"]:
        from sim.checks import Checker

        found.append(Checker())
    return tuple(found)


@dataclass(frozen=True)
class Played:
    """A finished simulation, and what its predictor and its policy were given.

    Attributes
    ----------
    outcome : Outcome
    known : list of Observation
        Runs that were free of charge.
    told_truth : bool
        Whether the predictor holds the true runtimes.
    menu : str or None
        The counts that the policy chose from; None if it chose none by a menu.
    """

    outcome: Outcome
    known: list[Observation]
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

    @property
    def charged_area(self) -> float:
        """Processor-seconds that these held."""
        jobs = self.outcome.tables.jobs
        return float(jobs["held_area"][jobs["job_id"] < 0].sum())


def play(
    config: Mapping[str, Any],
    parts: Mapping[str, Any],
    scene: Scene,
    progress: Progress | None = None,
) -> Played:
    """Simulate one policy with one predictor on a scene.

    Parameters
    ----------
    config : mapping
        The run's whole configuration.
    parts : mapping
        The ``policy`` and ``predictor`` to use: the run's own or the baseline's.
    scene : Scene
    progress : Progress, optional
    """
    policy = build(with_menu(parts["policy"], config["menu"]), "policy")
    if isinstance(policy, RecordedSchedule):
        evolves = scene.evolving is not None
        recorded = policy.records(scene.trace, scene.machine, evolving=evolves)
        return Played(outcome(scene.trace, scene.truth, recorded), [], told_truth=False)
    predictor: RuntimePredictor = build(parts["predictor"], "predictor")
    trace: Trace = scene.trace
    truth: GroundTruth = scene.truth
    plan = calibration_plan(predictor, scene)
    known: list[Observation] = []
    if plan and setting(predictor, "charge", True):
        trace, truth = charge(trace, truth, plan)
    else:
        known = observations(plan, float(trace.jobs["submit_time"].iloc[0]))
        known = under_load(known, scene.machine, truth, scene.streams)
    holder = provider(predictor, NeedsTruth)
    if holder is not None:
        holder.bind_truth(truth.runtimes, scene.streams.key("predictor"))
    if scene.machine.splits_work:
        predictor = oracles_under_load(predictor, truth)
    luck = scene.streams("adopters").random(len(scene.trace.jobs))
    replay = scene.simulation(len(trace.jobs) - luck.size)
    records = replay(
        trace,
        truth,
        policy,
        predictor,
        scene.machine,
        overrun=config["overrun"],
        luck=np.concatenate([np.zeros(len(trace.jobs) - luck.size), luck]),
        known=known,
        watchers=watchers(config, progress),
        sensor_key=scene.streams.key("sensor.efficiency"),
    )
    menu = menu_name(parts["policy"], config["menu"])
    return Played(outcome(trace, truth, records), known, holder is not None, menu)


def calibration_plan(predictor: RuntimePredictor, scene: Scene) -> list[CalibrationRun]:
    """Return the runs that a learning predictor asks for before the start."""
    runs = runs_before(setting(predictor, "calibration", 0), scene.trace)
    if not predictor.learns or runs == 0 or not scene.truth.known:
        return []
    return plan_calibration(scene.truth, runs, scene.machine.processors, scene.streams)


@dataclass(frozen=True)
class Show:
    """What the terminal is told while a simulation runs.

    Attributes
    ----------
    progress : bool
        How far it is, on runs longer than a second.
    policy : str
        Name of the run's policy.
    messages : rich.console.Console
        Standard error.
    """

    progress: bool = False
    policy: str = "run"
    messages: Console = field(default_factory=lambda: Console(stderr=True))

    def name(self, parts: Mapping[str, Any]) -> str:
        """Return the name of a run's or a baseline's policy."""
        return str(parts["name"]) if "name" in parts else self.policy


def write_more(
    folder: Path, run: Outcome, names: Sequence[str], sizes: pd.DataFrame | None
) -> None:
    """Write the formats of other tools, the sizes that should keep times, and what jobs asked."""
    write_formats(folder, run=run, names=names)
    if run.records.requests is not None:
        write_table(requests_frame(run.trace, run.records.requests), folder / REQUESTS)
    if sizes is not None:
        write_table(sizes, folder / SIZES)


def artefacts(
    config: Mapping[str, Any], played: Played, scene: Scene, seconds: float, digest: str
) -> Artefacts:
    """Return everything that is written of a finished simulation."""
    outcome = played.outcome
    return Artefacts(
        tables=outcome.tables,
        figure=schedule_figure(outcome.records, outcome.tables),
        summary=summarise(
            outcome,
            trim=Trim(**config["metrics"]),
            calibration=played.known,
            calibration_area=played.known_area,
            more={
                "seed": config["seed"],
                **given_figures(config, scene, played),
                "menu": played.menu,
                **scene.truth.repetition(),
                **size_figures(scene.sizes),
            },
        ),
        manifest=manifest(outcome.trace, seconds) | {DIGEST: digest},
        export=partial(write_more, run=outcome, names=config["export"], sizes=scene.sizes),
        more_figures=scene.figures(outcome),
    )


def beginning(trace: Trace) -> tuple[float, datetime.datetime | None]:
    """Return a trace's first submit, in seconds on its clock and as a date (UTC) if known."""
    origin = float(trace.jobs["submit_time"].iloc[0])
    if trace.epoch is None:
        return origin, None
    try:
        return origin, datetime.datetime.fromtimestamp(trace.epoch + origin, datetime.UTC)
    except (OverflowError, ValueError):
        return origin, None


def perform(
    config: Mapping[str, Any], parts: Mapping[str, Any], scene: Scene, digest: str, show: Show
) -> Artefacts:
    """Simulate the run or its baseline, and return everything that is written of it."""
    began = time.perf_counter()
    with contextlib.ExitStack() as stack:
        origin, start = beginning(scene.trace)
        progress = Progress(show.messages, show.name(parts), origin=origin, start=start)
        shown = stack.enter_context(progress) if show.progress else None
        played = play(config, parts, scene, shown)
    return artefacts(config, played, scene, time.perf_counter() - began, digest)


MOST_STEP_JOBS = 100_000
"""Jobs up to which the step between baseline and run is played unasked."""
Results = tuple[Figures, Figures | None, Figures | None]
"""Summaries of a run, of its baseline and of the step between, where there are such."""


def step_between(config: Mapping[str, Any], jobs: int) -> dict[str, Any] | None:
    """Return the baseline's policy with the run's predictor, where that is a step between them.

    Parameters
    ----------
    config : mapping
        The run's configuration; ``baseline_predictor`` may ask for it or refuse it.
    jobs : int
        How many there are; beyond `MOST_STEP_JOBS` it must be asked for.

    Returns
    -------
    dict or None
        None where policy or predictor are the same, so that the run and its
        baseline are like and like already, or where one is the log's own
        schedule, which no predictor changes.
    """
    base, asked = config["baseline"], config["baseline_predictor"]
    if base is None or config["predictor"] == base["predictor"]:
        return None
    if is_recorded(config["policy"]) or is_recorded(base["policy"]):
        return None
    menu = config["menu"]
    if with_menu(config["policy"], menu) == with_menu(base["policy"], menu):
        return None
    if not (jobs <= MOST_STEP_JOBS if asked is None else asked):
        return None
    return {**base, "predictor": config["predictor"]}


def replicate(
    config: Mapping[str, Any], replication: int, folder: Path, digest: str, show: Show
) -> Results:
    """Run one replication, its baseline and the step between; write all, return the summaries."""
    scene = set_scene(config, replication)
    others = (config["baseline"], step_between(config, len(scene.trace.jobs)))
    own = perform(config, config, scene, digest, show)
    base, step = (
        None if parts is None else perform(config, parts, scene, digest, show) for parts in others
    )
    write_run(folder, own, base, step)
    return own.summary, _summary(base), _summary(step)


def _summary(written: Artefacts | None) -> Figures | None:
    return None if written is None else written.summary


def run(config: Mapping[str, Any], folder: Path, digest: str, show: Show) -> Results:
    """Carry out a whole run: all replications, each with what it is compared with, and means.

    Parameters
    ----------
    config : mapping
        The resolved configuration; ``baseline`` is None or has a name, a policy
        and a predictor.
    folder : pathlib.Path
        Where the artefacts go.
    digest : str
        Identifies the configuration in the manifest.
    show : Show
        What the terminal is told.

    Returns
    -------
    tuple of dict
        The summary of the run, and those of its baseline and of the step
        between, if it has them.
    """
    Trim(**config["metrics"])
    check_formats(config["export"])
    number, rule = config["replications"], stopping_rule(config)
    if number == 1 and rule is None:
        return replicate(config, 0, folder, digest, show)
    every = replicated(
        lambda k: replicate(config, k, replication_folder(folder, k), digest, show), number, rule
    )
    more = {} if rule is None else rule.figures(every)
    means = write_means(folder, len(every), {DIGEST: digest}, more)
    base, step = (_mean_of([results[place] for results in every]) for place in (1, 2))
    return means, base, step


def _mean_of(summaries: Sequence[Figures | None]) -> Figures | None:
    known = [summary for summary in summaries if summary is not None]
    return mean_summary(known) if known else None
