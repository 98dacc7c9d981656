"""How a source of background load hands it out, chunk after chunk of time."""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np

from predictors.base import FloatArray
from sim.background.kernels import CpuChunk, LinkChunk
from sim.errors import ConfigError

Pair = tuple[float, float]
LinkRow = tuple[float, float, int, int, float]
Draw = Callable[[], tuple[FloatArray, FloatArray]]


class Segments(NamedTuple):
    """Piecewise-constant values of all elements: segment k of element e is [e, k].

    ``times`` has shape (1, segments + 1) where all elements change together,
    else (elements, segments + 1); ``values`` has shape (elements, segments).
    """

    times: FloatArray
    values: FloatArray

    def after(self, time: float) -> "Segments":
        """Drop the segments that are over for every element."""
        over = int((self.times[:, 1:] <= time).all(axis=0).sum())
        return Segments(self.times[:, over:], self.values[:, over:])


class CpuSource(Protocol):
    """Yields the available CPU of all processors, chunk after chunk, in order."""

    def chunk(self, start: float, end: float) -> CpuChunk:
        """Return the load over [start, end), the continuation of the last call."""
        ...


class LoadModel(Protocol):
    """A kind of load with its figures, for processors, links or both."""

    def cpu(
        self, processors: int, per_node: int, rng: np.random.Generator, origin: float
    ) -> CpuSource:
        """Begin the load of that many processors at `origin`."""
        ...

    def links(self, nodes: int, rng: np.random.Generator, origin: float) -> "LinkRows":
        """Begin the load of the links between that many nodes at `origin`."""
        ...


def check_interval(name: str, interval: Pair, low: float, high: float) -> None:
    """Raise a `ConfigError` unless low < interval[0] <= interval[1] <= high, all finite."""
    ordered = len(interval) == 2 and low < interval[0] <= interval[1] <= high
    if not ordered or interval[1] == np.inf:
        limit = f"{low:g} < lower <= upper" + (f" <= {high:g}" if np.isfinite(high) else " < inf")
        raise ConfigError(f"{name} must be a pair with {limit}, got {tuple(interval)}")


def cpu_chunk(segments: Segments, start: float, end: float, elements: int) -> CpuChunk:
    """Cut the segments of one chunk out of `segments`."""
    inside = (segments.times[:, 1:] > start) & (segments.times[:, :-1] < end)
    times = segments.times[:, :-1][inside]
    if len(segments.times) == 1:
        values = segments.values[:, inside[0]].T
        zeros = np.zeros(elements, np.int64)
        return CpuChunk(times, zeros, values.ravel(), np.arange(elements), zeros + len(values))
    counts = inside.sum(axis=1)
    first = np.concatenate(([0], np.cumsum(counts)[:-1]))
    return CpuChunk(times, first, segments.values[inside], first, counts)


class BatchedCpu:
    """CPU load that is drawn in batches of segments and handed out in chunks.

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
        self.processors = processors
        self.draw = draw
        self.pending = Segments(begin[:, None], np.empty((processors, 0)))

    def chunk(self, start: float, end: float) -> CpuChunk:
        """Return the load over [start, end)."""
        pending = self.pending.after(start)
        while pending.times[:, -1].min() < end:
            durations, values = self.draw()
            later = pending.times[:, -1:] + np.cumsum(durations, axis=1)
            pending = Segments(
                np.concatenate((pending.times, later), axis=1),
                np.concatenate((pending.values, values), axis=1),
            )
        self.pending = pending
        return cpu_chunk(pending, start, end, self.processors)


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

    def chunk(self, start: float, end: float) -> LinkChunk:
        """Return the load over [start, end)."""
        while not self.pending or self.pending[-1][0] < end:
            row = next(self.rows, None)
            if row is None:
                break
            self.pending.append(row)
        self.pending = [row for row in self.pending if row[1] > start]
        return link_chunk([row for row in self.pending if row[0] < end])


def link_chunk(rows: list[LinkRow]) -> LinkChunk:
    """Turn rows in order of start into arrays."""
    table = np.array(rows, float).reshape(-1, 5)
    start, end = table[:, 0].copy(), table[:, 1].copy()
    longest = np.array([float((end - start).max()) if len(table) else 0.0])
    begun, over = np.arange(1, len(table) + 1), np.searchsorted(np.sort(end), start, side="right")
    most = np.array([float((begun - over).max(initial=0))])
    source, destination = (table[:, k].astype(np.int64) for k in (2, 3))
    return LinkChunk(start, end, source, destination, table[:, 4].copy(), longest, most)


def link_of(index: int, nodes: int) -> tuple[int, int]:
    """Return the ordered pair of distinct nodes with that index, 0 .. nodes·(nodes − 1) − 1."""
    source, rest = divmod(index, nodes - 1)
    return source, rest + (rest >= source)
