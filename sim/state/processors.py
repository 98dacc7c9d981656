"""Processors by number, as compact sets of intervals."""

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from predictors.base import IntArray
from sim.state.records import Ranges
from sim.state.run_state import RunState, ranges_of

if TYPE_CHECKING:
    import pyarrow as pa


def count_processors(ranges: Ranges) -> int:
    """Count the processors of an interval set.

    Examples
    --------
    >>> count_processors(((0, 3), (7, 7)))
    5
    """
    return sum(high - low + 1 for low, high in ranges)


def as_ranges(processors: IntArray) -> Ranges:
    """Return processor numbers, ascending, as an interval set.

    Examples
    --------
    >>> as_ranges(np.array([0, 1, 2, 7]))
    ((0, 2), (7, 7))
    """
    if not processors.size:
        return ()
    cuts = np.flatnonzero(np.diff(processors) > 1)
    first = processors[np.concatenate(([0], cuts + 1))]
    last = processors[np.concatenate((cuts, [processors.size - 1]))]
    return tuple(zip(first.tolist(), last.tolist(), strict=True))


def as_numbers(ranges: Ranges) -> IntArray:
    """Return the processor numbers of an interval set, in its order.

    Examples
    --------
    >>> as_numbers(((0, 2), (7, 7))).tolist()
    [0, 1, 2, 7]
    """
    numbers = [np.arange(low, high + 1) for low, high in ranges]
    return np.concatenate(numbers or [np.zeros(0, np.int64)])


def nodes_of(ranges: Ranges, width: int) -> set[int]:
    """Return the nodes, of `width` processors each, that an interval set touches.

    Examples
    --------
    >>> sorted(nodes_of(((0, 2), (7, 7)), 2))
    [0, 1, 3]
    """
    return {node for low, high in ranges for node in range(low // width, high // width + 1)}


class NodeSets(Sequence[Ranges]):
    """Many interval sets in two flat arrays.

    Parameters
    ----------
    low, high : numpy.ndarray of int, shape (m,)
        Intervals of all sets, one set after the other.
    first : numpy.ndarray of int, shape (n + 1,)
        Where each set begins, and where the last ends.

    Examples
    --------
    >>> sets = NodeSets.of([((0, 3), (7, 7)), ((4, 4),)])
    >>> len(sets), sets[0], sets.high.tolist()
    (2, ((0, 3), (7, 7)), [3, 7, 4])
    """

    def __init__(self, low: IntArray, high: IntArray, first: IntArray) -> None:
        self.low, self.high, self.first = low, high, first

    @classmethod
    def of(cls, sets: Sequence[Ranges]) -> "NodeSets":
        """Return the same sets in flat arrays."""
        if isinstance(sets, NodeSets):
            return sets
        first = np.zeros(len(sets) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, sets), np.int64, len(sets)), out=first[1:])
        numbers = chain.from_iterable(chain.from_iterable(sets))
        edges = np.fromiter(numbers, np.int64, 2 * int(first[-1])).reshape(-1, 2)
        return cls(edges[:, 0], edges[:, 1], first)

    def __len__(self) -> int:
        return self.first.size - 1

    def __getitem__(self, place: int) -> Ranges:  # type: ignore[override]
        if not -len(self) <= place < len(self):
            raise IndexError(f"set {place} of {len(self)}")
        here = slice(*self.first[place % len(self) :][:2])
        return tuple(zip(self.low[here].tolist(), self.high[here].tolist(), strict=True))

    def part(self, rows: slice | IntArray) -> "NodeSets":
        """Return some of the sets."""
        if not isinstance(rows, slice):
            return NodeSets.of([self[row] for row in rows.tolist()])
        begin, end, _ = rows.indices(len(self))
        first = self.first[begin : end + 1]
        here = slice(first.item(0), first.item(-1))
        return NodeSets(self.low[here], self.high[here], first - first.item(0))

    def texts(self) -> "pa.StringArray":
        """Return each set as text, such as ``0-3,7``; an empty one is null."""
        import pyarrow as pa
        from pyarrow import compute

        numbers = pa.array(range(int(self.high.max(initial=0)) + 1)).cast(pa.string())
        low, high = (numbers.take(pa.array(edge)) for edge in (self.low, self.high))
        several = compute.binary_join_element_wise(low, high, "-")
        pieces = compute.if_else(pa.array(self.low < self.high), several, low)
        first, empty = self.first.astype(np.int32), np.diff(self.first) == 0
        sets = pa.ListArray.from_arrays(pa.array(first), pieces, mask=pa.array(empty))
        return compute.binary_join(sets, ",")


def held_ranges(state: RunState, first: IntArray) -> NodeSets:
    """Return all that stands in the table of ranges, as sets that begin at these places."""
    ranges = ranges_of(state)[: state.scalars["ranges"].item()]
    kind = np.min_scalar_type(ranges["high"].max(initial=0))
    bounds = np.append(first, ranges.size).astype(np.min_scalar_type(-ranges.size - 1))
    return NodeSets(ranges["low"].astype(kind), ranges["high"].astype(kind), bounds)
