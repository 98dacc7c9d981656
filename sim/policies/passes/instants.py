"""From instant to instant in compiled steps, until Python is needed."""

from typing import NamedTuple

import numpy as np

from predictors.base import IntArray
from predictors.compiling import compiled
from sim.policies.passes.equal_passes import has_room, share_pass
from sim.policies.passes.queue_passes import (
    Plan,
    Revision,
    is_refuted,
    make_open_pass,
    make_pass,
)
from sim.policies.passes.sharing import ASKED
from sim.state.calendar import SUBMIT, Calendar
from sim.state.run_steps import next_instant, take_in
from sim.state.run_tables import (
    ARRIVED,
    CHANGED,
    ENDED,
    ENDED_NOW,
    ENDED_ONE,
    EXPIRED_NOW,
    HEAD,
    LATER,
    NEW,
    NOW,
    PASSES,
    RANGES,
    ROOM,
    RUNNING,
    STARTED,
    TAKEN,
    WAITING,
    WAKES,
    Tables,
)

INSTANTS = 256
"""Instants between two chances for Python to show progress and to be interrupted."""


WHO, BEFORE = range(2)
"""Rows of `News.ended`."""


class News(NamedTuple):
    """What a predictor that learns is to be told of, as soon as it is asked.

    Attributes
    ----------
    ended : numpy.ndarray of int, shape (2, c)
        Columns of those who ended, in turn, and how many had started before that.
    application : numpy.ndarray of int, shape (c,)
        Of the job of each column; empty where no predictor learns.
    told : numpy.ndarray of int, shape (1,)
        How many had ended when the predictor was told last.
    """

    ended: IntArray
    application: IntArray
    told: IntArray


def no_news(application: IntArray, tables: Tables) -> News:
    """Return that the predictor knows of all ends so far, with room for those of some jobs."""
    told = tables.counters[ENDED : ENDED + 1].copy()
    return News(np.zeros((2, application.size), np.int64), application, told)


@compiled()
def _is_news(tables: Tables, news: News) -> bool:
    """Write down who ended at this instant; say whether a job of the same application waits."""
    counters, waiting = tables.counters, tables.numbers[WAITING]
    number, concerns = counters[ENDED_NOW], False
    for i in range(number):
        job, place = tables.running[ENDED_ONE, i], counters[ENDED] - number + i - news.told[0]
        news.ended[WHO, place], news.ended[BEFORE, place] = job, counters[STARTED]
        for k in range(counters[HEAD], counters[NEW]):
            if concerns:
                break
            concerns = waiting[k] > 0 and news.application[k] == news.application[job]
    return concerns


@compiled()
def _arriving(tables: Tables, calendar: Calendar, instant: float) -> int:
    """Count the jobs that arrive then."""
    last = tables.counters[ARRIVED]
    while last < tables.seconds.shape[1] and calendar.seconds[SUBMIT, last] == instant:
        last += 1
    return int(last - tables.counters[ARRIVED])


@compiled()
def breakpoints(tables: Tables, calendar: Calendar, instant: float) -> int:
    """Return the room that a profile needs for all who run, wait and arrive by an instant."""
    counters = tables.counters
    waiting = counters[ARRIVED] - counters[STARTED] + _arriving(tables, calendar, instant)
    return int(4 * (waiting + counters[RUNNING] + 1) + 64)


@compiled()
def _has_room(tables: Tables, calendar: Calendar, plan: Plan, instant: float) -> bool:
    """Say whether who arrives at an instant is in the tables, and all that happens finds room."""
    counters = tables.counters
    return bool(
        instant < tables.instant[LATER]
        and tables.ranges.shape[1] - counters[RANGES] >= counters[ROOM]
        and tables.wakes.size > counters[WAKES]
        and has_room(plan.sharing)
        and (plan.times.size == 1 or plan.times.size >= breakpoints(tables, calendar, instant))
    )


@compiled()
def _goes_on(tables: Tables, calendar: Calendar, plan: Plan) -> bool:
    """Take in the next instant, if there is one and room for it; say whether it was taken in."""
    following = next_instant(tables, calendar)
    if following == np.inf or not _has_room(tables, calendar, plan, following):
        return False
    take_in(tables, calendar, following)
    return True


@compiled()
def _is_break(tables: Tables) -> bool:
    """Note that the pass of an instant was made; say whether Python shall have its chance."""
    tables.counters[TAKEN] = 0
    tables.counters[PASSES] += 1
    return bool(tables.counters[PASSES] % INSTANTS == 0)


@compiled()
def advance(
    tables: Tables,
    calendar: Calendar,
    plan: Plan,
    rule: int,
    revision: Revision,
    asks: bool,
    news: News,
) -> float:
    """Go through instants, each with one pass at its end, as long as no Python is needed.

    It is when an instant was taken in whose pass has to wait for what a predictor says, which
    `TAKEN` tells; when there is no room; and after every 256th pass.

    Parameters
    ----------
    tables : Tables
    calendar : Calendar
    plan : Plan
    rule : int
        One of `sim.policies.base`.
    revision : Revision
        For the pass that waited, if one did.
    asks : bool
        Whether a predictor is asked as jobs choose.
    news : News
        What it is to be told of. It is when somebody waits about whom it may change its mind;
        else it can be told later.

    Returns
    -------
    float
        When something happens next, in seconds; infinity if nothing does.
    """
    counters = tables.counters
    while True:
        if counters[TAKEN]:
            make_pass(tables, calendar, plan, rule, counters[CHANGED] != 0, revision)
            revision = Revision(revision.jobs[:0], revision.beliefs[:0])
            if _is_break(tables):
                return next_instant(tables, calendar)
        if not _goes_on(tables, calendar, plan):
            return next_instant(tables, calendar)
        changes_its_mind = news.application.size > 0 and _is_news(tables, news)
        if asks and (
            counters[NEW] < counters[ARRIVED]
            or changes_its_mind
            or (counters[EXPIRED_NOW] > 0 and is_refuted(tables, plan.anew))
        ):
            return float(tables.instant[NOW])


@compiled()
def advance_open(tables: Tables, calendar: Calendar, plan: Plan) -> float:
    """Go through instants where counts stay open, as `advance` does with other rules.

    This and `advance_shares` are compiled apart: most runs do without, and it takes long.
    """
    while True:
        if tables.counters[TAKEN]:
            make_open_pass(tables, calendar, plan)
            if _is_break(tables):
                return next_instant(tables, calendar)
        if not _goes_on(tables, calendar, plan):
            return next_instant(tables, calendar)


@compiled()
def advance_shares(tables: Tables, calendar: Calendar, plan: Plan) -> float:
    """Go through instants under equal shares; it is Python's turn where a curve is asked for."""
    while True:
        if tables.counters[TAKEN]:
            share_pass(tables, calendar, plan.sharing, plan.summaries)
            if plan.sharing.tallies[ASKED] > 0:
                return float(tables.instant[NOW])
            if _is_break(tables):
                return next_instant(tables, calendar)
        if not _goes_on(tables, calendar, plan):
            return next_instant(tables, calendar)
