"""The state of a run in arrays, and the compiled steps of its books: who runs, believed how long.

When runs really end stands in `sim.state.calendar` alone. The table of believed ends is
ascending, and so is that of free processors; what was handed out is appended to `ranges` in the
order in which it was.
"""

from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled

BELIEF, START, BELIEVED_END, RESERVED = range(4)
"""Rows of `seconds`, a column a job."""
PROCESSORS, WAITING, KILLED, FIRST_RANGE, LAST_RANGE, PLANNED, IN_TURN = range(7)
"""Rows of `numbers`, a column a job. `WAITING` holds the processors of those that wait, else 0;
`PLANNED` in which turn the end of a run was planned; `IN_TURN` job indices in the order in which
they started."""
BELIEVED_JOB, HELD, ENDED_ONE, EXPIRED_ONE, FOUND = range(5)
"""Rows of `running`: whose the believed ends are, and how many processors become free then; who
ended and whose belief expired now; room for what a search finds."""
LOW, HIGH = range(2)
"""Rows of tables of processors, as closed intervals."""
(
    ARRIVED,
    ENDED,
    STARTED,
    RUNNING,
    HOLDERS,
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
) = range(20)
"""Places in `counters`. `HOLDERS` counts the believed ends, of those that run and of failed nodes.
Jobs from `HEAD` up to `ARRIVED` may wait, those from `NEW` on only since
this instant; `SPARE` is what the reservation leaves over, `ROOM` how many ranges of processors an
instant may hand out. `TAKEN` is 1 while the pass of an instant that was taken in is to come, and
`CHANGED` whether more than arrivals happened at it."""
NOW, SHADOW, LATER, KEPT = range(4)
"""Places in `instant`. `LATER` is when the next jobs are submitted that are not in the tables;
from `KEPT` on stands what conservative backfilling keeps."""


class Tables(NamedTuple):
    """All that changes in a run that needs no Python.

    Attributes
    ----------
    seconds : numpy.ndarray of float, shape (4, n)
    numbers : numpy.ndarray of int, shape (7, n)
    believed : numpy.ndarray of float, shape (r,), ascending, seconds
        When those who hold processors are believed to give them back.
    running : numpy.ndarray of int, shape (5, r)
        Of equal believed ends the job indices ascend; a failed node k is job -1 - k.
    free : numpy.ndarray of int, shape (2, f)
        Free processors, the lowest-numbered first.
    ranges : numpy.ndarray of int, shape (2, m)
        Processors of all runs, with each change of their processors anew.
    wakes : numpy.ndarray of float, shape (w,), ascending, seconds
        When there shall be a pass whatever happens.
    counters : numpy.ndarray of int, shape (20,)
    instant : numpy.ndarray of float, shape (7,), seconds
    """

    seconds: FloatArray
    numbers: IntArray
    believed: FloatArray
    running: IntArray
    free: IntArray
    ranges: IntArray
    wakes: FloatArray
    counters: IntArray
    instant: FloatArray


def idle_tables(processors: int, jobs: int, holders: int) -> Tables:
    """Return the tables of an idle machine.

    Parameters
    ----------
    processors : int
    jobs : int
        Columns for jobs.
    holders : int
        How many runs, and failed nodes, there may be at once.
    """
    tables = Tables(
        seconds=np.zeros((4, jobs)),
        numbers=np.zeros((7, jobs), np.int64),
        believed=np.zeros(holders),
        running=np.zeros((5, holders), np.int64),
        free=np.zeros((2, processors // 2 + 2), np.int64),
        ranges=np.zeros((2, 64), np.int64),
        wakes=np.zeros(64),
        counters=np.zeros(20, np.int64),
        instant=np.array([0.0, 0.0, np.inf, np.inf, np.inf, np.inf, -np.inf]),
    )
    tables.counters[FREE] = processors
    tables.counters[ROOM] = min(processors, 2 * jobs + 1)
    tables.counters[FREE_RANGES] = 1
    tables.free[HIGH, 0] = processors - 1
    return tables


# What is believed


@compiled()
def believed_place(tables: Tables, end: float, job: int) -> int:
    """Return where a job with this believed end stands, or would stand."""
    low, high = 0, tables.counters[HOLDERS]
    while low < high:
        middle = (low + high) // 2
        time = tables.believed[middle]
        if time < end or (time == end and tables.running[BELIEVED_JOB, middle] < job):
            low = middle + 1
        else:
            high = middle
    return int(low)


@compiled()
def hold(tables: Tables, end: float, job: int, processors: int) -> None:
    """Note that processors are believed to be held until then."""
    last = tables.counters[HOLDERS]
    place = believed_place(tables, end, job)
    tables.counters[HOLDERS] += 1
    _move_belief(tables, last, place)
    _write_belief(tables, place, end, job, processors)


@compiled()
def let_go(tables: Tables, end: float, job: int) -> None:
    """Take a believed end out."""
    tables.counters[HOLDERS] -= 1
    _move_belief(tables, believed_place(tables, end, job), tables.counters[HOLDERS])


@compiled()
def believe(tables: Tables, job: int, end: float) -> None:
    """Believe that a running job, with the processors it holds, ends then."""
    before = believed_place(tables, tables.seconds[BELIEVED_END, job], job)
    after = believed_place(tables, end, job)
    after -= after > before
    tables.seconds[BELIEVED_END, job] = end
    _move_belief(tables, before, after)
    _write_belief(tables, after, end, job, tables.numbers[PROCESSORS, job])


@compiled()
def _move_belief(tables: Tables, before: int, after: int) -> None:
    """Close the gap at one place of the table of believed ends, and open one at another."""
    time, job, held = tables.believed, tables.running[BELIEVED_JOB], tables.running[HELD]
    step = 1 if after > before else -1
    for k in range(before, after, step):
        time[k] = time[k + step]
    for k in range(before, after, step):
        job[k] = job[k + step]
    for k in range(before, after, step):
        held[k] = held[k + step]


@compiled()
def _write_belief(tables: Tables, place: int, end: float, job: int, processors: int) -> None:
    tables.believed[place] = end
    tables.running[BELIEVED_JOB, place], tables.running[HELD, place] = job, processors


# Processors


@compiled()
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


@compiled()
def give(tables: Tables, low: int, high: int) -> None:
    """Take back processors from low to high."""
    free, number = tables.free, tables.counters[FREE_RANGES]
    where = _place_of(tables, low)
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


@compiled(makes_arrays=True)
def exchange(tables: Tables, job: int, count: int) -> None:
    """Give a run the lowest-numbered free processors besides, or keep its lowest-numbered."""
    numbers, counters, ranges = tables.numbers, tables.counters, tables.ranges
    first, last, begin = numbers[FIRST_RANGE, job], numbers[LAST_RANGE, job], counters[RANGES]
    more, end = count - numbers[PROCESSORS, job], begin
    if more > 0:
        numbers[PROCESSORS, job] = more
        take(tables, job)
        gained, place = ranges[:, begin : counters[RANGES]].copy(), 0
        while first < last or place < gained.shape[1]:
            is_own = place == gained.shape[1]
            if is_own or (first < last and ranges[LOW, first] < gained[LOW, place]):
                low, high = ranges[LOW, first], ranges[HIGH, first]
                first += 1
            else:
                low, high = gained[LOW, place], gained[HIGH, place]
                place += 1
            if end > begin and ranges[HIGH, end - 1] == low - 1:
                ranges[HIGH, end - 1] = high
            else:
                ranges[LOW, end], ranges[HIGH, end] = low, high
                end += 1
    else:
        counters[FREE] -= more
        left = count
        for k in range(first, last):
            low, high = ranges[LOW, k], ranges[HIGH, k]
            width = min(left, high - low + 1)
            left -= width
            if width > 0:
                ranges[LOW, end], ranges[HIGH, end] = low, low + width - 1
                end += 1
            if low + width <= high:
                give(tables, low + width, high)
    numbers[PROCESSORS, job] = count
    numbers[FIRST_RANGE, job], numbers[LAST_RANGE, job] = begin, end
    counters[RANGES] = end


@compiled()
def take_named(tables: Tables, low: int, high: int) -> bool:
    """Take processors from low to high; say whether all were free, else nothing is taken."""
    free, number = tables.free, tables.counters[FREE_RANGES]
    place = _place_of(tables, low + 1) - 1
    if place < 0 or high > free[HIGH, place] or low > high:
        return False
    first, last = free[LOW, place], free[HIGH, place]
    for k in range(place, number - 1):
        free[LOW, k], free[HIGH, k] = free[LOW, k + 1], free[HIGH, k + 1]
    tables.counters[FREE_RANGES] -= 1
    if first < low:
        give(tables, first, low - 1)
    if high < last:
        give(tables, high + 1, last)
    return True


@compiled()
def _place_of(tables: Tables, low: int) -> int:
    """Return how many free ranges begin before a processor."""
    where, after = 0, tables.counters[FREE_RANGES]
    while where < after:
        middle = (where + after) // 2
        if tables.free[LOW, middle] < low:
            where = middle + 1
        else:
            after = middle
    return int(where)
