"""The picture of a schedule: processors over time, utilisation and queue below."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from predictors.base import BoolArray, FloatArray, IntArray
from sim.results.frames import Table, Tables
from sim.results.job_metrics import waiting
from sim.results.outcome import Levels
from sim.results.plots.style import (
    BLACK,
    COLOURS,
    INK,
    WHITE,
    Clock,
    calibration_note,
    clock,
    new_figure,
    tidy,
)
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
    """Held processors over time: one rectangle for each interval of a stretch.

    Attributes
    ----------
    stretch : numpy.ndarray of int, shape (k,)
        Row in the stretches.
    begin, end : numpy.ndarray of float, shape (k,), seconds
    low, high : numpy.ndarray of float, shape (k,)
        Processors low <= p < high.
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

    Parameters
    ----------
    held : pandas.DataFrame or Columns
    nodes : sequence of Ranges, optional
        Their processors, where they are at hand.
    """
    if nodes is None:
        nodes = list(map(cache(parsed), held["nodes"].fillna("")))
    sets = NodeSets.of(nodes)
    stretch = np.repeat(np.arange(len(sets)), np.diff(sets.first))
    begin, end = (held[f"{name}_time"].to_numpy()[stretch] for name in ("start", "end"))
    return Rectangles(stretch, begin, end, sets.low.astype(float), sets.high.astype(float) + 1)


def _ramp(low: FloatArray, high: FloatArray) -> list[tuple[IntArray, FloatArray]]:
    """Return the steps whose running sum is how much of each cell [low, high) covers.

    Parameters
    ----------
    low, high : numpy.ndarray of float, shape (k,)
        In units of cells, not below 0.
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
    at: Clock
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
    corners = np.stack(
        [np.stack([left, left, right, right], 1), np.stack([low, high, high, low], 1)], axis=2
    )
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


def curve(axes: "Axes", times: FloatArray, values: FloatArray, at: Clock, colour: str) -> None:
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


def draw_use(busy: "Axes", queue: "Axes", tables: Tables, processors: int, at: Clock) -> FloatArray:
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
    tables : Tables
    processors : int
        Of the machine.
    title : str
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
    begin = float(jobs["submit_time"].min()) if len(jobs) else 0.0
    at = clock(begin, float(jobs["end_time"].max()) if len(jobs) else 1.0, epoch)
    panel = Panel(rectangles(held, nodes), at, processors)
    job, drawn = row[panel.shape.stretch], len(panel.shape.stretch)
    wait = np.log10(1.0 + np.maximum(jobs["wait_time"].to_numpy(np.float64), 0.0) / 60.0)
    top = max(float(np.ceil(np.percentile(wait, 99.5) * 2) / 2) if len(wait) else 1.0, 1.0)
    value = np.clip(wait / top, 0.0, 1.0)[job]
    with new_figure(SIZE_INCHES, 120) as figure:
        colours = ListedColormap(colormaps["plasma"](np.linspace(0.0, 0.85, 256)))  # white is idle
        grid = figure.add_gridspec(3, 2, height_ratios=(6, 1.5, 1.5), width_ratios=(60, 1))
        gantt, busy, queue, legend = (
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
        show_waits(figure, legend, colours, top)
        queued = draw_use(busy, queue, tables, processors, at)
        busy.set(ylim=(0.0, 105.0), yticks=[0, 50, 100])
        queue.set_ylim(0.0, max(float(queued.max(initial=0.0)) * 1.08, 1.0))
        for one, label in ((gantt, "processor"), (busy, "busy (%)"), (queue, "jobs waiting")):
            one.set(xlim=at.shown, ylabel=label)
            at.mark(one)
            tidy(one)
            one.label_outer()
        gantt.grid(visible=False)
        calibration_note(figure, jobs)
        if drawn and len(jobs) <= LABELLED_JOBS:
            draw_rectangles(gantt, panel, [COLOURS[own % len(COLOURS)] for own in job.tolist()])
            label_jobs(gantt, panel, job, jobs["job_id"].to_numpy())
        if not drawn or len(jobs) <= LABELLED_JOBS:
            legend.remove()
        figure.suptitle(title, x=0.01, ha="left", fontsize=12, color=INK)
    return figure
