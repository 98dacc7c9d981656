"""The queue of waiting jobs, in the policy's order, as arrays that compiled code can scan."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray


class Waiting(NamedTuple):
    """Waiting jobs in queue order; where `counts` is 0, nobody.

    Attributes
    ----------
    counts : numpy.ndarray of int, shape (n,)
    runtimes, starts : numpy.ndarray of float, shape (n,), seconds
        Believed runtimes on those counts, and begins of reservations.
    """

    counts: IntArray
    runtimes: FloatArray
    starts: FloatArray


class WaitingQueue:
    """Waiting jobs by rank.

    Places are positions in the arrays from ``first`` to ``last``; a place whose
    ``processors`` is 0 is empty (its job has started). Places stay valid until
    the next `add`, `rank` or `tidy`.

    Attributes
    ----------
    job : numpy.ndarray of int
    processors : numpy.ndarray of int
        The count that the allocation rule chose.
    runtime : numpy.ndarray of float
        The belief at that count, seconds.
    start : numpy.ndarray of float
        The reservation, where the backfilling rule holds one.
    key : numpy.ndarray of float
        Rank, ascending; ties in order of arrival.
    found : numpy.ndarray of int
        Room for the places that a search finds.
    table : Waiting
        All places, for compiled code.
    layout : int
        Changes whenever waiting jobs have moved to other places.
    """

    arrays: tuple[str, ...] = ("job", "processors", "runtime", "start", "key")
    """The arrays that hold a value a place, or a row of them."""

    def __init__(self) -> None:
        self.job: IntArray = np.zeros(64, np.int64)
        self.processors: IntArray = np.zeros(64, np.int64)
        self.runtime: FloatArray = np.zeros(64)
        self.start: FloatArray = np.zeros(64)
        self.key: FloatArray = np.zeros(64)
        self.found: IntArray = np.zeros(64, np.int64)
        self.table = Waiting(self.processors, self.runtime, self.start)
        self.first = 0
        self.last = 0
        self.waiting = 0
        self.layout = 0

    def __len__(self) -> int:
        return self.waiting

    def add(self, job: int, processors: int, runtime: float, key: float | None = None) -> int:
        """Add a job behind all of its key or less; None puts it last. Returns its place."""
        if self.last == self.job.size:
            self._make_room()
        place = self.last
        if key is None:
            key = 0.0
        elif self.last > self.first and key < self.key[self.last - 1]:
            ahead = np.searchsorted(self.key[self.first : self.last], key, side="right")
            place = self.first + int(ahead)
            self.layout += 1
            for name in self.arrays:
                array = getattr(self, name)
                array[..., place + 1 : self.last + 1] = array[..., place : self.last]
        self.job[place] = job
        self.processors[place] = processors
        self.runtime[place] = runtime
        self.start[place] = np.inf
        self.key[place] = key
        self.last += 1
        self.waiting += 1
        return place

    def drop(self, place: int) -> None:
        """Take out the job at a place."""
        self.processors[place] = 0
        self.waiting -= 1
        if self.waiting == 0:
            self.first = self.last = 0
            self.layout += 1

    def tidy(self) -> None:
        """Close the gaps, if most places are empty; places change."""
        if self.last - self.first > 2 * self.waiting + 64:
            self._keep(self.places())

    def head(self) -> int:
        """Return the place of the first waiting job; there must be one."""
        first = self.first
        processors = self.processors
        while processors.item(first) == 0:
            first += 1
        self.first = first
        return first

    def places(self) -> IntArray:
        """Return the places of all waiting jobs, in queue order."""
        here = self.processors[self.first : self.last].nonzero()[0]
        here += self.first
        return here

    def place_of(self) -> dict[int, int]:
        """Return the place of each waiting job."""
        places = self.places()
        return dict(zip(self.job[places].tolist(), places.tolist(), strict=True))

    def jobs(self) -> IntArray:
        """Return the waiting jobs in queue order."""
        return self.job[self.places()]

    def __iter__(self) -> Iterator[int]:
        yield from self.jobs().tolist()

    def rank(self, keys: FloatArray, arrival: FloatArray) -> None:
        """Put the waiting jobs in order of new keys, ties in order of arrival.

        Parameters
        ----------
        keys, arrival : numpy.ndarray of shape (len(self),)
            For the jobs in the order of `places`.
        """
        order = self.places()[np.lexsort((self.job[self.places()], arrival, keys))]
        self.key[self.places()] = keys
        self._keep(order)

    def _keep(self, places: IntArray) -> None:
        number = len(places)
        for name in self.arrays:
            array = getattr(self, name)
            array[..., :number] = array[..., places]
        self.first, self.last = 0, number
        self.layout += 1

    def _make_room(self) -> None:
        if 2 * self.waiting < self.job.size:
            self._keep(self.places())
            return
        for name in self.arrays:
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.zeros_like(array)], axis=-1))
        self.found = np.zeros_like(self.job)
        self.table = Waiting(self.processors, self.runtime, self.start)
        self.layout += 1
