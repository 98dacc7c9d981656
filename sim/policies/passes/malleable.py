"""The compiled pass of malleable jobs: EASY starts jobs, then a rule shares out what they hold.

Jobs start as if each run kept no more than its least, where the rule reclaims what runs hold
beyond it. A pass is `begin_pass`, the rule's `shares`
of what is claimed, and `end_pass`. Where a job may get nothing, `claim_all` and `defer` come
before. What is decided about plain arrays (`lent_end`, `leave_room`, `shared_among`, `stands`) is
what passes in Python go by, too: `sim.policies.reallocation.rule`.
"""

from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.policies.backfill.easy import find_backfills, find_heads
from sim.policies.passes.sharing import Claims, SharingMemory, admit, equal_counts
from sim.policies.reallocation.beliefs import TABLED, seconds_on
from sim.state.availability import BelievedEnds
from sim.state.run_state import State, make_room
from sim.state.run_steps import ask_to_wake, holders_in, resize, runtime_on, start
from sim.state.view import LEAST_BELIEF
from sim.state.waiting_queue import pop, tidy


@compiled
def _relative(sharing: SharingMemory, job: int, count: int) -> float:
    """Return the believed T(n)/T(1), as `Beliefs` does; without a curve speedup is perfect."""
    own, tally = sharing.jobs[job], sharing.tally[0]
    if own.read == 0 and count != 1:
        own.read = own.most <= TABLED
        tally.queries += 1
    if own.request > 0:
        return 1.0 / count
    return runtime_on(sharing.believed, job, count) / runtime_on(sharing.believed, job, 1)


# Who starts, while runs hold the least that they can


@compiled(forceinline=True)
def lent_end(end: float, since: float, pause: float, before: float, after: float) -> float:
    """Return when a run is believed to end that gives up now all that it can.

    Parameters
    ----------
    end, since : float
        When it is believed to end where it is, and from when on it goes on, seconds.
    pause : float
        What the change costs, seconds.
    before, after : float
        Its believed T(n)/T(1) on what it holds, and on what it keeps.
    """
    return since + pause + seconds_on(max(end - since, 0.0), before, after)


@compiled
def _lent_ends(state: State, sharing: SharingMemory) -> BelievedEnds:
    """Return who holds processors, with the least that malleable jobs keep, and until when."""
    running, now = state.run[0].running, state.run[0].now
    jobs = state.holder_job[:running]
    ends, kept = state.believed_end[jobs], state.processors[jobs]
    for k in range(running):
        least, held = sharing.jobs[jobs[k]].least, kept[k]
        if 0 < least < held:
            before, after = _relative(sharing, jobs[k], held), _relative(sharing, jobs[k], least)
            ends[k], kept[k] = lent_end(ends[k], now, 0.0, before, after), least
    order = np.argsort(ends, kind="mergesort")
    return BelievedEnds(ends[order], jobs[order], kept[order])


@compiled
def _find_starts(state: State, sharing: SharingMemory) -> int:
    """Find who starts, in the order of the starts, as EASY decides where the rest is lent."""
    queue, free = sharing.queue, state.run[0].free
    for job in sharing.members[: sharing.tally[0].members if sharing.reclaims else 0]:
        free += state.processors[job] - sharing.jobs[job].least
    free = 0 if sharing.tally[0].held_back else free
    number, free, is_blocked = find_heads(queue, free, sharing.backfilling)
    if is_blocked:
        ends = _lent_ends(state, sharing) if sharing.reclaims else holders_in(state)
        number = find_backfills(queue, ends, free, state.run[0].now, sharing.backfilling)
    return number


# Who gets how many


@compiled
def leave_room(
    held: IntArray,
    least: IntArray,
    largest: IntArray,
    request: IntArray,
    keeps_all: bool,
    strict: bool,
) -> None:
    """Lower what jobs may hold while others wait.

    None grows beyond its request without a curve, and none at all that would keep what it gets.
    Behind a strict head, though, jobs start on more than they wait for.

    Parameters
    ----------
    held, least, largest : numpy.ndarray of int, shape (n,)
        What each holds, 0 if it starts now, and between which counts it may be; the largest
        counts are lowered in place.
    request : numpy.ndarray of int, shape (n,)
        Of jobs without a curve, else 0.
    keeps_all : bool
        Whether nobody can be asked to give up processors for those who wait.
    strict : bool
        Whether nobody passes the head of the queue.
    """
    for k in range(held.size):
        if request[k] > 0:
            largest[k] = min(largest[k], request[k])
        if keeps_all and (held[k] > 0 or not strict):
            largest[k] = 0
        largest[k] = max(largest[k], held[k], least[k])


@compiled(forceinline=True)
def _claims(
    state: State, sharing: SharingMemory, jobs: IntArray, certain: int, total: int, waits: bool
) -> Claims:
    """Return what is claimed by jobs, of whom the members come first.

    Those from `certain` on may get nothing; room is left if others wait.
    """
    own, tally, held = sharing.jobs, sharing.tally[0], np.zeros_like(jobs)
    members, strict = tally.members, sharing.backfilling[0].strict != 0
    held[:members] = state.processors[jobs[:members]]
    least, largest = own["least"][jobs], own["most"][jobs]
    least[certain:] = 0
    if waits:
        keeps_all = not (sharing.reclaims or tally.held_back)
        leave_room(held, least, largest, own["request"][jobs], keeps_all, strict)
    work = relative = np.empty(0)
    if sharing.weighs_work and jobs.size > 0:
        work, relative = _work_left(state, sharing, jobs, equal_counts(largest, total))
    readings, searches = sharing.readings[jobs], sharing.searches
    if searches.size > 0:
        searches = searches[jobs]
    limits, now = (held, least, largest, total), state.run[0].now
    return Claims(readings, *limits, work, relative, sharing.parameters, searches, now)


@compiled
def _work_left(
    state: State, sharing: SharingMemory, jobs: IntArray, counts: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return each job's believed work left, and its T(n)/T(1) on a count."""
    work, relative = np.empty(jobs.size), np.empty(jobs.size)
    members, now = sharing.tally[0].members, state.run[0].now
    for k in range(jobs.size):
        job = jobs[k]
        work[k], relative[k] = sharing.jobs[job].serial, _relative(sharing, job, counts[k])
        if k < members:
            seconds = max(state.believed_end[job] - now, 0.0)
            work[k] = seconds_on(seconds, _relative(sharing, job, state.processors[job]), 1.0)
    return work, relative


@compiled(forceinline=True)
def begin_pass(state: State, sharing: SharingMemory) -> tuple[IntArray, Claims]:
    """Find who starts, as EASY does where runs keep their least; say who shares with whom.

    Returns
    -------
    jobs : numpy.ndarray of int, shape (n,)
        The malleable jobs that run, oldest first, then those that start.
    claims : Claims
        What they may have.
    """
    held, tally = state.processors, sharing.tally[0]
    tally.begun = _find_starts(state, sharing)
    number, found = tally.members, sharing.queue.found[: tally.begun]
    jobs = np.concatenate((sharing.members[:number], sharing.queue.job[found]))
    total = state.run[0].free + held[jobs[:number]].sum()
    for job in jobs[number:]:
        is_malleable = sharing.jobs[job].least > 0
        jobs[number] = job
        number += is_malleable
        total -= 0 if is_malleable else held[job]
    waits = sharing.queue.at[0].waiting > found.size or tally.deferred > 0
    return jobs[:number], _claims(state, sharing, jobs[:number], number, total, waits)


# Where a job may get nothing, it is deferred


class Shared(NamedTuple):
    """What was shared out before anybody started, among those who got something.

    Attributes
    ----------
    jobs, largest, shares : numpy.ndarray of int, shape (n,)
        Who, what each might hold at most, and what it got.
    total : int
        What they might hold together.
    """

    jobs: IntArray
    largest: IntArray
    shares: IntArray
    total: int


@compiled
def shared_among(jobs: IntArray, largest: IntArray, shares: IntArray, total: int) -> Shared:
    """Return what was shared out; jobs that got nothing are deferred."""
    got = shares > 0
    return Shared(jobs[got], largest[got], shares[got], total)


@compiled
def stands(before: Shared, jobs: IntArray, least: IntArray, largest: IntArray, total: int) -> bool:
    """Say whether the shares stand after the starts: among the same jobs with the same limits."""
    if total != before.total or not np.array_equal(jobs, before.jobs):
        return False
    return np.array_equal(largest, before.largest) and not (before.shares < least).any()


@compiled
def _claim_beside(
    state: State, sharing: SharingMemory, jobs: IntArray, deferred: IntArray, total: int
) -> tuple[IntArray, Claims]:
    """Return who claims, and what: jobs, and then those who may get nothing."""
    everybody = np.concatenate((jobs, deferred))
    return everybody, _claims(state, sharing, everybody, jobs.size, total, True)


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
    members = sharing.members[: tally.members] if candidates.size > 0 else nobody
    total = run.free + state.processors[members].sum()
    return _claim_beside(state, sharing, members, candidates, total)


@compiled
def defer(state: State, sharing: SharingMemory, got: IntArray) -> None:
    """Let jobs queue, but for those of `claim_all` who got nothing: they are deferred.

    Parameters
    ----------
    state : State
    sharing : SharingMemory
    got : numpy.ndarray of int, shape (n,)
        Who got something.
    """
    run, tally = state.run[0], sharing.tally[0]
    before, place = sharing.deferred[: tally.deferred].copy(), tally.members
    tally.deferred = 0
    for job in np.concatenate((before, np.arange(run.newcomer, run.arrived))):
        is_malleable = sharing.jobs[job].least > 0
        if is_malleable and (place >= got.size or got[place] != job):
            sharing.deferred[tally.deferred] = job
            tally.deferred += 1
        else:
            admit(state, sharing, job)
            place += is_malleable


# What happens


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
    """Let a run go on with other processors, for whose ranges there is room."""
    own, now, before = sharing.jobs[job], state.run[0].now, state.processors[job]
    left = max(state.believed_end[job] - now, 0.0)
    if own.request > 0:
        left *= before / count
    else:
        faster = runtime_on(sharing.believed, job, count)
        left *= faster / runtime_on(sharing.believed, job, before)
    sharing.tally[0].queries += 1
    sharing.stretches[own.stretch].over = now
    resize(state, job, count, left)
    _begin_stretch(state, sharing, job)


@compiled
def _start(state: State, sharing: SharingMemory, job: int, count: int) -> None:
    """Start a job on a count; 0 if it is not malleable."""
    if count > 0 and count != state.processors[job]:
        sharing.tally[0].queries += 1
        believed = sharing.jobs[job].requested_time * sharing.jobs[job].request / count
        if sharing.jobs[job].request == 0:
            believed = runtime_on(sharing.believed, job, count)
        state.belief[job], state.processors[job] = max(believed, LEAST_BELIEF), count
    start(state, job)
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
    sharing.members[: jobs.size] = jobs
    tally.members = jobs.size
    return 0


# A pass


@compiled
def decide(state: State, sharing: SharingMemory) -> int:
    """Let jobs start and share out processors, whatever the rule."""
    jobs, claims = begin_pass(state, sharing)
    shares = sharing.shares(claims)
    if claims.searches.size > 0:
        sharing.searches[jobs] = claims.searches
        due = claims.searches["due"].min()
        if due != sharing.wake_time:
            sharing.wake_time = due
            ask_to_wake(state, due)
    return end_pass(state, sharing, jobs, shares)


@compiled
def decide_deferring(state: State, sharing: SharingMemory) -> int:
    """Do the same where jobs wait whose share rounds to nothing."""
    everybody, all_claims = claim_all(state, sharing)
    found = sharing.shares(all_claims)
    before = shared_among(everybody, all_claims.largest, found, all_claims.total)
    defer(state, sharing, before.jobs)
    jobs, claims = begin_pass(state, sharing)
    shares, deferred = before.shares, sharing.deferred[: sharing.tally[0].deferred]
    if not stands(before, jobs, claims.least, claims.largest, claims.total):
        if deferred.size > 0:
            _, beside = _claim_beside(state, sharing, jobs, deferred, claims.total)
            shares = sharing.shares(beside)
        if deferred.size == 0 or shares[jobs.size :].any():
            shares = sharing.shares(claims)
    return end_pass(state, sharing, jobs, shares[: jobs.size])
