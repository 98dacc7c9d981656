"""Compiled reservations of waiting jobs on the availability profile: made, kept, compressed."""

from math import frexp
from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.policies.backfill.queue_search import is_hopeless, summarise
from sim.state.availability import (
    Holes,
    advance,
    earliest,
    least_free,
    most_free,
    move_up,
    nothing_found,
    occupy,
    place,
    place_next,
)
from sim.state.waiting_queue import BLOCK, SIZES, Summaries, Waiting

NEXT, WAKING, SINCE, UNTIL = range(4)
"""Places in `Kept.instants`."""


class Kept(NamedTuple):
    """What conservative backfilling keeps of reservations beside the profile.

    Attributes
    ----------
    instants : numpy.ndarray of float, shape (4,), seconds
        When the next reservation begins, for when a pass was asked for last, and begin and
        end of what became free since the last compression.
    soonest : numpy.ndarray of float, shape (b,), seconds
        The earliest start that each `BLOCK` of places waits for, or less where that is not
        known.
    """

    instants: FloatArray
    soonest: FloatArray


def nothing_kept() -> Kept:
    """Return what is kept before anybody waits."""
    return Kept(np.array([np.inf, np.inf, np.inf, -np.inf]), np.full(1, -np.inf))


@compiled()
def _note_freed(kept: Kept, begin: float, end: float) -> None:
    instants = kept.instants
    instants[SINCE], instants[UNTIL] = min(instants[SINCE], begin), max(instants[UNTIL], end)


@compiled()
def _look_again(kept: Kept, now: float, first: int, last: int) -> None:
    """See to it that this pass looks at all reservations for those that begin now."""
    kept.soonest[first // BLOCK : last // BLOCK + 1] = -np.inf
    kept.instants[NEXT] = now


@compiled()
def follow_changes(holes: Holes, now: float, changes: FloatArray, kept: Kept) -> tuple[bool, bool]:
    """Bring the profile up to date with running jobs that ended or are believed to end otherwise.

    Parameters
    ----------
    holes : tuple of numpy.ndarray
    now : float, seconds
    changes : numpy.ndarray of float, shape (n, 3)
        From when until when, in seconds, and how many processors more than before are held,
        or fewer.
    kept : Kept

    Returns
    -------
    tuple of (bool, bool)
        Whether processors became free early, and whether reservations are in the way of what
        is held for longer: then the profile is to be laid anew.
    """
    times, free, span = holes
    advance(times, span, now)
    early, is_broken = False, False
    for k in range(len(changes)):
        begin, end, more = changes[k, 0], changes[k, 1], int(changes[k, 2])
        if more < 0:
            if end > begin:
                occupy(times, free, span, begin, end, more)
                _note_freed(kept, begin, end)
                early = True
        elif is_broken or least_free(times, free, span, begin, end) < more:
            is_broken = True
        else:
            occupy(times, free, span, begin, end, more)
    return early, is_broken


@compiled()
def compress(holes: Holes, now: float, waiting: Waiting, first: int, last: int, kept: Kept) -> None:
    """Put every waiting job, in queue order, back at its earliest hole, never later.

    A hole that a job could move to must reach into the time in which processors became free
    since the jobs were last tried, so only such holes are looked for. Afterwards that time is
    what this very pass freed, for the jobs that it had already passed by.
    """
    freed = kept.instants[SINCE:]
    _look_again(kept, now, first, last)
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
        move_up(*holes, old, start, runtime, wanted)
        starts[k] = start
        low = min(low, old)
        high = max(high, old + runtime)
        most = max(most, most_free(*holes, old, old + runtime))
        freed[0] = min(freed[0], old)
        freed[1] = max(freed[1], old + runtime)


@compiled(makes_arrays=True)
def reserve_rest(holes: Holes, now: float, waiting: Waiting, first: int, last: int) -> None:
    """Reserve, in queue order, for every waiting job whose start is infinite."""
    counts, runtimes, starts = waiting
    found = nothing_found(last - first)
    for k in range(first, last):
        if counts[k] > 0 and starts[k] == np.inf:
            starts[k] = place_next(*holes, now, counts[k], runtimes[k], found)


@compiled()
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


@compiled()
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


@compiled()
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
    soonest, most = np.inf, most_free(*holes, now, np.inf)
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
                most = most_free(*holes, now, soonest)
                shortest[frexp(most)[1] :] = -np.inf
    return number, soonest


@compiled(makes_arrays=True)
def repair(holes: Holes, now: float, waiting: Waiting, first: int, last: int, kept: Kept) -> int:
    """Keep, in queue order, the reservations that fit; place the others anew after them.

    The profile holds the running jobs alone when this begins. Returns how many others there are.
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
    _look_again(kept, now, first, last)
    _note_freed(kept, now, np.inf)
    return found


@compiled()
def reserve_at(k: int, start: float, waiting: Waiting, kept: Kept) -> None:
    """Note the reservation of a job."""
    waiting.starts[k] = start
    kept.soonest[k // BLOCK] = min(kept.soonest[k // BLOCK], start)
    kept.instants[NEXT] = min(kept.instants[NEXT], start)


@compiled()
def _is_wake_wanted(ends: FloatArray, instants: FloatArray) -> bool:
    """Say whether a pass is to be asked for when the next reservation begins, and note it.

    Most begin when a running job is believed to end, when there is one anyway.
    """
    following = instants[NEXT]
    if following == np.inf or following == instants[WAKING]:
        return False
    place = np.searchsorted(ends, following)
    if place < ends.size and ends[place] == following:
        return False
    instants[WAKING] = following
    return True


@compiled()
def due(
    ends: FloatArray, waiting: Waiting, first: int, last: int, now: float, kept: Kept,
    found: IntArray,
) -> tuple[int, bool]:  # fmt: skip
    """Find the jobs whose time has come, and when the next one's comes.

    A block whose time has not come is passed over, any other is brought up to date for the
    jobs that stay.

    Returns
    -------
    tuple of (int, bool)
        How many places were written to `found`, and whether to ask for a pass then.
    """
    counts, _, starts = waiting
    instants, soonest = kept
    number, following = 0, np.inf
    if instants[NEXT] > now:
        return 0, _is_wake_wanted(ends, instants)
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
    instants[NEXT] = following
    return number, _is_wake_wanted(ends, instants)
