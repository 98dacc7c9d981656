"""Compiled predictions of when processors become free, and the counts that heads prefer.

Lifetimes L are log-uniform up to `longest` (Downey, IPPS'97): P(L > t | L > a) =
(ln longest - ln t) / (ln longest - ln a). Ages below 1 s count as 1 s.
"""

import numpy as np
from numba import njit

from predictors.base import FloatArray, IntArray
from sim.policies.ties import is_less


@njit(cache=True)
def _is_over(
    held: IntArray,
    age: FloatArray,
    whole: FloatArray,
    needed: int,
    longest: float,
    wait: float,
    alone: bool,
) -> bool:
    """Say whether a predicted wait is over after so many seconds.

    With `alone`, whether one of the jobs that would free enough processors has
    more probably ended than not; else whether the expected number of freed
    processors reaches `needed`. `whole` is ln(longest / age); both sums go one
    way only, so that they may be left as soon as the answer is known.
    """
    still, freed, enough = 1.0, 0.0, needed - 1e-9
    for k in range(age.size):
        if alone and held[k] < needed:
            continue
        instant = age[k] + wait
        lasts = 0.0 if instant >= longest else np.log(longest / instant) / whole[k]
        if alone:
            still *= lasts
        else:
            freed += held[k] * (1.0 - lasts)
        if still <= 0.5 or freed >= enough:
            return True
    return False


@njit(cache=True)
def predicted_end(
    held: IntArray,
    age: FloatArray,
    whole: FloatArray,
    needed: int,
    longest: float,
    alone: bool,
    too_short: float,
    runtime: float,
    least: float,
) -> tuple[float, float]:
    """Return when enough processors are predicted to be free, in seconds from now.

    Parameters
    ----------
    held, age, whole : numpy.ndarray
        Processors of the running jobs, their ages in seconds (1 at least), and ln(longest / age).
    needed : int
    longest : float, seconds
    alone : bool
        See `_is_over`.
    too_short : float
        A wait that is known to be too short.
    runtime, least : float
        The search is given up once wait and runtime together reach `least`.

    Returns
    -------
    low, wait : float
        A wait that is too short, and the answer; a lower bound of it where the
        search was given up.
    """
    low, high = 0.0, longest
    for _ in range(40):
        if low + runtime >= least:
            return low, low
        middle = 0.5 * (low + high)
        if middle > too_short and _is_over(held, age, whole, needed, longest, middle, alone):
            high = middle
        else:
            low = middle
    return low, high


@njit(cache=True)
def believed_best(
    counts: IntArray, runtimes: FloatArray, free: int, held: IntArray, left: FloatArray
) -> int:
    """Return the dish that minimises q(n) + T(n) by the believed ends, ties to the smaller count.

    Parameters
    ----------
    held, left : numpy.ndarray
        Processors of the running jobs, and believed seconds until they end, ascending.
    """
    ended, wait, now_free = 0, 0.0, free
    best, least = 0, np.inf
    for dish in range(counts.size):
        while now_free < counts[dish] and ended < held.size:
            now_free += held[ended]
            wait = left[ended]
            ended += 1
        if now_free < counts[dish]:
            break
        if is_less(wait + runtimes[dish], least):
            best, least = dish, wait + runtimes[dish]
    return best


@njit(cache=True)
def predicted_best(
    counts: IntArray,
    runtimes: FloatArray,
    free: int,
    held: IntArray,
    age: FloatArray,
    median: bool,
    longest: float,
) -> int:
    """Return the dish that minimises q(n) + T(n) by the ages, ties to the smaller count.

    More processors are never there sooner, as long as they are predicted the
    same way: what is too short a wait for one dish is so for the next.
    """
    widest = 0
    ages, whole = np.empty(age.size), np.empty(age.size)
    for k in range(age.size):
        widest = max(widest, held[k])
        ages[k] = max(age[k], 1.0)
        whole[k] = np.log(longest / ages[k])
    best, least = 0, np.inf
    low = bound = 0.0
    alone = True
    for dish in range(counts.size):
        runtime, needed = runtimes[dish], counts[dish] - free
        if not is_less(runtime, least):
            continue
        wait = 0.0
        if needed > 0:
            if alone and not (median and needed <= widest):
                alone, low, bound = False, 0.0, 0.0
            if not is_less(bound + runtime, least):
                continue
            low, bound = predicted_end(
                held, ages, whole, needed, longest, alone, low, runtime, least
            )
            wait = bound
        if is_less(wait + runtime, least):
            best, least = dish, wait + runtime
    return best


@njit(cache=True)
def settle_heads(
    counts: IntArray,
    runtimes: FloatArray,
    offer: IntArray,
    size: IntArray,
    processors: IntArray,
    first: int,
    last: int,
    free: int,
    running: int,
    held: IntArray,
    clock: FloatArray,
    queue_time: int,
    longest: float,
    low: IntArray,
    high: IntArray,
) -> None:
    """Settle heads on the dish they prefer, until one prefers to wait; all others get their cap.

    `queue_time` is the place of its name in `QUEUE_TIMES`; `clock` holds the
    seconds that each running job still takes by belief, ascending, else its
    age. Behind the running jobs there must be room for the waiting ones.
    """
    number = running
    waits = False
    for k in range(first, last):
        if processors[k] == 0:
            continue
        begin, end = offer[k], offer[k] + size[k]
        low[k], high[k] = end - 1, end
        if waits:
            continue
        menu, seconds = counts[begin:end], runtimes[begin:end]
        if queue_time == 0:
            dish = believed_best(menu, seconds, free, held[:number], clock[:number])
        else:
            dish = predicted_best(
                menu, seconds, free, held[:number], clock[:number], queue_time == 1, longest
            )
        low[k], high[k] = begin + dish, begin + dish + 1
        waits = menu[dish] > free
        free -= menu[dish]
        at, instant = number, seconds[dish] if queue_time == 0 else 0.0
        while queue_time == 0 and at > 0 and clock[at - 1] > instant:
            held[at], clock[at] = held[at - 1], clock[at - 1]
            at -= 1
        held[at], clock[at] = menu[dish], instant
        number += 1
