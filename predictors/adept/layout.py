"""What each observation is used for: phases, anomalies, declining and special ones."""

from dataclasses import dataclass

import numpy as np

from predictors.adept.anomalies import AnomalousPoint, Metric, points_of
from predictors.adept.curve_kernels import Reading, read_curve
from predictors.adept.patterns import Feasible, special_family
from predictors.base import BoolArray, FloatArray, IntArray
from predictors.curves.measured import Evidence, decline_start, scatter_reach
from predictors.observations import RISE, ObservedCurve


@dataclass(frozen=True)
class Layout:
    """How a set of observations is read.

    Attributes
    ----------
    used : numpy.ndarray of bool, shape (m,)
        Observations that take part in a fit.
    kept_weight : numpy.ndarray of float, shape (m,)
        Share of its weight that each keeps.
    starts : tuple of int
        Index of the first observation of each phase.
    points : tuple of AnomalousPoint
    start : int or None
        Index of the fastest count if the counts beyond it decline.
    rises : bool
        Whether runtimes end higher than their shortest without being a decline.
    feasible : Feasible
        Counts that the application runs on.
    special : str or None
        Name of the family of counts that was found by itself.
    """

    used: BoolArray
    kept_weight: FloatArray
    starts: tuple[int, ...]
    points: tuple[AnomalousPoint, ...]
    start: int | None
    rises: bool
    feasible: Feasible
    special: str | None

    def evidence(self, curve: ObservedCurve) -> Evidence:
        """Return what answers keep to: all but anomalous points.

        Counts outside a family that was found say nothing of the counts beside them.
        """
        exempt = [point.place for point in self.points]
        if self.special is None:
            return Evidence(curve, exempt)
        return Evidence(curve, exempt, np.flatnonzero(~self.feasible.holds(curve.nprocs)).tolist())

    def phase_of(self, nprocs: FloatArray, targets: FloatArray) -> IntArray:
        """Return the phase of the observation nearest to each target, ties to the larger count."""
        places = np.flatnonzero(self.used)
        distance = np.abs(targets[:, None] - nprocs[places[::-1]])
        nearest = places[::-1][distance.argmin(axis=1)]
        after = np.searchsorted(np.asarray(self.starts), nearest, side="right")
        return np.asarray(after - 1, np.int64)


def read_layout(curve: ObservedCurve, feasible: Feasible, metric: Metric) -> Layout:
    """Look for special counts, a declining end, anomalous points and steps, in this order."""
    special = None
    if not feasible.restricts:
        special = special_family(curve.nprocs, curve.runtime)
    if special is not None:
        return _special_layout(curve, special)
    return layout_of(curve, reading_of(curve, metric), feasible)


def reading_of(curve: ObservedCurve, metric: Metric) -> Reading:
    """Read observations of an application that is not optimised for certain counts."""
    found: Reading = read_curve(
        curve.nprocs, curve.runtime, scatter_reach(curve), metric == "paper"
    )
    return found


def layout_of(curve: ObservedCurve, reading: Reading, feasible: Feasible) -> Layout:
    """Return what was read, in words."""
    start = None if reading.start < 0 else reading.start
    return Layout(
        reading.used,
        reading.kept_weight,
        tuple(reading.starts.tolist()),
        points_of(curve.nprocs, reading.points, reading.deviations),
        start,
        _rises(curve, start),
        feasible,
        None,
    )


def _rises(curve: ObservedCurve, start: int | None) -> bool:
    return start is None and bool(curve.runtime[-1] > (1.0 + RISE) * curve.runtime.min())


def _special_layout(curve: ObservedCurve, special: str) -> Layout:
    """Leave out the counts that the application is not optimised for, and a declining end."""
    start, chosen = decline_start(curve), Feasible(special)
    used = chosen.holds(curve.nprocs)
    if start is not None and used[: start + 1].any():
        used[start + 1 :] = False
    weight = np.ones(len(used))
    return Layout(used, weight, (0,), (), start, _rises(curve, start), chosen, special)
