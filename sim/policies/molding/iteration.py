"""Compiled iteration on the counts of many waiting jobs, one step of one job after the other.

A plan is a row of instants and one of processors that are free from then on,
like `sim.profile`, but entries at which nothing changes stay in it. The plan of
the first i jobs is kept for every i, so that a step of job i asks for the jobs
behind it alone to be placed again; there are two sets of rows, one for the plans
in force and one for those that are tried.
"""

import numpy as np
from numba import njit

from predictors.base import FloatArray, IntArray
from sim.policies.ties import is_less, is_less_on
from sim.profile import FIRST, LAST


@njit(cache=True)
def add_job(
    times: FloatArray,
    free: IntArray,
    length: IntArray,
    row: int,
    to: int,
    processors: int,
    runtime: float,
) -> float:
    """Write a plan with one more job, in its earliest hole, into another row; return its start.

    Parameters
    ----------
    times, free : numpy.ndarray of shape (rows, room)
    length : numpy.ndarray of int, shape (rows,)
        Entries in use; at the last, all processors are free for ever.
    row, to : int
    processors : int
    runtime : float, seconds
    """
    number = length[row]
    first = i = 0
    end = times[row, 0] + runtime
    while i < number and times[row, i] < end:
        if free[row, i] < processors:
            first = i + 1
            if first < number:
                end = times[row, first] + runtime
        i += 1
    for k in range(number):
        times[to, k] = times[row, k]
        free[to, k] = free[row, k]
    length[to] = number
    if first == number:
        return np.inf
    start = times[row, first]
    if end > start:
        for k in range(first, i):
            free[to, k] -= processors
        if i == number or times[row, i] > end:
            for k in range(number, i, -1):
                times[to, k] = times[row, k - 1]
                free[to, k] = free[row, k - 1]
            times[to, i] = end
            free[to, i] = free[row, i - 1]
            length[to] = number + 1
    return float(start)


@njit(cache=True)
def loss_of_step(
    counts: IntArray, runtimes: FloatArray, serial: float, dish: int, high: int, by_time: bool
) -> float:
    """Return what a job loses by its next step: efficiency, or less than nothing of time.

    Infinite where there is no next step.
    """
    if dish + 1 >= high:
        return np.inf
    if by_time:
        return float(runtimes[dish + 1] - runtimes[dish])
    now = serial / (counts[dish] * runtimes[dish])
    return float(now - serial / (counts[dish + 1] * runtimes[dish + 1]))


@njit(cache=True)
def scale_of_step(
    counts: IntArray, runtimes: FloatArray, serial: float, dish: int, by_time: bool
) -> float:
    """Return what a job's next step takes its loss from: its efficiency, or its time."""
    return float(runtimes[dish] if by_time else serial / (counts[dish] * runtimes[dish]))


@njit(cache=True)
def next_step(losses: FloatArray, scales: FloatArray, counts: IntArray, dish: IntArray) -> int:
    """Return whose step loses least; of equals the one to the smaller count, then the first.

    Parameters
    ----------
    losses, scales : numpy.ndarray of float, shape (n,)
        See `loss_of_step` and `scale_of_step`.
    counts : numpy.ndarray of int
        All menus.
    dish : numpy.ndarray of int, shape (n,)

    Returns
    -------
    int
        -1 if nobody has a next step.
    """
    place = -1
    for k in range(losses.size):
        if losses[k] == np.inf:
            continue
        if place >= 0:
            scale = max(scales[k], scales[place])
            if not is_less_on(losses[k], losses[place], scale) and (
                is_less_on(losses[place], losses[k], scale)
                or counts[dish[k] + 1] >= counts[dish[place] + 1]
            ):
                continue
        place = k
    return place


@njit(cache=True)
def try_from(
    times: FloatArray,
    free: IntArray,
    length: IntArray,
    half: IntArray,
    first: int,
    counts: IntArray,
    runtimes: FloatArray,
    dish: IntArray,
    total: float,
    best: float,
    starts: FloatArray,
) -> float:
    """Place the jobs from `first` on anew, in the rows that are not in force.

    Parameters
    ----------
    times, free, length
        As in `add_job`; row i, or i + n + 1, is the plan of the first i jobs.
    half : numpy.ndarray of int, shape (n + 1,)
        0 or 1: in which half of the rows each plan in force is.
    first : int
    counts, runtimes, dish : numpy.ndarray
        Menus, and what each job takes of them.
    total : float
        Sum of the ends of the jobs before `first`, seconds from now.
    best : float
        The sum of all ends to beat, by more than rounding.
    starts : numpy.ndarray of float, shape (n,)
        Written from `first` on.

    Returns
    -------
    float
        The sum of all ends, seconds from now; infinite where it is not below `best`.
    """
    left = 0.0
    row = first + half[first] * half.size
    for i in range(first, dish.size):
        left += runtimes[dish[i]]
    for i in range(first, dish.size):
        if not is_less(total + left, best):
            return np.inf
        seconds = runtimes[dish[i]]
        to = i + 1 + (1 - half[i + 1]) * half.size
        starts[i] = add_job(times, free, length, row, to, counts[dish[i]], seconds)
        total += starts[i] + seconds
        left -= seconds
        row = to
    return total if is_less(total, best) else np.inf


@njit(cache=True)
def iterate(
    times: FloatArray,
    free: IntArray,
    span: IntArray,
    counts: IntArray,
    runtimes: FloatArray,
    serial: FloatArray,
    low: IntArray,
    high: IntArray,
    dish: IntArray,
    by_time: bool,
) -> int:
    """Grow counts step by step while the mean turnaround of a conservative plan falls.

    Parameters
    ----------
    times, free, span
        The profile of the running jobs from now on.
    counts, runtimes : numpy.ndarray
        All menus.
    serial, low, high : numpy.ndarray of shape (n,)
        Believed T(1) and menu of each job, in queue order.
    dish : numpy.ndarray of int, shape (n,)
        On return the chosen dish of each job.
    by_time : bool
        Next is the job whose step gains most time, else the one whose step
        loses least efficiency; of equals the one to the smaller count, then the first.

    Returns
    -------
    int
        How many plans were made.
    """
    jobs, number = dish.size, span[LAST] - span[FIRST]
    rows = 2 * (jobs + 1)
    plan_times = np.empty((rows, number + jobs + 1))
    plan_free = np.empty((rows, number + jobs + 1), np.int64)
    length, half = np.empty(rows, np.int64), np.zeros(jobs + 1, np.int64)
    starts, losses, done = np.empty(jobs), np.empty(jobs), np.zeros(jobs + 1)
    scales = np.empty(jobs)
    for k in range(number):
        plan_times[0, k] = times[span[FIRST] + k] - times[span[FIRST]]
        plan_free[0, k] = free[span[FIRST] + k]
    length[0] = number
    for i in range(jobs):
        dish[i] = low[i]
        losses[i] = loss_of_step(counts, runtimes, serial[i], dish[i], high[i], by_time)
        scales[i] = scale_of_step(counts, runtimes, serial[i], dish[i], by_time)
    grown, total, plans = 0, np.inf, 0
    try_from(plan_times, plan_free, length, half, 0, counts, runtimes, dish, 0.0, total, starts)
    while True:
        plans += 1
        for i in range(grown, jobs):
            half[i + 1] = 1 - half[i + 1]
            done[i + 1] = done[i] + starts[i] + runtimes[dish[i]]
        while True:
            grown = next_step(losses, scales, counts, dish)
            if grown < 0:
                return plans
            dish[grown] += 1
            total = try_from(
                plan_times, plan_free, length, half, grown,
                counts, runtimes, dish, done[grown], done[jobs], starts,
            )  # fmt: skip
            if total < np.inf:
                break
            plans += 1
            dish[grown] -= 1
            losses[grown] = np.inf
        losses[grown] = loss_of_step(
            counts, runtimes, serial[grown], dish[grown], high[grown], by_time
        )
        scales[grown] = scale_of_step(counts, runtimes, serial[grown], dish[grown], by_time)
