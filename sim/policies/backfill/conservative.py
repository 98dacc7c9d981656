"""Conservative backfilling: every waiting job holds a reservation (Feitelson & Weil 1998)."""

from collections.abc import Sequence

import numpy as np

from predictors.base import FloatArray
from predictors.compiling import compiled, direct
from sim.engine.protocols import Promise, Scheduler
from sim.policies.backfill.replanning import ReplanningScheduler
from sim.policies.base import Allocation, OpenAllocation
from sim.policies.molding.base import best_candidate
from sim.policies.molding.scheduler import ALL, OpenKeeper, OpenScheduler
from sim.policies.order import Order
from sim.policies.passes.memory import (
    RuleMemory,
    believe,
    lay_running,
    make_room_for_all,
    note_freed,
    take_freed,
)
from sim.policies.passes.queue_rule import QUEUE_FUNCTIONS, QueueKeeper
from sim.policies.ties import is_less
from sim.state.availability import (
    advance,
    earliest,
    free_between,
    move_up,
    no_start_bounds,
    occupy,
    reserve_earliest,
    reserve_next,
)
from sim.state.run_state import State
from sim.state.run_steps import ask_to_wake
from sim.state.view import View
from sim.state.waiting_queue import BLOCK, push, waiting_in

Freed = tuple[float, float, int]
"""Where processors became free: begin and end, seconds, and the most that are free there."""


@compiled(forceinline=True)
def look_again(memory: RuleMemory, now: float) -> None:
    """See to it that this pass looks at all reservations for those that begin now."""
    memory.queue.soonest[:] = -np.inf
    memory.reserving[0].next_start = now


@compiled(forceinline=True)
def follow_changes(memory: RuleMemory, now: float, changes: FloatArray) -> tuple[bool, bool]:
    """Bring the profile up to date with running jobs that ended or are believed to end otherwise.

    Parameters
    ----------
    memory : RuleMemory
    now : float, seconds
    changes : numpy.ndarray of float, shape (n, 3)
        From when until when, in seconds, and how many processors more than before are held,
        or fewer.

    Returns
    -------
    tuple of (bool, bool)
        Whether processors became free early, and whether reservations are in the way of what
        is held for longer: then the profile is to be laid anew.
    """
    profile = memory.profile
    advance(profile, now)
    early, is_broken = False, False
    for k in range(len(changes)):
        begin, end, more = changes[k, 0], changes[k, 1], int(changes[k, 2])
        if more < 0:
            if end > begin:
                occupy(profile, begin, end, more)
                note_freed(memory, begin, end)
                early = True
        elif is_broken or free_between(profile, begin, end)[0] < more:
            is_broken = True
        else:
            occupy(profile, begin, end, more)
    return early, is_broken


@compiled
def _end_earlier(memory: RuleMemory, now: float, freed: Freed, k: int) -> bool:
    """Move the reservation at a place to the allowed candidate that ends earliest, if earlier.

    Returns whether there is one that reaches into `freed`.
    """
    processors, seconds, starts = waiting_in(memory.queue)
    held, old, (begin, end, most) = processors[k], starts[k], freed
    old_end, profile = old + seconds[k], memory.profile
    counts, runtimes = memory.menu_counts, memory.menu_runtimes
    allowed = memory.menu_spans[memory.queue.job[k]]
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
            occupy(profile, old, old_end, -held)
            out = True
        mine = np.inf if out else old
        start = earliest(profile, count, runtime, after, limit, mine)
        if start < limit and is_less(start - now + runtime, least):
            best, best_start, least = pick, start, start - now + runtime
    if best >= 0:
        processors[k], seconds[k], starts[k] = counts[best], runtimes[best], best_start
    if out != (best >= 0):
        occupy(profile, old, old_end, held if out else -held)
    if best >= 0:
        occupy(profile, best_start, best_start + seconds[k], processors[k])
    return best >= 0


@compiled
def compress(memory: RuleMemory, now: float) -> None:
    """Let every waiting job, in queue order, begin earlier if it can, never later.

    A job of an open count ends earlier, on any allowed candidate; one that holds no reservation
    yet (an infinite start) is passed over. A hole that a job could move to must reach into the
    time in which processors became free since the jobs were last tried, so only such holes are
    looked for. Afterwards that time is what this very pass freed, for the jobs that it had
    already passed by.
    """
    at, profile, jobs = memory.queue.at[0], memory.profile, memory.queue.job
    spans = memory.menu_spans
    counts, runtimes, starts = waiting_in(memory.queue)
    while at.first < at.last and counts[at.first] == 0:
        at.first += 1
    if at.first == at.last:
        return
    look_again(memory, now)
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
            start = earliest(profile, wanted, runtime, after, limit, old)
            is_moved = start < old
            if is_moved:
                move_up(profile, old, start, runtime, wanted)
                starts[k] = start
        if is_moved:
            begin, end = min(begin, old), max(end, old_end)
            most = max(most, free_between(profile, old, old_end)[1])
            note_freed(memory, old, old_end)


@compiled
def repair(memory: RuleMemory, now: float) -> None:
    """Keep, in queue order, the reservations that fit; place the others anew after them.

    The profile holds the running jobs alone when this begins.
    """
    at, profile = memory.queue.at[0], memory.profile
    counts, runtimes, starts = waiting_in(memory.queue)
    lost = np.empty(at.last - at.first, np.int64)
    found = 0
    for k in range(at.first, at.last):
        if counts[k] == 0:
            continue
        end = starts[k] + runtimes[k]
        if starts[k] >= now and free_between(profile, starts[k], end)[0] >= counts[k]:
            occupy(profile, starts[k], end, counts[k])
        else:
            lost[found] = k
            found += 1
    for k in lost[:found]:
        starts[k] = reserve_earliest(profile, now, counts[k], runtimes[k])
    look_again(memory, now)
    note_freed(memory, now, np.inf)


@compiled(forceinline=True)
def reserve_at(memory: RuleMemory, k: int, start: float) -> None:
    """Note the reservation of the job at a place."""
    queue, own = memory.queue, memory.reserving[0]
    queue.start[k] = start
    queue.soonest[k // BLOCK] = min(queue.soonest[k // BLOCK], start)
    own.next_start = min(own.next_start, start)


@compiled
def reserve_best(state: State, memory: RuleMemory, k: int) -> None:
    """Reserve the hole in which the job at a place ends earliest, on any allowed candidate."""
    queue, profile, own = memory.queue, memory.profile, memory.menu_spans[memory.queue.job[k]]
    counts, runtimes, now = memory.menu_counts, memory.menu_runtimes, state.run[0].now
    pick, start = best_candidate(profile, now, counts, runtimes, own.low, own.high, np.inf)
    queue.processors[k], queue.runtime[k] = counts[pick], runtimes[pick]
    reserve_at(memory, k, start)
    occupy(profile, start, start + runtimes[pick], counts[pick])


@compiled(forceinline=True)
def wake_for_next(state: State, memory: RuleMemory) -> None:
    """Ask for a pass when the next reservation begins.

    Most begin when a running job is believed to end, when there is one anyway.
    """
    own, ends = memory.reserving[0], state.holder_end[: state.run[0].holders]
    following = own.next_start
    place = np.searchsorted(ends, following)
    is_due = following < np.inf and following != own.wake_time
    if is_due and not (place < ends.size and ends[place] == following):
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
    queue, own, at = memory.queue, memory.reserving[0], memory.queue.at[0]
    counts, _, starts = waiting_in(queue)
    soonest, number, following = queue.soonest, 0, np.inf
    if own.next_start > now:
        return 0
    if at.soonest_layout != at.layout:
        at.soonest_layout = at.layout
        soonest[:] = -np.inf
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
def _changes(state: State) -> FloatArray:
    """Return what runs that ended, or outlived their belief, hold otherwise than believed."""
    held, until = state.processors, state.believed_end
    ended, expired = state.run[0].ended_now, state.run[0].expired_now
    changes = np.empty((ended + expired, 3))
    changes[:, 0] = state.run[0].now
    for k in range(ended + expired):
        is_over = k < ended
        job = state.ended_jobs[k] if is_over else state.expired_jobs[k - ended]
        changes[k, 1], changes[k, 2] = until[job], -held[job] if is_over else held[job]
    return changes


@compiled
def take_in(state: State, memory: RuleMemory, changes: FloatArray, is_moved: bool) -> bool:
    """Bring profile and reservations up to date; say whether processors became free early.

    Parameters
    ----------
    state : State
    memory : RuleMemory
    changes : numpy.ndarray of float, shape (n, 3)
        Of `follow_changes`.
    is_moved : bool
        Whether the profile is to be laid anew, as more has changed.
    """
    make_room_for_all(state, memory)
    early, is_broken = follow_changes(memory, state.run[0].now, changes)
    if is_broken or is_moved:
        lay_running(state, memory)
        repair(memory, state.run[0].now)
    return early


@compiled
def prepare(state: State, memory: RuleMemory) -> None:
    """Bring profile and reservations up to date."""
    run, is_revised = state.run[0], memory.revised_places.size > 0
    if run.ended_now + run.expired_now + is_revised > 0:
        is_shorter = believe(state, memory)
        if take_in(state, memory, _changes(state), is_revised) or is_shorter:
            compress(memory, run.now)
    else:
        make_room_for_all(state, memory)
        advance(memory.profile, run.now)
    if run.arrived - run.newcomer > 1 or memory.start_bounds.size > 0:
        memory.start_bounds = no_start_bounds(run.arrived - run.newcomer)


@compiled
def admit(state: State, memory: RuleMemory, job: int) -> None:
    """Let a job that has just arrived wait, with the earliest hole reserved for it."""
    processors, runtime, now = state.processors[job], state.belief[job], state.run[0].now
    k = push(memory.queue, job, processors, runtime, memory.key[job])
    begin = reserve_next(memory.profile, now, processors, runtime, memory.start_bounds)
    reserve_at(memory, k, begin)


@compiled
def decide(state: State, memory: RuleMemory) -> int:
    """Find whose reservation begins now, and ask for a pass when the next one does."""
    number = find_due(memory, state.run[0].now)
    wake_for_next(state, memory)
    return int(number)


_take_in, _compress, _believe = direct(take_in), direct(compress), direct(believe)
_reserve_best = direct(reserve_best)


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
                return OpenScheduler(view, order, allocation, ALL)
            return OpenConservativeScheduler(view, order, allocation)
        if self.replan:
            return ReplanningScheduler(view, order, allocation)
        return ConservativeScheduler(view, order, allocation)


class ConservativeScheduler(QueueKeeper):
    """Holds reservations from arrival on; compression moves them earlier, never later.

    Only when a belief grows, a node fails or runs change their processors can a reservation move
    later, and only one that no longer fits.
    """

    compiles_keys, keeps_reservations = False, True
    promise: Promise = "starts"
    functions = QUEUE_FUNCTIONS | {"prepare": prepare, "admit": admit, "decide": decide}

    def prepare(self) -> None:
        """Bring profile and reservations up to date."""
        changes, is_moved = self._changes()
        is_revised, state, memory = self.revise(), self.view._tables, self.memory
        is_early = is_moved | bool(_believe(state, memory))
        self.rank()
        is_early |= bool(_take_in(state, memory, changes, is_moved or is_revised))
        self._take_in_arrivals()
        if is_early:
            _compress(memory, self.view.now)

    def refresh(self) -> None:
        """Leave it to the next pass to plan with what is believed now."""
        self.revise()

    def newcomers(self) -> Sequence[int]:
        """Return the jobs that have just arrived, in the policy's order by what they ask for."""
        view, jobs = self.view, self.view.arrived
        if self.by_arrival or len(jobs) < 2:
            return jobs
        asked = np.array([view.requested_processors[job] for job in jobs])
        runtime = np.array([view.belief(*one) for one in zip(jobs, asked.tolist(), strict=True)])
        keys = self._keys(jobs, asked, runtime)
        return [jobs[place] for place in np.argsort(keys, kind="stable").tolist()]

    def _take_in_arrivals(self) -> None:
        """Prepare for the arrivals: nothing where each is placed by itself."""

    def _changes(self) -> tuple[FloatArray, bool]:
        """Return what runs hold otherwise than believed, and whether more has changed."""
        view, now, is_moved = self.view, self.view.now, self.view.changes.outages_changed
        changes = [
            (now, view.changes.moved_ends.get(run, run.believed_end), -run.processors)
            for run in view.ended
        ]
        for run, before in view.changes.moved_ends.items():
            if view.running.get(run.job) is not run:
                continue
            end, before = run.believed_end, max(before, now)
            if run in view.changes.resized:
                is_moved = True
            elif end < before:
                changes.append((end, before, -run.processors))
            else:
                changes.append((before, end, run.processors))
        return np.array(changes, float).reshape(-1, 3), is_moved


class OpenConservativeScheduler(OpenKeeper, ConservativeScheduler):
    """Conservative with open counts: every waiting job holds a count and a reservation.

    A job takes the candidate of earliest end when it arrives; all arrivals of an instant are
    in the queue before the rule says what is allowed. When processors become free early,
    every waiting job in queue order may take another candidate if it then ends earlier; none
    ever ends later than it was promised, unless beliefs grow.
    """

    promise = "ends"
    functions = QUEUE_FUNCTIONS | {"decide": decide}

    def _take_in_arrivals(self) -> None:
        """Queue all arrivals, then let the rule narrow the candidates, once in this pass."""
        for job in self.view.arrived:
            super().admit(job)
        if self.queue.waiting:
            self.candidates.narrow(self.memory)
        self._places = self.queue.place_of() if self.view.arrived else {}

    def admit(self, job: int) -> None:
        """Reserve the hole in which a job that was taken in ends earliest."""
        _reserve_best(self.view._tables, self.memory, self._places[job])
