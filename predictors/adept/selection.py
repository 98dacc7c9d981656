"""Which of many instances that fit equally well predicts, and how wide they spread."""

from dataclasses import dataclass

import numpy as np

from predictors.adept.search import BoolArray, Instances
from predictors.base import FloatArray, IntArray
from predictors.observations import ObservedCurve

RUNNER_UP = 1.1
"""WSSRE within this factor of the best is as good (ADEPT paper, Table 3)."""
EXPECTED_ERROR = 0.025
"""Relative error of a runtime about the best instance that is expected beforehand."""
EXPECTED_FREEDOM = 3.0
"""How many observations that expectation weighs."""
NOISELESS = 1e-5
"""Residuals below this relative size are no noise but rounding and an unfinished search."""
EXACT = 1e-6
"""What noiseless instances may differ from the best by."""
WELL_MET = 0.05
"""Root mean square residual within which the families weigh the same; see `select`."""
LARGEST = 1.0
"""Bound on the estimate; beyond it runtimes say nothing."""
_PARAMETERS = 3


@dataclass(frozen=True)
class Selection:
    """The instances that predict, one a target.

    Attributes
    ----------
    chosen : numpy.ndarray of int, shape (t,)
        Place of the predicting candidate.
    members : numpy.ndarray of bool, shape (t, k)
        The indistinguishable candidates.
    predicted, low, high : numpy.ndarray of float, shape (t,), seconds
        The chosen one's runtime at the target, and the ends of what the
        indistinguishable ones, with the first rejected one on either side, say.
    """

    chosen: IntArray
    members: BoolArray
    predicted: FloatArray
    low: FloatArray
    high: FloatArray

    def rows(self, part: slice) -> "Selection":
        """Return some of the targets."""
        return Selection(
            self.chosen[part],
            self.members[part],
            self.predicted[part],
            self.low[part],
            self.high[part],
        )


def noise_floor(curve: ObservedCurve, residual: float, used: int) -> float:
    """Estimate the relative error below which instances cannot be told apart.

    Parameters
    ----------
    curve : ObservedCurve
        For the scatter of its repeats.
    residual : float
        Root mean square of the relative residuals of the best fit.
    used : int
        Distinct counts behind that fit.

    Returns
    -------
    float
        The pooled standard deviation of expectation, residuals and repeats; 0
        where more counts than parameters are met to rounding and repeats agree.
    """
    mean_runs = float(np.mean(1.0 / curve.repeats))
    own_freedom = max(used - _PARAMETERS, 0)
    if own_freedom and residual < NOISELESS and curve.scatter < NOISELESS:
        return 0.0
    squares = EXPECTED_FREEDOM * EXPECTED_ERROR**2 + used * residual**2
    squares += curve.scatter_freedom * curve.scatter**2 * mean_runs
    freedom = EXPECTED_FREEDOM + own_freedom + curve.scatter_freedom
    return min(float(np.sqrt(squares / freedom)), LARGEST)


def is_well_met(floor: float, residual: float, used: int) -> bool:
    """Say whether more observations than parameters are met well, though not exactly."""
    return floor > 0.0 and used > _PARAMETERS and residual < WELL_MET


def select(
    instances: Instances,
    targets: FloatArray,
    floor: float,
    balanced: bool = False,
    plain: bool = False,
) -> Selection:
    """Choose the candidate whose prediction is the lower median of the indistinguishable ones.

    Parameters
    ----------
    instances : Instances
        A row a target.
    targets : numpy.ndarray of float, shape (t,)
    floor : float
        Relative noise; 0 still allows for rounding.
    balanced : bool
        Let the low-variance and the high-variance candidates together weigh the
        same. Where Downey's curve holds, this keeps the many high-variance
        candidates that have not bent yet from outvoting the others; where it
        does not, their caution is worth having.
    plain : bool
        Choose the best fit instead, as the paper does.
    """
    runtime = instances.runtime(targets)
    best = instances.wssre.min(axis=1, keepdims=True)
    members = instances.wssre <= RUNNER_UP * best + max(floor, EXACT) ** 2
    rows = np.arange(len(targets))
    chosen = _lower_median(runtime, members, instances.high if balanced else None)
    if plain:
        chosen = instances.wssre.argmin(axis=1)
    beside = members.copy()
    before, after = instances.neighbours.T
    beside |= members[:, before] | members[:, after]
    beside &= np.isfinite(instances.wssre)
    return Selection(
        chosen,
        members,
        runtime[rows, chosen],
        np.where(beside, runtime, np.inf).min(axis=1),
        np.where(beside, runtime, 0.0).max(axis=1),
    )


def _lower_median(runtime: FloatArray, members: BoolArray, high: BoolArray | None) -> IntArray:
    """Return the place in each row of the members' lower median, weighted by family or not."""
    ordered = np.argsort(np.where(members, runtime, np.inf), axis=1, kind="stable")
    if high is None:
        middle = (members.sum(axis=1) - 1) // 2
    else:
        weight = members.astype(float)
        for family in (high, ~high):
            inside = weight[:, family]
            weight[:, family] = inside / np.maximum(inside.sum(axis=1, keepdims=True), 1.0)
        share = np.cumsum(np.take_along_axis(weight, ordered, axis=1), axis=1)
        middle = (share < 0.5 * share[:, -1:] * (1.0 - 1e-9)).sum(axis=1)
    return np.asarray(ordered[np.arange(len(ordered)), middle], np.int64)
