"""Conservative backfilling: every waiting job holds a reservation (Feitelson & Weil 1998)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled, direct
from sim.engine.engine import Engine
from sim.engine.protocols import Promise, Scheduler, acts_as
from sim.policies.backfill.easy import EasyScheduler
from sim.policies.backfill.reservations import no_bounds, replan_soonest, reserve_rest
from sim.policies.base import Allocation, OpenAllocation, QueueKeeper
from sim.policies.molding.choice import best_candidate, compress_candidates
from sim.policies.molding.scheduler import ALL, OpenKeeper, OpenScheduler
from sim.policies.order import Order
from sim.policies.passes.memory import (
    RuleMemory,
    believe,
    lay_running,
    make_room_for_all,
    start_found,
)
from sim.policies.passes.queue_rule import CompiledQueueRule, is_compiled
from sim.state.availability import (
    Holes,
    Profile,
    advance,
    earliest,
    free_between,
    move_up,
    nothing_found,
    occupy,
    place,
    place_next,
)
from sim.state.decisions import Decision, Start, WakeAt
from sim.state.run_state import State
from sim.state.run_steps import ask_to_wake
from sim.state.view import View
from sim.state.waiting_queue import BLOCK, Waiting, follow, forget, push, waiting_in

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


@compiled(forceinline=True)
def _note_freed(kept: Kept, begin: float, end: float) -> None:
    instants = kept.instants
    instants[SINCE], instants[UNTIL] = min(instants[SINCE], begin), max(instants[UNTIL], end)


@compiled(forceinline=True)
def _look_again(kept: Kept, now: float, first: int, last: int) -> None:
    """See to it that this pass looks at all reservations for those that begin now."""
    kept.soonest[first // BLOCK : last // BLOCK + 1] = -np.inf
    kept.instants[NEXT] = now


@compiled(forceinline=True)
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
        elif is_broken or free_between(times, free, span, begin, end)[0] < more:
            is_broken = True
        else:
            occupy(times, free, span, begin, end, more)
    return early, is_broken


@compiled(forceinline=True)
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
    most = free_between(*holes, low, high)[1]
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
        most = max(most, free_between(*holes, old, old + runtime)[1])
        freed[0] = min(freed[0], old)
        freed[1] = max(freed[1], old + runtime)


@compiled
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
        if starts[k] >= now and free_between(*holes, starts[k], end)[0] >= counts[k]:
            occupy(*holes, starts[k], end, counts[k])
        else:
            lost[found] = k
            found += 1
    for k in lost[:found]:
        starts[k] = place(*holes, now, counts[k], runtimes[k])
    _look_again(kept, now, first, last)
    _note_freed(kept, now, np.inf)
    return found


@compiled(forceinline=True)
def reserve_at(k: int, start: float, waiting: Waiting, kept: Kept) -> None:
    """Note the reservation of a job."""
    waiting.starts[k] = start
    kept.soonest[k // BLOCK] = min(kept.soonest[k // BLOCK], start)
    kept.instants[NEXT] = min(kept.instants[NEXT], start)


@compiled(forceinline=True)
def is_wake_wanted(ends: FloatArray, instants: FloatArray) -> bool:
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


@compiled(forceinline=True)
def due(waiting: Waiting, first: int, last: int, now: float, kept: Kept, found: IntArray) -> int:
    """Find the jobs whose time has come, and when the next one's comes.

    A block whose time has not come is passed over, any other is brought up to date for the
    jobs that stay.

    Returns
    -------
    int
        How many places were written to `found`.
    """
    counts, _, starts = waiting
    instants, soonest = kept
    number, following = 0, np.inf
    if instants[NEXT] > now:
        return 0
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


@compiled(inline="always")
def _take_in(state: State, memory: RuleMemory) -> None:
    """Bring profile and reservations up to date with runs that ended and beliefs that changed."""
    now, queue, at = state.run[0].now, memory.queue, memory.queue.at[0]
    holes, waiting = (memory.times, memory.free, memory.span), waiting_in(queue)
    kept = Kept(memory.instants, queue.soonest)
    early, is_broken = follow_changes(holes, now, _changes(state), kept)
    if is_broken:
        lay_running(state, memory)
        repair(holes, now, waiting, at.first, at.last, kept)
    if memory.revised.size > 0:
        early |= believe(state, memory)
        lay_running(state, memory)
        repair(holes, now, waiting, at.first, at.last, kept)
    while at.first < at.last and waiting.counts[at.first] == 0:
        at.first += 1
    if early and at.first < at.last:
        compress(holes, now, waiting, at.first, at.last, kept)


@compiled
def prepare(state: State, memory: RuleMemory) -> None:
    """Bring profile and reservations up to date."""
    make_room_for_all(state, memory)
    run = state.run[0]
    if run.ended_now + run.expired_now + memory.revised.size > 0:
        _take_in(state, memory)
    else:
        advance(memory.times, memory.span, run.now)
    if run.arrived - run.newcomer > 1 or memory.placements.size > 0:
        memory.placements = nothing_found(run.arrived - run.newcomer)


@compiled
def admit(state: State, memory: RuleMemory, job: int) -> None:
    """Let a job that has just arrived wait with a reservation."""
    queue = memory.queue
    k = push(queue, job, state.processors[job], state.belief[job], 0.0)
    holes, now = (memory.times, memory.free, memory.span), state.run[0].now
    begin = place_next(*holes, now, queue.processors[k], queue.runtime[k], memory.placements)
    reserve_at(k, begin, waiting_in(queue), Kept(memory.instants, queue.soonest))


@compiled
def decide(state: State, memory: RuleMemory) -> None:
    """Start those whose reservation begins now, and ask for a pass when the next one does."""
    now, number, queue = state.run[0].now, 0, memory.queue
    if memory.instants[NEXT] <= now:
        at, kept = queue.at[0], Kept(memory.instants, queue.soonest)
        if at.soonest_layout != at.layout:
            at.soonest_layout = at.layout
            kept.soonest[:] = -np.inf
        number = due(waiting_in(queue), at.first, at.last, now, kept, queue.found)
    if is_wake_wanted(state.holder_end[: state.run[0].holders], memory.instants):
        ask_to_wake(state, memory.instants[NEXT])
    if number > 0:
        start_found(state, queue, number)


_NO_CHANGES: FloatArray = np.zeros((0, 3))
_compress, _due, _follow = direct(compress), direct(due), direct(follow_changes)
_is_wake_wanted = direct(is_wake_wanted)
_replan_soonest = direct(replan_soonest)


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


class ReplanningScheduler(EasyScheduler):
    """EASY with a reservation for every waiting job.

    A pass makes those that tell who starts now and when the next one begins; whoever asks for
    more gets the others then.
    """

    def __init__(self, view: View, order: Order, allocation: Allocation) -> None:
        super().__init__(view, order, allocation, reservations=ALL)
        self._bounds = no_bounds(0, self.queue.summaries)
        self._next_start = self._waking = np.inf

    def decide(self) -> list[Decision]:
        """Start those whose hole begins now, and see to it that there is a pass for the next.

        Most begin when a running job is believed to end, when there is one anyway. A pass that
        was asked for by a plan that is no more is withdrawn: orders of which keys change with
        time would plan otherwise then.
        """
        if self._waking <= self.view.now:
            self._waking = np.inf
        decisions = super().decide()
        following = self._next_start if self.queue.waiting else np.inf
        ends = self.view._ends.end
        place = ends.searchsorted(following)
        if place < ends.size and ends.item(place) == following:
            following = np.inf
        if following != self._waking:
            decisions.append(WakeAt(following, instead=self._waking))
            self._waking = following
        return decisions

    def reserved_starts(self) -> dict[int, tuple[float, int, float]]:
        """Return start, processors and believed runtime of every reservation of this pass."""
        queue = self.queue
        reserve_rest(self._profile.holes, self.view.now, queue.table, queue.first, queue.last)
        return super().reserved_starts()

    def start(self, place: int) -> Start:
        """Start the job at a place on its count."""
        forget(self.queue.summaries, place, place)
        return super().start(place)

    def find_starts(self) -> int:
        """Reserve as far as it matters now; return how many places of who starts were found."""
        view, queue, profile = self.view, self.queue, self._profile
        profile.grow(queue.waiting + view._ends.end.size)
        profile.lay(view.now, view._ends)
        follow(queue.tables)
        summaries, bounds = queue.summaries, self._bounds
        if bounds.summaries is not summaries or bounds.matter.size < queue.job.size:
            bounds = self._bounds = no_bounds(queue.job.size, summaries)
        number, self._next_start = _replan_soonest(
            profile.holes, view.now, queue.table, queue.first, queue.last, bounds, queue.found
        )
        return int(number)


class ConservativeScheduler(QueueKeeper):
    """Holds reservations from arrival on; compression moves them earlier, never later.

    Only when a belief grows can a reservation move later, and only one that no
    longer fits.
    """

    tracks_runs = True
    promise: Promise = "starts"

    def __init__(self, view: View, order: Order, allocation: Allocation) -> None:
        super().__init__(view, order, allocation)
        self.profile = Profile(view.processors)
        self.kept = nothing_kept()

    def compiled_rule(self, engine: Engine) -> CompiledQueueRule | None:
        """Return the rule where jobs queue in the order of arrival."""
        if not (acts_as(self, ConservativeScheduler) and is_compiled(self, engine)):
            return None
        functions = {"prepare": prepare, "admit": admit, "decide": decide}
        return CompiledQueueRule(engine, self, functions, keeps_reservations=True)

    def decide(self) -> list[Decision]:
        """Bring the profile up to date, compress, place arrivals, start who is due."""
        view, queue = self.view, self.queue
        queue.tidy()
        self.profile.grow(queue.waiting + view._ends.end.size + len(view.arrived) + 1)
        changes, is_resized = self._changes()
        released, is_broken = _follow(self.profile.holes, view.now, changes, self.kept)
        if is_broken or is_resized or view.changes.outages_changed:
            self._repair()
            released |= is_resized or view.changes.outages_changed
        if view.changes.revised:
            released |= self._take_in_beliefs()
        self.rank()
        self._take_in_arrivals()
        if released and queue.waiting:
            self._compress()
        for job in self._newcomers():
            self.place(job)
        return self._start_due() if queue.waiting else []

    def _newcomers(self) -> Sequence[int]:
        """Return the jobs that have just arrived, in the policy's order by what they ask for."""
        view, jobs = self.view, self.view.arrived
        if self.by_arrival or len(jobs) < 2:
            return jobs
        submit = np.array([view.submit_time[job] for job in jobs])
        asked = np.array([view.requested_processors[job] for job in jobs])
        runtime = np.array([view.belief(*one) for one in zip(jobs, asked.tolist(), strict=True)])
        keys = np.asarray(self.order.keys(view.now, submit, asked, runtime))
        return [jobs[place] for place in np.argsort(keys, kind="stable").tolist()]

    def place(self, job: int) -> None:
        """Admit a job and reserve the earliest hole for it."""
        queue, profile = self.queue, self.profile
        place = self.admit(job, self.outlook)
        wanted, runtime = queue.processors.item(place), queue.runtime.item(place)
        self.reserve_at(place, profile.place(self.view.now, wanted, runtime))

    def outlook(self, counts: IntArray, runtimes: FloatArray) -> FloatArray:
        """Return the earliest start of each (count, runtime) among all reservations."""
        return self.profile.earliest_of(self.view.now, counts, runtimes)

    def reserve_at(self, place: int, start: float) -> None:
        """Note the reservation of the job at a place."""
        instants = self.kept.instants
        self.queue.start[place] = start
        instants[NEXT] = min(instants.item(NEXT), start)

    def _take_in_arrivals(self) -> None:
        """Prepare for the arrivals: nothing where each is placed by itself."""

    def _changes(self) -> tuple[FloatArray, bool]:
        """Return what runs hold otherwise than believed, and whether any was resized."""
        view, now, is_resized = self.view, self.view.now, False
        changes = [
            (now, view.changes.moved_ends.get(run, run.believed_end), -run.processors)
            for run in view.ended
        ]
        for run, before in view.changes.moved_ends.items():
            if view.running.get(run.job) is not run:
                continue
            end, before = run.believed_end, max(before, now)
            if run in view.changes.resized:
                is_resized = True
            elif end < before:
                changes.append((end, before, -run.processors))
            else:
                changes.append((before, end, run.processors))
        return (np.array(changes) if changes else _NO_CHANGES), is_resized

    def _take_in_beliefs(self) -> bool:
        changed = self.refresh()
        if changed:
            self._repair()
        return any(self.queue.runtime[place] < before for place, before in changed)

    def _repair(self) -> None:
        queue, profile, now = self.queue, self.profile, self.view.now
        self.rank()
        profile.lay(now, self.view._ends)
        repair(profile.holes, now, queue.table, queue.first, queue.last, self.kept)

    def _compress(self) -> None:
        queue, holes, now = self.queue, self.profile.holes, self.view.now
        _compress(holes, now, queue.table, queue.first, queue.last, self.kept)

    def _start_due(self) -> list[Decision]:
        """Start the jobs whose reservation begins now, in queue order."""
        queue, view, kept = self.queue, self.view, self.kept
        if kept.soonest.size <= queue.last // BLOCK:
            kept = self.kept = kept._replace(soonest=np.zeros(queue.job.size // BLOCK + 1))
        kept.soonest[:] = -np.inf  # places may have changed
        number = _due(queue.table, queue.first, queue.last, view.now, kept, queue.found)
        wants_wake = _is_wake_wanted(view._ends.end, kept.instants)
        decisions: list[Decision] = [self.start(place) for place in queue.found[:number].tolist()]
        if wants_wake:
            decisions.append(WakeAt(kept.instants.item(NEXT)))
        return decisions


class OpenConservativeScheduler(OpenKeeper, ConservativeScheduler):
    """Conservative with open counts: every waiting job holds a count and a reservation.

    A job takes the candidate of earliest end when it arrives; all arrivals of an instant are
    in the queue before the rule says what is allowed. When processors become free early,
    every waiting job in queue order may take another candidate if it then ends earlier; none
    ever ends later than it was promised, unless beliefs grow.
    """

    promise = "ends"

    def decide(self) -> list[Decision]:
        """Bring the profile up to date, compress with open counts, start who is due."""
        self.candidates.watch()
        return super().decide()

    def _take_in_arrivals(self) -> None:
        """Queue all arrivals, then let the rule narrow the candidates, once in this pass."""
        for job in self.view.arrived:
            self.admit(job, self.outlook)
        if self.queue.waiting:
            self.candidates.narrow(self.queue)
        self._places = self.queue.place_of() if self.view.arrived else {}

    def place(self, job: int) -> None:
        """Reserve the hole in which a job that was taken in ends earliest."""
        queue, profile, now = self.queue, self.profile, self.view.now
        place = self._places[job]
        pick, start = best_candidate(
            profile.holes,
            now,
            queue.counts,
            queue.runtimes,
            queue.spans["low"].item(place),
            queue.spans["high"].item(place),
            np.inf,
        )
        queue.choose(place, pick)
        self.reserve_at(place, start)
        profile.occupy(start, start + queue.runtime.item(place), queue.processors.item(place))

    def _compress(self) -> None:
        queue, profile = self.queue, self.profile
        compress_candidates(
            profile.holes,
            self.view.now,
            queue.table,
            queue.every_candidate,
            queue.first,
            queue.last,
            self.kept.instants[SINCE:],
        )
        self.kept.instants[NEXT] = self.view.now
