"""What takes part in a run where nodes fail or jobs evolve: interruptions and restarts."""

from collections import Counter
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

import numpy as np

from predictors.base import provider
from predictors.in_loop.dynamic import Dynamic
from sim.engine.clock import FAILURE, Occurrence, gc_paused
from sim.engine.collaborator import Collaborator
from sim.engine.engine import Engine
from sim.engine.setup import Setup
from sim.errors import PolicyError
from sim.evolving.asking import Asker
from sim.evolving.running import Follower, NodeOutages, Renewal
from sim.evolving.settings import EvolvingScene
from sim.evolving.stages import Stages
from sim.machine.failing import FailingMachine
from sim.state.decisions import Decision, Requeue
from sim.state.machine_state import Run
from sim.state.records import Outages, Records, Recoveries

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
        Every job completed, or has a reason in ``recoveries``.

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
            outages = NodeOutages(engine, setup.machine, recovery.work, recovery.interrupt)
            engine.collaborators.append(outages)
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
        engine.work = self.work = Stages(setup.trace, setup.truth, machine, evolving)
        engine.ends_first = True
        if engine.preferences.watches_health:
            engine.state.health = {}
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
            self.followers.append(Renewal(renewing, self.work, evolving, engine.move_believed_end))
        if evolving is not None and evolving.saving.asks.any:
            self.followers.append(Asker(evolving, self.work, engine, self._expect_outcome))

    def complete(self, records: Records) -> Records:
        """Add what was lost: by the cycles of evolving jobs, by whole runs of others."""
        interrupted = float(self._engine.log.interruptions)
        counters = {"node_failures": 0.0, "interrupted_runs": interrupted}
        if self._resubmits and self._engine.kills:
            counters["resubmissions"] = float(self._resubmitted.total())
        counters = {**records.counters, **counters}
        number = len(self._engine.submit)
        evolving = np.array([self.work.evolves(job) for job in range(number)], np.bool_)
        held, status = records.stretches, np.array(records.status)
        again = (held.run < records.restarts[held.job]) | (status[held.job] == "failed")
        area = (held.end_time - held.start_time) * held.processors * again
        lost = np.bincount(held.job, area, minlength=number)
        recoveries = Recoveries(
            evolving=evolving,
            lost_work=np.where(evolving, self.work.lost, lost),
            checkpoint_overhead=self.work.overhead,
            restart_overhead=self.work.restarting,
            reason=[self.reasons.get(job, "") for job in range(number)],
            outages=NO_OUTAGES,
        )
        return replace(records, counters=counters, recoveries=recoveries)

    # Interruptions

    def interrupt(self, run: Run) -> None:
        """End a run before its time; its job goes on from its checkpoint, or from zero."""
        self._engine.event_list.take_off(run)
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
            state.left[job] = self.work.left(job)
        engine.beliefs.forget([job])
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
        if self._state.health is not None:
            self._state.health.pop(run.job, None)

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
        work, health = self.work, self._state.health
        if health is None or self._evolving is None:
            return
        for job, run in self._state.running.items():
            if not self._evolving.evolves(job):
                continue
            elapsed = (work.elapsed(run, time) for time in (max(self._noted, run.start), now))
            cells, seconds = work.measured(run, *elapsed)
            if cells.size:
                model = self._evolving.benchmark(job)
                ratios = seconds / model.predict(run.processors, cells=cells)
                health.setdefault(job, []).append((now, ratios))
        self._noted = now

    # What is decided

    def carried_out(self, decision: Decision, now: float) -> bool:
        """Interrupt a run that is to be queued again."""
        if not isinstance(decision, Requeue):
            return False
        run = self._state.running.get(decision.job)
        if run is None:
            raise PolicyError(f"Requeue of job index {decision.job}, which is not running")
        # Taken in at once, but after this pass, which has not seen it.
        Occurrence(self._clock, now, FAILURE, self._give_up_place, run)
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
        elif end < engine.event_list.end_of(run.job):
            self._expect_outcome(run, end, "stopped")
            self._follow_no_longer(run)
            engine.move_believed_end(run, end)
            self._state.disturbed = True
