"""A finished run, made ready to be replayed from what its folder recorded of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.cli.terminal import SILENT, Display
from sim.composition import recorded, recorded_command
from sim.config import Settings, digest
from sim.engine.setup import Setup
from sim.errors import ConfigError, SimError
from sim.machine.shared import Shared
from sim.results.artefacts import BASELINE, STEP, place_of, read_table, tables_folder
from sim.results.durable import MANIFEST, damage, read_object
from sim.results.outcome import numbered
from sim.results.plots.pictures import LoadSeries, Speedups
from sim.results.provenance import CODE, DIGEST, INPUTS, changed_inputs, identity_of, input_files
from sim.simulation.recorded_schedule import is_recorded
from sim.simulation.scene import Scene, prepare, set_scene

REPLICATION = "replication="
MOMENTS = 240
"""Instants at which load is looked at."""
CURVE_COUNTS = 60
"""Processor counts of a speedup curve."""


@dataclass(frozen=True)
class RecordedRun:
    """What a folder says of a finished simulation.

    Attributes
    ----------
    place : pathlib.Path
        The folder of its tables: that of a run, a replication, or what either is compared with.
    config : mapping
        The run's configuration, resolved.
    parts : mapping
        The ``policy`` and ``predictor`` of this simulation.
    replication : int
    notes : tuple of str
        What is to be said of a replay beforehand, such as that the code has changed.
    progress : Display
        Shows how far a replay for a picture is.
    """

    place: Path
    config: Settings
    parts: Settings
    replication: int = 0
    notes: tuple[str, ...] = ()
    progress: Display = SILENT

    def scene(self) -> Scene:
        """Return its jobs, truth and machine.

        Raises
        ------
        SimError
            If its configuration is of a version with other parts.
        """
        try:
            return set_scene(self.config, self.replication)
        except ConfigError as error:
            said = "; ".join(["it cannot be made again", *self.notes, str(error)])
            raise SimError(f"{self.place}: {said}") from None

    def setup(self, scene: Scene, progress: Display = SILENT) -> Setup:
        """Return what its simulation on its scene is made of, to be simulated again.

        Raises
        ------
        SimError
            If nobody decided anything: it is the log's own schedule.
        """
        if is_recorded(self.parts["policy"]):
            raise SimError(f"{self.place}: it is the log's own schedule; no policy made it")
        return prepare(self.config, self.parts, scene, progress)

    def speedups(self, applications: Sequence[int], most: int) -> list[Speedups]:
        """Return speedup curves, true and as the predictor believes at the end of a replay.

        Parameters
        ----------
        applications : sequence of int
            Of none, the most frequent.
        most : int
            How many, of the most frequent.

        Raises
        ------
        SimError
            If an application has no job that could run on two counts.
        """
        scene = self.scene()
        setup = self.setup(scene, self.progress)
        scene.replay(setup)  # the predictor then knows what it knew at the end
        own = setup.trace.jobs["job_id"].to_numpy() >= 0
        of = numbered(setup.trace, setup.truth.application)
        names, jobs = np.unique(of[own & setup.truth.moldable], return_counts=True)
        number = dict(zip(names.tolist(), jobs.tolist(), strict=True))
        if missing := set(applications) - set(number):
            raise SimError(f"--of {min(missing)}: no job of this application could be molded")
        if not number:
            raise SimError("no job of this run could be molded: it has no speedup curves")
        wanted = applications or sorted(number, key=lambda one: (-number[one], one))[:most]
        found = []
        for application in wanted:
            job = int(np.flatnonzero((of == application) & own & setup.truth.moldable)[-1])
            counts = _some_counts(setup, job)
            believed = setup.predictor.curve(job, counts)
            thought = None if believed is None else _speedup(counts, believed)
            true = _speedup(counts, setup.truth.runtimes(job, counts))
            found.append(Speedups(application, number[application], counts, true, thought))
        return found

    def background(self) -> LoadSeries:
        """Return the load of the machine over the run, true and as it was believed.

        Raises
        ------
        SimError
            If the machine has no load of its own.
        """
        machine = self.scene().machine
        forecast = machine.forecast()
        if forecast is None or not isinstance(machine, Shared):
            raise SimError("the machine has no background load: cluster=shared has")
        jobs = read_table(self.place / "jobs.parquet")
        begin, end = float(jobs["submit_time"].min()), float(jobs["end_time"].max())
        time = np.linspace(begin, max(end, begin + forecast.every), MOMENTS)
        ahead = max(forecast.every, (end - begin) / MOMENTS)
        everywhere = np.arange(machine.processors)
        true, believed = [], []
        for now in time.tolist():
            forecast.now = now
            believed.append(forecast.cpu(ahead))
            true.append(machine.load.average_cpu(everywhere, now, now + ahead))
        return LoadSeries(time, np.array(true), np.array(believed))


def _speedup(counts: IntArray, runtimes: FloatArray) -> FloatArray:
    return np.asarray(counts[0] * runtimes[0] / runtimes)


def _some_counts(setup: Setup, job: int) -> IntArray:
    """Return counts on which a job can run, so many that a curve through them looks smooth."""
    truth = setup.truth
    least = int(truth.min_processors[job])
    most = min(int(truth.max_processors[job]), setup.machine.processors)
    counts = truth.feasible(job)
    counts = np.arange(least, most + 1) if counts is None else counts[counts <= most]
    spread = np.geomspace(1, counts.size, min(counts.size, CURVE_COUNTS)) - 1
    return np.asarray(counts[np.unique(np.round(spread).astype(np.int64))])


def recorded_run(folder: Path) -> RecordedRun:
    """Return what a folder says of a finished simulation, its input files checked.

    Parameters
    ----------
    folder : pathlib.Path
        Of a run (of several replications the first is taken), a replication, a baseline.

    Raises
    ------
    SimError
        If there is no finished run, its files are damaged, its configuration is not there,
        or an input file is another one or gone.
    """
    place = tables_folder(folder)
    if wrong := damage(place):
        raise SimError(f"{place}: {wrong}")
    manifest = read_object(place / MANIFEST)
    role, own, root = place_of(place)
    number = own.name.removeprefix(REPLICATION)
    replication = int(number) if number != own.name and number.isdigit() else 0
    config = recorded(root)
    if not (own / BASELINE).is_dir():  # in a multirun nobody asked for it
        config["baseline"] = None
    known, files = manifest.get(INPUTS), input_files(config)
    before = known if isinstance(known, Mapping) else {}
    if gone := [key for key in before if key not in files]:
        made_in = recorded_command(root).runtime.cwd
        raise SimError(f"{gone[0]}: its file is not there; the run was made in {made_in}")
    identity = identity_of(digest(config), files)
    if before and (wrong := changed_inputs(before, identity[INPUTS])):
        raise SimError(f"{root}: {wrong}, so that the run cannot be replayed")
    parts: dict[str, Any] = config["baseline"] if role else config
    if role == STEP:
        parts = {**parts, "predictor": config["predictor"]}
    notes = [] if place == folder else [f"of several replications the first, {place.name}"]
    if manifest.get(CODE) != identity[CODE]:
        notes.append("the code has changed since this run, so the replay may differ")
    if manifest.get(DIGEST) not in (None, identity[DIGEST]):
        notes.append("its configuration, or the preset of its baseline, is not what it was")
    return RecordedRun(place, config, parts, replication, tuple(notes))
