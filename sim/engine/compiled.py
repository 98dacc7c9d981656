"""Runs that need no Python: compiled steps go from instant to instant under SimPy's clock."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from sim.engine.clock import END as END_EVENT
from sim.engine.clock import Occurrence
from sim.engine.logbook import explained
from sim.policies.backfill.easy import BLOCK, SIZES, easy_pass
from sim.policies.backfill.none import start_heads
from sim.policies.base import STRICT
from sim.state.records import Consultations, Records, Stretches
from sim.state.tables import (
    ARRIVED,
    BELIEF,
    ENDED,
    EVENTS,
    FIRST_RANGE,
    FREE,
    FREE_RANGES,
    HIGH,
    KILLED,
    LAST_RANGE,
    LIMIT,
    NOW,
    PASSES,
    PROCESSORS,
    RANGES,
    RUNNING,
    RUNTIME,
    START,
    SUBMIT,
    Tables,
    next_instant,
    take_in,
)
from sim.state.tables import END as END_TIME

if TYPE_CHECKING:
    from sim.engine.engine import Engine

AT_ONCE = 256
"""Instants between two chances for Python to show progress and to be interrupted."""


@njit(cache=True)
def advance(tables: Tables, rule: int, room: int, most: int) -> float:
    """Go through instants, each with one scheduling pass at its end.

    Parameters
    ----------
    tables : Tables
    rule : int
        `STRICT` or `EASY` of `sim.policies.base`.
    room : int
        Ranges of processors that an instant may hand out; it stops before there is less.
    most : int
        Instants at most.

    Returns
    -------
    float
        When something happens next, in seconds; infinity if nothing does.
    """
    following = next_instant(tables)
    for _ in range(most):
        if following == np.inf or tables.ranges.shape[1] - tables.counters[RANGES] < room:
            break
        changed = take_in(tables, following)
        tables.counters[PASSES] += 1
        if rule == STRICT:
            start_heads(tables)
        else:
            easy_pass(tables, changed)
        following = next_instant(tables)
    return following


class CompiledRun:
    """A run of an engine whose every decision and event is compiled.

    Parameters
    ----------
    engine : Engine
        About to begin; its jobs are taken, its predictor asked for all beliefs at once.
    rule : int
        `STRICT` or `EASY` of `sim.policies.base`.
    """

    def __init__(self, engine: "Engine", rule: int) -> None:
        self._engine = engine
        self._rule = rule
        jobs, view, machine = len(engine.submit), engine.view, engine.machine
        wanted = np.array(view.requested_processors)
        seconds = np.zeros((7, jobs))
        seconds[SUBMIT] = engine.submit
        seconds[RUNTIME] = engine.work.runtimes_at_request
        seconds[BELIEF] = view.beliefs(wanted)
        seconds[LIMIT] = view.requested_time if engine.kills else np.inf
        numbers = np.zeros((5, jobs), np.int64)
        numbers[PROCESSORS] = wanted
        running = min(jobs, machine.processors)
        self._room = min(machine.processors, int(wanted.sum()))
        blocks = jobs // BLOCK + 1
        self.tables = Tables(
            seconds=seconds,
            numbers=numbers,
            started=np.zeros(jobs, np.int64),
            coming_time=np.zeros(running),
            coming=np.zeros((3, running), np.int64),
            believed_time=np.zeros(running),
            believed_job=np.zeros(running, np.int64),
            free=np.zeros((2, running + 1), np.int64),
            ranges=np.zeros((2, jobs + self._room), np.int64),
            shortest=np.zeros((blocks, SIZES)),
            summarised=np.zeros(blocks, np.bool_),
            found=np.zeros(running, np.int64),
            counters=np.zeros(13, np.int64),
            instant=np.zeros(2),
        )
        self.tables.counters[FREE] = machine.processors
        self.tables.counters[FREE_RANGES] = 1
        self.tables.free[HIGH, 0] = machine.processors - 1

    def run(self) -> Records:
        """Run until nothing is left to happen."""
        clock = self._engine.clock
        Occurrence(clock, next_instant(self.tables), END_EVENT, self._advance)
        clock.run_instants(self._tell_progress)
        return self._records()

    def _advance(self, occurrence: Any) -> None:
        """Go on from the instant of SimPy's event to the one that the next event is put at."""
        tables = self.tables
        if tables.ranges.shape[1] - tables.counters[RANGES] < self._room:
            self.tables = tables._replace(ranges=np.tile(tables.ranges, 2))
        most = AT_ONCE - int(tables.counters[PASSES]) % AT_ONCE
        following = advance(self.tables, self._rule, self._room, most)
        if following < np.inf:
            Occurrence(self._engine.clock, following, END_EVENT, self._advance)

    def _records(self) -> Records:
        """Return what happened; runs and their stretches in the order of the starts."""
        tables, engine = self.tables, self._engine
        job, jobs = tables.started, tables.started.size
        times = tables.seconds[:, job]
        processors = tables.numbers[PROCESSORS, job]
        only = engine.predictor.explain(job.item(0), processors.item(0))
        ranges = list(zip(*tables.ranges[:, : tables.counters[RANGES]].tolist(), strict=True))
        begins, ends = tables.numbers[FIRST_RANGE : LAST_RANGE + 1, job].tolist()
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
                nodes=[tuple(ranges[a:b]) for a, b in zip(begins, ends, strict=True)],
            ),
            consultations=Consultations(
                job=job,
                time=times[START],
                nprocs=processors,
                predicted=times[BELIEF],
                **explained([only] * jobs),
                decided=np.ones(jobs, np.bool_),
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
