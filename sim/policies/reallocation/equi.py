"""Rules that need little or no prediction: EQUI, DEQ and greedy expansion."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from predictors.in_loop.oracle import foresees
from sim.engine.engine import Engine
from sim.engine.protocols import acts_as
from sim.errors import check_choice
from sim.policies.allocation.rigid import Request
from sim.policies.backfill.easy import EasyScheduler
from sim.policies.backfill.queue_search import Opening, backfill, find_heads
from sim.policies.passes.sharing import BLOCK, EqualShares, Sharing, make_room_for_stretches
from sim.policies.reallocation.beliefs import TABLED, Beliefs, Members
from sim.policies.reallocation.rule import ReallocatingScheduler, Reallocation
from sim.policies.reallocation.shares import apportion, hand_out, make_room
from sim.policies.ties import TIE, first_least
from sim.state.availability import BelievedEnds
from sim.state.calendar import Calendar, sift_down, write_event
from sim.state.predicted import LEAST_BELIEF
from sim.state.run_state import State, believe_end, reallocate
from sim.state.run_steps import plan_starts, start, waiting_in
from sim.state.waiting_queue import Summaries, forget


@compiled
def equal_shares(total: int, least: IntArray, largest: IntArray) -> IntArray:
    """Return the same for all, as far as limits allow; what whole shares leave goes to the first.

    Parameters
    ----------
    total : int
        Processors to share out.
    least, largest : numpy.ndarray of int, shape (n,)

    Returns
    -------
    numpy.ndarray of int, shape (n,)
    """
    return apportion(np.ones(least.size), total, least, largest)


@compiled
def _runtime(sharing: Sharing, blocks: FloatArray, job: int, count: int) -> float:
    """Return a runtime of the table, or of blocks that were asked for, seconds."""
    if sharing.g.size > 0:
        own = sharing.jobs[job]
        return float(own.reference_runtime * (sharing.g[own.row, count] / own.reference_g))
    block = sharing.pages[(count - 1) // BLOCK, job]
    return float(blocks[block, (count - 1) % BLOCK])


@compiled
def _relative(sharing: Sharing, job: int, count: int) -> float:
    """Return the believed T(n)/T(1); without a curve speedup is perfect."""
    if sharing.jobs[job].curved == 0:
        return 1.0 / count
    believed = sharing.believed
    return _runtime(sharing, believed, job, count) / _runtime(sharing, believed, job, 1)


@compiled
def _forget_ended(state: State, sharing: Sharing) -> None:
    """Take those who ended now from the members, and what was known of them."""
    held, members, tally = state.processors, sharing.members, sharing.tally[0]
    for job in state.ended_jobs[: state.run[0].ended_now]:
        held[job], sharing.jobs[job].most = 0, 0
        for page in range(sharing.pages.shape[0]):
            if sharing.pages[page, job] >= 0:
                sharing.unused[tally.unused] = sharing.pages[page, job]
                sharing.pages[page, job] = -1
                tally.unused += 1
    left = 0
    for member in members[: tally.members]:
        if held[member] > 0:
            members[left] = member
            left += 1
    tally.members = left


# Who starts, while runs hold the least that they can


@compiled
def _lent_end(state: State, sharing: Sharing, job: int) -> float:
    """Return when a run is believed to end that gave up now all that it can."""
    end, held = state.believed_end[job], state.processors[job]
    least, tally, now = sharing.jobs[job].least, sharing.tally[0], state.run[0].now
    if least == 0 or least == held:
        return float(end)
    if sharing.jobs[job].most > TABLED:
        tally.pending += (least != 1) + 1
    elif sharing.jobs[job].read == 0:
        sharing.jobs[job].read = 1
        tally.queries += 1
    seconds = max(end - now, 0.0)
    seconds *= _relative(sharing, job, least)
    return float(now + seconds / _relative(sharing, job, held))


@compiled
def _lent_ends(state: State, sharing: Sharing) -> BelievedEnds:
    """Return who holds processors, with the least that malleable jobs keep, and until when."""
    running = state.run[0].running
    jobs = state.holder_job[:running]
    ends, held = np.empty(running), np.empty(running, np.int64)
    for k in range(running):
        least = sharing.jobs[jobs[k]].least
        ends[k] = _lent_end(state, sharing, jobs[k])
        held[k] = least if least > 0 else state.processors[jobs[k]]
    order = np.argsort(ends, kind="mergesort")
    return BelievedEnds(ends[order], jobs[order], held[order])


@compiled
def _find_starts(state: State, sharing: Sharing) -> int:
    """Find who starts, in the order of the starts, as EASY decides where the rest is lent."""
    run, waiting, found = state.run[0], waiting_in(state), state.found
    last, free = run.arrived, run.free
    forget(Summaries(sharing.shortest, sharing.summarised), run.newcomer, last)
    while run.head < last and waiting.counts[run.head] == 0:
        run.head += 1
    for job in sharing.members[: sharing.tally[0].members]:
        free += state.processors[job] - sharing.jobs[job].least
    heads, head, free = find_heads(waiting.counts, run.head, last, free, found)
    if head == last:
        return heads
    opening = Opening(free, 0, run.now, 0.0, False)
    ends = _lent_ends(state, sharing)
    summaries = Summaries(sharing.shortest, sharing.summarised)
    return backfill(ends, waiting, head, last, opening, summaries, heads, found)[0]


# Who gets how many


@compiled
def _shared(state: State, sharing: Sharing, begun: IntArray) -> tuple[IntArray, IntArray]:
    """Return the malleable jobs that run, then those that start, and what each gets."""
    held, jobs, number = state.processors, sharing.jobs, sharing.tally[0].members
    members = np.empty(number + begun.size, np.int64)
    members[:number] = sharing.members[:number]
    total = state.run[0].free + held[members[:number]].sum()
    for job in begun:
        if jobs[job].least > 0:
            members[number] = job
            number += 1
        else:
            total -= held[job]
    members = members[:number]
    if number == 0:
        return members, members
    lowest, highest = np.empty(number, np.int64), np.empty(number, np.int64)
    for k in range(number):
        lowest[k], highest[k] = jobs[members[k]].least, jobs[members[k]].most
    return members, equal_shares(total, lowest, highest)


@compiled
def _ask(sharing: Sharing, job: int, count: int) -> None:
    """See to it that a job's runtime on a count is known before the pass is made."""
    tally, asked, page = sharing.tally[0], sharing.asked, (count - 1) // BLOCK
    last = tally.asked
    if sharing.g.size > 0 or sharing.pages[page, job] >= 0:
        return
    for k in range(max(last - 2, 0), last):
        if asked[k].job == job and asked[k].page == page:
            return
    asked[last].job, asked[last].page = job, page
    tally.asked += 1


@compiled
def _ask_of(state: State, sharing: Sharing, members: IntArray, shares: IntArray) -> bool:
    """Ask for what is not known of changes and starts; say whether anything was."""
    for k in range(members.size):
        job = members[k]
        if k >= sharing.tally[0].members:
            _ask(sharing, job, 1)
            _ask(sharing, job, sharing.jobs[job].least)
            _ask(sharing, job, shares[k])
        elif shares[k] != state.processors[job]:
            _ask(sharing, job, shares[k])
    return bool(sharing.tally[0].asked > 0)


# What happens


@compiled
def _move_ends(state: State, calendar: Calendar, job: int, end: float, believed: float) -> None:
    """Let a run end, and be believed to end, at other times; the heap is not in order then."""
    calendar.end_time[job] = end
    state.planned[job] = state.run[0].turns
    state.run[0].turns += 1
    believe_end(state, job, believed)


@compiled
def _foresee_anew(state: State, calendar: Calendar) -> None:
    """Put the heap of what happens next in order."""
    running = state.run[0].running
    for place in range(running):
        write_event(state, calendar, place, calendar.event_job[place])
    for place in range(running // 2 - 1, -1, -1):
        sift_down(calendar, place, running)


@compiled
def _begin_stretch(state: State, sharing: Sharing, job: int) -> None:
    """Note what a job holds from now on."""
    place = sharing.jobs[job].stretch = sharing.tally[0].stretches
    own = sharing.stretches[place]
    own.job, own.processors, own.first_range = job, state.processors[job], state.first_range[job]
    own.begun = state.run[0].now
    sharing.tally[0].stretches += 1


@compiled
def _resize(state: State, sharing: Sharing, job: int, count: int) -> None:
    """Let a run go on with other processors, as `sim.engine.resizing` does."""
    calendar = sharing.calendar
    own, now, before = sharing.jobs[job], state.run[0].now, state.processors[job]
    left = max(state.believed_end[job] - now, 0.0)
    if now > own.since:
        own.done += (now - own.since) / _runtime(sharing, sharing.true, job, before)
        own.since = now
    if own.curved == 0:
        left *= before / count
    else:
        faster = _runtime(sharing, sharing.believed, job, count)
        left *= faster / _runtime(sharing, sharing.believed, job, before)
    sharing.tally[0].queries += 1
    sharing.stretches[own.stretch].over = now
    reallocate(state, job, count)
    _begin_stretch(state, sharing, job)
    end = now + _runtime(sharing, sharing.true, job, count) * max(1.0 - own.done, 0.0)
    believed, slack = now + left, 1e-9 * abs(end - now) + 1e-12 * abs(end)
    _move_ends(state, calendar, job, end, end if abs(believed - end) <= slack else believed)


@compiled
def _begin(state: State, sharing: Sharing, job: int, count: int) -> None:
    """Start a job on a count; 0 if it is not malleable."""
    calendar = sharing.calendar
    if count > 0:
        calendar.runtime[job] = _runtime(sharing, sharing.true, job, count)
        if count != state.processors[job]:
            sharing.tally[0].queries += 1
            believed = sharing.jobs[job].requested_time * sharing.jobs[job].request / count
            if sharing.jobs[job].curved != 0:
                believed = _runtime(sharing, sharing.believed, job, count)
            state.belief[job] = max(believed, LEAST_BELIEF)
        state.processors[job] = count
    state.waiting[job] = 0
    start(state, job)
    plan_starts(state, calendar)
    sharing.jobs[job].since = state.run[0].now
    _begin_stretch(state, sharing, job)


@compiled
def share_pass(state: State, sharing: Sharing) -> None:
    """Make a pass, as `ReallocatingScheduler` does with `Equipartition` around `EasyScheduler`.

    Nothing has happened where runtimes are asked for: the pass is to be made again.

    Parameters
    ----------
    state : State
    sharing : Sharing
    """
    make_room_for_stretches(sharing)
    tally, held = sharing.tally[0], state.processors
    tally.asked = tally.pending = 0
    _forget_ended(state, sharing)
    begun = state.found[: _find_starts(state, sharing)]
    members, shares = _shared(state, sharing, begun)
    if _ask_of(state, sharing, members, shares):
        state.run[0].asks = 1
        return
    tally.queries += tally.pending
    number = tally.members
    before = held[members[:number]]
    for k in range(number):
        if shares[k] < before[k]:
            _resize(state, sharing, members[k], shares[k])
    new = number
    for job in begun:
        if sharing.jobs[job].least > 0:
            _begin(state, sharing, job, shares[new])
            new += 1
        else:
            _begin(state, sharing, job, 0)
    for k in range(number):
        if shares[k] > before[k]:
            _resize(state, sharing, members[k], shares[k])
    if (shares[:number] != before).any():
        _foresee_anew(state, sharing.calendar)
    sharing.members[: members.size] = members
    tally.members = members.size


@dataclass(frozen=True)
class Equipartition(Reallocation):
    """EQUI (Tucker & Gupta 1989): all malleable jobs get the same, as far as each can use it.

    Whoever can use less gets that and leaves the rest to the others; processors
    that are left over by whole shares go to the oldest jobs. Nothing is
    predicted. The parameters are those of `Reallocation`.
    """

    def share(self, beliefs: Beliefs, members: Members, total: int) -> IntArray:
        """Return equal shares, clipped to what each may hold."""
        return equal_shares(total, members.least, members.largest)

    def compiled_rule(self, scheduler: ReallocatingScheduler, engine: Engine) -> EqualShares | None:
        """Return the rule where passes are those of `share_pass`.

        They are under EASY in the order of arrival, where changes are free, every count
        between the least and the largest of a malleable job is feasible, the predictor
        does not learn, and nobody is kept to the request: there are curves, or nobody waits
        while a processor is free.
        """
        inner, view = scheduler.inner, scheduler.view
        is_free = self.cost.free and self.cost.start(1) == self.distance == 0 and self.reclaim
        if (
            not acts_as(self, Equipartition)
            or not is_free
            or view.predictor.learns
            or engine.kills
            or not foresees(engine.predictor)
            or not (isinstance(inner, EasyScheduler) and inner.is_plain)
            or inner.strict
            or inner.rule["shortest"][0]
            or inner.reservations != 1
            or inner.anew is not None
            or not acts_as(scheduler.allocation, Request)
        ):
            return None
        rule = EqualShares(engine, share_pass)
        return rule if rule.is_supported else None


@dataclass(frozen=True)
class DynamicEquipartition(Reallocation):
    """DEQ (McCann, Vaswani & Zahorjan 1993): EQUI up to each job's believed parallelism.

    Parameters
    ----------
    cost, gain_factor, distance, reclaim
        See `Reallocation`.
    parallelism : {"average", "useful"}
        A job can use its average parallelism, which is the largest believed
        speedup, rounded; or every processor that is believed to shorten it.
    """

    parallelism: Literal["average", "useful"] = "average"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(("average", "useful"), parallelism=self.parallelism)

    def share(self, beliefs: Beliefs, members: Members, total: int) -> IntArray:
        """Return equal shares, clipped to what each may hold and can use."""
        usable = np.array([beliefs.read_off(job, self._usable) for job in members.job])
        largest = np.clip(usable, members.least, members.largest)
        return apportion(np.ones(len(members)), total, members.least, largest)

    def _usable(self, beliefs: Beliefs, job: int) -> int:
        """Return how many processors a job is believed to put to use."""
        table = beliefs.table(job)
        if self.parallelism == "average":
            return max(int(1.0 / float(table[1:].min()) * (1 + TIE) + 0.5), 1)
        return int(first_least(table))


@dataclass(frozen=True)
class GreedyExpansion(Reallocation):
    """Whoever starts takes what is free, then the oldest grow; for a start the oldest shrink.

    After ElastiSim's example and Utrera et al. (2012).

    Parameters
    ----------
    cost, gain_factor, distance, reclaim
        See `Reallocation`.
    victims : {"oldest", "youngest"}
        Who shrinks first.
    """

    victims: Literal["oldest", "youngest"] = "oldest"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(("oldest", "youngest"), victims=self.victims)

    def share(self, beliefs: Beliefs, members: Members, total: int) -> IntArray:
        """Return what each holds, less or more as there is need or room."""
        shares = np.maximum(members.held, members.least)
        running = [k for k, run in enumerate(members.run) if run is not None]
        starting = [k for k, run in enumerate(members.run) if run is None]
        victims = running if self.victims == "oldest" else running[::-1]
        make_room(shares, members.least, total, victims)
        hand_out(shares, members.largest, total, [*starting, *running])
        return shares
