"""Noise of split times: normal numbers addressed by job and count, in any order of asking."""

import numba
import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@numba.njit(cache=True)
def _mixed(value):  # type: ignore[no-untyped-def]
    """Return the SplitMix64 finaliser (Steele, Lea & Flood, OOPSLA 2014)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@numba.njit(cache=True)
def disturb(share, jobs, counts, key, spread):  # type: ignore[no-untyped-def]
    """Give both parts of each time a log-normal factor; change `share` to what comes out.

    Parameters
    ----------
    share : numpy.ndarray of float, shape (n,)
        Share of communication, changed in place.
    jobs, counts : numpy.ndarray of int, shape (n,)
    key : numpy.uint64
    spread : float
        Standard deviation of the logarithm of each factor.
    """
    golden = np.uint64(0x9E3779B97F4A7C15)
    for i in range(len(share)):
        state = _mixed(key + golden * np.uint64(jobs[i] + 1))
        state = _mixed(state + golden * np.uint64(counts[i]))
        first = (np.float64(_mixed(state + golden) >> np.uint64(11)) + 0.5) * 2.0**-53
        second = (np.float64(_mixed(state + golden + golden) >> np.uint64(11)) + 0.5) * 2.0**-53
        radius, angle = np.sqrt(-2.0 * np.log(first)), 2.0 * np.pi * second
        communication = share[i] * np.exp(spread * radius * np.cos(angle))
        computation = (1.0 - share[i]) * np.exp(spread * radius * np.sin(angle))
        share[i] = communication / (computation + communication)
