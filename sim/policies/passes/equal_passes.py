"""Compiled passes of equal shares under EASY, over the tables of a run (EQUI)."""

import numpy as np

from predictors.base import IntArray
from predictors.compiling import compiled
from sim.policies.backfill.queue_search import (
    Opening,
    Summaries,
    backfill,
    find_heads,
    forget,
)
from sim.policies.passes.sharing import (
    ASKED,
    BEGUN,
    BELIEVED,
    BLOCK,
    COUNT,
    CURVED,
    DONE,
    FIRST,
    LEAST,
    MEMBERS,
    MOST,
    OF,
    OVER,
    PENDING,
    QUERIES,
    READ,
    REFERENCE,
    REFERENCE_G,
    REQUEST,
    REQUESTED,
    ROW,
    SINCE,
    STRETCH,
    STRETCHES,
    TRUE,
    UNUSED,
    Sharing,
)
from sim.policies.reallocation.beliefs import TABLED
from sim.policies.reallocation.shares import apportion
from sim.state.availability import BelievedEnds
from sim.state.calendar import END, JOB, RUNTIME, Calendar, foresee, sink
from sim.state.run_steps import start, waiting_in
from sim.state.run_tables import (
    ARRIVED,
    BELIEF,
    BELIEVED_END,
    BELIEVED_JOB,
    ENDED_NOW,
    ENDED_ONE,
    FIRST_RANGE,
    FOUND,
    FREE,
    HEAD,
    NEW,
    NOW,
    PLANNED,
    PROCESSORS,
    RUNNING,
    TURNS,
    Tables,
    believe,
    exchange,
)
from sim.state.view import LEAST_BELIEF


@compiled()
def has_room(sharing: Sharing) -> bool:
    """Say whether all that a pass may append finds room."""
    return bool(sharing.times.shape[1] - sharing.tallies[STRETCHES] >= sharing.members.size)


@compiled()
def _runtime(sharing: Sharing, kind: int, job: int, count: int) -> float:
    """Return a runtime of the table, or that was asked for, seconds."""
    if sharing.g.size > 0:
        reference, at_reference = sharing.work[REFERENCE, job], sharing.work[REFERENCE_G, job]
        return float(reference * (sharing.g[sharing.jobs[ROW, job], count] / at_reference))
    block = sharing.pages[(count - 1) // BLOCK, job]
    return float(sharing.blocks[kind, block, (count - 1) % BLOCK])


@compiled()
def _relative(sharing: Sharing, job: int, count: int) -> float:
    """Return the believed T(n)/T(1); without a curve speedup is perfect."""
    if sharing.jobs[CURVED, job] == 0:
        return 1.0 / count
    return _runtime(sharing, BELIEVED, job, count) / _runtime(sharing, BELIEVED, job, 1)


@compiled()
def _forget_ended(tables: Tables, sharing: Sharing) -> None:
    """Take those who ended now from the members, and what was known of them."""
    held, members, tallies = tables.numbers[PROCESSORS], sharing.members, sharing.tallies
    for job in tables.running[ENDED_ONE, : tables.counters[ENDED_NOW]]:
        held[job] = sharing.jobs[MOST, job] = 0
        for page in range(sharing.pages.shape[0]):
            if sharing.pages[page, job] >= 0:
                sharing.unused[tallies[UNUSED]] = sharing.pages[page, job]
                sharing.pages[page, job] = -1
                tallies[UNUSED] += 1
    left = 0
    for member in members[: tallies[MEMBERS]]:
        if held[member] > 0:
            members[left] = member
            left += 1
    tallies[MEMBERS] = left


# Who starts, while runs hold the least that they can


@compiled()
def _lent_end(tables: Tables, sharing: Sharing, job: int) -> float:
    """Return when a run is believed to end that gave up now all that it can."""
    end, held = tables.seconds[BELIEVED_END, job], tables.numbers[PROCESSORS, job]
    least, tallies, now = sharing.jobs[LEAST, job], sharing.tallies, tables.instant[NOW]
    if least == 0 or least == held:
        return float(end)
    if sharing.jobs[MOST, job] > TABLED:
        tallies[PENDING] += (least != 1) + 1
    elif sharing.jobs[READ, job] == 0:
        sharing.jobs[READ, job] = 1
        tallies[QUERIES] += 1
    seconds = max(end - now, 0.0)
    seconds *= _relative(sharing, job, least)
    return float(now + seconds / _relative(sharing, job, held))


@compiled(makes_arrays=True)
def _lent_ends(tables: Tables, sharing: Sharing) -> BelievedEnds:
    """Return who holds processors, with the least that malleable jobs keep, and until when."""
    running = tables.counters[RUNNING]
    jobs = tables.running[BELIEVED_JOB, :running]
    ends, held = np.empty(running), np.empty(running, np.int64)
    for k in range(running):
        least = sharing.jobs[LEAST, jobs[k]]
        ends[k] = _lent_end(tables, sharing, jobs[k])
        held[k] = least if least > 0 else tables.numbers[PROCESSORS, jobs[k]]
    order = np.argsort(ends)
    return BelievedEnds(ends[order], jobs[order], held[order])


@compiled(makes_arrays=True)
def _find_starts(tables: Tables, sharing: Sharing, summaries: Summaries) -> int:
    """Find who starts, in the order of the starts, as EASY decides where the rest is lent."""
    counters, waiting = tables.counters, waiting_in(tables)
    found, last = tables.running[FOUND], counters[ARRIVED]
    for job in range(counters[NEW], last):
        waiting.counts[job] = tables.numbers[PROCESSORS, job]
    forget(summaries, counters[NEW], last)
    while counters[HEAD] < last and waiting.counts[counters[HEAD]] == 0:
        counters[HEAD] += 1
    free = counters[FREE]
    for job in sharing.members[: sharing.tallies[MEMBERS]]:
        free += tables.numbers[PROCESSORS, job] - sharing.jobs[LEAST, job]
    heads, head, free = find_heads(waiting.counts, counters[HEAD], last, free, found)
    if head == last:
        return heads
    opening = Opening(free, 0, tables.instant[NOW], 0.0, False)
    ends = _lent_ends(tables, sharing)
    return backfill(ends, waiting, head, last, opening, summaries, heads, found)[0]


# Who gets how many


@compiled(makes_arrays=True)
def _shared(tables: Tables, sharing: Sharing, begun: IntArray) -> tuple[IntArray, IntArray]:
    """Return the malleable jobs that run, then those that start, and what each gets."""
    held, least, number = tables.numbers[PROCESSORS], sharing.jobs[LEAST], sharing.tallies[MEMBERS]
    members = np.empty(number + begun.size, np.int64)
    members[:number] = sharing.members[:number]
    total = tables.counters[FREE] + held[members[:number]].sum()
    for job in begun:
        if least[job] > 0:
            members[number] = job
            number += 1
        else:
            total -= held[job]
    members = members[:number]
    if number == 0:
        return members, members
    lowest, highest = least[members], sharing.jobs[MOST][members]
    return members, apportion(np.ones(number), total, lowest, highest)


@compiled()
def _ask(sharing: Sharing, job: int, count: int) -> None:
    """See to it that a job's runtime on a count is known before the pass is made."""
    tallies, asked, page = sharing.tallies, sharing.asked, (count - 1) // BLOCK
    last = tallies[ASKED]
    if sharing.g.size > 0 or sharing.pages[page, job] >= 0:
        return
    for k in range(max(last - 2, 0), last):
        if asked[0, k] == job and asked[1, k] == page:
            return
    asked[0, last], asked[1, last] = job, page
    tallies[ASKED] += 1


@compiled()
def _ask_of(tables: Tables, sharing: Sharing, members: IntArray, shares: IntArray) -> bool:
    """Ask for what is not known of changes and starts; say whether anything was."""
    for k in range(members.size):
        job = members[k]
        if k >= sharing.tallies[MEMBERS]:
            _ask(sharing, job, 1)
            _ask(sharing, job, sharing.jobs[LEAST, job])
            _ask(sharing, job, shares[k])
        elif shares[k] != tables.numbers[PROCESSORS, job]:
            _ask(sharing, job, shares[k])
    return bool(sharing.tallies[ASKED] > 0)


# What happens


@compiled()
def _move_ends(tables: Tables, calendar: Calendar, job: int, end: float, believed: float) -> None:
    """Let a run end, and be believed to end, at other times; the heap is not in order then."""
    calendar.seconds[END, job] = end
    tables.numbers[PLANNED, job] = tables.counters[TURNS]
    tables.counters[TURNS] += 1
    believe(tables, job, believed)


@compiled()
def _foresee_anew(tables: Tables, calendar: Calendar) -> None:
    """Put the heap of what happens next in order."""
    running = tables.counters[RUNNING]
    for place in range(running):
        foresee(tables, calendar, place, calendar.what[JOB, place])
    for place in range(running // 2 - 1, -1, -1):
        sink(calendar, place, running)


@compiled()
def _begin_stretch(tables: Tables, sharing: Sharing, job: int) -> None:
    """Note what a job holds from now on."""
    place = sharing.tallies[STRETCHES]
    sharing.jobs[STRETCH, job] = place
    sharing.stretches[OF, place] = job
    sharing.stretches[COUNT, place] = tables.numbers[PROCESSORS, job]
    sharing.stretches[FIRST, place] = tables.numbers[FIRST_RANGE, job]
    sharing.times[BEGUN, place] = tables.instant[NOW]
    sharing.tallies[STRETCHES] += 1


@compiled()
def _resize(tables: Tables, calendar: Calendar, sharing: Sharing, job: int, count: int) -> None:
    """Let a run go on with other processors, as `sim.engine.resizing` does."""
    seconds, work, now = tables.seconds, sharing.work, tables.instant[NOW]
    before = tables.numbers[PROCESSORS, job]
    left = max(seconds[BELIEVED_END, job] - now, 0.0)
    if now > work[SINCE, job]:
        work[DONE, job] += (now - work[SINCE, job]) / _runtime(sharing, TRUE, job, before)
        work[SINCE, job] = now
    if sharing.jobs[CURVED, job] == 0:
        left *= before / count
    else:
        faster = _runtime(sharing, BELIEVED, job, count)
        left *= faster / _runtime(sharing, BELIEVED, job, before)
    sharing.tallies[QUERIES] += 1
    sharing.times[OVER, sharing.jobs[STRETCH, job]] = now
    exchange(tables, job, count)
    _begin_stretch(tables, sharing, job)
    end = now + _runtime(sharing, TRUE, job, count) * max(1.0 - work[DONE, job], 0.0)
    believed, slack = now + left, 1e-9 * abs(end - now) + 1e-12 * abs(end)
    _move_ends(tables, calendar, job, end, end if abs(believed - end) <= slack else believed)


@compiled()
def _begin(tables: Tables, calendar: Calendar, sharing: Sharing, job: int, count: int) -> None:
    """Start a job on a count; 0 if it is not malleable."""
    seconds = tables.seconds
    if count > 0:
        calendar.seconds[RUNTIME, job] = _runtime(sharing, TRUE, job, count)
        if count != tables.numbers[PROCESSORS, job]:
            sharing.tallies[QUERIES] += 1
            believed = sharing.work[REQUESTED, job] * sharing.jobs[REQUEST, job] / count
            if sharing.jobs[CURVED, job] != 0:
                believed = _runtime(sharing, BELIEVED, job, count)
            seconds[BELIEF, job] = max(believed, LEAST_BELIEF)
        tables.numbers[PROCESSORS, job] = count
    start(tables, calendar, job)
    sharing.work[SINCE, job] = tables.instant[NOW]
    _begin_stretch(tables, sharing, job)


@compiled(makes_arrays=True)
def share_pass(tables: Tables, calendar: Calendar, sharing: Sharing, summaries: Summaries) -> None:
    """Make a pass, as `ReallocatingScheduler` does with `Equipartition` around `EasyScheduler`.

    Nothing has happened where runtimes are asked for: the pass is to be made again.

    Parameters
    ----------
    tables : Tables
    calendar : Calendar
    sharing : Sharing
    summaries : Summaries
        Of the queue.
    """
    tallies, held = sharing.tallies, tables.numbers[PROCESSORS]
    tallies[ASKED] = tallies[PENDING] = 0
    _forget_ended(tables, sharing)
    begun = tables.running[FOUND, : _find_starts(tables, sharing, summaries)]
    members, shares = _shared(tables, sharing, begun)
    if _ask_of(tables, sharing, members, shares):
        return
    tallies[QUERIES] += tallies[PENDING]
    number = tallies[MEMBERS]
    before = held[members[:number]]
    for k in range(number):
        if shares[k] < before[k]:
            _resize(tables, calendar, sharing, members[k], shares[k])
    new = number
    for job in begun:
        if sharing.jobs[LEAST, job] > 0:
            _begin(tables, calendar, sharing, job, shares[new])
            new += 1
        else:
            _begin(tables, calendar, sharing, job, 0)
    for k in range(number):
        if shares[k] > before[k]:
            _resize(tables, calendar, sharing, members[k], shares[k])
    if (shares[:number] != before).any():
        _foresee_anew(tables, calendar)
    sharing.members[: members.size] = members
    tallies[MEMBERS] = members.size
