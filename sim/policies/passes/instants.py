"""From instant to instant in compiled steps, until Python is needed."""

from typing import NamedTuple

import numpy as np

from predictors.base import IntArray
from predictors.compiling import compiled
from sim.policies.passes.equal_passes import share_pass
from sim.policies.passes.queue_passes import (
    Plan,
    is_refuted,
    make_open_pass,
    make_pass,
    make_room,
)
from sim.policies.passes.sharing import ASKED
from sim.state.calendar import Calendar
from sim.state.run_state import State
from sim.state.run_steps import next_event_time, process_instant
from sim.state.waiting_queue import Queue

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


def no_news(application: IntArray) -> News:
    """Return that nothing has happened, with room for the ends of these jobs."""
    return News(np.zeros((2, application.size), np.int64), application, np.zeros(1, np.int64))


@compiled(makes_arrays=True)
def _is_news(state: State, queue: Queue, news: News) -> bool:
    """Write down who ended at this instant; say whether a job of the same application waits."""
    run, at = state.run[0], queue.at[0]
    number, concerns = run.ended_now, False
    for i in range(number):
        job, place = state.ended_jobs[i], run.ended - number + i - news.told[0]
        news.ended[WHO, place], news.ended[BEFORE, place] = job, run.started
        for k in range(at.first, at.last):
            if concerns:
                break
            same = news.application[queue.job[k]] == news.application[job]
            concerns = queue.processors[k] > 0 and same
    return concerns


@compiled(makes_arrays=True)
def _arriving(state: State, calendar: Calendar, instant: float) -> int:
    """Count the jobs that arrive then."""
    arrived = last = state.run[0].arrived
    while last < calendar.submit_time.size and calendar.submit_time[last] == instant:
        last += 1
    return int(last - arrived)


@compiled(makes_arrays=True)
def _goes_on(state: State, calendar: Calendar, plan: Plan) -> bool:
    """Process the next instant, if there is one; say whether there was."""
    following = next_event_time(state, calendar)
    if following == np.inf:
        return False
    if plan.times.size > 1:
        run = state.run[0]
        waiting = run.arrived - run.started + _arriving(state, calendar, following)
        make_room(plan, 4 * (waiting + run.running + 1) + 64)
    process_instant(state, calendar, following)
    return True


@compiled(makes_arrays=True)
def _is_break(state: State) -> bool:
    """Note that the pass of an instant was made; say whether Python shall have its chance."""
    run = state.run[0]
    run.pass_due = 0
    run.passes += 1
    return bool(run.passes % INSTANTS == 0)


@compiled(makes_arrays=True)
def advance(
    state: State, calendar: Calendar, plan: Plan, rule: int, asks: bool, news: News
) -> float:
    """Go through instants, each with one pass at its end, as long as no Python is needed.

    It is when an instant was taken in whose pass has to wait for what a predictor says, which
    `pass_due` tells; and after every 256th pass.

    Parameters
    ----------
    state : State
    calendar : Calendar
    plan : Plan
    rule : int
        One of `sim.policies.base`.
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
    run = state.run[0]
    while True:
        if run.pass_due:
            make_pass(state, calendar, plan, rule)
            if _is_break(state):
                return next_event_time(state, calendar)
        if not _goes_on(state, calendar, plan):
            return next_event_time(state, calendar)
        changes_its_mind = news.application.size > 0 and _is_news(state, plan.queue, news)
        if asks and (
            run.newcomer < run.arrived
            or changes_its_mind
            or (run.expired_now > 0 and is_refuted(state, plan.anew))
        ):
            return float(run.now)


@compiled(makes_arrays=True)
def advance_open(state: State, calendar: Calendar, plan: Plan) -> float:
    """Go through instants where counts stay open, as `advance` does with other rules.

    This and `advance_shares` are compiled apart: most runs do without, and it takes long.
    """
    while True:
        if state.run[0].pass_due:
            make_open_pass(state, calendar, plan)
            if _is_break(state):
                return next_event_time(state, calendar)
        if not _goes_on(state, calendar, plan):
            return next_event_time(state, calendar)


@compiled(makes_arrays=True)
def advance_shares(state: State, calendar: Calendar, plan: Plan) -> float:
    """Go through instants under equal shares; it is Python's turn where a curve is asked for."""
    while True:
        if state.run[0].pass_due:
            share_pass(state, calendar, plan.sharing)
            if plan.sharing.tallies[ASKED] > 0:
                return float(state.run[0].now)
            if _is_break(state):
                return next_event_time(state, calendar)
        if not _goes_on(state, calendar, plan):
            return next_event_time(state, calendar)
