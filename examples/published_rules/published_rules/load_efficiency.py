"""SCOJO's principle: more processors at light load, fewer and better used ones at heavy load."""

from dataclasses import dataclass

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled, direct
from published_rules.busyness import ByLoad, ForecastMeter
from published_rules.targets import aim, around
from sim.errors import AT_LEAST_0, POSITIVE, POSITIVE_SHARE, SHARE
from sim.policies.advice import JobCurve
from sim.policies.allocation.curve import efficient, last_efficient
from sim.policies.molding.base import Candidates, OpenCounts
from sim.policies.passes.memory import RuleMemory
from sim.policies.ties import is_less
from sim.state.view import View
from sim.state.waiting_queue import Queue, jobs_in


@compiled
def aim_at_efficiency(memory: RuleMemory, efficiency: float, tolerance: float) -> int:
    """Allow each waiting job what is near its largest count that is efficient enough.

    Near its least count where none is. Returns one past the last place in use.
    """
    queue, at, counts = memory.queue, memory.queue.at[0], memory.menu_counts
    for k in range(at.first, at.last):
        own, serial_time = memory.menu_spans[queue.job[k]], memory.molding.serial_time[queue.job[k]]
        begin, end = own.begin, own.begin + own.number
        pick = last_efficient(counts, memory.menu_runtimes, begin, end, serial_time, efficiency)
        own.low, own.high = around(counts, begin, end, float(counts[pick]), tolerance)
    return int(at.last)


_aim_at_efficiency = direct(aim_at_efficiency)


@compiled
def number_below(values: FloatArray, limit: float) -> int:
    """Return how many of the values, ascending, are below a limit."""
    low, high = 0, values.size
    while low < high:
        middle = (low + high) // 2
        if values[middle] < limit:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def running_until(left: FloatArray, held: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return sums of processors, and of processor-seconds, of the first runs to end."""
    counts, areas = np.zeros(left.size + 1), np.zeros(left.size + 1)
    for k in range(left.size):
        counts[k + 1] = counts[k] + held[k]
        areas[k + 1] = areas[k] + held[k] * left[k]
    return counts, areas


@compiled
def forecast_counts(
    queue: Queue, known: FloatArray, ends: FloatArray, held: IntArray,
    now: float, machine: int, arriving: float,
) -> FloatArray:  # fmt: skip
    """Return the count that each waiting job aims at for the load that it will meet."""
    at = queue.at[0]
    processors, job = queue.processors[at.first : at.last], queue.job[at.first : at.last]
    left = np.empty(ends.size)
    for k in range(ends.size):
        left[k] = ends[k] - now
    freed, over = running_until(left, held)
    waiting = 0.0
    for k in range(job.size):
        if processors[k] > 0:
            waiting += known[job[k], 0]
    targets = np.zeros(job.size)
    for k in range(job.size):
        if processors[k] == 0:
            continue
        reference, runtime = known[job[k], 0], known[job[k], 1]
        light, heavy = known[job[k], 2], known[job[k], 3]
        ended = number_below(left, runtime)
        running = over[ended] / runtime + (freed[-1] - freed[ended])
        load = (running + waiting) / machine + arriving
        targets[k] = min(reference / load, heavy) if is_less(1.0, load) else light
    return targets


@dataclass(frozen=True, kw_only=True)
class EfficiencyRange(OpenCounts):
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
        POSITIVE_SHARE.check(light=self.light)
        if not self.light <= self.heavy <= 1:
            raise ValueError(f"heavy must be in [light, 1] = [{self.light}, 1], got {self.heavy}")
        AT_LEAST_0.check(tolerance=self.tolerance)


@dataclass(frozen=True, kw_only=True)
class LoadAdaptive(ByLoad, EfficiencyRange):
    """SCOJO, molding alone (Sodan & Huang 2006), our reading.

    The target is the largest n whose predicted efficiency is at least
    light + x·(heavy - light), with the load x clipped to [0, 1].

    The parameters are those of `EfficiencyRange` and `ByLoad`.
    """

    def open(self, view: View) -> Candidates:
        """Begin a run."""
        return AdaptiveCandidates(view, self)


class AdaptiveCandidates(Candidates):
    """Reads the load once a pass."""

    def __init__(self, view: View, rule: LoadAdaptive) -> None:
        super().__init__(view, rule)
        self._meter = rule.meter(view)

    def watch(self) -> None:
        """Let the load signal take in what happened."""
        self._meter.watch()

    def narrow(self, memory: RuleMemory) -> int:
        """Aim at the efficiency for this load."""
        rule = self.rule
        x = min(max(self._meter.read(jobs_in(memory.queue)), 0.0), 1.0)
        efficiency = rule.light + x * (rule.heavy - rule.light)
        return int(_aim_at_efficiency(memory, efficiency, float(rule.tolerance)))


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
        SHARE.check(reference=self.reference)
        POSITIVE.check(window=self.window)

    def open(self, view: View) -> Candidates:
        """Begin a run."""
        return PredictiveCandidates(view, self)


class PredictiveCandidates(Candidates):
    """Remembers, of each waiting job, its reference and its two efficient counts."""

    def __init__(self, view: View, rule: LoadPredictive) -> None:
        super().__init__(view, rule)
        self._meter = ForecastMeter(view, rule.window)
        self._known: FloatArray = np.zeros((len(view.submit_time), 4))

    def of(self, job: int) -> JobCurve:
        """Return the job's candidates, and remember its reference and efficient counts."""
        reading, rule = super().of(job), self.rule
        if rule.reference > 0:
            pick = efficient(reading, rule.reference)
        else:
            pick = int(np.abs(reading.counts - self.view.requested_processors[job]).argmin())
        counts = reading.counts
        self._known[job] = (
            counts[pick],
            reading.runtimes[pick],
            counts[efficient(reading, rule.light)],
            counts[efficient(reading, rule.heavy)],
        )
        return reading

    def watch(self) -> None:
        """Let the load signal take in what happened."""
        self._meter.watch()

    def narrow(self, memory: RuleMemory) -> int:
        """Aim at the efficient count for the load that each job will meet."""
        view, queue = self.view, memory.queue
        ends, _, held = view._ends
        arriving = self._meter.read(jobs_in(queue))
        targets = forecast_counts(
            queue, self._known, ends, held, view.now, view.processors, arriving
        )
        return int(aim(memory, targets, float(self.rule.tolerance)))
