"""PDPA: performance-driven processor allocation (Corbalan, Martorell & Labarta, TPDS 2005)."""

from dataclasses import dataclass
from math import floor, inf
from typing import Literal

import numpy as np

from predictors.base import IntArray
from sim.policies.reallocation.beliefs import Beliefs, Members
from sim.policies.reallocation.rule import Reallocation
from sim.policies.reallocation.shares import hand_out, make_room
from sim.state.machine_state import Run
from sim.state.view import View

Phase = Literal["no_ref", "increase", "decrease", "stable"]


@dataclass
class Progress:
    """How far the search for a job's count has come.

    Attributes
    ----------
    phase : str
        ``no_ref`` before the first measurement, ``increase``, ``decrease``, ``stable``.
    due : float
        When to measure next, seconds.
    efficiency, processors : float, int
        The last measurement and the count it was made on; 0 before.
    bad : bool
        Whether the last efficiency was below the lower bound.
    blocked : int
        The count that it would go on with if there were room, 0 if that is no matter.
    """

    due: float
    phase: Phase = "no_ref"
    efficiency: float = 0.0
    processors: int = 0
    bad: bool = False
    blocked: int = 0


@dataclass(frozen=True)
class PerformanceDriven(Reallocation):
    """PDPA: search each job's count by the efficiency that is measured while it runs.

    A job starts on its request or on what is free. As long as it is measured to
    be efficient, it grows by steps, unless the last step brought too little; as
    long as it is inefficient, it shrinks; then it is stable until its efficiency
    changes. A job that finds no room to grow does so when there is some. Nobody
    starts while a running job is being searched that has room, unless one performs
    badly. States, defaults and this coordination are our reading.
    No prediction is consulted.

    Parameters
    ----------
    cost, gain_factor, distance, reclaim
        See `Reallocation`; without `reclaim`, which is the default here, jobs
        shrink by measurement alone.
    high_efficiency, low_efficiency : float
        Bounds of the target efficiency.
    step : int
        Processors by which a count changes.
    interval, stable_interval : float
        Seconds between measurements, which fall on multiples of the interval for
        all jobs, and those between two of a stable job.
    tolerance : float
        Relative change of efficiency that restarts the search.
    """

    shrinks_unasked = True

    reclaim: bool = False
    high_efficiency: float = 0.7
    low_efficiency: float = 0.5
    step: int = 4
    interval: float = 300.0
    stable_interval: float = 14400.0
    tolerance: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.low_efficiency <= self.high_efficiency:
            raise ValueError(
                f"high_efficiency={self.high_efficiency}, low_efficiency={self.low_efficiency}: "
                "must both be at least 0, the second at most the first"
            )
        for name, least in (("step", 1), ("interval", 1), ("stable_interval", 1), ("tolerance", 0)):
            if not getattr(self, name) >= least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")

    def _tick(self, now: float, delay: float) -> float:
        """Return the first common instant of measurement after a delay, less one interval.

        All measurements fall on multiples of the interval, so that one pass takes many.
        """
        interval = self.interval
        due = (floor((now + delay - interval) / interval) + 1) * interval
        return due if due > now else due + interval

    def hold_back(self, beliefs: Beliefs) -> float | None:
        """Return when the search goes on, None if all are stable or one performs badly."""
        until = inf
        for search in beliefs.notes.values():
            if search.bad:
                return None
            if search.phase != "stable" and not search.blocked and search.due < until:
                until = search.due
        return until if beliefs.view.now < until < inf else None

    def wake(self, beliefs: Beliefs) -> float | None:
        """Return when the next measurement is due."""
        return min((search.due for search in beliefs.notes.values()), default=None)

    def share(self, beliefs: Beliefs, members: Members, total: int) -> IntArray:
        """Return each job's count by its own measurements, as far as there is room."""
        searches: dict[int, Progress] = beliefs.notes
        places = zip(members.job, members.run, members.least.tolist(), strict=True)
        asked = [
            self._begun(beliefs, job) if run is None else self._asked(beliefs, run, least)
            for job, run, least in places
        ]
        wanted = np.clip(asked, members.least, members.largest)
        shares: IntArray = np.clip(members.held, members.least, wanted)
        worst = np.argsort([searches[job].efficiency for job in members.job], kind="stable")
        make_room(shares, members.least, total, worst)
        hand_out(shares, wanted, total, np.arange(len(members))[::-1])
        self._note_changes(beliefs, members, shares.tolist(), asked)
        return shares

    def _begun(self, beliefs: Beliefs, job: int) -> int:
        """Begin the search of a job that starts, and return the count that it asks for."""
        view = beliefs.view
        beliefs.notes[job] = Progress(self._tick(view.now, self.interval))
        return view.requested_processors[job]

    def _asked(self, beliefs: Beliefs, run: Run, least: int) -> int:
        """Return the count that a run's search asks for, whether there is room or not."""
        search: Progress = beliefs.notes[run.job]
        if beliefs.view.now >= search.due:
            return self._measure(beliefs.view, run, search)
        return search.blocked or max(run.processors, least)

    def _note_changes(
        self, beliefs: Beliefs, members: Members, shares: list[int], asked: list[int]
    ) -> None:
        """Measure changed runs after an interval; let those wait that have no room to grow."""
        view, now = beliefs.view, beliefs.view.now
        places = zip(members.job, members.run, shares, asked, strict=True)
        for job, run, share, most in places:
            search: Progress = beliefs.notes[job]
            if run is None:
                continue
            if share != run.processors:
                search.blocked = 0
                search.due = self._tick(now, self.interval)
            elif search.due <= now:
                most = min(most, view.extremes(job)[1])
                search.blocked = most if most > share else 0
                search.phase = "increase" if search.blocked else "stable"
                search.due = self._tick(now, self.stable_interval)

    def _measure(self, view: View, run: Run, search: Progress) -> int:
        """Take a measurement, move on to the next state, and return the wanted count."""
        held, efficiency = run.processors, view.measured_efficiency(run.job)
        before, processors = search.efficiency, search.processors
        search.efficiency, search.processors = efficiency, held
        search.bad = efficiency < self.low_efficiency
        changed = before > 0 and abs(efficiency - before) > self.tolerance * before
        if search.phase == "stable" and not (changed and processors == held):
            return held
        has_grown = search.phase == "increase" and held > processors > 0
        if has_grown and efficiency < self.high_efficiency * max(1.0, before):
            search.phase = "stable"
            return processors
        if efficiency >= self.high_efficiency and search.phase != "decrease":
            search.phase = "increase"
            return held + self.step
        if efficiency < self.low_efficiency and held > 1:
            search.phase = "decrease"
            return held - self.step
        search.phase = "stable"
        return held
