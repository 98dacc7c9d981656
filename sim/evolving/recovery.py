"""Runs in which nodes fail or jobs evolve: interruptions, restarts, outages, and how they begin."""

from collections import Counter
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

import numpy as np

from predictors.base import provider
from predictors.in_loop.dynamic import Dynamic
from sim.engine.clock import EXPIRY, FAILURE, REPAIR, EventNotice, gc_paused
from sim.engine.engine import Engine
from sim.engine.protocols import Collaborator
from sim.engine.setup import Setup
from sim.errors import PolicyError, SimError
from sim.evolving.running import Asker, Follower, Renewal
from sim.evolving.settings import EvolvingScene
from sim.evolving.stages import Stages
from sim.machine.failing import FailingMachine, NodeEvent
from sim.state.decisions import Decision, Requeue
from sim.state.machine_state import Run
from sim.state.records import FailureCosts, Outages, Records

GIVEN_UP = "interrupted more often than cluster.max_restarts"
AT_LIMIT = "killed at its limit"
STUCK = "no cycle fits its limit"
RESUBMITTED = "resubmitted more often than evolving.max_resubmits"
NO_OUTAGES = Outages(np.empty(0), np.empty(0), np.empty(0, np.int64))
PATIENCE = 10
"""Runs in a row that may end at their limit without a cycle gained, where load slows them."""
UNFIT = "its restart does not fit its limit"


def simulate_recovering(setup: Setup, evolving: EvolvingScene | None = None) -> Records:
    """Replay a trace through failures, and with jobs that evolve.

    A failure ends what runs on the node, but for malleable jobs that can do
    without it, where ``cluster.shrink_off_failed`` says so. An evolving job goes on from its last
    checkpoint, any other from zero, and both wait in the queue again. Under
    ``overrun=kill`` evolving jobs checkpoint and stop before their limit, or
    are killed there, and are resubmitted as long as they get ahead.

    Parameters
    ----------
    setup : Setup
        Nodes fail on a `FailingMachine`.
    evolving : EvolvingScene, optional
        Which jobs evolve; by default none.

    Returns
    -------
    Records
        Every job completed, or has a reason in ``failure_costs``.

    Raises
    ------
    SimError, PolicyError
        As `sim.engine.run.simulate`.
    """
    with gc_paused():
        engine = Engine(setup)
        recovery = Recovery(engine, setup, evolving)
        engine.collaborators[:0] = [recovery, *recovery.followers]
        if isinstance(setup.machine, FailingMachine):
            engine.collaborators.append(NodeOutages(engine, setup.machine, recovery))
        return engine.run()


class Recovery(Collaborator):
    """Puts jobs back into the queue that were interrupted, and gives up who gets no further.

    Parameters
    ----------
    engine : Engine
        About to begin; its `Work` gives way to `Stages`.
    setup : Setup
        What the engine was made of.
    evolving : EvolvingScene or None
        Which jobs evolve; None if none does.

    Attributes
    ----------
    followers : list of Follower
        Who follows the runs of evolving jobs.
    """

    def __init__(self, engine: Engine, setup: Setup, evolving: EvolvingScene | None) -> None:
        machine = setup.machine
        self._engine, self._state, self._clock = engine, engine.state, engine.clock
        self._evolving = evolving
        engine.work = self.work = Stages(setup, evolving)
        engine.ends_first = True
        if engine.preferences.reads_cycle_times:
            engine.state.cycle_time_ratios = {}
        self.reasons: dict[int, str] = {}
        self._noted = 0.0
        self._in_vain: Counter[int] = Counter()
        saving = None if evolving is None else evolving.saving
        self._resubmits = saving.max_resubmits if saving is not None and saving.resubmit else 0
        self._resubmitted: Counter[int] = Counter()
        self._most: float = getattr(machine, "max_restarts", inf)
        self._goes_ahead = getattr(machine, "requeue", "head") == "head"
        self.followers: list[Follower] = []
        renewing = provider(setup.predictor, Dynamic)
        if evolving is not None and renewing is not None:
            self.followers.append(Renewal(renewing, self.work, evolving, engine))
        if evolving is not None and evolving.saving.asks.any:
            self.followers.append(Asker(evolving, self.work, engine, self._expect_outcome))

    def complete(self, records: Records) -> Records:
        """Add what was lost: by the cycles of evolving jobs, by whole runs of others."""
        interrupted = float(self._engine.log.interruptions)
        counters = {**records.counters, "node_failures": 0.0, "interrupted_runs": interrupted}
        if self._resubmits and self._engine.kills:
            counters["resubmissions"] = float(self._resubmitted.total())
        number = len(self._engine.submit)
        evolving = np.array([self.work.evolves(job) for job in range(number)], np.bool_)
        held, status = records.allocations, np.array(records.status)
        again = (held.run < records.restarts[held.job]) | (status[held.job] == "failed")
        area = (held.end_time - held.start_time) * held.processors * again
        lost = np.bincount(held.job, area, minlength=number)
        failure_costs = FailureCosts(
            evolving=evolving,
            lost_work=np.where(evolving, self.work.lost, lost),
            checkpoint_overhead=self.work.overhead,
            restart_overhead=self.work.restarting,
            failure_reason=[self.reasons.get(job, "") for job in range(number)],
            outages=NO_OUTAGES,
        )
        return replace(records, counters=counters, failure_costs=failure_costs)

    # Interruptions

    def interrupt(self, run: Run) -> None:
        """End a run before its time; its job goes on from its checkpoint, or from zero."""
        self._engine.event_manager.vacate(run)
        self.work.over(run, self._clock._now)
        self._engine.log.interruptions += 1
        self._queue_again(run)

    def _queue_again(self, run: Run) -> None:
        """Put the job of a run that is over back into the queue, or give it up."""
        job, engine, state = run.job, self._engine, self._state
        if run.number >= self._most:
            self._give_up(run, "failed", GIVEN_UP)
            return
        self._follow_no_longer(run)
        engine.log.interrupt(run, self._clock._now)
        if self.work.evolves(job):
            state.left[job] = 1.0 - self.work.done(job)
        engine.beliefs.forget(job)
        if self._goes_ahead:
            state.ahead.add(job)
        state.arrived.append(job)
        state.disturbed = True
        engine.ask_for_pass()

    def _follow_no_longer(self, run: Run) -> None:
        """Neither renew beliefs about a run nor let it ask: it is over, or told to stop."""
        for each in self.followers:
            each.end(run)

    def _give_up(self, run: Run, status: str, reason: str) -> None:
        """Give a job up, for a reason."""
        self.reasons[run.job] = reason
        self._engine.ask_for_pass()
        self._engine.end(run, status)

    def ended(self, run: Run, status: str) -> None:
        """Note why a job was killed, and measure its nodes no longer."""
        if status == "killed":
            self.reasons.setdefault(run.job, AT_LIMIT)
        if self._state.cycle_time_ratios is not None:
            self._state.cycle_time_ratios.pop(run.job, None)

    def _come_to(self, run: Run, outcome: str) -> None:
        """Take in that an evolving job has done all of its cycles, or ends for its limit.

        It has checkpointed and stopped before, or is killed there; then it goes on from its
        checkpoint, if it may.
        """
        now, whole = self._clock._now, outcome in ("completed", "stopped")
        attempt = self.work.attempt(run.job)
        gained = self.work.over(run, now, whole)
        if outcome == "completed":
            self._engine.end(run)
            return
        if not (whole or self._resubmits):
            self._give_up(run, "killed", AT_LIMIT)
            return
        for each in self.followers:
            each.stopped(run, now)
        self._in_vain[run.job] = 0 if gained > 0 else self._in_vain[run.job] + 1
        if attempt is None:
            self._give_up(run, "killed", UNFIT)
        elif gained == 0 and (attempt.is_stuck or self._in_vain[run.job] >= PATIENCE):
            self._give_up(run, "killed", STUCK)
        elif self._resubmitted[run.job] >= self._resubmits:
            self._give_up(run, "killed", RESUBMITTED)
        else:
            self._resubmitted[run.job] += 1
            self._queue_again(run)

    # Runs

    def plan_completion(self, run: Run, now: float) -> float | None:
        """Wait for what an evolving run will come to; return when that is."""
        if not self.work.evolves(run.job):
            return None
        engine = self._engine
        limit = max(engine.resizer.kill_time(run) - now, 1e-9) if engine.kills else inf
        end, outcome = self.work.begin(run, now, limit)
        self._expect_outcome(run, end, outcome)
        for each in self.followers:
            each.begin(run, now)
        return end

    def _expect_outcome(self, run: Run, end: float, outcome: str) -> None:
        """Let an evolving run end then with this outcome, whatever was expected before."""
        self._engine.expect_end(run, end, partial(self._come_to, outcome=outcome))

    def before_pass(self, now: float) -> None:
        """Note measured over benchmarked time of the cycles since the last pass."""
        work, measured = self.work, self._state.cycle_time_ratios
        if measured is None or self._evolving is None:
            return
        for job, run in self._state.running.items():
            if not self._evolving.evolves(job):
                continue
            elapsed = (work.elapsed(run, time) for time in (max(self._noted, run.start), now))
            cells, seconds = work.measured(run, *elapsed)
            if cells.size:
                model = self._evolving.benchmark(job)
                ratios = seconds / model.predict(run.processors, cells=cells)
                measured.setdefault(job, []).append((now, ratios))
        self._noted = now

    # What is decided

    def carry_out(self, decision: Decision, now: float) -> bool:
        """Interrupt a run that is to be queued again."""
        if not isinstance(decision, Requeue):
            return False
        run = self._state.running.get(decision.job)
        if run is None:
            raise PolicyError(f"Requeue of job index {decision.job}, which is not running")
        # Taken in at once, but after this pass, which has not seen it.
        EventNotice(self._clock, now, FAILURE, self._give_up_place, run)
        return True

    def _give_up_place(self, occurrence: Any) -> None:
        """Interrupt a run for its policy; an evolving job may finish its cycle and save it."""
        run: Run = occurrence.subject
        engine, now = self._engine, self._clock._now
        if self._state.running.get(run.job) is not run:
            return
        engine.happened()
        end = self.work.stop(run, now)
        if end is None:
            self.interrupt(run)
        elif end < engine.event_manager.calendar.end_time.item(run.job):
            self._expect_outcome(run, end, "stopped")
            self._follow_no_longer(run)
            engine.move_believed_end(run, end)
            self._state.disturbed = True


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
    recovery : Recovery
        Puts back into the queue whose run is interrupted.
    """

    def __init__(self, engine: Engine, machine: FailingMachine, recovery: Recovery) -> None:
        self._shrunk = 0
        self._engine, self._machine, self._recovery = engine, machine, recovery
        self._ended: list[tuple[float, float, int]] = []
        self._failed_at: dict[int, float] = {}
        self._events = machine.events()
        self._expect_next()

    def started(self, run: Run, planned: float, predicted: float) -> float:
        """Refuse to begin a job once more, and from zero, that cannot be expected to end."""
        job, processors, again, machine = run.job, run.processors, run.number, self._machine
        work = self._recovery.work
        shrinks = machine.shrink_off_failed and self._engine.malleable[job]
        if again < TRIES or shrinks or work.evolves(job):
            return predicted
        runtime = work.runtime(job, processors)
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
        assert records.failure_costs is not None
        failures = len(self._ended) + len(self._failed_at)
        counters = {**records.counters, "node_failures": float(failures)}
        if self._machine.shrink_off_failed:
            counters["shrunk_runs"] = float(self._shrunk)
        end = float(records.end_time.max(initial=0.0))  # of outages that still last too
        failed = self._failed_at.items()
        lasting = [(begin, end, self._width(node)) for node, begin in failed if begin < end]
        start, stop, width = np.array([*self._ended, *lasting], float).reshape(-1, 3).T.copy()
        outages = Outages(start, np.minimum(stop, end), width.astype(np.int64))
        failure_costs = replace(records.failure_costs, outages=outages)
        return replace(records, counters=counters, failure_costs=failure_costs)

    def _width(self, node: int) -> int:
        """Return how many processors a node has."""
        first, last = self._machine.processors_of(node)
        return last - first + 1

    def _expect_next(self) -> None:
        """Wait for the next failure or repair."""
        event = next(self._events, None)
        if event is not None:
            priority = FAILURE if event.kind == "failure" else REPAIR
            EventNotice(self._engine.clock, event.time, priority, self._take_in, event)

    def _take_in(self, occurrence: Any) -> None:
        """Let a node fail or come back; stop when no job is left, or none can start."""
        engine = self._engine
        all_ended = engine.log.ended == len(engine.submit)
        down, following = engine.state.outages, engine.event_manager.next_event_time
        nothing_else = not (engine.clock._queue or down or following < inf)
        if all_ended or nothing_else:
            return
        event: NodeEvent = occurrence.subject
        engine.happened()
        if event.kind == "failure":
            self._fail(event.node)
        else:
            state, failed_at = engine.state, self._failed_at.pop(event.node)
            self._ended.append((failed_at, engine.clock._now, self._width(event.node)))
            state.repair(event.node)
            state.release((self._machine.processors_of(event.node),))
        self._disturb()
        self._expect_next()

    def _disturb(self) -> None:
        state = self._engine.state
        state.disturbed = state.outages_changed = True
        self._engine.ask_for_pass()

    def _fail(self, node: int) -> None:
        """Take a node out of service; end what runs there, or let it go on without it."""
        engine, machine, now = self._engine, self._machine, self._engine.clock._now
        first, last = machine.processors_of(node)
        for run in sorted(engine.state.running.values(), key=lambda run: run.job):
            spans = [(max(low, first), min(high, last)) for low, high in run.nodes]
            lost = tuple((low, high) for low, high in spans if low <= high)
            shrinks = lost and machine.shrink_off_failed
            if shrinks and engine.resizer.shrink_off(run, lost, machine.shrink_seconds, now):
                engine.state.release(lost)
                self._shrunk += 1
            elif lost:
                self._recovery.interrupt(run)
        self._failed_at[node] = now
        engine.state.allocate_named(((first, last),))
        self._believe(node, now, max(machine.repair, 1.0))

    def _believe(self, node: int, began: float, seconds: float) -> None:
        """Believe that a node is back after so many seconds."""
        # Once every job has ended nobody asks any more, and time may stop.
        engine, state = self._engine, self._engine.state
        is_over = engine.log.ended == len(engine.submit)
        end = inf if is_over else began + seconds
        state.fail(node, end, self._width(node))
        if not is_over:
            EventNotice(engine.clock, end, EXPIRY, self._prolong, (node, began, end))

    def _prolong(self, occurrence: Any) -> None:
        """Double the believed length of an outage that has outlived it."""
        node, began, believed = occurrence.subject
        state = self._engine.state
        if node not in state.outages or state.outages[node][0] != believed:
            return
        state.repair(node)
        self._believe(node, began, 2.0 * (believed - began))
        self._disturb()
