"""The state of a run in arrays, and the compiled steps of its books: who runs, until when, where.

A running job stands once in a heap of what happens to it next: the end of its run, or before
that the expiry of its belief. The table of believed ends is ascending, and so is that of free
processors; what was handed out is appended to `ranges` in the order of the starts.
"""

from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import njit

SUBMIT, RUNTIME, BELIEF, LIMIT, START, END, BELIEVED_END, RESERVED = range(8)
"""Rows of `seconds`, a column a job. `LIMIT` is how long it may run before it is killed."""
PROCESSORS, WAITING, KILLED, FIRST_RANGE, LAST_RANGE, IN_TURN = range(6)
"""Rows of `numbers`, a column a job. `WAITING` holds the processors of those that wait, else 0;
`IN_TURN` holds job indices in the order in which they started."""
COMING, BELIEVED = range(2)
"""Rows of `running_times`: a heap of when what happens next to running jobs, and believed ends."""
KIND, TURN, JOB, BELIEVED_JOB, ENDED_ONE, EXPIRED_ONE, FOUND = range(7)
"""Rows of `running`: of the heap what happens, in which turn it was foreseen, and to whom; whose
the believed ends are; who ended and whose belief expired now; room for what a search finds."""
LOW, HIGH = range(2)
"""Rows of tables of processors, as closed intervals."""
ENDING, EXPIRING = range(2)
"""What happens to a running job; at one instant, in this order."""
(
    ARRIVED,
    ENDED,
    STARTED,
    RUNNING,
    FREE,
    FREE_RANGES,
    RANGES,
    TURNS,
    EVENTS,
    PASSES,
    HEAD,
    NEW,
    SPARE,
    ENDED_NOW,
    EXPIRED_NOW,
    WAKES,
    ROOM,
    TAKEN,
    CHANGED,
) = range(19)
"""Places in `counters`. Jobs from `HEAD` up to `ARRIVED` may wait, those from `NEW` on only since
this instant; `SPARE` is what the reservation leaves over, `ROOM` how many ranges of processors an
instant may hand out. `TAKEN` is 1 while the pass of an instant that was taken in is to come, and
`CHANGED` whether more than arrivals happened at it."""
NOW, SHADOW, NEXT_START, WAKING, LATER, FREED = range(6)
"""Places in `instant`. `LATER` is when the next jobs are submitted that are not in the tables;
from `FREED` on stand the begin and the end of what became free since the last
compression."""


class Tables(NamedTuple):
    """All that changes in a run that needs no Python.

    Attributes
    ----------
    seconds : numpy.ndarray of float, shape (8, n)
    numbers : numpy.ndarray of int, shape (6, n)
    running_times : numpy.ndarray of float, shape (2, r), seconds
    running : numpy.ndarray of int, shape (7, r)
        Of equal believed ends the job indices ascend.
    free : numpy.ndarray of int, shape (2, r + 1)
        Free processors, the lowest-numbered first.
    ranges : numpy.ndarray of int, shape (2, m)
        Processors of all runs.
    wakes : numpy.ndarray of float, shape (w,), ascending, seconds
        When there shall be a pass whatever happens.
    counters : numpy.ndarray of int, shape (19,)
    instant : numpy.ndarray of float, shape (7,), seconds
    """

    seconds: FloatArray
    numbers: IntArray
    running_times: FloatArray
    running: IntArray
    free: IntArray
    ranges: IntArray
    wakes: FloatArray
    counters: IntArray
    instant: FloatArray


# What happens next


@njit(cache=True)
def _is_sooner(tables: Tables, one: int, other: int) -> bool:
    time, what = tables.running_times[COMING], tables.running
    if time[one] != time[other]:
        return bool(time[one] < time[other])
    if what[KIND, one] != what[KIND, other]:
        return bool(what[KIND, one] < what[KIND, other])
    return bool(what[TURN, one] < what[TURN, other])


@njit(cache=True)
def _swap(tables: Tables, one: int, other: int) -> None:
    time, what = tables.running_times[COMING], tables.running
    time[one], time[other] = time[other], time[one]
    for row in (KIND, TURN, JOB):
        what[row, one], what[row, other] = what[row, other], what[row, one]


@njit(cache=True)
def sink(tables: Tables, here: int, size: int) -> None:
    """Move an entry of the heap down to where it belongs."""
    while True:
        least, left = here, 2 * here + 1
        for child in range(left, min(left + 2, size)):
            if _is_sooner(tables, child, least):
                least = child
        if least == here:
            return
        _swap(tables, here, least)
        here = least


@njit(cache=True)
def _rise(tables: Tables, here: int) -> None:
    """Move an entry of the heap up to where it belongs."""
    while here > 0 and _is_sooner(tables, here, (here - 1) // 2):
        _swap(tables, here, (here - 1) // 2)
        here = (here - 1) // 2


@njit(cache=True)
def foresee(tables: Tables, place: int, job: int) -> None:
    """Write what happens next to a running job into a place of the heap.

    Ends at one instant are taken in by the order of the starts, expiries by that in
    which they were foreseen.
    """
    end, believed = tables.seconds[END, job], tables.seconds[BELIEVED_END, job]
    expires = end > believed
    tables.running_times[COMING, place] = believed if expires else end
    tables.running[KIND, place] = EXPIRING if expires else ENDING
    turn = tables.counters[TURNS] if expires else tables.numbers[FIRST_RANGE, job]
    tables.running[TURN, place] = turn
    tables.running[JOB, place] = job
    tables.counters[TURNS] += 1


# What is believed


@njit(cache=True)
def believed_place(tables: Tables, end: float, job: int) -> int:
    """Return where a job with this believed end stands, or would stand."""
    low, high = 0, tables.counters[RUNNING]
    while low < high:
        middle = (low + high) // 2
        time = tables.running_times[BELIEVED, middle]
        if time < end or (time == end and tables.running[BELIEVED_JOB, middle] < job):
            low = middle + 1
        else:
            high = middle
    return int(low)


@njit(cache=True)
def move_belief(tables: Tables, job: int, before: int, after: int) -> None:
    """Move a believed end from one place to another, and those between them by one."""
    time, jobs = tables.running_times[BELIEVED], tables.running[BELIEVED_JOB]
    step = 1 if after > before else -1
    for k in range(before, after, step):
        time[k] = time[k + step]
    for k in range(before, after, step):
        jobs[k] = jobs[k + step]
    time[after], jobs[after] = tables.seconds[BELIEVED_END, job], job


# Processors


@njit(cache=True)
def take(tables: Tables, job: int) -> None:
    """Hand a job the lowest-numbered free processors; there are enough."""
    free, ranges, counters = tables.free, tables.ranges, tables.counters
    wanted, whole, last = tables.numbers[PROCESSORS, job], 0, counters[RANGES]
    counters[FREE] -= wanted
    tables.numbers[FIRST_RANGE, job] = last
    while wanted > 0:
        low, high = free[LOW, whole], free[HIGH, whole]
        if high - low + 1 > wanted:
            high = low + wanted - 1
            free[LOW, whole] = high + 1
        else:
            whole += 1
        ranges[LOW, last], ranges[HIGH, last] = low, high
        wanted -= high - low + 1
        last += 1
    tables.numbers[LAST_RANGE, job] = counters[RANGES] = last
    if whole > 0:
        counters[FREE_RANGES] -= whole
        for k in range(counters[FREE_RANGES]):
            free[LOW, k], free[HIGH, k] = free[LOW, k + whole], free[HIGH, k + whole]


@njit(cache=True)
def give(tables: Tables, low: int, high: int) -> None:
    """Take back processors from low to high."""
    free, number = tables.free, tables.counters[FREE_RANGES]
    where, after = 0, number
    while where < after:
        middle = (where + after) // 2
        if free[LOW, middle] < low:
            where = middle + 1
        else:
            after = middle
    joins_before = where > 0 and free[HIGH, where - 1] == low - 1
    joins_after = where < number and free[LOW, where] == high + 1
    if joins_before and joins_after:
        free[HIGH, where - 1] = free[HIGH, where]
        for k in range(where, number - 1):
            free[LOW, k], free[HIGH, k] = free[LOW, k + 1], free[HIGH, k + 1]
        tables.counters[FREE_RANGES] -= 1
    elif joins_before:
        free[HIGH, where - 1] = high
    elif joins_after:
        free[LOW, where] = low
    else:
        for k in range(number, where, -1):
            free[LOW, k], free[HIGH, k] = free[LOW, k - 1], free[HIGH, k - 1]
        free[LOW, where], free[HIGH, where] = low, high
        tables.counters[FREE_RANGES] += 1


# Instants without another reason


@njit(cache=True)
def is_believed_end(tables: Tables, instant: float) -> bool:
    """Say whether a running job is believed to end then."""
    place = believed_place(tables, instant, -1)
    return bool(
        place < tables.counters[RUNNING] and tables.running_times[BELIEVED, place] == instant
    )


@njit(cache=True)
def ask_to_wake(tables: Tables, instant: float) -> None:
    """See to it that there is a pass then."""
    wakes, place = tables.wakes, tables.counters[WAKES]
    while place > 0 and wakes[place - 1] > instant:
        wakes[place] = wakes[place - 1]
        place -= 1
    wakes[place] = instant
    tables.counters[WAKES] += 1


@njit(cache=True)
def _wake(tables: Tables, now: float) -> None:
    """Take in what was asked for this instant."""
    wakes, number = tables.wakes, tables.counters[WAKES]
    past = 0
    while past < number and wakes[past] == now:
        past += 1
    for k in range(past, number):
        wakes[k - past] = wakes[k]
    tables.counters[WAKES] -= past
    tables.counters[EVENTS] += past


# Steps


@njit(cache=True)
def start(tables: Tables, job: int) -> None:
    """Start a waiting job on the processors that it wants."""
    seconds, numbers, counters = tables.seconds, tables.numbers, tables.counters
    now = tables.instant[NOW]
    take(tables, job)
    end, limit = now + seconds[RUNTIME, job], now + seconds[LIMIT, job]
    if limit < end:
        end = max(limit, now)
        numbers[KILLED, job] = 1
    seconds[START, job], seconds[END, job] = now, end
    believed = seconds[BELIEVED_END, job] = now + seconds[BELIEF, job]
    running = counters[RUNNING]
    move_belief(tables, job, running, believed_place(tables, believed, job))
    foresee(tables, running, job)
    _rise(tables, running)
    numbers[IN_TURN, counters[STARTED]] = job
    numbers[WAITING, job] = 0
    counters[RUNNING] += 1
    counters[STARTED] += 1


@njit(cache=True)
def _end(tables: Tables, job: int) -> None:
    """Take the job at the top of the heap off the machine."""
    numbers, counters = tables.numbers, tables.counters
    for k in range(numbers[FIRST_RANGE, job], numbers[LAST_RANGE, job]):
        give(tables, tables.ranges[LOW, k], tables.ranges[HIGH, k])
    counters[FREE] += numbers[PROCESSORS, job]
    last = counters[RUNNING] - 1
    move_belief(tables, job, believed_place(tables, tables.seconds[BELIEVED_END, job], job), last)
    _swap(tables, 0, last)
    sink(tables, 0, last)
    counters[RUNNING] = last
    counters[ENDED] += 1


@njit(cache=True)
def _expire(tables: Tables, job: int) -> None:
    """Double the believed total of the job at the top of the heap, which has outlived it."""
    seconds = tables.seconds
    start, believed = seconds[START, job], seconds[BELIEVED_END, job]
    before = believed_place(tables, believed, job)
    total = max(2.0 * (believed - start), tables.instant[NOW] - start + 1.0)
    seconds[BELIEVED_END, job] = start + total
    after = believed_place(tables, start + total, job)
    move_belief(tables, job, before, after - 1 if after > before else after)
    foresee(tables, 0, job)
    sink(tables, 0, tables.counters[RUNNING])


@njit(cache=True)
def next_instant(tables: Tables) -> float:
    """Return when something happens next, in seconds; infinity if nothing does."""
    counters = tables.counters
    following = np.inf
    if counters[RUNNING] > 0:
        following = tables.running_times[COMING, 0]
    if counters[ARRIVED] < tables.seconds.shape[1]:
        following = min(following, tables.seconds[SUBMIT, counters[ARRIVED]])
    else:
        following = min(following, tables.instant[LATER])
    if counters[WAKES] > 0:
        following = min(following, tables.wakes[0])
    return float(following)


@njit(cache=True)
def take_in(tables: Tables, now: float) -> bool:
    """Take in ends, expiries and arrivals of an instant; say whether more than arrivals."""
    seconds, counters = tables.seconds, tables.counters
    tables.instant[NOW] = now
    changed = False
    counters[ENDED_NOW] = counters[EXPIRED_NOW] = 0
    while counters[RUNNING] > 0 and tables.running_times[COMING, 0] == now:
        job = tables.running[JOB, 0]
        if tables.running[KIND, 0] == ENDING:
            tables.running[ENDED_ONE, counters[ENDED_NOW]] = job
            counters[ENDED_NOW] += 1
            _end(tables, job)
        else:
            tables.running[EXPIRED_ONE, counters[EXPIRED_NOW]] = job
            counters[EXPIRED_NOW] += 1
            _expire(tables, job)
        counters[EVENTS] += 1
        changed = True
    last = counters[NEW] = counters[ARRIVED]
    while last < tables.seconds.shape[1] and seconds[SUBMIT, last] == now:
        last += 1
    if last > counters[NEW]:
        counters[ARRIVED] = last
        counters[EVENTS] += 1
    if counters[WAKES] > 0:
        _wake(tables, now)
    return changed
