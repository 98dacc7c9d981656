"""The compiled pass of malleable jobs: EASY starts jobs, then a rule shares out what they hold.

Jobs start as if each run kept no more than its least. A pass is `begin_pass`, the rule's `shares`
of what is claimed, and `end_pass`. Where a job may get nothing, `claim_all` and `defer` come
before, as `Deferral` has it.
"""

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.policies.backfill.easy import find_backfills, find_heads
from sim.policies.passes.sharing import Claims, SharingMemory, admit, equal_counts
from sim.policies.reallocation.beliefs import TABLED
from sim.state.availability import BelievedEnds
from sim.state.calendar import Calendar, sift_down, write_event
from sim.state.predicted import LEAST_BELIEF
from sim.state.run_state import State, believe_end, make_room, reallocate
from sim.state.run_steps import holders_in, plan_ends, start
from sim.state.waiting_queue import pop, tidy


@compiled
def _runtime(sharing: SharingMemory, runtimes: FloatArray, job: int, count: int) -> float:
    """Return a runtime of the table of applications if there is one, else of jobs, seconds."""
    if sharing.g.size > 0:
        own = sharing.jobs[job]
        return float(own.reference_runtime * (sharing.g[own.row, count] / own.reference_g))
    return float(runtimes[job, count - 1])


@compiled
def _relative(sharing: SharingMemory, job: int, count: int) -> float:
    """Return the believed T(n)/T(1), as `Beliefs` does; without a curve speedup is perfect."""
    own, tally = sharing.jobs[job], sharing.tally[0]
    if own.read == 0 and count != 1:
        own.read = own.most <= TABLED
        tally.queries += 1
    if own.curved == 0:
        return 1.0 / count
    believed = sharing.believed
    return _runtime(sharing, believed, job, count) / _runtime(sharing, believed, job, 1)


# Who starts, while runs hold the least that they can


@compiled
def _lent_end(state: State, sharing: SharingMemory, job: int) -> float:
    """Return when a run is believed to end that gave up now all that it can."""
    end, held = state.believed_end[job], state.processors[job]
    least, now = sharing.jobs[job].least, state.run[0].now
    if least == 0 or least == held:
        return float(end)
    seconds = max(end - now, 0.0) * _relative(sharing, job, least)
    return float(now + seconds / _relative(sharing, job, held))


@compiled
def _lent_ends(state: State, sharing: SharingMemory) -> BelievedEnds:
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
def _find_starts(state: State, sharing: SharingMemory, held_back: bool) -> int:
    """Find who starts, in the order of the starts, as EASY decides where the rest is lent."""
    queue, free = sharing.queue, state.run[0].free
    for job in sharing.members[: sharing.tally[0].members if sharing.reclaims else 0]:
        free += state.processors[job] - sharing.jobs[job].least
    free = 0 if held_back else free
    number, free, is_blocked = find_heads(queue, free, sharing.backfilling)
    if is_blocked:
        ends = _lent_ends(state, sharing) if sharing.reclaims else holders_in(state)
        number = find_backfills(queue, ends, free, state.run[0].now, sharing.backfilling)
    return number


# Who gets how many


@compiled(forceinline=True)
def _claims(state: State, sharing: SharingMemory, jobs: IntArray, total: int) -> Claims:
    """Return what is claimed by jobs, of whom the members come first."""
    own, members = sharing.jobs, sharing.tally[0].members
    holding, least, largest = np.zeros_like(jobs), own["least"][jobs], own["most"][jobs]
    holding[:members] = state.processors[jobs[:members]]
    work = stretch = np.empty(0)
    if sharing.weighs_work and jobs.size > 0:
        work, stretch = _work_left(state, sharing, jobs, equal_counts(largest, total))
    readings = sharing.readings[jobs]
    return Claims(readings, holding, least, largest, total, work, stretch, sharing.parameters)


@compiled
def _work_left(
    state: State, sharing: SharingMemory, jobs: IntArray, counts: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return each job's believed work left, and its T(n)/T(1) on a count."""
    work, stretch = np.empty(jobs.size), np.empty(jobs.size)
    members, now = sharing.tally[0].members, state.run[0].now
    for k in range(jobs.size):
        job = jobs[k]
        work[k], stretch[k] = sharing.jobs[job].serial, _relative(sharing, job, counts[k])
        if k < members:
            seconds = max(state.believed_end[job] - now, 0.0)
            work[k] = seconds / _relative(sharing, job, state.processors[job])
    return work, stretch


@compiled(forceinline=True)
def begin_pass(
    state: State, sharing: SharingMemory, held_back: bool = False
) -> tuple[IntArray, Claims]:
    """Find who starts, as EASY does where runs keep their least; say who shares with whom.

    Parameters
    ----------
    state : State
    sharing : SharingMemory
    held_back : bool
        Whether nobody may start.

    Returns
    -------
    jobs : numpy.ndarray of int, shape (n,)
        The malleable jobs that run, oldest first, then those that start.
    claims : Claims
        What they may have.
    """
    held, tally = state.processors, sharing.tally[0]
    tally.begun = _find_starts(state, sharing, held_back)
    number, found = tally.members, sharing.queue.found[: tally.begun]
    jobs = np.concatenate((sharing.members[:number], sharing.queue.job[found]))
    total = state.run[0].free + held[jobs[:number]].sum()
    for job in jobs[number:]:
        is_malleable = sharing.jobs[job].least > 0
        jobs[number] = job
        number += is_malleable
        total -= 0 if is_malleable else held[job]
    claims = _claims(state, sharing, jobs[:number], total)
    if sharing.queue.at[0].waiting > found.size:
        _leave_room(sharing, jobs[:number], claims, not (sharing.reclaims or held_back))
    return jobs[:number], claims


@compiled
def _leave_room(sharing: SharingMemory, jobs: IntArray, claims: Claims, keeps_all: bool) -> None:
    """Let none grow beyond its request without a curve, and none that would keep what it gets.

    Behind a strict head, though, jobs start on more than they wait for.
    """
    request, most = sharing.jobs["request"][jobs], claims.largest
    most[:] = np.where(sharing.jobs["curved"][jobs] != 0, most, np.minimum(most, request))
    if keeps_all:
        most[: sharing.tally[0].members if sharing.backfilling[0].strict else jobs.size] = 0
    most[:] = np.maximum(most, np.maximum(claims.held, claims.least))


# Where a job may get nothing, it is deferred


@compiled
def claim_all(state: State, sharing: SharingMemory) -> tuple[IntArray, Claims]:
    """Say what malleable jobs claim that run, are deferred, or have just arrived.

    The parameters and what is returned are those of `begin_pass`; nobody is there if nobody is
    deferred or has arrived.
    """
    run, tally, nobody = state.run[0], sharing.tally[0], np.zeros(0, np.int64)
    new = np.arange(run.newcomer, run.arrived)
    new = new[sharing.jobs["least"][new] > 0]
    candidates = np.concatenate((sharing.deferred[: tally.deferred], new))
    if candidates.size == 0:
        return nobody, _claims(state, sharing, nobody, 0)
    members = sharing.members[: tally.members]
    total = run.free + state.processors[members].sum()
    everybody = np.concatenate((members, candidates))
    claims = _claims(state, sharing, everybody, total)
    claims.least[members.size :] = 0
    return everybody, claims


@compiled
def defer(state: State, sharing: SharingMemory, shares: IntArray) -> None:
    """Let jobs queue, but for those who claimed all and get nothing: they are deferred.

    Parameters
    ----------
    state : State
    sharing : SharingMemory
    shares : numpy.ndarray of int, shape (n,)
        Of those of `claim_all`.
    """
    run, tally = state.run[0], sharing.tally[0]
    before, place = sharing.deferred[: tally.deferred].copy(), tally.members
    tally.deferred = 0
    for job in np.concatenate((before, np.arange(run.newcomer, run.arrived))):
        is_malleable = sharing.jobs[job].least > 0
        if is_malleable and shares[place] == 0:
            sharing.deferred[tally.deferred] = job
            tally.deferred += 1
        else:
            admit(state, sharing, job)
        place += is_malleable


@compiled
def claim_beside_deferred(
    state: State, sharing: SharingMemory, jobs: IntArray, total: int
) -> Claims:
    """Return what is claimed by jobs and by those who are deferred, who come last."""
    deferred = sharing.deferred[: sharing.tally[0].deferred]
    claims = _claims(state, sharing, np.concatenate((jobs, deferred)), total)
    claims.least[jobs.size :] = 0
    return claims


# What happens


@compiled
def _foresee_anew(state: State, calendar: Calendar) -> None:
    """Put the heap of what happens next in order."""
    running = state.run[0].running
    for place in range(running):
        write_event(state, calendar, place, calendar.event_job[place])
    for place in range(running // 2 - 1, -1, -1):
        sift_down(calendar, place, running)


@compiled
def _begin_stretch(state: State, sharing: SharingMemory, job: int) -> None:
    """Note what a job holds from now on."""
    place = sharing.jobs[job].stretch = sharing.tally[0].stretches
    own = sharing.stretches[place]
    own.job, own.processors, own.first_range = job, state.processors[job], state.first_range[job]
    own.begun = state.run[0].now
    sharing.tally[0].stretches += 1


@compiled
def _resize(state: State, sharing: SharingMemory, job: int, count: int) -> None:
    """Let a run go on with other processors, as `sim.engine.resizing` does.

    There is room for their ranges; the heap of what happens next is not in order then.
    """
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
    sharing.calendar.end_time[job] = end
    state.planned[job] = state.run[0].turns
    state.run[0].turns += 1
    believe_end(state, job, end if abs(believed - end) <= slack else believed)


@compiled
def _start(state: State, sharing: SharingMemory, job: int, count: int) -> None:
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
    start(state, job)
    plan_ends(state, calendar)
    sharing.jobs[job].since = state.run[0].now
    _begin_stretch(state, sharing, job)


@compiled(forceinline=True)
def end_pass(state: State, sharing: SharingMemory, jobs: IntArray, shares: IntArray) -> int:
    """Let jobs shrink, start and grow, as `ReallocatingScheduler` does; nobody is left to start.

    Parameters
    ----------
    state : State
    sharing : SharingMemory
    jobs : numpy.ndarray of int, shape (n,)
        As `begin_pass` returns them.
    shares : numpy.ndarray of int, shape (n,)
        What each gets.
    """
    tally, queue = sharing.tally[0], sharing.queue
    number = tally.members
    before = state.processors[jobs[:number]]
    make_room(state, shares.sum())
    for k in range(number):
        if shares[k] < before[k]:
            _resize(state, sharing, jobs[k], shares[k])
    new = number
    for place in queue.found[: tally.begun]:
        job = queue.job[place]
        is_malleable = sharing.jobs[job].least > 0
        _start(state, sharing, job, shares[new] if is_malleable else 0)
        new += is_malleable
        pop(queue, place)
    tidy(queue)
    make_room(state, shares.sum())
    for k in range(number):
        if shares[k] > before[k]:
            _resize(state, sharing, jobs[k], shares[k])
    if (shares[:number] != before).any():
        _foresee_anew(state, sharing.calendar)
    sharing.members[: jobs.size] = jobs
    tally.members = jobs.size
    return 0


# A pass


@compiled
def decide(state: State, sharing: SharingMemory) -> int:
    """Let jobs start and share out processors, whatever the rule."""
    jobs, claims = begin_pass(state, sharing)
    return end_pass(state, sharing, jobs, sharing.shares(claims))


@compiled
def decide_deferring(state: State, sharing: SharingMemory) -> int:
    """Do the same where jobs wait whose share rounds to nothing."""
    everybody, all_claims = claim_all(state, sharing)
    found = sharing.shares(all_claims)
    defer(state, sharing, found)
    jobs, claims = begin_pass(state, sharing)
    shares, asked = found[found > 0], everybody[found > 0]
    as_found = claims.total == all_claims.total and np.array_equal(jobs, asked)
    if not as_found or (shares < claims.least).any():
        shares = sharing.shares(claim_beside_deferred(state, sharing, jobs, claims.total))
        if shares[jobs.size :].any():
            shares = sharing.shares(claims)
    return end_pass(state, sharing, jobs, shares[: jobs.size])
