"""At which processor counts an application is measured before the start."""

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError

IntArray = NDArray[np.int64]

LEAST_TOP = 8
"""The largest calibration count is at least this, if the machine has as many."""


def spread_powers(k: int, top: int) -> IntArray:
    """Return k powers of two spread evenly in log from 1 to at most `top`.

    Of one alone it is the middle. Where fewer than `k` powers exist, some come twice.

    Examples
    --------
    >>> spread_powers(3, 64).tolist(), spread_powers(4, 100).tolist(), spread_powers(1, 64).tolist()
    ([1, 8, 64], [1, 4, 16, 64], [8])
    """
    largest = int(top).bit_length() - 1
    exponents = np.linspace(0, largest, k) if k > 1 else np.array([largest / 2])
    return 2 ** np.floor(exponents + 0.5).astype(np.int64)


def nearest_unused(wanted: IntArray, feasible: IntArray) -> IntArray:
    """Return, sorted, for each wanted count the nearest feasible one in log not taken before.

    Where fewer counts are feasible than wanted, all of them.
    """
    free = np.ones(len(feasible), bool)
    taken = []
    for count in wanted[: len(feasible)]:
        distance = np.where(free, np.abs(np.log(feasible / count)), np.inf)
        chosen = int(distance.argmin())
        free[chosen] = False
        taken.append(int(feasible[chosen]))
    return np.sort(np.array(taken, np.int64))


def choose_counts(k: int, largest_reference: int, processors: int, feasible: IntArray) -> IntArray:
    """Return the processor counts of `k` calibration runs of one application.

    Parameters
    ----------
    k : int
        ``predictor.calibration``, at least 0.
    largest_reference : int
        Largest reference count of the application's jobs.
    processors : int
        Size of the machine.
    feasible : numpy.ndarray of int
        Sorted counts that the application can run on.

    Returns
    -------
    numpy.ndarray of int, shape (at most k,)
        Powers of two spread evenly in log between 1 and the largest reference
        count, that being at least 8 and at most the machine; or the nearest
        feasible counts. Each comes once.

    Raises
    ------
    WorkloadError
        If `k` is negative.
    """
    if k < 0:
        raise WorkloadError(f"predictor.calibration must be at least 0, got {k}")
    if k == 0:
        return np.empty(0, np.int64)
    top = min(max(largest_reference, LEAST_TOP), processors)
    return nearest_unused(spread_powers(k, top), feasible)
