"""Weights of observations: by distance from the target, and reduced for anomalies."""

import numpy as np
from numpy.typing import ArrayLike

from predictors.base import FloatArray

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


def anomaly_factor(
    deviation: ArrayLike, phi: float = LARGEST_DEVIATION, theta: float = TOLERANCE
) -> FloatArray:
    """Return the share of its weight that an anomalous point keeps.

    It is max(0, (theta - min(phi, D)) / phi), as printed (section VIII.B): even
    D = 0 halves the weight, so it is for anomalous points alone.

    Examples
    --------
    >>> anomaly_factor([0, 2, 5, 12]).tolist()
    [0.5, 0.3, 0.0, 0.0]
    """
    kept = (theta - np.minimum(phi, np.asarray(deviation, float))) / phi
    return np.asarray(np.maximum(0.0, kept), float)
