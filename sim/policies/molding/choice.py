"""Compiled choices on the availability profile: who starts now, on how many processors."""

from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.policies.molding.candidates import Candidates, Spans
from sim.policies.passes.memory import (
    RuleMemory,
    candidates_of,
    note_freed,
    take_freed,
)
from sim.policies.ties import is_less
from sim.state.availability import FIRST, LAST, Profile, earliest, free_between, occupy, place
from sim.state.waiting_queue import Waiting, waiting_in

Own = tuple[int, float, float]
"""What a job holds: processors, and begin and end of its reservation, seconds."""
Freed = tuple[float, float, int]
"""Where processors became free: begin and end, seconds, and the most that are free there."""


class Blocking(NamedTuple):
    """What the first blocked jobs mean for those behind them.

    Attributes
    ----------
    reservations : int
        How many of them hold one.
    strict : bool
        Whether nobody passes a blocked job.
    """

    reservations: int
    strict: bool


@compiled
def best_candidate(
    profile: Profile,
    now: float,
    counts: IntArray,
    runtimes: FloatArray,
    low: int,
    high: int,
    limit: float,
) -> tuple[int, float]:
    """Return the candidate with the earliest end, ties to the smaller count, and its start.

    The candidate is -1 where none can start before `limit`.
    """
    best, best_start, least = -1, np.inf, np.inf
    for pick in range(low, high):
        runtime = runtimes[pick]
        if not is_less(runtime, least):
            continue
        latest = min(limit, now + least - runtime)
        start = earliest(profile, counts[pick], runtime, now, latest, np.inf)
        if is_less(start - now + runtime, least):
            best, best_start, least = pick, start, start - now + runtime
    return best, best_start


@compiled
def mold_first(
    profile: Profile,
    now: float,
    waiting: Waiting,
    candidates: Candidates,
    first: int,
    last: int,
    blocking: Blocking,
    found: IntArray,
) -> int:
    """Start, in queue order, jobs on the counts they choose; the first blocked ones reserve.

    Every job takes the allowed candidate with the earliest end; once all
    reservations are given away, the earliest end among candidates that can start
    now without moving any of them. With `strict` nobody passes a blocked job.
    The profile holds the running jobs alone when this begins. Returns how many
    places were written to `found`.
    """
    processors, runtime, starts = waiting
    owner, spans, counts, runtimes = candidates
    free = profile.free
    reservations, strict = blocking
    number = reserved = 0
    soon, span = np.nextafter(now, np.inf), profile.span
    for k in range(first, last):
        if processors[k] == 0:
            continue
        own = spans[owner[k]]
        may_reserve = reserved < reservations
        if not may_reserve:
            starts[k] = np.inf
            if free[span[FIRST]] == 0:
                break
            if counts[own.low] > free[span[FIRST]]:
                continue
        limit = np.inf if may_reserve else soon
        pick, start = best_candidate(profile, now, counts, runtimes, own.low, own.high, limit)
        if pick < 0:
            continue
        processors[k], runtime[k], starts[k] = counts[pick], runtimes[pick], start
        occupy(profile, start, start + runtime[k], processors[k])
        if start <= now:
            found[number] = k
            number += 1
            continue
        reserved += 1
        if strict:
            break
    return number


@compiled
def _earlier_candidate(
    profile: Profile, now: float, own: Own, freed: Freed, candidates: Candidates, k: int
) -> tuple[int, float, bool]:
    """Return the candidate at a place that ends earliest before `own`, -1 if none, and its start.

    Also whether the job's own reservation was taken out of the profile on the
    way, as candidates of more processors than it holds need.
    """
    (held, old, old_end), (begin, end, most) = own, freed
    owner, spans, counts, runtimes = candidates
    allowed = spans[owner[k]]
    reach = most + held if old < end else most
    best, best_start, least = -1, old, old_end - now
    out = False
    for pick in range(allowed.low, allowed.high):
        count, seconds = counts[pick], runtimes[pick]
        if count > reach:
            break
        if not is_less(max(seconds, begin - now), least):
            continue
        after = max(now, begin - seconds - 1.0)
        limit = min(end, now + least - seconds)
        if after >= limit:
            continue
        if count > held and not out:
            occupy(profile, old, old_end, -held)
            out = True
        mine = np.inf if out else old
        start = earliest(profile, count, seconds, after, limit, mine)
        if start < limit and is_less(start - now + seconds, least):
            best, best_start, least = pick, start, start - now + seconds
    return best, best_start, out


@compiled
def compress_candidates(memory: RuleMemory, now: float) -> None:
    """Let every waiting job, in queue order, end earlier on any allowed candidate if it can.

    Jobs that hold no reservation yet (``starts`` infinite) are passed over.
    What they try is the time in which processors became free since they were last tried: see
    `sim.policies.backfill.conservative.compress`.
    """
    at, profile, candidates = memory.queue.at[0], memory.profile, candidates_of(memory)
    processors, runtime, starts = waiting_in(memory.queue)
    counts, runtimes = candidates.counts, candidates.runtimes
    begin, end = take_freed(memory)
    if end <= now:
        return
    begin = max(begin, now)
    most = free_between(profile, begin, end)[1]
    for k in range(at.first, at.last):
        own = processors[k]
        if own == 0 or starts[k] == np.inf:
            continue
        old, old_end = starts[k], starts[k] + runtime[k]
        if old_end <= begin:
            continue
        best, best_start, out = _earlier_candidate(
            profile, now, (own, old, old_end), (begin, end, most), candidates, k
        )
        if best < 0:
            if out:
                occupy(profile, old, old_end, own)
            continue
        if not out:
            occupy(profile, old, old_end, -own)
        occupy(profile, best_start, best_start + runtimes[best], counts[best])
        processors[k], runtime[k], starts[k] = counts[best], runtimes[best], best_start
        begin = min(begin, old)
        end = max(end, old_end)
        most = max(most, free_between(profile, old, old_end)[1])
        note_freed(memory, old, old_end)


@compiled
def _copy(profile: Profile, copy: Profile) -> None:
    """Write a profile into another one, which has room for it."""
    times, free, span = profile
    number = span[LAST] - span[FIRST]
    for i in range(number):
        copy.times[i] = times[span[FIRST] + i]
        copy.free[i] = free[span[FIRST] + i]
    copy.span[FIRST], copy.span[LAST] = 0, number


@compiled
def fill_idle(
    profile: Profile, counts: IntArray, runtimes: FloatArray, spans: Spans, serial: FloatArray,
) -> IntArray:  # fmt: skip
    """Hand out planned idle processors while the planned utilisation rises (UMS).

    Parameters and what is returned as of `sim.policies.allocation.iterative.iterate`;
    Σ T(n)·n·E(n) is Σ T(1), so that utilisation rises where the latest planned end falls.
    """
    pick: IntArray = spans["low"].copy()
    times, _, span = profile
    high, now = spans["high"], times[span[FIRST]]
    jobs = pick.size
    room = span[LAST] - span[FIRST] + 2 * jobs + 4
    work = Profile(np.empty(room), np.empty(room, np.int64), np.empty(2, np.int64))
    starts, best = np.empty(jobs), pick.copy()
    latest = np.inf
    while True:
        _copy(profile, work)
        end, last = 0.0, 0
        for i in range(jobs):
            seconds = runtimes[pick[i]]
            starts[i] = place(work, now, counts[pick[i]], seconds)
            if is_less(end, starts[i] - now + seconds):
                end, last = starts[i] - now + seconds, i
        if not is_less(end, latest):
            return best
        latest = end
        best[:] = pick
        handed = False
        for k in range(work.span[FIRST], work.span[LAST]):
            idle = work.free[k]
            while idle > 0:
                chosen, most = -1, 0.0
                for i in range(jobs):
                    at = pick[i]
                    if starts[i] != work.times[k] or at + 1 >= high[i]:
                        continue
                    if counts[at + 1] - counts[at] > idle:
                        continue
                    efficiency = serial[i] / (counts[at] * runtimes[at])
                    if is_less(most, efficiency) or (
                        not is_less(efficiency, most) and counts[at + 1] < counts[pick[chosen] + 1]
                    ):
                        chosen, most = i, efficiency
                if chosen < 0:
                    break
                idle -= counts[pick[chosen] + 1] - counts[pick[chosen]]
                pick[chosen] += 1
                handed = True
            if handed:
                break
        if not handed:
            if pick[last] + 1 >= high[last]:
                return pick
            pick[last] += 1
