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
        n[:out], t[:out] = nprocs[:out], runtime[:out]
        n[out:], t[out:] = nprocs[out + 1 :], runtime[out + 1 :]
        for excess in jumps(n, t, is_paper, threshold)[1]:
            unrest[j] += max(excess, 0.0)
        for i in range(n.size - 1):
            falling = np.log(n[i] * t[i] / (n[i + 1] * t[i + 1])) - falling_work
            if falling > 0.0:
                unrest[j] += falling
                falls[j] = True
    return unrest, falls
