"""The compiled pass of malleable jobs: EASY starts jobs, then a rule shares out what they hold.

Jobs start as if each run kept no more than its least. A rule's pass is `begin_pass`, its own
function of what is claimed, and `end_pass`.
"""

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.policies.backfill.queue_search import Opening, backfill, find_heads
from sim.policies.passes.sharing import BLOCK, Claims, Sharing, make_room_for_stretches
from sim.policies.reallocation.beliefs import TABLED
from sim.state.availability import BelievedEnds
from sim.state.calendar import Calendar, sift_down, write_event
from sim.state.predicted import LEAST_BELIEF
from sim.state.run_state import State, believe_end, reallocate
from sim.state.run_steps import plan_ends, start, waiting_jobs
from sim.state.waiting_queue import Summaries, forget


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
    if sharing.jobs[job].read == 0 and sharing.jobs[job].most > TABLED:
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
    run, waiting, found = state.run[0], waiting_jobs(state), state.found
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
def begin_pass(state: State, sharing: Sharing) -> tuple[IntArray, Claims]:
    """Find who starts, as EASY does where runs keep their least; say who shares with whom.

    Parameters
    ----------
    state : State
    sharing : Sharing

    Returns
    -------
    jobs : numpy.ndarray of int, shape (n,)
        The malleable jobs that run, oldest first, then those that start.
    claims : Claims
        What they may have.
    """
    make_room_for_stretches(sharing)
    held, own, tally = state.processors, sharing.jobs, sharing.tally[0]
    tally.asked = tally.pending = 0
    _forget_ended(state, sharing)
    tally.begun = _find_starts(state, sharing)
    begun, number = state.found[: tally.begun], tally.members
    jobs = np.empty(number + begun.size, np.int64)
    jobs[:number] = sharing.members[:number]
    total = state.run[0].free + held[jobs[:number]].sum()
    for job in begun:
        if own[job].least > 0:
            jobs[number] = job
            number += 1
        else:
            total -= held[job]
    jobs = jobs[:number]
    holding, least, largest = np.zeros(number, np.int64), np.empty_like(jobs), np.empty_like(jobs)
    for k in range(number):
        least[k], largest[k] = own[jobs[k]].least, own[jobs[k]].most
    holding[: tally.members] = held[jobs[: tally.members]]
    return jobs, Claims(sharing.readings[jobs], holding, least, largest, total, sharing.variant)


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
    plan_ends(state, calendar)
    sharing.jobs[job].since = state.run[0].now
    _begin_stretch(state, sharing, job)


@compiled
def end_pass(state: State, sharing: Sharing, jobs: IntArray, shares: IntArray) -> None:
    """Let jobs shrink, start and grow, as `ReallocatingScheduler` does.

    Nothing happens where runtimes are asked for: the pass is to be made again.

    Parameters
    ----------
    state : State
    sharing : Sharing
    jobs : numpy.ndarray of int, shape (n,)
        As `begin_pass` returns them.
    shares : numpy.ndarray of int, shape (n,)
        What each gets.
    """
    tally = sharing.tally[0]
    if _ask_of(state, sharing, jobs, shares):
        state.run[0].asks = 1
        return
    tally.queries += tally.pending
    number = tally.members
    before = state.processors[jobs[:number]]
    for k in range(number):
        if shares[k] < before[k]:
            _resize(state, sharing, jobs[k], shares[k])
    new = number
    for job in state.found[: tally.begun]:
        if sharing.jobs[job].least > 0:
            _begin(state, sharing, job, shares[new])
            new += 1
        else:
            _begin(state, sharing, job, 0)
    for k in range(number):
        if shares[k] > before[k]:
            _resize(state, sharing, jobs[k], shares[k])
    if (shares[:number] != before).any():
        _foresee_anew(state, sharing.calendar)
    sharing.members[: jobs.size] = jobs
    tally.members = jobs.size
