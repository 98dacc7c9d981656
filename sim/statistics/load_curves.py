"""Figures over the offered load, up to saturation, beyond which means say nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sim.errors import StatisticsError
from sim.statistics.intervals import LEVEL, Interval, t_interval

SATURATED_SHARE = 0.5
"""A load is beyond saturation if more than this share of its replications saturate."""


@dataclass(frozen=True)
class Point:
    """A load below saturation.

    Attributes
    ----------
    load : float
        Offered.
    interval : Interval
        Of the figure over replications.
    saturated : float
        Share of replications whose queue kept growing.
    """

    load: float
    interval: Interval
    saturated: float


@dataclass(frozen=True)
class LoadCurve:
    """A figure over load.

    Attributes
    ----------
    points : tuple of Point
        In order of load, all below saturation.
    saturates_at : float or None
        The first load at which most replications saturate; the curve stops
        before it. None if none of the loads does.
    """

    points: tuple[Point, ...]
    saturates_at: float | None

    def says(self) -> str:
        """Return in words where the curve stops.

        Examples
        --------
        >>> LoadCurve((), 0.9).says()
        'saturated from load 0.9 on'
        """
        if self.saturates_at is not None:
            return f"saturated from load {self.saturates_at:g} on"
        last = f" up to load {self.points[-1].load:g}" if self.points else ""
        return f"not saturated{last}"


Samples = Sequence[tuple[float, bool]]
"""A figure and whether the queue kept growing, for each replication."""


def load_curve(
    simulate: Callable[[float], Samples], loads: Sequence[float], level: float = LEVEL
) -> LoadCurve:
    """Carry out simulations by rising load until they saturate.

    Parameters
    ----------
    simulate : callable
        From an offered load to figure and saturation of each replication; it is
        not called for loads beyond the first that saturates.
    loads : sequence of float
        In any order.
    level : float

    Raises
    ------
    StatisticsError
        If a load repeats or has no replication.

    Examples
    --------
    >>> curve = load_curve(lambda load: [(1 / (1 - load), load > 0.8)] * 2, [0.9, 0.5, 0.7])
    >>> [point.load for point in curve.points], curve.says()
    ([0.5, 0.7], 'saturated from load 0.9 on')
    """
    rising = sorted(loads)
    if len(set(rising)) < len(rising):
        raise StatisticsError(f"loads must differ, got {rising}")
    points: list[Point] = []
    for load in rising:
        found = simulate(load)
        if not found:
            raise StatisticsError(f"load {load:g} has no replication")
        share = float(np.mean([saturated for _, saturated in found]))
        if share > SATURATED_SHARE:
            return LoadCurve(tuple(points), load)
        points.append(Point(load, t_interval([value for value, _ in found], level), share))
    return LoadCurve(tuple(points), None)
