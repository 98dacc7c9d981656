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
