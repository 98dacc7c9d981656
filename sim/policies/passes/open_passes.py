"""Compiled passes of rules for open counts, over the tables of a run."""

from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.policies.allocation.fair_share import cut_at_shares
from sim.policies.allocation.iterative import iterate
from sim.policies.molding.candidates import (
    BEGIN,
    EVERYTHING,
    HIGH,
    ITERATION,
    LOW,
    SHARES,
    SIZE,
    Candidates,
    Narrowing,
    allow_all,
)
from sim.policies.molding.choice import Blocking, mold_first
from sim.state.availability import Holes
from sim.state.calendar import RUNTIME, Calendar
from sim.state.run_steps import start, waiting_in
from sim.state.run_tables import (
    ARRIVED,
    FOUND,
    FREE,
    HEAD,
    NEW,
    NOW,
    PROCESSORS,
    WAITING,
    Tables,
)


class OpenPlan(NamedTuple):
    """What a rule for open counts keeps of a run.

    Attributes
    ----------
    narrowing : Narrowing
    reservations : int
    strict : bool
        As of `sim.policies.molding.scheduler.OpenScheduler`.
    serial, promise : numpy.ndarray of float, shape (n,), seconds
        As of `sim.policies.molding.candidates.OpenQueue`, by place in the tables.
    job : numpy.ndarray of int, shape (n,)
        At each place.
    """

    narrowing: Narrowing
    reservations: int
    strict: bool
    serial: FloatArray
    promise: FloatArray
    job: IntArray


NO_NARROWING = Narrowing(EVERYTHING, 0, False, 0.0, np.zeros((0, 2)))
CLOSED = OpenPlan(NO_NARROWING, 0, False, np.zeros(0), np.zeros(0), np.zeros(0, np.int64))
"""Of a run in which no count is open."""


class Offered(NamedTuple):
    """Candidates of all jobs: as `OpenQueue` has them, but a place is a job.

    Attributes
    ----------
    spans : numpy.ndarray of int, shape (5, n)
    counts : numpy.ndarray of int, shape (c,)
    choices : numpy.ndarray of float, shape (3, c)
        Belief and true runtime on each of these counts, seconds; the last row is not read.
    """

    spans: IntArray
    counts: IntArray
    choices: FloatArray


def carried(
    offered: Offered, plan: OpenPlan, kept: IntArray, jobs: IntArray
) -> tuple[Offered, OpenPlan]:
    """Return what is known of those who stay, with room for all jobs of the tables.

    Parameters
    ----------
    offered : Offered
    plan : OpenPlan
    kept : numpy.ndarray of int, shape (r,)
        Places of those who stay; their next ones are 0, 1, …
    jobs : numpy.ndarray of int, shape (n,)
    """
    last, spans = kept.size, np.zeros((len(offered.spans), jobs.size), np.int64)
    spans[:, :last] = offered.spans[:, kept]
    sizes = spans[SIZE, :last]
    first = np.cumsum(sizes) - sizes
    at = np.arange(sizes.sum()) + np.repeat(spans[BEGIN, :last] - first, sizes)
    spans[BEGIN, :last] = first
    serial, promise = np.zeros(jobs.size), np.full(jobs.size, np.inf)
    serial[:last], promise[:last] = plan.serial[kept], plan.promise[kept]
    offered = Offered(spans, offered.counts[at], np.take(offered.choices, at, axis=1))
    return offered, plan._replace(serial=serial, promise=promise, job=jobs)


@compiled(makes_arrays=True)
def _plan_first(tables: Tables, offered: Offered, plan: OpenPlan, holes: Holes) -> int:
    """Fix the counts of the first jobs by iteration; return one past the last of them."""
    waiting, depth = tables.numbers[WAITING], plan.narrowing.depth
    places, number, job = np.empty(depth, np.int64), 0, tables.counters[HEAD]
    while job < tables.counters[ARRIVED] and number < depth:
        if waiting[job] > 0:
            places[number] = job
            number += 1
        job += 1
    places = places[:number]
    spans = np.empty((offered.spans.shape[0], number), np.int64)
    for i in range(number):
        spans[:, i] = offered.spans[:, places[i]]
    pick, _ = iterate(
        *holes, offered.counts, offered.choices[0], spans, plan.serial[places],
        plan.narrowing.by_time,
    )  # fmt: skip
    for i in range(number):
        offered.spans[LOW, places[i]], offered.spans[HIGH, places[i]] = pick[i], pick[i] + 1
    return int(job)


@compiled()
def _narrow(tables: Tables, offered: Offered, plan: OpenPlan, holes: Holes) -> int:
    """Say which candidates are allowed in this pass; return one past the last job considered."""
    spans, first, last = offered.spans, tables.counters[HEAD], tables.counters[ARRIVED]
    narrowing = plan.narrowing
    if narrowing.kind == SHARES:
        cut_at_shares(
            offered.counts, spans[:, first:last], tables.numbers[WAITING, first:last],
            plan.job[first:last], narrowing.shares, spans[BEGIN, :0], narrowing.scale, False,
        )  # fmt: skip
        return int(last)
    allow_all(spans, first, last)
    return _plan_first(tables, offered, plan, holes) if narrowing.kind == ITERATION else int(last)


@compiled()
def may_start(tables: Tables) -> bool:
    """Let arrivals wait; say whether anybody waits while processors are free."""
    counters, waiting = tables.counters, tables.numbers[WAITING]
    for job in range(counters[NEW], counters[ARRIVED]):
        waiting[job] = tables.numbers[PROCESSORS, job]
    while counters[HEAD] < counters[ARRIVED] and waiting[counters[HEAD]] == 0:
        counters[HEAD] += 1
    return bool(counters[FREE] > 0 and counters[HEAD] < counters[ARRIVED])


@compiled()
def open_pass(
    tables: Tables, calendar: Calendar, offered: Offered, plan: OpenPlan, holes: Holes
) -> None:
    """Make a pass, as `OpenScheduler` does while processors are free, and start who may.

    Parameters
    ----------
    tables : Tables
    calendar : Calendar
    offered : Offered
    plan : OpenPlan
    holes : tuple of numpy.ndarray
        The profile of the running jobs alone: times, free and span.
    """
    numbers, runtimes, counters = tables.numbers, calendar.seconds[RUNTIME], tables.counters
    waiting, first = numbers[WAITING], counters[HEAD]
    last = _narrow(tables, offered, plan, holes)
    found, choices = tables.running[FOUND], offered.choices
    number = mold_first(
        holes, tables.instant[NOW], waiting_in(tables),
        Candidates(offered.spans, offered.counts, choices[0], plan.promise),
        first, last, Blocking(plan.reservations, plan.strict, -1.0), found,
    )  # fmt: skip
    for job in found[:number]:
        pick = offered.spans[BEGIN, job]
        while offered.counts[pick] != waiting[job]:
            pick += 1
        numbers[PROCESSORS, job], runtimes[job] = waiting[job], choices[1, pick]
        start(tables, calendar, job)
