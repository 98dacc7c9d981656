"""Compiled reservations of waiting jobs on the availability profile: made, kept, compressed."""

from math import frexp
from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.policies.backfill.queue_search import is_hopeless, summarise
from sim.state.availability import Holes, earliest, free_between, nothing_found, occupy, place_next
from sim.state.waiting_queue import BLOCK, SIZES, Summaries, Waiting


@compiled(inline="always")
def reserve_rest(holes: Holes, now: float, waiting: Waiting, first: int, last: int) -> None:
    """Reserve, in queue order, for every waiting job whose start is infinite."""
    counts, runtimes, starts = waiting
    found = nothing_found(last - first)
    for k in range(first, last):
        if counts[k] > 0 and starts[k] == np.inf:
            starts[k] = place_next(*holes, now, counts[k], runtimes[k], found)


@compiled
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
    shortest, shortest_ahead : numpy.ndarray of float, shape (32,), seconds
        Jobs of `2 ** i` processors or more that take so long, or longer, do not begin in time:
        for the pass, and for those ahead of one that may.
    matter : numpy.ndarray of int, shape (n,)
        Room for places.
    summaries : Summaries
        Of the blocks of the queue.
    """

    starts: FloatArray
    shortest: FloatArray
    shortest_ahead: FloatArray
    matter: IntArray
    summaries: Summaries


def no_bounds(jobs: int, summaries: Summaries) -> Bounds:
    """Return room for what a pass finds out about so many jobs."""
    shortest = np.zeros((2, SIZES))
    matter = np.zeros(jobs, np.int64)
    return Bounds(np.zeros(jobs), shortest[0], shortest[1], matter, summaries)


@compiled(inline="always")
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


@compiled
def _reserve_before(
    holes: Holes, waiting: Waiting, bounds: Bounds, first: int, k: int, limit: float
) -> bool:
    """Reserve for a job if it starts before a limit, and first for those ahead that matter.

    A job ahead without a reservation matters where it might start before this one ends, or
    before another that matters and is behind it ends. Where one that matters turns out to
    start later than its bound, others may matter, and all is looked at again.
    """
    counts, runtimes, starts = waiting
    least, matter, shortest = bounds.starts, bounds.matter, bounds.shortest_ahead
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


@compiled
def replan_soonest(
    holes: Holes, now: float, waiting: Waiting, first: int, last: int, bounds: Bounds,
    found: IntArray,
) -> tuple[int, float]:  # fmt: skip
    """Do of `replan` what tells who starts now, and when the next reservation begins.

    Every start that is finite on return is what `replan` gives, and `reserve_rest` gives the
    others theirs after this.

    Returns
    -------
    tuple of (int, float)
        How many places of jobs that start now were written to `found`, and when the next
        reservation begins, in seconds.
    """
    counts, runtimes, starts = waiting
    shortest, summaries, number = bounds.shortest, bounds.summaries, 0
    starts[first:last] = np.inf
    summarise(summaries, counts, runtimes, first, last)
    bounds.starts[first:last], shortest[:] = now, np.inf
    soonest, most = np.inf, free_between(*holes, now, np.inf)[1]
    for block in range(first // BLOCK, (last - 1) // BLOCK + 1):
        if is_hopeless(summaries, block, shortest):
            continue
        for k in range(max(first, block * BLOCK), min(last, (block + 1) * BLOCK)):
            if counts[k] == 0 or counts[k] > most:
                continue
            if starts[k] == np.inf and not (
                _begins_before(holes, waiting, bounds, shortest, k, soonest)
                and _reserve_before(holes, waiting, bounds, first, k, soonest)
            ):
                continue
            if starts[k] > now:
                soonest = min(soonest, starts[k])
            else:
                found[number] = k
                number += 1
            if soonest < np.inf:
                most = free_between(*holes, now, soonest)[1]
                shortest[frexp(most)[1] :] = -np.inf
    return number, soonest
