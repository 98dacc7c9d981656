"""What messages cost, by size class, and the exchanges of a cycle."""

from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf, log2

import numpy as np
from numpy.typing import ArrayLike

from predictors.base import FloatArray
from predictors.compiling import compiled, direct
from predictors.errors import AT_LEAST_1_AND_FINITE, FINITE, PredictorError

POSITIVE = float(np.nextafter(0.0, 1.0))
"""The least number above 0."""


@compiled
def lie_within(values: FloatArray, least: float) -> bool:
    """Say whether all values, of shape (n,), are finite and at least so much."""
    good = 0
    for value in values:
        good += least <= value < np.inf
    return good == values.size


_lie_within = direct(lie_within)


def alike(one: ArrayLike, other: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return two arrays of floats in their broadcast shape, contiguous."""
    a, b = np.asarray(one, dtype=float, order="C"), np.asarray(other, dtype=float, order="C")
    if a.shape == b.shape:
        return a, b
    if not b.ndim:
        return a, np.full(a.shape, b.item())
    if not a.ndim:
        return np.full(b.shape, a.item()), b
    shape = np.broadcast_shapes(a.shape, b.shape)
    return np.broadcast_to(a, shape).copy(), np.broadcast_to(b, shape).copy()


def check_within(
    name: str, values: FloatArray, least: float = POSITIVE, wanted: str = "positive and finite"
) -> None:
    """Refuse values that are not finite or below the least."""
    if not _lie_within(values.ravel(), least):
        wrong = values[~((values >= least) & (values < inf))]
        raise PredictorError(f"{name} must be {wanted}, got {wrong.item(0)}")


Classes = tuple[FloatArray, FloatArray, FloatArray]
"""First bytes, latency (microseconds) and time per byte (nanoseconds) of messages by size."""


@compiled
def message(costs: Classes, size: float, slower: float) -> float:
    """Return the seconds of a message of so many bytes, rounded up, each so many times slower."""
    first_bytes, latency, per_byte = costs
    whole, kind = float(ceil(size)), first_bytes.size - 1
    while first_bytes[kind] > whole:
        kind -= 1
    return float(latency[kind] * 1e-6 + whole * slower * per_byte[kind] * 1e-9)


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
    """Return what the exchanges of a cycle take, shape (n,), seconds.

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


_message_seconds, _exchange_seconds = direct(message_seconds), direct(exchange_seconds)


@dataclass(frozen=True)
class MessageCosts:
    """Latency and time per byte of a message, by size class.

    Parameters
    ----------
    first_bytes : tuple of int
        Smallest message of each class, rising from 0.
    latency : tuple of float, microseconds
    per_byte : tuple of float, nanoseconds

    Raises
    ------
    PredictorError
        If lengths differ, classes do not rise from 0 or a cost is negative.

    Examples
    --------
    >>> ALPHASERVER.seconds([32, 256, 512]).round(9).tolist()
    [5.6e-06, 1.0687e-05, 1.066e-05]
    """

    first_bytes: tuple[int, ...]
    latency: tuple[float, ...]
    per_byte: tuple[float, ...]

    def __post_init__(self) -> None:
        sizes = np.asarray(self.first_bytes, dtype=float)
        if not len(self.first_bytes) == len(self.latency) == len(self.per_byte) > 0:
            raise PredictorError("each message class needs a first size, a latency and a byte time")
        if sizes[0] != 0 or (np.diff(sizes) <= 0).any():
            raise PredictorError(f"first_bytes must rise from 0, got {self.first_bytes}")
        for name, costs in (("latency", self.latency), ("per_byte", self.per_byte)):
            if not all(0 <= cost < inf for cost in costs):
                raise PredictorError(f"{name} must be at least 0 and finite, got {costs}")

    def seconds(self, size: ArrayLike, slower: ArrayLike = 1.0) -> FloatArray:
        """Return the time of a message of so many bytes (rounded up), seconds.

        Parameters
        ----------
        size : array_like of float
        slower : array_like of float
            How many times as long a byte takes as alone on the network.

        Raises
        ------
        PredictorError
            If a size is negative.
        """
        given, factor = alike(size, slower)
        if given.size and not given.min() >= 0:
            least = float(np.ceil(given).min())
            raise PredictorError(f"a message has at least 0 bytes, got {least}")
        found = _message_seconds(self.classes, given.ravel(), factor.ravel())
        return np.asarray(found.reshape(given.shape))

    @cached_property
    def classes(self) -> Classes:
        """The classes as compiled code takes them."""
        first_bytes, latency, per_byte = np.array(
            [self.first_bytes, self.latency, self.per_byte], dtype=float
        )
        return first_bytes, latency, per_byte


ALPHASERVER = MessageCosts((0, 33, 512), (5.6, 5.9, 8.1), (0.0, 18.7, 5.0))
"""HP AlphaServer ES40 over QSnet-I (Mathis & Kerbyson, Table 2)."""

ITANIUM2 = MessageCosts((0, 33, 512), (5.0, 7.6, 11.0), (0.0, 8.9, 4.6))
"""Itanium-2 cluster over QSnet-I (Mathis & Kerbyson, Table 2)."""


@dataclass(frozen=True)
class Exchange:
    """Communication of one cycle: boundary messages and small global sums.

    Parameters
    ----------
    costs : MessageCosts
    messages : float
        Boundary messages that a processor sends in a cycle.
    bytes_per_face_cell : float
        Bytes for each cell of a face; a face has cells^(2/3) cells.
    reductions : float
        Global sums of 8 bytes, each ceil(log2 n) messages deep.
    bidirectional : float
        How many times as long a byte takes while others come the opposite way.
    nic : float
        By how much longer a byte takes for each further process that shares the
        node's network interface, as a share.
    processors_per_node : int

    Raises
    ------
    PredictorError
        If a count is negative, `bidirectional` or `processors_per_node` below 1.

    Examples
    --------
    >>> Exchange(ALPHASERVER, messages=6).seconds(nprocs=1, cells=1000.0).item()
    0.0
    """

    costs: MessageCosts
    messages: float = 300.0
    bytes_per_face_cell: float = 8.0
    reductions: float = 100.0
    bidirectional: float = 1.0
    nic: float = 0.0
    processors_per_node: int = 1

    def __post_init__(self) -> None:
        for name in ("messages", "bytes_per_face_cell", "reductions", "nic"):
            FINITE.check(**{name: getattr(self, name)})
        for name in ("bidirectional", "processors_per_node"):
            AT_LEAST_1_AND_FINITE.check(**{name: getattr(self, name)})

    def seconds(self, nprocs: ArrayLike, cells: ArrayLike) -> FloatArray:
        """Return the communication time of a cycle, 0 on one processor, seconds.

        Raises
        ------
        PredictorError
            If a number of cells is negative.
        """
        size, count = alike(cells, nprocs)
        if size.size and not size.min() >= 0:
            raise PredictorError(f"cells must be at least 0, got {float(size.min())}")
        face = self.bytes_per_face_cell * size ** (2.0 / 3.0)
        found = _exchange_seconds(self.costs.classes, self._numbers, face.ravel(), count.ravel())
        return np.asarray(found.reshape(size.shape))

    @cached_property
    def _numbers(self) -> FloatArray:
        boundary = self.messages, self.reductions, self.bidirectional
        return np.array([*boundary, self.nic, self.processors_per_node], float)
