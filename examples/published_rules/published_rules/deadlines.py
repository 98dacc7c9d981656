"""Counts that minimise the larger of the longest time and the area over the processors."""

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.policies.ties import is_less


@compiled
def lean_candidate(
    counts: IntArray, runtimes: FloatArray, low: int, high: int, deadline: float
) -> int:
    """Return the candidate of least area among those that end within a deadline, else -1.

    Where area does not fall this is the canonical number γ(d), the least count.
    """
    best, area = -1, np.inf
    for pick in range(low, high):
        if is_less(deadline, runtimes[pick]):
            continue
        if is_less(counts[pick] * runtimes[pick], area):
            best, area = pick, counts[pick] * runtimes[pick]
    return best


@compiled
def allot(
    processors: int,
    counts: IntArray,
    runtimes: FloatArray,
    low: IntArray,
    high: IntArray,
    pick: IntArray,
) -> float:
    """Choose counts that minimise max(longest time, area / P) over one deadline for all."""
    jobs = pick.size
    number = 0
    for i in range(jobs):
        number += high[i] - low[i]
    deadlines = np.empty(number)
    at = 0
    least = 0.0
    for i in range(jobs):
        shortest = np.inf
        for k in range(low[i], high[i]):
            deadlines[at] = runtimes[k]
            at += 1
            shortest = min(shortest, runtimes[k])
        least = max(least, shortest)
    deadlines.sort()
    begin = int(np.searchsorted(deadlines, least))
    end = number - 1
    while begin < end:
        middle = (begin + end) // 2
        area = _area(counts, runtimes, low, high, deadlines[middle], pick)
        if not is_less(deadlines[middle] * processors, area):
            end = middle
        else:
            begin = middle + 1
    area = _area(counts, runtimes, low, high, deadlines[begin], pick)
    bound = max(deadlines[begin], area / processors)
    before = begin - 1
    while before >= 0 and not is_less(deadlines[before], deadlines[begin]):
        before -= 1
    if before >= 0 and deadlines[before] >= least:
        area = _area(counts, runtimes, low, high, deadlines[before], pick)
        if is_less(max(deadlines[before], area / processors), bound):
            return float(max(deadlines[before], area / processors))
        _area(counts, runtimes, low, high, deadlines[begin], pick)
    return float(bound)


@compiled
def _area(
    counts: IntArray, runtimes: FloatArray, low: IntArray, high: IntArray,
    deadline: float, pick: IntArray,
) -> float:  # fmt: skip
    """Choose the leanest candidates for a deadline and return their area."""
    area = 0.0
    for i in range(pick.size):
        pick[i] = lean_candidate(counts, runtimes, low[i], high[i], deadline)
        area += counts[pick[i]] * runtimes[pick[i]]
    return area
