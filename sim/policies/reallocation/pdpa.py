"""PDPA: performance-driven processor allocation (Corbalan, Martorell & Labarta, TPDS 2005)."""

from dataclasses import dataclass
from math import floor, inf
from typing import Literal

import numpy as np

from predictors.base import IntArray
from sim.policies.reallocation.base import Reallocation
from sim.policies.reallocation.beliefs import Beliefs
from sim.policies.reallocation.costs import CostModel
from sim.policies.reallocation.moves import make_room
from sim.policies.reallocation.sharing import Members, PlainSharing
from sim.view import Run

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
class Bounds:
    """PDPA's parameters; see `PerformanceDriven`."""

    high: float
    low: float
    step: int
    interval: float
    stable_interval: float
    tolerance: float


def _within(counts: list[int], least: list[int], largest: list[int]) -> list[int]:
    return [
        low if count < low else high if count > high else count
        for count, low, high in zip(counts, least, largest, strict=True)
    ]


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
    noise : float
        Standard deviation of the logarithm of a measurement's error; the engine reads it
        once, before the run.
    """

    shrinks_unasked = True

    def __init__(
        self,
        cost: CostModel | None = None,
        gain_factor: float = 1.0,
        distance: float = 0.0,
        reclaim: bool = False,
        high_efficiency: float = 0.7,
        low_efficiency: float = 0.5,
        step: int = 4,
        interval: float = 300.0,
        stable_interval: float = 14400.0,
        tolerance: float = 0.2,
        noise: float = 0.05,
    ) -> None:
        super().__init__(cost, gain_factor, distance, reclaim)
        if not 0 <= low_efficiency <= high_efficiency:
            raise ValueError(
                f"low_efficiency must be between 0 and high_efficiency={high_efficiency}, "
                f"got {low_efficiency}"
            )
        if step < 1:
            raise ValueError(f"step must be at least 1, got {step}")
        if not (interval > 0 and stable_interval > 0):
            raise ValueError(
                f"interval and stable_interval must be above 0, got {interval}, {stable_interval}"
            )
        if not (tolerance >= 0 and noise >= 0):
            raise ValueError(f"tolerance and noise must be at least 0, got {tolerance}, {noise}")
        self.bounds = Bounds(
            high_efficiency, low_efficiency, step, interval, stable_interval, tolerance
        )
        self.noise = noise

    def sharing(self, beliefs: Beliefs) -> "PerformanceSharing":
        """Return the rule at work in a new run."""
        return PerformanceSharing(beliefs, self.bounds)


class PerformanceSharing(PlainSharing):
    """Remembers how far each job's search has come.

    Parameters
    ----------
    beliefs : Beliefs
    bounds : Bounds
    """

    def __init__(self, beliefs: Beliefs, bounds: Bounds) -> None:
        super().__init__(beliefs)
        self._bounds = bounds
        self._searches: dict[int, Progress] = {}

    def _tick(self, delay: float) -> float:
        """Return the first common instant of measurement after a delay, less one interval.

        All measurements fall on multiples of the interval, so that one look takes many.
        """
        interval = self._bounds.interval
        now = self.view.now + delay - interval
        due = (floor(now / interval) + 1) * interval
        return due if due > self.view.now else due + interval

    def hold_back(self) -> float | None:
        """Return when the search goes on, None if all are stable or one performs badly."""
        searches = self._searches
        for run in self.view.ended:
            searches.pop(run.job, None)
        until = inf
        for search in searches.values():
            if search.bad:
                return None
            if search.phase != "stable" and not search.blocked and search.due < until:
                until = search.due
        return until if self.view.now < until < inf else None

    def wake(self) -> float | None:
        """Return when the next measurement is due."""
        return min((s.due for s in self._searches.values()), default=None)

    def share(self, members: Members, total: int) -> IntArray:
        """Return each job's count by its own measurements, as far as there is room."""
        least, largest = members.least.tolist(), members.largest.tolist()
        searches = self._searches
        asked = [
            self._asked(job, run, low)
            for job, run, low in zip(members.job, members.run, least, strict=True)
        ]
        wanted = _within(asked, least, largest)
        shares = _within(members.held.tolist(), least, wanted)
        left = total - sum(shares)
        if left < 0:
            worst = sorted(range(len(shares)), key=lambda k: searches[members.job[k]].efficiency)
            lowered = np.array(shares)
            make_room(lowered, members.least, total, worst)
            shares = lowered.tolist()
            left = total - sum(shares)
        for place in reversed(range(len(shares))):
            if left <= 0:
                break
            taken = min(left, wanted[place] - shares[place])
            shares[place] += taken
            left -= taken
        self._note_changes(members, shares, asked)
        return np.array(shares)

    def _asked(self, job: int, run: Run | None, least: int) -> int:
        """Return the count that a job's search asks for, whether there is room or not."""
        if run is None:
            self._searches[job] = Progress(self._tick(self._bounds.interval))
            return self.view.requested_processors[job]
        search = self._searches[job]
        if self.view.now >= search.due:
            return self._measure(run, search)
        return search.blocked or max(run.processors, least)

    def _note_changes(self, members: Members, shares: list[int], asked: list[int]) -> None:
        """Measure changed runs after an interval; let those wait that have no room to grow."""
        now, bounds = self.view.now, self._bounds
        places = zip(members.job, members.run, shares, asked, strict=True)
        for job, run, share, most in places:
            search = self._searches[job]
            if run is None:
                continue
            if share != run.processors:
                search.blocked = 0
                search.due = self._tick(bounds.interval)
            elif search.due <= now:
                most = min(most, self.view.extremes(job)[1])
                search.blocked = most if most > share else 0
                search.phase = "increase" if search.blocked else "stable"
                search.due = self._tick(bounds.stable_interval)

    def _measure(self, run: Run, search: Progress) -> int:
        """Take a measurement, move on to the next state, and return the wanted count."""
        bounds, held = self._bounds, run.processors
        measure = self.view.measured_efficiency
        if measure is None:
            return held
        efficiency = measure(run.job)
        before, processors = search.efficiency, search.processors
        search.efficiency, search.processors = efficiency, held
        search.bad = efficiency < bounds.low
        changed = before > 0 and abs(efficiency - before) > bounds.tolerance * before
        if search.phase == "stable" and not (changed and processors == held):
            return held
        has_grown = search.phase == "increase" and held > processors > 0
        if has_grown and efficiency < bounds.high * max(1.0, before):
            search.phase = "stable"
            return processors
        if efficiency >= bounds.high and search.phase != "decrease":
            search.phase = "increase"
            return held + bounds.step
        if efficiency < bounds.low and held > 1:
            search.phase = "decrease"
            return held - bounds.step
        search.phase = "stable"
        return held
