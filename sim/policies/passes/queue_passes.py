"""Scheduling passes that need no Python, over the state of a run: strict, EASY, conservative."""

from typing import Any, cast

import numpy as np
from numba.experimental import structref
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.policies.allocation.sa import least_turnaround
from sim.policies.backfill.conservative import (
    NEXT,
    Kept,
    compress,
    due,
    follow_changes,
    repair,
    reserve_at,
)
from sim.policies.backfill.easy import deep_pass, start_behind, start_heads, start_newcomers
from sim.policies.backfill.reservations import replan
from sim.policies.base import CONSERVATIVE
from sim.policies.passes.open_passes import Offered, OpenPlan, may_start, open_pass
from sim.policies.passes.sharing import Sharing
from sim.state.availability import earliest_of, lay, nothing_found, place, place_next
from sim.state.calendar import Calendar
from sim.state.run_state import State, struct_type, structure
from sim.state.run_steps import ask_to_wake, holders_in, start
from sim.state.waiting_queue import Queue, forget_all, pop, push, tidy, waiting_in

BEGIN, SIZE, AT_ONCE = range(3)
"""Rows of `Plan.offers`."""


class Plan(structref.StructRefProxy):
    """What a rule keeps from pass to pass beside the state.

    Attributes
    ----------
    queue : Queue
        Who waits, in order of arrival.
    easy : numpy.ndarray of RULE, shape (1,)
        Of `sim.policies.backfill.easy`.
    revised : numpy.ndarray of int, shape (r,)
    beliefs : numpy.ndarray of float, shape (r,), seconds
        Of `revise`.
    instants : numpy.ndarray of float, shape (4,), seconds
        Of `sim.policies.backfill.conservative.Kept`.
    times, free, span : numpy.ndarray
        The profile of `sim.state.availability`.
    offers : numpy.ndarray of int, shape (3, n)
        Where the counts begin that each job may choose from when it settles its count
        (row `BEGIN`), how many they are (`SIZE`; 0 where that is settled already), and
        whether only those count on which it can start at once (`AT_ONCE`).
    counts : numpy.ndarray of int, shape (c,)
    choices : numpy.ndarray of float, shape (3, c)
        Belief and true runtime on each of these counts, seconds, and the processor time
        believed over that of the request.
    margin : float
        Of `sim.policies.allocation.sa.least_turnaround`.
    most_area : tuple of (float, float)
        Likewise, while nobody else waits and while others do.
    anew : float
        Waiting jobs choose anew when a running one has taken so many times its belief.
    open : OpenPlan
        Of a rule for open counts; `offers` are its spans then, one row for each of theirs.
    sharing : Sharing
    """

    queue: Queue
    easy: NDArray[Any]
    revised: IntArray
    beliefs: FloatArray
    instants: FloatArray
    times: FloatArray
    free: IntArray
    span: IntArray
    offers: IntArray
    counts: IntArray
    choices: FloatArray
    margin: float
    most_area: tuple[float, float]
    anew: float
    open: OpenPlan
    sharing: Sharing


PLANNED = tuple(Plan.__annotations__)
PlanType = struct_type(Plan, PLANNED)


@compiled(makes_arrays=True)
def _made(fields: tuple[Any, ...]) -> Plan:
    return Plan(*fields)  # type: ignore[no-untyped-call]


def make_plan(**fields: Any) -> Plan:
    """Return a plan of all its fields."""
    ordered = {name: fields[name] for name in PLANNED}
    return cast(
        Plan,
        structure(
            _made, ordered, grows=("times", "free", "counts", "choices", "revised", "beliefs")
        ),
    )


@compiled(makes_arrays=True)
def let_choose(plan: Plan, counts: IntArray, choices: FloatArray) -> None:
    """Put down what jobs may choose from."""
    plan.counts, plan.choices = counts, choices


@compiled(makes_arrays=True)
def choices_of(plan: Plan) -> tuple[IntArray, FloatArray]:
    """Return the counts, and what is known of each, that jobs may choose from."""
    return plan.counts, plan.choices


@compiled(makes_arrays=True)
def make_room(plan: Plan, breakpoints: int) -> None:
    """Let the profile grow, where there is one, if so many breakpoints might not find room."""
    size = plan.times.size
    if 1 < size < breakpoints:
        times, free = np.zeros(2 * breakpoints), np.zeros(2 * breakpoints, np.int64)
        times[:size], free[:size] = plan.times, plan.free
        plan.times, plan.free = times, free


# Counts that are chosen at submit


@compiled(makes_arrays=True)
def _lay_running(state: State, plan: Plan) -> None:
    """Begin the profile anew from the believed ends of running jobs."""
    ends, holes = holders_in(state), (plan.times, plan.free, plan.span)
    processors = state.run[0].free + ends.processors.sum()
    lay(*holes, state.run[0].now, processors, ends.end, ends.processors)


@compiled(makes_arrays=True)
def _choose(state: State, calendar: Calendar, plan: Plan, job: int, rule: int) -> None:
    """Give an arriving job the count of smallest believed turnaround (SA).

    Under EASY and strict rules its start is believed to be that of a reservation behind all
    that wait; a conservative rule asks its live profile.
    """
    at = plan.queue.at[0]
    if rule != CONSERVATIVE and plan.offers[SIZE, job] > 1:
        _lay_running(state, plan)
        holes, now = (plan.times, plan.free, plan.span), state.run[0].now
        replan(holes, now, waiting_in(plan.queue), at.first, at.last)
    _settle(state, calendar, plan, job, at.waiting > 0)


@compiled(makes_arrays=True)
def _settle(state: State, calendar: Calendar, plan: Plan, job: int, others_wait: bool) -> None:
    """Give a job the count of smallest believed turnaround on the profile as it is."""
    best, now = plan.offers[BEGIN, job], state.run[0].now
    if plan.offers[SIZE, job] > 1:
        offered = slice(best, best + plan.offers[SIZE, job])
        counts, beliefs = plan.counts[offered], plan.choices[0, offered]
        waits = earliest_of(plan.times, plan.free, plan.span, now, counts, beliefs) - now
        at_once, areas = plan.offers[AT_ONCE, job] != 0, plan.choices[2, offered]
        most = plan.most_area[int(others_wait)]
        best += least_turnaround(waits, beliefs, areas, at_once, plan.margin, most)
    state.processors[job] = plan.counts[best]
    state.belief[job], calendar.runtime[job] = plan.choices[:2, best]


@compiled(makes_arrays=True)
def is_refuted(state: State, factor: float) -> bool:
    """Say whether a job outlived its belief now and has taken so many times what it was."""
    now = state.run[0].now
    for job in state.expired_jobs[: state.run[0].expired_now]:
        believed = state.belief[job]
        if now - state.start_time[job] >= factor * believed * (1.0 - 1e-9):
            return True
    return False


@compiled(makes_arrays=True)
def _choose_anew(state: State, calendar: Calendar, plan: Plan) -> None:
    """Let each waiting job choose given those ahead; see `ChoiceAnew`."""
    queue, now = plan.queue, state.run[0].now
    others_wait = queue.at[0].waiting > 1
    _lay_running(state, plan)
    for k in range(queue.at[0].first, queue.at[0].last):
        if queue.processors[k] > 0:
            job = queue.job[k]
            if plan.offers[SIZE, job] > 0:
                _settle(state, calendar, plan, job, others_wait)
            queue.processors[k], queue.runtime[k] = state.processors[job], state.belief[job]
            place(plan.times, plan.free, plan.span, now, queue.processors[k], queue.runtime[k])
    forget_all(queue)


@compiled(makes_arrays=True)
def _believe(state: State, plan: Plan) -> bool:
    """Plan with revised beliefs; say whether any became shorter."""
    queue, is_shorter = plan.queue, False
    for k in range(plan.revised.size):
        at, belief = plan.revised[k], plan.beliefs[k]
        is_shorter |= belief < queue.runtime[at]
        queue.runtime[at] = state.belief[queue.job[at]] = belief
    plan.revised = plan.revised[:0]
    forget_all(queue)
    return is_shorter


@compiled(makes_arrays=True)
def revise(plan: Plan, places: IntArray, beliefs: FloatArray) -> None:
    """Let the next pass plan with other beliefs about waiting jobs.

    Parameters
    ----------
    plan : Plan
    places : numpy.ndarray of int, shape (r,)
        In queue order.
    beliefs : numpy.ndarray of float, shape (r,), seconds
        On the counts that they chose.
    """
    plan.revised, plan.beliefs = places, beliefs


@compiled(makes_arrays=True)
def admit(state: State, calendar: Calendar, plan: Plan, job: int, rule: int) -> int:
    """Choose the count of a job that has just arrived, and let it wait; return its place."""
    if plan.offers[SIZE, job] > 0:
        _choose(state, calendar, plan, job, rule)
    return push(plan.queue, job, state.processors[job], state.belief[job], 0.0)


@compiled(makes_arrays=True)
def _start_found(state: State, calendar: Calendar, queue: Queue, number: int) -> None:
    """Start the jobs at the first places that were found."""
    for k in queue.found[:number]:
        start(state, calendar, queue.job[k])
        pop(queue, k)
    tidy(queue)


@compiled(makes_arrays=True)
def _make_easy_pass(state: State, calendar: Calendar, plan: Plan, rule: int) -> None:
    """Make a pass of EASY, or of a strict rule, and start who may."""
    run, queue, easy = state.run[0], plan.queue, plan.easy
    arrivals_only = queue.at[0].waiting > 0 and not run.more_than_arrivals
    if plan.revised.size > 0:
        _believe(state, plan)
    if run.expired_now > 0 and is_refuted(state, plan.anew):
        _choose_anew(state, calendar, plan)
    for job in range(run.newcomer, run.arrived):
        admit(state, calendar, plan, job, rule)
    if queue.at[0].waiting == 0:
        return
    if easy[0].reservations > 1:
        holes = plan.times, plan.free, plan.span
        number = deep_pass(queue, holders_in(state), run.free, run.now, easy, holes)
    elif arrivals_only:
        number = start_newcomers(queue, run.free, run.now, easy, run.arrived - run.newcomer)
    else:
        number, free, is_blocked = start_heads(queue, run.free, easy)
        if is_blocked:
            number = start_behind(queue, holders_in(state), free, run.now, easy)
    if number > 0:
        _start_found(state, calendar, queue, number)


# Conservative


@compiled(makes_arrays=True)
def _changes(state: State) -> FloatArray:
    """Return what runs that ended, or outlived their belief, hold otherwise than believed."""
    held, until = state.processors, state.believed_end
    ended, expired = state.run[0].ended_now, state.run[0].expired_now
    changes = np.empty((ended + expired, 3))
    changes[:, 0] = state.run[0].now
    for k in range(ended + expired):
        is_over = k < ended
        job = state.ended_jobs[k] if is_over else state.expired_jobs[k - ended]
        changes[k, 1], changes[k, 2] = until[job], -held[job] if is_over else held[job]
    return changes


@compiled(makes_arrays=True)
def _make_conservative_pass(state: State, calendar: Calendar, plan: Plan) -> None:
    """Make a pass of conservative backfilling, as `ConservativeScheduler` does."""
    run, now, queue, at = state.run[0], state.run[0].now, plan.queue, plan.queue.at[0]
    holes, waiting = (plan.times, plan.free, plan.span), waiting_in(queue)
    kept = Kept(plan.instants, queue.soonest)
    early, is_broken = follow_changes(holes, now, _changes(state), kept)
    if is_broken:
        _lay_running(state, plan)
        repair(holes, now, waiting, at.first, at.last, kept)
    if plan.revised.size > 0:
        early |= _believe(state, plan)
        _lay_running(state, plan)
        repair(holes, now, waiting, at.first, at.last, kept)
    while at.first < at.last and waiting.counts[at.first] == 0:
        at.first += 1
    if early and at.first < at.last:
        compress(holes, now, waiting, at.first, at.last, kept)
    placed = nothing_found(run.arrived - run.newcomer)
    for job in range(run.newcomer, run.arrived):
        k = admit(state, calendar, plan, job, CONSERVATIVE)
        begin = place_next(*holes, now, queue.processors[k], queue.runtime[k], placed)
        reserve_at(k, begin, waiting_in(queue), Kept(plan.instants, queue.soonest))
    kept = Kept(plan.instants, queue.soonest)
    if at.soonest_layout != at.layout:
        at.soonest_layout = at.layout
        kept.soonest[:] = -np.inf
    number, wants_wake = due(
        holders_in(state).end, waiting_in(queue), at.first, at.last, now, kept, queue.found
    )
    if wants_wake:
        ask_to_wake(state, plan.instants[NEXT])
    _start_found(state, calendar, queue, number)


@compiled(makes_arrays=True)
def make_open_pass(state: State, calendar: Calendar, plan: Plan) -> None:
    """Make the scheduling pass of an instant where counts stay open."""
    if may_start(state):
        _lay_running(state, plan)
        offered = Offered(plan.offers, plan.counts, plan.choices)
        open_pass(state, calendar, offered, plan.open, (plan.times, plan.free, plan.span))


@compiled(makes_arrays=True)
def make_pass(state: State, calendar: Calendar, plan: Plan, rule: int) -> None:
    """Make the scheduling pass of an instant where counts are given or settled at submit.

    Parameters
    ----------
    state : State
    calendar : Calendar
    plan : Plan
    rule : int
        `STRICT`, `EASY` or `CONSERVATIVE`.
    """
    if rule == CONSERVATIVE:
        _make_conservative_pass(state, calendar, plan)
    else:
        _make_easy_pass(state, calendar, plan, rule)
