"""One run from its configuration to its artefacts: jobs, truth, policy, simulation, figures."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from predictors.base import RuntimePredictor
from predictors.oracle import NeedsTruth
from sim.artefacts import Artefacts, replication_folder, write_means, write_run
from sim.build import build
from sim.engine import simulate
from sim.machine import Dedicated
from sim.manifest import manifest
from sim.metrics import summarise
from sim.outcome import Outcome, outcome
from sim.plots import schedule_figure
from sim.run_folder import DIGEST
from sim.trimming import Trim
from workloads.base import GroundTruth, Trace
from workloads.errors import WorkloadError
from workloads.streams import Streams
from workloads.truth import build_truth

ASSIGNMENT = ("applications", "popularity", "sizes", "size", "size_noise")
"""Keys of a workload that say what repeats; they belong to the truth, not to the source."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Scene:
    """What run and baseline of one replication share.

    Attributes
    ----------
    trace : Trace
    truth : GroundTruth
    machine : Dedicated
    streams : Streams
    """

    trace: Trace
    truth: GroundTruth
    machine: Dedicated
    streams: Streams


def machine_size(trace: Trace, configured: int | None) -> int:
    """Return the processors of the machine: as configured, else the log's, else the widest job.

    Raises
    ------
    WorkloadError
        If there is no job at all.
    """
    if trace.jobs.empty:
        raise WorkloadError(f"{trace.source}: no job is left to run; {counted(trace.dropped)}")
    return configured or trace.processors or int(trace.jobs["requested_processors"].max())


def counted(reasons: Mapping[str, int]) -> str:
    """Return counts by reason in words.

    Examples
    --------
    >>> counted({"wider than the machine": 2, "no processors": 1})
    '2 wider than the machine, 1 no processors'
    """
    return ", ".join(f"{number} {reason}" for reason, number in reasons.items() if number)


def set_scene(config: Mapping[str, Any], replication: int) -> Scene:
    """Return jobs, truth and machine of one replication."""
    streams = Streams(config["seed"], replication)
    source = {k: v for k, v in config["workload"].items() if k not in ASSIGNMENT}
    repeated = {k: v for k, v in config["workload"].items() if k in ASSIGNMENT}
    processors = config["cluster"]["processors"]
    trace = build(source, "workload").trace(streams, processors)
    if replication == 0 and (dropped := counted(trace.dropped)):
        logger.warning("%s: jobs that can never run were dropped: %s", trace.source, dropped)
    size = machine_size(trace, processors)
    machine = build({**config["cluster"], "processors": size}, "cluster")
    molding = build(config["moldability"], "moldability")
    truth = build_truth(trace, molding.pop("shape"), streams, size, **repeated, **molding)
    return Scene(trace, truth, machine, streams)


def play(config: Mapping[str, Any], parts: Mapping[str, Any], scene: Scene) -> Outcome:
    """Simulate one policy with one predictor on a scene.

    Parameters
    ----------
    config : mapping
        The run's whole configuration.
    parts : mapping
        The ``policy`` and ``predictor`` to use: the run's own or the baseline's.
    scene : Scene
    """
    policy = build(parts["policy"], "policy")
    predictor: RuntimePredictor = build(parts["predictor"], "predictor")
    if isinstance(predictor, NeedsTruth):
        predictor.bind_truth(scene.truth.runtimes, scene.streams.key("predictor"))
    luck = scene.streams("adopters").random(len(scene.trace.jobs))
    records = simulate(
        scene.trace,
        scene.truth,
        policy,
        predictor,
        scene.machine,
        overrun=config["overrun"],
        luck=luck,
    )
    return outcome(scene.trace, scene.truth, records)


def artefacts(config: Mapping[str, Any], played: Outcome, seconds: float, digest: str) -> Artefacts:
    """Return everything that is written of a finished simulation."""
    return Artefacts(
        tables=played.tables,
        figure=schedule_figure(played.records, played.tables),
        summary=summarise(played, trim=Trim(**config["metrics"]), more={"seed": config["seed"]}),
        manifest=manifest(played.trace, seconds) | {DIGEST: digest},
    )


def replicate(config: Mapping[str, Any], replication: int, folder: Path, digest: str) -> None:
    """Run one replication and its baseline, and write both into the folder."""
    scene = set_scene(config, replication)
    written = []
    for parts in (config, config["baseline"]):
        if parts is None:
            continue
        began = time.perf_counter()
        played = play(config, parts, scene)
        written.append(artefacts(config, played, time.perf_counter() - began, digest))
    write_run(folder, *written)


def run(config: Mapping[str, Any], folder: Path, digest: str, *, quiet: bool = False) -> None:
    """Carry out a whole run: all replications, each with its baseline, and their means.

    Parameters
    ----------
    config : mapping
        The resolved configuration; ``baseline`` is None or has a policy and a predictor.
    folder : pathlib.Path
        Where the artefacts go.
    digest : str
        Identifies the configuration in the manifest.
    quiet : bool
        Show neither progress nor table.
    """
    Trim(**config["metrics"])
    replications = config["replications"]
    if replications == 1:
        replicate(config, 0, folder, digest)
        return
    for replication in range(replications):
        replicate(config, replication, replication_folder(folder, replication), digest)
    write_means(folder, replications, {DIGEST: digest})
