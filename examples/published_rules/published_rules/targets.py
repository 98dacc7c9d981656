"""Candidates near a target: what rules aim at that choose counts by load."""

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.policies.advice import last_up_to
from sim.policies.molding.candidates import OpenQueue, Spans
from sim.policies.ties import TIE


@compiled
def around(
    counts: IntArray, begin: int, end: int, target: float, tolerance: float
) -> tuple[int, int]:
    """Return the first candidate, and one past the last, within a tolerance of a target.

    Without tolerance, the largest count up to the target alone; at least one stays.
    """
    last = last_up_to(counts, begin, end, target * (1 + tolerance) * (1 + TIE))
    first = last
    if tolerance > 0:
        floor = np.ceil(target / (1 + tolerance) * (1 - TIE))
        while first > begin and counts[first - 1] >= floor:
            first -= 1
    return first, last + 1


@compiled
def _aim(
    counts: IntArray, spans: Spans, first: int, last: int, target: FloatArray, tolerance: float
) -> None:
    """Allow everybody what is around the target; see `aim`."""
    for k in range(first, last):
        begin, end = spans[k].begin, spans[k].begin + spans[k].number
        spans[k].low, spans[k].high = around(counts, begin, end, target[k - first], tolerance)


def aim(queue: OpenQueue, target: FloatArray, tolerance: float = 0.0) -> None:
    """Allow every waiting job what is around its target, at least one count."""
    _aim(queue.counts, queue.spans, queue.first, queue.last, target, tolerance)
