"""SCOJO's principle: more processors at light load, fewer and better used ones at heavy load."""

from dataclasses import dataclass, field

import numpy as np

from predictors.base import FloatArray
from sim.policies.advice import Reading
from sim.policies.allocation.curve import efficient
from sim.policies.allocation.load_targets import aim_at_efficiency, aim_at_forecast
from sim.policies.load import ForecastMeter, Load
from sim.policies.molding.base import Menu, Molder
from sim.policies.molding.menus import OpenQueue
from sim.profile import in_columns
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


class AdaptiveMolder(Molder):
    """Reads the load once a look."""

    def __init__(self, view: View, rule: LoadAdaptive) -> None:
        super().__init__(view, rule.advice, rule.counts)
        self.settles = rule.tolerance == 0
        self._rule = rule
        self._meter = rule.load.begin(view)

    def watch(self) -> None:
        """Let the load signal take in what happened."""
        self._meter.watch()

    def mold(self, queue: OpenQueue) -> None:
        """Aim at the efficiency for this load."""
        rule = self._rule
        x = min(max(self._meter.read(queue.jobs()), 0.0), 1.0)
        efficiency = rule.light + x * (rule.heavy - rule.light)
        aim_at_efficiency(
            queue.counts, queue.runtimes, queue.serial, queue.offer, queue.size, queue.processors,
            queue.first, queue.last, efficiency, float(rule.tolerance), queue.low, queue.high,
        )  # fmt: skip


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


class PredictiveMolder(Molder):
    """Remembers, of each waiting job, its reference and its two efficient counts."""

    def __init__(self, view: View, rule: LoadPredictive) -> None:
        super().__init__(view, rule.advice, rule.counts)
        self.settles = rule.tolerance == 0
        self._rule = rule
        self._meter = ForecastMeter(view, rule.window)
        self._known: FloatArray = np.zeros((len(view.submit_time), 4))

    def menu(self, job: int) -> Reading:
        """Return the job's menu, and remember its reference and efficient counts."""
        menu, rule = super().menu(job), self._rule
        if rule.reference > 0:
            dish = efficient(menu, rule.reference)
        else:
            dish = int(np.abs(menu.counts - self.view.requested_processors[job]).argmin())
        counts = menu.counts
        self._known[job] = (
            counts[dish],
            menu.runtimes[dish],
            counts[efficient(menu, rule.light)],
            counts[efficient(menu, rule.heavy)],
        )
        return menu

    def watch(self) -> None:
        """Let the load signal take in what happened."""
        self._meter.watch()

    def mold(self, queue: OpenQueue) -> None:
        """Aim at the efficient count for the load that each job will meet."""
        view = self.view
        ends, held = in_columns(view.believed_ends)
        aim_at_forecast(
            queue.counts, queue.offer, queue.size, queue.processors, queue.job, queue.first,
            queue.last, self._known, ends, held, view.now, view.processors,
            self._meter.read(queue.job), float(self._rule.tolerance), queue.low, queue.high,
        )  # fmt: skip
