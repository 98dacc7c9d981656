"""What past samples of the load show: averages, how long it lasts, what any set of places met."""

from typing import NamedTuple

import numpy as np

from predictors.compiling import njit
from sim.background.background import LoadedLinks
from sim.background.kernels import BoolArray, FloatArray, IntArray

LEAST_MEMORY = 1e-3
MOST_SAMPLES = 720
"""Samples that are kept, a day of those of two minutes."""
FEWEST_SAMPLES = 32
MOST_READINGS = 2**20
"""Readings that are kept, while they are no fewer samples than `FEWEST_SAMPLES`."""
MOST_LINKS = 2**15
"""Readings of loaded links that are kept."""


class LoadMoments:
    """Running mean of every place, and the autocorrelation of all from sample to sample.

    Parameters
    ----------
    places : int

    Examples
    --------
    >>> moments = LoadMoments(1)
    >>> moments.update(np.array([[1.0], [1.0], [0.0], [0.0]]))
    >>> moments.mean.tolist(), round(moments.correlation(), 3)
    ([0.5], 0.333)
    """

    def __init__(self, places: int) -> None:
        self._number = 0
        self._sums = np.zeros(places)
        self._last: FloatArray | None = None
        self._squares = 0.0
        self._products = 0.0

    def update(self, readings: FloatArray) -> None:
        """Take in samples, shape (samples, places), the oldest first."""
        self._number += len(readings)
        self._sums += readings.sum(axis=0)
        series = readings if self._last is None else np.vstack((self._last, readings))
        self._last = readings[-1]
        before, after = series[:-1] - self.mean, series[1:] - self.mean
        self._squares += 0.5 * float((before**2).sum() + (after**2).sum())
        self._products += float((before * after).sum())

    @property
    def mean(self) -> FloatArray:
        """Average of each place so far; 1 before any sample."""
        if self._number == 0:
            return np.ones(len(self._sums))
        return np.asarray(self._sums / self._number, float)

    def correlation(self) -> float:
        """Return the correlation from one sample to the next, in [0, 1)."""
        if self._squares <= 0.0:
            return 0.0
        return float(np.clip(self._products / self._squares, 0.0, 0.9999))

    def memory(self, every: float) -> float:
        """Return the time after which a deviation from the mean has fallen to 1/e, seconds."""
        return float(every / -np.log(max(self.correlation(), LEAST_MEMORY)))


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


@njit(cache=True)
def _least(values, places):  # type: ignore[no-untyped-def]
    """Return the least value of some places in every row."""
    found = np.empty(values.shape[0])
    for row in range(values.shape[0]):
        low = np.inf
        for place in places:
            low = min(low, values[row, place])
        found[row] = low
    return found


@njit(cache=True)
def _lowest_link(counts, source, destination, available, inside):  # type: ignore[no-untyped-def]
    """Return the least bandwidth among own links at every sample."""
    least, k = np.ones(len(counts)), 0
    for sample in range(len(counts)):
        for _ in range(counts[sample]):
            if inside[source[k]] and inside[destination[k]]:
                least[sample] = min(least[sample], available[k])
            k += 1
    return least


@njit(cache=True)
def _add_rows(sums, rows):  # type: ignore[no-untyped-def]
    """Add rows to sums, one after the other."""
    for row in range(rows.shape[0]):
        for place in range(rows.shape[1]):
            sums[place] += rows[row, place]


@njit(cache=True)
def _add_lost(counts, available, lost):  # type: ignore[no-untyped-def]
    """Add what the links of each sample lack to sums, from the link that lacks most on."""
    last = 0
    for count in counts:
        lacking = np.sort(1.0 - available[last : last + count])
        last += count
        for k in range(count):
            lost[k] += lacking[count - 1 - k]


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
    ...     past.add(np.array([readings]), np.array([[0.75, 0.75]]))
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
        self._links = LoadedLinks(
            np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        )
        self._lost = np.zeros(0)
        self._looks = 0

    def add(self, readings: FloatArray, forecasts: FloatArray) -> None:
        """Take in samples, and what was forecast for each, both of shape (samples, places).

        Nothing was known of the first of all, so its forecast does not count.
        """
        if self._number == 0:
            forecasts = forecasts.copy()
            forecasts[0] = readings[0]
        _add_rows(self._read, np.sort(readings, axis=1))
        _add_rows(self._believed, np.sort(forecasts, axis=1))
        kept = len(self._readings)
        rows = np.arange(self._number, self._number + len(readings))[-kept:] % kept
        self._readings[rows], self._forecasts[rows] = readings[-kept:], forecasts[-kept:]
        self._number += len(readings)

    def add_links(self, found: LoadedLinks) -> None:
        """Take in the links that samples found loaded."""
        missing = int(found.counts.max(initial=0)) - len(self._lost)
        if missing > 0:
            self._lost = np.append(self._lost, np.zeros(missing))
        _add_lost(found.counts, found.available, self._lost)
        self._looks += len(found.counts)
        known = LoadedLinks(*map(np.append, self._links, found))  # type: ignore[arg-type]
        counts = known.counts[-len(self._readings) :]
        left = np.cumsum(counts[::-1])[::-1]
        counts = counts[min(int((left > MOST_LINKS).sum()), len(counts) - 1) :]
        kept = slice(int(known.counts.sum() - counts.sum()), None)
        self._links = LoadedLinks(
            counts, known.source[kept], known.destination[kept], known.available[kept]
        )

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
        found = self._links
        if not len(found.counts):
            return np.ones(1)
        return np.asarray(_lowest_link(*found, inside))
