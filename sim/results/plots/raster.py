"""Many rectangles as a picture of few cells: exact means over each cell."""

from itertools import chain
from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray
from sim.state.records import Stretches

_AT_ONCE = 1 << 18
"""Rectangles that are drawn together: more would only need more memory."""


class Rectangles(NamedTuple):
    """Held processors over time: one rectangle for each interval of a stretch.

    Attributes
    ----------
    stretch : numpy.ndarray of int, shape (k,)
        Row in the stretches.
    begin, end : numpy.ndarray of float, shape (k,), seconds
    low, high : numpy.ndarray of float, shape (k,)
        Processors low <= p < high.
    """

    stretch: IntArray
    begin: FloatArray
    end: FloatArray
    low: FloatArray
    high: FloatArray

    def part(self, some: slice) -> "Rectangles":
        """Return some of the rectangles."""
        return Rectangles(
            self.stretch[some],
            self.begin[some],
            self.end[some],
            self.low[some],
            self.high[some],
        )


def rectangles(stretches: Stretches) -> Rectangles:
    """Return the rectangles of all stretches."""
    pieces = np.fromiter(map(len, stretches.nodes), np.int64, len(stretches.nodes))
    stretch = np.repeat(np.arange(len(pieces)), pieces)
    numbers = chain.from_iterable(chain.from_iterable(stretches.nodes))
    edges = np.fromiter(numbers, np.float64, 2 * len(stretch)).reshape(-1, 2)
    return Rectangles(
        stretch,
        stretches.start_time[stretch],
        stretches.end_time[stretch],
        edges[:, 0],
        edges[:, 1] + 1,
    )


def _ramp(low: FloatArray, high: FloatArray, cells: int) -> list[tuple[IntArray, FloatArray]]:
    """Return the steps whose running sum is how much of each cell [low, high) covers.

    Parameters
    ----------
    low, high : numpy.ndarray of float, shape (k,)
        In units of cells, within 0..cells.
    """
    steps = []
    for edge, sign in ((low, 1.0), (high, -1.0)):
        cell = np.minimum(edge.astype(np.int64), cells - 1)
        part = edge - cell
        steps.append((cell, sign * (1.0 - part)))
        steps.append((cell + 1, sign * part))
    return steps


def coverage(
    shape: Rectangles, weight: FloatArray, extent: tuple[float, float, float], size: tuple[int, int]
) -> FloatArray:
    """Return the mean over each cell of the weights of the rectangles that cover it.

    Parameters
    ----------
    shape : Rectangles
    weight : numpy.ndarray of float, shape (k,)
    extent : tuple of float
        First and last instant and number of processors of the picture.
    size : tuple of int
        Rows (processors, lowest first) and columns (time).

    Returns
    -------
    numpy.ndarray of float, shape `size`

    Notes
    -----
    Each rectangle is a product of two ramps; their steps are added in place
    and summed along both axes, so the cost does not depend on its area.
    """
    rows, columns = size
    steps = np.zeros((rows + 1, columns + 1))
    for first in range(0, len(weight), _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        _add_steps(shape.part(some), weight[some], extent, steps)
    return steps.cumsum(axis=0).cumsum(axis=1)[:rows, :columns]


def _add_steps(
    shape: Rectangles, weight: FloatArray, extent: tuple[float, float, float], steps: FloatArray
) -> None:
    """Add to `steps`, of shape (rows + 1, columns + 1), those of some rectangles."""
    begin, end, processors = extent
    rows, columns = steps.shape[0] - 1, steps.shape[1] - 1
    x = columns / (end - begin)
    y = rows / processors
    across = _ramp(
        np.clip((shape.begin - begin) * x, 0, columns),
        np.clip((shape.end - begin) * x, 0, columns),
        columns,
    )
    total = steps.reshape(-1)
    for row, vertical in _ramp(shape.low * y, shape.high * y, rows):
        base, weighted = row * (columns + 1), weight * vertical
        for column, horizontal in across:
            total += np.bincount(base + column, weighted * horizontal, len(total))
