"""Compiled targets of SCOJO and SCOJO-P: which counts of each menu are near them."""

import numpy as np
from numba import njit

from predictors.base import FloatArray, IntArray
from sim.policies.advice import last_up_to
from sim.policies.allocation.curve import last_efficient
from sim.policies.ties import TIE, is_less


@njit(cache=True)
def around(
    counts: IntArray, begin: int, end: int, target: float, tolerance: float
) -> tuple[int, int]:
    """Return the first dish, and one past the last, within a tolerance of a target.

    Without tolerance, the largest count up to the target alone; at least one stays.
    """
    last = last_up_to(counts, begin, end, target * (1 + tolerance) * (1 + TIE))
    first = last
    if tolerance > 0:
        floor = np.ceil(target / (1 + tolerance) * (1 - TIE))
        while first > begin and counts[first - 1] >= floor:
            first -= 1
    return first, last + 1


@njit(cache=True)
def aim_at_efficiency(
    counts: IntArray,
    runtimes: FloatArray,
    serial: FloatArray,
    offer: IntArray,
    size: IntArray,
    processors: IntArray,
    first: int,
    last: int,
    efficiency: float,
    tolerance: float,
    low: IntArray,
    high: IntArray,
) -> None:
    """Allow each waiting job what is near its largest count that is efficient enough.

    Near its least count where none is. Arrays as
    `sim.policies.molding.menus.OpenQueue` has them.
    """
    for k in range(first, last):
        if processors[k] > 0:
            begin, end = offer[k], offer[k] + size[k]
            dish = last_efficient(counts, runtimes, begin, end, serial[k], efficiency)
            low[k], high[k] = around(counts, begin, end, float(counts[dish]), tolerance)


@njit(cache=True)
def number_below(values: FloatArray, limit: float) -> int:
    """Return how many of the values, ascending, are below a limit."""
    low, high = 0, values.size
    while low < high:
        middle = (low + high) // 2
        if values[middle] < limit:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def running_until(left: FloatArray, held: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return sums of processors, and of processor-seconds, of the first runs to end.

    Parameters
    ----------
    left : numpy.ndarray of float, shape (n,), ascending
        Believed seconds that each run still takes.
    held : numpy.ndarray of int, shape (n,)
        Its processors.

    Returns
    -------
    numpy.ndarray of float, shape (n + 1,)
        Of none, of the first, of the first two, ...
    """
    counts, areas = np.zeros(left.size + 1), np.zeros(left.size + 1)
    for k in range(left.size):
        counts[k + 1] = counts[k] + held[k]
        areas[k + 1] = areas[k] + held[k] * left[k]
    return counts, areas


@njit(cache=True)
def aim_at_forecast(
    counts: IntArray,
    offer: IntArray,
    size: IntArray,
    processors: IntArray,
    job: IntArray,
    first: int,
    last: int,
    known: FloatArray,
    ends: FloatArray,
    held: IntArray,
    now: float,
    machine: int,
    arriving: float,
    tolerance: float,
    low: IntArray,
    high: IntArray,
) -> None:
    """Allow each waiting job what is near its count for the load that it will meet.

    Parameters
    ----------
    known : numpy.ndarray of float, shape (jobs, 4)
        Of every job: reference count, runtime at it in seconds, efficient counts at
        light and at heavy load.
    ends, held : numpy.ndarray
        Of the running jobs: believed ends, ascending, and processors.
    machine : int
        Its processors.
    arriving : float
        The share of the machine that future arrivals will ask for.
    """
    left = np.empty(ends.size)
    for k in range(ends.size):
        left[k] = ends[k] - now
    freed, over = running_until(left, held)
    waiting = 0.0
    for k in range(first, last):
        if processors[k] > 0:
            waiting += known[job[k], 0]
    for k in range(first, last):
        if processors[k] == 0:
            continue
        reference, runtime = known[job[k], 0], known[job[k], 1]
        target, heavy = known[job[k], 2], known[job[k], 3]
        ended = number_below(left, runtime)
        running = over[ended] / runtime + (freed[-1] - freed[ended])
        load = (running + waiting) / machine + arriving
        if is_less(1.0, load):
            target = min(reference / load, heavy)
        low[k], high[k] = around(counts, offer[k], offer[k] + size[k], target, tolerance)
