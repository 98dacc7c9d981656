"""A+: about the average parallelism, more when the load is light, less when it is heavy."""

from dataclasses import dataclass, field

import numpy as np

from predictors.base import FloatArray
from sim.policies.advice import Reading, round_down
from sim.policies.load import Load
from sim.policies.molding.base import Menu, Molder
from sim.policies.molding.menus import OpenQueue
from sim.view import View


@dataclass(frozen=True, kw_only=True)
class LoadInterpolated(Menu):
    """A+ (Sevcik 1989), our reading: interpolate between maximum, A and minimum by load.

    With the load x clipped to [0, 1], M the fastest count, A the average
    parallelism (largest speedup) and m the least count: n = M - 2x(M - A) up to
    x = 1/2, n = A - (2x - 1)(A - m) above; rounded down to a feasible count.

    Parameters
    ----------
    load : Load
        What x is; the requests of the waiting jobs over the machine by default.
    """

    load: Load = field(default_factory=Load)

    def open(self, view: View) -> Molder:
        """Begin a run."""
        return Interpolator(view, self)


def interpolated(x: float, most: FloatArray, average: FloatArray, least: FloatArray) -> FloatArray:
    """Return A+'s counts at a load.

    Parameters
    ----------
    x : float
        The load; clipped to [0, 1].
    most, average, least : numpy.ndarray of float, shape (n,)

    Examples
    --------
    >>> M, A, m = np.array([30.0]), np.array([10.0]), np.array([2.0])
    >>> [float(interpolated(x, M, A, m)[0]) for x in (0, 0.25, 0.5, 0.75, 1)]
    [30.0, 20.0, 10.0, 6.0, 2.0]
    """
    x = min(max(x, 0.0), 1.0)
    if x <= 0.5:
        return most - 2 * x * (most - average)
    return average - (2 * x - 1) * (average - least)


class Interpolator(Molder):
    """Remembers the three counts of every waiting job."""

    def __init__(self, view: View, rule: LoadInterpolated) -> None:
        super().__init__(view, rule.advice, rule.counts)
        self._meter = rule.load.begin(view)
        self._points: FloatArray = np.zeros((len(view.submit_time), 3))

    def menu(self, job: int) -> Reading:
        """Return the job's menu, and remember M, A and m."""
        menu = super().menu(job)
        speedup = menu.serial / float(menu.runtimes.min())
        average = int(menu.counts[round_down(menu.counts, np.floor(speedup + 0.5))])
        fastest = int(menu.counts[np.argmin(menu.runtimes)])
        self._points[job] = fastest, min(average, fastest), menu.counts[0]
        return menu

    def watch(self) -> None:
        """Let the load signal take in what happened."""
        self._meter.watch()

    def mold(self, queue: OpenQueue) -> None:
        """Fix every count at the one for this load."""
        queue.allow_all()
        places = queue.places()
        jobs = queue.job[places]
        most, average, least = self._points[jobs].T
        queue.fix(places, interpolated(self._meter.read(jobs), most, average, least))
