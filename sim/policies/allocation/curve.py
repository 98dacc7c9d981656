"""Allocations that read a count off the predicted curve, whatever the load.

Where the predictor has nothing for a job, the request stands.
"""

from abc import abstractmethod

import numpy as np

from predictors.base import FloatArray, IntArray
from sim.policies.base import Outlook
from sim.view import View


class CurveRule:
    """Reads a count off the predicted runtimes over all feasible counts."""

    def choose(self, job: int, view: View, outlook: Outlook) -> int:
        """Return the rule's count; the request where there is no curve or no choice."""
        counts = view.counts(job)
        if counts.size == 1:
            return int(counts[0])
        asked = counts if counts[0] == 1 else np.concatenate([[1], counts])
        runtimes = view.curve(job, asked)
        if runtimes is None:
            return view.requested_processors[job]
        serial = float(runtimes[0])
        runtimes = runtimes[asked.size - counts.size :]
        place = self.pick(counts, runtimes, serial)
        view.believe(job, int(counts[place]), float(runtimes[place]))
        return int(counts[place])

    @abstractmethod
    def pick(self, counts: IntArray, runtimes: FloatArray, serial: float) -> int:
        """Return the place of the chosen count.

        Parameters
        ----------
        counts : numpy.ndarray of int, shape (n,), ascending
        runtimes : numpy.ndarray of float, shape (n,), seconds
        serial : float
            The predicted T(1), seconds.
        """


class AverageParallelism(CurveRule):
    """A: the average parallelism (Eager, Zahorjan & Lazowska 1989).

    It is the largest speedup that the curve reaches, rounded; the job gets the
    largest feasible count up to it.
    """

    def pick(self, counts: IntArray, runtimes: FloatArray, serial: float) -> int:
        """Return the place of the largest count up to A."""
        parallelism = np.floor(serial / runtimes.min() + 0.5)
        return max(int(np.searchsorted(counts, parallelism, side="right")) - 1, 0)


class Knee(CurveRule):
    """Processor working set: the least n that maximises S(n)²/n (Ghosal et al. 1991)."""

    def pick(self, counts: IntArray, runtimes: FloatArray, serial: float) -> int:
        """Return the place of the knee; S²/n is largest where n·T² is least."""
        cost = counts * runtimes**2
        return int(np.argmax(cost <= cost.min() * (1 + 1e-12)))


class EfficiencyAtLeast(CurveRule):
    """The largest n whose predicted efficiency T(1) / (n·T(n)) is at least a bound.

    Parameters
    ----------
    efficiency : float
        In (0, 1].
    """

    def __init__(self, efficiency: float = 0.5) -> None:
        if not 0 < efficiency <= 1:
            raise ValueError(f"efficiency must be in (0, 1], got {efficiency}")
        self.efficiency = efficiency

    def pick(self, counts: IntArray, runtimes: FloatArray, serial: float) -> int:
        """Return the place of the largest count that is efficient enough, else the first."""
        enough = np.flatnonzero(serial >= self.efficiency * (1 - 1e-12) * counts * runtimes)
        return int(enough[-1]) if enough.size else 0
