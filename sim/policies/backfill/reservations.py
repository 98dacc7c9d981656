"""Compiled reservations of waiting jobs on the availability profile: made, kept, compressed."""

from math import frexp
from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import njit
from sim.policies.backfill.queue_search import BLOCK, SIZES, Summaries, is_hopeless, summarise
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
def reserve_rest(holes: Holes, now: float, waiting: Waiting, first: int, last: int) -> None:
    """Reserve, in queue order, for every waiting job whose start is infinite."""
    counts, runtimes, starts = waiting
    found = nothing_found(last - first)
    for k in range(first, last):
        if counts[k] > 0 and starts[k] == np.inf:
            starts[k] = place_next(*holes, now, counts[k], runtimes[k], found)


@njit(cache=True)
def replan(holes: Holes, now: float, waiting: Waiting, first: int, last: int) -> None:
    """Reserve for every waiting job anew, in queue order."""
    waiting.starts[first:last] = np.inf
    reserve_rest(holes, now, waiting, first, last)


class Bounds(NamedTuple):
    """What a pass finds out about jobs that have no reservation yet.

    Attributes
    ----------
    starts : numpy.ndarray of float, shape (n,), seconds
        No job starts earlier: it could not in a profile with fewer reservations.
    shortest : numpy.ndarray of float, shape (32,), seconds
        Jobs of `2 ** i` processors or more that take so long, or longer, do not begin in time.
    matter : numpy.ndarray of int, shape (n,)
        Room for places.
    summaries : Summaries
        Of the blocks of the queue.
    """

    starts: FloatArray
    shortest: FloatArray
    matter: IntArray
    summaries: Summaries


def no_bounds(jobs: int, summaries: Summaries) -> Bounds:
    """Return room for what a pass finds out about so many jobs."""
    return Bounds(np.zeros(jobs), np.zeros(SIZES), np.zeros(jobs, np.int64), summaries)


@njit(cache=True, inline="always")
def _begins_before(
    holes: Holes, waiting: Waiting, bounds: Bounds, shortest: FloatArray, k: int, limit: float
) -> bool:
    """Raise a job's bound to the earliest hole in the profile; say whether it is below a limit.

    ``shortest`` is what is known of the same limit, or of a later one.
    """
    counts, runtimes, _ = waiting
    least = bounds.starts
    fraction, size = frexp(counts[k])
    if runtimes[k] < shortest[size - 1]:
        least[k] = earliest(*holes, counts[k], runtimes[k], least[k], limit, np.inf)
        if least[k] < limit:
            return True
        size -= fraction == 0.5
        while size < shortest.size and runtimes[k] < shortest[size]:
            shortest[size] = runtimes[k]
            size += 1
    least[k] = limit
    return False


@njit(cache=True)
def _reserve_before(
    holes: Holes, waiting: Waiting, bounds: Bounds, first: int, k: int, limit: float
) -> bool:
    """Reserve for a job if it starts before a limit, and first for those ahead that matter.

    A job ahead without a reservation matters where it might start before this one ends, or
    before another that matters and is behind it ends. Where one that matters turns out to
    start later than its bound, others may matter, and all is looked at again.
    """
    counts, runtimes, starts = waiting
    least, matter = bounds.starts, bounds.matter
    shortest = np.empty(SIZES)
    while _begins_before(holes, waiting, bounds, bounds.shortest, k, limit):
        matter[0], number, until = k, 1, least[k] + runtimes[k]
        shortest[:] = np.inf
        for block in range((k - 1) // BLOCK, first // BLOCK - 1, -1):
            if is_hopeless(bounds.summaries, block, shortest):
                continue
            for j in range(min(k, (block + 1) * BLOCK) - 1, max(first, block * BLOCK) - 1, -1):
                if counts[j] == 0 or starts[j] < np.inf or least[j] >= until:
                    continue
                if _begins_before(holes, waiting, bounds, shortest, j, until):
                    matter[number] = j
                    number += 1
                    if least[j] + runtimes[j] > until:
                        until = least[j] + runtimes[j]
                        shortest[:] = np.inf
        while number > 0:
            j = matter[number - 1]
            start = earliest(*holes, counts[j], runtimes[j], least[j], np.inf, np.inf)
            if start > least[j]:
                least[j] = start
                break
            occupy(*holes, start, start + runtimes[j], counts[j])
            starts[j] = start
            number -= 1
        if number == 0:
            return True
    return False


@njit(cache=True)
def replan_soonest(
    holes: Holes, now: float, waiting: Waiting, first: int, last: int, bounds: Bounds
) -> None:
    """Do of `reserve_rest` what tells who starts now, and when the next reservation begins.

    Every start that is finite on return is what `reserve_rest` gives, and it gives the others
    theirs after this.
    """
    counts, runtimes, starts = waiting
    shortest, summaries = bounds.shortest, bounds.summaries
    summarise(summaries, counts, runtimes, first, last)
    bounds.starts[first:last], shortest[:] = now, np.inf
    soonest, most = np.inf, holes[1].max()
    for block in range(first // BLOCK, (last - 1) // BLOCK + 1):
        if is_hopeless(summaries, block, shortest):
            continue
        for k in range(max(first, block * BLOCK), min(last, (block + 1) * BLOCK)):
            if counts[k] == 0 or counts[k] > most:
                continue
            if starts[k] == np.inf:
                if not _begins_before(holes, waiting, bounds, shortest, k, soonest):
                    continue
                if not _reserve_before(holes, waiting, bounds, first, k, soonest):
                    continue
            soonest = min(soonest, starts[k]) if starts[k] > now else soonest
            if soonest < np.inf:
                most = most_free(*holes, now, soonest)
                shortest[frexp(most)[1] :] = -np.inf


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
