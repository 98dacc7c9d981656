"""Compiled planning of many open counts at once, on the availability profile."""

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.policies.molding.candidates import HIGH, LOW
from sim.policies.ties import is_less
from sim.state.availability import FIRST, LAST, place


@compiled()
def _copy(
    times: FloatArray, free: IntArray, span: IntArray,
    to_times: FloatArray, to_free: IntArray, to_span: IntArray,
) -> None:  # fmt: skip
    number = span[LAST] - span[FIRST]
    for i in range(number):
        to_times[i] = times[span[FIRST] + i]
        to_free[i] = free[span[FIRST] + i]
    to_span[FIRST], to_span[LAST] = 0, number


@compiled(makes_arrays=True)
def fill_idle(
    times: FloatArray, free: IntArray, span: IntArray, now: float,
    counts: IntArray, runtimes: FloatArray, spans: IntArray, serial: FloatArray,
) -> tuple[IntArray, int]:  # fmt: skip
    """Hand out planned idle processors while the planned utilisation rises (UMS).

    Parameters and returned values as of `sim.policies.allocation.iterative.iterate`;
    Σ T(n)·n·E(n) is Σ T(1), so that utilisation rises where the latest planned end falls.
    """
    pick, high = spans[LOW].copy(), spans[HIGH]
    jobs = pick.size
    room = span[LAST] - span[FIRST] + 2 * jobs + 4
    work_times, work_free = np.empty(room), np.empty(room, np.int64)
    work_span = np.empty(2, np.int64)
    starts, best = np.empty(jobs), pick.copy()
    latest, plans = np.inf, 0
    while True:
        _copy(times, free, span, work_times, work_free, work_span)
        plans += 1
        end, last = 0.0, 0
        for i in range(jobs):
            seconds = runtimes[pick[i]]
            starts[i] = place(work_times, work_free, work_span, now, counts[pick[i]], seconds)
            if is_less(end, starts[i] - now + seconds):
                end, last = starts[i] - now + seconds, i
        if not is_less(end, latest):
            return best, plans
        latest = end
        best[:] = pick
        handed = False
        for k in range(work_span[FIRST], work_span[LAST]):
            idle = work_free[k]
            while idle > 0:
                chosen, most = -1, 0.0
                for i in range(jobs):
                    at = pick[i]
                    if starts[i] != work_times[k] or at + 1 >= high[i]:
                        continue
                    if counts[at + 1] - counts[at] > idle:
                        continue
                    efficiency = serial[i] / (counts[at] * runtimes[at])
                    if is_less(most, efficiency) or (
                        not is_less(efficiency, most) and counts[at + 1] < counts[pick[chosen] + 1]
                    ):
                        chosen, most = i, efficiency
                if chosen < 0:
                    break
                idle -= counts[pick[chosen] + 1] - counts[pick[chosen]]
                pick[chosen] += 1
                handed = True
            if handed:
                break
        if not handed:
            if pick[last] + 1 >= high[last]:
                return pick, plans
            pick[last] += 1


@compiled()
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


@compiled(makes_arrays=True)
def allot(
    processors: int,
    counts: IntArray,
    runtimes: FloatArray,
    low: IntArray,
    high: IntArray,
    pick: IntArray,
) -> float:
    """Choose counts that minimise max(longest time, area / P) over one deadline for all.

    Returns
    -------
    float
        ω = min over d of max(d, Σ a_j(γ_j(d)) / P), at most the least makespan.
    """
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


@compiled()
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
