"""When to checkpoint: the intervals of Young and Daly, and what they cost.

A checkpoint costs ``cost`` seconds, the nodes of a job fail every ``mtbf``
seconds on average, and ``interval`` seconds of computation lie between two
checkpoints.

References
----------
.. [1] J. W. Young, "A first order approximation to the optimum checkpoint
   interval", Communications of the ACM 17(9), 1974.
.. [2] J. T. Daly, "A higher order estimate of the optimum checkpoint interval
   for restart dumps", Future Generation Computer Systems 22(3), 2006.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy
from numpy.typing import ArrayLike

from predictors.base import FloatArray
from predictors.errors import PredictorError


def _positive(name: str, value: ArrayLike, zero: bool = False) -> FloatArray:
    """Return `value` as floats, or refuse what is not positive."""
    array = np.asarray(value, dtype=float)
    bad = ~(array >= 0.0) if zero else ~(array > 0.0)
    if bad.any():
        wanted = "at least 0" if zero else "positive"
        raise PredictorError(f"{name} must be {wanted}, got {float(array[bad].flat[0])}")
    return array


def young_interval(cost: ArrayLike, mtbf: ArrayLike) -> FloatArray:
    """Return τ = sqrt(2δM), the first-order optimum.

    Parameters
    ----------
    cost : array_like of float, seconds
        δ, the time of one checkpoint; at least 0.
    mtbf : array_like of float, seconds
        M, the mean time between failures of the job's nodes together.

    Returns
    -------
    numpy.ndarray of float, seconds of computation between checkpoints

    Raises
    ------
    PredictorError
        If a cost is negative or a time between failures not positive.

    Examples
    --------
    >>> float(young_interval(10.0, 600.0).round(3))
    109.545
    """
    return np.asarray(np.sqrt(2.0 * _positive("cost", cost, zero=True) * _positive("mtbf", mtbf)))


def daly_interval(cost: ArrayLike, mtbf: ArrayLike) -> FloatArray:
    """Return Daly's higher-order interval; M where the cost is 2M or more.

    Parameters and errors are those of `young_interval`.

    Examples
    --------
    >>> float(daly_interval(60.0, 86400.0).round(2))
    3180.06
    """
    delta, mean = np.broadcast_arrays(_positive("cost", cost, zero=True), _positive("mtbf", mtbf))
    ratio = delta / (2.0 * mean)
    series = np.sqrt(2.0 * delta * mean) * (1.0 + np.sqrt(ratio) / 3.0 + ratio / 9.0) - delta
    return np.where(ratio < 1.0, series, mean)


def best_interval(cost: ArrayLike, mtbf: ArrayLike) -> FloatArray:
    """Return the interval of the least expected wall time under exponential failures [2]_, exactly.

    For work W and restarts R that is M·exp(R/M)·(exp((τ + δ)/M) − 1)·W/τ. Setting the
    derivative to zero gives (τ/M − 1)·exp(τ/M − 1) = −exp(−1 − δ/M), so
    τ = M·(1 + W(−exp(−1 − δ/M))) with Lambert's W on its
    principal branch. Parameters and errors are those of `young_interval`.

    Examples
    --------
    >>> float(best_interval(600.0, 3600.0).round(2))
    1699.23
    """
    delta, mean = np.broadcast_arrays(_positive("cost", cost, zero=True), _positive("mtbf", mtbf))
    return np.asarray(mean * (1.0 + np.real(scipy.special.lambertw(-np.exp(-1.0 - delta / mean)))))


class IntervalRule(Protocol):
    """How much computation may lie between two checkpoints."""

    def interval(self, cost: ArrayLike, mtbf: ArrayLike) -> FloatArray:
        """Return seconds between checkpoints; infinite means none."""


@dataclass(frozen=True)
class YoungRule:
    """Young's interval; see `young_interval`."""

    interval = staticmethod(young_interval)


@dataclass(frozen=True)
class DalyRule:
    """Daly's interval; see `daly_interval`."""

    interval = staticmethod(daly_interval)


@dataclass(frozen=True)
class FixedRule:
    """The same interval whatever the cost and the failures.

    Parameters
    ----------
    seconds : float
        Computation between checkpoints, positive.
    """

    seconds: float = 3600.0

    def __post_init__(self) -> None:
        _positive("seconds", self.seconds)

    def interval(self, cost: ArrayLike, mtbf: ArrayLike) -> FloatArray:
        """Return the fixed interval, in the shape of `cost` and `mtbf`."""
        return np.full(np.broadcast_shapes(np.shape(cost), np.shape(mtbf)), self.seconds)


@dataclass(frozen=True)
class NoCheckpoints:
    """Never a checkpoint: a failure costs all the work."""

    def interval(self, cost: ArrayLike, mtbf: ArrayLike) -> FloatArray:
        """Return infinity, in the shape of `cost` and `mtbf`."""
        return np.full(np.broadcast_shapes(np.shape(cost), np.shape(mtbf)), np.inf)
