"""The statistic of anomalies, compiled; see `predictors.adept.anomalies`."""

import numpy as np
from numba import njit

from predictors.base import BoolArray, FloatArray, IntArray


@njit(cache=True)
def jumps(
    nprocs: FloatArray, runtime: FloatArray, is_paper: bool, threshold: float
) -> tuple[FloatArray, FloatArray]:
    """Return rise and excess of the statistic at each three neighbours, shape (m - 2,)."""
    steps = nprocs.size - 1
    gain, finer = np.empty(steps), np.empty(steps)
    for i in range(steps):
        ratio = nprocs[i] * runtime[i] / (nprocs[i + 1] * runtime[i + 1])
        doublings = np.log2(nprocs[i + 1] / nprocs[i])
        finer[i] = 1.0 / doublings
        if is_paper:
            gain[i] = np.log(ratio * (2.0 - nprocs[i] / nprocs[i + 1]))
        else:
            gain[i] = np.log(ratio) / doublings
    rise, excess = np.empty(max(steps - 1, 0)), np.empty(max(steps - 1, 0))
    for i in range(steps - 1):
        # The last factor keeps fine spacing from amplifying noise.
        factor = 1.0 if is_paper else max(1.0, 0.5 * (finer[i] + finer[i + 1]))
        rise[i] = gain[i + 1] - gain[i]
        excess[i] = rise[i] - threshold * factor
    return rise, excess


@njit(cache=True)
def unrest_without(
    nprocs: FloatArray,
    runtime: FloatArray,
    candidates: IntArray,
    is_paper: bool,
    threshold: float,
    falling_work: float,
) -> tuple[FloatArray, BoolArray]:
    """Return, without each candidate, fluctuation plus falling work, and whether any falls."""
    unrest = np.zeros(candidates.size)
    falls = np.zeros(candidates.size, np.bool_)
    n, t = np.empty(nprocs.size - 1), np.empty(nprocs.size - 1)
    for j in range(candidates.size):
        out = candidates[j]
        for i in range(n.size):
            k = i if i < out else i + 1
            n[i], t[i] = nprocs[k], runtime[k]
        for excess in jumps(n, t, is_paper, threshold)[1]:
            unrest[j] += max(excess, 0.0)
        for i in range(n.size - 1):
            falling = np.log(n[i] * t[i] / (n[i + 1] * t[i + 1])) - falling_work
            if falling > 0.0:
                unrest[j] += falling
                falls[j] = True
    return unrest, falls


@njit(cache=True)
def suspect(
    nprocs: FloatArray,
    runtime: FloatArray,
    is_paper: bool,
    threshold: float,
    falling_work: float,
) -> tuple[int, float, bool]:
    """Return the place, the change of the statistic where the test fired, and whether work falls.

    The place is that of the candidate without which the others are calmest, -1
    if the test does not fire. The change is that of the logarithm, or of the
    paper's R itself.
    """
    rise, excess = jumps(nprocs, runtime, is_paper, threshold)
    is_candidate = np.zeros(nprocs.size, np.bool_)
    for i in range(excess.size):
        if excess[i] > 1e-9:
            is_candidate[i + 1] = is_candidate[i + 2] = True
    candidates = np.flatnonzero(is_candidate)
    if candidates.size == 0:
        return -1, 0.0, False
    unrest, falls = unrest_without(nprocs, runtime, candidates, is_paper, threshold, falling_work)
    calmest = int(np.argmin(unrest))
    place = candidates[calmest]
    fired = -1
    for i in range(max(place - 2, 0), min(place, rise.size)):
        if excess[i] > 1e-9 and (fired < 0 or rise[i] > rise[fired]):
            fired = i
    change = rise[fired]
    if is_paper:
        R = np.empty(2)
        for j in range(2):
            i = fired + j
            work = nprocs[i] * runtime[i] / (nprocs[i + 1] * runtime[i + 1])
            R[j] = work * (2.0 - nprocs[i] / nprocs[i + 1])
        change = R[1] - R[0]
    return int(place), change, bool(falls[calmest])
