"""Runs that need no Python: compiled steps go from instant to instant under SimPy's clock."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from predictors.base import FloatArray, IntArray, RuntimePredictor
from predictors.compiling import njit
from sim.engine.clock import END as END_EVENT
from sim.engine.clock import Clock, Occurrence
from sim.engine.logbook import explained
from sim.engine.resizing import Resizer
from sim.engine.work import Work
from sim.machine.base import Machine
from sim.policies.allocation.sa import SmallestTurnaround
from sim.policies.backfill.passes import BLOCK, CONSERVATIVE, SIZES, Plan, make_pass
from sim.policies.base import Allocation, QueueKeeper
from sim.state.processors import NodeSets
from sim.state.records import Consultations, Records, Stretches
from sim.state.run_tables import (
    ARRIVED,
    BELIEF,
    ENDED,
    EVENTS,
    FIRST_RANGE,
    FREE,
    FREE_RANGES,
    HIGH,
    IN_TURN,
    KILLED,
    LIMIT,
    LOW,
    NOW,
    PASSES,
    PROCESSORS,
    RANGES,
    ROOM,
    RUNNING,
    RUNTIME,
    START,
    STARTED,
    SUBMIT,
    WAKES,
    Tables,
    next_instant,
    take_in,
)
from sim.state.run_tables import END as END_TIME
from sim.state.view import View

AT_ONCE = 256
"""Instants between two chances for Python to show progress and to be interrupted."""


@njit(cache=True)
def _arriving(tables: Tables, instant: float) -> int:
    """Count the jobs that arrive then."""
    last = tables.counters[ARRIVED]
    while last < tables.seconds.shape[1] and tables.seconds[SUBMIT, last] == instant:
        last += 1
    return int(last - tables.counters[ARRIVED])


@njit(cache=True)
def breakpoints(tables: Tables, instant: float) -> int:
    """Return the room that a profile needs for all who run, wait and arrive by an instant."""
    counters = tables.counters
    waiting = counters[ARRIVED] - counters[STARTED] + _arriving(tables, instant)
    return int(4 * (waiting + counters[RUNNING] + 1) + 64)


@njit(cache=True)
def advance(tables: Tables, plan: Plan, rule: int, most: int) -> float:
    """Go through instants, each with one scheduling pass at its end, while there is room.

    Parameters
    ----------
    tables : Tables
    plan : Plan
    rule : int
        One of `sim.policies.backfill.passes`.
    most : int
        Instants at most.

    Returns
    -------
    float
        When something happens next, in seconds; infinity if nothing does.
    """
    following = next_instant(tables)
    has_profile = plan.times.size > 1
    for _ in range(most):
        if (
            following == np.inf
            or tables.ranges.shape[1] - tables.counters[RANGES] < tables.counters[ROOM]
            or tables.wakes.size == tables.counters[WAKES]
            or (has_profile and plan.times.size < breakpoints(tables, following))
        ):
            break
        changed = take_in(tables, following)
        tables.counters[PASSES] += 1
        make_pass(tables, plan, rule, changed)
        following = next_instant(tables)
    return following


class Hears(Protocol):
    """Somebody who is told how far a run is."""

    def progressed(self, now: float, ended: int, queued: int) -> None:
        """Be told how many jobs ended and wait."""
        ...


class Begun(Protocol):
    """What a compiled run needs of an engine."""

    submit: list[float]
    kills: bool
    clock: Clock
    machine: Machine
    predictor: RuntimePredictor
    resizer: Resizer
    view: View
    work: Work

    @property
    def watchers(self) -> Sequence[Hears]: ...  # noqa: D102


class Choices(NamedTuple):
    """What jobs choose from at submit: `first_choice`, `counts` and `choices` of a `Plan`."""

    first: IntArray
    counts: IntArray
    seconds: FloatArray


def _choices(
    allocation: Allocation, view: View, work: Work
) -> tuple[IntArray, FloatArray, Choices]:
    """Return the counts of jobs that have one, their beliefs, and what the others choose from."""
    wanted = np.array(view.requested_processors)
    first, seconds = np.zeros(wanted.size + 1, np.int64), np.zeros((2, 0))
    if not isinstance(allocation, SmallestTurnaround):
        return wanted, view.beliefs(wanted), Choices(first, first[:0], seconds)
    beliefs, several, runtimes = np.zeros(wanted.size), [], []
    for job in range(wanted.size):
        counts, believed = allocation.offers(job, view)
        if believed is None:
            wanted[job] = counts.item()
            beliefs[job] = view.belief(job, counts.item())
        else:
            first[job + 1] = counts.size
            several.append(counts)
            runtimes.append(believed)
    counts = np.concatenate([first[:0], *several])
    jobs = np.repeat(np.arange(wanted.size), first[1:])
    seconds = np.stack([np.concatenate([beliefs[:0], *runtimes]), work.runtimes_at(jobs, counts)])
    return wanted, beliefs, Choices(np.cumsum(first), counts, seconds)


class CompiledRun:
    """A run of an engine whose every decision and event is compiled.

    Parameters
    ----------
    engine : Begun
        About to begin; its jobs are taken, its predictor asked for all beliefs at once.
    scheduler : QueueKeeper
        The engine's, of compiled passes.
    """

    def __init__(self, engine: Begun, scheduler: QueueKeeper) -> None:
        rule = scheduler.compiled
        assert rule is not None
        self._engine, self._rule = engine, rule
        jobs, view, machine = len(engine.submit), engine.view, engine.machine
        seconds = np.zeros((8, jobs))
        seconds[SUBMIT] = engine.submit
        wanted, seconds[BELIEF], choices = _choices(scheduler.allocation, view, engine.work)
        seconds[RUNTIME] = engine.work.runtimes_at(np.arange(jobs), wanted)
        seconds[LIMIT] = view.requested_time if engine.kills else np.inf
        numbers = np.zeros((6, jobs), np.int64)
        numbers[PROCESSORS] = wanted
        running = min(jobs, machine.processors)
        room = machine.processors if choices.counts.size else int(wanted.sum())
        room = min(machine.processors, room)
        self.tables = Tables(
            seconds=seconds,
            numbers=numbers,
            running_times=np.zeros((2, running)),
            running=np.zeros((7, running), np.int64),
            free=np.zeros((2, running + 1), np.int64),
            ranges=np.zeros((2, jobs + room), np.int64),
            wakes=np.zeros(64),
            counters=np.zeros(17, np.int64),
            instant=np.array([0.0, 0.0, np.inf, np.inf, np.inf, -np.inf]),
        )
        self.tables.counters[FREE] = machine.processors
        self.tables.counters[ROOM] = room
        self.tables.counters[FREE_RANGES] = 1
        self.tables.free[HIGH, 0] = machine.processors - 1
        blocks, holes = jobs // BLOCK + 1, 256 if rule == CONSERVATIVE or choices.counts.size else 1
        self.plan = Plan(
            shortest=np.zeros((blocks, SIZES)),
            summarised=np.zeros(blocks, np.bool_),
            times=np.zeros(holes),
            free=np.full(holes, machine.processors),
            span=np.array([0, 1]),
            first_choice=choices.first,
            counts=choices.counts,
            choices=choices.seconds,
        )

    def run(self) -> Records:
        """Run until nothing is left to happen."""
        clock = self._engine.clock
        Occurrence(clock, next_instant(self.tables), END_EVENT, self._advance)
        clock.run_instants(self._tell_progress)
        return self._records()

    def _advance(self, occurrence: Any) -> None:
        """Go on from the instant of SimPy's event to the one that the next event is put at."""
        self._make_room(occurrence.time)
        most = AT_ONCE - int(self.tables.counters[PASSES]) % AT_ONCE
        following = advance(self.tables, self.plan, self._rule, most)
        if following < np.inf:
            Occurrence(self._engine.clock, following, END_EVENT, self._advance)

    def _make_room(self, instant: float) -> None:
        """Let tables grow in which the next instant might not find room."""
        tables, plan = self.tables, self.plan
        if tables.ranges.shape[1] - tables.counters[RANGES] < tables.counters[ROOM]:
            tables = tables._replace(ranges=np.tile(tables.ranges, 2))
        if tables.wakes.size == tables.counters[WAKES]:
            tables = tables._replace(wakes=np.tile(tables.wakes, 2))
        more = breakpoints(tables, instant) if plan.times.size > 1 else 0
        if plan.times.size < more:
            times, free = np.pad(plan.times, (0, 2 * more)), np.pad(plan.free, (0, 2 * more))
            self.plan = plan._replace(times=times, free=free)
        self.tables = tables

    def _records(self) -> Records:
        """Return what happened; runs and their stretches in the order of the starts."""
        tables, engine = self.tables, self._engine
        job, jobs = tables.numbers[IN_TURN], tables.seconds.shape[1]
        times = tables.seconds[:, job]
        processors = tables.numbers[PROCESSORS, job]
        only = engine.predictor.explain(job.item(0), processors.item(0))
        first = np.append(tables.numbers[FIRST_RANGE, job], tables.counters[RANGES])
        low, high = (tables.ranges[row, : first[-1]] for row in (LOW, HIGH))
        never = np.zeros(jobs, np.int64)
        return Records(
            submit_time=tables.seconds[SUBMIT],
            start_time=tables.seconds[START],
            end_time=tables.seconds[END_TIME],
            run_start=tables.seconds[START],
            allocated=tables.numbers[PROCESSORS],
            believed_runtime=tables.seconds[BELIEF],
            status=[("completed", "killed")[is_over] for is_over in tables.numbers[KILLED]],
            restarts=never,
            stretches=Stretches(
                job=job,
                run=never,
                start_time=times[START],
                end_time=times[END_TIME],
                processors=processors,
                nodes=NodeSets(low, high, first),
            ),
            consultations=Consultations(
                job=job,
                time=times[START],
                nprocs=processors,
                predicted=times[BELIEF],
                **explained([only] * jobs),
                decided=~np.isin(job, list(engine.view.preferences.undecided)),
                final=np.ones(jobs, np.bool_),
            ),
            counters={
                "starts": float(jobs),
                "events": float(tables.counters[EVENTS]),
                "looks": float(tables.counters[PASSES]),
                "predictor_queries": float(engine.view.queries),
                **engine.resizer.counters(),
            },
            processors=engine.machine.processors,
        )

    def _tell_progress(self, now: float) -> None:
        """Tell whoever watches how far the run is."""
        counters = self.tables.counters
        if counters[PASSES] % AT_ONCE == 0:
            ended, running = int(counters[ENDED]), int(counters[RUNNING])
            queued = int(counters[ARRIVED]) - ended - running
            for watcher in self._engine.watchers:
                watcher.progressed(float(self.tables.instant[NOW]), ended, queued)
