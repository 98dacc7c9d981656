"""How a source of background load hands it out, chunk after chunk of time."""

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
from numpy.random import Generator

from predictors.base import FloatArray
from sim.background.kernels import CpuChunk
from sim.errors import ConfigError

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
