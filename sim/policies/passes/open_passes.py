"""Compiled passes of rules for open counts, over the state of a run."""

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
    Candidates,
    Narrowing,
    allow_all,
)
from sim.policies.molding.choice import Blocking, mold_first
from sim.state.availability import Holes
from sim.state.run_state import State
from sim.state.run_steps import settle, start, waiting_in


class OpenPlan(NamedTuple):
    """What a rule for open counts keeps of a run.

    Attributes
    ----------
    narrowing : Narrowing
    reservations : int
    strict : bool
        As of `sim.policies.molding.scheduler.OpenScheduler`.
    serial : numpy.ndarray of float, shape (n,), seconds
        As of `sim.policies.molding.candidates.OpenQueue`, a place being a job.
    job : numpy.ndarray of int, shape (n,)
        At each place.
    """

    narrowing: Narrowing
    reservations: int
    strict: bool
    serial: FloatArray
    job: IntArray


NO_NARROWING = Narrowing(EVERYTHING, 0, False, 0.0, np.zeros((0, 2)))
CLOSED = OpenPlan(NO_NARROWING, 0, False, np.zeros(0), np.zeros(0, np.int64))
"""Of a run in which no count is open."""


class Offered(NamedTuple):
    """Candidates of all jobs: as `OpenQueue` has them, but a place is a job.

    Attributes
    ----------
    spans : numpy.ndarray of int, shape (5, n)
    counts : numpy.ndarray of int, shape (c,)
    choices : numpy.ndarray of float, shape (2, c)
        Belief on each of these counts, seconds; the other row is not read.
    """

    spans: IntArray
    counts: IntArray
    choices: FloatArray


@compiled(makes_arrays=True)
def _plan_first(state: State, offered: Offered, plan: OpenPlan, holes: Holes) -> int:
    """Fix the counts of the first jobs by iteration; return one past the last of them."""
    waiting, depth, run = state.waiting, plan.narrowing.depth, state.run[0]
    places, number, job = np.empty(depth, np.int64), 0, run.head
    while job < run.arrived and number < depth:
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


@compiled(makes_arrays=True)
def _narrow(state: State, offered: Offered, plan: OpenPlan, holes: Holes) -> int:
    """Say which candidates are allowed in this pass; return one past the last job considered."""
    spans, first, last = offered.spans, state.run[0].head, state.run[0].arrived
    narrowing = plan.narrowing
    if narrowing.kind == SHARES:
        cut_at_shares(
            offered.counts, spans[:, first:last], state.waiting[first:last],
            plan.job[first:last], narrowing.shares, spans[BEGIN, :0], narrowing.scale, False,
        )  # fmt: skip
        return int(last)
    allow_all(spans, first, last)
    return _plan_first(state, offered, plan, holes) if narrowing.kind == ITERATION else int(last)


@compiled(makes_arrays=True)
def may_start(state: State) -> bool:
    """Say whether anybody waits while processors are free."""
    run, waiting = state.run[0], state.waiting
    while run.head < run.arrived and waiting[run.head] == 0:
        run.head += 1
    return bool(run.free > 0 and run.head < run.arrived)


@compiled(makes_arrays=True)
def open_pass(state: State, offered: Offered, plan: OpenPlan, holes: Holes) -> None:
    """Make a pass, as `OpenScheduler` does while processors are free, and start who may.

    Parameters
    ----------
    state : State
    offered : Offered
    plan : OpenPlan
    holes : tuple of numpy.ndarray
        The profile of the running jobs alone: times, free and span.
    """
    waiting, first = state.waiting, state.run[0].head
    last = _narrow(state, offered, plan, holes)
    found, choices = state.found, offered.choices
    number = mold_first(
        holes, state.run[0].now, waiting_in(state),
        Candidates(offered.spans, offered.counts, choices[0]),
        first, last, Blocking(plan.reservations, plan.strict), found,
    )  # fmt: skip
    for job in found[:number]:
        pick = offered.spans[BEGIN, job]
        while offered.counts[pick] != waiting[job]:
            pick += 1
        settle(state, job, waiting[job], state.belief[job], pick)
        waiting[job] = 0
        start(state, job)
