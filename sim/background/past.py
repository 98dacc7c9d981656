"""What past samples of load show of the least of several places, which no average tells."""

from collections import deque
from typing import NamedTuple

import numba
import numpy as np

from sim.background.kernels import BoolArray, FloatArray, IntArray

MOST_SAMPLES = 720
"""Samples that are kept, a day of those of two minutes."""
FEWEST_SAMPLES = 32
MOST_READINGS = 2**20
"""Readings that are kept, while they are no fewer samples than `FEWEST_SAMPLES`."""
MOST_LINKS = 2**15
"""Readings of loaded links that are kept."""


class Least(NamedTuple):
    """What some places were at past samples, the oldest first.

    Attributes
    ----------
    read : numpy.ndarray, shape (samples,)
        The least reading.
    believed : float
        The average of the least of the forecasts of those readings.
    """

    read: FloatArray
    believed: float


@numba.njit(cache=True)
def _least(values, places):  # type: ignore[no-untyped-def]
    """Return the least value of some places in every row."""
    found = np.empty(values.shape[0])
    for row in range(values.shape[0]):
        low = np.inf
        for place in places:
            low = min(low, values[row, place])
        found[row] = low
    return found


@numba.njit(cache=True)
def _lowest_link(samples, source, destination, available, inside, number):  # type: ignore[no-untyped-def]
    """Return the least bandwidth among own links at every sample."""
    least = np.ones(number)
    for k in range(len(samples)):
        if inside[source[k]] and inside[destination[k]]:
            least[samples[k]] = min(least[samples[k]], available[k])
    return least


class LoadPast:
    """The latest samples, to ask what any set of places met; and all of them, in order.

    The least of several forecasts is above the least of what is forecast: forecasts
    pull towards averages. What both were on average shows by how much.

    Parameters
    ----------
    places : int

    Attributes
    ----------
    read, believed : numpy.ndarray, shape (places,)
        Averages over all samples of the lowest reading or forecast, of the next, ...
    lost : numpy.ndarray, shape (links,)
        The same of what the most loaded link lacked of its bandwidth, of the next, ...

    Examples
    --------
    >>> past = LoadPast(2)
    >>> for readings in ([1.0, 0.5], [0.5, 1.0]):
    ...     past.add(np.array(readings), np.array([0.75, 0.75]))
    >>> past.least(np.array([0, 1]))
    Least(read=array([0.5, 0.5]), believed=0.625)
    """

    def __init__(self, places: int) -> None:
        kept = min(MOST_SAMPLES, max(MOST_READINGS // places, FEWEST_SAMPLES))
        self._readings = np.empty((kept, places))
        self._forecasts = np.empty((kept, places))
        self._number = 0
        self._read = np.zeros(places)
        self._believed = np.zeros(places)
        self._links: deque[tuple[IntArray, IntArray, FloatArray]] = deque(maxlen=kept)
        self._link_readings = 0
        self._lost = np.zeros(0)
        self._looks = 0
        self._table: tuple[IntArray, IntArray, IntArray, FloatArray] | None = None

    def add(self, readings: FloatArray, forecasts: FloatArray) -> None:
        """Take in a sample, and what was forecast for it, both of shape (places,).

        Nothing was known of the first, so its forecast does not count.
        """
        forecasts = forecasts if self._number else readings
        row = self._number % len(self._readings)
        self._readings[row], self._forecasts[row] = readings, forecasts
        self._number += 1
        self._read += np.sort(readings)
        self._believed += np.sort(forecasts)

    def add_links(self, source: IntArray, destination: IntArray, available: FloatArray) -> None:
        """Take in the links that a sample found loaded."""
        if len(self._links) == self._links.maxlen:
            self._link_readings -= len(self._links.popleft()[0])
        self._links.append((source, destination, available))
        self._link_readings += len(source)
        while self._link_readings > MOST_LINKS and len(self._links) > 1:
            self._link_readings -= len(self._links.popleft()[0])
        lost = np.sort(1.0 - available)[::-1]
        if len(lost) > len(self._lost):
            self._lost = np.append(self._lost, np.zeros(len(lost) - len(self._lost)))
        self._lost[: len(lost)] += lost
        self._looks += 1
        self._table = None

    @property
    def read(self) -> FloatArray:
        """Averages of the readings in order; 1 before any sample."""
        return self._read / self._number if self._number else np.ones(len(self._read))

    @property
    def believed(self) -> FloatArray:
        """Averages of the forecasts in order; 1 before any sample."""
        return self._believed / self._number if self._number else np.ones(len(self._believed))

    @property
    def lost(self) -> FloatArray:
        """Averages of what links lacked, in order."""
        return self._lost / max(self._looks, 1)

    def _kept(self) -> tuple[FloatArray, FloatArray]:
        kept = min(self._number, len(self._readings))
        return self._readings[:kept], self._forecasts[:kept]

    def least(self, places: IntArray) -> Least:
        """Return what the least of these places was, read and forecast."""
        if self._number == 0:
            return Least(np.ones(1), 1.0)
        read, believed = (_least(kept, places) for kept in self._kept())
        newest = self._number % len(read) if self._number > len(read) else 0
        return Least(np.roll(read, -newest), float(believed.mean()))

    def least_of_first(self, ranked: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the same for the first place of a ranking, the first two, and so on."""
        if self._number == 0:
            return np.ones(len(ranked)), np.ones(len(ranked))
        read, believed = (
            np.minimum.accumulate(kept[:, ranked], axis=1).mean(axis=0) for kept in self._kept()
        )
        return read, believed

    def lowest_link(self, inside: BoolArray) -> FloatArray:
        """Return what was left of the most loaded link among some nodes, the oldest first.

        Parameters
        ----------
        inside : numpy.ndarray of bool, shape (nodes,)
        """
        if not self._links:
            return np.ones(1)
        if self._table is None:
            columns = [np.concatenate(column) for column in zip(*self._links, strict=True)]
            samples = np.repeat(np.arange(len(self._links)), [len(row[0]) for row in self._links])
            self._table = (samples, columns[0], columns[1], columns[2])
        return np.asarray(_lowest_link(*self._table, inside, len(self._links)))
