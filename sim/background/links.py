"""The links that samples find loaded, and forecasts of them; those long free are forgotten."""

from typing import NamedTuple

import numpy as np

from predictors.base import BoolArray, FloatArray, IntArray
from predictors.compiling import compiled
from predictors.under_load.forecast import Selection, rule_of
from predictors.under_load.forecasters import (
    WIDTH,
    answers_of,
    begin_with_ones,
    take_values,
    without_values,
)

DROP_AT_ONCE, FREE = 8, -1
"""So many links leave their lanes together; instead of the number of a link: nobody's."""


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


@compiled
def _lane(keys, key, first) -> int:  # type: ignore[no-untyped-def]
    """Return the lane of a link, looked for from `first` on and round, or else a free one."""
    free = len(keys)
    for i in range(first, first + len(keys)):
        lane = i if i < len(keys) else i - len(keys)
        if keys[lane] == key:
            return lane
        if keys[lane] == FREE:
            free = min(free, lane)
    return free


@compiled
def _place_links(counts, sampled, keys, loaded_at, before, forget):  # type: ignore[no-untyped-def]
    """Find lanes for the loaded links in samples, and free those of links that are long free.

    Returns
    -------
    numpy.ndarray of int, shape (readings,)
        Those of links that had none less the number of lanes.
    int
        In how many samples: fewer where there is no room.
    """
    lanes, reading, lane = np.empty(len(sampled), np.int64), 0, -1
    for s in range(len(counts)):
        if (keys == FREE).sum() < counts[s]:
            return lanes, s
        for _ in range(counts[s]):
            lane = _lane(keys, sampled[reading], lane + 1)
            lanes[reading] = lane if keys[lane] != FREE else lane - len(keys)
            keys[lane], loaded_at[lane] = sampled[reading], before + s
            reading += 1
        stale = (keys != FREE) & (loaded_at < before + s - forget)
        if stale.sum() >= DROP_AT_ONCE:
            keys[stale] = FREE
    return lanes, len(counts)


@compiled
def _take_links(counts, lanes, available, keys, before, banks, rule):  # type: ignore[no-untyped-def]
    """Take samples into the series of all links that have a lane."""
    for b in range(len(banks)):
        bank, first, reading = banks[b], b * WIDTH, 0
        if (keys[first : first + WIDTH] == FREE).all():
            continue
        bank.count = before
        for count in counts:
            bank.value[:] = 1.0
            for r in range(reading, reading + count):
                lane = lanes[r] + len(keys) if lanes[r] < 0 else lanes[r]
                if first <= lane < first + WIDTH:
                    if lanes[r] < 0:
                        begin_with_ones(bank, lane - first)
                    bank.value[lane - first] = available[r]
            reading += count
            take_values(bank, rule)


class LinkMixture:
    """The mixture of forecasters for every link that was loaded of late, a series each.

    Its series begins as that of a link that was always free.

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
        self._banks = without_values(WIDTH, self._rule)
        self._keys, self._loaded_at = np.full(WIDTH, FREE), np.zeros(WIDTH, np.int64)
        self._samples = 0

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
        known, before = (self._keys, self._loaded_at), self._samples
        lanes, taken = _place_links(counts, keys, *known, before, self._forget)
        _take_links(counts[:taken], lanes, available, self._keys, before, self._banks, self._rule)
        self._samples += taken
        if taken < len(counts):
            self._grow(int(counts[taken]))
            read = int(counts[:taken].sum())
            self.take(counts[taken:], keys[read:], available[read:])

    def _grow(self, links: int) -> None:
        """Make room for at least so many more links, and an eighth more than there was."""
        more = WIDTH * -(-max(links, len(self._keys) // 8) // WIDTH)
        self._banks = np.append(self._banks, without_values(more, self._rule)).view(
            self._banks.dtype
        )
        self._keys = np.append(self._keys, np.full(more, FREE))
        self._loaded_at = np.append(self._loaded_at, np.zeros(more, np.int64))

    def believed(self) -> tuple[IntArray, FloatArray]:
        """Return the links that are not believed free, and the forecast bandwidth of each."""
        fresh = self._loaded_at >= self._samples - 1 - self._forget
        lanes = np.flatnonzero((self._keys != FREE) & fresh)
        return self._keys[lanes], answers_of(self._banks, lanes, self._rule)
