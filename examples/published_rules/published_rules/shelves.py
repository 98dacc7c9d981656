"""Two shelves: a schedule at most 3/2 of the best for a batch (Mounié, Rapine & Trystram 2007).

A dual step either certifies that no schedule of length d exists or builds one
of length 3d/2; bisection on d does the rest. It needs monotone curves: time
that does not grow and area that does not fall with the count.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray
from sim.policies.ties import TIE, first_least, is_less

TIGHT = 1 + TIE
"""Slack for comparisons of sums that should be equal."""


class Curve(NamedTuple):
    """A job of a batch: its counts, ascending, and believed runtimes in seconds."""

    counts: IntArray
    runtimes: FloatArray

    def canonical(self, deadline: float) -> int | None:
        """Return the place γ(d) of the least count that ends within a deadline, if any."""
        enough = np.flatnonzero(self.runtimes <= deadline * TIGHT)
        return int(enough[0]) if enough.size else None

    def area(self, place: int) -> float:
        """Return processor-seconds at a place of the counts."""
        return float(self.counts[place] * self.runtimes[place])


class Slot(NamedTuple):
    """Where a job of a batch goes: which candidate, and when, in seconds from the begin."""

    job: int
    pick: int
    start: float


class Placed(NamedTuple):
    """A job on a shelf."""

    job: int
    pick: int
    processors: int
    runtime: float


@dataclass
class _Shelves:
    """A schedule in the making: columns over the whole 3d/2, the first shelf, the second."""

    curves: list[Curve]
    processors: int
    deadline: float
    columns: list[list[Placed]] = field(default_factory=list)
    first: list[Placed] = field(default_factory=list)
    second: list[Placed] = field(default_factory=list)

    def on(self, job: int, pick: int) -> Placed:
        """Return a job with the count of a candidate."""
        curve = self.curves[job]
        return Placed(job, pick, int(curve.counts[pick]), float(curve.runtimes[pick]))

    def column_processors(self) -> int:
        """Return what the columns hold."""
        return sum(column[0].processors for column in self.columns)

    def settle(self) -> bool:
        """Transform until nothing applies; True if the second shelf then fits."""
        while self._shrink() or self._stack() or self._widen():
            pass
        left = self.processors - self.column_processors()
        return max(_width(self.first), _width(self.second)) <= left

    def _shrink(self) -> bool:
        """Give a short job of the first shelf a processor less, over the whole time."""
        for placed in self.first:
            if placed.runtime <= 0.75 * self.deadline * TIGHT and placed.pick > 0:
                fewer = self.on(placed.job, placed.pick - 1)
                if fewer.runtime <= 1.5 * self.deadline * TIGHT:
                    self.first.remove(placed)
                    self.columns.append([fewer])
                    return True
        return False

    def _stack(self) -> bool:
        """Put a short sequential job of the first shelf on top of another job."""
        short = [
            p for p in self.first if p.processors == 1 and p.runtime <= 0.75 * self.deadline * TIGHT
        ]
        for top in short:
            for below in self.first:
                together = top.runtime + below.runtime
                if below is not top and together <= 1.5 * self.deadline * TIGHT:
                    self.first.remove(top)
                    self.first.remove(below)
                    self.columns.append([below, top])
                    return True
        return False

    def _widen(self) -> bool:
        """Move a job of the second shelf to the processors that the first leaves idle."""
        idle = self.processors - self.column_processors() - _width(self.first)
        for placed in self.second:
            pick = self.curves[placed.job].canonical(1.5 * self.deadline)
            if pick is not None and self.curves[placed.job].counts[pick] <= idle:
                self.second.remove(placed)
                moved = self.on(placed.job, pick)
                if moved.runtime > self.deadline * TIGHT:
                    self.columns.append([moved])
                else:
                    self.first.append(moved)
                return True
        return False

    def slots(self, small: list[int]) -> list[Slot] | None:
        """Return the schedule with small jobs in the gaps, None if one does not fit."""
        end = 1.5 * self.deadline
        found: list[Slot] = []
        below: FloatArray = np.zeros(self.processors)
        above: FloatArray = np.zeros(self.processors)
        at = 0
        for column in self.columns:
            begin = 0.0
            for placed in column:
                found.append(Slot(placed.job, placed.pick, begin))
                below[at : at + placed.processors] += placed.runtime
                begin += placed.runtime
            at += column[0].processors
        here = at
        for placed in self.first:
            found.append(Slot(placed.job, placed.pick, 0.0))
            below[here : here + placed.processors] = placed.runtime
            here += placed.processors
        here = at
        for placed in self.second:
            found.append(Slot(placed.job, placed.pick, end - placed.runtime))
            above[here : here + placed.processors] = placed.runtime
            here += placed.processors
        for job in small:
            seconds = float(self.curves[job].runtimes[0])
            least = int(first_least(below + above))
            if below[least] + seconds + above[least] > end * TIGHT:
                return None
            found.append(Slot(job, 0, float(below[least])))
            below[least] += seconds
        return found


def _width(shelf: list[Placed]) -> int:
    return sum(placed.processors for placed in shelf)


def _pick_first_shelf(weights: list[int], profits: list[float], capacity: int) -> list[bool]:
    """Return the knapsack's choice: most profit within the capacity; infinite profit must go in."""
    must = [profit == np.inf for profit in profits]
    capacity -= sum(w for w, m in zip(weights, must, strict=True) if m)
    value: FloatArray = np.zeros(capacity + 1)
    taken = np.zeros((len(weights), capacity + 1), np.bool_)
    for i, (weight, profit) in enumerate(zip(weights, profits, strict=True)):
        if must[i] or weight > capacity or profit <= 0:
            continue
        better = value[: capacity + 1 - weight] + profit > value[weight:] * TIGHT
        taken[i, weight:] = better
        value[weight:] = np.where(better, value[: capacity + 1 - weight] + profit, value[weight:])
    chosen = list(must)
    room = capacity
    for i in range(len(weights) - 1, -1, -1):
        if taken[i, room]:
            chosen[i] = True
            room -= weights[i]
    return chosen


def dual_step(curves: list[Curve], processors: int, deadline: float) -> list[Slot] | None:
    """Return a schedule of length at most 3/2 of a deadline, or None."""
    small: list[int] = []
    large: list[int] = []
    for job, curve in enumerate(curves):
        is_small = curve.counts[0] == 1 and curve.runtimes[0] <= 0.5 * deadline * TIGHT
        (small if is_small else large).append(job)
    work = sum(curves[job].area(0) for job in small)
    places = [
        (curves[job].canonical(deadline), curves[job].canonical(deadline / 2)) for job in large
    ]
    weights, profits = [], []
    for job, (full, half) in zip(large, places, strict=True):
        if full is None:
            return None
        weights.append(int(curves[job].counts[full]))
        least, most = curves[job].area(full), np.inf if half is None else curves[job].area(half)
        profits.append(most - least if is_less(least, most) else 0.0)
    if sum(w for w, p in zip(weights, profits, strict=True) if p == np.inf) > processors:
        return None
    shelves = _Shelves(curves, processors, deadline)
    chosen = _pick_first_shelf(weights, profits, processors)
    for job, is_first, (full, half) in zip(large, chosen, places, strict=True):
        pick = full if is_first or half is None else half
        work += curves[job].area(pick or 0)
        (shelves.first if is_first else shelves.second).append(shelves.on(job, pick or 0))
    if work > processors * deadline * TIGHT:
        return None
    return shelves.slots(small) if shelves.settle() else None


def two_shelves(
    curves: list[Curve], processors: int, shortest: float, epsilon: float = 0.01
) -> list[Slot] | None:
    """Return a schedule of at most (3/2)(1 + ε) of the least makespan, by bisection."""
    low, high = shortest, 2.0 * shortest
    best = dual_step(curves, processors, low)
    if best is not None:
        return best
    best = dual_step(curves, processors, high)
    while best is not None and high > (1 + epsilon) * low:
        middle = 0.5 * (low + high)
        slots = dual_step(curves, processors, middle)
        if slots is None:
            low = middle
        else:
            best, high = slots, middle
    return best
