"""The picture of a schedule: processors over time, utilisation and queue below."""

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from predictors.base import FloatArray, IntArray
from sim.results.frames import Tables
from sim.results.plots.style import COLOURS, INK, PALE, Clock, clock, resample
from sim.state.records import Records, Stretches

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

LABELLED_JOBS = 40
"""Up to this many jobs each has a colour of its own and its number."""
DRAWN_RECTANGLES = 3000
"""Up to this many rectangles are drawn one by one, more as a picture of means."""
COLUMNS, ROWS = 1600, 640
CURVE_POINTS = 1200
SIZE_INCHES = (12.0, 8.0)
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

    def part(self, some: slice) -> "Rectangles":
        """Return some of the rectangles."""
        return Rectangles(
            self.stretch[some],
            self.begin[some],
            self.end[some],
            self.low[some],
            self.high[some],
        )


def rectangles(stretches: Stretches) -> Rectangles:
    """Return the rectangles of all stretches."""
    pieces = np.fromiter(map(len, stretches.nodes), np.int64, len(stretches.nodes))
    stretch = np.repeat(np.arange(len(pieces)), pieces)
    numbers = chain.from_iterable(chain.from_iterable(stretches.nodes))
    edges = np.fromiter(numbers, np.float64, 2 * len(stretch)).reshape(-1, 2)
    return Rectangles(
        stretch,
        stretches.start_time[stretch],
        stretches.end_time[stretch],
        edges[:, 0],
        edges[:, 1] + 1,
    )


def _ramp(low: FloatArray, high: FloatArray, cells: int) -> list[tuple[IntArray, FloatArray]]:
    """Return the steps whose running sum is how much of each cell [low, high) covers.

    Parameters
    ----------
    low, high : numpy.ndarray of float, shape (k,)
        In units of cells, within 0..cells.
    """
    steps = []
    for edge, sign in ((low, 1.0), (high, -1.0)):
        cell = np.minimum(edge.astype(np.int64), cells - 1)
        part = edge - cell
        steps.append((cell, sign * (1.0 - part)))
        steps.append((cell + 1, sign * part))
    return steps


def coverage(
    shape: Rectangles, weight: FloatArray, extent: tuple[float, float, float], size: tuple[int, int]
) -> FloatArray:
    """Return the mean over each cell of the weights of the rectangles that cover it.

    Parameters
    ----------
    shape : Rectangles
    weight : numpy.ndarray of float, shape (k,)
    extent : tuple of float
        First and last instant and number of processors of the picture.
    size : tuple of int
        Rows (processors, lowest first) and columns (time).

    Returns
    -------
    numpy.ndarray of float, shape `size`

    Notes
    -----
    Each rectangle is a product of two ramps; their steps are added in place
    and summed along both axes, so the cost does not depend on its area.
    """
    rows, columns = size
    steps = np.zeros((rows + 1, columns + 1))
    for first in range(0, len(weight), _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        _add_steps(shape.part(some), weight[some], extent, steps)
    return steps.cumsum(axis=0).cumsum(axis=1)[:rows, :columns]


def _add_steps(
    shape: Rectangles, weight: FloatArray, extent: tuple[float, float, float], steps: FloatArray
) -> None:
    """Add to `steps`, of shape (rows + 1, columns + 1), those of some rectangles."""
    begin, end, processors = extent
    rows, columns = steps.shape[0] - 1, steps.shape[1] - 1
    x = columns / (end - begin)
    y = rows / processors
    across = _ramp(
        np.clip((shape.begin - begin) * x, 0, columns),
        np.clip((shape.end - begin) * x, 0, columns),
        columns,
    )
    total = steps.reshape(-1)
    for row, vertical in _ramp(shape.low * y, shape.high * y, rows):
        base, weighted = row * (columns + 1), weight * vertical
        for column, horizontal in across:
            total += np.bincount(base + column, weighted * horizontal, len(total))


def _colour(job: int) -> str:
    return COLOURS[job % len(COLOURS)]


def _fits(text: str, width: float, height: float) -> int | None:
    """Return the rotation at which a number fits into width times height inches, else None."""
    long, tall = 0.09 * len(text) + 0.04, 0.14
    if width >= long and height >= tall:
        return 0
    return 90 if width >= tall and height >= long else None


def _label_jobs(axes: "Axes", shape: Rectangles, job: IntArray, names: IntArray, at: Clock) -> None:
    """Write each job's number wherever it fits, and at least once."""
    from matplotlib.patheffects import withStroke

    low, high = axes.get_ylim()
    width = (shape.end - shape.begin) / (at.end - at.begin) * SIZE_INCHES[0] * 0.9
    height = (shape.high - shape.low) / (high - low) * SIZE_INCHES[1] * 0.58
    for own in np.unique(job):
        mine = np.flatnonzero(job == own)
        text = str(names[own])
        turned = {row: _fits(text, width[row], height[row]) for row in mine.tolist()}
        inside = [row for row, rotation in turned.items() if rotation is not None]
        largest = int(mine[np.argmax((width * height)[mine])])
        for row in inside or [largest]:
            axes.text(
                float(at.show(shape.begin[row]) + at.show(shape.end[row])) / 2,
                float(shape.low[row] + shape.high[row]) / 2 - 0.5,
                text,
                ha="center",
                va="center",
                fontsize=8,
                rotation=turned[row] or 0,
                color="white" if inside and _colour(own) == BUSY else "black",
                path_effects=None if inside else [withStroke(linewidth=2.0, foreground="white")],
            )


def _wait_scale(wait: FloatArray) -> tuple[FloatArray, float]:
    """Return log10(1 + wait in minutes) and a round top of the scale."""
    value = np.log10(1.0 + np.maximum(wait, 0.0) / 60.0)
    top = float(np.ceil(np.percentile(value, 99.5) * 2) / 2) if len(value) else 1.0
    return value, max(top, 1.0)


def _wait_colours() -> "Colormap":
    """Return a uniform scale that stays clear of white, which stands for idle."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps["plasma"](np.linspace(0.0, 0.85, 256)))


def _draw_rectangles(
    axes: "Axes", shape: Rectangles, face: "list[str] | FloatArray", at: Clock
) -> None:
    from matplotlib.collections import PolyCollection

    left, right = at.show(shape.begin), at.show(shape.end)
    low, high = shape.low - 0.5, shape.high - 0.5
    corners = np.stack(
        [np.stack([left, left, right, right], 1), np.stack([low, high, high, low], 1)], axis=2
    )
    width = 0.6 if len(corners) < 300 else 0.25
    axes.add_collection(
        PolyCollection(list(corners), facecolors=face, edgecolors="white", linewidths=width)
    )


def _draw_means(
    axes: "Axes", shape: Rectangles, colour: FloatArray, at: Clock, processors: int
) -> None:
    """Draw what cells are held on average: paler where idle, coloured by mean wait."""
    size = (min(processors, ROWS), COLUMNS)
    extent = (at.begin, at.end, float(processors))
    held = np.clip(coverage(shape, np.ones(len(colour)), extent, size), 0.0, 1.0)
    mean = coverage(shape, colour, extent, size) / np.maximum(held, 1e-9)
    face = _wait_colours()(np.clip(mean, 0.0, 1.0))[..., :3]
    picture = face * held[..., None] + (1.0 - held[..., None])
    axes.imshow(
        picture,
        origin="lower",
        aspect="auto",
        extent=(0.0, at.length, -0.5, processors - 0.5),
        interpolation="nearest" if processors <= ROWS else "auto",
    )


def _wait_legend(figure: "Figure", axes: "Axes", top: float) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    bar = figure.colorbar(ScalarMappable(Normalize(0.0, top), _wait_colours()), cax=axes)
    marks = [(1, "1 min"), (10, "10 min"), (60, "1 h"), (600, "10 h")]
    marks += [(1440, "1 d"), (14400, "10 d"), (144000, "100 d"), (1440000, "1000 d")]
    shown = [(0.0, "0"), *[(float(np.log10(1 + minutes)), name) for minutes, name in marks]]
    shown = [(value, name) for value, name in shown if value <= top + 1e-9]
    bar.set_ticks([value for value, _ in shown], labels=[name for _, name in shown])
    bar.set_label("wait of the job (white: idle)")


def _gantt(axes: "Axes", records: Records, names: IntArray, at: Clock) -> float | None:
    """Draw the processors over time; return the top of the scale of waits, if it is used."""
    shape = rectangles(records.stretches)
    job = records.stretches.job[shape.stretch]
    axes.set_ylim(-0.5, records.processors - 0.5)
    if records.processors <= 16:
        axes.set_yticks(range(0, records.processors, 1 if records.processors <= 8 else 2))
    if len(records.stretches.job) and not len(job):
        axes.set_yticks([])
        text = "the log does not say on which processors jobs ran"
        axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes, color=INK)
        return None
    if len(names) <= LABELLED_JOBS:
        _draw_rectangles(axes, shape, [_colour(own) for own in job.tolist()], at)
        _label_jobs(axes, shape, job, names, at)
        return None
    value, top = _wait_scale(records.start_time - records.submit_time)
    colour = np.clip(value / top, 0.0, 1.0)[job]
    if len(job) <= DRAWN_RECTANGLES:
        _draw_rectangles(axes, shape, _wait_colours()(colour), at)
    else:
        _draw_means(axes, shape, colour, at, records.processors)
    return top


def _curve(axes: "Axes", times: FloatArray, values: FloatArray, at: Clock, colour: str) -> None:
    """Draw a step function; with too many steps, its mean and its range."""
    if len(times) <= CURVE_POINTS:
        x, y = np.append(times, at.end), np.append(values, values[-1:])
        axes.fill_between(at.show(x), y, step="post", color=colour, alpha=0.25, linewidth=0)
        axes.step(at.show(x), y, where="post", color=colour, linewidth=1.1)
        return
    edges = np.linspace(at.begin, at.end, CURVE_POINTS // 2 + 1)
    mean, low, high = resample(times, values, edges)
    middle = at.show((edges[1:] + edges[:-1]) / 2)
    axes.fill_between(middle, low, high, color=colour, alpha=0.22, linewidth=0)
    axes.plot(middle, mean, color=colour, linewidth=1.1)


def _finish(axes: "Axes", label: str, at: Clock, *, last: bool) -> None:
    axes.set_xlim(0.0, at.length)
    axes.set_ylabel(label)
    axes.grid(visible=True, color=PALE, linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelbottom=last)
    if last:
        axes.set_xlabel(f"time since the first submit ({at.unit})")


def _curves(
    busy: "Axes", queue: "Axes", timeline: pd.DataFrame, processors: int, at: Clock
) -> None:
    times = timeline["time"].to_numpy()
    used = 100.0 * timeline["busy_processors"].to_numpy() / processors
    _curve(busy, times, used, at, BUSY)
    busy.set_ylim(0.0, 105.0)
    busy.set_yticks([0, 50, 100])
    waiting = timeline["queued_jobs"].to_numpy(dtype=np.float64)
    _curve(queue, times, waiting, at, QUEUE)
    queue.set_ylim(0.0, max(float(waiting.max(initial=0.0)) * 1.08, 1.0))


def schedule_figure(records: Records, tables: Tables, title: str = "") -> "Figure":
    """Return the picture of a schedule.

    Up to 40 jobs have colours of their own and their numbers; beyond, jobs are
    coloured by how long they waited. Large schedules are drawn as means over
    cells of processors and time, paler where processors were idle.

    Parameters
    ----------
    records : Records
    tables : Tables
        Of the same run.
    title : str

    Returns
    -------
    matplotlib.figure.Figure
        Made without any global state; the same run gives the same picture.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        figure = Figure(figsize=SIZE_INCHES, dpi=120, layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.add_gridspec(3, 2, height_ratios=(6, 1.5, 1.5), width_ratios=(60, 1))
        gantt, busy, queue = (figure.add_subplot(grid[row, 0]) for row in range(3))
        legend = figure.add_subplot(grid[0, 1])
        at = clock(
            float(records.submit_time.min(initial=np.inf)) if len(records.submit_time) else 0.0,
            float(records.end_time.max()) if len(records.end_time) else 1.0,
        )
        names = _names(records, tables)
        top = _gantt(gantt, records, names, at)
        if top is None:
            legend.remove()
        else:
            _wait_legend(figure, legend, top)
        _curves(busy, queue, tables.timeline, records.processors, at)
        _finish(gantt, "processor", at, last=False)
        _finish(busy, "busy (%)", at, last=False)
        _finish(queue, "jobs waiting", at, last=True)
        gantt.grid(visible=False)
        gantt.set_title(title, loc="left", fontsize=11, color=INK)
    return figure


def _names(records: Records, tables: Tables) -> IntArray:
    """Return the job ids by job index, from the allocations, which keep the engine's order."""
    names = np.zeros(len(records.submit_time), np.int64)
    names[records.stretches.job] = tables.allocations["job_id"].to_numpy()
    return names
