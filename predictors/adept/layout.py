"""What each observation is used for: phases, anomalies, declining and special ones."""

from dataclasses import dataclass, replace

import numpy as np

from predictors.adept.anomalies import AnomalousPoint, Metric, find_anomalies
from predictors.adept.patterns import Feasible, declining_start, special_family
from predictors.adept.search import BoolArray
from predictors.adept.weights import anomaly_factor
from predictors.base import FloatArray, IntArray
from predictors.observations import ObservedCurve

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
    shortest : int
        Index of the shortest runtime before a rising end; the last index if
        runtimes do not rise at the end.
    feasible : Feasible
        Counts that the application runs on.
    special : str or None
        Name of the family of counts that was found by itself.
    """

    used: BoolArray
    kept_weight: FloatArray
    starts: tuple[int, ...]
    points: tuple[AnomalousPoint, ...]
    shortest: int
    feasible: Feasible
    special: str | None

    @property
    def rising(self) -> int:
        """Number of observations at the end over which the runtime rises."""
        return len(self.used) - 1 - self.shortest

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
    shortest = declining_start(n, t)
    special = None if feasible.restricts else special_family(n, t)
    if special is not None:
        chosen = Feasible(special)
        used = chosen.holds(n)
        return Layout(used, np.ones(len(n)), (0,), (), shortest, chosen, special)
    if len(n) - 1 - shortest >= 2 and shortest + 1 >= _LEAST:
        used[shortest + 1 :] = False
    findings = find_anomalies(n[used], t[used], metric)
    weight = np.ones(len(n))
    for point in findings.points:
        weight[point.place] = float(anomaly_factor(point.deviation))
    if findings.points and used.sum() == _LEAST + 1:
        weight = np.maximum(weight, _UNCHECKED)
    if findings.points and (weight[used] > 0.0).sum() < _LEAST:
        weight = np.maximum(weight, _LAST_RESORT)
    return Layout(used, weight, findings.starts, findings.points, shortest, feasible, None)


def part_of(curve: ObservedCurve, kept: BoolArray) -> ObservedCurve:
    """Return some of the observations as a curve of their own."""
    if kept.all():
        return curve
    return replace(
        curve, nprocs=curve.nprocs[kept], runtime=curve.runtime[kept], repeats=curve.repeats[kept]
    )
