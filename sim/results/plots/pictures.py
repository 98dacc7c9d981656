"""Pictures of one run: its schedule, and what other kinds there are."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from predictors.base import BoolArray, FloatArray, IntArray
from sim.errors import SimError
from sim.results.metrics import count_bin, job_class, waiting, with_errors
from sim.results.outcome import Levels, Table, Tables
from sim.results.plots import style
from sim.results.plots.style import BLACK, COLOURS, INK, PALE, WHITE, Times
from sim.results.steady_state import EPOCH, Summary
from sim.state.processors import NodeSets
from sim.state.records import Ranges

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

LABELLED_JOBS = 40
"""Up to this many jobs each has a colour of its own and its number."""
SIZE_INCHES = (10.0, 7.0)
DRAWN_RECTANGLES = 3000
"""Up to this many rectangles are drawn one by one, more as a picture of means."""
COLUMNS, ROWS = 1000, 640
CURVE_POINTS = 1200
PANEL_INCHES = (8.2, 4.2)
"""Of the panel of processors."""
BUSY, QUEUE = "#0072B2", "#D55E00"
_AT_ONCE = 1 << 18
"""Rectangles that are drawn together: more would only need more memory."""


class Rectangles(NamedTuple):
    """Held processors over time: one rectangle for each interval of a stretch, shape (k,).

    A stretch is told by its row; times are in seconds, processors low <= p < high.
    """

    stretch: IntArray
    begin: FloatArray
    end: FloatArray
    low: FloatArray
    high: FloatArray

    def part(self, some: "slice | BoolArray | IntArray") -> "Rectangles":
        """Return some of the rectangles."""
        return Rectangles._make(values[some] for values in self)


def parsed(text: str) -> Ranges:
    """Return an interval set of processor numbers.

    Examples
    --------
    >>> parsed("0-3,7")
    ((0, 3), (7, 7))
    """
    ends = [part.partition("-") for part in text.split(",") if part]
    return tuple((int(low), int(high or low)) for low, _, high in ends)


def rectangles(held: Table, nodes: Sequence[Ranges] | None = None) -> Rectangles:
    """Return the rectangles of stretches, as ``allocations.parquet`` has them.

    Their nodes are read off the table where they are not at hand.
    """
    if nodes is None:
        nodes = list(map(cache(parsed), held["nodes"].fillna("")))
    sets = NodeSets.of(nodes)
    stretch = np.repeat(np.arange(len(sets)), np.diff(sets.first))
    begin, end = (held[f"{name}_time"].to_numpy()[stretch] for name in ("start", "end"))
    return Rectangles(stretch, begin, end, sets.low.astype(float), sets.high.astype(float) + 1)


def _ramp(low: FloatArray, high: FloatArray) -> list[tuple[IntArray, FloatArray]]:
    """Return the steps whose running sum is how much of each cell [low, high) covers.

    Both are in units of cells, not below 0, shape (k,).
    """
    steps = []
    for edge, sign in ((low, 1.0), (high, -1.0)):
        cell = edge.astype(np.int64)
        part = edge - cell
        steps.append((cell, sign * (1.0 - part)))
        if part.any():
            steps.append((cell + 1, sign * part))
    return steps


def coverage(
    shape: Rectangles, weight: FloatArray, extent: tuple[float, float, float], size: tuple[int, int]
) -> FloatArray:
    """Return the mean over each cell of the weights of the rectangles that cover it.

    Parameters
    ----------
    shape : Rectangles
    weight : numpy.ndarray of float, shape (..., k)
        Of several weightings each is summed up by itself.
    extent : tuple of float
        First and last instant and number of processors of the picture.
    size : tuple of int
        Rows (processors, lowest first) and columns (time).

    Returns
    -------
    numpy.ndarray of float, shape (..., rows, columns)

    Notes
    -----
    Each rectangle is a product of two ramps; their steps are added in place
    and summed along both axes, so the cost does not depend on its area.
    """
    (begin, end, processors), (rows, columns) = extent, size
    x, y = columns / (end - begin), rows / processors
    steps = np.zeros((*weight.shape[:-1], rows + 2, columns + 2))
    totals = steps.reshape(-1, (rows + 2) * (columns + 2))
    for first in range(0, weight.shape[-1], _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        part = shape.part(some)
        across = _ramp(
            np.clip((part.begin - begin) * x, 0, columns),
            np.clip((part.end - begin) * x, 0, columns),
        )
        for row, vertical in _ramp(part.low * y, part.high * y):
            base, weighted = row * (columns + 2), np.atleast_2d(weight[..., some] * vertical)
            for column, horizontal in across:
                for total, own in zip(totals, weighted, strict=True):
                    total += np.bincount(base + column, own * horizontal, len(total))
    return steps.cumsum(axis=-2).cumsum(axis=-1)[..., :rows, :columns]


def _fits(text: str, width: float, height: float) -> int | None:
    """Return the rotation at which a number fits into width times height inches, else None."""
    long, tall = 0.09 * len(text) + 0.04, 0.14
    if width >= long and height >= tall:
        return 0
    return 90 if width >= tall and height >= long else None


class Panel(NamedTuple):
    """A schedule: its rectangles and its time axis."""

    shape: Rectangles
    at: Times
    processors: int


def label_jobs(axes: "Axes", panel: "Panel", row: IntArray, names: IntArray) -> None:
    """Write each job's number wherever it fits, and at least once."""
    from matplotlib.patheffects import withStroke

    shape, at = panel.shape, panel.at
    width = (shape.end - shape.begin) / (at.end - at.begin) * PANEL_INCHES[0]
    height = (shape.high - shape.low) / panel.processors * PANEL_INCHES[1]
    for job in np.unique(row):
        mine = np.flatnonzero(row == job)
        text = str(names[job])
        turned = {k: _fits(text, width[k], height[k]) for k in mine.tolist()}
        inside = [k for k, rotation in turned.items() if rotation is not None]
        for k in inside or [int(mine[np.argmax((width * height)[mine])])]:
            axes.text(
                float(at.show(shape.begin[k]) + at.show(shape.end[k])) / 2,
                float(shape.low[k] + shape.high[k]) / 2 - 0.5,
                text,
                ha="center",
                va="center",
                fontsize=8,
                rotation=turned[k] or 0,
                color=WHITE if inside and COLOURS[job % len(COLOURS)] == BUSY else BLACK,
                path_effects=None if inside else [withStroke(linewidth=2.0, foreground=WHITE)],
                clip_on=True,
            )


def show_waits(figure: "Figure", axes: "Axes", colours: "Colormap", top: float) -> None:
    """Draw which waits colours stand for, up to a logarithm of minutes."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    marks = [(1, "1 min"), (10, "10 min"), (60, "1 h"), (600, "10 h")]
    marks += [(1440, "1 d"), (14400, "10 d"), (144000, "100 d"), (1440000, "1000 d")]
    shown = {0.0: "0"} | {float(np.log10(1 + minutes)): name for minutes, name in marks}
    shown = {mark: name for mark, name in shown.items() if mark <= top + 1e-9}
    bar = figure.colorbar(ScalarMappable(Normalize(0.0, top), colours), cax=axes)
    bar.set_ticks([*shown], labels=[*shown.values()])
    bar.set_label("wait of the job (blank: idle)")


def draw_rectangles(axes: "Axes", panel: Panel, face: "list[str] | FloatArray") -> None:
    """Draw rectangles one by one."""
    from matplotlib.collections import PolyCollection

    shape = panel.shape
    left, right = panel.at.show(shape.begin), panel.at.show(shape.end)
    low, high = shape.low - 0.5, shape.high - 0.5
    corners = np.array([[left, left, right, right], [low, high, high, low]]).T
    axes.add_collection(
        PolyCollection(
            list(corners),
            facecolors=face,
            edgecolors="white",
            linewidths=0.6 if len(corners) < 300 else 0.25,
            rasterized=len(corners) >= 300,
        )
    )


def _draw_means(axes: "Axes", panel: Panel, value: FloatArray, colours: "Colormap") -> None:
    """Draw what cells are held on average: paler where idle, coloured by the mean value."""
    size = (min(panel.processors, ROWS), COLUMNS)
    extent = (panel.at.begin, panel.at.end, float(panel.processors))
    held, total = coverage(panel.shape, np.stack([np.ones(len(value)), value]), extent, size)
    held = np.clip(held, 0.0, 1.0)
    face = colours(np.clip(total / np.maximum(held, 1e-9), 0.0, 1.0))[..., :3]
    begin, end = panel.at.shown
    axes.imshow(
        np.dstack([face, held]),
        origin="lower",
        aspect="auto",
        extent=(begin, end, -0.5, panel.processors - 0.5),
        interpolation="nearest" if panel.processors <= ROWS else "auto",
    )


def curve(axes: "Axes", times: FloatArray, values: FloatArray, at: Times, colour: str) -> None:
    """Draw a step function; with too many steps, its mean and its range."""
    first = max(int(np.searchsorted(times, at.begin, side="right")) - 1, 0)
    inside = slice(first, int(np.searchsorted(times, at.end, side="right")))
    times, values = times[inside], values[inside]
    if len(times) <= CURVE_POINTS:
        x, y = np.append(times, at.end), np.append(values, values[-1:])
        axes.fill_between(at.show(x), y, step="post", color=colour, alpha=0.25, linewidth=0)
        axes.step(at.show(x), y, where="post", color=colour, linewidth=1.1)
        return
    edges = np.linspace(at.begin, at.end, CURVE_POINTS // 2 + 1)
    levels = Levels(times, values)
    low, high = (levels.extremes(edges, of, closed=True) for of in (np.minimum, np.maximum))
    middle = at.show((edges[1:] + edges[:-1]) / 2)
    axes.fill_between(middle, low, high, color=colour, alpha=0.22, linewidth=0)
    axes.plot(middle, levels.means(edges), color=colour, linewidth=1.1)


def draw_use(busy: "Axes", queue: "Axes", tables: Tables, processors: int, at: Times) -> FloatArray:
    """Draw which share of the processors is busy, and how many jobs wait; return the latter."""
    timeline = tables.columns("timeline")
    times, queued = timeline["time"].to_numpy(), waiting(timeline, tables.columns("jobs"))
    curve(busy, times, 100.0 * timeline["busy_processors"].to_numpy() / processors, at, BUSY)
    curve(queue, times, queued, at, QUEUE)
    return queued


def schedule_figure(
    tables: Tables,
    processors: int,
    title: str = "",
    nodes: Sequence[Ranges] | None = None,
    epoch: object = None,
) -> "Figure":
    """Return the picture of a schedule.

    Up to 40 jobs have colours of their own and their numbers; beyond, jobs are coloured
    by how long they waited. Many jobs are drawn as means over cells of processors and
    time, paler where processors were idle.

    Parameters
    ----------
    tables, processors, title
        Of the run and its machine.
    nodes : sequence of Ranges, optional
        Processors of each allocation, where they are at hand.
    epoch : float, optional
        Time 0 in seconds since 1970; nothing else is a date.

    Returns
    -------
    matplotlib.figure.Figure
        Made without any global state; the same run gives the same picture.
    """
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    jobs, held = tables.columns("jobs"), tables.columns("allocations")
    row = pd.Index(jobs["job_id"]).get_indexer(held["job_id"])
    at = style.clock(float(jobs["submit_time"].min()), float(jobs["end_time"].max()), epoch)
    panel = Panel(rectangles(held, nodes), at, processors)
    job, drawn = row[panel.shape.stretch], len(panel.shape.stretch)
    wait = np.log10(1.0 + np.maximum(jobs["wait_time"].to_numpy(np.float64), 0.0) / 60.0)
    top = max(float(np.ceil(np.percentile(wait, 99.5) * 2) / 2), 1.0)
    value = np.clip(wait / top, 0.0, 1.0)[job]
    with style.new_figure(SIZE_INCHES, 120) as figure:
        colours = ListedColormap(colormaps["plasma"](np.linspace(0.0, 0.85, 256)))  # white is idle
        grid = figure.add_gridspec(3, 2, height_ratios=(6, 1.5, 1.5), width_ratios=(60, 1))
        gantt, busy, queue, waits = (
            figure.add_subplot(grid[cell]) for cell in ((0, 0), (1, 0), (2, 0), (0, 1))
        )
        gantt.set_ylim(-0.5, processors - 0.5)
        if processors <= 16:
            gantt.set_yticks(range(0, processors, 1 if processors <= 8 else 2))
        if not drawn:
            gantt.set_yticks([])
            gantt.text(0.5, 0.5, "the log does not say on which processors jobs ran", ha="center",
                       va="center", transform=gantt.transAxes, color=INK)  # fmt: skip
        elif drawn <= DRAWN_RECTANGLES:
            draw_rectangles(gantt, panel, colours(value))
        else:
            _draw_means(gantt, panel, value, colours)
        show_waits(figure, waits, colours, top)
        queued = draw_use(busy, queue, tables, processors, at)
        busy.set(ylim=(0.0, 105.0), yticks=[0, 50, 100])
        queue.set_ylim(0.0, max(float(queued.max(initial=0.0)) * 1.08, 1.0))
        for one, label in ((gantt, "processor"), (busy, "busy (%)"), (queue, "jobs waiting")):
            one.set(xlim=at.shown, ylabel=label)
            at.mark(one)
            style.tidy(one)
            one.label_outer()
        gantt.grid(visible=False)
        style.calibration_note(figure, jobs)
        if drawn and len(jobs) <= LABELLED_JOBS:
            draw_rectangles(gantt, panel, [COLOURS[own % len(COLOURS)] for own in job.tolist()])
            label_jobs(gantt, panel, job, jobs["job_id"].to_numpy())
        if not drawn or len(jobs) <= LABELLED_JOBS:
            waits.remove()
        figure.suptitle(title, x=0.01, ha="left", fontsize=12, color=INK)
    return figure


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


class Speedups(NamedTuple):
    """Speedups of one application, true and as believed when the run was over.

    So many jobs of the run are of it. Speedups at the counts, shape (n,), are
    T(least count) x least count / T(n), and None where the predictor has no curve.
    """

    application: int
    jobs: int
    counts: IntArray
    true: FloatArray
    believed: FloatArray | None


class LoadSeries(NamedTuple):
    """Background load of a shared machine over a run.

    True is the CPU that load leaves to jobs, averaged over what follows each of n instants, and
    believed what was predicted then: both of shape (n, processors).
    """

    time: FloatArray
    true: FloatArray
    believed: FloatArray


class RunFolder(NamedTuple):
    """A finished simulation as its artefacts tell it.

    `again` returns the run that is to be made again, a `sim.simulation.recorded_run.RecordedRun`,
    for kinds that need more than the tables.
    """

    tables: Tables
    summary: Summary
    title: str = ""
    again: Callable[[], Any] | None = None

    @property
    def jobs(self) -> pd.DataFrame:
        """The jobs without calibration runs."""
        return self.tables.jobs[self.tables.jobs["job_id"] >= 0]

    def clock(self) -> Times:
        """Return the time axis of the whole run."""
        first, last = self.tables.jobs["submit_time"].min(), self.tables.jobs["end_time"].max()
        return style.clock(float(first), float(last), self.summary.get(EPOCH))

    @property
    def processors(self) -> int:
        """Processors of the machine."""
        return int(self.summary.get("processors") or 1)

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
    style.calibration_note(figure, run.tables.jobs)
    busy.set(ylabel="busy (%)", ylim=(0, 105))
    queue.set(ylabel="jobs waiting", ylim=(0, None))
    at.mark(queue)
    style.tidy(busy, queue)


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
    style.tidy(axes)
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
        style.time_ticks(axis)
    axes.set(xlim=(bins[0], bins[-1]), ylim=(bins[0], bins[-1]))


def _waits(figure: "Figure", run: RunFolder, of: Sequence[int]) -> None:
    axes = figure.add_subplot()
    classes = job_class(run.jobs)
    for place, name in enumerate(("narrow_short", "narrow_long", "wide_short", "wide_long")):
        wait = np.sort(run.jobs.loc[classes == name, "wait_time"].to_numpy())
        if len(wait):
            share = 100 * np.arange(1, len(wait) + 1) / len(wait)
            label = f"{name.replace('_', ', ')} ({len(wait):,})"
            axes.step(wait, share, where="post", label=label, **style.line(place))
    ends = axes.get_xlim()
    axes.set_xscale("symlog", linthresh=60.0)
    style.time_ticks(axes.xaxis, least=60.0)
    axes.set(xlabel="wait", ylabel="jobs at or below (%)", ylim=(0, 101))
    axes.set_xlim(0, ends[1])
    axes.legend(frameon=False, fontsize="small", loc="lower right")
    style.tidy(axes)


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
        axes.step(at.show(time), count, where="post", label=f"job {job}", **style.line(place))
    axes.set(ylabel="processors", ylim=(0, None))
    at.mark(axes)
    style.legend(axes)
    style.tidy(axes)


def _speedups(figure: "Figure", run: RunFolder, of: Sequence[int]) -> None:
    found = run.made_again().speedups(of, MOST_CURVES)
    columns = 1 if len(found) == 1 else 2
    places = figure.subplots(-(-len(found) // columns), columns, squeeze=False).ravel()
    for axes, one in zip(places, found, strict=False):
        axes.plot(one.counts, one.true, label="true", **TRUE)
        if one.believed is not None:
            axes.plot(one.counts, one.believed, label="predicted at the end", **BELIEVED)
        own = run.jobs[run.jobs["application"] == one.application]["allocated_processors"]
        given = np.unique(own[own.between(one.counts[0], one.counts[-1])].to_numpy(float))
        true = np.exp(np.interp(np.log(given), np.log(one.counts), np.log(one.true)))
        axes.plot(given, true, "o", color=INK, markersize=2.5, label="counts that jobs got")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set_title(f"application {one.application} ({one.jobs:,} jobs)", fontsize=7, color=INK)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:g}")
        style.tidy(axes)
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
    at = style.clock(float(found.time[0]), float(found.time[-1]), run.summary.get(EPOCH))
    x = at.show(found.time)
    whole.plot(x, 100 * found.true.mean(axis=1), label="true, mean", **TRUE)
    whole.plot(x, 100 * found.believed.mean(axis=1), label="predicted, mean", **BELIEVED)
    low, high = 100 * np.percentile(found.true, [10, 90], axis=1)
    whole.fill_between(x, low, high, color=PALE, linewidth=0, label="true, 10 to 90 %")
    whole.set(ylabel="CPU left (%)", ylim=(0, 105))
    whole.legend(frameon=False, fontsize=6, ncols=3, loc="upper left")
    errors.plot(x, 100 * np.abs(found.believed - found.true).mean(axis=1), **style.line(0))
    errors.set(ylabel="mean error (pp)", ylim=(0, None))
    at.mark(errors)
    style.tidy(whole, errors)


KINDS = {
    "load": ("utilisation and queue over time", _load),
    "processors": ("given against requested processors", _processors),
    "runtimes": ("runtimes estimated at the start against true ones", _runtimes),
    "waits": ("distribution of waits by class of job", _waits),
    "errors": ("median error of prediction by processors and history", _errors),
    "resized": ("processors over time of the jobs that were resized most often", _resized),
    "speedups": ("speedup curves of applications, predicted and true", _speedups),
    "background": ("load of a shared machine, predicted and true", _background),
}
"""Kinds of pictures: what each shows, and what draws it."""
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
    with style.new_figure(size, 300, {"font.size": 8, "svg.hashsalt": kind}) as figure:
        KINDS[kind][1](figure, run, of)
        if name:
            figure.suptitle(name, fontsize=7, color=INK)
        figure.draw_without_rendering()
    return figure
