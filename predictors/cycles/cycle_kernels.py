"""What the offline and online modes compute for every cycle, compiled.

Operations are those of NumPy's own functions, in their order, so that results are the same
bits; logarithms and powers are taken outside.
"""

from math import ceil, log2
from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled


class Curves(NamedTuple):
    """Benchmarked times of a cell, a curve for each number of processes that share a node.

    Attributes
    ----------
    levels : numpy.ndarray of float, shape (p,)
        Processes per node, ascending.
    starts : numpy.ndarray of int, shape (p + 1,)
        Where the knots of each begin.
    axis : numpy.ndarray of float, shape (k,)
        Knots on the axis in which pieces are straight, rising within a curve.
    values : numpy.ndarray of float, shape (k,), seconds
    """

    levels: FloatArray
    starts: IntArray
    axis: FloatArray
    values: FloatArray


def curves_of(axes: dict[float, FloatArray], values: dict[float, FloatArray]) -> Curves:
    """Return curves by processes per node, ascending: their knots on the axis, and values there."""
    starts = np.cumsum([0, *(axis.size for axis in axes.values())])
    both = np.concatenate([*axes.values()]), np.concatenate([*values.values()])
    return Curves(np.array([*axes]), starts, *both)


POSITIVE = float(np.nextafter(0.0, 1.0))
"""The least number above 0."""


@compiled
def lie_within(values: FloatArray, least: float) -> bool:
    """Say whether all values, of shape (n,), are finite and at least so much."""
    good = 0
    for value in values:
        good += least <= value < np.inf
    return good == values.size


@compiled
def interpolated(at: float, x: FloatArray, y: FloatArray) -> float:
    """Return what `numpy.interp` does for one place, which is finite."""
    last = x.size - 1
    if at < x[0]:
        return float(y[0])
    if at >= x[last]:
        return float(y[last])
    k = 0
    while x[k + 1] <= at:
        k += 1
    return float(y[k] if x[k] == at else (y[k + 1] - y[k]) / (x[k + 1] - x[k]) * (at - x[k]) + y[k])


@compiled
def seconds_per_cell(curves: Curves, at: FloatArray, shared: FloatArray) -> FloatArray:
    """Return the time of a cell at each place, linear between numbers of processes.

    Parameters
    ----------
    curves : Curves
    at : numpy.ndarray of float, shape (n,)
        Cells on the curves' axis.
    shared : numpy.ndarray of float, shape (n,)
        Processes that share a node.

    Returns
    -------
    numpy.ndarray of float, shape (n,), seconds
    """
    levels, starts, axis, values = curves
    places, found = np.arange(levels.size).astype(np.float64), np.empty(at.size)
    for i in range(at.size):
        place = interpolated(shared[i], levels, places)
        low = min(int(place), max(levels.size - 2, 0))
        high = min(low + 1, levels.size - 1)
        here = slice(starts[low], starts[low + 1])
        below = interpolated(at[i], axis[here], values[here])
        here = slice(starts[high], starts[high + 1])
        above = interpolated(at[i], axis[here], values[here])
        found[i] = below + (place - low) * (above - below)
    return found


class Classes(NamedTuple):
    """What messages cost by size class.

    Attributes
    ----------
    first_bytes : numpy.ndarray of float, shape (m,)
    latency : numpy.ndarray of float, shape (m,), microseconds
    per_byte : numpy.ndarray of float, shape (m,), nanoseconds
    """

    first_bytes: FloatArray
    latency: FloatArray
    per_byte: FloatArray


@compiled
def message(costs: Classes, size: float, slower: float) -> float:
    """Return the seconds of a message of so many bytes, rounded up, each so many times slower."""
    whole, kind = float(ceil(size)), costs.first_bytes.size - 1
    while costs.first_bytes[kind] > whole:
        kind -= 1
    return float(costs.latency[kind] * 1e-6 + whole * slower * costs.per_byte[kind] * 1e-9)


@compiled
def message_seconds(costs: Classes, size: FloatArray, slower: FloatArray) -> FloatArray:
    """Return `message` for each of some sizes and factors, shape (n,), seconds."""
    found = np.empty(size.size)
    for i in range(size.size):
        found[i] = message(costs, size[i], slower[i])
    return found


@compiled
def exchange_seconds(
    costs: Classes, numbers: FloatArray, face: FloatArray, count: FloatArray
) -> FloatArray:
    """Return what the exchanges of a cycle take.

    Parameters
    ----------
    costs : Classes
    numbers : numpy.ndarray of float, shape (5,)
        Boundary messages, global sums, how many times as long a byte takes while others come
        the opposite way, the share more of each further process on a node, and processors of a
        node.
    face : numpy.ndarray of float, shape (n,)
        Bytes of a face.
    count : numpy.ndarray of float, shape (n,)
        Processors.

    Returns
    -------
    numpy.ndarray of float, shape (n,), seconds
    """
    messages, sums, bidirectional, nic, node = numbers
    found, small = np.zeros(face.size), message(costs, 8.0, 1.0)
    for i in range(face.size):
        if count[i] > 1.0:
            shared = min(count[i], node)
            slower = bidirectional * (1.0 + nic * (shared - 1.0))
            depth = ceil(log2(count[i]))
            found[i] = messages * message(costs, face[i], slower) + sums * depth * small
    return found


@compiled
def _running_sum(values: FloatArray) -> FloatArray:
    """Return the sum of all values before each, and of all."""
    total = np.zeros(values.size + 1)
    for k in range(values.size):
        total[k + 1] = total[k] + values[k]
    return total


@compiled
def rates(
    seconds: FloatArray, cells: FloatArray, known: int, window: int, before: FloatArray
) -> FloatArray:
    """Return the time per cell over the window before each cycle that is not known yet.

    Parameters
    ----------
    seconds, cells : numpy.ndarray of float, shape (n,)
        Of the cycles kept, and the new ones.
    known : int
        How many were kept.
    window : int
        0 for all.
    before : numpy.ndarray of float, shape (2,)
        Sums of seconds and cells that are not kept.

    Returns
    -------
    numpy.ndarray of float, shape (n - known,), seconds
        NaN without a cycle before.
    """
    found = np.empty(seconds.size - known)
    if window == 1:
        for end in range(known, seconds.size):
            found[end - known] = seconds[end - 1] / cells[end - 1] if end > 0 else np.nan
        return found
    time, size = _running_sum(seconds), _running_sum(cells)
    for end in range(known, seconds.size):
        start = max(end - window, 0) if window > 0 else 0
        if end > start or before[0] > 0.0:
            taken = time[end] - time[start] + before[0]
            found[end - known] = taken / (size[end] - size[start] + before[1])
        else:
            found[end - known] = np.nan
    return found
