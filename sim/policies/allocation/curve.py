"""Allocations that read a count off the predicted curve, whatever the load.

Where the predictor has nothing for a job, the request stands.
"""

from abc import abstractmethod

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.errors import POSITIVE_SHARE
from sim.policies.advice import Advice, Counts, JobCurve, check_counts, last_up_to, tried
from sim.policies.base import Outlook
from sim.policies.ties import TIE, first_least, is_less
from sim.state.view import View


@compiled
def knee(counts: IntArray, runtimes: FloatArray) -> int:
    """Return the place of the least n that maximises S(n)²/n, where n·T² is least."""
    return first_least(counts * (runtimes * runtimes))


@compiled
def average(counts: IntArray, runtimes: FloatArray, serial_time: float) -> int:
    """Return the place of the largest count up to A, the largest speedup, rounded.

    Of the first count where all are above A.
    """
    wanted = np.floor(serial_time / runtimes[first_least(runtimes)] * (1 + TIE) + 0.5)
    return last_up_to(counts, 0, counts.size, wanted)


@compiled
def last_efficient(
    counts: IntArray, runtimes: FloatArray, begin: int, end: int, serial_time: float, least: float
) -> int:
    """Return the last place from `begin` to before `end` that is efficient enough, else `begin`.

    Parameters
    ----------
    counts, runtimes : numpy.ndarray
    serial_time : float
        T(1), seconds.
    least : float
        Efficiency T(1) / (n·T(n)) that is enough.
    """
    place = end - 1
    while place > begin and is_less(serial_time, least * (counts[place] * runtimes[place])):
        place -= 1
    return place


def efficient(reading: JobCurve, efficiency: float) -> int:
    """Return the place of the largest count that is efficient enough, else the first.

    Parameters
    ----------
    reading : JobCurve
    efficiency : float
        Least T(1) / (n·T(n)).
    """
    counts, runtimes, serial_time = reading
    return int(last_efficient(counts, runtimes, 0, counts.size, serial_time, efficiency))


class CurveRule:
    """Reads a count off the predicted runtimes over the feasible counts.

    Parameters
    ----------
    advice : Advice, optional
        How predicted curves are read; as `Advice()` says by default.
    counts : {"all", "powers_of_two"}
        Which counts there are to choose from: all, or powers of two and the request.
    """

    def __init__(self, advice: Advice | None = None, counts: Counts = "all") -> None:
        self.advice = advice or Advice()
        self.counts = check_counts(counts)

    def choose(self, job: int, view: View, outlook: Outlook) -> int:
        """Return the rule's count; the request where there is no curve or no choice."""
        counts, reading = self.advice.offer(job, view, tried(job, view, self.counts))
        if reading is None:
            return int(counts[0])
        place = self.pick(reading)
        count = int(counts[place])
        view._beliefs.keep(job, count, float(reading.runtimes[place]))
        return count

    @abstractmethod
    def pick(self, reading: JobCurve) -> int:
        """Return the place of the chosen count."""


class Maximum(CurveRule):
    """Every job gets as many processors as shorten it: the fastest count on its curve.

    Parameters
    ----------
    advice, counts
        As in `CurveRule`.
    """

    def pick(self, reading: JobCurve) -> int:
        """Return the place of the fastest count, the least of equals."""
        return int(first_least(reading.runtimes))


class AverageParallelism(CurveRule):
    """A: the average parallelism (Eager, Zahorjan & Lazowska 1989).

    It is the largest speedup that the curve reaches, rounded; the job gets the
    largest feasible count up to it.

    Parameters
    ----------
    advice, counts
        As in `CurveRule`.

    Examples
    --------
    >>> import sim
    >>> policy = sim.Policy(sim.FirstComeFirstServed(), sim.Easy(), AverageParallelism())
    >>> result = sim.run("workload.jobs=20", policy=policy, predictor="oracle")
    >>> set(result.jobs["status"])
    {'completed'}
    """

    def pick(self, reading: JobCurve) -> int:
        """Return the place of the largest count up to A."""
        return int(average(*reading))


class EfficiencyAtLeast(CurveRule):
    """The largest n whose predicted efficiency T(1) / (n·T(n)) is at least a bound.

    Parameters
    ----------
    efficiency : float
        In (0, 1].
    advice, counts
        As in `CurveRule`.
    """

    def __init__(
        self, efficiency: float = 0.5, advice: Advice | None = None, counts: Counts = "all"
    ) -> None:
        super().__init__(advice, counts)
        POSITIVE_SHARE.check(efficiency=efficiency)
        self.efficiency = efficiency

    def pick(self, reading: JobCurve) -> int:
        """Return the place of the largest count that is efficient enough, else the first."""
        return efficient(reading, self.efficiency)
