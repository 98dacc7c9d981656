"""When what happens to each job: the tables of truths, which the loop of events alone holds.

A running job stands once in a heap of what happens to it next: the end of its run, or before
that the expiry of its belief.
"""

from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray, RuntimePredictor
from predictors.compiling import compiled
from predictors.in_loop.wrapper import setting
from sim.state.run_tables import BELIEVED_END, PLANNED, TURNS, Tables

SUBMIT, RUNTIME, LIMIT, END, REQUESTED = range(5)
"""Rows of `seconds`, a column a job. `LIMIT` is how long it may run before it is killed,
`REQUESTED` up to how long its belief is corrected."""
KIND, TURN, JOB = range(3)
"""Rows of `what`: what happens, in which turn it was foreseen, and to whom."""
ENDING, EXPIRING = range(2)
"""What happens to a running job; at one instant, in this order."""


class Calendar(NamedTuple):
    """What nobody may know who decides or predicts: who comes, how long each runs, until when.

    Attributes
    ----------
    seconds : numpy.ndarray of float, shape (5, n)
    coming : numpy.ndarray of float, shape (r,), seconds
        A heap of when what happens next to running jobs.
    what : numpy.ndarray of int, shape (3, r)
        Of each entry of the heap.
    corrections : numpy.ndarray of float, shape (k,), ascending, seconds
        By how much a belief that is outlived grows, one after the other, up to the requested
        time; beyond, or without them, it doubles.
    """

    seconds: FloatArray
    coming: FloatArray
    what: IntArray
    corrections: FloatArray


def corrections_of(predictor: RuntimePredictor | None) -> FloatArray:
    """Return by how much beliefs of a predictor grow that are outlived."""
    return np.array(setting(predictor, "corrections", ()), float)


def blank_calendar(jobs: int, running: int, corrections: FloatArray) -> Calendar:
    """Return a calendar for so many jobs, of which so many run at once."""
    seconds, what = np.zeros((5, jobs)), np.zeros((3, running), np.int64)
    return Calendar(seconds, np.zeros(running), what, corrections)


@compiled()
def _is_sooner(calendar: Calendar, one: int, other: int) -> bool:
    time, what = calendar.coming, calendar.what
    if time[one] != time[other]:
        return bool(time[one] < time[other])
    if what[KIND, one] != what[KIND, other]:
        return bool(what[KIND, one] < what[KIND, other])
    return bool(what[TURN, one] < what[TURN, other])


@compiled()
def swap(calendar: Calendar, one: int, other: int) -> None:
    """Let two entries of the heap change places."""
    time, what = calendar.coming, calendar.what
    time[one], time[other] = time[other], time[one]
    for row in (KIND, TURN, JOB):
        what[row, one], what[row, other] = what[row, other], what[row, one]


@compiled()
def sink(calendar: Calendar, here: int, size: int) -> None:
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


@compiled()
def rise(calendar: Calendar, here: int) -> None:
    """Move an entry of the heap up to where it belongs."""
    while here > 0 and _is_sooner(calendar, here, (here - 1) // 2):
        swap(calendar, here, (here - 1) // 2)
        here = (here - 1) // 2


@compiled()
def foresee(tables: Tables, calendar: Calendar, place: int, job: int) -> None:
    """Write what happens next to a running job into a place of the heap.

    Ends at one instant are taken in by the order in which they were planned, expiries by
    that in which they were foreseen.
    """
    end, believed = calendar.seconds[END, job], tables.seconds[BELIEVED_END, job]
    expires = end > believed
    calendar.coming[place] = believed if expires else end
    calendar.what[KIND, place] = EXPIRING if expires else ENDING
    turn = tables.counters[TURNS] if expires else tables.numbers[PLANNED, job]
    calendar.what[TURN, place] = turn
    calendar.what[JOB, place] = job
    tables.counters[TURNS] += 1
