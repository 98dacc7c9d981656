"""The state of a run by name, and the compiled steps of its books: who runs, believed how long.

When runs really end stands in `sim.state.run_steps` alone. Compiled code and Python read and
write the same arrays; with Numba switched off the compiled steps run as plain Python.
"""

from collections.abc import Callable, Collection, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any, cast, get_args

import numpy as np
from numba import config, types
from numba.experimental import structref
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled, direct, record
from sim.errors import PolicyError

_register: Any = structref.register
_define_proxy: Any = structref.define_proxy
_numba: Any = config


def struct_type(proxy: type) -> type:
    """Return the type by which compiled code knows a structref, to be kept as ``NAMEType``.

    Parameters
    ----------
    proxy : type
        What Python sees of it, with a hint for each field, in the order in which it is given
        them; it makes one in compiled code.
    """
    name = f"{proxy.__name__}Type"
    kind = type(name, (types.StructRef,), {"__module__": proxy.__module__})
    _register(kind)
    _define_proxy(proxy, kind, list(proxy.__annotations__))
    return kind


def kinds_in(proxy: type) -> dict[str, object]:
    """Return what is in each table of a structref by the hints of its fields."""
    hints = {name: get_args(hint) for name, hint in proxy.__annotations__.items()}
    return {name: get_args(table[1])[0] for name, table in hints.items() if table}


@cache
def maker(proxy: type) -> Callable[[tuple[Any, ...]], Any]:
    """Return what makes a structref, in compiled code, of its fields in their order."""

    def made(fields: tuple[Any, ...]) -> Any:
        return proxy(*fields)

    made.__qualname__ = f"{proxy.__name__}.made"  # by which Numba tells compiled functions apart
    return direct(compiled(made))


def structure(
    make: Callable[[tuple[Any, ...]], Any], fields: Mapping[str, Any], grows: Collection[str] = ()
) -> Any:
    """Return a structref of these fields, which Python, too, calls by their names.

    Parameters
    ----------
    make : callable
        A `maker`.
    fields : mapping of str to object
    grows : collection of str
        Fields that compiled code replaces: Python has to ask for them anew each time.
    """
    if _numba.DISABLE_JIT:
        return SimpleNamespace(**fields)
    made = make(tuple(fields.values()))
    for name in fields.keys() - set(grows):
        setattr(made, name, fields[name])
    return made


SCALARS = record(
    now=float,
    free=int,
    free_ranges=int,
    ranges=int,
    holders=int,
    running=int,
    first_arrived=int,
    arrived=int,
    started=int,
    ended=int,
    ended_now=int,
    expired_now=int,
    woken_now=int,
    wakes=int,
    pass_due=int,
    passes=int,
    passes_per_return=int,
    events=int,
    sequence=int,
    ends_planned=int,
    resized=int,
    admitted=int,
    choice_due=int,
)
"""What there is one of. It is `now`, seconds; `free` counts free processors; `free_ranges`,
`ranges`, `holders`, `running`, `wakes` say how much of the tables of their names is in use. Of the
jobs up to `arrived` those from `first_arrived` on came at this instant; `ended_now` and
`expired_now` count whose run ended, and whose belief expired, at it, and `woken_now` who woke.
`pass_due` is 1 while the pass of an instant that was processed is to come; in it jobs up to
`admitted` have been let wait, and `choice_due` is 1 while Python is asked how many processors the
next one gets. After `passes_per_return` passes Python has a chance. `sequence` numbers what is
planned; the ends of the first `ends_planned` who started are. `resized` counts whose processors
changed in this pass; `started` and `ended` count runs, `passes` and `events` what has been so
far."""

RANGE = record(low="i4", high="i4")
"""Processors from one to another, both of them among it."""

OF_HOLDERS = (
    "holder_end", "holder_job", "holder_processors", "ended_jobs", "expired_jobs", "resized_jobs",
)  # fmt: skip
GROWING = "ranges", "wakes"


class RunState(structref.StructRefProxy):
    """All that may be known of a run, by name.

    Python reads `ranges`, which grows, by `ranges_of`.

    Attributes
    ----------
    scalars : numpy.ndarray of SCALARS, shape (1,)
    belief, start_time, believed_end : numpy.ndarray of float, shape (n,), seconds
        Of each job: its believed runtime, when it started, and when it is believed to end.
    processors, choice : numpy.ndarray of int, shape (n,)
        That it holds or will ask for, and at which place of what it was offered, if it was.
    first_range, last_range : numpy.ndarray of int, shape (n,)
        Where its processors stand in `ranges`, and one past that.
    end_sequence : numpy.ndarray of int, shape (n,)
        The number of the plan of its end.
    start_order : numpy.ndarray of int, shape (n,)
        Job indices in the order in which they started.
    holder_end : numpy.ndarray of float, shape (r,), ascending, seconds
        When those who hold processors are believed to give them back.
    holder_job, holder_processors : numpy.ndarray of int, shape (r,)
        Of equal ends the job indices ascend; a failed node k is job -1 - k.
    ended_jobs, expired_jobs, resized_jobs : numpy.ndarray of int, shape (r,)
        Who ended, whose belief expired at this instant, and whose processors changed in this pass.
    free_ranges : numpy.ndarray of RANGE
        Free processors, the lowest-numbered first.
    ranges : numpy.ndarray of RANGE
        Processors of all runs, with each change of their processors anew; it grows.
    wakes : numpy.ndarray of float, ascending, seconds
        When there shall be a pass whatever happens; it grows.
    """

    scalars: NDArray[Any]
    belief: FloatArray
    start_time: FloatArray
    believed_end: FloatArray
    processors: IntArray
    choice: IntArray
    first_range: IntArray
    last_range: IntArray
    end_sequence: IntArray
    start_order: IntArray
    holder_end: FloatArray
    holder_job: IntArray
    holder_processors: IntArray
    ended_jobs: IntArray
    expired_jobs: IntArray
    resized_jobs: IntArray
    free_ranges: NDArray[Any]

    ranges: NDArray[Any]
    wakes: FloatArray


RunStateType = struct_type(RunState)
FIELDS = kinds_in(RunState) | {"scalars": SCALARS, "free_ranges": RANGE, "ranges": RANGE}
"""The fields of a state, and what is in each."""


@compiled
def ranges_of(state: RunState) -> NDArray[Any]:
    """Return the table of all ranges as it is now."""
    return state.ranges


def idle_machine(processors: int, jobs: int, holders: int) -> RunState:
    """Return the state of an idle machine.

    Parameters
    ----------
    processors : int
    jobs : int
    holders : int
        How many runs, and failed nodes, there may be at once.
    """
    sizes = {"scalars": 1, "free_ranges": processors // 2 + 2}
    sizes |= dict.fromkeys(OF_HOLDERS, holders) | dict.fromkeys(GROWING, 64)
    tables = {name: np.zeros(sizes.get(name, jobs), kind) for name, kind in FIELDS.items()}
    run = tables["scalars"]
    run["free"], run["free_ranges"], run["passes_per_return"] = processors, 1, 1
    tables["free_ranges"]["high"][0] = processors - 1
    return cast(RunState, structure(maker(RunState), tables, grows=GROWING))


@compiled
def longer(values: NDArray[Any], size: int) -> NDArray[Any]:
    """Return room for so many, with these in front."""
    room = np.empty(size, values.dtype)
    for k in range(values.size):
        room[k] = values[k]
    return room


@compiled(inline="always")
def shift(values: NDArray[Any], first: int, last: int, by: int) -> None:
    """Move what stands from one place to another so many places on, or back."""
    before, after = values[first:last], values[first + by : last + by]  # whose places count from 0
    if by > 0:
        for k in range(last - first - 1, -1, -1):
            after[k] = before[k]
    elif by < 0:
        for k in range(last - first):
            after[k] = before[k]


@compiled(forceinline=True)
def rank_in(values: NDArray[Any], wanted: float, behind: bool = False) -> int:
    """Return where a value belongs among ascending ones, before or behind those that are equal.

    As `numpy.searchsorted` does, which takes three times as long to compile.
    """
    first, last = 0, values.size
    while first < last:
        middle = (first + last) // 2
        if values[middle] < wanted or (behind and values[middle] == wanted):
            first = middle + 1
        else:
            last = middle
    return first


# Who holds processors, and until when by belief


@compiled
def holder_place(state: RunState, end: float, job: int) -> int:
    """Return where a holder with this believed end stands, or would stand."""
    last = state.scalars[0].holders
    ends, jobs = state.holder_end[:last], state.holder_job
    place = rank_in(ends, end)
    while place < last and ends[place] == end and jobs[place] < job:
        place += 1
    return place


@compiled(inline="always")
def push_holder(state: RunState, end: float, job: int, processors: int) -> None:
    """Note that processors are believed to be held until then."""
    run, place = state.scalars[0], holder_place(state, end, job)
    last = run.holders
    run.holders += 1
    _move_holder(state, last, place)
    _write_holder(state, place, end, job, processors)


@compiled(inline="always")
def pop_holder(state: RunState, end: float, job: int) -> None:
    """Take out a holder with this believed end."""
    state.scalars[0].holders -= 1
    _move_holder(state, holder_place(state, end, job), state.scalars[0].holders)


@compiled(forceinline=True)
def believe_end(state: RunState, job: int, end: float) -> None:
    """Believe that a running job, with the processors it holds, ends then."""
    before = holder_place(state, state.believed_end[job], job)
    after = holder_place(state, end, job)
    after -= after > before
    state.believed_end[job] = end
    _move_holder(state, before, after)
    _write_holder(state, after, end, job, state.processors[job])


@compiled
def snapped(believed: float, end: float, now: float) -> float:
    """Return the planned end where a belief differs from it by rounding alone.

    Else a belief that is right would expire an instant before its job ends.
    """
    slack = 1e-9 * abs(end - now) + 1e-12 * abs(end)
    return end if abs(believed - end) <= slack else believed


@compiled
def _move_holder(state: RunState, before: int, after: int) -> None:
    """Close the gap at one place of the table of holders, and open one at another."""
    first, last, by = (before + 1, after + 1, -1) if after > before else (after, before, 1)
    shift(state.holder_end, first, last, by)
    shift(state.holder_job, first, last, by)
    shift(state.holder_processors, first, last, by)


@compiled
def _write_holder(state: RunState, place: int, end: float, job: int, processors: int) -> None:
    state.holder_end[place], state.holder_job[place] = end, job
    state.holder_processors[place] = processors


# Processors


@compiled
def grow_ranges(state: RunState, more: int) -> None:
    """Let the table of all ranges grow, if so many more might not find room."""
    wanted = state.scalars[0].ranges + more
    if wanted > state.ranges.size:
        state.ranges = longer(state.ranges, 2 * wanted)


@compiled
def allocate(state: RunState, job: int) -> None:
    """Give a job the lowest-numbered free processors, as many as it will hold.

    Raises
    ------
    PolicyError
        If fewer are free.
    """
    if state.processors[job] > state.scalars[0].free:
        raise PolicyError("decide starts jobs on more processors than are free")
    grow_ranges(state, state.scalars[0].free_ranges)
    _allocate_more(state, job, 0, 0, state.processors[job])


@compiled(inline="always")
def _allocate_more(state: RunState, job: int, first: int, last: int, more: int) -> None:
    """Give a job the lowest-numbered free processors besides its ranges from first to last."""
    run = state.scalars[0]
    free, ranges = state.free_ranges, state.ranges
    begin, end, whole = run.ranges, run.ranges, 0
    run.free -= more
    while first < last or more > 0:
        if more == 0 or (first < last and ranges[first].low < free[whole].low):
            low, high = ranges[first].low, ranges[first].high
            first += 1
        else:
            low, high = free[whole].low, min(free[whole].high, free[whole].low + more - 1)
            more -= high - low + 1
            free[whole].low = high + 1
            whole += high == free[whole].high
        if end > begin and ranges[end - 1].high == low - 1:
            ranges[end - 1].high = high
        else:
            ranges[end].low, ranges[end].high = low, high
            end += 1
    state.first_range[job] = begin
    state.last_range[job] = run.ranges = end
    shift(free, whole, run.free_ranges, -whole)
    run.free_ranges -= whole


@compiled
def release(state: RunState, low: int, high: int) -> None:
    """Take back processors from low to high; whoever calls counts them as free."""
    free, run = state.free_ranges, state.scalars[0]
    first = last = rank_in(free["low"][: run.free_ranges], low)  # of those joined with these
    if first > 0 and free[first - 1].high == low - 1:
        first -= 1
        low = free[first].low
    if last < run.free_ranges and free[last].low == high + 1:
        high = free[last].high
        last += 1
    more = first + 1 - last
    shift(free, last, run.free_ranges, more)
    run.free_ranges += more
    free[first].low, free[first].high = low, high


@compiled(forceinline=True)
def reallocate(state: RunState, job: int, count: int) -> None:
    """Give a run the lowest-numbered free processors besides, or keep its lowest-numbered.

    Whoever calls makes room for so many ranges.
    """
    run = state.scalars[0]
    first, last, more = state.first_range[job], state.last_range[job], count - state.processors[job]
    state.processors[job] = count
    if more > 0:
        _allocate_more(state, job, first, last, more)
        return
    ranges, left = state.ranges, count
    begin = end = run.ranges
    run.free -= more
    for k in range(first, last):
        low, high = ranges[k].low, ranges[k].high
        width = min(left, high - low + 1)
        left -= width
        if width > 0:
            ranges[end].low, ranges[end].high = low, low + width - 1
            end += 1
        if low + width <= high:
            release(state, low + width, high)
    state.first_range[job] = begin
    state.last_range[job] = run.ranges = end


@compiled
def allocate_named(state: RunState, low: int, high: int) -> bool:
    """Take processors from low to high; say whether all were free, else nothing is taken."""
    free, run = state.free_ranges, state.scalars[0]
    place = rank_in(free["low"][: run.free_ranges], low + 1) - 1
    if place < 0 or high > free[place].high or low > high:
        return False
    first, last = free[place].low, free[place].high
    shift(free, place + 1, run.free_ranges, -1)
    run.free_ranges -= 1
    if first < low:
        release(state, first, low - 1)
    if high < last:
        release(state, high + 1, last)
    return True
