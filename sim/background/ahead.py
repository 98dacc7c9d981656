"""The load that will be, in order: what the least of some places will be, whichever they are."""

from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray
from sim.background.background import BackgroundLoad

MOMENTS = 64
"""Instants at which the load of a time to come is read."""
LONGEST = 2.0**20
"""Seconds beyond which no load is read, twelve days: on average the rest is the same."""


class Ordered(NamedTuple):
    """Averages over time of values in order.

    Attributes
    ----------
    cpu : numpy.ndarray, shape (processors,)
        Available CPU of the slowest processor, of the next, and so on.
    lost : numpy.ndarray, shape (links,)
        What the most loaded link lacks of its bandwidth, the next, and so on; all
        others lack nothing.
    """

    cpu: FloatArray
    lost: FloatArray


class LoadAhead:
    """True load from now on, in order, averaged over any time to come.

    Times are doubled from one second on and each is read at 64 instants, once an
    instant of the simulation: all counts and jobs asked about in a pass share them.

    Parameters
    ----------
    load : BackgroundLoad

    Examples
    --------
    >>> from sim.background.models import ConstantLoad
    >>> from workloads.streams import Streams
    >>> ahead = LoadAhead(BackgroundLoad(2, Streams(1), ConstantLoad(0.5), ConstantLoad(0.25)))
    >>> found = ahead.average(0.0, 100.0)
    >>> found.cpu.tolist(), found.lost.tolist()
    ([0.5, 0.5], [0.75, 0.75])
    """

    def __init__(self, load: BackgroundLoad) -> None:
        self._load = load
        self._now = -np.inf
        self._sums: dict[int, Ordered] = {}

    def average(self, now: float, horizon: float) -> Ordered:
        """Return the averages over `horizon` seconds from now on."""
        if now != self._now:
            self._now, self._sums = now, {}
        horizon = min(max(horizon, 1e-3), LONGEST)
        doublings = max(int(np.ceil(np.log2(horizon))), 0)
        if doublings not in self._sums:
            self._sums[doublings] = self._read(now, 2.0**doublings)
        sums = self._sums[doublings]
        steps = horizon * MOMENTS / 2.0**doublings
        return Ordered(*(_upto(each, steps) / steps for each in sums))

    def _read(self, now: float, span: float) -> Ordered:
        """Return running sums over the instants in the middle of equal parts of a time."""
        times = now + span * (np.arange(MOMENTS) + 0.5) / MOMENTS
        cpu = np.sort(self._load.cpu_at(times), axis=1)
        rows = self._load.loaded_links(np.arange(self._load.processors), times[0], times[-1])
        loaded = (rows[:, 0] <= times[:, None]) & (times[:, None] < rows[:, 1])
        lost = np.where(loaded, 1.0 - rows[:, 4], 0.0)
        most = int(loaded.sum(axis=1).max(initial=0))
        lost = -np.sort(-lost, axis=1)[:, :most]
        return Ordered(np.cumsum(cpu, axis=0), np.cumsum(lost, axis=0))


def _upto(sums: FloatArray, steps: float) -> FloatArray:
    """Return a running sum after so many steps, the last of them a part of one."""
    whole = int(steps)
    before = sums[whole - 1] if whole else np.zeros(sums.shape[1])
    if whole == len(sums):
        return before
    return np.asarray(before + (sums[whole] - before) * (steps - whole))
