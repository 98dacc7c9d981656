"""What each observation is used for: phases, anomalies, declining and special ones."""

from dataclasses import dataclass

import numpy as np

from predictors.adept.anomalies import AnomalousPoint, Metric, find_anomalies
from predictors.adept.patterns import Feasible, special_family
from predictors.adept.search import BoolArray
from predictors.adept.selection import anomaly_factor
from predictors.base import FloatArray, IntArray
from predictors.curves.measured import Evidence, decline_start
from predictors.observations import RISE, ObservedCurve

_LEAST = 3
"""Observations that a fit must be left with."""
_LAST_RESORT = 0.1
"""Weight that an anomalous point keeps where too few others are left."""
_UNCHECKED = 0.5
"""The same where the three others fit some curve whatever they are, so that nothing checks
the verdict: on measured curves dropping the point then does more harm than good."""


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
    n, t = curve.nprocs, curve.runtime
    used = np.ones(len(n), bool)
    start = decline_start(curve)
    rises = start is None and bool(t[-1] > (1.0 + RISE) * t.min())
    special = None if feasible.restricts else special_family(n, t)
    if special is not None:
        chosen = Feasible(special)
        used = chosen.holds(n)
        if start is not None and used[: start + 1].any():
            used[start + 1 :] = False
        return Layout(used, np.ones(len(n)), (0,), (), start, rises, chosen, special)
    if start is not None:
        used[start + 1 :] = False
    findings = find_anomalies(n[used], t[used], metric)
    weight = np.ones(len(n))
    for point in findings.points:
        weight[point.place] = float(anomaly_factor(point.deviation))
    if findings.points and used.sum() == _LEAST + 1:
        weight = np.maximum(weight, _UNCHECKED)
    if findings.points and (weight[used] > 0.0).sum() < _LEAST:
        weight = np.maximum(weight, _LAST_RESORT)
    return Layout(used, weight, findings.starts, findings.points, start, rises, feasible, None)
