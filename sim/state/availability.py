"""The availability profile: how many processors are believed free from now on; who holds others.

What works on a profile is compiled; every reservation [start, start + runtime) is taken out with
the same two instants with which it was put in.
"""

from collections.abc import Collection, Iterable, Sequence
from math import frexp
from typing import Any, NamedTuple, Self

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.state.run_state import shift

FIRST, LAST = 0, 1


class Profile(NamedTuple):
    """The arrays of an availability profile.

    Attributes
    ----------
    times : numpy.ndarray of float, shape (n,), seconds
    free : numpy.ndarray of int, shape (n,)
        Processors that are free from ``times[i]`` until ``times[i + 1]``; the last entry holds
        for ever.
    span : numpy.ndarray of int, shape (2,)
        The `FIRST` and one past the `LAST` entry in use.
    """

    times: FloatArray
    free: IntArray
    span: IntArray


@compiled(forceinline=True)
def segment(times: FloatArray, span: IntArray, instant: float) -> int:
    """Return the entry that holds at an instant, which must not precede the profile."""
    low, high = span[FIRST], span[LAST]
    while high - low > 1:
        middle = (low + high) // 2
        if times[middle] <= instant:
            low = middle
        else:
            high = middle
    return int(low)


@compiled
def earliest(
    profile: Profile, processors: int, runtime: float, after: float, limit: float, own: float
) -> float:
    """Return the earliest start in [after, limit) of a hole, or `own` if there is none.

    `own` is where the job's present reservation begins (infinity without one):
    what it holds from then on is its own, so only the part of the hole that
    lies before it must be free.
    """
    times, free, span = profile
    i, last = np.uint64(segment(times, span, after)), np.uint64(span[LAST])  # faster than signed
    start = after
    end = min(start + runtime, own)
    while True:
        if free[i] < processors:
            i += np.uint64(1)
            while i < last and free[i] < processors:
                i += np.uint64(1)
            if i == last or times[i] >= limit:
                return own
            start = times[i]
            end = min(start + runtime, own)
        i += np.uint64(1)
        if i == last or times[i] >= end:
            return start


@compiled
def _close_up(times: FloatArray, free: IntArray, span: IntArray) -> None:
    """Move the profile to the begin of its arrays."""
    first, last = span[FIRST], span[LAST]
    shift(times, first, last, -first)
    shift(free, first, last, -first)
    span[FIRST], span[LAST] = 0, last - first


@compiled(forceinline=True)
def _breakpoint(times: FloatArray, free: IntArray, span: IntArray, instant: float) -> int:
    """Return the entry that begins at an instant, made if need be; there is room for it."""
    low = segment(times, span, instant)
    if times[low] == instant:
        return low
    shift(times, low + 1, span[LAST], 1)
    shift(free, low + 1, span[LAST], 1)
    times[low + 1] = instant
    free[low + 1] = free[low]
    span[LAST] += 1
    return low + 1


@compiled(forceinline=True)
def _merge(times: FloatArray, free: IntArray, span: IntArray, i: int) -> None:
    """Drop an entry if nothing changes where it begins."""
    if i > span[FIRST] and free[i] == free[i - 1]:
        shift(times, i + 1, span[LAST], -1)
        shift(free, i + 1, span[LAST], -1)
        span[LAST] -= 1


@compiled(forceinline=True)
def occupy(profile: Profile, start: float, end: float, processors: int) -> None:
    """Take processors in [start, end); a negative number gives them back."""
    times, free, span = profile
    if end <= start:
        return
    if span[LAST] + 2 > times.size:
        _close_up(times, free, span)
    i = _breakpoint(times, free, span, start)
    j = _breakpoint(times, free, span, end)
    for k in range(i, j):
        free[k] -= processors
    _merge(times, free, span, j)
    _merge(times, free, span, i)


@compiled
def move_up(profile: Profile, before: float, start: float, runtime: float, processors: int) -> None:
    """Let a reservation begin earlier; only what lies between is written anew, behind the rest."""
    times, free, span = profile
    if 2 * span[LAST] - span[FIRST] + 8 > times.size:
        _close_up(times, free, span)
    end, freed, last, number = start + runtime, before + runtime, span[LAST], 0
    first = segment(times, span, start)
    here = level = free[first]
    if times[first] < start:
        first += 1
    else:
        level = free[first - 1] if first > span[FIRST] else here + processors + 1
    after, instant = first, start
    while True:
        if after < last and times[after] == instant:
            here = free[after]
            after += 1
        left = here + processors * (int(before <= instant < freed) - int(instant < end))
        if left != level:
            times[last + 4 + number], free[last + 4 + number] = instant, left
            level = left
            number += 1
        if instant == freed:
            break
        following = end if instant < end else freed
        if instant < before < following:
            following = before
        instant = min(following, times[after]) if after < last else following
    longer = number - (after - first)
    span[LAST] += longer
    shift(times, after, last, longer)
    shift(free, after, last, longer)
    for k in range(number):
        times[first + k], free[first + k] = times[last + 4 + k], free[last + 4 + k]


@compiled(forceinline=True)
def free_between(profile: Profile, start: float, end: float) -> tuple[int, int]:
    """Return the least and the largest number of free processors in [start, end)."""
    times, free, span = profile
    i = segment(times, span, start)
    least = most = free[i]
    i += 1
    while i < span[LAST] and times[i] < end:
        least, most = min(least, free[i]), max(most, free[i])
        i += 1
    return int(least), int(most)


@compiled(forceinline=True)
def advance(profile: Profile, now: float) -> None:
    """Forget what lies before now."""
    i = segment(profile.times, profile.span, now)
    profile.span[FIRST] = i
    profile.times[i] = now


@compiled
def lay(profile: Profile, now: float, idle: int, ends: FloatArray, counts: IntArray) -> None:
    """Begin a profile anew from what is idle and from running jobs, believed ends ascending."""
    times, free, span = profile
    span[FIRST] = 0
    span[LAST] = 1
    times[0] = now
    free[0] = idle
    for k in range(ends.size):
        last = span[LAST] - 1
        if times[last] == ends[k]:
            free[last] += counts[k]
        else:
            times[last + 1] = ends[k]
            free[last + 1] = free[last] + counts[k]
            span[LAST] += 1


@compiled(forceinline=True)
def reserve_earliest(profile: Profile, now: float, processors: int, runtime: float) -> float:
    """Reserve the earliest hole from now on and return its start."""
    start = earliest(profile, processors, runtime, now, np.inf, np.inf)
    occupy(profile, start, start + runtime, processors)
    return start


COUNTS, RUNTIMES, MANY = 33, 65, 64
"""Size of a table of bounds on starts; and jobs from which on it is worth its room."""


@compiled
def no_start_bounds(jobs: int) -> FloatArray:
    """Return a table for `reserve_next`, before so many reservations are made; empty for a few."""
    return np.full((COUNTS, RUNTIMES) if jobs > MANY else (0, 0), -np.inf)


@compiled(forceinline=True)
def _octave(number: float, offset: int, above: bool) -> int:
    """Return which power of two is the largest up to a number, or the least from it on."""
    fraction, exponent = frexp(number)
    return exponent + offset + (1 if above and fraction > 0.5 else 0)


@compiled
def reserve_next(
    profile: Profile, now: float, processors: int, runtime: float, bounds: FloatArray
) -> float:
    """Do what `reserve_earliest` does while nothing but such jobs is put into the profile.

    A job starts no earlier than one before it that was no wider and no longer. ``bounds`` keeps
    the latest such start by powers of two, as a Fenwick tree of maxima in two dimensions.
    """
    is_bounded = bounds.size > 0 and 1e-4 < runtime < 1e14
    after, i = now, min(_octave(processors, 0, False), COUNTS - 1) if is_bounded else 0
    while i > 0:
        k = min(_octave(runtime, 15, False), RUNTIMES - 1)
        while k > 0:
            after = max(after, bounds[i, k])
            k -= k & -k
        i -= i & -i
    start = reserve_earliest(profile, after, processors, runtime)
    i = _octave(processors, 0, True) if is_bounded else COUNTS
    while i < COUNTS:
        k = _octave(runtime, 15, True)
        while k < RUNTIMES:
            bounds[i, k] = max(bounds[i, k], start)
            k += k & -k
        i += i & -i
    return start


@compiled
def earliest_of(profile: Profile, now: float, counts: IntArray, runtimes: FloatArray) -> FloatArray:
    """Return the earliest start of each (count, runtime), none of them reserved."""
    starts = np.empty(counts.size)
    for k in range(counts.size):
        starts[k] = earliest(profile, counts[k], runtimes[k], now, np.inf, np.inf)
    return starts


class BelievedEnds(NamedTuple):
    """Who holds processors, and until when that is believed; ascending.

    Attributes
    ----------
    end : numpy.ndarray of float, shape (n,), seconds
    job : numpy.ndarray of int, shape (n,)
        Job indices; a failed node k, until its believed repair, is job -1 - k. Under
        reallocation job -1 holds processors back, too.
    processors : numpy.ndarray of int, shape (n,)
    """

    end: FloatArray
    job: IntArray
    processors: IntArray

    @classmethod
    def of(cls, rows: list[tuple[float, int, int]]) -> Self:
        """Return rows of (believed end, job, processors) as columns, ascending."""
        end, job, processors = zip(*sorted(rows), strict=True) if rows else ((), (), ())
        return cls(
            np.array(end, np.float64), np.array(job, np.int64), np.array(processors, np.int64)
        )

    def rows(self) -> list[tuple[float, int, int]]:
        """Return (believed end, job, processors) of each."""
        return [*zip(*(column.tolist() for column in self), strict=True)]


def shadow_time(
    holders: Iterable[tuple[Any, ...]], free: int, wanted: int, now: float
) -> tuple[float, list[tuple[Any, ...]]]:
    """Return when so many processors are believed to be free, and whose ends that takes.

    Parameters
    ----------
    holders : iterable of tuple
        Of each the believed end first and its processors last, in any order.
    free, wanted : int
        Processors.
    now : float
        Seconds.

    Examples
    --------
    >>> shadow_time([(9.0, 4), (5.0, 2)], free=1, wanted=5, now=3.0)
    (9.0, [(5.0, 2), (9.0, 4)])
    >>> shadow_time([], free=1, wanted=5, now=3.0)
    (inf, [])
    """
    taken: list[tuple[Any, ...]] = []
    if free >= wanted:
        return now, taken
    for holder in sorted(holders):
        free += holder[-1]
        taken.append(holder)
        if free >= wanted:
            return holder[0], taken
    return np.inf, taken


Reserved = Collection[tuple[float, int, float]]
"""Start (seconds), processors and believed runtime (seconds) of each reservation."""


def fewest_free(
    ends: Sequence[tuple[float, int]], free: int, reserved: Reserved, now: float
) -> int:
    """Return the fewest processors that are free at any time; below 0 if some are not there.

    Parameters
    ----------
    ends : sequence of (float, int)
        When processors become free, seconds, and how many.
    free : int
        Those that are free now.
    reserved : Reserved
    now : float
        Seconds.

    Examples
    --------
    >>> fewest_free([(5.0, 2)], free=1, reserved=[(5.0, 3, 4.0), (7.0, 1, 1.0)], now=3.0)
    -1
    """
    times = np.array([now, *(end for end, _ in ends), *(start for start, *_ in reserved),
                      *(start + seconds for start, _, seconds in reserved)])  # fmt: skip
    changes = np.array([free, *(count for _, count in ends), *(-count for _, count, _ in reserved),
                        *(count for _, count, _ in reserved)])  # fmt: skip
    kept = times < np.inf
    at, which = np.unique(np.maximum(times[kept], now), return_inverse=True)
    return int(np.cumsum(np.bincount(which, changes[kept], at.size)).min())
