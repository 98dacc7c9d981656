"""Compiled steps of a run: what starts, ends, expires, arrives and wakes, and when that is next.

What really happens to each job when stands in a calendar, which the loop of events alone holds.
A running job stands once in its heap of what happens next: the end of its run, or before that
the expiry of its belief.
"""

from typing import Any, cast

import numpy as np
from numba.experimental import structref
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.state import run_state
from sim.state.availability import BelievedEnds
from sim.state.run_state import RunState, longer, rank_in
from workloads.base import Tabled

EXPIRY_OFFSET = 1 << 62
"""From here on expiries are numbered: at one instant they come after all ends."""


class Calendar(structref.StructRefProxy):
    """What nobody may know who decides or predicts: who comes, how long each runs, until when.

    Attributes
    ----------
    submit_time, runtime, end_time : numpy.ndarray of float, shape (n,), seconds
        Of each job.
    menu_runtimes : numpy.ndarray of float, shape (c,), seconds
        How long runs take on the counts that jobs may choose from.
    limit : numpy.ndarray of float, shape (n,), seconds
        How long each may run before it is killed.
    killed : numpy.ndarray of bool, shape (n,)
        Who is, or will be.
    requested_time : numpy.ndarray of float, shape (n,), seconds
        Up to how long its belief is corrected.
    event_time : numpy.ndarray of float, shape (r,), seconds
        A heap of when what happens next to running jobs.
    event_sequence, event_job : numpy.ndarray of int, shape (r,)
        The number of its plan, and to whom it happens.
    corrections : numpy.ndarray of float, shape (k,), ascending, seconds
        By how much a belief that is outlived grows, one after the other, up to the requested
        time; beyond, or without them, it doubles.
    done, since : numpy.ndarray of float, shape (n,)
        The share of each run that was done by an instant, and that, seconds; empty where counts
        stay.
    by_count : Tabled
        How long runs take on each count that they may change to; a job's row is -1 where it keeps
        the count that it starts on.
    """

    submit_time: FloatArray
    runtime: FloatArray
    menu_runtimes: FloatArray
    limit: FloatArray
    killed: NDArray[np.bool_]
    end_time: FloatArray
    requested_time: FloatArray
    event_time: FloatArray
    event_sequence: IntArray
    event_job: IntArray
    corrections: FloatArray
    done: FloatArray
    since: FloatArray
    by_count: Tabled


CalendarType = run_state.struct_type(Calendar)


def make_calendar(jobs: int, running: int, **known: Any) -> Calendar:
    """Return a calendar for so many jobs, of which so many run at once; nobody is killed.

    Parameters
    ----------
    jobs, running : int
    **known : object
        Other fields, of which arrays are kept, not copied.
    """
    sizes = dict.fromkeys(("event_time", "event_sequence", "event_job"), running)
    sizes |= dict.fromkeys(("menu_runtimes", "corrections", "done", "since"), 0)
    fields: dict[str, Any] = {}
    for name, kind in run_state.kinds_in(Calendar).items():
        fields[name] = np.zeros(sizes.get(name, jobs), kind)
    fields["limit"][:] = np.inf
    fields["by_count"] = Tabled(np.zeros((0, 0)), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
    return cast(Calendar, run_state.structure(run_state.maker(Calendar), fields | known))


def padded(rows: list[FloatArray]) -> FloatArray:
    """Return rows of unlike length as one table, with -1 behind the end of each."""
    table = np.full((len(rows), max((row.size for row in rows), default=0)), -1.0)
    for row, own in zip(table, rows, strict=True) if table.size > 0 else ():
        row[: own.size] = own
    return table


def by_job(runtimes: dict[int, FloatArray], jobs: int) -> Tabled:
    """Return runtimes by count, from no processors on, of some jobs out of so many."""
    row, ones = np.full(jobs, -1), np.ones(jobs)
    row[[*runtimes]] = np.arange(len(runtimes))
    return Tabled(padded([*runtimes.values()]), row, ones, ones)


@compiled
def runtime_on(by_count: Tabled, job: int, processors: int) -> float:
    """Return the runtime of a job on a count, seconds."""
    scale = by_count.g[by_count.row[job], processors] / by_count.reference_g[job]
    return float(by_count.runtimes[job] * scale)


@compiled(forceinline=True)
def seconds_on(seconds: float, before: float, after: float) -> float:
    """Return what is left of a job on another count, by its believed T(n)/T(1) on both."""
    return seconds * after / before


@compiled
def _is_sooner(calendar: Calendar, one: int, other: int) -> bool:
    time, turn = calendar.event_time, calendar.event_sequence
    if time[one] != time[other]:
        return bool(time[one] < time[other])
    return bool(turn[one] < turn[other])


@compiled(forceinline=True)
def swap(calendar: Calendar, one: int, other: int) -> None:
    """Let two entries of the heap change places."""
    time = calendar.event_time
    time[one], time[other] = time[other], time[one]
    for column in (calendar.event_sequence, calendar.event_job):
        column[one], column[other] = column[other], column[one]


@compiled
def sift_down(calendar: Calendar, here: int, size: int) -> None:
    """Move an entry of the heap down to where it belongs."""
    while True:
        least, left = here, 2 * here + 1
        for child in range(left, min(left + 2, size)):
            if _is_sooner(calendar, child, least):
                least = child
        if least == here:
            return
        swap(calendar, here, least)
        here = least


@compiled(forceinline=True)
def sift_up(calendar: Calendar, here: int) -> None:
    """Move an entry of the heap up to where it belongs."""
    while here > 0 and _is_sooner(calendar, here, (here - 1) // 2):
        swap(calendar, here, (here - 1) // 2)
        here = (here - 1) // 2


@compiled(forceinline=True)
def write_event(state: RunState, calendar: Calendar, place: int, job: int) -> None:
    """Write what happens next to a running job into a place of the heap.

    Ends at one instant are taken in by the order in which they were planned, expiries by
    that in which they were foreseen.
    """
    end, believed, run = calendar.end_time[job], state.believed_end[job], state.scalars[0]
    turn = EXPIRY_OFFSET + run.sequence if end > believed else state.end_sequence[job]
    calendar.event_time[place] = min(end, believed)
    calendar.event_sequence[place], calendar.event_job[place] = turn, job
    run.sequence += 1


@compiled(inline="always")
def holders_in(state: RunState) -> BelievedEnds:
    """Return who holds processors, and until when by belief."""
    number = state.scalars[0].holders
    return BelievedEnds(
        state.holder_end[:number], state.holder_job[:number], state.holder_processors[:number]
    )


# Passes that were asked for


@compiled
def ask_to_wake(state: RunState, instant: float) -> None:
    """See to it that there is a pass then; infinity asks for none."""
    run = state.scalars[0]
    if instant == np.inf:
        return
    if run.wakes == state.wakes.size:
        state.wakes = longer(state.wakes, 2 * run.wakes)
    place = rank_in(state.wakes[: run.wakes], instant)
    run_state.shift(state.wakes, place, run.wakes, 1)
    state.wakes[place] = instant
    run.wakes += 1


@compiled
def withdraw_wake(state: RunState, instant: float) -> None:
    """Forget that there shall be a pass then, once, if somebody asked for it."""
    run, wakes = state.scalars[0], state.wakes
    place = rank_in(wakes[: run.wakes], instant)
    if place < run.wakes and wakes[place] == instant:
        run_state.shift(wakes, place + 1, run.wakes, -1)
        run.wakes -= 1


@compiled
def hand_over_wakes(origin: RunState, to: RunState) -> None:
    """Let a state have all instants for which another was asked for a pass."""
    to.wakes, to.scalars[0].wakes = origin.wakes, origin.scalars[0].wakes


@compiled(inline="always")
def _wake(state: RunState, now: float) -> int:
    """Forget who asked for this instant, and count them."""
    run, wakes, past = state.scalars[0], state.wakes, 0
    while past < run.wakes and wakes[past] == now:
        past += 1
    run_state.shift(wakes, past, run.wakes, -past)
    run.wakes -= past
    return past


# Steps

LEAST_CORRECTION = 0.5
"""Seconds: what rounding adds to a believed total is less."""


@compiled(inline="always")
def _happened(state: RunState, events: int) -> None:
    """Count what happened; there is a pass if anything did."""
    state.scalars[0].events += events
    if events > 0:
        state.scalars[0].pass_due = 1


@compiled
def give_count(state: RunState, job: int, processors: int, belief: float, choice: int) -> None:
    """Let a job have a count that it was offered.

    Parameters
    ----------
    state : RunState
    job, processors : int
    belief : float
        Its runtime there, seconds.
    choice : int
        At which place it was offered.
    """
    state.processors[job], state.belief[job], state.choice[job] = processors, belief, choice


@compiled(inline="always")
def start(state: RunState, job: int) -> None:
    """Start a waiting job on the processors that it wants; the loop plans its end."""
    run = state.scalars[0]
    run_state.allocate(state, job)
    _hold(state, job, run.now + state.belief[job])
    state.start_order[run.started] = job
    run.started += 1


@compiled(inline="always")
def _hold(state: RunState, job: int, believed_end: float) -> None:
    """Let a job hold the processors that it has from now on."""
    state.start_time[job], state.believed_end[job] = state.scalars[0].now, believed_end
    run_state.push_holder(state, believed_end, job, state.processors[job])
    _number_end(state, job)


@compiled(inline="always")
def _number_end(state: RunState, job: int) -> None:
    """Let a job end after those whose ends, at the same instant, were decided before."""
    state.end_sequence[job] = state.scalars[0].sequence
    state.scalars[0].sequence += 1


@compiled(forceinline=True)
def resize(state: RunState, job: int, processors: int, seconds: float) -> None:
    """Let a run go on with other processors; the loop plans its end.

    Whoever calls makes room for so many ranges.

    Parameters
    ----------
    state : RunState
    job, processors : int
    seconds : float
        That it is believed to go on.
    """
    run = state.scalars[0]
    run_state.reallocate(state, job, processors)
    run_state.believe_end(state, job, run.now + seconds)
    _number_end(state, job)
    state.resized_jobs[run.resized] = job
    run.resized += 1


@compiled(inline="always")
def cut_at_limit(end: float, limit: float, now: float) -> tuple[float, bool]:
    """Return when a run ends that may not outlast a limit, and whether it is killed then."""
    return (max(limit, now), True) if limit < end else (end, False)


@compiled(inline="always")
def plan_ends(state: RunState, calendar: Calendar) -> None:
    """Plan the ends of those who go on with other processors, or started and have none yet.

    What they really take on the counts that they chose was put down with what they were offered.
    """
    run, now = state.scalars[0], state.scalars[0].now
    for job in state.resized_jobs[: run.resized]:
        _move_end(state, calendar, job)
    for place in range(run.ends_planned, run.started):
        job = state.start_order[place]
        if calendar.menu_runtimes.size > 0:
            calendar.runtime[job] = calendar.menu_runtimes[state.choice[job]]
        elif calendar.since.size > 0:
            _begin_work(state, calendar, job)
        end = now + calendar.runtime[job]
        end, calendar.killed[job] = cut_at_limit(end, now + calendar.limit[job], now)
        _plan_run(state, calendar, job, end)
    run.ends_planned = run.started
    if run.resized > 0:  # put the heap of what happens next in order
        run.resized = 0
        for place in range(run.running):
            write_event(state, calendar, place, calendar.event_job[place])
        for place in range(run.running // 2 - 1, -1, -1):
            sift_down(calendar, place, run.running)


@compiled(forceinline=True)
def _begin_work(state: RunState, calendar: Calendar, job: int) -> None:
    """Let a run go on from now with the processors that it holds."""
    calendar.since[job] = state.scalars[0].now
    if calendar.by_count.row[job] >= 0:
        held = state.processors[job]
        calendar.runtime[job] = runtime_on(calendar.by_count, job, held)


@compiled(inline="always")
def seconds_left(runtime: float, done: float) -> float:
    """Return how long the rest takes of a run of which a share is done, seconds."""
    return runtime * max(1.0 - done, 0.0)


@compiled(inline="always")
def _move_end(state: RunState, calendar: Calendar, job: int) -> None:
    """Let a run that goes on with other processors end when the rest is done on them."""
    now, since = state.scalars[0].now, calendar.since[job]
    if now > since:
        calendar.done[job] += (now - since) / calendar.runtime[job]
    _begin_work(state, calendar, job)
    end = calendar.end_time[job] = now + seconds_left(calendar.runtime[job], calendar.done[job])
    run_state.believe_end(state, job, run_state.snapped(state.believed_end[job], end, now))


@compiled(inline="always")
def _plan_run(state: RunState, calendar: Calendar, job: int, end: float) -> None:
    """Plan what happens to a run that begins."""
    run = state.scalars[0]
    running = run.running
    calendar.end_time[job] = end
    write_event(state, calendar, running, job)
    sift_up(calendar, running)
    run.running += 1


@compiled
def begin_run(state: RunState, calendar: Calendar, job: int, end: float, believed: float) -> None:
    """Let a job run that has its processors, and plan what happens to it."""
    _hold(state, job, believed)
    _plan_run(state, calendar, job, end)


@compiled(inline="always")
def vacate_at(state: RunState, calendar: Calendar, job: int, place: int) -> None:
    """Take a job off the machine that stands at this place of the heap."""
    run, ranges = state.scalars[0], state.ranges
    for k in range(state.first_range[job], state.last_range[job]):
        run_state.release(state, ranges[k].low, ranges[k].high)
    run.free += state.processors[job]
    run_state.pop_holder(state, state.believed_end[job], job)
    last = run.running - 1
    run.running = last
    if place < last:
        swap(calendar, place, last)
        sift(state, calendar, place)


@compiled(forceinline=True)
def sift(state: RunState, calendar: Calendar, place: int) -> None:
    """Move an entry of the heap to where it belongs."""
    sift_up(calendar, place)
    sift_down(calendar, place, state.scalars[0].running)


@compiled(inline="always")
def process_ends(state: RunState, calendar: Calendar, now: float) -> int:
    """Take off whose runs end then, note who it was, and count them."""
    time, turn = calendar.event_time, calendar.event_sequence
    run, number = state.scalars[0], 0
    while run.running > 0 and time[0] == now and turn[0] < EXPIRY_OFFSET:
        job = state.ended_jobs[number] = calendar.event_job[0]
        number += 1
        vacate_at(state, calendar, job, 0)
    run.ended_now = number
    run.ended += number
    _happened(state, number)
    return number


@compiled
def _corrected(state: RunState, calendar: Calendar, job: int, total: float) -> float:
    """Return what is believed of a job in all that has outlived its believed total."""
    request, corrections = float(calendar.requested_time[job]), calendar.corrections
    if corrections.size == 0 or total > request - LEAST_CORRECTION:
        since = state.scalars[0].now - state.start_time[job]
        return float(max(2.0 * total, since + 1.0))
    for correction in corrections:
        longer = float(state.belief[job] + correction)
        if longer > total + LEAST_CORRECTION:
            return min(longer, request)
    return request


@compiled(inline="always")
def _expire(state: RunState, calendar: Calendar, job: int) -> None:
    """Let the believed total grow of the job at the top of the heap, which has outlived it."""
    start_time, believed = state.start_time[job], state.believed_end[job]
    run_state.believe_end(
        state, job, start_time + _corrected(state, calendar, job, believed - start_time)
    )
    write_event(state, calendar, 0, job)
    sift_down(calendar, 0, state.scalars[0].running)


@compiled(forceinline=True)
def next_event_time(state: RunState, calendar: Calendar) -> float:
    """Return when something happens next, in seconds; infinity if nothing does."""
    run, following = state.scalars[0], np.inf
    if run.running > 0:
        following = calendar.event_time[0]
    if run.arrived < calendar.submit_time.size:
        following = min(following, calendar.submit_time[run.arrived])
    if run.wakes > 0:
        following = min(following, state.wakes[0])
    return float(following)


@compiled(forceinline=True)
def process_instant(state: RunState, calendar: Calendar, now: float) -> None:
    """Process ends, expiries, arrivals and wake-ups of an instant."""
    run, expired = state.scalars[0], 0
    run.now = now
    process_ends(state, calendar, now)
    while run.running > 0 and calendar.event_time[0] == now:  # who ended is no longer there
        job = state.expired_jobs[expired] = calendar.event_job[0]
        expired += 1
        _expire(state, calendar, job)
    run.expired_now = expired
    last = run.first_arrived = run.arrived
    while last < calendar.submit_time.size and calendar.submit_time[last] == now:
        last += 1
    run.arrived = last
    run.woken_now = _wake(state, now)
    _happened(state, expired + (last > run.first_arrived) + run.woken_now)


# One thing at a time, as rules in Python decide it


@compiled
def _event_place(calendar: Calendar, job: int) -> int:
    """Return where a running job stands in the heap."""
    jobs, place = calendar.event_job, 0
    while jobs[place] != job:
        place += 1
    return place


@compiled
def _plan_anew(state: RunState, calendar: Calendar, job: int) -> None:
    place = _event_place(calendar, job)
    write_event(state, calendar, place, job)
    sift(state, calendar, place)


@compiled
def set_true_end(state: RunState, calendar: Calendar, job: int, end: float) -> None:
    """Let a running job end at another time."""
    calendar.end_time[job] = end
    _number_end(state, job)
    _plan_anew(state, calendar, job)


@compiled
def move_believed_end(state: RunState, calendar: Calendar, job: int, end: float) -> None:
    """Believe that a running job ends at another time."""
    run_state.believe_end(state, job, end)
    _plan_anew(state, calendar, job)


@compiled
def vacate(state: RunState, calendar: Calendar, job: int) -> None:
    """Take a job off the machine before its end."""
    vacate_at(state, calendar, job, _event_place(calendar, job))
