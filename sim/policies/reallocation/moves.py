"""Moves that reallocation rules are made of: make room in an order, hand out in an order."""

import heapq
from collections.abc import Iterable

import numpy as np

from predictors.base import FloatArray, IntArray


def make_room(counts: IntArray, least: IntArray, total: int, victims: Iterable[int]) -> None:
    """Lower counts in place, one victim after the other, until they fit in the total.

    Examples
    --------
    >>> counts = np.array([4, 4, 2])
    >>> make_room(counts, np.array([1, 1, 2]), 7, [0, 1])
    >>> counts.tolist()
    [1, 4, 2]
    """
    over = int(counts.sum()) - total
    for place in victims:
        if over <= 0:
            return
        given = min(over, int(counts[place] - least[place]))
        counts[place] -= given
        over -= given


def hand_out(counts: IntArray, limits: IntArray, total: int, takers: Iterable[int]) -> None:
    """Raise counts in place up to limits, one taker after the other, as the total allows.

    Examples
    --------
    >>> counts = np.array([1, 1])
    >>> hand_out(counts, np.array([4, 9]), 8, [0, 1])
    >>> counts.tolist()
    [4, 4]
    """
    left = total - int(counts.sum())
    for place in takers:
        if left <= 0:
            return
        taken = min(left, int(limits[place] - counts[place]))
        if taken > 0:
            counts[place] += taken
            left -= taken


def level(counts: IntArray, least: IntArray, largest: IntArray, total: int) -> None:
    """Take or give processor by processor, always from the highest or to the lowest rank.

    The rank is (n - least)/(largest - least); ties go to the first.
    """
    width: FloatArray = np.maximum(largest - least, 1).astype(float)
    change = total - int(counts.sum())
    step = 1 if change > 0 else -1
    heap = [
        (step * (counts[k] - least[k]) / width[k], k)
        for k in range(counts.size)
        if (counts[k] < largest[k] if step > 0 else counts[k] > least[k])
    ]
    heapq.heapify(heap)
    while change != 0 and heap:
        _, place = heap[0]
        counts[place] += step
        change -= step
        if counts[place] < largest[place] if step > 0 else counts[place] > least[place]:
            rank = step * (counts[place] - least[place]) / width[place]
            heapq.heapreplace(heap, (rank, place))
        else:
            heapq.heappop(heap)
