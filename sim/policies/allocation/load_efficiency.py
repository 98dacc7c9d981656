"""SCOJO's principle: more processors at light load, fewer and better used ones at heavy load."""

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from predictors.base import FloatArray, IntArray
from sim.policies.advice import Reading
from sim.policies.allocation.curve import efficient
from sim.policies.load import ForecastMeter, Load
from sim.policies.molding.base import Menu, Molder
from sim.policies.molding.menus import OpenQueue
from sim.view import View


@dataclass(frozen=True, kw_only=True)
class EfficiencyRange(Menu):
    """What rules that aim at an efficiency have in common.

    Parameters
    ----------
    light, heavy : float
        Least efficiencies at light and at heavy load, 0 < light <= heavy <= 1.
    tolerance : float
        A job may take counts up to this share away from its target, at least 0.
    """

    light: float = 0.5
    heavy: float = 0.8
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.light <= 1:
            raise ValueError(f"light must be in (0, 1], got {self.light}")
        if not self.light <= self.heavy <= 1:
            raise ValueError(f"heavy must be in [light, 1] = [{self.light}, 1], got {self.heavy}")
        if not self.tolerance >= 0:
            raise ValueError(f"tolerance must be at least 0, got {self.tolerance}")


@dataclass(frozen=True, kw_only=True)
class LoadAdaptive(EfficiencyRange):
    """SCOJO, molding alone (Sodan & Huang 2006), our reading.

    The target is the largest n whose predicted efficiency is at least
    light + x·(heavy - light), with the load x clipped to [0, 1].

    Parameters
    ----------
    load : Load
    """

    load: Load = field(default_factory=Load)

    def open(self, view: View) -> Molder:
        """Begin a run."""
        return AdaptiveMolder(view, self)


class TargetMolder(Molder):
    """Allows counts around a target."""

    def __init__(self, view: View, rule: EfficiencyRange) -> None:
        super().__init__(view, rule.advice, rule.counts)
        self._tolerance = rule.tolerance

    def aim(self, queue: OpenQueue, targets: FloatArray) -> None:
        """Allow what lies within the tolerance of each job's target."""
        if self._tolerance == 0:
            queue.fix(queue.places(), targets)
        else:
            low, high = targets / (1 + self._tolerance), targets * (1 + self._tolerance)
            queue.allow(queue.places(), np.ceil(low - 1e-9), high)


@njit(cache=True)
def targets_at(
    counts: IntArray,
    runtimes: FloatArray,
    serial: FloatArray,
    offer: IntArray,
    size: IntArray,
    efficiency: float,
) -> FloatArray:
    """Return each job's largest count that is efficient enough, else its least.

    Parameters
    ----------
    counts, runtimes : numpy.ndarray
        All menus, as `sim.policies.molding.menus.OpenQueue` has them.
    serial, offer, size : numpy.ndarray of shape (n,)
        Of each job.
    efficiency : float
    """
    target = np.empty(offer.size)
    for i in range(offer.size):
        dish = offer[i] + size[i] - 1
        while dish > offer[i] and serial[i] < (
            efficiency * (1 - 1e-12) * counts[dish] * runtimes[dish]
        ):
            dish -= 1
        target[i] = counts[dish]
    return target


class AdaptiveMolder(TargetMolder):
    """Reads the load once a look."""

    def __init__(self, view: View, rule: LoadAdaptive) -> None:
        super().__init__(view, rule)
        self._rule = rule
        self._meter = rule.load.begin(view)

    def watch(self) -> None:
        """Let the load signal take in what happened."""
        self._meter.watch()

    def mold(self, queue: OpenQueue) -> None:
        """Aim at the efficiency for this load."""
        queue.allow_all()
        places = queue.places()
        x = min(max(self._meter.read(queue.job[places]), 0.0), 1.0)
        rule = self._rule
        efficiency = rule.light + x * (rule.heavy - rule.light)
        targets = targets_at(
            queue.counts,
            queue.runtimes,
            queue.serial[places],
            queue.offer[places],
            queue.size[places],
            efficiency,
        )
        self.aim(queue, targets)


@dataclass(frozen=True, kw_only=True)
class LoadPredictive(EfficiencyRange):
    """SCOJO-P (Barsanti & Sodan, JSSPP 2006; Sodan, JSSPP 2009), our reading.

    need(t) is the processors of running jobs believed to run still at t, plus
    the reference counts of the waiting jobs, plus those that future arrivals
    will ask for; the load L is the mean of need/P over the job's runtime at its
    reference count. With L <= 1 the target is the largest n with efficiency at
    least `light`; above, the largest n <= n_ref/L with efficiency at least
    `heavy`, if there is one, else the least.

    Parameters
    ----------
    reference : float
        0 takes the user's request as n_ref; above, the largest n of at least
        this efficiency.
    window : float, seconds
        Over which past arrivals tell the future ones; positive.
    """

    reference: float = 0.0
    window: float = 86_400.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.reference <= 1:
            raise ValueError(f"reference must be in [0, 1], got {self.reference}")
        if not self.window > 0:
            raise ValueError(f"window must be positive, got {self.window}")

    def open(self, view: View) -> Molder:
        """Begin a run."""
        return PredictiveMolder(view, self)


class PredictiveMolder(TargetMolder):
    """Remembers, of each waiting job, its reference and its two efficient counts."""

    def __init__(self, view: View, rule: LoadPredictive) -> None:
        super().__init__(view, rule)
        self._rule = rule
        self._meter = ForecastMeter(view, rule.window)
        number = len(view.submit_time)
        self._reference: FloatArray = np.zeros(number)
        self._runtime: FloatArray = np.zeros(number)
        self._light: FloatArray = np.zeros(number)
        self._heavy: FloatArray = np.zeros(number)

    def menu(self, job: int) -> Reading:
        """Return the job's menu, and remember its reference and efficient counts."""
        menu, rule = super().menu(job), self._rule
        if rule.reference > 0:
            dish = efficient(menu, rule.reference)
        else:
            dish = int(np.abs(menu.counts - self.view.requested_processors[job]).argmin())
        self._reference[job], self._runtime[job] = menu.counts[dish], menu.runtimes[dish]
        self._light[job] = menu.counts[efficient(menu, rule.light)]
        self._heavy[job] = menu.counts[efficient(menu, rule.heavy)]
        return menu

    def loads(self, jobs: IntArray) -> FloatArray:
        """Return L of each waiting job: the mean load over its reference runtime."""
        view = self.view
        runtime = self._runtime[jobs]
        ends = view.believed_ends
        left = np.array([end for end, _, _ in ends]) - view.now
        held = np.array([processors for _, _, processors in ends], np.float64)
        order = np.searchsorted(left, runtime)
        over = np.concatenate([[0.0], np.cumsum(held * left)])[order]
        lasting = held.sum() - np.concatenate([[0.0], np.cumsum(held)])[order]
        running = over / runtime + lasting
        waiting = self._reference[jobs].sum()
        return np.asarray((running + waiting) / view.processors + self._meter.read(jobs))

    def _is_surely_light(self, jobs: IntArray) -> bool:
        """Say whether no load exceeds 1 even if all that runs lasts."""
        view = self.view
        needed = view.processors - view.free + float(self._reference[jobs].sum())
        return needed / view.processors + self._meter.read(jobs) <= 1 - 1e-9

    def watch(self) -> None:
        """Let the load signal take in what happened."""
        self._meter.watch()

    def mold(self, queue: OpenQueue) -> None:
        """Aim at the efficient count for the load that each job will meet."""
        queue.allow_all()
        jobs = queue.job[queue.places()]
        if self._is_surely_light(jobs):
            self.aim(queue, self._light[jobs])
            return
        load = self.loads(jobs)
        fewer = np.minimum(self._reference[jobs] / np.maximum(load, 1e-9), self._heavy[jobs])
        self.aim(queue, np.where(load <= 1, self._light[jobs], fewer))
