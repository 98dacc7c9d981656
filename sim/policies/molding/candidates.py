"""Waiting jobs whose count is still open: each has candidate counts and believed runtimes."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled, record
from sim.policies.advice import last_up_to
from sim.state.waiting_queue import WaitingQueue

SPAN = record(
    [
        ("begin", "i8"),
        ("low", "i8"),
        ("high", "i8"),
        ("number", "i4"),
        ("held", "i1"),
        ("at_once", "i1"),
    ]
)
"""What a job may choose from: where its counts begin, from where to before where a rule allows them
in this pass, and how many they are (0 where that is settled already); 1 where the job must not be
considered in this pass; 1 where only those count on which it can start at once."""
Spans = NDArray[Any]
"""An array of `SPAN`, of places or of jobs."""


class OpenMemory(NamedTuple):
    """What a rule for open counts keeps of a run.

    Attributes
    ----------
    depth : int
    by_time : bool
        As of `sim.policies.allocation.iterative`.
    scale : float
    shares : numpy.ndarray of float, shape (n, 2)
        As of `sim.policies.allocation.fair_share`.
    reservations : int
    strict : bool
        As of `sim.policies.molding.scheduler.OpenScheduler`.
    serial : numpy.ndarray of float, shape (n,), seconds
        As of `OpenQueue`, a place being a job.
    job : numpy.ndarray of int, shape (n,)
        At each place.
    """

    depth: int = 0
    by_time: bool = False
    scale: float = 0.0
    shares: FloatArray = np.zeros((0, 2))
    reservations: int = 0
    strict: bool = False
    serial: FloatArray = np.zeros(0)
    job: IntArray = np.zeros(0, np.int64)


CLOSED = OpenMemory()
"""Of a run in which no count is open."""


# Kernels that fill `low` and `high` do so for the places of jobs that have started, too: nobody
# reads them there.


class Candidates(NamedTuple):
    """The candidates of all places of a queue; see `OpenQueue`."""

    spans: Spans
    counts: IntArray
    runtimes: FloatArray


@compiled
def single_candidates(places: int) -> Spans:
    """Return spans where the candidate of each place has its number."""
    spans = np.zeros(places, SPAN)
    for k in range(places):
        own = spans[k]
        own.begin, own.low, own.high, own.number = k, k, k + 1, 1
    return spans


@compiled
def allow_all(spans: Spans, first: int, last: int) -> None:
    """Allow everybody all candidates, and hold nobody."""
    for k in range(first, last):
        spans[k].low, spans[k].high = spans[k].begin, spans[k].begin + spans[k].number
        spans[k].held = 0


@compiled
def settle(
    counts: IntArray, spans: Spans, job: IntArray, first: int, last: int,
    target: FloatArray, most: float,
) -> None:  # fmt: skip
    """Allow everybody one count; see `OpenQueue.settle`."""
    for k in range(first, last):
        begin, end = spans[k].begin, spans[k].begin + spans[k].number
        spans[k].low = last_up_to(counts, begin, end, min(target[job[k]], most))
        spans[k].high = spans[k].low + 1


class OpenQueue(WaitingQueue):
    """Waiting jobs by rank, each with candidate allocations.

    The candidates of a job are a part of ``counts``, ascending, with ``runtimes`` alongside.
    ``processors`` and ``runtime`` hold what was chosen last.

    Attributes
    ----------
    counts : numpy.ndarray of int
    runtimes : numpy.ndarray of float
        Seconds.
    spans : numpy.ndarray of SPAN, shape (places,)
    serial : numpy.ndarray of float
        Believed T(1) by place, seconds.
    """

    def __init__(self) -> None:
        super().__init__()
        self.spans: Spans = np.zeros(64, SPAN)
        self.serial: FloatArray = np.zeros(64)
        self.counts: IntArray = np.zeros(1024, np.int64)
        self.runtimes: FloatArray = np.zeros(1024)
        self._used = 0

    def add(self, job: int, processors: int, runtime: float, key: float | None = None) -> int:
        """Add a job behind all of its key or less; None puts it last. Returns its place."""
        size = self.job.size
        if self.last == size and 2 * self.waiting < size:
            self._keep(self.places())
        place = super().add(job, processors, runtime, key)
        more = self.job.size - size
        if more > 0:
            self.spans = np.concatenate([self.spans, np.zeros(more, SPAN)])
            self.serial = np.pad(self.serial, (0, more))
        for table in (self.spans, self.serial):
            table[place + 1 : self.last] = table[place : self.last - 1]
        return place

    def _keep(self, places: IntArray) -> None:
        super()._keep(places)
        for table in (self.spans, self.serial):
            table[: places.size] = table[places]

    @property
    def here(self) -> slice:
        """The places in use, those of jobs that have started among them."""
        return slice(self.first, self.last)

    @property
    def every_candidate(self) -> Candidates:
        """Those of all places, for compiled code."""
        return Candidates(self.spans, self.counts, self.runtimes)

    def offer(self, place: int, counts: IntArray, runtimes: FloatArray, serial: float) -> None:
        """Give the job at a place its candidates, all of them allowed."""
        number = counts.size
        self.spans["number"][place] = 0
        if self._used + number > self.counts.size:
            self._clear_away(number)
        begin, end = self._used, self._used + number
        self.counts[begin:end] = counts
        self.runtimes[begin:end] = runtimes
        self._used = end
        self.spans[place] = begin, begin, end, number, 0, 0
        self.serial[place] = serial

    def candidates(self, place: int) -> tuple[IntArray, FloatArray]:
        """Return all candidates at a place."""
        begin = self.spans["begin"].item(place)
        candidates = slice(begin, begin + self.spans["number"].item(place))
        return self.counts[candidates], self.runtimes[candidates]

    def allowed(self, place: int) -> tuple[IntArray, FloatArray]:
        """Return the candidates that are allowed in this pass."""
        candidates = slice(self.spans["low"].item(place), self.spans["high"].item(place))
        return self.counts[candidates], self.runtimes[candidates]

    def allow_all(self) -> None:
        """Allow every waiting job all its candidates, and hold nobody."""
        allow_all(self.spans, self.first, self.last)

    def settle(self, target: FloatArray, most: float = np.inf) -> None:
        """Allow every waiting job one count: the largest up to its target, else the least one.

        Parameters
        ----------
        target : numpy.ndarray of float, by job index
        most : float
            The most that anybody gets.
        """
        settle(self.counts, self.spans, self.job, self.first, self.last, target, most)

    def choose(self, place: int, pick: int) -> None:
        """Put down which candidate a job takes."""
        self.processors[place] = self.counts[pick]
        self.runtime[place] = self.runtimes[pick]

    def _clear_away(self, number: int) -> None:
        """Make room: forget the candidates of jobs that have started, or grow."""
        places = self.places()
        spans = self.spans[places]
        sizes = spans["number"].astype(np.int64)
        kept = int(sizes.sum())
        room = max(self.counts.size, 2 * (kept + number))
        counts, runtimes = np.zeros(room, np.int64), np.zeros(room)
        moved = np.cumsum(sizes) - sizes - spans["begin"]
        take = np.repeat(-moved, sizes) + np.arange(kept)
        counts[:kept], runtimes[:kept] = self.counts[take], self.runtimes[take]
        for end in ("begin", "low", "high"):
            self.spans[end][places] += moved
        self.counts, self.runtimes, self._used = counts, runtimes, kept
