"""The links that samples find loaded, and forecasts of them; those long free are forgotten."""

from typing import NamedTuple

import numpy as np

from predictors.base import BoolArray, FloatArray, IntArray
from predictors.compiling import compiled
from predictors.under_load.forecast import Selection, rule_of
from predictors.under_load.forecasters import (
    ADAPTIVE,
    FEW,
    MIDDLE,
    OF_FEW,
    OF_MIDDLE,
    VALUES,
    WIDTH,
    answers_of,
    take_values,
    without_values,
)

DROP_AT_ONCE = 8


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


class KnownLinks(NamedTuple):
    """The links that have a series, in the order in which they were first loaded.

    Attributes
    ----------
    state : numpy.ndarray of int, shape (2,)
        How many there are, and how many samples were taken in.
    keys, loaded_at : numpy.ndarray of int
        Of each its number, and the latest sample that found it loaded.
    rows : numpy.ndarray of int
        Where its series stands, then which rows are free.
    """

    state: IntArray
    keys: IntArray
    loaded_at: IntArray
    rows: IntArray


@compiled()
def _find(keys, known, key, first) -> int:  # type: ignore[no-untyped-def]
    """Return the place of a key, looked for from `first` on and round; `known` if it has none."""
    for place in range(first, known):
        if keys[place] == key:
            return place
    for place in range(min(first, known)):
        if keys[place] == key:
            return place
    return int(known)


@compiled(makes_arrays=True)
def _drop_stale(links, oldest):  # type: ignore[no-untyped-def]
    """Forget links that were last loaded before a sample, several at a time."""
    state, keys, loaded_at, rows = links.state, links.keys, links.loaded_at, links.rows
    known = state[0]
    stale = 0
    for place in range(known):
        stale += loaded_at[place] < oldest
    if stale < DROP_AT_ONCE:
        return
    gone, kept = np.empty(stale, np.int64), 0
    for place in range(known):
        if loaded_at[place] < oldest:
            gone[place - kept] = rows[place]
        else:
            keys[kept], loaded_at[kept], rows[kept] = keys[place], loaded_at[place], rows[place]
            kept += 1
    rows[kept:known] = gone
    rows[kept:] = np.sort(rows[kept:])  # those that are used stand close together
    state[0] = kept


@compiled()
def _begin(bank, k, count):  # type: ignore[no-untyped-def]
    """Let the series in a lane of a bank be one of so many ones."""
    size = min(count, VALUES)
    for i in range(len(bank.recent)):
        bank.recent[i, k] = 1.0 if i % VALUES < count else 0.0
    bank.ordered[:, k] = np.inf
    for first, newest in ((0, VALUES), (OF_MIDDLE, MIDDLE), (OF_FEW, FEW)):
        bank.ordered[first : first + min(count, newest), k] = 1.0
    for age in range(size):
        bank.ranks[(count - 1 - age) % VALUES, k] = (1 << size) - (1 << (size - 1 - age))
    for a in range(len(ADAPTIVE)):
        bank.windows[a, k] = ADAPTIVE[a][2]
        bank.candidates[a, :, k] = 1.0
    bank.standing[:, k] = 1.0
    bank.errors[:, k::WIDTH] = 0.0
    bank.scores[:, k::WIDTH] = 0.0
    bank.chosen[:, k] = 0
    bank.total[k] = count


@compiled()
def _place_links(counts, keys, links, places, forget) -> int:  # type: ignore[no-untyped-def]
    """Find the rows of loaded links in samples, new ones for those without; return how many.

    `places` become these rows, those of new ones less the number of rows. Of samples there
    are fewer where there is no room.
    """
    state, known_keys, loaded_at, rows = links.state, links.keys, links.loaded_at, links.rows
    reading, place = 0, -1
    for s in range(len(counts)):
        if state[0] + counts[s] > len(rows):
            return s
        for _ in range(counts[s]):
            place = _find(known_keys, state[0], keys[reading], place + 1)
            places[reading] = rows[place]
            if place == state[0]:
                known_keys[place] = keys[reading]
                places[reading] -= len(rows)
                state[0] += 1
            loaded_at[place] = state[1]
            reading += 1
        _drop_stale(links, state[1] - forget)
        state[1] += 1
    return len(counts)


@compiled(makes_arrays=True)
def _take_links(counts, keys, available, links, banks, rule, forget):  # type: ignore[no-untyped-def]
    """Take in samples of the loaded links; return how many, fewer where there is no room."""
    used, places = np.zeros(len(banks), np.bool_), np.empty(len(keys), np.int64)
    for row in links.rows[: links.state[0]]:
        used[row // WIDTH] = True
    before, room = links.state[1], len(links.rows)
    taken = _place_links(counts, keys, links, places, forget)
    read = counts[:taken].sum()
    for place in places[:read]:
        used[place % room // WIDTH] = True
    for b in range(len(banks)):
        if used[b]:
            bank, reading = banks[b], 0
            bank.count = before
            for s in range(taken):
                bank.value[:] = 1.0
                for r in range(reading, reading + counts[s]):
                    row = places[r] % room
                    if row // WIDTH == b:
                        if places[r] < 0:
                            _begin(bank, row % WIDTH, bank.count)
                        bank.value[row % WIDTH] = available[r]
                reading += counts[s]
                take_values(bank, rule)
    return taken


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
        state, empty = np.zeros(2, np.int64), np.zeros(WIDTH, np.int64)
        self._links = KnownLinks(state, empty, empty.copy(), np.arange(WIDTH))

    def __len__(self) -> int:
        return int(self._links.state[0])

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
        while True:
            sampled = counts, keys, available
            taken = _take_links(*sampled, self._links, self._banks, self._rule, self._forget)
            if taken == len(counts):
                return
            read = int(counts[:taken].sum())
            counts, keys, available = counts[taken:], keys[read:], available[read:]
            self._grow(len(self) + int(counts[0]))

    def _grow(self, links: int) -> None:
        """Make room for at least so many links, and an eighth more than there was."""
        state, keys, loaded_at, rows = self._links
        more = WIDTH * -(-max(links - len(rows), len(rows) // 8) // WIDTH)
        self._banks = np.append(self._banks, without_values(more, self._rule))
        room = np.zeros(more, np.int64)
        self._links = KnownLinks(
            state,
            np.append(keys, room),
            np.append(loaded_at, room),
            np.append(rows, len(rows) + np.arange(more)),
        )

    def believed(self) -> tuple[IntArray, FloatArray]:
        """Return the links that are not believed free, and the forecast bandwidth of each."""
        known, samples = self._links.state.tolist()
        fresh = self._links.loaded_at[:known] >= samples - 1 - self._forget
        values = answers_of(self._banks, self._links.rows[:known][fresh], self._rule)
        return self._links.keys[:known][fresh], values
