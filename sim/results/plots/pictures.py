"""Pictures of one run: what kinds there are, and how each is drawn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from predictors.base import FloatArray, IntArray
from sim.errors import SimError
from sim.results.frames import Tables
from sim.results.job_metrics import Figures, count_bin, job_class, with_errors
from sim.results.plots.schedule import draw_use, schedule_figure
from sim.results.plots.style import (
    BLACK,
    INK,
    PALE,
    WHITE,
    Clock,
    calibration_note,
    clock,
    legend,
    line,
    new_figure,
    tidy,
    time_ticks,
)
from sim.results.steady_state import EPOCH

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTHS = {1: 3.5, 2: 7.2}
"""Inches of one and two columns of a paper."""
HEIGHT = 0.68
"""Of a picture, as a share of its width; a fifth of the width less where it fills two columns."""
MOST_RESIZED = 8
MOST_CURVES = 4
HISTORY = (0, 1, 2, 3, 5, 10, 20, 50, 100)
"""Observations behind a belief: lower ends of the bins."""
TRUE: dict[str, Any] = {"color": "#000000", "linewidth": 1.1}
BELIEVED: dict[str, Any] = {"color": "#D55E00", "linewidth": 1.3, "linestyle": "--"}
"""How lines of what was true and of what was believed look, on every picture."""
LEAST = 5
"""Runs of which a median is shown."""


@dataclass(frozen=True)
class Speedups:
    """Speedups of one application, true and as believed when the run was over.

    Attributes
    ----------
    application : int
    jobs : int
        How many of the run are of it.
    counts : numpy.ndarray of int, shape (n,)
    true, believed : numpy.ndarray of float, shape (n,), or None
        T(least count) x least count / T(n); None where the predictor has no curve.
    """

    application: int
    jobs: int
    counts: IntArray
    true: FloatArray
    believed: FloatArray | None


@dataclass(frozen=True)
class LoadSeries:
    """Background load of a shared machine over a run.

    Attributes
    ----------
    time : numpy.ndarray of float, shape (n,), seconds
    true, believed : numpy.ndarray of float, shape (n, processors)
        CPU that load leaves to jobs, averaged over what follows each instant for `ahead`
        seconds; believed then.
    ahead : float
        Seconds.
    """

    time: FloatArray
    true: FloatArray
    believed: FloatArray
    ahead: float


@dataclass(frozen=True)
class RunFolder:
    """A finished simulation as its artefacts tell it.

    Attributes
    ----------
    tables : Tables
    summary : dict
    title : str
    again : callable, optional
        Returns the run that is to be made again, a `sim.simulation.recorded_run.RecordedRun`,
        for kinds that need more than the tables.
    """

    tables: Tables
    summary: Figures
    title: str
    again: Callable[[], Any] | None = None

    @property
    def jobs(self) -> pd.DataFrame:
        """The jobs without calibration runs."""
        return self.tables.jobs[self.tables.jobs["job_id"] >= 0]

    def clock(self) -> Clock:
        """Return the time axis of the whole run."""
        first, last = self.tables.jobs["submit_time"].min(), self.tables.jobs["end_time"].max()
        return clock(float(first), float(last), self.summary.get(EPOCH))

    @property
    def processors(self) -> int:
        """Processors of the machine."""
        return int(self.summary["processors"] or 1)

    def made_again(self) -> Any:
        """Return the run to be made again.

        Raises
        ------
        SimError
            If nobody knows how.
        """
        if self.again is None:
            raise SimError("this picture needs the run's folder, to make the run again")
        return self.again()


def _load(figure: "Figure", run: RunFolder, of: Sequence[int]) -> None:
    busy, queue = figure.subplots(2, 1, sharex=True)
    at = run.clock()
    draw_use(busy, queue, run.tables, run.processors, at)
    calibration_note(figure, run.tables.jobs)
    busy.set(ylabel="busy (%)", ylim=(0, 105))
    queue.set(ylabel="jobs waiting", ylim=(0, None))
    at.mark(queue)
    tidy(busy, queue)


def _map(
    figure: "Figure", x: FloatArray, y: FloatArray, names: tuple[str, str], bins: FloatArray
) -> "Axes":
    """Draw how many jobs lie where on two logarithmic axes, and where both are the same."""
    from matplotlib.colors import LogNorm

    axes = figure.add_subplot()
    drawn = axes.hist2d(x, y, bins=[bins, bins], norm=LogNorm(vmin=1.0), cmap="cividis_r",
                        rasterized=True)  # fmt: skip
    ends = (bins[0], bins[-1])
    axes.plot(ends, ends, color=INK, linewidth=0.8, linestyle="--")
    axes.set(xscale="log", yscale="log", xlabel=names[0], ylabel=names[1], xlim=ends, ylim=ends)
    figure.colorbar(drawn[3], ax=axes, label="jobs")
    tidy(axes)
    return axes


def _processors(figure: "Figure", run: RunFolder, of: Sequence[int]) -> None:
    asked = run.jobs["requested_processors"].to_numpy(np.float64)
    given = run.jobs["allocated_processors"].to_numpy(np.float64)
    powers = int(np.ceil(np.log2(max(asked.max(initial=1), given.max(initial=1))))) + 1
    bins = np.exp2(np.arange(powers + 1, dtype=np.float64) - 0.5)
    axes = _map(figure, asked, given, ("requested processors", "given processors"), bins)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")


def _done(run: RunFolder) -> pd.DataFrame:
    """Return the predictions of completed runs of jobs with their errors; never empty."""
    done = with_errors(run.tables.predictions)
    if not len(done):
        raise SimError("no completed job of this run has a prediction")
    return done


def _runtimes(figure: "Figure", run: RunFolder, of: Sequence[int]) -> None:
    done = _done(run)
    true, believed = done["actual"].to_numpy(), done["predicted"].to_numpy()
    both = np.concatenate([true, believed])
    bins = np.geomspace(both.min() / 1.1, both.max() * 1.1, 49)
    axes = _map(figure, true, believed, ("true runtime", "estimated at the start"), bins)
    for axis in (axes.xaxis, axes.yaxis):
        time_ticks(axis)
    axes.set(xlim=(bins[0], bins[-1]), ylim=(bins[0], bins[-1]))


def _waits(figure: "Figure", run: RunFolder, of: Sequence[int]) -> None:
    axes = figure.add_subplot()
    classes = job_class(run.jobs)
    for place, name in enumerate(("narrow_short", "narrow_long", "wide_short", "wide_long")):
        wait = np.sort(run.jobs.loc[classes == name, "wait_time"].to_numpy())
        if len(wait):
            share = 100 * np.arange(1, len(wait) + 1) / len(wait)
            label = f"{name.replace('_', ', ')} ({len(wait):,})"
            axes.step(wait, share, where="post", label=label, **line(place))
    ends = axes.get_xlim()
    axes.set_xscale("symlog", linthresh=60.0)
    time_ticks(axes.xaxis, least=60.0)
    axes.set(xlabel="wait", ylabel="jobs at or below (%)", ylim=(0, 101))
    axes.set_xlim(0, ends[1])
    axes.legend(frameon=False, fontsize="small", loc="lower right")
    tidy(axes)


def _errors(figure: "Figure", run: RunFolder, of: Sequence[int]) -> None:
    done = _done(run)
    place = np.searchsorted(HISTORY, done["observations"].to_numpy(), side="right") - 1
    parts = done.assign(history=place, count=count_bin(done["nprocs"])).groupby(
        ["history", "count"]
    )
    median, size = parts["error"].median().unstack(), parts.size().unstack()
    counts = sorted(median.columns, key=lambda name: int(str(name).split("-")[0].split()[0]))
    shown = (100 * median.where(size >= LEAST))[counts]
    axes = figure.add_subplot()
    drawn = axes.imshow(shown.to_numpy(), origin="lower", aspect="auto", cmap="cividis_r",
                        vmin=0.0, vmax=100.0)  # fmt: skip
    axes.set_xticks(range(len(counts)), counts, rotation=30)
    axes.set_yticks(range(len(shown)), [str(HISTORY[k]) for k in shown.index])
    axes.set(xlabel="processors", ylabel="runs seen (from this many on)")
    figure.colorbar(drawn, ax=axes, label="median error (%)", extend="max")
    for (row, column), value in np.ndenumerate(shown.to_numpy()):
        if np.isfinite(value):
            colour = WHITE if value > 55 else BLACK
            axes.text(column, row, f"{value:.0f}", ha="center", va="center", color=colour,
                      fontsize="small")  # fmt: skip


def _resized(figure: "Figure", run: RunFolder, of: Sequence[int]) -> None:
    held = run.tables.allocations
    changes = held.groupby(["job_id", "run"]).size().sort_values(ascending=False, kind="stable")
    often: list[Any] = [key for key, number in changes.items() if number > 1][:MOST_RESIZED]
    if of:
        often = [key for key in changes.index if key[0] in set(of)]
        if missing := set(of) - {job for job, _ in often}:
            raise SimError(f"--of {min(missing)}: there is no such job in this run")
    if not often:
        raise SimError("no job was resized in this run")
    axes = figure.add_subplot()
    at = run.clock()
    for place, (job, number) in enumerate(often):
        own = held[(held["job_id"] == job) & (held["run"] == number)]
        time = np.append(own["start_time"], own["end_time"].iloc[-1])
        count = np.append(own["processors"], own["processors"].iloc[-1])
        axes.step(at.show(time), count, where="post", label=f"job {job}", **line(place))
    axes.set(ylabel="processors", ylim=(0, None))
    at.mark(axes)
    legend(axes)
    tidy(axes)


def _speedups(figure: "Figure", run: RunFolder, of: Sequence[int]) -> None:
    found = run.made_again().speedups(of, MOST_CURVES)
    columns = 1 if len(found) == 1 else 2
    places = figure.subplots(-(-len(found) // columns), columns, squeeze=False).ravel()
    for axes, one in zip(places, found, strict=False):
        axes.plot(one.counts, one.true, label="true", **TRUE)
        if one.believed is not None:
            axes.plot(one.counts, one.believed, label="predicted at the end", **BELIEVED)
        own = run.jobs[run.jobs["application"] == one.application]["allocated_processors"]
        given = np.intersect1d(own.to_numpy(), one.counts)
        true = one.true[np.searchsorted(one.counts, given)]
        axes.plot(given, true, "o", color=INK, markersize=2.5, label="counts that jobs got")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set_title(f"application {one.application} ({one.jobs:,} jobs)", fontsize=7, color=INK)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:g}")
        tidy(axes)
    for axes in places[len(found) :]:
        axes.remove()
    for axes in places[max(len(found) - columns, 0) : len(found)]:
        axes.set_xlabel("processors")
    for axes in places[: len(found) : columns]:
        axes.set_ylabel("speedup")
    shown = places[0].get_legend_handles_labels()
    figure.legend(*shown, loc="outside lower center", ncols=3, frameon=False, fontsize=6)


def _background(figure: "Figure", run: RunFolder, of: Sequence[int]) -> None:
    found = run.made_again().background()
    whole, errors = figure.subplots(2, 1, sharex=True)
    at = clock(float(found.time[0]), float(found.time[-1]), run.summary.get(EPOCH))
    x = at.show(found.time)
    whole.plot(x, 100 * found.true.mean(axis=1), label="true, mean", **TRUE)
    whole.plot(x, 100 * found.believed.mean(axis=1), label="predicted, mean", **BELIEVED)
    low, high = 100 * np.percentile(found.true, [10, 90], axis=1)
    whole.fill_between(x, low, high, color=PALE, linewidth=0, label="true, 10 to 90 %")
    whole.set(ylabel="CPU left (%)", ylim=(0, 105))
    whole.legend(frameon=False, fontsize=6, ncols=3, loc="upper left")
    errors.plot(x, 100 * np.abs(found.believed - found.true).mean(axis=1), **line(0))
    errors.set(ylabel="mean error (pp)", ylim=(0, None))
    at.mark(errors)
    tidy(whole, errors)


@dataclass(frozen=True)
class Kind:
    """A kind of picture: what it shows, and what draws it."""

    text: str
    draw: Callable[[Any, RunFolder, Sequence[int]], None]


KINDS = {
    "load": Kind("utilisation and queue over time", _load),
    "processors": Kind("given against requested processors", _processors),
    "runtimes": Kind("runtimes estimated at the start against true ones", _runtimes),
    "waits": Kind("distribution of waits by class of job", _waits),
    "errors": Kind("median error of prediction by processors and history", _errors),
    "resized": Kind("processors over time of the jobs that were resized most often", _resized),
    "speedups": Kind("speedup curves of applications, predicted and true", _speedups),
    "background": Kind("load of a shared machine, predicted and true", _background),
}
CHOOSING = ("resized", "speedups")
"""Kinds that show chosen jobs or applications."""
REPLAYED = ("speedups", "background")
"""Kinds for which the run is made again."""
SCHEDULE = "schedule"
"""The kind that has a size of its own."""
EXPLORER = "explorer"
"""The kind that is a page to look into."""


def figure_of(
    run: RunFolder, kind: str, columns: int = 1, title: bool = True, of: Sequence[int] = ()
) -> "Figure":
    """Return a picture of a run.

    Parameters
    ----------
    run : RunFolder
    kind : str
        ``schedule`` or one of `KINDS`.
    columns : {1, 2}
        Of a paper, for the size; a schedule has its own.
    title : bool
        Whether it names policy, predictor and workload.
    of : sequence of int
        Jobs (``resized``) or applications (``speedups``) to show; by default those
        resized most often, and the most frequent.

    Raises
    ------
    SimError
        If the kind is unknown, or the run has nothing of it.
    """
    name = run.title if title else ""
    if kind == SCHEDULE:
        return schedule_figure(run.tables, run.processors, name, epoch=run.summary.get(EPOCH))
    if kind not in KINDS:
        raise SimError(f"KIND {kind}: must be one of {', '.join([SCHEDULE, EXPLORER, *KINDS])}")
    if of and kind not in CHOOSING:
        raise SimError(f"--of {of[0]}: only {' and '.join(CHOOSING)} take it")
    size = (WIDTHS[columns], WIDTHS[columns] * (HEIGHT if columns == 1 else HEIGHT - 0.2))
    with new_figure(size, 300, {"font.size": 8, "svg.hashsalt": kind}) as figure:
        KINDS[kind].draw(figure, run, of)
        if name:
            figure.suptitle(name, fontsize=7, color=INK)
        figure.draw_without_rendering()
    return figure
