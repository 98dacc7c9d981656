"""Compiled steps of a run: what starts, ends, expires and arrives, and when that is next."""

import numpy as np

from predictors.compiling import compiled
from sim.state.availability import BelievedEnds
from sim.state.calendar import (
    END,
    ENDING,
    EXPIRING,
    JOB,
    KIND,
    LIMIT,
    REQUESTED,
    RUNTIME,
    SUBMIT,
    Calendar,
    foresee,
    rise,
    sink,
    swap,
)
from sim.state.run_tables import (
    ARRIVED,
    BELIEF,
    BELIEVED_END,
    BELIEVED_JOB,
    CHANGED,
    ENDED,
    ENDED_NOW,
    ENDED_ONE,
    EVENTS,
    EXPIRED_NOW,
    EXPIRED_ONE,
    FIRST_RANGE,
    FREE,
    FREE_RANGES,
    HELD,
    HIGH,
    HOLDERS,
    IN_TURN,
    KILLED,
    LAST_RANGE,
    LATER,
    LOW,
    NEW,
    NOW,
    PLANNED,
    PROCESSORS,
    RANGES,
    RESERVED,
    RUNNING,
    START,
    STARTED,
    TAKEN,
    TURNS,
    WAITING,
    WAKES,
    Tables,
    believe,
    give,
    hold,
    let_go,
    take,
)
from sim.state.waiting_queue import Waiting

LEAST_CORRECTION = 0.5
"""Seconds: what rounding adds to a believed total is less."""

# What searches look at


@compiled(makes_arrays=True, inline="always")
def waiting_in(tables: Tables) -> Waiting:
    """Return who waits; a place is a job."""
    seconds = tables.seconds
    return Waiting(tables.numbers[WAITING], seconds[BELIEF], seconds[RESERVED])


@compiled(makes_arrays=True, inline="always")
def ends_in(tables: Tables) -> BelievedEnds:
    """Return who holds processors, and until when by belief."""
    running, number = tables.running, tables.counters[HOLDERS]
    ends = tables.believed[:number]
    return BelievedEnds(ends, running[BELIEVED_JOB, :number], running[HELD, :number])


# Instants without another reason


@compiled()
def ask_to_wake(tables: Tables, instant: float) -> None:
    """See to it that there is a pass then."""
    wakes, place = tables.wakes, tables.counters[WAKES]
    while place > 0 and wakes[place - 1] > instant:
        wakes[place] = wakes[place - 1]
        place -= 1
    wakes[place] = instant
    tables.counters[WAKES] += 1


@compiled()
def _wake(tables: Tables, now: float) -> int:
    """Forget who asked for this instant, and count them."""
    wakes, number = tables.wakes, tables.counters[WAKES]
    past = 0
    while past < number and wakes[past] == now:
        past += 1
    for k in range(past, number):
        wakes[k - past] = wakes[k]
    tables.counters[WAKES] -= past
    return past


# Steps


@compiled()
def _happened(tables: Tables, events: int) -> None:
    """Count what happened; there is a pass if anything did."""
    tables.counters[EVENTS] += events
    if events > 0:
        tables.counters[TAKEN] = 1


@compiled()
def start(tables: Tables, calendar: Calendar, job: int) -> None:
    """Start a waiting job on the processors that it wants."""
    numbers, counters, now = tables.numbers, tables.counters, tables.instant[NOW]
    take(tables, job)
    end, limit = now + calendar.seconds[RUNTIME, job], now + calendar.seconds[LIMIT, job]
    if limit < end:
        end = max(limit, now)
        numbers[KILLED, job] = 1
    begin(tables, calendar, job, end, now + tables.seconds[BELIEF, job])
    numbers[IN_TURN, counters[STARTED]] = job
    numbers[WAITING, job] = 0
    counters[STARTED] += 1


@compiled()
def begin(tables: Tables, calendar: Calendar, job: int, end: float, believed: float) -> None:
    """Let a job run that has its processors, and foresee what happens to it."""
    running, seconds = tables.counters[RUNNING], tables.seconds
    seconds[START, job] = tables.instant[NOW]
    calendar.seconds[END, job], seconds[BELIEVED_END, job] = end, believed
    tables.numbers[PLANNED, job] = tables.counters[TURNS]
    hold(tables, believed, job, tables.numbers[PROCESSORS, job])
    foresee(tables, calendar, running, job)
    rise(calendar, running)
    tables.counters[RUNNING] += 1


@compiled()
def over(tables: Tables, calendar: Calendar, job: int, place: int) -> None:
    """Take a job off the machine that stands at this place of the heap."""
    numbers, counters = tables.numbers, tables.counters
    for k in range(numbers[FIRST_RANGE, job], numbers[LAST_RANGE, job]):
        give(tables, tables.ranges[LOW, k], tables.ranges[HIGH, k])
    counters[FREE] += numbers[PROCESSORS, job]
    let_go(tables, tables.seconds[BELIEVED_END, job], job)
    last = counters[RUNNING] - 1
    counters[RUNNING] = last
    if place < last:
        swap(calendar, place, last)
        settle(tables, calendar, place)


@compiled()
def settle(tables: Tables, calendar: Calendar, place: int) -> None:
    """Move an entry of the heap to where it belongs."""
    rise(calendar, place)
    sink(calendar, place, tables.counters[RUNNING])


@compiled()
def take_in_ends(tables: Tables, calendar: Calendar, now: float) -> int:
    """Take off who ends then, note who it was, and count them."""
    running, number = tables.running, 0
    while (
        tables.counters[RUNNING] > 0
        and calendar.coming[0] == now
        and calendar.what[KIND, 0] == ENDING
    ):
        job = running[ENDED_ONE, number] = calendar.what[JOB, 0]
        number += 1
        over(tables, calendar, job, 0)
    tables.counters[ENDED_NOW] = number
    tables.counters[ENDED] += number
    _happened(tables, number)
    return number


@compiled()
def _grown(tables: Tables, calendar: Calendar, job: int, total: float) -> float:
    """Return what is believed of a job in all that has outlived its believed total."""
    request = float(calendar.seconds[REQUESTED, job])
    if calendar.corrections.size == 0 or total > request - LEAST_CORRECTION:
        since = tables.instant[NOW] - tables.seconds[START, job]
        return float(max(2.0 * total, since + 1.0))
    for correction in calendar.corrections:
        longer = float(tables.seconds[BELIEF, job] + correction)
        if longer > total + LEAST_CORRECTION:
            return min(longer, request)
    return request


@compiled()
def _expire(tables: Tables, calendar: Calendar, job: int) -> None:
    """Let the believed total grow of the job at the top of the heap, which has outlived it."""
    start, believed = tables.seconds[START, job], tables.seconds[BELIEVED_END, job]
    believe(tables, job, start + _grown(tables, calendar, job, believed - start))
    foresee(tables, calendar, 0, job)
    sink(calendar, 0, tables.counters[RUNNING])


@compiled()
def next_instant(tables: Tables, calendar: Calendar) -> float:
    """Return when something happens next, in seconds; infinity if nothing does."""
    counters = tables.counters
    following = np.inf
    if counters[RUNNING] > 0:
        following = calendar.coming[0]
    if counters[ARRIVED] < tables.seconds.shape[1]:
        following = min(following, calendar.seconds[SUBMIT, counters[ARRIVED]])
    else:
        following = min(following, tables.instant[LATER])
    if counters[WAKES] > 0:
        following = min(following, tables.wakes[0])
    return float(following)


@compiled()
def take_in(tables: Tables, calendar: Calendar, now: float) -> tuple[int, int, int, int, int]:
    """Take in ends, expiries, arrivals and wake-ups of an instant.

    Returns how many ended, how many expired, the first who arrived, the first who did not,
    and how many woke.
    """
    counters, expired = tables.counters, 0
    tables.instant[NOW] = now
    ended = take_in_ends(tables, calendar, now)
    while (
        counters[RUNNING] > 0 and calendar.coming[0] == now and calendar.what[KIND, 0] == EXPIRING
    ):
        job = tables.running[EXPIRED_ONE, expired] = calendar.what[JOB, 0]
        expired += 1
        _expire(tables, calendar, job)
    counters[EXPIRED_NOW] = expired
    last = counters[NEW] = counters[ARRIVED]
    while last < tables.seconds.shape[1] and calendar.seconds[SUBMIT, last] == now:
        last += 1
    counters[ARRIVED] = last
    woken = _wake(tables, now)
    _happened(tables, expired + (last > counters[NEW]) + woken)
    counters[CHANGED] = ended + expired > 0
    return ended, expired, counters[NEW], last, woken


# One thing at a time, as rules in Python decide it


@compiled()
def hand_out(tables: Tables, job: int, processors: int) -> bool:
    """Give a job that is about to run the lowest-numbered free processors; there are enough.

    Says whether there was room to write them down; where there is none, nothing happens.
    """
    counters = tables.counters
    if counters[RANGES] + counters[FREE_RANGES] > tables.ranges.shape[1]:
        return False
    tables.numbers[PROCESSORS, job] = processors
    take(tables, job)
    return True


@compiled()
def _place(calendar: Calendar, job: int) -> int:
    """Return where a running job stands in the heap."""
    jobs, place = calendar.what[JOB], 0
    while jobs[place] != job:
        place += 1
    return place


@compiled()
def _foresee_anew(tables: Tables, calendar: Calendar, job: int) -> None:
    place = _place(calendar, job)
    foresee(tables, calendar, place, job)
    settle(tables, calendar, place)


@compiled()
def plan_end(tables: Tables, calendar: Calendar, job: int, end: float) -> None:
    """Let a running job end at another time."""
    calendar.seconds[END, job] = end
    tables.numbers[PLANNED, job] = tables.counters[TURNS]
    _foresee_anew(tables, calendar, job)


@compiled()
def move_end(tables: Tables, calendar: Calendar, job: int, end: float) -> None:
    """Believe that a running job ends at another time."""
    believe(tables, job, end)
    _foresee_anew(tables, calendar, job)


@compiled()
def take_off(tables: Tables, calendar: Calendar, job: int) -> None:
    """Take a job off the machine before its end."""
    over(tables, calendar, job, _place(calendar, job))
