"""Kinds of background load (rounds, bursts, daily cycles, constant), handed out in chunks."""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import NamedTuple, Protocol

import numpy as np
from numpy.random import Generator

from predictors.base import FloatArray
from sim.errors import AT_LEAST_1, POSITIVE_AND_FINITE, POSITIVE_SHARE, SHARE, ConfigError

Pair = tuple[float, float]
LinkRow = tuple[float, float, int, int, float]
Draw = Callable[[], tuple[FloatArray, FloatArray]]


class LoadModel(Protocol):
    """A kind of load with its figures, for processors, links or both."""

    def cpu(self, processors: int, per_node: int, rng: Generator, origin: float) -> "BatchedCpu":
        """Begin the load of that many processors at `origin`."""

    def links(self, nodes: int, rng: Generator, origin: float) -> Iterator[LinkRow]:
        """Begin the load of the links between that many nodes at `origin`, in order of start."""


def check_interval(name: str, interval: Pair, low: float, high: float) -> None:
    """Raise a `ConfigError` unless low < interval[0] <= interval[1] <= high, all finite."""
    ordered = len(interval) == 2 and low < interval[0] <= interval[1] <= high
    if not ordered or interval[1] == np.inf:
        limit = f"{low:g} < lower <= upper" + (f" <= {high:g}" if np.isfinite(high) else " < inf")
        raise ConfigError(f"{name} must be a pair with {limit}, got {tuple(interval)}")


class CpuChunk(NamedTuple):
    """Available CPU of every processor over one chunk of time.

    Segment k of processor p lasts from ``times[row, k]`` to ``times[row, k + 1]``, with
    ``values[k, p]`` of its CPU available; there is a row a processor, or one where all change
    together.

    Attributes
    ----------
    times : numpy.ndarray, shape (1 or processors, segments + 1)
        Ascending; the last is infinite, whatever comes after the chunk.
    values : numpy.ndarray, shape (segments, processors)
    """

    times: FloatArray
    values: FloatArray


class BatchedCpu:
    """CPU load that is drawn in batches of segments and handed out in chunks.

    Segment k of a processor has a constant value; all change together, or each on its own.

    Parameters
    ----------
    processors : int
    begin : numpy.ndarray, shape (1 or processors,)
        Where the first segment begins, no later than the first chunk.
    draw : callable
        Returns durations, shape (1 or processors, batch), and values, shape
        (processors, batch), of the segments that follow.
    """

    def __init__(self, processors: int, begin: FloatArray, draw: Draw) -> None:
        self._draw = draw
        self._times, self._values = begin[:, None], np.empty((processors, 0))

    def chunk(self, start: float, end: float) -> CpuChunk:
        """Return the load over [start, end), the continuation of the last call."""
        over = int((self._times[:, 1:] <= start).all(axis=0).sum())  # for every processor
        times, values = self._times[:, over:], self._values[:, over:]
        while times[:, -1].min() < end:
            durations, drawn = self._draw()
            later = times[:, -1:] + np.cumsum(durations, axis=1)
            times = np.concatenate((times, later), axis=1)
            values = np.concatenate((values, drawn), axis=1)
        self._times, self._values = times, values
        first = (times[:, 1:] <= start).sum(axis=1)
        last = (times[:, :-1] < end).sum(axis=1) - 1
        most = int((last - first).max()) + 1
        columns = np.minimum(first[:, None] + np.arange(most), last[:, None])  # the last repeats
        inside = np.take_along_axis(times, columns, axis=1)
        values = np.take_along_axis(values, columns, axis=1)
        return CpuChunk(np.pad(inside, ((0, 0), (0, 1)), constant_values=np.inf), values.T.copy())


class LinkRows:
    """Loaded links from a stream of rows (start, end, source, destination, available).

    Parameters
    ----------
    rows : iterator
        In order of start, without end or until the load stops; the intervals of
        one link never overlap.
    """

    def __init__(self, rows: Iterator[LinkRow]) -> None:
        self.rows = rows
        self.pending: list[LinkRow] = []

    def chunk(self, start: float, end: float) -> FloatArray:
        """Return what touches [start, end), in order of start, shape (5, intervals)."""
        while not self.pending or self.pending[-1][0] < end:
            row = next(self.rows, None)
            if row is None:
                break
            self.pending.append(row)
        self.pending = [row for row in self.pending if row[1] > start]
        rows = [row for row in self.pending if row[0] < end]
        return np.array(rows, float).reshape(-1, 5).T.copy()


def link_of(index: int, nodes: int) -> tuple[int, int]:
    """Return the ordered pair of distinct nodes with that index, 0 .. nodes·(nodes − 1) − 1."""
    source, rest = divmod(index, nodes - 1)
    return source, rest + (rest >= source)


BATCH = 64

SHORTEST = 0.01
"""Seconds that load stays as it is, at least: shorter ones are too many to draw."""


def _counts(at_once: Sequence[int | None]) -> bool:
    """Return whether these are the fewest and the most places loaded at once."""
    if len(at_once) != 2 or not isinstance(at_once[0], Integral):
        return False
    fewest, most = at_once
    return fewest >= 0 and (most is None or (isinstance(most, Integral) and most >= max(fewest, 1)))


@dataclass(frozen=True)
class RoundLoad:
    """The paper's generator: rounds in which some places are loaded and the rest are free.

    A round draws how many places are loaded, which, an available fraction for
    each and one duration for all; the next round begins at its end.

    Parameters
    ----------
    available : pair of float
        Range of the available fraction where loaded, in (0, 1].
    duration : pair of float
        Range of a round's seconds.
    at_once : pair of int or None
        Fewest and most places loaded at once; None: all of them.
    overlap : bool
        Each processor alternates on its own between loaded and free, and as
        many loaders as the most places at once load links in turn.

    References
    ----------
    Yagnik, Sanjay & Vadhiyar, section 4; the paper prints the ranges, uniform
    draws and one duration a round are ours.

    Examples
    --------
    >>> RoundLoad((0.065, 0.72), (180, 480)).at_once
    (1, None)
    """

    available: Pair = (0.065, 0.72)
    duration: Pair = (180.0, 480.0)
    at_once: tuple[int, int | None] = (1, None)
    overlap: bool = False

    def __post_init__(self) -> None:
        check_interval("available", self.available, 0.0, 1.0)
        check_interval("duration", self.duration, SHORTEST, np.inf)
        if not _counts(self.at_once):
            raise ConfigError(
                "at_once must be a pair of whole numbers with 0 <= fewest <= most and most >= 1, "
                f"or null for most, got {list(self.at_once)}"
            )

    def cpu(self, processors: int, per_node: int, rng: Generator, origin: float) -> BatchedCpu:
        """Begin the load of the processors."""
        if self.overlap:
            return self._alternating().cpu(processors, per_node, rng, origin)
        fewest, most = self._limits(processors)

        def draw() -> tuple[FloatArray, FloatArray]:
            loaded = rng.integers(fewest, most + 1, BATCH)
            keys = rng.random((BATCH, processors))
            ranked = np.sort(keys, axis=1)
            last = np.where(loaded > 0, ranked[np.arange(BATCH), np.maximum(loaded, 1) - 1], -1.0)
            values = rng.uniform(*self.available, (BATCH, processors))
            values[keys > last[:, None]] = 1.0
            return rng.uniform(*self.duration, (1, BATCH)), values.T

        return BatchedCpu(processors, np.array([origin]), draw)

    def links(self, nodes: int, rng: Generator, origin: float) -> Iterator[LinkRow]:
        """Begin the load of the links between nodes."""
        if self.overlap:
            yield from self._alternating().links(nodes, rng, origin)
            return
        links = nodes * (nodes - 1)
        fewest, most = self._limits(links)
        start = origin
        while links:
            end = start + rng.uniform(*self.duration)
            picked = rng.choice(links, int(rng.integers(fewest, most + 1)), replace=False)
            left = rng.uniform(*self.available, picked.size)
            for index, available in zip(picked.tolist(), left.tolist(), strict=True):
                yield start, end, *link_of(index, nodes), available
            start = end

    def _limits(self, places: int) -> tuple[int, int]:
        fewest, most = self.at_once
        most = places if most is None else min(most, places)
        return min(fewest, most), most

    def _alternating(self) -> "BurstyLoad":
        most = self.at_once[1]
        return BurstyLoad(self.available, self.duration, self.duration, None, most or 8)


@dataclass(frozen=True)
class BurstyLoad:
    """Bursts: each place is loaded and free in turn, on its own, with rare long bursts.

    Parameters
    ----------
    available : pair of float
        Range of the available fraction in a burst, in (0, 1].
    loaded : pair of float
        Shortest and longest burst, seconds.
    free : pair of float
        Shortest and longest pause, seconds, drawn uniformly.
    tail : float or None
        Exponent of the bounded Pareto law of bursts, small for heavy tails; None
        draws them uniformly.
    loaders : int
        How many loaders of links there are, each on one link at a time.

    Examples
    --------
    >>> BurstyLoad(loaded=(30, 7200), tail=1.1).loaders
    8
    """

    available: Pair = (0.05, 0.5)
    loaded: Pair = (30.0, 7200.0)
    free: Pair = (60.0, 1800.0)
    tail: float | None = 1.1
    loaders: int = 8

    def __post_init__(self) -> None:
        check_interval("available", self.available, 0.0, 1.0)
        check_interval("loaded", self.loaded, SHORTEST, np.inf)
        check_interval("free", self.free, SHORTEST, np.inf)
        POSITIVE_AND_FINITE.check_or_null(tail=self.tail)
        AT_LEAST_1.check(loaders=self.loaders)

    def _bursts(self, rng: Generator, shape: tuple[int, ...]) -> FloatArray:
        """Return lengths of bursts by inversion of their law."""
        low, high = self.loaded
        draws = rng.random(shape)
        if self.tail is None:
            return low + (high - low) * draws
        ratio = (low / high) ** self.tail
        return np.asarray(low * (1 - draws * (1 - ratio)) ** (-1 / self.tail), float)

    def cpu(self, processors: int, per_node: int, rng: Generator, origin: float) -> BatchedCpu:
        """Begin the load of the processors, each somewhere in its own course."""
        shape = (processors, BATCH // 2)

        def draw() -> tuple[FloatArray, FloatArray]:
            durations, values = np.empty((processors, BATCH)), np.ones((processors, BATCH))
            durations[:, 0::2] = self._bursts(rng, shape)
            durations[:, 1::2] = rng.uniform(*self.free, shape)
            values[:, 0::2] = rng.uniform(*self.available, shape)
            return durations, values

        cycle = self.loaded[1] + self.free[1]
        return BatchedCpu(processors, origin - 2 * cycle * rng.random(processors), draw)

    def links(self, nodes: int, rng: Generator, origin: float) -> Iterator[LinkRow]:
        """Begin the load of the links between nodes."""
        links = nodes * (nodes - 1)
        loaders = min(self.loaders, links // 2)
        queue = [(origin + rng.uniform(0, self.free[1]), loader) for loader in range(loaders)]
        heapq.heapify(queue)
        busy: dict[int, float] = {}
        while queue:
            start, loader = heapq.heappop(queue)
            busy = {index: end for index, end in busy.items() if end > start}
            index = int(rng.integers(links))
            while index in busy:
                index = int(rng.integers(links))
            end = start + float(self._bursts(rng, (1,))[0])
            busy[index] = end
            heapq.heappush(queue, (end + rng.uniform(*self.free), loader))
            yield start, end, *link_of(index, nodes), rng.uniform(*self.available)


@dataclass(frozen=True)
class PeriodicLoad:
    """A cycle, such as day and night: availability falls and recovers in small steps.

    Parameters
    ----------
    depth : pair of float
        Range of the fraction that a place loses at its busiest, in (0, 1).
    period : float
        Seconds of one cycle.
    step : float
        Seconds between changes.
    spread : float
        How far the cycles of places are apart, as a share of the period; 0: all
        together.
    pairs : int
        How many links are loaded, drawn once.

    Examples
    --------
    >>> PeriodicLoad(depth=(0.5, 0.5)).period
    86400.0
    """

    depth: Pair = (0.2, 0.9)
    period: float = 86400.0
    step: float = 600.0
    spread: float = 0.2
    pairs: int = 8

    def __post_init__(self) -> None:
        check_interval("depth", self.depth, 0.0, 0.999)
        if not SHORTEST <= self.period < np.inf:
            raise ConfigError(f"period must be at least {SHORTEST} seconds, got {self.period}")
        if not SHORTEST <= self.step <= self.period:
            raise ConfigError(f"step must lie in [{SHORTEST}, {self.period:g}], got {self.step}")
        SHARE.check(spread=self.spread)
        AT_LEAST_1.check(pairs=self.pairs)

    def _available(self, time: FloatArray, depth: FloatArray, shift: FloatArray) -> FloatArray:
        turn = (time[None, :] / self.period - shift[:, None]) * 2 * np.pi
        return np.asarray(1.0 - depth[:, None] * 0.5 * (1 - np.cos(turn)), float)

    def _draw(self, places: int, rng: Generator) -> tuple[FloatArray, FloatArray]:
        return rng.uniform(*self.depth, places), self.spread * rng.random(places)

    def cpu(self, processors: int, per_node: int, rng: Generator, origin: float) -> BatchedCpu:
        """Begin the load of the processors."""
        depth, shift = self._draw(processors, rng)
        steps = iter(range(0, 2**62, BATCH))

        def draw() -> tuple[FloatArray, FloatArray]:
            time = self.step * (next(steps) + np.arange(BATCH, dtype=float))
            return np.full((1, BATCH), self.step), self._available(time, depth, shift)

        return BatchedCpu(processors, np.array([origin]), draw)

    def links(self, nodes: int, rng: Generator, origin: float) -> Iterator[LinkRow]:
        """Begin the load of the links between nodes."""
        links = nodes * (nodes - 1)
        picked = rng.choice(links, min(self.pairs, links), replace=False).tolist() if links else []
        depth, shift = self._draw(len(picked), rng)
        step = 0
        while picked:
            values = self._available(np.array([self.step * step]), depth, shift)[:, 0]
            start, end = origin + self.step * step, origin + self.step * (step + 1)
            for index, value in zip(picked, values.tolist(), strict=True):
                yield start, end, *link_of(index, nodes), value
            step += 1


@dataclass(frozen=True)
class ConstantLoad:
    """The same available fraction everywhere, at all times.

    Examples
    --------
    >>> ConstantLoad(0.5)
    ConstantLoad(available=0.5)
    """

    available: float = 1.0

    def __post_init__(self) -> None:
        POSITIVE_SHARE.check(available=self.available)

    def cpu(self, processors: int, per_node: int, rng: Generator, origin: float) -> BatchedCpu:
        """Begin the load of the processors."""

        def draw() -> tuple[FloatArray, FloatArray]:
            return np.full((1, 1), np.inf), np.full((processors, 1), self.available)

        return BatchedCpu(processors, np.array([origin]), draw)

    def links(self, nodes: int, rng: Generator, origin: float) -> Iterator[LinkRow]:
        """Begin the load of the links between nodes."""
        links = nodes * (nodes - 1) if self.available < 1 else 0
        return ((origin, np.inf, *link_of(index, nodes), self.available) for index in range(links))
