"""The links that samples find loaded, and forecasts of them; those long free are forgotten."""

from itertools import islice
from typing import NamedTuple

import numpy as np

from predictors.base import BoolArray, FloatArray, IntArray
from predictors.compiling import direct
from predictors.under_load.forecast import Selection, rule_of
from predictors.under_load.forecasters import series_without_values, take

DROP_AT_ONCE = 8
"""So many links are forgotten together."""
TOGETHER = 32
"""Samples that are taken in together."""
NOWHERE = 0, 0
"""Of a link that has no series."""


class LoadedLinks(NamedTuple):
    """Loaded links at some looks, look after look; all others are free.

    Attributes
    ----------
    counts : numpy.ndarray of int, shape (looks,)
        How many links each look found.
    source, destination : numpy.ndarray of int, shape (readings,)
        Their nodes.
    available : numpy.ndarray of float, shape (readings,)
    """

    counts: IntArray
    source: IntArray
    destination: IntArray
    available: FloatArray

    def keys(self, nodes: int) -> IntArray:
        """Return a number of each link, by its nodes and how many of them there are."""
        return self.source * nodes + self.destination

    def looks(self) -> IntArray:
        """Return by which look each was found."""
        return np.arange(len(self.counts)).repeat(self.counts)

    def least(self, inside: BoolArray) -> float:
        """Return the least bandwidth among links between nodes that are inside, at any look."""
        own = inside[self.source] & inside[self.destination]
        return float(self.available[own].min(initial=1.0))


class LinkMixture:
    """The mixture of forecasters for every link that was loaded of late, a series each.

    Its series begins as that of a link that was always free: as the first of all, which
    stays such a link's.

    Parameters
    ----------
    selection : {"mae_50", "mse", "mae"}
        How the mixture chooses.
    forget : float
        Samples after which a link that stayed free is believed free again, and its
        history dropped.

    Examples
    --------
    >>> links = LinkMixture("mae_50", 50.0)
    >>> links.take(np.array([0, 1]), np.array([7]), np.array([0.25]))
    >>> links.believed()
    (array([7]), array([0.25]))
    """

    def __init__(self, selection: Selection, forget: float) -> None:
        self._rule = rule_of(selection)
        self._forget = forget
        self._series = series_without_values(1, self._rule)
        self._take = direct(take)
        self._unused: list[int] = []
        self._known: dict[int, tuple[int, int]] = {}
        self._samples = 0
        self._drop_after = forget

    def __len__(self) -> int:
        return len(self._known)

    def take(self, counts: IntArray, keys: IntArray, available: FloatArray) -> None:
        """Take in what samples found loaded.

        Parameters
        ----------
        counts : numpy.ndarray of int, shape (samples,)
            How many links each found, the oldest first.
        keys : numpy.ndarray of int, shape (readings,)
            Their numbers, sample after sample.
        available : numpy.ndarray of float, shape (readings,)
        """
        for first in range(0, len(counts), TOGETHER):
            some = counts[first : first + TOGETHER]
            read = some.sum()
            self._take_some(some, keys[:read].tolist(), available[:read])
            keys, available = keys[read:], available[read:]

    def _take_some(self, counts: IntArray, keys: list[int], available: FloatArray) -> None:
        """Take in a few samples at once; places of links that are dropped are used after them."""
        places, begun, dropped, read = [], [], [], iter(keys)
        known, unused, sample = self._known, self._unused, self._samples
        for count in counts.tolist():
            for key in islice(read, count):
                _, place = known.pop(key, NOWHERE)
                if not place:
                    place = unused.pop() if unused else self._more()
                    begun.append(place)
                known[key] = sample, place
                places.append(place)
            if sample > self._drop_after:
                dropped += self._dropped(sample)
            sample += 1
        self._samples = sample
        self._series[begun] = self._series[0]
        values = np.ones((len(counts), len(self._series)))
        values[np.arange(len(counts)).repeat(counts), places] = available
        used = np.array([0, *[place for _, place in known.values()]])
        self._take(values, self._series, used, self._rule, values)
        self._unused += dropped

    def _more(self) -> int:
        """Make room for more series; return the place of one."""
        number = len(self._series)
        self._series = np.resize(self._series, number + 16 + number // 8)
        self._unused += range(number, len(self._series))
        return self._unused.pop()

    def _dropped(self, sample: int) -> list[int]:
        """Drop the links that are long free, if they are several; return their places."""
        least = sample - self._forget
        loaded_at, _ = next(islice(self._known.values(), DROP_AT_ONCE - 1, None), (sample, 0))
        if loaded_at >= least:
            self._drop_after = loaded_at + self._forget
            return []
        stale = [key for key, (loaded_at, _) in self._known.items() if loaded_at < least]
        return [self._known.pop(key)[1] for key in stale]

    def believed(self) -> tuple[IntArray, FloatArray]:
        """Return the links that are not believed free, and the forecast bandwidth of each."""
        least = self._samples - 1 - self._forget
        fresh = [(key, place) for key, (at, place) in self._known.items() if at >= least]
        keys, places = np.array(fresh, np.int64).reshape(-1, 2).T
        return keys, self._series["answer"][places]
