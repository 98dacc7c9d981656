"""A+: about the average parallelism, more when the load is light, less when it is heavy."""

from dataclasses import dataclass

import numpy as np

from predictors.base import FloatArray
from predictors.compiling import compiled, direct
from published_rules.busyness import ByLoad
from sim.policies.advice import JobCurve, last_up_to
from sim.policies.allocation.curve import average
from sim.policies.molding.base import Candidates
from sim.policies.passes.memory import RuleMemory
from sim.policies.ties import TIE, first_least
from sim.state.view import View
from sim.state.waiting_queue import jobs_in


@dataclass(frozen=True, kw_only=True)
class LoadInterpolated(ByLoad):
    """A+ (Sevcik 1989), our reading: interpolate between maximum, A and minimum by load.

    With the load x clipped to [0, 1], M the fastest count, A the average
    parallelism (largest speedup) and m the least count: n = M - 2x(M - A) up to
    x = 1/2, n = A - (2x - 1)(A - m) above; rounded down to a feasible count.

    The parameters say what x is: by default the requests of the waiting jobs over the machine.
    """

    def open(self, view: View) -> Candidates:
        """Begin a run."""
        return Interpolator(view, self)


@compiled
def interpolated(x: float, most: float, average: float, least: float) -> float:
    """Return A+'s count at a load, before it is rounded.

    Parameters
    ----------
    x : float
        The load; clipped to [0, 1].
    most, average, least : float

    Examples
    --------
    >>> [interpolated(x, 30.0, 10.0, 2.0) for x in (0.0, 0.25, 0.5, 0.75, 1.0)]
    [30.0, 20.0, 10.0, 6.0, 2.0]
    """
    x = min(max(x, 0.0), 1.0)
    if x <= 0.5:
        return most - 2 * x * (most - average)
    return average - (2 * x - 1) * (average - least)


@compiled
def settle_interpolated(memory: RuleMemory, points: FloatArray, x: float) -> int:
    """Keep of everybody's candidates the largest count up to A+'s, else the least.

    `points` holds most, average and least count of each job. Returns one past the last place.
    """
    queue, at = memory.queue, memory.queue.at[0]
    for k in range(at.first, at.last):
        job = queue.job[k]
        own = memory.menu_spans[job]
        target = interpolated(x, points[job, 0], points[job, 1], points[job, 2])
        end = own.begin + own.number
        own.low = last_up_to(memory.menu_counts, own.begin, end, target * (1 + TIE))
        own.high = own.low + 1
    return int(at.last)


_settle_interpolated = direct(settle_interpolated)


class Interpolator(Candidates):
    """Remembers the three counts of every waiting job."""

    def __init__(self, view: View, rule: LoadInterpolated) -> None:
        super().__init__(view, rule)
        self._meter = rule.meter(view)
        self._points: FloatArray = np.zeros((len(view.submit_time), 3))

    def of(self, job: int) -> JobCurve:
        """Return the job's candidates, and remember M, A and m."""
        reading = super().of(job)
        counts, most = reading.counts, int(first_least(reading.runtimes))
        self._points[job] = counts[most], counts[min(int(average(*reading)), most)], counts[0]
        return reading

    def watch(self) -> None:
        """Let the load signal take in what happened."""
        self._meter.watch()

    def narrow(self, memory: RuleMemory) -> int:
        """Fix every count at the one for this load."""
        x = self._meter.read(jobs_in(memory.queue))
        return int(_settle_interpolated(memory, self._points, x))
