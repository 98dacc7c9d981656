"""Allocations that read a count off the predicted curve, whatever the load.

Where the predictor has nothing for a job, the request stands.
"""

from abc import abstractmethod

import numpy as np
from numba import njit

from predictors.base import FloatArray, IntArray
from sim.policies.advice import Advice, Counts, Reading, last_up_to, tried
from sim.policies.base import Outlook
from sim.view import View


@njit(cache=True)
def knee(counts: IntArray, runtimes: FloatArray) -> int:
    """Return the place of the least n that maximises S(n)²/n, where n·T² is least."""
    least = np.inf
    for k in range(counts.size):
        least = min(least, counts[k] * (runtimes[k] * runtimes[k]))
    least *= 1 + 1e-12
    for k in range(counts.size):
        if counts[k] * (runtimes[k] * runtimes[k]) <= least:
            return k
    return 0


@njit(cache=True)
def fastest(runtimes: FloatArray) -> int:
    """Return the place of the least count of those that run fastest."""
    best = 0
    for k in range(1, runtimes.size):
        if runtimes[k] < runtimes[best]:
            best = k
    return best


@njit(cache=True)
def average(counts: IntArray, runtimes: FloatArray, serial: float) -> int:
    """Return the place of the largest count up to A, the largest speedup, rounded.

    Of the first count where all are above A.
    """
    wanted = np.floor(serial / runtimes[fastest(runtimes)] + 0.5)
    return last_up_to(counts, 0, counts.size, wanted * (1 + 1e-12))


@njit(cache=True)
def last_efficient(
    counts: IntArray, runtimes: FloatArray, begin: int, end: int, serial: float, efficiency: float
) -> int:
    """Return the last place from `begin` to before `end` that is efficient enough, else `begin`.

    Parameters
    ----------
    counts, runtimes : numpy.ndarray
    serial : float
        T(1), seconds.
    efficiency : float
        Least T(1) / (n·T(n)).
    """
    place = end - 1
    least = efficiency * (1 - 1e-12)
    while place > begin and serial < least * (counts[place] * runtimes[place]):
        place -= 1
    return place


def efficient(reading: Reading, efficiency: float) -> int:
    """Return the place of the largest count that is efficient enough, else the first.

    Parameters
    ----------
    reading : Reading
    efficiency : float
        Least T(1) / (n·T(n)).
    """
    counts, runtimes, serial = reading
    return int(last_efficient(counts, runtimes, 0, counts.size, serial, efficiency))


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
        return int(average(*reading))


class Knee(CurveRule):
    """Processor working set: the least n that maximises S(n)²/n (Ghosal et al. 1991).

    Parameters
    ----------
    advice : Advice, optional
    """

    def pick(self, reading: Reading) -> int:
        """Return the place of the knee."""
        return int(knee(reading.counts, reading.runtimes))


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
