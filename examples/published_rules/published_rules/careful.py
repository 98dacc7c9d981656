"""Look after ill nodes: notice that a job runs slower than its benchmark, and keep away.

An evolving job measures its cycles; their ratio to the benchmarked times, watched
by a sequential test, tells that a foreign process runs on one of its nodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from predictors.base import FloatArray, IntArray
from published_rules.cusum import SequentialDetector, learned_spread
from sim.engine.protocols import AroundScheduler, Scheduler
from sim.errors import check_choice
from sim.policies.base import Allocation, Backfill, Policy
from sim.policies.order import Order
from sim.state.decisions import Decision, Preferences, Requeue, Start, WakeAt
from sim.state.machine_state import Run
from sim.state.processors import as_numbers, as_ranges, nodes_of
from sim.state.view import View

React = Literal["restart", "avoid"]

LEARNED = 16
"""Cycles of a run from which its healthy level and spread are taken."""

LEAST_SPREAD = 0.06
"""Least standard deviation of a healthy log ratio to believe in: so few cycles can mislead."""


@dataclass(frozen=True)
class NodeHealthAware:
    """Any policy, and an eye on the health of its nodes.

    The nodes of a job whose cycles raise an alarm are suspected for a while.
    Jobs start on other nodes as far as these suffice; under ``restart`` the job
    itself is queued again, from its last checkpoint, if it fits elsewhere now.

    Parameters
    ----------
    order : Order
    backfill : Backfill
    allocation : Allocation
    react : str
        ``avoid`` suspected nodes at starts, or ``restart`` slowed jobs as well.
    check_every : float
        Seconds between two checks of the cycles of running jobs, at least 1.
    distrust : float
        Seconds for which a node is suspected, and a moved job left alone; at least 1.
    worth : float
        Seconds that a job must still be believed to run for a restart.
    false_alarm, slowdown : float
        As in `SequentialDetector`.

    Raises
    ------
    ValueError
        If a value is out of range.
    """

    order: Order
    backfill: Backfill
    allocation: Allocation
    react: React = "restart"
    check_every: float = 300.0
    distrust: float = 7200.0
    worth: float = 1800.0
    false_alarm: float = 1e-4
    slowdown: float = 1.5

    def __post_init__(self) -> None:
        check_choice(("restart", "avoid"), react=self.react)
        for name, least in (("check_every", 1), ("distrust", 1), ("worth", 0)):
            if not getattr(self, name) >= least:
                raise ValueError(f"{name} must be at least {least} s, got {getattr(self, name)}")
        SequentialDetector(self.false_alarm, self.slowdown)

    def preferences(self) -> Preferences:
        """Return those of a policy that leaves running jobs alone."""
        return Preferences(reads_cycle_times=True)

    def begin(self, view: View) -> Scheduler:
        """Begin a run."""
        inner = Policy(self.order, self.backfill, self.allocation).begin(view)
        return NodeHealthScheduler(self, inner, view)


class _Patient:
    """One run under watch."""

    def __init__(self, run: Run, rule: NodeHealthAware) -> None:
        self.run = run
        self.seen = run.start
        self._rule = rule
        self._first: FloatArray = np.empty(0)
        self._detector: SequentialDetector | None = None

    def check(self, ratios: FloatArray) -> bool:
        """Take in ratios of measured to benchmarked times; say whether an alarm stands."""
        if self._detector is None:
            self._first = np.concatenate((self._first, ratios))
            if self._first.size < LEARNED:
                return False
            healthy, ratios = self._first[:LEARNED], self._first[LEARNED:]
            bias = float(np.median(np.log(healthy)))
            spread = max(learned_spread(healthy), LEAST_SPREAD)
            rule = self._rule
            self._detector = SequentialDetector(rule.false_alarm, rule.slowdown, spread, bias)
        if ratios.size:
            self._detector.update(ratios)
        return self._detector.raised_


class NodeHealthScheduler(AroundScheduler):
    """A scheduler whose starts keep away from suspected nodes."""

    def __init__(self, rule: NodeHealthAware, inner: Scheduler, view: View) -> None:
        super().__init__(view, inner)
        self.suspects: dict[int, float] = {}
        self._rule = rule
        self._patients: dict[int, _Patient] = {}
        self._moved: dict[int, float] = {}
        self._waking = -np.inf

    def decide(self) -> Sequence[Decision]:
        """Check the running jobs, decide as the policy does, and place what it starts."""
        now = self.view.now
        self.suspects = {node: until for node, until in self.suspects.items() if until > now}
        slowed = self._slowed()
        decisions = list(self.inner.decide())
        if self.suspects:
            decisions = self._placed(decisions)
        if self._rule.react == "restart":
            decisions += self._moves(slowed, decisions)
        if self._waking <= now and (self.view.running or decisions):
            self._waking = now + self._rule.check_every
            decisions.append(WakeAt(self._waking))
        return decisions

    def _slowed(self) -> list[Run]:
        """Return the runs with an alarm, their nodes suspected from now on."""
        view, slowed = self.view, []
        for job, run in view.running.items():
            patient = self._patients.get(job)
            if patient is None or patient.run is not run:
                patient = self._patients[job] = _Patient(run, self._rule)
            if view.now < patient.seen + self._rule.check_every:
                continue
            ratios = view.machine.cycle_time_ratios(job, patient.seen)
            patient.seen = view.now
            if patient.check(ratios):
                slowed.append(run)
                until = view.now + self._rule.distrust
                ill = nodes_of(run.nodes, view.machine.processors_per_node)
                self.suspects.update(dict.fromkeys(ill, until))
        for run in view.ended:
            self._patients.pop(run.job, None)
        return slowed

    def _idle(self) -> tuple[IntArray, IntArray]:
        """Return the idle processors on trusted and on suspected nodes, ascending."""
        every = as_numbers(self.view.machine.idle())
        ill = np.isin(every // self.view.machine.processors_per_node, list(self.suspects))
        return every[~ill], every[ill]

    def _placed(self, decisions: list[Decision]) -> list[Decision]:
        """Name processors for all starts: trusted ones first."""
        trusted, suspected = self._idle()
        placed: list[Decision] = []
        for decision in decisions:
            if isinstance(decision, Start) and decision.nodes is None:
                count = decision.processors
                taken = np.sort(np.concatenate((trusted, suspected))[:count])
                suspected = suspected[max(count - trusted.size, 0) :]
                trusted = trusted[count:]
                placed.append(decision._replace(nodes=as_ranges(taken)))
            else:
                placed.append(decision)
        return placed

    def _moves(self, slowed: list[Run], decisions: list[Decision]) -> list[Decision]:
        """Queue slowed jobs again that fit on trusted nodes, after what starts now."""
        starting = sum(d.processors for d in decisions if isinstance(d, Start))
        room = self._idle()[0].size - starting if slowed else 0
        moves: list[Decision] = []
        for run in slowed:
            left = run.believed_end - self.view.now
            rested = self.view.now >= self._moved.get(run.job, -np.inf) + self._rule.distrust
            if rested and run.processors <= room and left > self._rule.worth:
                room -= run.processors
                self._moved[run.job] = self.view.now
                moves.append(Requeue(run.job))
        return moves
