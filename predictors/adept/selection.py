"""What observations weigh, and which of many instances that fit equally well predicts."""

from typing import NamedTuple

import numpy as np

from predictors.adept.search import Instances
from predictors.base import BoolArray, FloatArray, IntArray
from predictors.compiling import compiled
from predictors.observations import ObservedCurve

RUNNER_UP = 1.1
"""WSSRE within this factor of the best is as good (ADEPT paper, Table 3)."""
EXPECTED_ERROR = 0.025
"""Relative error of a runtime about the best instance that is expected beforehand."""
EXPECTED_RUNS = 3.0
"""How many observations that expectation weighs."""
NOISELESS = 1e-5
"""Residuals below this relative size are no noise but rounding and an unfinished search."""
EXACT = 1e-6
"""What noiseless instances may differ from the best by."""
WELL_MET = 0.05
"""Root mean square residual within which the families weigh the same; see `select`."""
LARGEST = 1.0
"""Bound on the estimate; beyond it runtimes say nothing."""
PARAMETERS = 3
LEAST = 3
"""Observations that a fit must be left with."""
LAST_RESORT = 0.1
"""Weight that an anomalous point keeps where too few others are left."""
UNCHECKED = 0.5
"""The same where the three others fit some curve whatever they are, so that nothing checks
the verdict: on measured curves dropping the point then does more harm than good."""
LARGEST_DEVIATION = 10.0
"""phi of the paper: the deviation from which nothing more is lost."""
TOLERANCE = 5.0
"""theta of the paper: how much anomalous points can affect the fit."""


def distance_weights(nprocs: FloatArray, targets: FloatArray, q: float) -> FloatArray:
    """Return W_i = q max_j |target - n_j| - |target - n_i|, a row a target.

    Equal where every distance is zero (ADEPT paper, section V.B).

    Examples
    --------
    >>> distance_weights(np.array([4.0, 16.0, 64.0]), np.array([128.0]), q=2.0).tolist()
    [[124.0, 136.0, 184.0]]
    """
    distance = np.abs(targets[:, None] - nprocs)
    weights = q * distance.max(axis=1, keepdims=True) - distance
    weights[weights.max(axis=1) <= 0.0] = 1.0
    return np.asarray(weights, float)


@compiled
def anomaly_factor(deviation: float) -> float:
    """Return the share of its weight that an anomalous point keeps.

    It is max(0, (theta - min(phi, D)) / phi), as printed (section VIII.B): even
    D = 0 halves the weight, so it is for anomalous points alone.

    Examples
    --------
    >>> [anomaly_factor(deviation) for deviation in (0.0, 2.0, 5.0, 12.0)]
    [0.5, 0.3, 0.0, 0.0]
    """
    lost = TOLERANCE - min(LARGEST_DEVIATION, deviation)
    return max(0.0, lost / LARGEST_DEVIATION)


class Selection(NamedTuple):
    """The instances that predict, one a target.

    Attributes
    ----------
    chosen : numpy.ndarray of int, shape (t,)
        Place of the predicting candidate.
    members : numpy.ndarray of bool, shape (t or 1, k)
        The indistinguishable candidates; a single row where all targets share them.
    answers : numpy.ndarray of float, shape (t, 9)
        The chosen one's runtime at the target, in units of time; the least and the most that
        the indistinguishable ones, and the first rejected beside them, say; the least and the
        largest A and the least breakpoint of the indistinguishable ones; the chosen one's
        runtime on one processor, A and sigma.
    """

    chosen: IntArray
    members: BoolArray
    answers: FloatArray

    def rows(self, part: slice) -> "Selection":
        """Return some of the targets."""
        return Selection(self.chosen[part], self.members[part], self.answers[part])


@compiled
def total(values: FloatArray) -> float:
    """Return a sum as NumPy makes it, eight at a time: where curves tie, the last digit decides."""
    eights, found = values.size // 8 * 8, 0.0
    if eights > 0:
        sums = values[:8].copy()
        for i in range(8, eights):
            sums[i % 8] += values[i]
        found = (sums[0] + sums[1]) + (sums[2] + sums[3])
        found += (sums[4] + sums[5]) + (sums[6] + sums[7])
    for i in range(eights, values.size):
        found += values[i]
    return found


@compiled
def noise_of(repeats: IntArray, scatter: float, degrees: int, residual: float, used: int) -> float:
    """Estimate the relative error below which instances cannot be told apart."""
    mean_runs = total(1.0 / repeats) / repeats.size
    own = max(used - PARAMETERS, 0)
    if own and residual < NOISELESS and scatter < NOISELESS:
        return 0.0
    squares = EXPECTED_RUNS * EXPECTED_ERROR**2 + used * residual**2
    squares += degrees * scatter**2 * mean_runs
    return float(min(np.sqrt(squares / (EXPECTED_RUNS + own + degrees)), LARGEST))


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
    scatter, degrees = curve.scatter, curve.scatter_degrees_of_freedom
    return float(noise_of(curve.repeats, scatter, degrees, residual, used))


def is_well_met(floor: float, residual: float, used: int) -> bool:
    """Say whether more observations than parameters are met well, though not exactly."""
    return floor > 0.0 and used > PARAMETERS and residual < WELL_MET


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
        does not, their slower predictions are the better ones.
    plain : bool
        Choose the best fit instead, as the paper does.
    """
    from predictors.adept.kernels import choose

    bounds = RUNNER_UP, max(floor, EXACT) ** 2
    chosen, members, answers = choose(
        instances.values,
        instances.high,
        instances.neighbours,
        targets,
        bounds,
        balanced,
        plain,
    )
    return Selection(chosen, members, answers)
