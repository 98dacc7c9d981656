"""Least squares on relative errors with non-negative coefficients, and its ranges."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls
from scipy.special import stdtrit

from predictors.base import FloatArray

PRIOR_ERROR = 0.10
"""Relative error that a model of runtimes is taken to have before any evidence."""
PRIOR_FREEDOM = 2.0
"""How many observations that belief weighs."""


@dataclass(frozen=True)
class RelativeFit:
    """Coefficients with what is needed for a range.

    Attributes
    ----------
    coefficients : numpy.ndarray of float, shape (p,)
    covariance : numpy.ndarray of float, shape (p, p)
        Of the coefficients, for relative errors of standard deviation 1.
    error : float
        Relative standard deviation of an observation about the curve.
    freedom : float
        Degrees of freedom behind `error`.
    residuals : numpy.ndarray of float, shape (m,)
        Relative residuals, predicted over observed minus 1.
    """

    coefficients: FloatArray
    covariance: FloatArray
    error: float
    freedom: float
    residuals: FloatArray


def fit_nonnegative(design: FloatArray, runtime: FloatArray) -> RelativeFit:
    """Minimise the sum of squared relative errors over coefficients >= 0.

    Parameters
    ----------
    design : numpy.ndarray of float, shape (m, p)
    runtime : numpy.ndarray of float, shape (m,), seconds
    """
    rows = design / runtime[:, None]
    lengths = np.sqrt((rows**2).sum(axis=0))
    lengths[lengths == 0.0] = 1.0
    scaled, _ = nnls(rows / lengths, np.ones(len(runtime)))
    coefficients = scaled / lengths
    residuals = rows @ coefficients - 1.0
    active = coefficients > 0.0
    covariance = np.zeros((len(coefficients),) * 2)
    used = rows[:, active] / lengths[active]
    inverse = np.linalg.pinv(used.T @ used, hermitian=True)
    covariance[np.ix_(active, active)] = inverse / np.outer(lengths[active], lengths[active])
    error, freedom = pooled_error(residuals, int(active.sum()))
    return RelativeFit(coefficients, covariance, error, freedom, residuals)


def pooled_error(residuals: FloatArray, parameters: int) -> tuple[float, float]:
    """Return the relative error and its degrees of freedom, residuals and prior belief pooled."""
    squares = float(np.sum(residuals**2))
    own = max(len(residuals) - parameters, 0)
    freedom = PRIOR_FREEDOM + own
    return float(np.sqrt((PRIOR_FREEDOM * PRIOR_ERROR**2 + squares) / freedom)), freedom


def fit_range(
    fit: RelativeFit, design: FloatArray, predicted: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return the log-symmetric prediction range of a linear fit.

    Parameters
    ----------
    design : numpy.ndarray of float, shape (k, p)
    predicted : numpy.ndarray of float, shape (k,), seconds
    level : float
        Share of new runs that the range should hold.
    """
    scaled = design / predicted[:, None]
    leverage = np.einsum("kp,pq,kq->k", scaled, fit.covariance, scaled)
    return spread_range(predicted, fit.error * np.sqrt(1.0 + leverage), fit.freedom, level)


def spread_range(
    predicted: FloatArray, error: FloatArray | float, freedom: float, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return ``predicted`` over and times exp(quantile x error), Student's quantile."""
    half = np.minimum(stdtrit(freedom, 0.5 + 0.5 * level) * np.asarray(error, float), 50.0)
    factor = np.exp(half)
    return np.asarray(predicted / factor, float), np.asarray(predicted * factor, float)
