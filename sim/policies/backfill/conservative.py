"""Conservative backfilling: every waiting job holds a reservation (Feitelson & Weil 1998)."""

from collections.abc import Sequence
from math import frexp

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled, direct
from sim.engine.protocols import Promise, Scheduler
from sim.policies.backfill.easy import EasyScheduler, is_hopeless, summarise
from sim.policies.base import Allocation, OpenAllocation
from sim.policies.molding.base import best_candidate, settle_found
from sim.policies.molding.scheduler import UNLIMITED, OpenQueueScheduler, OpenScheduler
from sim.policies.order import Order
from sim.policies.passes.memory import (
    RuleMemory,
    lay_running,
    make_room_for_all,
    note_freed,
    profile_of,
    reserve_rest,
    take_freed,
)
from sim.policies.passes.queue_rule import QUEUE_FUNCTIONS, QueueScheduler
from sim.policies.ties import is_less
from sim.state import availability
from sim.state.availability import Profile
from sim.state.run_state import RunState, rank_in
from sim.state.run_steps import ask_to_wake, holders_in, withdraw_wake
from sim.state.view import View
from sim.state.waiting_queue import AHEAD, BLOCK, SIZES, WHOLE, Queue, drop_stale, push

Freed = tuple[float, float, int]
"""Where processors became free: begin and end, seconds, and the most that are free there."""


@compiled(forceinline=True)
def rescan(memory: RuleMemory, now: float) -> None:
    """See to it that this pass looks at all reservations for those that begin now."""
    memory.queue.soonest[: memory.queue.at[0].last // BLOCK + 1] = -np.inf
    memory.kept[0].next_start = now


@compiled
def _end_earlier(memory: RuleMemory, now: float, freed: Freed, k: int) -> bool:
    """Move the reservation at a place to the allowed candidate that ends earliest, if earlier.

    Returns whether there is one that reaches into `freed`.
    """
    queue = memory.queue
    processors, seconds, starts = queue.processors, queue.runtime, queue.start
    held, old, (begin, end, most) = processors[k], starts[k], freed
    old_end, profile = old + seconds[k], memory.profile
    counts, runtimes = memory.menu_counts, memory.menu_runtimes
    allowed = memory.menu_spans[queue.job[k]]
    reach = most + held if old < end else most
    best, best_start, least = -1, old, old_end - now
    out = False  # whether what the job holds was taken out, as wider candidates need
    for pick in range(allowed.low, allowed.high):
        count, runtime = counts[pick], runtimes[pick]
        if count > reach:
            break
        if not is_less(max(runtime, begin - now), least):
            continue
        after = max(now, begin - runtime - 1.0)
        limit = min(end, now + least - runtime)
        if after >= limit:
            continue
        if count > held and not out:
            availability.occupy(profile, old, old_end, -held)
            out = True
        mine = np.inf if out else old
        start = availability.earliest(profile, count, runtime, after, limit, mine)
        if start < limit and is_less(start - now + runtime, least):
            best, best_start, least = pick, start, start - now + runtime
    if best >= 0:
        processors[k], seconds[k], starts[k] = counts[best], runtimes[best], best_start
    if out != (best >= 0):
        availability.occupy(profile, old, old_end, held if out else -held)
    if best >= 0:
        availability.occupy(profile, best_start, best_start + seconds[k], processors[k])
    return best >= 0


@compiled
def compress(memory: RuleMemory, now: float) -> None:
    """Let every waiting job, in queue order, begin earlier if it can, never later, where it is due.

    A job of an open count ends earlier, on any allowed candidate; one that holds no reservation
    yet (an infinite start) is passed over. A hole that a job could move to must reach into the
    time in which processors became free since the jobs were last tried, so only such holes are
    looked for. Afterwards that time is what this very pass freed, for the jobs that it had
    already passed by.
    """
    if not memory.kept[0].compression_due:
        return
    queue, at, profile, spans = memory.queue, memory.queue.at[0], memory.profile, memory.menu_spans
    jobs, counts, runtimes, starts = queue.job, queue.processors, queue.runtime, queue.start
    while at.first < at.last and counts[at.first] == 0:
        at.first += 1
    if at.first == at.last:
        return
    rescan(memory, now)
    begin, end, most = take_freed(memory, now)
    if most < 0:
        return
    for k in range(at.first, at.last):
        wanted, runtime, old = counts[k], runtimes[k], starts[k]
        old_end = old + runtime
        if wanted == 0 or old == np.inf or old_end <= begin:
            continue
        if spans[jobs[k]].high > 0:
            is_moved = _end_earlier(memory, now, (begin, end, most), k)
        else:
            after, limit = max(now, begin - runtime - 1.0), min(old, end)
            if wanted > most or old <= begin or after >= limit:
                continue
            start = availability.earliest(profile, wanted, runtime, after, limit, old)
            is_moved = start < old
            if is_moved:
                availability.move_up(profile, old, start, runtime, wanted)
                starts[k] = start
        if is_moved:
            begin, end = min(begin, old), max(end, old_end)
            most = max(most, availability.free_between(profile, old, old_end)[1])
            note_freed(memory, old, old_end)


@compiled
def repair(memory: RuleMemory, now: float) -> None:
    """Keep, in queue order, the reservations that fit; place the others anew after them.

    The profile holds the running jobs alone when this begins.
    """
    queue, at, profile = memory.queue, memory.queue.at[0], memory.profile
    counts, runtimes, starts = queue.processors, queue.runtime, queue.start
    lost = np.empty(at.last - at.first, np.int64)
    found = 0
    for k in range(at.first, at.last):
        if counts[k] == 0:
            continue
        end = starts[k] + runtimes[k]
        if starts[k] >= now and availability.free_between(profile, starts[k], end)[0] >= counts[k]:
            availability.occupy(profile, starts[k], end, counts[k])
        else:
            lost[found] = k
            found += 1
    for k in lost[:found]:
        starts[k] = availability.reserve_earliest(profile, now, counts[k], runtimes[k])
    rescan(memory, now)
    note_freed(memory, now, np.inf)


@compiled(forceinline=True)
def reserve_at(memory: RuleMemory, k: int, start: float) -> None:
    """Note the reservation of the job at a place."""
    queue, own = memory.queue, memory.kept[0]
    queue.start[k] = start
    queue.soonest[k // BLOCK] = min(queue.soonest[k // BLOCK], start)
    own.next_start = min(own.next_start, start)


@compiled
def reserve_best(state: RunState, memory: RuleMemory, k: int) -> None:
    """Reserve the hole in which the job at a place ends earliest, on any allowed candidate."""
    queue, profile, own = memory.queue, memory.profile, memory.menu_spans[memory.queue.job[k]]
    counts, runtimes, now = memory.menu_counts, memory.menu_runtimes, state.scalars[0].now
    pick, start = best_candidate(profile, now, counts, runtimes, own.low, own.high, np.inf)
    queue.processors[k], queue.runtime[k] = counts[pick], runtimes[pick]
    reserve_at(memory, k, start)
    availability.occupy(profile, start, start + runtimes[pick], counts[pick])


@compiled(forceinline=True)
def wake_for_next(state: RunState, memory: RuleMemory, following: float, withdraws: bool) -> None:
    """Ask for a pass when the next reservation begins; withdraw what was asked before, or not.

    Most begin when a running job is believed to end, when there is one anyway.
    """
    own, ends = memory.kept[0], holders_in(state).end
    place = rank_in(ends, following)
    if place < ends.size and ends[place] == following:
        following = np.inf
    if following != own.wake_time and (withdraws or following < np.inf):
        if withdraws:
            withdraw_wake(state, own.wake_time)
        ask_to_wake(state, following)
        own.wake_time = following


@compiled(forceinline=True)
def find_due(memory: RuleMemory, now: float) -> int:
    """Find the jobs whose time has come, and when the next one's comes.

    A block whose time has not come is passed over, any other is brought up to date for the
    jobs that stay.

    Returns
    -------
    int
        How many places were written to `found`.
    """
    queue, own, at = memory.queue, memory.kept[0], memory.queue.at[0]
    if own.next_start > now:
        return 0
    counts, starts = queue.processors, queue.start
    soonest, number, following = queue.soonest, 0, np.inf
    if at.soonest_layout != at.layout:
        at.soonest_layout = at.layout
        soonest[: at.last // BLOCK + 1] = -np.inf
    for block in range(at.first // BLOCK, (at.last - 1) // BLOCK + 1):
        if soonest[block] <= now:
            least = np.inf
            for k in range(max(at.first, block * BLOCK), min(at.last, (block + 1) * BLOCK)):
                if counts[k] > 0:
                    if starts[k] <= now:
                        queue.found[number] = k
                        number += 1
                    else:
                        least = min(least, starts[k])
            soonest[block] = least
        following = min(following, soonest[block])
    own.next_start = following
    return number


@compiled(forceinline=True)
def _changes(state: RunState) -> FloatArray:
    """Return when runs that ended, or outlived their belief, were believed to end, and are now."""
    run, until = state.scalars[0], state.believed_end
    changes = np.full((run.ended_now + run.expired_now, 3), run.now)
    for k, job in enumerate(state.ended_jobs[: run.ended_now]):
        changes[k, 0], changes[k, 2] = until[job], state.processors[job]
    for k, job in enumerate(state.expired_jobs[: run.expired_now], run.ended_now):
        changes[k, 1], changes[k, 2] = until[job], state.processors[job]
    return changes


@compiled
def update_profile(
    state: RunState, memory: RuleMemory, changes: FloatArray, lay_anew: bool
) -> None:
    """Bring profile and reservations up to date, as far as none begins earlier; note if some may.

    Parameters
    ----------
    state : RunState
    memory : RuleMemory
    changes : numpy.ndarray of float, shape (n, 3)
        When a run was believed to end, and when it does or is believed to now, in seconds, and
        how many processors it holds.
    lay_anew : bool
        Whether the profile is to be laid anew, as more has changed. So it is where reservations
        are in the way of what is held for longer.
    """
    make_room_for_all(state, memory)
    now, kept, profile = state.scalars[0].now, memory.kept[0], memory.profile
    early, is_broken = lay_anew or kept.is_shorter != 0, lay_anew or kept.is_revised != 0
    availability.advance(profile, now)
    for k in range(len(changes)):
        former, end, held = changes[k, 0], changes[k, 1], int(changes[k, 2])
        if end < former:
            availability.occupy(profile, end, former, -held)
            note_freed(memory, end, former)
            early = True
        elif end > former and (
            is_broken or availability.free_between(profile, former, end)[0] < held
        ):
            is_broken = True
        else:
            availability.occupy(profile, former, end, held)
    if is_broken:
        lay_running(state, memory)
        repair(memory, now)
    kept.is_revised, kept.is_shorter, kept.compression_due = 0, 0, early


@compiled
def take_in_ends(state: RunState, memory: RuleMemory) -> None:
    """Do so where runs ended, or outlived their belief."""
    update_profile(state, memory, _changes(state), False)


@compiled
def prepare(state: RunState, memory: RuleMemory) -> None:
    """Bring profile and reservations up to date."""
    run = state.scalars[0]
    take_in_ends(state, memory)
    compress(memory, run.now)
    if run.arrived - run.first_arrived > 1 or memory.start_bounds.size > 0:
        memory.start_bounds = availability.no_start_bounds(run.arrived - run.first_arrived)


@compiled
def admit(state: RunState, memory: RuleMemory, job: int) -> None:
    """Let a job that has just arrived wait, with the earliest hole reserved for it."""
    processors, runtime, now = state.processors[job], state.belief[job], state.scalars[0].now
    k = push(memory.queue, job, processors, runtime, memory.key[job])
    begin = availability.reserve_next(memory.profile, now, processors, runtime, memory.start_bounds)
    reserve_at(memory, k, begin)


@compiled
def decide(state: RunState, memory: RuleMemory) -> int:
    """Find whose reservation begins now, and ask for a pass when the next one does."""
    number = find_due(memory, state.scalars[0].now)
    wake_for_next(state, memory, memory.kept[0].next_start, False)
    return int(number)


@compiled
def decide_open(state: RunState, memory: RuleMemory) -> int:
    """Do the same of open counts, after all that have come are there and may be on any of theirs.

    First those that wait may end earlier, then each that has come reserves.
    """
    queue, at = memory.queue, memory.queue.at[0]
    compress(memory, state.scalars[0].now)
    for k in range(at.first, at.last):
        if queue.processors[k] > 0 and queue.start[k] == np.inf:
            reserve_best(state, memory, k)
    return settle_found(state, memory, decide(state, memory))


# All reservations made anew, as far as it matters


@compiled(inline="always")
def _begins_before(
    queue: Queue, profile: Profile, least: FloatArray, row: int, k: int, limit: float
) -> bool:
    """Raise a job's bound to the earliest hole in the profile; say whether it is below a limit.

    No job starts before its bound: it could not in a profile with fewer reservations. The row of
    what is too long holds for the same limit, or for a later one.
    """
    counts, runtimes, too_long = queue.processors, queue.runtime, queue.too_long[row]
    fraction, size = frexp(counts[k])
    if runtimes[k] < too_long[size - 1]:
        least[k] = availability.earliest(profile, counts[k], runtimes[k], least[k], limit, np.inf)
        if least[k] < limit:
            return True
        size -= fraction == 0.5
        while size < too_long.size and runtimes[k] < too_long[size]:
            too_long[size] = runtimes[k]
            size += 1
    least[k] = limit
    return False


@compiled
def _reserve_by(
    queue: Queue, profile: Profile, least: FloatArray, pending: IntArray, k: int, limit: float
) -> bool:
    """Reserve for a job if it starts before a limit, and first for those ahead that matter.

    A job ahead without a reservation matters where it might start before this one ends, or
    before another that matters and is behind it ends. Where one that matters turns out to
    start later than its bound, others may matter, and all is looked at again. There is room for
    the places of those that are reserved for first in `pending`.
    """
    counts, runtimes, starts = queue.processors, queue.runtime, queue.start
    too_long, first = queue.too_long[AHEAD], queue.at[0].first
    while _begins_before(queue, profile, least, WHOLE, k, limit):
        pending[0], number, until = k, 1, least[k] + runtimes[k]
        too_long[:] = np.inf
        for block in range((k - 1) // BLOCK, first // BLOCK - 1, -1):
            if is_hopeless(queue, block, AHEAD, SIZES):
                continue
            for j in range(min(k, (block + 1) * BLOCK) - 1, max(first, block * BLOCK) - 1, -1):
                if counts[j] == 0 or starts[j] < np.inf or least[j] >= until:
                    continue
                if _begins_before(queue, profile, least, AHEAD, j, until):
                    pending[number] = j
                    number += 1
                    if least[j] + runtimes[j] > until:
                        until = least[j] + runtimes[j]
                        too_long[:] = np.inf
        while number > 0:
            j = pending[number - 1]
            start = availability.earliest(profile, counts[j], runtimes[j], least[j], np.inf, np.inf)
            if start > least[j]:
                least[j] = start
                break
            availability.occupy(profile, start, start + runtimes[j], counts[j])
            starts[j] = start
            number -= 1
        if number == 0:
            return True
    return False


@compiled
def replan_soonest(queue: Queue, profile: Profile, now: float) -> tuple[int, float]:
    """Reserve in queue order as far as it tells who starts now, and when the next job does.

    Every start that is finite on return is what reserving for all would give, and `reserve_rest`
    gives the others theirs after this.

    Returns
    -------
    tuple of (int, float)
        How many places of jobs that start now were written to `found`, and when the next
        reservation begins, in seconds.
    """
    counts, starts, at = queue.processors, queue.start, queue.at[0]
    first, last = at.first, at.last
    too_long, least, pending = queue.too_long[WHOLE], np.full(last, now), np.empty(last, np.int64)
    too_long[:] = np.inf
    starts[first:last] = np.inf
    number, soonest, most = 0, np.inf, availability.free_between(profile, now, np.inf)[1]
    for block in range(first // BLOCK, (last - 1) // BLOCK + 1):
        if not queue.summarised[block]:
            summarise(queue, block)
        if is_hopeless(queue, block, WHOLE, SIZES):
            continue
        for k in range(max(first, block * BLOCK), min(last, (block + 1) * BLOCK)):
            if counts[k] == 0 or counts[k] > most:
                continue
            if starts[k] == np.inf and not (
                _begins_before(queue, profile, least, WHOLE, k, soonest)
                and _reserve_by(queue, profile, least, pending, k, soonest)
            ):
                continue
            if starts[k] > now:
                soonest = min(soonest, starts[k])
            else:
                queue.found[number] = k
                number += 1
            if soonest < np.inf:
                most = availability.free_between(profile, now, soonest)[1]
                too_long[frexp(most)[1] :] = -np.inf
    return number, soonest


@compiled
def replan(state: RunState, memory: RuleMemory) -> int:
    """Find who starts now where all reservations are made anew; ask for a pass when the next does.

    There is one anyway when a job is believed to end. One that was asked for by a plan that is no
    more is withdrawn: orders of which keys change with time would plan otherwise then.
    """
    queue, number, following = memory.queue, 0, np.inf
    if queue.at[0].waiting > 0:
        lay_running(state, memory)
        drop_stale(queue)
        number, following = replan_soonest(queue, memory.profile, state.scalars[0].now)
        for place in queue.found[:number]:
            queue.summarised[place // BLOCK] = False
    wake_for_next(state, memory, following, True)
    return int(number)


# The rules

_update_profile, _compress = direct(update_profile), direct(compress)


class Conservative:
    """Conservative backfilling.

    Parameters
    ----------
    replan : bool
        False keeps reservations and compresses them when processors become
        free early; True rebuilds all of them in queue order in every scheduling pass.

    Examples
    --------
    >>> import sim
    >>> policy = sim.Policy(sim.FirstComeFirstServed(), Conservative(), sim.Request())
    >>> result = sim.run("workload.jobs=20", policy=policy, predictor="oracle")
    >>> set(result.jobs["status"])
    {'completed'}
    """

    def __init__(self, replan: bool = False) -> None:
        self.replan = replan

    def begin(self, view: View, order: Order, allocation: Allocation | OpenAllocation) -> Scheduler:
        """Begin a run."""
        if isinstance(allocation, OpenAllocation):
            if self.replan:
                return OpenScheduler(view, order, allocation, UNLIMITED)
            return OpenConservativeScheduler(view, order, allocation)
        if self.replan:
            return ReplanningScheduler(view, order, allocation)
        return ConservativeScheduler(view, order, allocation)


class ConservativeScheduler(QueueScheduler):
    """Holds reservations from arrival on; compression moves them earlier, never later.

    Only when a belief grows, a node fails or runs change their processors can a reservation move
    later, and only one that no longer fits.
    """

    is_compiled_kind = keeps_reservations = True
    promise: Promise = "starts"
    functions = QUEUE_FUNCTIONS | {"prepare": prepare, "admit": admit, "decide": decide}

    def prepare(self) -> None:
        """Bring profile and reservations up to date."""
        self.rank()
        _update_profile(self.view._tables, self.memory, *self._changes())
        if self.candidates is None:
            _compress(self.memory, self.view.now)

    def newcomers(self) -> Sequence[int]:
        """Return the jobs that have just arrived, in the policy's order by what they ask for."""
        view, jobs = self.view, self.view.arrived
        if self.by_arrival or len(jobs) < 2:
            return jobs
        asked = np.array([view.requested_processors[job] for job in jobs])
        runtime = np.array([view.belief(*one) for one in zip(jobs, asked.tolist(), strict=True)])
        keys = self.keys_of(np.array(jobs), asked, runtime)
        return [jobs[place] for place in np.argsort(keys, kind="stable").tolist()]

    def _changes(self) -> tuple[FloatArray, bool]:
        """Return whose end is another than was believed, and whether more has changed."""
        view, now, seen = self.view, self.view.now, self.view.changes
        running, moved = view.running, seen.moved_ends
        granted = {run for run in seen.granted if running.get(run.job) is run}
        ends = [(moved.get(run, run.believed_end), now, run.processors) for run in view.ended]
        ends += [
            (max(former, now), run.believed_end, run.processors)
            for run, former in moved.items()
            if running.get(run.job) is run and run not in granted
        ]
        changes = np.array(ends, float).reshape(-1, 3)
        return changes, seen.outages_changed or bool(granted)


class OpenConservativeScheduler(OpenQueueScheduler, ConservativeScheduler):
    """Conservative with open counts: every waiting job holds a count and a reservation.

    A job takes the candidate of earliest end when it arrives; all arrivals of an instant are
    in the queue before the rule says what is allowed. When processors become free early,
    every waiting job in queue order may take another candidate if it then ends earlier; none
    ever ends later than it was promised, unless beliefs grow or nodes fail.
    """

    is_compiled_kind = always_narrows = True
    promise = "ends"
    functions = QUEUE_FUNCTIONS | {"prepare": take_in_ends, "decide": decide_open}


class ReplanningScheduler(EasyScheduler):
    """EASY with a reservation for every waiting job.

    A pass makes those that tell who starts now and when the next one begins; whoever asks for
    more gets the others then.
    """

    is_compiled_kind = True

    def __init__(self, view: View, order: Order, allocation: Allocation) -> None:
        super().__init__(view, order, allocation, UNLIMITED, decides=replan)

    def reserved_starts(self) -> dict[int, tuple[float, int, float]]:
        """Return start, processors and believed runtime of every reservation of this pass."""
        reserve_rest(self.queue.tables, profile_of(self.memory), self.view.now)
        return QueueScheduler.reserved_starts(self)
