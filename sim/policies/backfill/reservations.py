"""Compiled reservations of waiting jobs on the availability profile: made, kept, compressed."""

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import njit
from sim.policies.backfill.queue_search import BLOCK
from sim.state.availability import (
    Holes,
    earliest,
    least_free,
    most_free,
    nothing_found,
    occupy,
    place,
    place_next,
)
from sim.state.waiting_queue import Waiting


@njit(cache=True)
def compress(
    holes: Holes,
    now: float,
    waiting: Waiting,
    first: int,
    last: int,
    freed: FloatArray,
) -> None:
    """Put every waiting job, in queue order, back at its earliest hole, never later.

    ``freed[0]`` and ``freed[1]`` bound the time in which processors became free
    since the jobs were last tried: a hole that a job could move to must reach
    into it, so only such holes are looked for. On return they bound what this
    very pass freed, for the jobs that it had already passed by.
    """
    counts, runtimes, starts = waiting
    low, high = freed[0], freed[1]
    freed[0], freed[1] = np.inf, -np.inf
    if high <= now:
        return
    low = max(low, now)
    most = most_free(*holes, low, high)
    for k in range(first, last):
        wanted = counts[k]
        old = starts[k]
        if wanted == 0 or wanted > most or old <= low:
            continue
        runtime = runtimes[k]
        after = max(now, low - runtime - 1.0)
        limit = min(old, high)
        if after >= limit:
            continue
        start = earliest(*holes, wanted, runtime, after, limit, old)
        if start >= old:
            continue
        occupy(*holes, old, old + runtime, -wanted)
        occupy(*holes, start, start + runtime, wanted)
        starts[k] = start
        low = min(low, old)
        high = max(high, old + runtime)
        most = max(most, most_free(*holes, old, old + runtime))
        freed[0] = min(freed[0], old)
        freed[1] = max(freed[1], old + runtime)


@njit(cache=True)
def replan(
    holes: Holes,
    now: float,
    waiting: Waiting,
    first: int,
    last: int,
) -> None:
    """Reserve for every waiting job anew, in queue order."""
    counts, runtimes, starts = waiting
    found = nothing_found(last - first)
    for k in range(first, last):
        if counts[k] > 0:
            starts[k] = place_next(*holes, now, counts[k], runtimes[k], found)


@njit(cache=True)
def replan_soonest(
    holes: Holes,
    now: float,
    waiting: Waiting,
    first: int,
    last: int,
) -> int:
    """Do of `replan` what tells who starts now, and when the next reservation begins.

    A job that finds no hole before the next reservation known, not even if those passed over
    ahead of it held nothing, can neither start now nor be that next one: it is passed over
    until a later job may be. Returns up to where jobs hold what `replan` gives them; the
    starts of those from there on are infinite.
    """
    counts, runtimes, starts = waiting
    soonest, most, reserved = np.inf, 0, first
    found = nothing_found(last - first)
    for k in range(first, last):
        starts[k] = np.inf
    for k in range(first, last):
        if counts[k] == 0:
            continue
        while reserved <= k:
            if soonest < np.inf:
                if counts[k] > most:
                    break
                start = earliest(*holes, counts[k], runtimes[k], now, soonest, np.inf)
                if start >= soonest:
                    break
            if counts[reserved] > 0:
                start = place_next(*holes, now, counts[reserved], runtimes[reserved], found)
                starts[reserved] = start
                if start > now:
                    soonest = min(soonest, start)
                    most = most_free(*holes, now, soonest)
            reserved += 1
    return int(reserved)


@njit(cache=True)
def repair(
    holes: Holes,
    now: float,
    waiting: Waiting,
    first: int,
    last: int,
) -> int:
    """Keep, in queue order, the reservations that fit; place the others anew after them.

    The profile holds the running jobs alone when this begins.
    """
    counts, runtimes, starts = waiting
    lost = np.empty(last - first, np.int64)
    found = 0
    for k in range(first, last):
        if counts[k] == 0:
            continue
        end = starts[k] + runtimes[k]
        if starts[k] >= now and least_free(*holes, starts[k], end) >= counts[k]:
            occupy(*holes, starts[k], end, counts[k])
        else:
            lost[found] = k
            found += 1
    for k in lost[:found]:
        starts[k] = place(*holes, now, counts[k], runtimes[k])
    return found


@njit(cache=True)
def due(
    waiting: Waiting, soonest: FloatArray, first: int, last: int, now: float, found: IntArray
) -> tuple[int, float]:
    """Write the places of the jobs whose time has come; return how many, and the next time.

    ``soonest`` holds the earliest start that each `BLOCK` of places waits for, or less where
    that is not known; a block whose time has not come is passed over, any other is brought
    up to date for the jobs that stay.
    """
    counts, _, starts = waiting
    number, following = 0, np.inf
    for block in range(first // BLOCK, (last - 1) // BLOCK + 1):
        if soonest[block] <= now:
            least = np.inf
            for k in range(max(first, block * BLOCK), min(last, (block + 1) * BLOCK)):
                if counts[k] > 0:
                    if starts[k] <= now:
                        found[number] = k
                        number += 1
                    else:
                        least = min(least, starts[k])
            soonest[block] = least
        following = min(following, soonest[block])
    return number, following
