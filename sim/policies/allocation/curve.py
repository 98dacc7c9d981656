"""Allocations that read a count off the predicted curve, whatever the load.

Where the predictor has nothing for a job, the request stands.
"""

from abc import abstractmethod

import numpy as np

from predictors.base import FloatArray, IntArray
from sim.policies.advice import Advice, Counts, Reading, round_down, tried
from sim.policies.base import Outlook
from sim.view import View


def knee(counts: IntArray, runtimes: FloatArray) -> int:
    """Return the place of the least n that maximises S(n)²/n, where n·T² is least."""
    cost = counts * runtimes**2
    return int(np.argmax(cost <= cost.min() * (1 + 1e-12)))


def efficient(reading: Reading, efficiency: float) -> int:
    """Return the place of the largest count that is efficient enough, else the first.

    Parameters
    ----------
    reading : Reading
    efficiency : float
        Least T(1) / (n·T(n)).
    """
    areas = reading.counts * reading.runtimes
    enough = reading.serial >= efficiency * (1 - 1e-12) * areas
    last = enough.size - 1 - int(enough[::-1].argmax())
    return last if enough[last] else 0


class CurveRule:
    """Reads a count off the predicted runtimes over all feasible counts.

    Parameters
    ----------
    advice : Advice, optional
        How predicted curves are read; as `Advice()` says by default.
    """

    counts: Counts = "all"

    def __init__(self, advice: Advice | None = None) -> None:
        self.advice = advice or Advice()

    def choose(self, job: int, view: View, outlook: Outlook) -> int:
        """Return the rule's count; the request where there is no curve or no choice."""
        counts = tried(job, view, self.counts)
        if counts.size == 1:
            return int(counts[0])
        reading = self.advice.read(job, view, counts)
        if reading is None:
            return view.requested_processors[job]
        place = self.pick(reading)
        count = int(reading.counts[place])
        view.believe(job, count, float(reading.runtimes[place]))
        return count

    @abstractmethod
    def pick(self, reading: Reading) -> int:
        """Return the place of the chosen count."""


class AverageParallelism(CurveRule):
    """A: the average parallelism (Eager, Zahorjan & Lazowska 1989).

    It is the largest speedup that the curve reaches, rounded; the job gets the
    largest feasible count up to it.

    Parameters
    ----------
    advice : Advice, optional
    """

    def pick(self, reading: Reading) -> int:
        """Return the place of the largest count up to A."""
        speedup = reading.serial / float(reading.runtimes.min())
        return round_down(reading.counts, np.floor(speedup + 0.5))


class Knee(CurveRule):
    """Processor working set: the least n that maximises S(n)²/n (Ghosal et al. 1991).

    Parameters
    ----------
    advice : Advice, optional
    """

    def pick(self, reading: Reading) -> int:
        """Return the place of the knee."""
        return knee(reading.counts, reading.runtimes)


class EfficiencyAtLeast(CurveRule):
    """The largest n whose predicted efficiency T(1) / (n·T(n)) is at least a bound.

    Parameters
    ----------
    efficiency : float
        In (0, 1].
    advice : Advice, optional
    """

    def __init__(self, efficiency: float = 0.5, advice: Advice | None = None) -> None:
        super().__init__(advice)
        if not 0 < efficiency <= 1:
            raise ValueError(f"efficiency must be in (0, 1], got {efficiency}")
        self.efficiency = efficiency

    def pick(self, reading: Reading) -> int:
        """Return the place of the largest count that is efficient enough, else the first."""
        return efficient(reading, self.efficiency)
