"""Scheduling passes that need no Python, over the state of a run: strict, EASY, conservative."""

from typing import Any, NamedTuple, cast

import numpy as np
from numba import types
from numba.experimental import structref

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.policies.allocation.sa import least_turnaround
from sim.policies.backfill.queue_search import (
    Opening,
    Summaries,
    backfill,
    fill,
    find_heads,
    forget,
)
from sim.policies.backfill.reservations import (
    NEXT,
    Kept,
    compress,
    due,
    follow,
    repair,
    replan,
    reserve_at,
)
from sim.policies.base import CONSERVATIVE, STRICT
from sim.policies.molding.candidates import Candidates
from sim.policies.molding.choice import Blocking, mold_first
from sim.policies.passes.open_passes import Offered, OpenPlan, may_start, open_pass
from sim.policies.passes.sharing import Sharing
from sim.state.availability import earliest_of, lay, nothing_found, place, place_next
from sim.state.calendar import Calendar
from sim.state.run_state import State, structure
from sim.state.steps import ask_to_wake, holders_in, start, waiting_in

BEGIN, SIZE, AT_ONCE = range(3)
"""Rows of `Plan.offers`."""


@structref.register
class PlanType(types.StructRef):
    """The type that compiled code gives to a plan."""


class Plan(structref.StructRefProxy):  # type: ignore[misc]
    """What a rule keeps from pass to pass beside the state.

    Attributes
    ----------
    summaries : Summaries
        Of the queue.
    kept : Kept
        Of reservations under conservative backfilling.
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
    reservations : int
        How many blocked jobs hold one under EASY.
    shortest : bool
        Whether it tries the shortest jobs first, where that is one.
    single : numpy.ndarray of int, shape (5, n)
        Where several do, `sim.policies.molding.candidates.single_candidates`.
    open : OpenPlan
        Of a rule for open counts; `offers` are its spans then, one row for each of theirs.
    sharing : Sharing
    """

    summaries: Summaries
    kept: Kept
    times: FloatArray
    free: IntArray
    span: IntArray
    offers: IntArray
    counts: IntArray
    choices: FloatArray
    margin: float
    most_area: tuple[float, float]
    anew: float
    reservations: int
    shortest: bool
    single: IntArray
    open: OpenPlan
    sharing: Sharing


PLANNED = tuple(Plan.__annotations__)
structref.define_proxy(Plan, PlanType, list(PLANNED))


@compiled(makes_arrays=True)
def _made(fields: tuple[Any, ...]) -> Plan:
    return Plan(*fields)


def make_plan(**fields: Any) -> Plan:
    """Return a plan of all its fields."""
    ordered = {name: fields[name] for name in PLANNED}
    return cast(Plan, structure(_made, ordered, grows=("times", "free", "counts", "choices")))


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


class Revision(NamedTuple):
    """What a learning predictor believes differently of waiting jobs since the last pass.

    Attributes
    ----------
    jobs : numpy.ndarray of int, shape (r,)
        In queue order.
    beliefs : numpy.ndarray of float, shape (r,), seconds
        On the counts that they chose.
    """

    jobs: IntArray
    beliefs: FloatArray


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
    if rule != CONSERVATIVE and plan.offers[SIZE, job] > 1:
        _lay_running(state, plan)
        holes, first = (plan.times, plan.free, plan.span), state.run[0].head
        replan(holes, state.run[0].now, waiting_in(state), first, job)
    _settle(state, calendar, plan, job)


@compiled(makes_arrays=True)
def _settle(state: State, calendar: Calendar, plan: Plan, job: int) -> None:
    """Give a job the count of smallest believed turnaround on the profile as it is."""
    best, now, run = plan.offers[BEGIN, job], state.run[0].now, state.run[0]
    if plan.offers[SIZE, job] > 1:
        offered = slice(best, best + plan.offers[SIZE, job])
        counts, beliefs = plan.counts[offered], plan.choices[0, offered]
        waits = earliest_of(plan.times, plan.free, plan.span, now, counts, beliefs) - now
        at_once, areas = plan.offers[AT_ONCE, job] != 0, plan.choices[2, offered]
        waiting, own = state.waiting, state.waiting[job] > 0
        others = np.count_nonzero(waiting[run.head : run.arrived]) > own
        most = plan.most_area[int(others)]
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
    """Let each job that waited before this instant choose given those ahead; see `ChoiceAnew`."""
    run, waiting = state.run[0], state.waiting
    _lay_running(state, plan)
    for job in range(run.head, run.newcomer):
        if waiting[job] > 0:
            if plan.offers[SIZE, job] > 0:
                _settle(state, calendar, plan, job)
            waiting[job] = state.processors[job]
            place(plan.times, plan.free, plan.span, run.now, waiting[job], state.belief[job])
    plan.summaries.summarised[:] = False


@compiled(makes_arrays=True)
def _believe(state: State, plan: Plan, revision: Revision) -> bool:
    """Plan with revised beliefs; say whether any became shorter."""
    beliefs, is_shorter = state.belief, False
    for k in range(revision.jobs.size):
        job = revision.jobs[k]
        is_shorter |= revision.beliefs[k] < beliefs[job]
        beliefs[job] = revision.beliefs[k]
    if revision.jobs.size > 0:
        plan.summaries.summarised[:] = False
    return is_shorter


@compiled(makes_arrays=True)
def admit(state: State, calendar: Calendar, plan: Plan, job: int, rule: int) -> None:
    """Choose the count of a job that has just arrived, and let it wait."""
    if plan.offers[SIZE, job] > 0:
        _choose(state, calendar, plan, job, rule)
    state.waiting[job] = state.processors[job]


# Strict, and EASY with one reservation


@compiled(makes_arrays=True)
def _make_easy_pass(
    state: State, calendar: Calendar, plan: Plan, strict: bool, changed: bool
) -> None:
    """Make a pass of EASY with one reservation, as `EasyScheduler` does, and start who may.

    Parameters
    ----------
    state : State
    calendar : Calendar
    plan : Plan
    strict : bool
        Whether heads of the queue alone may start.
    changed : bool
        Whether anything but arrivals happened at this instant.
    """
    run, summaries = state.run[0], plan.summaries
    new, last, free = run.newcomer, run.arrived, run.free
    blocked = run.head < new and not changed
    if run.head == last or (blocked and strict):
        return
    waiting, found = waiting_in(state), state.found
    forget(summaries, new, last)
    if blocked:
        opening = Opening(free, run.extra_nodes, run.now, run.shadow_time, plan.shortest)
        number, run.extra_nodes = fill(
            waiting.counts, waiting.runtimes, new, last, opening, False, summaries, found
        )
    else:
        number, head, free = find_heads(waiting.counts, run.head, last, free, found)
        run.head = head
        if head < last and not strict:
            opening = Opening(free, 0, run.now, 0.0, plan.shortest)
            number, run.shadow_time, run.extra_nodes = backfill(
                holders_in(state), waiting, head, last, opening, summaries, number, found
            )
    for k in range(number):
        start(state, calendar, found[k])


@compiled(makes_arrays=True)
def _make_deep_pass(state: State, calendar: Calendar, plan: Plan) -> None:
    """Make a pass of EASY with several reservations, as `EasyScheduler` does."""
    run, waiting = state.run[0], waiting_in(state)
    while run.head < run.arrived and waiting.counts[run.head] == 0:
        run.head += 1
    if run.free == 0 or run.head == run.arrived:
        return
    _lay_running(state, plan)
    number = mold_first(
        (plan.times, plan.free, plan.span), state.run[0].now, waiting,
        Candidates(plan.single, state.processors, waiting.runtimes, waiting.starts),
        run.head, run.arrived, Blocking(plan.reservations, False, -1.0), state.found,
    )  # fmt: skip
    for job in state.found[:number]:
        start(state, calendar, job)


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
def _make_conservative_pass(
    state: State, calendar: Calendar, plan: Plan, revision: Revision
) -> None:
    """Make a pass of conservative backfilling, as `ConservativeScheduler` does."""
    run, now = state.run[0], state.run[0].now
    waiting, found = waiting_in(state), state.found
    holes = plan.times, plan.free, plan.span
    kept = plan.kept
    new, last = run.newcomer, run.arrived
    early, is_broken = follow(holes, now, _changes(state), kept)
    if is_broken:
        _lay_running(state, plan)
        repair(holes, now, waiting, run.head, new, kept)
    if revision.jobs.size > 0:
        early |= _believe(state, plan, revision)
        _lay_running(state, plan)
        repair(holes, now, waiting, run.head, new, kept)
    while run.head < new and waiting.counts[run.head] == 0:
        run.head += 1
    head = run.head
    if early and head < new:
        compress(holes, now, waiting, head, new, kept)
    placed = nothing_found(last - new)
    for job in range(new, last):
        admit(state, calendar, plan, job, CONSERVATIVE)
        wanted, belief = waiting.counts[job], waiting.runtimes[job]
        reserve_at(job, place_next(*holes, now, wanted, belief, placed), waiting, kept)
    number, wants_wake = due(holders_in(state).end, waiting, head, last, now, kept, found)
    if wants_wake:
        ask_to_wake(state, kept.instants[NEXT])
    for job in found[:number]:
        start(state, calendar, job)


@compiled(makes_arrays=True)
def make_open_pass(state: State, calendar: Calendar, plan: Plan) -> None:
    """Make the scheduling pass of an instant where counts stay open."""
    if may_start(state):
        _lay_running(state, plan)
        offered = Offered(plan.offers, plan.counts, plan.choices)
        open_pass(state, calendar, offered, plan.open, (plan.times, plan.free, plan.span))


@compiled(makes_arrays=True)
def make_pass(
    state: State, calendar: Calendar, plan: Plan, rule: int, changed: bool, revision: Revision
) -> None:
    """Make the scheduling pass of an instant where counts are given or settled at submit.

    Parameters
    ----------
    state : State
    calendar : Calendar
    plan : Plan
    rule : int
        `STRICT`, `EASY` or `CONSERVATIVE`.
    changed : bool
        Whether anything but arrivals happened at this instant.
    revision : Revision
    """
    if rule == CONSERVATIVE:
        _make_conservative_pass(state, calendar, plan, revision)
        return
    run = state.run[0]
    if revision.jobs.size > 0:
        _believe(state, plan, revision)
    if run.expired_now > 0 and is_refuted(state, plan.anew):
        _choose_anew(state, calendar, plan)
    for job in range(run.newcomer, run.arrived):
        admit(state, calendar, plan, job, rule)
    if plan.reservations > 1:
        _make_deep_pass(state, calendar, plan)
    else:
        _make_easy_pass(state, calendar, plan, rule == STRICT, changed)
