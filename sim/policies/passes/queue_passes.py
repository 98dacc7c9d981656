"""Scheduling passes that need no Python, over the tables of a run: strict, EASY, conservative."""

from typing import NamedTuple

import numpy as np

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
from sim.state.calendar import RUNTIME, Calendar
from sim.state.run_steps import ask_to_wake, ends_in, start, waiting_in
from sim.state.run_tables import (
    ARRIVED,
    BELIEF,
    BELIEVED_END,
    ENDED_NOW,
    ENDED_ONE,
    EXPIRED_NOW,
    EXPIRED_ONE,
    FOUND,
    FREE,
    HEAD,
    KEPT,
    NEW,
    NOW,
    PROCESSORS,
    SHADOW,
    SPARE,
    START,
    WAITING,
    Tables,
)

BEGIN, SIZE, AT_ONCE = range(3)
"""Rows of `Plan.offers`."""


class Plan(NamedTuple):
    """What a rule keeps from pass to pass beside the tables.

    Attributes
    ----------
    summaries : Summaries
        Of the queue.
    soonest : numpy.ndarray of float, shape (b,), seconds
        See `sim.policies.backfill.reservations.due`.
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
    soonest: FloatArray
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


@compiled()
def _lay_running(tables: Tables, plan: Plan) -> None:
    """Begin the profile anew from the believed ends of running jobs."""
    ends, holes = ends_in(tables), (plan.times, plan.free, plan.span)
    processors = tables.counters[FREE] + ends.processors.sum()
    lay(*holes, tables.instant[NOW], processors, ends.end, ends.processors)


@compiled()
def _choose(tables: Tables, calendar: Calendar, plan: Plan, job: int, rule: int) -> None:
    """Give an arriving job the count of smallest believed turnaround (SA).

    Under EASY and strict rules its start is believed to be that of a reservation behind all
    that wait; a conservative rule asks its live profile.
    """
    if rule != CONSERVATIVE and plan.offers[SIZE, job] > 1:
        _lay_running(tables, plan)
        holes, first = (plan.times, plan.free, plan.span), tables.counters[HEAD]
        replan(holes, tables.instant[NOW], waiting_in(tables), first, job)
    _settle(tables, calendar, plan, job)


@compiled(makes_arrays=True)
def _settle(tables: Tables, calendar: Calendar, plan: Plan, job: int) -> None:
    """Give a job the count of smallest believed turnaround on the profile as it is."""
    best, now, counters = plan.offers[BEGIN, job], tables.instant[NOW], tables.counters
    if plan.offers[SIZE, job] > 1:
        offered = slice(best, best + plan.offers[SIZE, job])
        counts, beliefs = plan.counts[offered], plan.choices[0, offered]
        waits = earliest_of(plan.times, plan.free, plan.span, now, counts, beliefs) - now
        at_once, areas = plan.offers[AT_ONCE, job] != 0, plan.choices[2, offered]
        waiting, own = tables.numbers[WAITING], tables.numbers[WAITING, job] > 0
        others = np.count_nonzero(waiting[counters[HEAD] : counters[ARRIVED]]) > own
        most = plan.most_area[int(others)]
        best += least_turnaround(waits, beliefs, areas, at_once, plan.margin, most)
    tables.numbers[PROCESSORS, job] = plan.counts[best]
    tables.seconds[BELIEF, job], calendar.seconds[RUNTIME, job] = plan.choices[:2, best]


@compiled()
def is_refuted(tables: Tables, factor: float) -> bool:
    """Say whether a job outlived its belief now and has taken so many times what it was."""
    seconds, now = tables.seconds, tables.instant[NOW]
    for job in tables.running[EXPIRED_ONE, : tables.counters[EXPIRED_NOW]]:
        believed = seconds[BELIEF, job]
        if now - seconds[START, job] >= factor * believed * (1.0 - 1e-9):
            return True
    return False


@compiled()
def _choose_anew(tables: Tables, calendar: Calendar, plan: Plan) -> None:
    """Let each job that waited before this instant choose given those ahead; see `ChoiceAnew`."""
    counters, waiting = tables.counters, tables.numbers[WAITING]
    _lay_running(tables, plan)
    for job in range(counters[HEAD], counters[NEW]):
        if waiting[job] > 0:
            if plan.offers[SIZE, job] > 0:
                _settle(tables, calendar, plan, job)
            waiting[job] = tables.numbers[PROCESSORS, job]
            belief = tables.seconds[BELIEF, job]
            place(plan.times, plan.free, plan.span, tables.instant[NOW], waiting[job], belief)
    plan.summaries.summarised[:] = False


@compiled()
def _believe(tables: Tables, plan: Plan, revision: Revision) -> bool:
    """Plan with revised beliefs; say whether any became shorter."""
    beliefs, is_shorter = tables.seconds[BELIEF], False
    for k in range(revision.jobs.size):
        job = revision.jobs[k]
        is_shorter |= revision.beliefs[k] < beliefs[job]
        beliefs[job] = revision.beliefs[k]
    if revision.jobs.size > 0:
        plan.summaries.summarised[:] = False
    return is_shorter


@compiled()
def admit(tables: Tables, calendar: Calendar, plan: Plan, job: int, rule: int) -> None:
    """Choose the count of a job that has just arrived, and let it wait."""
    if plan.offers[SIZE, job] > 0:
        _choose(tables, calendar, plan, job, rule)
    tables.numbers[WAITING, job] = tables.numbers[PROCESSORS, job]


# Strict, and EASY with one reservation


@compiled()
def _make_easy_pass(
    tables: Tables, calendar: Calendar, plan: Plan, strict: bool, changed: bool
) -> None:
    """Make a pass of EASY with one reservation, as `EasyScheduler` does, and start who may.

    Parameters
    ----------
    tables : Tables
    calendar : Calendar
    plan : Plan
    strict : bool
        Whether heads of the queue alone may start.
    changed : bool
        Whether anything but arrivals happened at this instant.
    """
    counters, instant, summaries = tables.counters, tables.instant, plan.summaries
    new, last, free = counters[NEW], counters[ARRIVED], counters[FREE]
    blocked = counters[HEAD] < new and not changed
    if counters[HEAD] == last or (blocked and strict):
        return
    waiting, found = waiting_in(tables), tables.running[FOUND]
    forget(summaries, new, last)
    if blocked:
        spare, shadow = counters[SPARE], instant[SHADOW]
        opening = Opening(free, spare, instant[NOW], shadow, plan.shortest)
        number, counters[SPARE] = fill(
            waiting.counts, waiting.runtimes, new, last, opening, False, summaries, found
        )
    else:
        number, head, free = find_heads(waiting.counts, counters[HEAD], last, free, found)
        counters[HEAD] = head
        if head < last and not strict:
            opening = Opening(free, 0, instant[NOW], 0.0, plan.shortest)
            number, instant[SHADOW], counters[SPARE] = backfill(
                ends_in(tables), waiting, head, last, opening, summaries, number, found
            )
    for k in range(number):
        start(tables, calendar, found[k])


@compiled()
def _make_deep_pass(tables: Tables, calendar: Calendar, plan: Plan) -> None:
    """Make a pass of EASY with several reservations, as `EasyScheduler` does."""
    counters, waiting = tables.counters, waiting_in(tables)
    while counters[HEAD] < counters[ARRIVED] and waiting.counts[counters[HEAD]] == 0:
        counters[HEAD] += 1
    if counters[FREE] == 0 or counters[HEAD] == counters[ARRIVED]:
        return
    _lay_running(tables, plan)
    number = mold_first(
        (plan.times, plan.free, plan.span), tables.instant[NOW], waiting,
        Candidates(plan.single, tables.numbers[PROCESSORS], waiting.runtimes, waiting.starts),
        counters[HEAD], counters[ARRIVED], Blocking(plan.reservations, False, -1.0),
        tables.running[FOUND],
    )  # fmt: skip
    for job in tables.running[FOUND, :number]:
        start(tables, calendar, job)


# Conservative


@compiled(makes_arrays=True)
def _changes(tables: Tables) -> FloatArray:
    """Return what runs that ended, or outlived their belief, hold otherwise than believed."""
    held, until = tables.numbers[PROCESSORS], tables.seconds[BELIEVED_END]
    ended, expired = tables.counters[ENDED_NOW], tables.counters[EXPIRED_NOW]
    changes = np.empty((ended + expired, 3))
    changes[:, 0] = tables.instant[NOW]
    for k in range(ended + expired):
        is_over = k < ended
        job = tables.running[ENDED_ONE, k] if is_over else tables.running[EXPIRED_ONE, k - ended]
        changes[k, 1], changes[k, 2] = until[job], -held[job] if is_over else held[job]
    return changes


@compiled(makes_arrays=True)
def _make_conservative_pass(
    tables: Tables, calendar: Calendar, plan: Plan, revision: Revision
) -> None:
    """Make a pass of conservative backfilling, as `ConservativeScheduler` does."""
    counters, now = tables.counters, tables.instant[NOW]
    waiting, found = waiting_in(tables), tables.running[FOUND]
    holes = plan.times, plan.free, plan.span
    kept = Kept(tables.instant[KEPT:], plan.soonest)
    new, last = counters[NEW], counters[ARRIVED]
    early, is_broken = follow(holes, now, _changes(tables), kept)
    if is_broken:
        _lay_running(tables, plan)
        repair(holes, now, waiting, counters[HEAD], new, kept)
    if revision.jobs.size > 0:
        early |= _believe(tables, plan, revision)
        _lay_running(tables, plan)
        repair(holes, now, waiting, counters[HEAD], new, kept)
    while counters[HEAD] < new and waiting.counts[counters[HEAD]] == 0:
        counters[HEAD] += 1
    head = counters[HEAD]
    if early and head < new:
        compress(holes, now, waiting, head, new, kept)
    placed = nothing_found(last - new)
    for job in range(new, last):
        admit(tables, calendar, plan, job, CONSERVATIVE)
        wanted, belief = waiting.counts[job], waiting.runtimes[job]
        reserve_at(job, place_next(*holes, now, wanted, belief, placed), waiting, kept)
    number, wants_wake = due(ends_in(tables).end, waiting, head, last, now, kept, found)
    if wants_wake:
        ask_to_wake(tables, kept.instants[NEXT])
    for job in found[:number]:
        start(tables, calendar, job)


@compiled()
def make_open_pass(tables: Tables, calendar: Calendar, plan: Plan) -> None:
    """Make the scheduling pass of an instant where counts stay open."""
    if may_start(tables):
        _lay_running(tables, plan)
        offered = Offered(plan.offers, plan.counts, plan.choices)
        open_pass(tables, calendar, offered, plan.open, (plan.times, plan.free, plan.span))


@compiled()
def make_pass(
    tables: Tables, calendar: Calendar, plan: Plan, rule: int, changed: bool, revision: Revision
) -> None:
    """Make the scheduling pass of an instant where counts are given or settled at submit.

    Parameters
    ----------
    tables : Tables
    calendar : Calendar
    plan : Plan
    rule : int
        `STRICT`, `EASY` or `CONSERVATIVE`.
    changed : bool
        Whether anything but arrivals happened at this instant.
    revision : Revision
    """
    if rule == CONSERVATIVE:
        _make_conservative_pass(tables, calendar, plan, revision)
        return
    counters = tables.counters
    if revision.jobs.size > 0:
        _believe(tables, plan, revision)
    if counters[EXPIRED_NOW] > 0 and is_refuted(tables, plan.anew):
        _choose_anew(tables, calendar, plan)
    for job in range(counters[NEW], counters[ARRIVED]):
        admit(tables, calendar, plan, job, rule)
    if plan.reservations > 1:
        _make_deep_pass(tables, calendar, plan)
    else:
        _make_easy_pass(tables, calendar, plan, rule == STRICT, changed)
