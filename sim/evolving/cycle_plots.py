"""Pictures of evolving jobs: their cycles as measured and predicted, and their checkpoints."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.cycles.interference import MedianDetector
from predictors.cycles.online import OnlineCyclePredictor
from sim.evolving.settings import EvolvingScene
from sim.evolving.stages import Attempt
from sim.machine.base import Machine
from sim.machine.failing import FailingMachine
from sim.state.processors import nodes_of
from sim.state.records import Records
from workloads.base import GroundTruth

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = 6
"""Most jobs that are drawn."""
MEASURED, ONLINE, OFFLINE, MARK = "#777777", "#0072B2", "#E69F00", "#D55E00"


class CycleSeries(NamedTuple):
    """The cycles of one job's run, from its start to its end.

    Attributes
    ----------
    name : str
        Its input deck.
    processors : int
    measured, online, offline : numpy.ndarray of float, shape (k,), seconds
        Time of each cycle: by the clock, predicted from the cycles before it,
        and by the benchmark.
    ends : numpy.ndarray of float, shape (k,), seconds
        Time since the start at the end of each cycle.
    places : numpy.ndarray of int, shape (c,)
        Cycles after which the job saved its work.
    """

    name: str
    processors: int
    measured: FloatArray
    online: FloatArray
    offline: FloatArray
    ends: FloatArray
    places: IntArray

    @property
    def online_error(self) -> float:
        """Mean relative error of the online mode."""
        return float(np.nanmean(np.abs(self.online / self.measured - 1.0)))

    @property
    def offline_error(self) -> float:
        """Mean relative error of the offline mode."""
        return float(np.mean(np.abs(self.offline / self.measured - 1.0)))

    @property
    def alarms(self) -> IntArray:
        """Cycles at which the detector of interference holds an alarm."""
        ratios = self.measured / self.offline
        return np.flatnonzero(MedianDetector().update(ratios / np.median(ratios[:10])))


def chosen_jobs(records: Records, scene: EvolvingScene) -> list[int]:
    """Return jobs to draw: of each deck and count the first that ran in one go."""
    held = records.allocations
    pieces = np.bincount(held.job, minlength=len(records.submit_time))
    found: dict[tuple[int, int], int] = {}
    for job in np.flatnonzero(pieces == 1).tolist():
        if scene.evolves(job) and records.status[job] == "completed":
            deck = int(scene.runs.deck[job - scene.before])
            found.setdefault((deck, int(records.allocated[job])), job)
    return sorted(found.values())[:PANELS]


def cycle_series(
    job: int, records: Records, truth: GroundTruth, scene: EvolvingScene, machine: Machine
) -> CycleSeries:
    """Return the cycles of a job that ran in one go, as it measured and predicted them."""
    run, count = scene.runs.run(job - scene.before), int(records.allocated[job])
    row = int(np.flatnonzero(records.allocations.job == job)[0])
    nodes = records.allocations.nodes[row]
    held = nodes_of(nodes, machine.processors_per_node)
    total = float(truth.runtimes(job, np.array([count]))[0])
    attempt = Attempt(scene.saving, run, count, total, len(held))
    cells, begins, ends = attempt.cycles(0.0, attempt.wall)
    if isinstance(machine, FailingMachine) and machine.interference > 0.0:
        start = float(records.run_start[job])
        begins, ends = (machine.walls(start, at, nodes) - start for at in (begins, ends))
    measured = ends - begins
    offline = scene.benchmark(job).predict(count, cells=cells) * (total / run.total(count))
    online = OnlineCyclePredictor(scene.saving.window).follow(cells, measured)
    name, places = run.application.name, attempt.plan.places
    return CycleSeries(name, count, measured, online, offline, ends, places)


def cycles_figure(series: list[CycleSeries]) -> "Figure":
    """Draw measured, online and offline times against the cycle, a panel a job."""
    figure, axes = _panels(len(series))
    for axis, one in zip(axes, series, strict=True):
        axis.plot(one.measured, ".", color=MEASURED, markersize=3, label="measured")
        axis.plot(one.online, color=ONLINE, linewidth=1.0, label="online")
        axis.plot(one.offline, color=OFFLINE, linewidth=1.0, label="offline")
        alarms = one.alarms
        foot = np.full(alarms.size, 0.02)
        across = axis.get_xaxis_transform()
        axis.plot(alarms, foot, "s", color=MARK, markersize=2, transform=across, label="alarm")
        errors = f"online {one.online_error:.1%}, offline {one.offline_error:.1%} off"
        axis.set_title(f"{_title(one)}: {errors}", fontsize=9)
        axis.set_ylim(bottom=0.0)
        axis.set_ylabel("seconds per cycle")
    axes[0].legend(fontsize=8)
    return figure


def checkpoints_figure(series: list[CycleSeries]) -> "Figure":
    """Draw accumulated time and checkpoints against the cycle, a panel a job."""
    figure, axes = _panels(len(series))
    for axis, one in zip(axes, series, strict=True):
        axis.plot(np.arange(1, one.ends.size + 1), one.ends, color=ONLINE, linewidth=1.2)
        at = one.ends[one.places - 1]
        axis.vlines(one.places, 0.0, at, color="0.7", linewidth=0.7)
        axis.plot(one.places, at, "o", color=MARK, markersize=3)
        first = ", ".join(str(place) for place in one.places[:4])
        axis.set_title(f"{_title(one)}: checkpoints after {first}, …", fontsize=9)
        axis.set_ylabel("accumulated seconds")
    return figure


def _title(one: CycleSeries) -> str:
    return f"{one.name}, {one.processors} processor{'s' * (one.processors > 1)}"


def _panels(number: int) -> "tuple[Figure, list[Axes]]":
    from matplotlib.figure import Figure

    columns = 1 if number == 1 else 2
    rows = -(-number // columns)
    figure = Figure(figsize=(5.5 * columns, 3.2 * rows), layout="constrained")
    axes = [figure.add_subplot(rows, columns, place + 1) for place in range(number)]
    for axis in axes[-columns:]:
        axis.set_xlabel("cycle")
    return figure, axes


def evolving_figures(
    records: Records, truth: GroundTruth, scene: EvolvingScene, machine: Machine
) -> "dict[str, Figure]":
    """Return the pictures of a run's evolving jobs by name; none if no job is fit for one."""
    jobs = chosen_jobs(records, scene)
    series = [cycle_series(job, records, truth, scene, machine) for job in jobs]
    if not series:
        return {}
    figures = {"cycles": cycles_figure(series)}
    saving = [one for one in series if one.places.size]
    if saving:
        figures["checkpoints"] = checkpoints_figure(saving)
    return figures
