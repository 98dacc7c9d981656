"""When what happens to each job: the tables of truths, which the loop of events alone holds.

A running job stands once in a heap of what happens to it next: the end of its run, or before
that the expiry of its belief.
"""

from typing import Any, cast

import numpy as np
from numba.experimental import structref
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.state.run_state import State, kinds_in, maker, struct_type, structure
from workloads.base import Tabled

FIRST_EXPIRY = 1 << 62
"""From here on expiries are numbered: at one instant they come after all ends."""


class Calendar(structref.StructRefProxy):
    """What nobody may know who decides or predicts: who comes, how long each runs, until when.

    Attributes
    ----------
    submit_time, runtime, end_time : numpy.ndarray of float, shape (n,), seconds
        Of each job.
    offered : numpy.ndarray of float, shape (c,), seconds
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
    offered: FloatArray
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


CalendarType = struct_type(Calendar)


def make_calendar(jobs: int, running: int, **known: Any) -> Calendar:
    """Return a calendar for so many jobs, of which so many run at once; nobody is killed.

    Parameters
    ----------
    jobs, running : int
    **known : object
        Other fields, of which arrays are kept, not copied.
    """
    sizes = dict.fromkeys(("event_time", "event_sequence", "event_job"), running)
    sizes |= dict.fromkeys(("offered", "corrections", "done", "since"), 0)
    fields: dict[str, Any] = {}
    for name, kind in kinds_in(Calendar).items():
        fields[name] = np.zeros(sizes.get(name, jobs), kind)
    fields["limit"][:] = np.inf
    fields["by_count"] = Tabled(np.zeros((0, 0)), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
    return cast(Calendar, structure(maker(Calendar), fields | known))


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
def write_event(state: State, calendar: Calendar, place: int, job: int) -> None:
    """Write what happens next to a running job into a place of the heap.

    Ends at one instant are taken in by the order in which they were planned, expiries by
    that in which they were foreseen.
    """
    end, believed, run = calendar.end_time[job], state.believed_end[job], state.run[0]
    turn = FIRST_EXPIRY + run.sequence if end > believed else state.end_sequence[job]
    calendar.event_time[place] = min(end, believed)
    calendar.event_sequence[place], calendar.event_job[place] = turn, job
    run.sequence += 1
