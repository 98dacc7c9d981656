"""The picture of a schedule: processors over time, the busiest week beside, queue below."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from sim.results.frames import Columns, Tables
from sim.results.plots.panels import (
    Panel,
    column,
    draw_rectangles,
    job_colour,
    label_jobs,
    parsed,
    ratio_scale,
    rectangles,
    waits_scale,
)
from sim.results.plots.style import (
    INK,
    Clock,
    calibration_note,
    clock,
    new_figure,
    resample,
    waiting,
)
from sim.state.records import Ranges

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABELLED_JOBS = 40
"""Up to this many jobs each has a colour of its own and its number."""
SIZE_INCHES = (15.0, 8.0)
WEEK, DAY = 604800.0, 86400.0


def busiest(timeline: pd.DataFrame | Columns, at: Clock) -> tuple[float, float]:
    """Return begin and end of the week with most processors held and asked for.

    The day of a schedule of less than two weeks; the whole of one of less than two days.

    Examples
    --------
    >>> day = 86400.0
    >>> line = pd.DataFrame({"time": [0.0, 20 * day], "busy_processors": [0, 8],
    ...     "queued_processors": [0, 3]})
    >>> [round(end / day) for end in busiest(line, clock(0.0, 30 * day))]
    [20, 27]
    """
    span = at.end - at.begin
    window = WEEK if span >= 2 * WEEK else DAY if span >= 2 * DAY else span
    if window == span:
        return at.begin, at.end
    step = window / 7
    edges = at.begin + step * np.arange(int(np.ceil(span / step)) + 1, dtype=np.float64)
    wanted = timeline["busy_processors"] + timeline["queued_processors"]
    mean = resample(timeline["time"].to_numpy(), wanted.to_numpy(np.float64), edges)[0]
    sums = np.convolve(mean, np.ones(7), mode="valid")
    begin = min(at.begin + step * int(np.argmax(sums)), at.end - window)
    return begin, begin + window


def schedule_figure(
    tables: Tables,
    processors: int,
    title: str = "",
    nodes: Sequence[Ranges] | None = None,
    epoch: object = None,
) -> "Figure":
    """Return the picture of a schedule.

    On the left is the whole: up to 40 jobs have colours of their own and their
    numbers; beyond, jobs are coloured by how long they waited. On the right is the
    busiest week (day of a short one), by how many processors jobs got of those that they
    requested. Many jobs are drawn as means over cells of processors and time,
    paler where processors were idle.

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
    jobs, held = tables.columns("jobs"), tables.columns("allocations")
    timeline = tables.columns("timeline").frame()
    row = pd.Index(jobs["job_id"]).get_indexer(held["job_id"])
    begin = float(jobs["submit_time"].min()) if len(jobs) else 0.0
    at = clock(begin, float(jobs["end_time"].max()) if len(jobs) else 1.0, epoch)
    shape = rectangles(
        held["start_time"].to_numpy(),
        held["end_time"].to_numpy(),
        list(map(parsed, held["nodes"].fillna(""))) if nodes is None else nodes,
    )
    whole = Panel(shape, at.begin, at.end, at, processors)
    part = whole.cut(*busiest(timeline, at))
    asked = jobs["requested_processors"].to_numpy(np.float64)[row]
    ratio = held["processors"].to_numpy() / np.maximum(asked, 1.0)
    with new_figure(SIZE_INCHES, 120) as figure:
        grid = figure.add_gridspec(3, 4, height_ratios=(6, 1.5, 1.5), width_ratios=(60, 1, 60, 1))
        left, right = (
            [figure.add_subplot(grid[at]) for at in ((0, k), (1, k), (2, k), (0, k + 1))]
            for k in (0, 2)
        )
        by_wait = waits_scale(jobs["wait_time"].to_numpy(np.float64), row)
        molded = bool((ratio != 1.0).any())
        queued = waiting(timeline, jobs)
        column(figure, left, whole, by_wait, timeline, queued)
        column(figure, right, part, ratio_scale(ratio) if molded else by_wait, timeline, queued)
        calibration_note(figure, jobs)
        _caption(left[0], right[0], whole, part, molded)
        names = jobs["job_id"].to_numpy()
        if len(shape.stretch) and len(jobs) <= LABELLED_JOBS:
            job = row[shape.stretch]
            draw_rectangles(left[0], whole, [job_colour(own) for own in job.tolist()])
            label_jobs(left[0], whole, job, names, own=True)
            label_jobs(right[0], part, row[part.shape.stretch], names, own=False)
            left[3].remove()
        figure.suptitle(title, x=0.01, ha="left", fontsize=12, color=INK)
    return figure


def _caption(left: "Axes", right: "Axes", whole: Panel, part: Panel, molded: bool) -> None:
    """Say what the panels show, and mark the part in the whole."""
    if not len(whole.shape.stretch):
        text = "the log does not say on which processors jobs ran"
        for axes in (left, right):
            axes.set_yticks([])
            axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes, color=INK)
    window = "week" if part.end - part.begin > 2 * DAY else "day"
    is_part = part.end - part.begin < whole.end - whole.begin
    if is_part:
        for time in whole.at.show(np.array([part.begin, part.end])).tolist():
            left.axvline(time, color=INK, linewidth=1.0, linestyle=":")
    left.set_title("the whole", loc="left", fontsize=10, color=INK)
    name = f"the busiest {window}" if is_part else "the same"
    what = "by processors given" if molded else "no job was molded"
    right.set_title(f"{name}, {what}", loc="left", fontsize=10, color=INK)
