"""Jobs enter the tables of a run piece by piece, and what became of them leaves with the next."""

import numpy as np
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray
from sim.state.processors import NodeSets
from sim.state.records import Stretches
from sim.state.run_tables import (
    ARRIVED,
    BELIEF,
    BELIEVED_JOB,
    END,
    ENDING,
    FIRST_RANGE,
    FREE,
    FREE_RANGES,
    HEAD,
    HIGH,
    IN_TURN,
    JOB,
    KILLED,
    KIND,
    LAST_RANGE,
    LATER,
    LIMIT,
    NEW,
    PROCESSORS,
    RANGES,
    ROOM,
    RUNNING,
    START,
    STARTED,
    SUBMIT,
    TURN,
    WAITING,
    Tables,
)

PIECE = 65_536
"""Jobs that enter at once, and those besides that are submitted with the last of them."""


class JobPieces:
    """The jobs of a run: those in its tables, those to come, and what is known of those before.

    A started job's end is known, on a machine on which nothing delays it, so that it can
    be written down as soon as it has started; its columns are kept until it has ended.

    Parameters
    ----------
    submit, limit : numpy.ndarray of float, shape (n,), seconds
        When each job is submitted, ascending, and how long it may run.
    requested : numpy.ndarray of int, shape (n,)
        Processors.
    piece : int
        Jobs that enter at once.

    Attributes
    ----------
    jobs : numpy.ndarray of int, shape (c,)
        The job of each column of the tables, ascending.
    fresh : int
        Columns from this one on entered last.
    start, end, believed : numpy.ndarray of float, shape (n,), seconds
        Of started jobs.
    allocated : numpy.ndarray of int, shape (n,)
    killed : numpy.ndarray of bool, shape (n,)
    in_turn : numpy.ndarray of int, shape (n,)
        Job indices in the order of the starts, as far as they are noted.
    """

    def __init__(
        self, submit: FloatArray, limit: FloatArray | float, requested: IntArray, piece: int = PIECE
    ) -> None:
        number = len(submit)
        self._submit, self._requested, self._piece = submit, requested, piece
        self._limit = np.broadcast_to(limit, number)
        self.jobs: IntArray = np.zeros(0, np.int64)
        self.fresh = self._entered = self._noted = self._running = self._held = 0
        self.start, self.end, self.believed = np.empty(number), np.empty(number), np.empty(number)
        self.allocated, self.in_turn = np.empty(number, np.int64), np.empty(number, np.int64)
        self.killed = np.zeros(number, np.bool_)
        self._sizes: list[NDArray[np.int32]] = []
        self._low: list[NDArray[np.int32]] = []
        self._high: list[NDArray[np.int32]] = []

    def begin(self, processors: int) -> Tables:
        """Return the tables of an idle machine with the first jobs in them."""
        jobs, running = len(self._submit), min(len(self._submit), processors)
        tables = Tables(
            seconds=np.zeros((8, 0)),
            numbers=np.zeros((6, 0), np.int64),
            running_times=np.zeros((2, running)),
            running=np.zeros((7, running), np.int64),
            free=np.zeros((2, running + 1), np.int64),
            ranges=np.zeros((2, 0), np.int64),
            wakes=np.zeros(64),
            counters=np.zeros(19, np.int64),
            instant=np.array([0.0, 0.0, np.inf, np.inf, np.inf, np.inf, -np.inf]),
        )
        tables.counters[FREE] = processors
        tables.counters[ROOM] = min(processors, 2 * jobs + 1)
        tables.counters[FREE_RANGES] = 1
        tables.free[HIGH, 0] = processors - 1
        return self.enter(tables)

    def enter(self, tables: Tables) -> Tables:
        """Return the tables with the next jobs and without those that have ended."""
        self.note(tables)
        counters, numbers = tables.counters, tables.numbers
        stays = numbers[WAITING] > 0
        stays[tables.running[JOB, : counters[RUNNING]]] = True
        kept, place = np.flatnonzero(stays), np.cumsum(stays) - 1
        first, last = self._entered, self._last()
        self.jobs = np.concatenate([self.jobs[kept], np.arange(first, last)])
        self.fresh = counters[ARRIVED] = counters[NEW] = kept.size
        waiting = np.flatnonzero(numbers[WAITING, kept])
        counters[HEAD] = waiting[0] if waiting.size else kept.size
        seconds = np.zeros((8, self.jobs.size))
        seconds[:, : kept.size] = tables.seconds[:, kept]
        seconds[SUBMIT, kept.size :] = self._submit[first:last]
        seconds[LIMIT, kept.size :] = self._limit[first:last]
        following = np.zeros((6, self.jobs.size), np.int64)
        following[:, : kept.size] = numbers[:, kept]
        following[PROCESSORS, kept.size :] = self._requested[first:last]
        tables.instant[LATER] = self._submit[last] if last < len(self._submit) else np.inf
        self._entered = last
        started = numbers[IN_TURN, : counters[STARTED]]
        running = place[started[stays[started]]]
        room = int(self.jobs.size + counters[ROOM])
        ranges = _moved_ranges(tables, following, running, room)
        following[IN_TURN, : running.size] = running
        _rename_running(tables, following, place)
        counters[STARTED] = self._running = running.size
        self._held = counters.item(RANGES)
        return tables._replace(seconds=seconds, numbers=following, ranges=ranges)

    def _last(self) -> int:
        """Return one past the last job of the next piece, which ends between two instants."""
        last = min(self._entered + self._piece, len(self._submit))
        return int(np.searchsorted(self._submit, self._submit[last - 1], side="right"))

    def note(self, tables: Tables) -> None:
        """Write down all that have started and are not written down."""
        seconds, numbers, counters = tables.seconds, tables.numbers, tables.counters
        started = numbers[IN_TURN, self._running : counters[STARTED]]
        jobs = self.jobs[started]
        self.in_turn[self._noted : self._noted + jobs.size] = jobs
        self._noted += jobs.size
        self._running += jobs.size
        self.start[jobs], self.end[jobs] = seconds[START, started], seconds[END, started]
        self.believed[jobs] = seconds[BELIEF, started]
        self.allocated[jobs] = numbers[PROCESSORS, started]
        self.killed[jobs] = numbers[KILLED, started] != 0
        sizes = (numbers[LAST_RANGE, started] - numbers[FIRST_RANGE, started]).astype(np.int32)
        low, high = tables.ranges[:, self._held : counters[RANGES]].astype(np.int32)
        self._held = counters.item(RANGES)
        self._sizes.append(sizes)
        self._low.append(low)
        self._high.append(high)

    def stretches(self) -> Stretches:
        """Return what all runs that are written down held, in the order of the starts."""
        job, never = self.in_turn, np.broadcast_to(np.int64(0), len(self.in_turn))
        begun, over, count = self.start[job], self.end[job], self.allocated[job]
        return Stretches(job, never, begun, over, count, self._nodes())

    def _nodes(self) -> NodeSets:
        first = np.zeros(self._noted + 1, np.int64)
        np.cumsum(np.concatenate(self._sizes), out=first[1:])
        return NodeSets(np.concatenate(self._low), np.concatenate(self._high), first)


def _moved_ranges(tables: Tables, numbers: IntArray, running: IntArray, room: int) -> IntArray:
    """Return the ranges of running jobs, in the order of their starts, and room for others."""
    begin, end = numbers[FIRST_RANGE, running], numbers[LAST_RANGE, running]
    last = np.cumsum(end - begin)
    first = last - (end - begin)
    held = int(last[-1]) if last.size else 0
    ranges = np.zeros((2, held + room), np.int64)
    ranges[:, :held] = tables.ranges[:, np.arange(held) + np.repeat(begin - first, end - begin)]
    numbers[FIRST_RANGE, running], numbers[LAST_RANGE, running] = first, last
    tables.counters[RANGES] = held
    return ranges


def _rename_running(tables: Tables, numbers: IntArray, place: IntArray) -> None:
    """Call running jobs by their new columns; ends at one instant stay in the order of starts."""
    running = tables.running[:, : tables.counters[RUNNING]]
    running[BELIEVED_JOB] = place[running[BELIEVED_JOB]]
    running[JOB] = place[running[JOB]]
    ends = running[KIND] == ENDING
    running[TURN, ends] = numbers[FIRST_RANGE, running[JOB, ends]]
