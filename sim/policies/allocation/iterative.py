"""Whole-queue molding: iteration on the mean turnaround, and utilisation-based molding."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np

from predictors.base import IntArray
from sim.policies.molding.base import Menu, Molder
from sim.policies.molding.iteration import iterate
from sim.policies.molding.menus import OpenQueue
from sim.policies.molding.replan import fill_idle
from sim.profile import Profile
from sim.view import View


@dataclass(frozen=True, kw_only=True)
class WholeQueue(Menu):
    """What rules that plan the whole queue at every look have in common.

    Parameters
    ----------
    depth : int
        How many of the first waiting jobs are planned; the others are not
        considered until they come within. At least 1.
    """

    depth: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.depth < 1:
            raise ValueError(f"depth must be at least 1, got {self.depth}")


class QueuePlanner(Molder, ABC):
    """Plans the first waiting jobs after the running ones, where any could start now.

    Attributes
    ----------
    plans : int
        How many schedules were built so far.
    """

    def __init__(self, view: View, rule: WholeQueue) -> None:
        super().__init__(view, rule.advice, rule.counts)
        self._depth = rule.depth
        self._profile = Profile(view.processors)
        self.plans = 0

    def mold(self, queue: OpenQueue) -> None:
        """Fix the counts of the first jobs, and hold the others back."""
        queue.allow_all()
        if self.view.free == 0:
            return
        places = queue.places()
        queue.held[places[self._depth :]] = 1
        places = places[: self._depth]
        self._profile.lay(self.view.now, self.view.believed_ends)
        dish = np.zeros(places.size, np.int64)
        self.plans += self.plan(queue, places, dish)
        queue.low[places], queue.high[places] = dish, dish + 1

    @abstractmethod
    def plan(self, queue: OpenQueue, places: IntArray, dish: IntArray) -> int:
        """Write the dish of each place, and return how many schedules that took."""


@dataclass(frozen=True, kw_only=True)
class Iterative(WholeQueue):
    """Parameter-free iterative molding (Sabin, Lang & Sadayappan, JSSPP 2006).

    All waiting jobs begin at their least counts in a conservative schedule.
    Then, again and again, the job whose next step loses least efficiency takes
    it; where the mean turnaround does not fall, the step is undone and the job
    drops out. Structure from the abstract, steps from memory: our reading. Use
    with ``backfill=conservative`` and ``replan=true``.

    Parameters
    ----------
    step : {"efficiency", "time"}
        Whose step is tried next: least loss of efficiency, or largest gain of time.
    """

    step: Literal["efficiency", "time"] = "efficiency"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step not in ("efficiency", "time"):
            raise ValueError(f"step must be 'efficiency' or 'time', got {self.step!r}")

    def open(self, view: View) -> Molder:
        """Begin a run."""
        return IterativePlanner(view, self)


class IterativePlanner(QueuePlanner):
    """Iterates on the mean turnaround."""

    def __init__(self, view: View, rule: Iterative) -> None:
        super().__init__(view, rule)
        self._by_time = rule.step == "time"

    def plan(self, queue: OpenQueue, places: IntArray, dish: IntArray) -> int:
        """Write the dish of each place, and return how many schedules that took."""
        profile = self._profile
        return int(
            iterate(
                profile.times,
                profile.free,
                profile.span,
                queue.counts,
                queue.runtimes,
                queue.serial[places],
                queue.low[places],
                queue.high[places],
                dish,
                self._by_time,
            )
        )


@dataclass(frozen=True, kw_only=True)
class UtilizationBased(WholeQueue):
    """UMS, utilisation-based molding (Huang, Shih & Chung 2013).

    All waiting jobs begin at their least counts, listed after the running ones.
    At the earliest planned instant that leaves processors idle while waiting
    jobs start there, these are handed out, each to the job of highest
    efficiency; without such an instant the job that ends last takes a step.
    That goes on while the planned utilisation of the waiting jobs rises. Rule
    from a public implementation; steps follow the menu. Use with
    ``backfill=conservative`` and ``replan=true``.
    """

    def open(self, view: View) -> Molder:
        """Begin a run."""
        return UtilizationPlanner(view, self)


class UtilizationPlanner(QueuePlanner):
    """Hands out idle processors."""

    def plan(self, queue: OpenQueue, places: IntArray, dish: IntArray) -> int:
        """Write the dish of each place, and return how many schedules that took."""
        profile = self._profile
        return int(
            fill_idle(
                profile.times,
                profile.free,
                profile.span,
                self.view.now,
                queue.counts,
                queue.runtimes,
                queue.serial[places],
                queue.low[places],
                queue.high[places],
                dish,
            )
        )
