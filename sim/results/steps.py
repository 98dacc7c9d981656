"""The state of machine and queue over time, as piecewise-constant functions."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray
from sim.state.records import Records

NOBODY = np.iinfo(np.int64).max
"""Stands for "no job waits" where the least count of the waiting jobs is asked."""


@dataclass(frozen=True)
class Demand:
    """What each job asks of the machine while it waits.

    Attributes
    ----------
    requested : numpy.ndarray of int, shape (n,)
        Reference processors.
    least : numpy.ndarray of int, shape (n,)
        Fewest processors the job can start on.
    work : numpy.ndarray of float, shape (n,), processor-seconds
        Reference processors times reference runtime.
    counted : numpy.ndarray of bool, shape (n,)
        Whether the job's waiting counts.
    """

    requested: IntArray
    least: IntArray
    work: FloatArray
    counted: NDArray[np.bool_]


@dataclass(frozen=True)
class Steps:
    """Machine and queue at each instant: value i holds from times[i] to times[i + 1].

    Attributes
    ----------
    times : numpy.ndarray of float, shape (m,), seconds
        Ascending, distinct; after the last nothing runs or waits.
    busy : numpy.ndarray of int, shape (m,)
        Held processors.
    queued_jobs, queued_processors : numpy.ndarray of int, shape (m,)
        Waiting jobs and the sum of their reference counts.
    queued_work : numpy.ndarray of float, shape (m,), processor-seconds
    least, least_requested : numpy.ndarray of int, shape (m,)
        Least count, and least reference count, of the waiting jobs; `NOBODY`
        where none waits.
    down : numpy.ndarray of int, shape (m,)
        Processors out of service.
    """

    times: FloatArray
    busy: IntArray
    queued_jobs: IntArray
    queued_processors: IntArray
    queued_work: FloatArray
    least: IntArray
    least_requested: IntArray
    down: IntArray


def waits(records: Records) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return when jobs wait: job index, begin and end of each wait, seconds.

    A job waits from its submit time to its first start, and after a run that
    did not end it to the start of its next run. Waits of no length are left out.
    """
    job = np.arange(len(records.submit_time))
    begin, end = records.submit_time, records.start_time
    if records.restarts.any():
        again = _waits_for_restart(records)
        job = np.concatenate([job, again[0]])
        begin = np.concatenate([begin, again[1]])
        end = np.concatenate([end, again[2]])
    some = end > begin
    return job[some], begin[some], end[some]


def _waits_for_restart(records: Records) -> tuple[IntArray, FloatArray, FloatArray]:
    stretches = records.stretches
    order = np.lexsort((stretches.start_time, stretches.job))
    job, run = stretches.job[order], stretches.run[order]
    gap = np.flatnonzero((job[1:] == job[:-1]) & (run[1:] != run[:-1]))
    return job[gap], stretches.end_time[order][gap], stretches.start_time[order][gap + 1]


def least_over(begin: IntArray, end: IntArray, value: IntArray, length: int) -> IntArray:
    """Return, for each of `length` steps, the least value among the ranges that cover it.

    Parameters
    ----------
    begin, end : numpy.ndarray of int, shape (k,)
        Range i covers steps begin[i] <= step < end[i]; none is empty.
    value : numpy.ndarray of int, shape (k,)
    length : int

    Returns
    -------
    numpy.ndarray of int, shape (length,)
        `NOBODY` where no range covers a step.

    Notes
    -----
    A sparse table run backwards: each range is two blocks of a power of two,
    and blocks are halved from the largest size to single steps.
    """
    level = np.frexp((end - begin).astype(np.float64))[1] - 1
    least = np.full(length, NOBODY)
    for power in range(int(level.max(initial=0)), -1, -1):
        here = level == power
        np.minimum.at(least, begin[here], value[here])
        np.minimum.at(least, end[here] - (1 << power), value[here])
        half = (1 << power) >> 1
        if half:
            halves = least.copy()
            np.minimum(halves[half:], least[:-half], out=halves[half:])
            least = halves
    return least


def _level(begin: IntArray, end: IntArray, weight: FloatArray | None, length: int) -> FloatArray:
    if not begin.size:
        return np.zeros(length)
    up = np.bincount(begin, weight, minlength=length)
    down = np.bincount(end, weight, minlength=length)
    return np.cumsum(up - down)


def steps(records: Records, demand: Demand) -> Steps:
    """Return the state of machine and queue over time.

    Parameters
    ----------
    records : Records
    demand : Demand
        By job index; waits of jobs that are not counted are left out.
    """
    job, begin, end = waits(records)
    counted = demand.counted[job]
    job, begin, end = job[counted], begin[counted], end[counted]
    held = records.stretches
    out_start, out_end, out_width = _outages(records)
    parts = (held.start_time, held.end_time, begin, end, records.submit_time[:1])
    times, index = np.unique(np.concatenate([*parts, out_start, out_end]), return_inverse=True)
    borders = np.cumsum([len(part) for part in (*parts, out_start)])
    on, off, join, leave, _, fail, repair = np.split(index.astype(np.int64), borders)
    size = len(times)
    requested, work = demand.requested[job], demand.work[job]
    return Steps(
        times,
        _level(on, off, held.processors.astype(np.float64), size).astype(np.int64),
        _level(join, leave, None, size).astype(np.int64),
        _level(join, leave, requested.astype(np.float64), size).astype(np.int64),
        np.maximum(_level(join, leave, work, size), 0.0),
        least_over(join, leave, demand.least[job], size),
        least_over(join, leave, requested, size),
        _level(fail, repair, out_width, size).astype(np.int64)
        if fail.size
        else np.broadcast_to(np.int64(0), size),
    )


def _outages(records: Records) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return begin, end and width of outages between the first submit and the last end."""
    nothing = np.empty(0)
    if records.recoveries is None or not len(records.submit_time):
        return nothing, nothing, nothing
    out = records.recoveries.outages
    first, last = records.submit_time.min(), records.end_time.max()
    start, end = np.clip(out.start_time, first, last), np.clip(out.end_time, first, last)
    some = end > start
    return start[some], end[some], out.processors[some].astype(np.float64)
