"""The search of a queue for jobs that may start before a reservation, by summaries of blocks."""

from math import frexp
from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.state.availability import BelievedEnds
from sim.state.run_state import longer
from sim.state.waiting_queue import BLOCK, GROUP, SIZES, Queue, Summaries, row


class BackfillWindow(NamedTuple):
    """What is free for jobs behind the reservation.

    Attributes
    ----------
    free, extra_nodes : int
        Free processors, and how many of them beyond the shadow time.
    now, shadow_time : float, seconds
    shortest : bool
        Whether the shortest jobs by belief are tried first, else the first in the queue.
    """

    free: int
    extra_nodes: int
    now: float
    shadow_time: float
    shortest: bool


@compiled
def _merged(
    ends: FloatArray, held: IntArray, more_ends: FloatArray, more_held: IntArray
) -> tuple[FloatArray, IntArray]:
    """Return ends, ascending, and what is held until then, with some more in no order."""
    every, counts = (
        longer(ends, ends.size + more_ends.size),
        longer(held, held.size + more_held.size),
    )
    for k in range(more_ends.size):
        place = ends.size + k
        while place > 0 and every[place - 1] > more_ends[k]:
            every[place], counts[place] = every[place - 1], counts[place - 1]
            place -= 1
        every[place], counts[place] = more_ends[k], more_held[k]
    return every, counts


@compiled(forceinline=True)
def shadow_and_extra(ends: FloatArray, held: IntArray, free: int, wanted: int) -> tuple[float, int]:
    """Return the shadow time of the head of the queue, and what it will leave over.

    Parameters
    ----------
    ends, held : numpy.ndarray, shape (n,)
        When processors are believed to become free, ascending, seconds, and how many.
    free, wanted : int
        Processors that are free now, and those that the head wants.

    Returns
    -------
    shadow : float
        Seconds; below 0 if there are never enough.
    spare : int
        Below 0 if there are never enough.
    """
    shadow = -1.0
    for k in range(ends.size):
        if shadow >= 0.0 and ends[k] > shadow:
            break
        free += held[k]
        if free >= wanted and shadow < 0.0:
            shadow = ends[k]
    return shadow, free - wanted


@compiled
def _promising(queue: Queue, own: int, free: int, spare: int, now: float, shadow: float) -> bool:
    """Say whether a row's jobs may hold one that may start, going by its shortest."""
    size = 0
    least = 1
    while least <= free and size < SIZES:
        shortest = queue.shortest[own, size]
        if now + shortest <= shadow or (least <= spare and shortest < np.inf):
            return True
        size += 1
        least *= 2
    return False


@compiled
def _summarise(
    processors: IntArray, runtime: FloatArray, first: int, last: int, shortest: FloatArray
) -> None:
    """Note the shortest runtime of each size of job: 1, 2 to 3, 4 to 7 processors, …."""
    shortest[:] = np.inf
    for k in range(first, last):
        if processors[k] > 0:
            size = frexp(processors[k])[1] - 1
            shortest[size] = min(shortest[size], runtime[k])


@compiled
def summarise(
    summaries: Summaries, processors: IntArray, runtime: FloatArray, first: int, last: int
) -> None:
    """Give all blocks a summary that have none."""
    shortest, summarised = summaries
    for block in range(first // BLOCK, (last - 1) // BLOCK + 1):
        own = row(block)
        if not summarised[own]:
            begin, end = max(first, block * BLOCK), min(last, (block + 1) * BLOCK)
            _summarise(processors, runtime, begin, end, shortest[own])
            summarised[own] = True


@compiled(inline="always")
def is_hopeless(summaries: Summaries, block: int, shortest: FloatArray) -> bool:
    """Say whether no job of a block is shorter than what is given for its size."""
    own = row(block)
    for size in range(SIZES):  # noqa: SIM110 (compiled)
        if summaries.shortest[own, size] < shortest[size]:
            return False
    return True


@compiled
def _is_summarised(queue: Queue, group: int) -> bool:
    """Say whether a group has its summary, or can have it now from those of its blocks."""
    shortest, summarised = queue.shortest, queue.summarised
    if not summarised[group]:
        for own in range(group + 1, group + 1 + GROUP):
            if not summarised[own]:
                return False
        shortest[group] = np.inf
        for own in range(group + 1, group + 1 + GROUP):
            for size in range(SIZES):
                shortest[group, size] = min(shortest[group, size], shortest[own, size])
        summarised[group] = True
    return True


@compiled
def _fill_shortest(
    queue: Queue, first: int, last: int, window: BackfillWindow, number: int
) -> tuple[int, int]:
    """Do what `fill_window` does, the shortest first by belief, of equal ones the first in line."""
    counts, runtime = queue.processors, queue.runtime
    free, spare, now, shadow, _ = window
    best, shortest = -1, -np.inf
    while True:
        before, longest, best = best, shortest, -1
        for k in range(first, last):
            wanted, is_late = counts[k], now + runtime[k] > shadow
            is_new = runtime[k] > longest or (runtime[k] == longest and k > before)
            may = 0 < wanted <= free and (not is_late or wanted <= spare) and is_new
            if may and (best < 0 or runtime[k] < shortest):
                best, shortest = k, runtime[k]
        if best < 0:
            return number, spare
        if now + shortest > shadow:
            spare -= counts[best]
        free -= counts[best]
        queue.found[number] = best
        number += 1


@compiled
def fill_window(
    queue: Queue, first: int, last: int, window: BackfillWindow, number: int
) -> tuple[int, int]:
    """Find the jobs that may start ahead of the reservation, in queue order or the shortest first.

    Blocks of the queue, and groups of blocks, are passed over whose summary shows that
    none of their jobs may; a block in which nobody was found is summarised (if the search
    began behind the head of a queue longer than a block), and a group once all its blocks are.

    Parameters
    ----------
    queue : Queue
    first, last : int
        Places between which is searched.
    window : BackfillWindow
    number : int
        So many places stand in `found` already.

    Returns
    -------
    tuple of (int, int)
        How many places stand in `found`, and what the reservation leaves over now.
    """
    if window.shortest:
        return _fill_shortest(queue, first, last, window, number)
    free, spare, now, shadow, _ = window
    processors = queue.processors
    runtime = queue.runtime
    k, whole = first, first == queue.at[0].first + 1
    while k < last and free > 0:
        block = k // BLOCK
        own, group = row(block), block // GROUP * (GROUP + 1)
        beyond = (block // GROUP + 1) * GROUP * BLOCK
        if (
            (k == first or block % GROUP == 0)
            and beyond <= last
            and _is_summarised(queue, group)
            and not _promising(queue, group, free, spare, now, shadow)
        ):
            k = beyond
            continue
        end = min(last, (block + 1) * BLOCK)
        if queue.summarised[own] and not _promising(queue, own, free, spare, now, shadow):
            k = end
            continue
        begin, before = k, number
        while k < end and free > 0:
            wanted = processors[k]
            if 0 < wanted <= free and (now + runtime[k] <= shadow or wanted <= spare):
                if now + runtime[k] > shadow:
                    spare -= wanted
                free -= wanted
                queue.found[number] = k
                number += 1
            k += 1
        if whole and k == end and number == before and last - first > BLOCK:
            _summarise(processors, runtime, begin, end, queue.shortest[own])
            queue.summarised[own], queue.summarised[group] = True, False
    return number, spare


@compiled(inline="always")
def backfill(
    queue: Queue, ends: BelievedEnds, window: BackfillWindow, heads: int
) -> tuple[int, float, int]:
    """Reserve for the head of the queue, and find the jobs behind it that may start now.

    Parameters
    ----------
    queue : Queue
        Its first job does not fit.
    ends : BelievedEnds
    window : BackfillWindow
        Its free processors, its instant and who is tried first count.
    heads : int
        So many places in `found` are of jobs before the head, which start now; those of others
        are written behind them.

    Returns
    -------
    tuple of (int, float, int)
        How many places `found` holds, the shadow time in seconds, and what the reservation
        leaves over, below 0 if the head can never start.
    """
    at, now = queue.at[0], window.now
    wanted = queue.processors[at.first]
    if heads > 0:
        begun, more = np.empty(heads), np.empty(heads, np.int64)
        for k in range(heads):
            place = queue.found[k]
            begun[k], more[k] = now + queue.runtime[place], queue.processors[place]
        until, held = _merged(ends.end, ends.processors, begun, more)
        shadow, spare = shadow_and_extra(until, held, window.free, wanted)
    else:
        shadow, spare = shadow_and_extra(ends.end, ends.processors, window.free, wanted)
    window = BackfillWindow(window.free, spare, now, shadow, window.shortest)
    number, spare = fill_window(queue, at.first + 1, at.last, window, heads)
    return number, shadow, spare
