"""A finished simulation: its tables, and the state of machine and queue over time."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray
from sim.results.frames import Columns, Tables, allocations_table, jobs_table, predictions_table
from sim.results.steady_state import STEADY, Figures
from sim.state.records import Records
from workloads.base import GroundTruth, Trace

NOBODY = np.iinfo(np.int32).max
"""Stands for "no job waits" where the least count of the waiting jobs is asked."""


@dataclass(frozen=True)
class Levels:
    """A step function of time: `values[i]` holds from `times[i]` on, 0 before.

    Attributes
    ----------
    times : numpy.ndarray of float, shape (k,), seconds
        Ascending, each once.
    values : numpy.ndarray of float, shape (k,)

    Examples
    --------
    >>> levels, edges = Levels(np.array([0.0, 5.0]), np.array([2.0, 7.0])), np.array([0.0, 5.0])
    >>> levels.means(edges).item(), levels.extremes(edges, np.maximum).item()
    (2.0, 2.0)
    """

    times: FloatArray
    values: FloatArray

    def at(self, instants: FloatArray, *, before: bool = False) -> FloatArray:
        """Return the values at these instants, or just before them."""
        side: Literal["left", "right"] = "left" if before else "right"
        return np.append(0.0, self.values)[np.searchsorted(self.times, instants, side)]

    def area(self, instants: FloatArray) -> FloatArray:
        """Return the integral from the first step to each instant."""
        whole = np.append(0.0, np.cumsum(self.values[:-1] * np.diff(self.times)))
        place = np.searchsorted(self.times, instants, side="right") - 1
        inside = np.maximum(place, 0)
        return np.where(
            place < 0, 0.0, whole[inside] + self.values[inside] * (instants - self.times[inside])
        )

    def means(self, edges: FloatArray) -> FloatArray:
        """Return the mean between consecutive edges, shape (k - 1,)."""
        return np.asarray(np.diff(self.area(edges)) / np.diff(edges), np.float64)

    def extremes(self, edges: FloatArray, of: np.ufunc, *, closed: bool = False) -> FloatArray:
        """Return the least or greatest value between consecutive edges, shape (k - 1,).

        Parameters
        ----------
        edges : numpy.ndarray of float, shape (k,), seconds
            Ascending.
        of : numpy.ufunc
            `numpy.minimum` or `numpy.maximum`.
        closed : bool
            Whether a step at the later edge counts.
        """
        first = np.searchsorted(self.times, edges[:-1], side="right")
        last = np.searchsorted(self.times, edges[1:], side="right" if closed else "left")
        values = np.concatenate([[0.0], self.values, [0.0]])
        spans = np.stack([first, np.maximum(last, first) + 1], axis=1).ravel()
        return np.asarray(of.reduceat(values, spans)[::2], np.float64)


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


def least_over(begin: IntArray, end: IntArray, value: IntArray, length: int) -> Any:
    """Return, for each of `length` steps, the least value among the ranges that cover it.

    Range i covers steps begin[i] <= step < end[i]; none is empty. Where no range covers a step
    it is `NOBODY`.

    Notes
    -----
    A sparse table run backwards: each range is two blocks of a power of two,
    and blocks are halved from the largest size to single steps.
    """
    level = np.frexp((end - begin).astype(np.float64))[1] - 1
    least: NDArray[Any] = np.full(length, NOBODY, np.int32)
    value = value.astype(least.dtype)
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


def _level(begin: IntArray, end: IntArray, weight: Any, length: int) -> Any:
    """Return how much is there from each step on: each weight, or 1, over its range of steps."""
    level = np.bincount(begin, weight, minlength=length + 1)
    level -= np.bincount(end, weight, minlength=length + 1)
    return np.cumsum(level, out=level)[:length]


def _whole(begin: IntArray, end: IntArray, weight: IntArray | None, length: int) -> Any:
    """Return such a level of whole numbers, in as few bytes as all but immense ones need."""
    level = _level(begin, end, weight, length)
    return level.astype(np.int32 if level.max(initial=0) < NOBODY else np.int64)


def steps_of(
    trace: Trace, truth: GroundTruth, records: Records, counted: NDArray[np.bool_]
) -> Steps:
    """Return the state of machine and queue over a run; only the waits of some jobs count."""
    held = records.stretches
    busy = _Spans(held.start_time, held.end_time, held.processors)
    job, wait = _waiting(records, counted)
    down = _outages(records)
    instants = [one for span in (busy, wait, down) for one in (span.begin, span.end)]
    times = np.unique(np.concatenate([*instants, records.submit_time[:1]]))
    join, leave = wait.places(times)
    requested, runtime = (
        trace.jobs[name].to_numpy()[job] for name in ("requested_processors", "reference_runtime")
    )
    size = len(times)
    return Steps(
        times,
        _whole(*busy.places(times), busy.value, size),
        _whole(join, leave, None, size),
        _whole(join, leave, requested, size),
        np.maximum(_level(join, leave, requested * runtime, size), 0.0),
        least_over(join, leave, np.minimum(truth.min_processors[job], requested), size),
        least_over(join, leave, requested, size),
        _whole(*down.places(times), down.value, size),
    )


def _waiting(records: Records, counted: NDArray[np.bool_]) -> "tuple[IntArray, _Spans]":
    """Return who waits, and when.

    A job waits from its submit time to its first start, and after a run that
    did not end it to the start of its next run. Waits of no length are left out.
    """
    begin, end = records.submit_time, records.start_time
    job = np.flatnonzero((end > begin) & counted)
    begin, end = begin[job], end[job]
    if records.restarts.any():
        held = records.stretches
        order = np.lexsort((held.start_time, held.job))
        who, run, back = held.job[order], held.run[order], held.start_time[order][1:]
        left = held.end_time[order][:-1]
        again = (who[1:] == who[:-1]) & (run[1:] != run[:-1]) & counted[who[1:]] & (back > left)
        job = np.concatenate([job, who[1:][again]])
        begin, end = np.append(begin, left[again]), np.append(end, back[again])
    return job, _Spans(begin, end, job)


class _Spans(NamedTuple):
    """Spans of time and what holds over each, shape (k,)."""

    begin: FloatArray
    end: FloatArray
    value: IntArray

    def places(self, times: FloatArray) -> tuple[IntArray, IntArray]:
        """Return from which step on each of them is there, and from which on no more."""
        return np.searchsorted(times, self.begin), np.searchsorted(times, self.end)


def _outages(records: Records) -> _Spans:
    """Return outages between the first submit and the last end, and how wide they are."""
    if records.recoveries is None or not len(records.submit_time):
        return _Spans(np.empty(0), np.empty(0), np.empty(0, np.int64))
    out = records.recoveries.outages
    first, last = records.submit_time.min(), records.end_time.max()
    start, end = np.clip(out.start_time, first, last), np.clip(out.end_time, first, last)
    real = end > start
    return _Spans(start[real], end[real], out.processors[real])


def _durations(steps: Steps, begin: float, end: float) -> FloatArray:
    durations = np.clip(steps.times, begin, end)
    durations[:-1] = np.diff(durations)
    durations[-1] = 0.0
    return durations


def machine_figures(steps: Steps, processors: int, begin: float, end: float) -> Figures:
    """Return figures of machine and queue between two instants, in seconds.

    Loss of capacity is the share of the machine's time that is idle while some
    waiting job could start on as few processors: on its minimum, and (the
    twin ``_requested``) on its request. Failed nodes are not idle.
    """
    durations = _durations(steps, begin, end)
    seen, length = durations > 0, end - begin
    most: Figures = {
        "max_queued_jobs": int(steps.queued_jobs[seen].max(initial=0)),
        "max_queued_processors": int(steps.queued_processors[seen].max(initial=0)),
    }
    keys = ("utilization", "loss_of_capacity", "loss_of_capacity_requested", "mean_queued_jobs")
    if length <= 0:
        return most | dict.fromkeys(keys)
    idle, total = processors - steps.busy - steps.down, processors * length
    unused = idle * durations
    shares = (
        float((steps.busy * durations).sum()) / total,
        float(unused[steps.least <= idle].sum()) / total,
        float(unused[steps.least_requested <= idle].sum()) / total,
        float((steps.queued_jobs * durations).sum()) / length,
    )
    return most | dict(zip(keys, shares, strict=True))


LATE = 0.5
"""A queue that was last empty before this share of the arrivals' time does not settle."""
LAST = 0.05
"""Share of the arrivals' time over which the work that is left waiting is taken."""
LEFT = 0.7
"""So much work left waiting does not settle, in deviations of the work that arrives."""
LEAST_JOBS = 100
"""Of fewer jobs nothing is said."""


def settling_figures(steps: Steps, begin: float, end: float, work: FloatArray) -> Figures:
    """Return whether the queue settles, so that means do not depend on the length of the run.

    It does not if it was last empty in the first half of the arrivals, or if the work that
    waits over their last twentieth is more than 0.7 deviations of the work that arrives: of
    n jobs, as they come at random, mean work x sqrt(n (1 + variation²)).

    Parameters
    ----------
    steps : Steps
    begin, end : float, seconds
        First and last submit.
    work : numpy.ndarray of float, shape (n,), processor-seconds
        Of the jobs that arrive.
    """
    length = end - begin
    if length <= 0 or len(work) < LEAST_JOBS:
        return {STEADY: None}
    waits = steps.queued_work * _durations(steps, end - LAST * length, end)
    left = float(waits.sum()) / (LAST * length)
    empty = np.flatnonzero((steps.queued_jobs == 0) & (steps.times <= end))
    last_empty = begin
    if empty.size:
        last_empty = min(float(np.append(steps.times, np.inf)[empty[-1] + 1]), end)
    deviation = float(np.sqrt((work**2).sum()))  # n (mean² + variance) under the root
    early = last_empty < begin + LATE * length
    return {STEADY: not (early or left > LEFT * deviation)}


def timeline_table(steps: Steps) -> Columns:
    """Return the table of ``timeline.parquet``: a row a change of machine or queue."""
    counts = {
        "busy_processors": steps.busy,
        "queued_jobs": steps.queued_jobs,
        "queued_processors": steps.queued_processors,
    }
    changed = np.zeros(len(steps.times), np.bool_)
    changed[:1] = True
    for values in counts.values():
        changed[1:] |= values[1:] != values[:-1]
    rows = np.flatnonzero(changed).astype(np.min_scalar_type(-changed.size))
    wide = {name: lambda at, own=own: own[at].astype(np.int64) for name, own in counts.items()}
    return Columns(rows, {"time": steps.times, **wide})


@dataclass(frozen=True)
class Outcome:
    """A finished simulation.

    Attributes
    ----------
    trace, truth, records
        By one job index.
    tables : Tables
        Over all jobs.
    steps : Steps
        Machine and queue over time; only jobs that count are in the queue.
    counted : numpy.ndarray of bool, shape (n,)
        Jobs that count in metrics: all but calibration runs that were submitted
        as jobs, which have a negative ``job_id``.
    """

    trace: Trace
    truth: GroundTruth
    records: Records
    tables: Tables
    steps: Steps
    counted: NDArray[np.bool_]

    @property
    def own(self) -> "slice | NDArray[np.bool_]":
        """What picks the jobs that count: a slice, which makes no copy, where all do."""
        return slice(None) if self.counted.all() else self.counted


def outcome(trace: Trace, truth: GroundTruth, records: Records) -> Outcome:
    """Return a finished simulation with its tables; all three arguments have one job index.

    `sim.summarise` has an example.
    """
    counted = trace.jobs["job_id"].to_numpy() >= 0
    steps = steps_of(trace, truth, records, np.ones(len(counted), np.bool_))
    made = Tables(
        jobs_table(trace, truth, records),
        allocations_table(trace, records),
        timeline_table(steps),
        predictions_table(trace, truth, records),
    )
    if not counted.all():
        steps = steps_of(trace, truth, records, counted)
    return Outcome(trace, truth, records, made, steps, counted)
