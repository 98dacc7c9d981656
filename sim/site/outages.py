"""What of the machine was missing, as far as a log shows, and how a replay goes without it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from predictors.base import BoolArray, FloatArray, IntArray
from sim.site.site_logs import DAY, WEEK, Beginning, Recorded, stand_ins

QUEUED = 0.05
"""Share of a week with waiting jobs from which on its fullest instant says something."""
FULL = 0.98
"""Share of the machine that counts as all of it."""
GAP = 3600.0
"""Shortest time without a start that may be an outage, seconds."""
FITTING = 3
"""So many jobs that would have fitted wait through a gap that is an outage."""
PIECES = 32
"""Parts into which missing processors are cut, so that they go as soon as some are free."""
MARK = 1.0 / 128
"""Seconds before an outage's begin at which it takes its processors; no log resolves them."""


@dataclass(frozen=True)
class Outage:
    """Processors that were missing for a while.

    Attributes
    ----------
    begin, end : float, seconds
    processors : int
        How many were missing.
    """

    begin: float
    end: float
    processors: int


@dataclass(frozen=True)
class Weeks:
    """How full the machine was in each week since the begin.

    Attributes
    ----------
    begin : numpy.ndarray of float, shape (k,), seconds
    most : numpy.ndarray of int, shape (k,)
        Most processors held at once.
    telling : numpy.ndarray of bool, shape (k,)
        Whether jobs waited long enough for the most to show what there was.
    """

    begin: FloatArray
    most: IntArray
    telling: BoolArray


def weeks_of(found: Recorded) -> Weeks:
    """Return how full the machine was by week."""
    edges = found.weeks()
    most = found.held.extremes(edges, np.maximum)
    waiting = replace(found.queued, values=(found.queued.values > 0).astype(float))
    waited = np.diff(waiting.area(edges)) / WEEK
    return Weeks(edges[:-1], most.astype(np.int64), waited >= QUEUED)


def low_weeks(found: Recorded, weeks: Weeks) -> list[Outage]:
    """Return the weeks whose most is below the machine although jobs waited."""
    low = weeks.telling & (weeks.most < FULL * found.processors)
    return [
        Outage(float(begin), float(begin + WEEK), int(found.processors - most))
        for begin, most in zip(weeks.begin[low], weeks.most[low], strict=True)
    ]


def gaps(found: Recorded) -> list[Outage]:
    """Return the times without any start in which each of the waiting jobs would have fitted.

    So none of them can have been kept waiting for the room of a wider one. At least
    `FITTING` were submitted on the day before or during the gap, so that a few that are
    held alone are no outage. It begins once the widest fits: while nothing starts the
    free processors only grow.
    """
    starts = np.unique(found.start[found.start >= found.begin])
    outages = []
    for k in np.flatnonzero(np.diff(starts) >= GAP):
        begin, end = float(starts[k]), float(starts[k + 1])
        first, last = np.searchsorted(found.submit, [begin - DAY, end - GAP / 6])
        waits = found.start[:last] >= end
        if waits[first:].sum() < FITTING:
            continue
        room = found.processors - found.count[:last][waits].max()
        low, high = np.searchsorted(found.held.times, [begin, end])
        fits = np.flatnonzero(found.held.values[low:high] <= room)
        if not fits.size:
            continue
        since = float(found.held.times[low + fits[0]])
        free = found.processors - found.held.values[low + fits[0]]
        if end - since >= GAP:
            outages.append(Outage(since, end, int(free)))
    return outages


def outages_of(found: Recorded) -> list[Outage]:
    """Return all outages that the log shows; a gap counts with what its week lacks not."""
    low = low_weeks(found, weeks_of(found))
    lacking = {outage.begin: outage.processors for outage in low}
    more = []
    for gap in gaps(found):
        week = found.begin + WEEK * np.floor((gap.begin - found.begin) / WEEK)
        left = gap.processors - lacking.get(float(week), 0)
        if left > 0:
            more.append(replace(gap, processors=left))
    return sorted([*low, *more], key=lambda outage: outage.begin)


def with_outages(first: Beginning, outages: Sequence[Outage]) -> tuple[Beginning, list[float]]:
    """Return a replay's jobs with such that stand for missing processors, and when these begin.

    They are rigid jobs without number, -1 in the index, that run as long as the outage; a
    scheduler knows their ends.
    """
    rows, jobs = [], first.trace.jobs
    for outage in outages:
        size = -(-outage.processors // PIECES)
        widths = [min(size, outage.processors - k) for k in range(0, outage.processors, size)]
        rows += [(outage.begin - MARK, outage.end - outage.begin, width) for width in widths]
    if not rows:
        return first, []
    submit, runtime, width = map(np.array, zip(*rows, strict=True))
    taken = stand_ins(jobs, submit, runtime, width.astype(np.int64))
    every = pd.concat([taken, jobs], ignore_index=True)
    order = np.argsort(every["submit_time"].to_numpy(), kind="stable")
    index = np.concatenate([np.full(len(rows), -1), first.index])[order]
    trace = replace(first.trace, jobs=every.iloc[order].reset_index(drop=True))
    return Beginning(trace, index), np.unique(submit).tolist()
