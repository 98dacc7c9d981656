"""Waiting jobs whose count is still open: each has a menu of counts and believed runtimes."""

import numpy as np
from numba import njit

from predictors.base import FloatArray, IntArray
from sim.policies.advice import last_up_to
from sim.waiting import WaitingQueue


@njit(cache=True)
def narrow(
    counts: IntArray,
    offer: IntArray,
    size: IntArray,
    floor: FloatArray,
    ceiling: FloatArray,
    places: IntArray,
    low: IntArray,
    high: IntArray,
) -> None:
    """Keep the dishes whose count lies from floor to ceiling; at least one stays.

    Where none does, the largest count below the floor stays, else the first.
    """
    for i in range(places.size):
        k = places[i]
        begin, end = offer[k], offer[k] + size[k]
        last = begin
        while last < end and counts[last] <= ceiling[i]:
            last += 1
        last = max(last, begin + 1)
        first = last - 1
        while first > begin and counts[first - 1] >= floor[i]:
            first -= 1
        low[k], high[k] = first, last


@njit(cache=True)
def settle(
    counts: IntArray,
    offer: IntArray,
    size: IntArray,
    processors: IntArray,
    job: IntArray,
    first: int,
    last: int,
    target: FloatArray,
    most: float,
    low: IntArray,
    high: IntArray,
) -> None:
    """Keep of every menu the largest count up to the job's target and `most`, else the least."""
    for k in range(first, last):
        if processors[k] > 0:
            ceiling = min(target[job[k]], most)
            low[k] = last_up_to(counts, offer[k], offer[k] + size[k], ceiling)
            high[k] = low[k] + 1


class OpenQueue(WaitingQueue):
    """Waiting jobs by rank, each with a menu.

    The menu of the job at place k is ``counts[offer[k] : offer[k] + size[k]]``
    with ``runtimes`` alongside, counts ascending; ``low[k]`` to ``high[k]`` is
    the part of it that a rule allows at this look. ``processors`` and
    ``runtime`` hold what was chosen last.

    Attributes
    ----------
    counts : numpy.ndarray of int
    runtimes : numpy.ndarray of float
        Seconds.
    serial : numpy.ndarray of float
        Believed T(1) by place, seconds.
    promise : numpy.ndarray of float
        The end that was first predicted for a job, by place, seconds.
    held : numpy.ndarray of int
        1 where a job must not be considered at this look.
    """

    arrays = (
        *WaitingQueue.arrays, "offer", "size", "low", "high", "serial", "promise", "held",
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.offer: IntArray = np.zeros(64, np.int64)
        self.size: IntArray = np.zeros(64, np.int64)
        self.low: IntArray = np.zeros(64, np.int64)
        self.high: IntArray = np.zeros(64, np.int64)
        self.serial: FloatArray = np.zeros(64)
        self.promise: FloatArray = np.zeros(64)
        self.held: IntArray = np.zeros(64, np.int64)
        self.counts: IntArray = np.zeros(1024, np.int64)
        self.runtimes: FloatArray = np.zeros(1024)
        self._used = 0
        self._no_floor: FloatArray = np.full(64, np.inf)

    def serve(self, place: int, counts: IntArray, runtimes: FloatArray, serial: float) -> None:
        """Give the job at a place its menu, all of it allowed."""
        number = counts.size
        self.size[place] = 0
        if self._used + number > self.counts.size:
            self._clear_away(number)
        begin, end = self._used, self._used + number
        self.counts[begin:end] = counts
        self.runtimes[begin:end] = runtimes
        self._used = end
        self.offer[place], self.size[place] = begin, number
        self.low[place], self.high[place] = begin, end
        self.serial[place] = serial
        self.promise[place] = np.inf
        self.held[place] = 0

    def menu(self, place: int) -> tuple[IntArray, FloatArray]:
        """Return the whole menu at a place."""
        dishes = slice(self.offer.item(place), self.offer.item(place) + self.size.item(place))
        return self.counts[dishes], self.runtimes[dishes]

    def allowed(self, place: int) -> tuple[IntArray, FloatArray]:
        """Return the part of the menu that is allowed at this look."""
        dishes = slice(self.low.item(place), self.high.item(place))
        return self.counts[dishes], self.runtimes[dishes]

    def allow_all(self) -> None:
        """Allow every waiting job its whole menu, and hold nobody."""
        here = slice(self.first, self.last)
        self.low[here] = self.offer[here]
        self.high[here] = self.offer[here] + self.size[here]
        self.held[here] = 0

    def allow(self, places: IntArray, floor: FloatArray, ceiling: FloatArray) -> None:
        """Allow the jobs at places only counts from floor to ceiling; at least one stays."""
        narrow(self.counts, self.offer, self.size, floor, ceiling, places, self.low, self.high)

    def fix(self, places: IntArray, target: FloatArray) -> None:
        """Allow each job one count: the largest up to its target, else the least one."""
        if self._no_floor.size < places.size:
            self._no_floor = np.full(2 * places.size, np.inf)
        self.allow(places, self._no_floor[: places.size], target)

    def settle(self, target: FloatArray, most: float = np.inf) -> None:
        """Allow every waiting job one count: the largest up to its target, else the least one.

        Parameters
        ----------
        target : numpy.ndarray of float, by job index
        most : float
            The most that anybody gets.
        """
        settle(
            self.counts, self.offer, self.size, self.processors, self.job,
            self.first, self.last, target, most, self.low, self.high,
        )  # fmt: skip

    def choose(self, place: int, dish: int) -> None:
        """Put down which dish a job takes."""
        self.processors[place] = self.counts[dish]
        self.runtime[place] = self.runtimes[dish]

    def _clear_away(self, number: int) -> None:
        """Make room: forget the menus of jobs that have started, or grow."""
        places = self.places()
        size = self.size[places]
        kept = int(size.sum())
        room = max(self.counts.size, 2 * (kept + number))
        counts, runtimes = np.zeros(room, np.int64), np.zeros(room)
        begins = np.cumsum(size) - size
        take = np.repeat(self.offer[places] - begins, size) + np.arange(kept)
        counts[:kept], runtimes[:kept] = self.counts[take], self.runtimes[take]
        moved = begins - self.offer[places]
        for array in (self.offer, self.low, self.high):
            array[places] += moved
        self.counts, self.runtimes, self._used = counts, runtimes, kept
