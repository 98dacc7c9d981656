"""Conservative backfilling that rebuilds all reservations in every pass, as far as it matters."""

from math import frexp
from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.policies.backfill.easy import EasyScheduler
from sim.policies.backfill.queue_search import is_hopeless, summarise
from sim.policies.base import Allocation
from sim.policies.order import Order
from sim.policies.passes.memory import RuleMemory, lay_running, profile_of, reserve_rest
from sim.state.availability import Profile, earliest, free_between, occupy
from sim.state.run_state import State
from sim.state.run_steps import ask_to_wake, withdraw_wake
from sim.state.view import View
from sim.state.waiting_queue import (
    BLOCK,
    SIZES,
    Summaries,
    Waiting,
    follow,
    forget,
    summaries_in,
    waiting_in,
)


class Bounds(NamedTuple):
    """What a pass finds out about jobs that have no reservation yet.

    Attributes
    ----------
    starts : numpy.ndarray of float, shape (n,), seconds
        No job starts earlier: it could not in a profile with fewer reservations.
    shortest, shortest_ahead : numpy.ndarray of float, shape (32,), seconds
        Jobs of `2 ** i` processors or more that take so long, or longer, do not begin in time:
        for the pass, and for those ahead of one that may.
    pending : numpy.ndarray of int, shape (n,)
        Room for the places of those that are to be reserved for first.
    summaries : Summaries
        Of the blocks of the queue.
    """

    starts: FloatArray
    shortest: FloatArray
    shortest_ahead: FloatArray
    pending: IntArray
    summaries: Summaries


@compiled
def make_bounds(jobs: int, summaries: Summaries) -> Bounds:
    """Return room for what a pass finds out about so many jobs."""
    shortest = np.zeros((2, SIZES))
    pending = np.zeros(jobs, np.int64)
    return Bounds(np.zeros(jobs), shortest[0], shortest[1], pending, summaries)


@compiled(inline="always")
def _begins_before(
    profile: Profile, waiting: Waiting, bounds: Bounds, shortest: FloatArray, k: int, limit: float
) -> bool:
    """Raise a job's bound to the earliest hole in the profile; say whether it is below a limit.

    ``shortest`` is what is known of the same limit, or of a later one.
    """
    counts, runtimes, _ = waiting
    least = bounds.starts
    fraction, size = frexp(counts[k])
    if runtimes[k] < shortest[size - 1]:
        least[k] = earliest(profile, counts[k], runtimes[k], least[k], limit, np.inf)
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
    profile: Profile, waiting: Waiting, bounds: Bounds, first: int, k: int, limit: float
) -> bool:
    """Reserve for a job if it starts before a limit, and first for those ahead that matter.

    A job ahead without a reservation matters where it might start before this one ends, or
    before another that matters and is behind it ends. Where one that matters turns out to
    start later than its bound, others may matter, and all is looked at again.
    """
    counts, runtimes, starts = waiting
    least, pending, shortest = bounds.starts, bounds.pending, bounds.shortest_ahead
    while _begins_before(profile, waiting, bounds, bounds.shortest, k, limit):
        pending[0], number, until = k, 1, least[k] + runtimes[k]
        shortest[:] = np.inf
        for block in range((k - 1) // BLOCK, first // BLOCK - 1, -1):
            if is_hopeless(bounds.summaries, block, shortest):
                continue
            for j in range(min(k, (block + 1) * BLOCK) - 1, max(first, block * BLOCK) - 1, -1):
                if counts[j] == 0 or starts[j] < np.inf or least[j] >= until:
                    continue
                if _begins_before(profile, waiting, bounds, shortest, j, until):
                    pending[number] = j
                    number += 1
                    if least[j] + runtimes[j] > until:
                        until = least[j] + runtimes[j]
                        shortest[:] = np.inf
        while number > 0:
            j = pending[number - 1]
            start = earliest(profile, counts[j], runtimes[j], least[j], np.inf, np.inf)
            if start > least[j]:
                least[j] = start
                break
            occupy(profile, start, start + runtimes[j], counts[j])
            starts[j] = start
            number -= 1
        if number == 0:
            return True
    return False


@compiled
def replan_soonest(
    profile: Profile, now: float, waiting: Waiting, first: int, last: int, bounds: Bounds,
    found: IntArray,
) -> tuple[int, float]:  # fmt: skip
    """Reserve in queue order as far as it tells who starts now, and when the next job does.

    Every start that is finite on return is what reserving for all would give, and `reserve_rest`
    gives the others theirs after this.

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
    soonest, most = np.inf, free_between(profile, now, np.inf)[1]
    for block in range(first // BLOCK, (last - 1) // BLOCK + 1):
        if is_hopeless(summaries, block, shortest):
            continue
        for k in range(max(first, block * BLOCK), min(last, (block + 1) * BLOCK)):
            if counts[k] == 0 or counts[k] > most:
                continue
            if starts[k] == np.inf and not (
                _begins_before(profile, waiting, bounds, shortest, k, soonest)
                and _reserve_before(profile, waiting, bounds, first, k, soonest)
            ):
                continue
            if starts[k] > now:
                soonest = min(soonest, starts[k])
            else:
                found[number] = k
                number += 1
            if soonest < np.inf:
                most = free_between(profile, now, soonest)[1]
                shortest[frexp(most)[1] :] = -np.inf
    return number, soonest


@compiled
def decide(state: State, memory: RuleMemory) -> int:
    """Find whose reservation begins now, and ask for a pass when the next one does."""
    number = find_due(state, memory)
    move_wake(state, memory)
    return number


@compiled
def find_due(state: State, memory: RuleMemory) -> int:
    """Reserve as far as it matters now; return how many places of who starts were found."""
    queue, at, now = memory.queue, memory.queue.at[0], state.run[0].now
    memory.reserving[0].next_start = np.inf
    if at.waiting == 0:
        return 0
    lay_running(state, memory)
    follow(queue)
    bounds = make_bounds(at.last, summaries_in(queue))
    number, memory.reserving[0].next_start = replan_soonest(
        memory.profile, now, waiting_in(queue), at.first, at.last, bounds, queue.found
    )
    for place in queue.found[:number]:
        forget(bounds.summaries, place, place)
    return int(number)


@compiled
def move_wake(state: State, memory: RuleMemory) -> None:
    """Ask for a pass when the next job starts, if not when a job is believed to end anyway.

    A pass that was asked for by a plan that is no more is withdrawn: orders of which keys change
    with time would plan otherwise then.
    """
    own, ends = memory.reserving[0], state.holder_end[: state.run[0].holders]
    before, following = own.wake_time, own.next_start
    place = np.searchsorted(ends, following)
    if place < ends.size and ends[place] == following:
        following = np.inf
    own.wake_time = following
    if before != following:
        withdraw_wake(state, before)
        ask_to_wake(state, following)


class ReplanningScheduler(EasyScheduler):
    """EASY with a reservation for every waiting job.

    A pass makes those that tell who starts now and when the next one begins; whoever asks for
    more gets the others then.
    """

    compiles_keys = True

    def __init__(self, view: View, order: Order, allocation: Allocation) -> None:
        super().__init__(view, order, allocation, reservations=0, decides=decide)

    def find_starts(self) -> int:
        """Find whose reservation begins now, in the order as it is now."""
        self.rank()
        return int(self._decide(self.view._tables, self.memory))

    def reserved_starts(self) -> dict[int, tuple[float, int, float]]:
        """Return start, processors and believed runtime of every reservation of this pass."""
        first, last, *_ = self.queue.tables.at[0].item()
        reserve_rest(profile_of(self.memory), self.view.now, self.queue.table, first, last)
        return super().reserved_starts()
