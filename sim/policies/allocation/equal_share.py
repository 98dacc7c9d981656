"""Equal shares for jobs that run to completion: ASP and AEP."""

from dataclasses import dataclass
from math import floor
from typing import Literal

import numpy as np
from numba import njit

from predictors.base import FloatArray, IntArray
from sim.policies.advice import Reading, last_up_to, round_down
from sim.policies.allocation.curve import average, knee
from sim.policies.molding.base import Menu, Molder
from sim.policies.molding.menus import OpenQueue
from sim.policies.ties import first_least, is_less
from sim.view import View

Cap = Literal["maximum", "average", "knee"]


def place_of_cap(menu: Reading, cap: Cap) -> int:
    """Return the place of the most processors that a job should ever get.

    The fastest count (``maximum``), the average parallelism A (``average``), or
    the processor working set (``knee``).
    """
    if cap == "knee":
        return int(knee(menu.counts, menu.runtimes))
    if cap == "average":
        return int(average(*menu))
    return int(first_least(menu.runtimes))


@dataclass(frozen=True, kw_only=True)
class CappedMenu(Menu):
    """What rules with a cap on each job's count have in common.

    Parameters
    ----------
    cap : {"maximum", "average", "knee"}
        The most that a job gets: the fastest count, its average parallelism A,
        or its processor working set.
    """

    cap: Cap = "maximum"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cap not in ("maximum", "average", "knee"):
            raise ValueError(f"cap must be 'maximum', 'average' or 'knee', got {self.cap!r}")


class CappedMolder(Molder):
    """Serves menus that end at a cap, and settles every count at every look."""

    settles = True

    def __init__(self, view: View, rule: CappedMenu) -> None:
        super().__init__(view, rule.advice, rule.counts)
        self._cap = rule.cap

    def menu(self, job: int) -> Reading:
        """Return the job's menu up to its cap."""
        menu = super().menu(job)
        most = place_of_cap(menu, self._cap) + 1
        return Reading(menu.counts[:most], menu.runtimes[:most], menu.serial)


@dataclass(frozen=True, kw_only=True)
class AdaptiveStatic(CappedMenu):
    """ASP, adaptive static partitioning: the free processors in equal parts.

    With F processors free and Q jobs waiting each starting job gets
    min(cap, max(1, floor(F/Q))), as long as there is room; what is left over goes
    one by one to these, and nobody else starts. Setia & Tripathi 1993, Rosti, Smirni, Dowdy,
    Serazzi & Carlson 1994; from memory. Use with ``backfill=none``.
    """

    def open(self, view: View) -> Molder:
        """Begin a run."""
        return FreeShare(view, self)


class FreeShare(CappedMolder):
    """Divides what is free among those who wait."""

    def mold(self, queue: OpenQueue) -> None:
        """Fix the counts of the first jobs, as many as there is room for."""
        places = queue.places()
        targets = np.zeros(places.size)
        dishes = self._share(queue, places)
        for i, dish in enumerate(dishes):
            targets[i] = queue.counts[queue.offer.item(places.item(i)) + dish]
        queue.fix(places, targets)
        queue.held[places] = 1
        queue.held[places[: len(dishes)]] = 0

    def _share(self, queue: OpenQueue, places: IntArray) -> list[int]:
        """Return which dish each of the first jobs gets."""
        free = self.view.free
        share = max(free // places.size, 1)
        menus: list[list[int]] = []
        dishes: list[int] = []
        for place in places.tolist():
            counts = queue.menu(place)[0]
            dish = round_down(counts, share)
            if counts[dish] > free:
                break
            free -= int(counts[dish])
            menus.append(counts.tolist())
            dishes.append(dish)
        return _grow(menus, dishes, free)


def _grow(menus: list[list[int]], dishes: list[int], free: int) -> list[int]:
    """Hand out free processors, a step of the menu to each job in turn, while any can use one."""
    grew = True
    while free > 0 and grew:
        grew = False
        for i, (menu, dish) in enumerate(zip(menus, dishes, strict=True)):
            step = menu[dish + 1] - menu[dish] if dish + 1 < len(menu) else 0
            if 0 < step <= free:
                dishes[i] += 1
                free -= step
                grew = True
    return dishes


@dataclass(frozen=True, kw_only=True)
class AdaptiveEqual(CappedMenu):
    """AEP (AP1): the whole machine in equal parts.

    The target is max(1, round(P/(Q+1))), Q the jobs that wait besides the one
    that is to start (our reading: a single job on an idle machine gets all of
    it); a job starts only when its target is free. From memory. Use with
    ``backfill=none``.
    """

    def open(self, view: View) -> Molder:
        """Begin a run."""
        return MachineShare(view, self)


class MachineShare(CappedMolder):
    """Divides the machine by the number of waiting jobs."""

    def __init__(self, view: View, rule: CappedMenu) -> None:
        super().__init__(view, rule)
        self._unlimited: FloatArray = np.full(len(view.submit_time), np.inf)

    def mold(self, queue: OpenQueue) -> None:
        """Fix every count at the target."""
        target = max(floor(self.view.processors / queue.waiting + 0.5), 1)
        queue.settle(self._unlimited, float(target))


@dataclass(frozen=True, kw_only=True)
class Available(CappedMenu):
    """Downey's strategies: take what is free, once enough of the cap is.

    The head of the queue takes min(cap, F) processors as soon as F is at least
    `share` of its cap: 0 is ASP as Downey has it (start now with whatever is
    free), 1 is AVG (wait for all of A). Downey (HPDC'97; JSSPP'97), from memory.
    Use with ``backfill=none``.

    Parameters
    ----------
    share : float
        From 0 to 1.
    """

    cap: Cap = "average"
    share: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.share <= 1:
            raise ValueError(f"share must be in [0, 1], got {self.share}")

    def open(self, view: View) -> Molder:
        """Begin a run."""
        return WhatIsFree(view, self)


@njit(cache=True)
def take_free(
    counts: IntArray,
    offer: IntArray,
    size: IntArray,
    processors: IntArray,
    first: int,
    last: int,
    free: int,
    share: float,
    low: IntArray,
    high: IntArray,
) -> None:
    """Give heads what is free of their caps; from the first that waits on, all get their cap."""
    waits = False
    for k in range(first, last):
        if processors[k] == 0:
            continue
        begin, end = offer[k], offer[k] + size[k]
        low[k], high[k] = end - 1, end
        if waits or free < counts[begin] or is_less(free, share * counts[end - 1]):
            waits = True
            continue
        low[k] = last_up_to(counts, begin, end, free)
        high[k] = low[k] + 1
        free -= counts[low[k]]


class WhatIsFree(CappedMolder):
    """Gives heads what is free, in queue order."""

    def __init__(self, view: View, rule: Available) -> None:
        super().__init__(view, rule)
        self._share = float(rule.share)

    def mold(self, queue: OpenQueue) -> None:
        """Fix the counts of the heads that take what is free; the next waits for its cap."""
        take_free(
            queue.counts, queue.offer, queue.size, queue.processors, queue.first, queue.last,
            self.view.free, self._share, queue.low, queue.high,
        )  # fmt: skip
