"""The picture of a schedule: processors over time, utilisation and queue below."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from sim.results.frames import Tables
from sim.results.plots.panels import (
    Panel,
    draw_panels,
    draw_rectangles,
    job_colour,
    label_jobs,
    parsed,
    rectangles,
    waits_scale,
)
from sim.results.plots.style import INK, calibration_note, clock, new_figure, waiting
from sim.state.records import Ranges

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELLED_JOBS = 40
"""Up to this many jobs each has a colour of its own and its number."""
SIZE_INCHES = (10.0, 7.0)


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
    jobs, held = tables.columns("jobs"), tables.columns("allocations")
    timeline = tables.columns("timeline").frame()
    row = pd.Index(jobs["job_id"]).get_indexer(held["job_id"])
    begin = float(jobs["submit_time"].min()) if len(jobs) else 0.0
    at = clock(begin, float(jobs["end_time"].max()) if len(jobs) else 1.0, epoch)
    shape = rectangles(
        held["start_time"].to_numpy(),
        held["end_time"].to_numpy(),
        list(map(cache(parsed), held["nodes"].fillna(""))) if nodes is None else nodes,
    )
    panel = Panel(shape, at, processors)
    with new_figure(SIZE_INCHES, 120) as figure:
        grid = figure.add_gridspec(3, 2, height_ratios=(6, 1.5, 1.5), width_ratios=(60, 1))
        axes = [figure.add_subplot(grid[cell]) for cell in ((0, 0), (1, 0), (2, 0), (0, 1))]
        by_wait = waits_scale(jobs["wait_time"].to_numpy(np.float64), row)
        draw_panels(figure, axes, panel, by_wait, timeline, waiting(timeline, jobs))
        calibration_note(figure, jobs)
        if len(shape.stretch) and len(jobs) <= LABELLED_JOBS:
            job = row[shape.stretch]
            draw_rectangles(axes[0], panel, [job_colour(own) for own in job.tolist()])
            label_jobs(axes[0], panel, job, jobs["job_id"].to_numpy())
            axes[3].remove()
        figure.suptitle(title, x=0.01, ha="left", fontsize=12, color=INK)
    return figure
