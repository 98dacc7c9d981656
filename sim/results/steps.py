"""The state of machine and queue over time, as piecewise-constant functions."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray
from sim.results.job_metrics import Figures
from sim.results.steady_state import STEADY
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
        Fewest processors the job can start on, its reference processors if they are fewer.
    runtime : numpy.ndarray of float, shape (n,), seconds
        Reference runtime; its work is that times the reference processors.
    counted : numpy.ndarray of bool, shape (n,)
        Whether the job's waiting counts.
    """

    requested: IntArray
    least: IntArray
    runtime: FloatArray
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
    until : float or None
        Up to when the last values hold, seconds; None where they are those of the end.
    """

    times: FloatArray
    busy: IntArray
    queued_jobs: IntArray
    queued_processors: IntArray
    queued_work: FloatArray
    least: IntArray
    least_requested: IntArray
    down: IntArray
    until: float | None = None


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
    up = np.bincount(begin, weight, minlength=length + 1)
    down = np.bincount(end, weight, minlength=length + 1)
    return np.cumsum(up - down)[:length]


PIECE = 1 << 18
"""Jobs whose submits lie in one piece of a history."""
KEPT = 4
"""Pieces of a history up to which it is kept."""


class History:
    """The state of machine and queue over a run, a piece of time after the other.

    It is worked out whenever it is gone through, and kept if it has no more than `KEPT` pieces.

    Parameters
    ----------
    records : Records
    demand : Demand
        By job index; waits of jobs that are not counted are left out.
    piece : int
        How many jobs are submitted in each piece of time.
    """

    def __init__(self, records: Records, demand: Demand, piece: int = PIECE) -> None:
        self._records, self._demand = records, demand
        held = records.stretches
        self._held = _Spans(held.start_time, held.end_time, held.processors)
        self._again = _waits_for_restart(records) if records.restarts.any() else None
        self._outages = _outages(records)
        submit = records.submit_time
        self._edges: FloatArray = np.unique(np.sort(submit)[piece::piece])
        self._kept: list[Steps] | None = None

    def __iter__(self) -> Iterator[Steps]:
        if self._kept is None and self._edges.size < KEPT:
            self._kept = list(self._pieces())
        return self._pieces() if self._kept is None else iter(self._kept)

    def _pieces(self) -> Iterator[Steps]:
        before: Steps | None = None
        for low, high in pairwise([-np.inf, *self._edges.tolist(), np.inf]):
            found = self._between(low, high)
            if not found.times.size:
                continue
            if before is not None:
                yield replace(before, until=found.times.item(0))
            before = found
        assert before is not None
        yield before

    def _between(self, low: float, high: float) -> Steps:
        """Return the steps from one instant to before another."""
        submit, demand, held = self._records.submit_time, self._demand, self._held
        busy = held.part(np.flatnonzero(held.meet(low, high)))
        job, wait = self._waiting(low, high)
        down = self._outages
        spans = (busy, wait, down)
        instants = [one for span in spans for one in (span.begin, span.end)]
        times = np.unique(np.concatenate([*instants, submit[:1]]))
        times = times[(times >= low) & (times < high)]
        on, off = busy.places(times)
        join, leave = wait.places(times)
        fail, repair = down.places(times)
        size, requested = len(times), demand.requested[job]
        there = leave > join
        lasting = join[there], leave[there]
        return Steps(
            times,
            _level(on, off, busy.value.astype(np.float64), size).astype(np.int64),
            _level(join, leave, None, size).astype(np.int64),
            _level(join, leave, requested.astype(np.float64), size).astype(np.int64),
            np.maximum(_level(join, leave, requested * demand.runtime[job], size), 0.0),
            least_over(*lasting, np.minimum(demand.least[job], requested)[there], size),
            least_over(*lasting, requested[there], size),
            _level(fail, repair, down.value.astype(np.float64), size).astype(np.int64)
            if fail.size
            else np.broadcast_to(np.int64(0), size),
        )

    def _waiting(self, low: float, high: float) -> "tuple[IntArray, _Spans]":
        """Return who waits between two instants, and when.

        A job waits from its submit time to its first start, and after a run that
        did not end it to the start of its next run. Waits of no length are left out.
        """
        records, counted = self._records, self._demand.counted
        first = _Spans(records.submit_time, records.start_time, records.restarts)
        job = np.flatnonzero(first.meet(low, high) & (first.end > first.begin) & counted)
        first = first.part(job)
        if self._again is None:
            return job, first
        again, begin, end = self._again
        some = counted[again] & (end > begin) & (begin < high) & (end >= low)
        every = np.concatenate([job, again[some]])
        begin, end = np.append(first.begin, begin[some]), np.append(first.end, end[some])
        return every, _Spans(begin, end, every)


class _Spans(NamedTuple):
    """Spans of time and what holds over each, shape (k,)."""

    begin: FloatArray
    end: FloatArray
    value: IntArray

    def meet(self, low: float, high: float) -> NDArray[np.bool_]:
        """Return which of them begin, last or end from one instant to before another."""
        return (self.begin < high) & (self.end >= low)

    def part(self, rows: IntArray) -> "_Spans":
        """Return some of them."""
        return _Spans(self.begin[rows], self.end[rows], self.value[rows])

    def places(self, times: FloatArray) -> tuple[IntArray, IntArray]:
        """Return from which step on each of them is there, and from which on no more.

        Those from before the first step are there from it on; those that outlast the last
        end one past it.
        """
        return np.searchsorted(times, self.begin), np.searchsorted(times, self.end)


def _outages(records: Records) -> _Spans:
    """Return outages between the first submit and the last end, and how wide they are."""
    if records.recoveries is None or not len(records.submit_time):
        return _Spans(np.empty(0), np.empty(0), np.empty(0, np.int64))
    out = records.recoveries.outages
    first, last = records.submit_time.min(), records.end_time.max()
    start, end = np.clip(out.start_time, first, last), np.clip(out.end_time, first, last)
    return _Spans(start, end, out.processors).part(np.flatnonzero(end > start))


def _durations(state: Steps, begin: float, end: float) -> FloatArray:
    edges = np.clip(state.times, begin, end)
    last = float(edges[-1]) if state.until is None else min(max(state.until, begin), end)
    return np.diff(edges, append=max(last, begin))


def _lost_capacity(idle: IntArray, least: IntArray, durations: FloatArray) -> float:
    """Return the idle processor-seconds while some waiting job could have used them."""
    return float((idle * durations)[least <= idle].sum())


class MachineSums:
    """Figures of machine and queue between two instants.

    Parameters
    ----------
    processors : int
        Size of the machine.
    begin, end : float, seconds

    Notes
    -----
    Loss of capacity is the share of the machine's time that is idle while some
    waiting job could start on as few processors: on its minimum, and (the
    twin ``_requested``) on its request. Failed nodes are not idle.
    """

    def __init__(self, processors: int, begin: float, end: float) -> None:
        self._processors, self._begin, self._end = processors, begin, end
        self._most_jobs = self._most_processors = 0
        self._sums = np.zeros(4)

    def add(self, state: Steps) -> None:
        """Take in a piece."""
        durations = _durations(state, self._begin, self._end)
        seen = durations > 0
        self._most_jobs = max(self._most_jobs, int(state.queued_jobs[seen].max(initial=0)))
        queued = int(state.queued_processors[seen].max(initial=0))
        self._most_processors = max(self._most_processors, queued)
        idle = self._processors - state.busy - state.down
        self._sums += (
            (state.busy * durations).sum(),
            _lost_capacity(idle, state.least, durations),
            _lost_capacity(idle, state.least_requested, durations),
            (state.queued_jobs * durations).sum(),
        )

    def figures(self) -> Figures:
        """Return the figures of all pieces."""
        most: Figures = {
            "max_queued_jobs": self._most_jobs,
            "max_queued_processors": self._most_processors,
        }
        keys = ("utilization", "loss_of_capacity", "loss_of_capacity_requested", "mean_queued_jobs")
        length = self._end - self._begin
        if length <= 0:
            return most | dict.fromkeys(keys)
        total = self._processors * length
        wholes = np.array([total, total, total, length])
        return most | dict(zip(keys, (self._sums / wholes).tolist(), strict=True))


LATE = 0.5
"""A queue that was last empty before this share of the arrivals' time does not settle."""
LAST = 0.05
"""Share of the arrivals' time over which the work that is left waiting is taken."""
LEFT = 0.7
"""So much work left waiting does not settle, in deviations of the work that arrives."""
LEAST_JOBS = 100
"""Of fewer jobs nothing is said."""


class Settling:
    """Whether the queue settles, so that means do not depend on the length of the run.

    It does not if it was last empty in the first half of the arrivals, or if the work that
    waits over their last twentieth is more than 0.7 deviations of the work that arrives: of
    n jobs, as they come at random, mean work x sqrt(n (1 + variation²)).

    Parameters
    ----------
    begin, end : float, seconds
        First and last submit.
    work : numpy.ndarray of float, shape (n,), processor-seconds
        Of the jobs that arrive.
    """

    def __init__(self, begin: float, end: float, work: FloatArray) -> None:
        self._begin, self._end = begin, end
        self._from = end - LAST * (end - begin)
        self._work, self._waiting, self._empty = work, 0.0, begin

    def add(self, state: Steps) -> None:
        """Take in a piece."""
        self._waiting += float((state.queued_work * _durations(state, self._from, self._end)).sum())
        empty = np.flatnonzero((state.queued_jobs == 0) & (state.times <= self._end))
        if empty.size:
            after = np.append(state.times, np.inf if state.until is None else state.until)
            self._empty = max(self._empty, min(float(after[empty[-1] + 1]), self._end))

    def figures(self) -> Figures:
        """Return the figure of all pieces."""
        length = self._end - self._begin
        if length <= 0 or len(self._work) < LEAST_JOBS:
            return {STEADY: None}
        deviation = float(np.sqrt((self._work**2).sum()))  # n (mean² + variance) under the root
        left = self._waiting / (LAST * length)
        early = self._empty < self._begin + LATE * length
        return {STEADY: not (early or left > LEFT * deviation)}


def figures_over(history: Iterable[Steps], *parts: MachineSums | Settling) -> Figures:
    """Return all figures over a history, which is gone through once."""
    for state in history:
        for part in parts:
            part.add(state)
    return {key: figure for part in parts for key, figure in part.figures().items()}
