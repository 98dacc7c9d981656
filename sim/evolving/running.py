"""What happens to running jobs besides: nodes that fail, and beliefs renewed by cycles."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from heapq import heappop, heappush
from math import inf
from typing import Any

import numpy as np

from predictors.in_loop.dynamic import Dynamic
from sim.engine.clock import EXPIRY, FAILURE, REPAIR, Occurrence
from sim.engine.collaborator import Collaborator
from sim.engine.engine import Engine
from sim.engine.runs_under_load import RENEWAL_SHARE
from sim.errors import SimError
from sim.evolving.settings import EvolvingScene
from sim.evolving.stages import Stages
from sim.machine.failing import FailingMachine, NodeEvent
from sim.state.machine_state import Run
from sim.state.processors import count_processors
from sim.state.records import Outages, Records

Mover = Callable[[Run, float], None]


class Follower(Collaborator):
    """Follows the runs of evolving jobs until they are over, or told to stop."""

    def begin(self, run: Run, now: float) -> None:
        """Follow a run that begins, or goes on with other processors, at `now`."""

    def end(self, run: Run) -> None:
        """Follow a run no longer."""

    def stopped(self, run: Run, now: float) -> None:
        """Be told that a run ended for its limit, before its job."""

    def ended(self, run: Run, status: str) -> None:
        """Follow no longer what is over."""
        self.end(run)


class Renewal(Follower):
    """Keeps the beliefs about running evolving jobs fresh.

    A job is predicted again, in a pass that happens anyway, once it has run for
    `renew_every` seconds since the last time, and for a tenth of its time so
    far: never once a cycle.

    Parameters
    ----------
    predictor : Dynamic
    work : Stages
    scene : EvolvingScene
    move : callable
        Moves the believed end of a run to a time, seconds.
    """

    def __init__(self, predictor: Dynamic, work: Stages, scene: EvolvingScene, move: Mover) -> None:
        self._renewals = 0
        self._predictor = predictor
        self._work = work
        self._scene = scene
        self._move = move
        self._due: list[tuple[float, int, int]] = []
        self._running: dict[int, tuple[Run, float]] = {}

    def begin(self, run: Run, now: float) -> None:
        """Follow a run that begins, or goes on with other processors, at `now`."""
        job = run.job
        if job not in self._running:
            heappush(self._due, (now + self._predictor.renew_every, job, run.number))
        self._running[job] = (run, 0.0)

    def end(self, run: Run) -> None:
        """Follow a run no longer."""
        self._running.pop(run.job, None)
        self._predictor.forget(run.job)

    def expired(self, run: Run, now: float) -> bool:
        """Ask a job that outlives its belief for its cycles."""
        return self.renew(run.job, now) and run.believed_end > now

    def complete(self, records: Records) -> Records:
        """Add how many beliefs were renewed."""
        counters = {**records.counters, "renewed_beliefs": float(self._renewals)}
        return replace(records, counters=counters)

    def before_pass(self, now: float) -> None:
        """Renew the beliefs about the runs whose turn it is."""
        due = self._due
        while due and due[0][0] <= now:
            _, job, number = heappop(due)
            if job in self._running and self._running[job][0].number == number:
                # Long runs change slowly; at least a moment later, or this would not end.
                ran = now - self._running[job][0].start
                again = max(self._predictor.renew_every, RENEWAL_SHARE * ran, 1.0)
                heappush(due, (now + again, job, number))
                self.renew(job, now)

    def renew(self, job: int, now: float) -> bool:
        """Renew the belief about a run from its fresh cycles; say whether there is one."""
        if job not in self._running:
            return False
        run, seen = self._running[job]
        work = self._work
        elapsed = work.elapsed(run, now)
        if work.attempt(job) is None or elapsed <= seen:
            return False
        cells, seconds = work.measured(run, seen, elapsed)
        self._running[job] = (run, elapsed)
        # Checkpoints will take the share of time that they have taken so far.
        left, slower = work.ahead_of(run, elapsed)
        offline = self._scene.benchmark(job)
        remaining = self._predictor.progress(
            job, run.number, run.processors, cells, seconds, left, offline
        )
        self._renewals += 1
        if remaining is None or left == 0:
            return False
        end = now + max(self._predictor.believed_seconds(remaining) * slower, 1.0)
        if abs(end - run.believed_end) > self._predictor.tolerance * (run.believed_end - now):
            self._move(run, end)
        return True


TRIES, MOST_STARTS = 10, 1000
"""Of a job that begins from zero: interruptions after which it is asked whether it can be
expected to end, and the starts that it may be expected to take, unless
``cluster.max_restarts`` allows more."""


class NodeOutages(Collaborator):
    """Lets the nodes of a machine fail and come back, and keeps when they did.

    Parameters
    ----------
    engine : Engine
    machine : FailingMachine
    work : Stages
    interrupt : callable
        Ends a run before its time.
    """

    def __init__(
        self,
        engine: Engine,
        machine: FailingMachine,
        work: Stages,
        interrupt: Callable[[Run], None],
    ) -> None:
        self._failures = self._shrunk = 0
        self._engine, self._machine, self._work = engine, machine, work
        self._interrupt = interrupt
        self._ended: list[tuple[int, float, float]] = []
        self._failed_at: dict[int, float] = {}
        failures = machine.failures
        self._events: Iterator[NodeEvent] = iter(()) if failures is None else failures.events()
        self._expect_next()

    def started(self, run: Run, planned: float, predicted: float) -> float:
        """Refuse to begin a job once more, and from zero, that cannot be expected to end."""
        job, processors, again, machine = run.job, run.processors, run.number, self._machine
        if again < TRIES or self._work.evolves(job):
            return predicted
        if machine.shrink_off_failed and self._engine.malleable[job]:
            return predicted
        runtime = self._work.runtime(job, processors)
        starts = machine.expected_starts(runtime, processors)
        if starts > machine.max_restarts >= MOST_STARTS:
            raise SimError(
                f"job {self._engine.trace.jobs['job_id'].iat[job]} cannot be expected to end: it "
                f"takes {runtime:,.0f} s on {processors} processors without checkpoints, where "
                f"cluster.mtbf={machine.mtbf:.15g} lets it begin {starts:.2g} times on average "
                f"({again} so far); change cluster.mtbf, evolving or the policy, raise "
                f"cluster.max_restarts={machine.max_restarts}, or set it below {MOST_STARTS:,} to "
                "give such jobs up"
            )
        return predicted

    def complete(self, records: Records) -> Records:
        """Add what failed, and who went on without it."""
        assert records.recoveries is not None
        counters = {**records.counters, "node_failures": float(self._failures)}
        if self._machine.shrink_off_failed:
            counters["shrunk_runs"] = float(self._shrunk)
        end = float(records.end_time.max(initial=0.0))  # of outages that still last too
        lasting = [(node, begin, end) for node, begin in self._failed_at.items() if begin < end]
        nodes, start, stop = np.array([*self._ended, *lasting], float).reshape(-1, 3).T.copy()
        ranges = (self._machine.processors_of(int(node)) for node in nodes)
        width = np.array([count_processors((one,)) for one in ranges], np.int64)
        outages = Outages(start, np.minimum(stop, end), width)
        recoveries = replace(records.recoveries, outages=outages)
        return replace(records, counters=counters, recoveries=recoveries)

    def _expect_next(self) -> None:
        """Wait for the next failure or repair."""
        event = next(self._events, None)
        if event is not None:
            priority = FAILURE if event.kind == "failure" else REPAIR
            Occurrence(self._engine.clock, event.time, priority, self._take_in, event)

    def _take_in(self, occurrence: Any) -> None:
        """Let a node fail or come back; stop when no job is left, or none can start."""
        engine = self._engine
        all_ended = engine.log.ended == len(engine.submit)
        down, following = engine.state.outages, engine.event_list.following
        nothing_else = not (engine.clock._queue or down or following < inf)
        if all_ended or nothing_else:
            return
        event: NodeEvent = occurrence.subject
        engine.happened()
        if event.kind == "failure":
            self._fail(event.node)
        else:
            self._repair(event.node)
        self._disturb()
        self._expect_next()

    def _disturb(self) -> None:
        state = self._engine.state
        state.disturbed = state.outages_changed = True
        self._engine.ask_for_pass()

    def _fail(self, node: int) -> None:
        """End what runs on a node, and take its processors out of service."""
        engine, now = self._engine, self._engine.clock._now
        self._failures += 1
        first, last = self._machine.processors_of(node)
        self._lose(first, last)
        self._failed_at[node] = now
        engine.state.allocate_named(((first, last),))
        self._believe(node, now, max(self._machine.repair, 1.0))

    def _lose(self, first: int, last: int) -> None:
        """End what runs on processors from first to last, or let it go on without them."""
        engine, seconds = self._engine, self._machine.shrink_seconds
        shrink = engine.resizer.shrink_off if self._machine.shrink_off_failed else None
        for run in sorted(engine.state.running.values(), key=lambda run: run.job):
            spans = [(max(low, first), min(high, last)) for low, high in run.nodes]
            lost = tuple((low, high) for low, high in spans if low <= high)
            if lost and shrink is not None and shrink(run, lost, seconds, engine.clock._now):
                engine.state.release(lost)
                self._shrunk += 1
            elif lost:
                self._interrupt(run)

    def _repair(self, node: int) -> None:
        engine, state = self._engine, self._engine.state
        self._ended.append((node, self._failed_at.pop(node), engine.clock._now))
        state.repair(node)
        state.release((self._machine.processors_of(node),))

    def _believe(self, node: int, began: float, seconds: float) -> None:
        """Believe that a node is back after so many seconds."""
        # Once every job has ended nobody asks any more, and time may stop.
        engine, state = self._engine, self._engine.state
        is_over = engine.log.ended == len(engine.submit)
        end = inf if is_over else began + seconds
        state.fail(node, end, count_processors((self._machine.processors_of(node),)))
        if not is_over:
            Occurrence(engine.clock, end, EXPIRY, self._prolong, (node, began, end))

    def _prolong(self, occurrence: Any) -> None:
        """Double the believed length of an outage that has outlived it."""
        node, began, believed = occurrence.subject
        state = self._engine.state
        if node not in state.outages or state.outages[node][0] != believed:
            return
        state.repair(node)
        self._believe(node, began, 2.0 * (believed - began))
        self._disturb()
