"""Jobs enter the tables of a run piece by piece, and what became of them leaves with the next."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray
from sim.state.calendar import END, JOB, LIMIT, REQUESTED, SUBMIT, Calendar, blank_calendar
from sim.state.processors import NodeSets
from sim.state.records import AskedOnce, FewWords, Records, Stretches, WholeRuns
from sim.state.run_tables import (
    ARRIVED,
    BELIEF,
    BELIEVED_JOB,
    FIRST_RANGE,
    HEAD,
    HIGH,
    IN_TURN,
    KILLED,
    LAST_RANGE,
    LATER,
    LOW,
    NEW,
    PROCESSORS,
    RANGES,
    ROOM,
    RUNNING,
    START,
    STARTED,
    WAITING,
    Tables,
    idle_tables,
)

PIECE = 65_536
"""Jobs that enter at once, and those besides that are submitted with the last of them."""


STATES = "completed", "killed"
"""How a job may end, by whether it was killed."""


class JobPieces:
    """The jobs of a run: those in its tables, those to come, and what is known of those before.

    A started job's end is known, on a machine on which nothing delays it, so that it can
    be written down as soon as it has started; its columns are kept until it has ended.

    Parameters
    ----------
    submit, requested_time : numpy.ndarray of float, shape (n,), seconds
        The first ascending.
    requested : numpy.ndarray of int, shape (n,)
        Processors.
    kills : bool
        Whether jobs run no longer than they requested.
    piece : int
        Jobs that enter at once.
    corrections : numpy.ndarray of float, seconds
        Of `sim.state.calendar.Calendar`.

    Attributes
    ----------
    jobs : numpy.ndarray of int, shape (c,)
        The job of each column of the tables, ascending.
    fresh : int
        Columns from this one on entered last.
    kept : numpy.ndarray of int, shape (fresh,)
        What columns the others had before that.
    start, end, believed : numpy.ndarray of float, shape (n,), seconds
        Of started jobs.
    allocated : numpy.ndarray of int, shape (n,)
    killed : numpy.ndarray of bool, shape (n,)
    in_turn : numpy.ndarray of int, shape (n,)
        Job indices in the order of the starts, as far as they are noted; of a type that
        takes as little room as it can.
    """

    def __init__(
        self,
        submit: FloatArray,
        requested: IntArray,
        requested_time: FloatArray,
        kills: bool,
        piece: int,
        corrections: FloatArray,
    ) -> None:
        number = len(submit)
        self._submit, self._requested, self._piece = submit, requested, piece
        self._corrections = corrections
        self._limit = requested_time if kills else np.broadcast_to(np.inf, number)
        self.jobs: IntArray = np.zeros(0, np.int64)
        self.fresh = self._entered = self._noted = self._running = self._held = 0
        self.start, self.end = np.zeros(number), np.zeros(number)
        self._asked = {"allocated": requested, "believed": requested_time}
        self.allocated, self.believed = requested, requested_time
        self.in_turn = np.zeros(number, np.min_scalar_type(-number))
        self.killed = np.zeros(number, np.bool_)
        self._nodes: list[NDArray[Any]] = []
        self._sizes: list[NDArray[Any]] = []

    def begin(self, processors: int) -> tuple[Tables, Calendar]:
        """Return the tables of an idle machine with the first jobs in them."""
        jobs = len(self._submit)
        self._kind = np.min_scalar_type(processors)
        tables = idle_tables(processors, 0, min(jobs, processors))
        tables.counters[ROOM] = min(processors, 2 * jobs + 1)
        return self.enter(tables, blank_calendar(0, min(jobs, processors), self._corrections))

    def enter(self, tables: Tables, calendar: Calendar) -> tuple[Tables, Calendar]:
        """Return the tables with the next jobs and without those that have ended."""
        self.note(tables, calendar)
        counters, numbers = tables.counters, tables.numbers
        stays = numbers[WAITING] > 0
        stays[calendar.what[JOB, : counters[RUNNING]]] = True
        self.kept, place = np.flatnonzero(stays), np.cumsum(stays) - 1
        kept = self.kept
        first, last = self._entered, self._last()
        self.jobs = np.concatenate([self.jobs[kept], np.arange(first, last)])
        self.fresh = counters[ARRIVED] = counters[NEW] = kept.size
        waiting = np.flatnonzero(numbers[WAITING, kept])
        counters[HEAD] = waiting[0] if waiting.size else kept.size
        seconds, planned = np.zeros((4, self.jobs.size)), np.zeros((5, self.jobs.size))
        seconds[:, : kept.size] = tables.seconds[:, kept]
        planned[:, : kept.size] = calendar.seconds[:, kept]
        planned[SUBMIT, kept.size :] = self._submit[first:last]
        planned[LIMIT, kept.size :] = self._limit[first:last]
        planned[REQUESTED, kept.size :] = self._asked["believed"][first:last]
        following = np.zeros((7, self.jobs.size), np.int64)
        following[:, : kept.size] = numbers[:, kept]
        following[PROCESSORS, kept.size :] = self._requested[first:last]
        tables.instant[LATER] = self._submit[last] if last < len(self._submit) else np.inf
        self._entered = last
        started = numbers[IN_TURN, : counters[STARTED]]
        running = place[started[stays[started]]]
        room = int(self.jobs.size + counters[ROOM])
        ranges = _moved_ranges(tables, following, running, room)
        following[IN_TURN, : running.size] = running
        _rename_running(tables, calendar, place)
        counters[STARTED] = self._running = running.size
        self._held = counters.item(RANGES)
        tables = tables._replace(seconds=seconds, numbers=following, ranges=ranges)
        return tables, calendar._replace(seconds=planned)

    def over(self, tables: Tables, calendar: Calendar) -> NDArray[np.bool_]:
        """Return which of all jobs have ended."""
        over = np.arange(len(self._submit)) < self._entered
        counters = tables.counters
        over[self.jobs[counters[ARRIVED] :]] = False
        over[self.jobs[tables.numbers[WAITING] > 0]] = False
        over[self.jobs[calendar.what[JOB, : counters[RUNNING]]]] = False
        return over

    def _last(self) -> int:
        """Return one past the last job of the next piece, which ends between two instants."""
        last = min(self._entered + self._piece, len(self._submit))
        return int(np.searchsorted(self._submit, self._submit[last - 1], side="right"))

    def note(self, tables: Tables, calendar: Calendar) -> None:
        """Write down all that have started and are not written down."""
        seconds, numbers, counters = tables.seconds, tables.numbers, tables.counters
        started = numbers[IN_TURN, self._running : counters[STARTED]]
        jobs = self.jobs[started]
        self.in_turn[self._noted : self._noted + jobs.size] = jobs
        self._noted += jobs.size
        self._running += jobs.size
        self.start[jobs] = seconds[START, started]
        every = numbers[IN_TURN, : counters[STARTED]]
        self.end[self.jobs[every]] = calendar.seconds[END, every]  # where shares change, ends do
        self._keep("allocated", jobs, numbers[PROCESSORS, started])
        self._keep("believed", jobs, seconds[BELIEF, started])
        self.killed[jobs] = numbers[KILLED, started] != 0
        sizes = numbers[LAST_RANGE, started] - numbers[FIRST_RANGE, started]
        self._sizes.append(sizes.astype(self._kind))
        self._nodes.append(tables.ranges[:, self._held : counters[RANGES]].astype(self._kind))
        self._held = counters.item(RANGES)

    def _keep(self, name: str, jobs: IntArray, values: NDArray[Any]) -> None:
        """Write down a column, without room of its own while it is what the jobs asked for."""
        asked, kept = self._asked[name], getattr(self, name)
        if kept is asked and (values != asked[jobs]).any():
            kept = asked.copy()
            setattr(self, name, kept)
        if kept is not asked:
            kept[jobs] = values

    def nodes(self, sizes: IntArray) -> NodeSets:
        """Return the noted processors as sets of so many ranges; they are noted no longer."""
        edges = np.concatenate(self._nodes, axis=1)
        self._nodes.clear()
        first = np.zeros(sizes.size + 1, np.min_scalar_type(-edges.shape[1] - 1))
        np.cumsum(sizes, out=first[1:])
        return NodeSets(edges[LOW], edges[HIGH], first)

    def stretches(self) -> WholeRuns:
        """Return all runs that are written down; what is noted of their processors goes along."""
        nodes = self.nodes(np.concatenate(self._sizes))
        self._sizes.clear()
        columns = {"start_time": self.start, "end_time": self.end, "processors": self.allocated}
        never = np.broadcast_to(np.int64(0), len(self.in_turn))
        return WholeRuns(columns, job=self.in_turn, run=never, nodes=nodes)

    def consultations(self, grounds: Mapping[str, Any], undecided: Collection[int]) -> AskedOnce:
        """Return what all runs that are written down were believed to take.

        Parameters
        ----------
        grounds : mapping of str to column
            What the beliefs rest on, an entry a run.
        undecided : collection of int
            Jobs whose request stood for another reason than their curve.
        """
        job, every = self.in_turn, np.broadcast_to(np.True_, len(self.in_turn))
        decided = ~np.isin(job, list(undecided)) if undecided else every
        columns = {"time": self.start, "nprocs": self.allocated, "predicted": self.believed}
        return AskedOnce(columns, job=job, **grounds, decided=decided, final=every)

    def records(
        self,
        stretches: Stretches | WholeRuns,
        asked: AskedOnce,
        submit: FloatArray,
        processors: int,
    ) -> Records:
        """Return what happened, all jobs written down."""
        return Records(
            submit_time=submit,
            start_time=self.start,
            end_time=self.end,
            run_start=self.start,
            allocated=self.allocated,
            believed_runtime=self.believed,
            status=FewWords(STATES, self.killed),
            restarts=np.broadcast_to(np.int64(0), len(self.in_turn)),
            stretches=stretches,
            consultations=asked,
            counters={"starts": float(len(self.in_turn))},
            processors=processors,
        )


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


def _rename_running(tables: Tables, calendar: Calendar, place: IntArray) -> None:
    """Call running jobs by their new columns."""
    for jobs in (tables.running[BELIEVED_JOB], calendar.what[JOB]):
        jobs[: tables.counters[RUNNING]] = place[jobs[: tables.counters[RUNNING]]]
