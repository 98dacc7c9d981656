"""Downey's speedup model as plain functions on arrays.

Two parameters describe an application: its average parallelism A >= 1 and the
variance of its parallelism sigma >= 0. "Low variance" is sigma <= 1, "high
variance" sigma >= 1; at sigma = 1 both give the same speedup. All functions
broadcast over their arguments, take real-valued processor counts n >= 1 and
return float64 (or int64 where the name says integer). The plain formulas do not
check their arguments; `check_parameters` does.

References
----------
Downey, "A model for speedup of parallel programs", UCB/CSD-97-933. The times
are those whose ratio T(1)/T(n) is the printed speedup in every piece; the time
column in the ADEPT paper (Deshmeh, Machina & Sodan, Table 1) is damaged in print.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predictors.errors import PredictorError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_ROUNDING = 1e-12
"""Relative slack in comparisons whose real solution may be hit exactly."""


def check_parameters(A: ArrayLike, sigma: ArrayLike) -> None:
    """Refuse parameters outside the model.

    Raises
    ------
    PredictorError
        If an A is not finite or below 1, or a sigma not finite or below 0.
    """
    for name, values, least in (("A", A, 1.0), ("sigma", sigma, 0.0)):
        array = np.asarray(values, float)
        bad = ~(np.isfinite(array) & (array >= least))
        if bad.any():
            first = array[bad].flat[0]
            raise PredictorError(f"{name} must be finite and at least {least:g}, got {first:g}")


def relative_time(n: ArrayLike, A: ArrayLike, sigma: ArrayLike) -> FloatArray:
    """Return T(n)/T(1) = 1/S(n); exactly 1 at n = 1.

    Parameters
    ----------
    n, A, sigma : array_like
        Processors (n >= 1) and the model's parameters; broadcast together.

    Returns
    -------
    numpy.ndarray of float
        Continuous and non-increasing in n, between 1/min(n, A) and 1.
    """
    n, A, sigma = (np.asarray(values, float) for values in (n, A, sigma))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        low = np.where(
            n <= A,
            (1.0 + 0.5 * sigma * (n - 1.0) / A) / n,
            np.where(
                n <= 2.0 * A - 1.0,
                (sigma * (A - 0.5) + n * (1.0 - 0.5 * sigma)) / (A * n),
                1.0 / A,
            ),
        )
        high = np.where(
            n <= A + A * sigma - sigma,
            (1.0 + sigma * (n - 1.0) / (A * (sigma + 1.0))) / n,
            1.0 / A,
        )
    return np.asarray(np.where(sigma <= 1.0, low, high), float)


def speedup(n: ArrayLike, A: ArrayLike, sigma: ArrayLike) -> FloatArray:
    """Return S(n) = T(1)/T(n).

    Examples
    --------
    >>> speedup([1, 4, 7, 100], A=4, sigma=1).round(4).tolist()
    [1.0, 2.9091, 4.0, 4.0]
    """
    return np.asarray(1.0 / relative_time(n, A, sigma), float)


def normalised_time(n: ArrayLike, A: ArrayLike, sigma: ArrayLike) -> FloatArray:
    """Return the normalised runtime T(n) of the model.

    Low variance has T(1) = A and T(inf) = 1; high variance has
    T(1) = A (1 + sigma) and T(inf) = 1 + sigma. At sigma = 1, which belongs to
    both, the low-variance scale is used.

    Notes
    -----
    In every piece T = alpha/n + beta, and n T(n) is convex in n, so T is the
    largest of its pieces at every n.
    """
    n, A, sigma = (np.asarray(values, float) for values in (n, A, sigma))
    half = 0.5 * sigma
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        first = (A - half) / n + half
        second = np.where(n < 2.0 * A - 1.0, sigma * (A - 0.5) / n + 1.0 - half, 1.0)
        low = np.where(n <= A, first, second)
        end = A + A * sigma - sigma
        high = np.where(n < end, sigma + end / n, sigma + 1.0)
    return np.asarray(np.where(sigma <= 1.0, low, high), float)


def efficiency(n: ArrayLike, A: ArrayLike, sigma: ArrayLike) -> FloatArray:
    """Return E(n) = S(n)/n, non-increasing in n."""
    return np.asarray(speedup(n, A, sigma) / np.asarray(n, float), float)


def largest_useful(A: ArrayLike, sigma: ArrayLike) -> FloatArray:
    """Return the real-valued n beyond which the model gains nothing.

    It is 2A - 1 (low variance) or A + A sigma - sigma (high variance). At
    sigma = 0 the literature keeps 2A - 1, although nothing is gained beyond A.

    Examples
    --------
    >>> largest_useful(A=60, sigma=[0.5, 1, 2]).tolist()
    [119.0, 119.0, 178.0]
    """
    A, sigma = np.asarray(A, float), np.asarray(sigma, float)
    return np.asarray(np.where(sigma <= 1.0, 2.0 * A - 1.0, A + A * sigma - sigma), float)


def knee(A: ArrayLike, sigma: ArrayLike) -> FloatArray:
    """Return the processor working set: the smallest real n >= 1 that maximises S(n)^2/n.

    Notes
    -----
    The function rises to the knee and falls after it. The high-variance
    solution A - 1 + A/sigma lies below 1 where A is close to 1 and sigma
    large; the knee is then at 1.
    """
    A, sigma = np.asarray(A, float), np.asarray(sigma, float)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        late = np.maximum(sigma * (A - 0.5) / (1.0 - 0.5 * sigma), A)
        low = np.where(sigma <= 2.0 * A / (3.0 * A - 1.0), A, late)
        high = A - 1.0 + A / sigma
    return np.asarray(np.maximum(np.where(sigma <= 1.0, low, high), 1.0), float)


def largest_at_efficiency(e: ArrayLike, A: ArrayLike, sigma: ArrayLike) -> FloatArray:
    """Return the largest real n with E(n) >= e.

    Raises
    ------
    PredictorError
        If an e is not in (0, 1].

    Examples
    --------
    >>> largest_at_efficiency([0.9, 0.7, 0.5], A=60, sigma=1).round(2).tolist()
    [14.33, 52.43, 120.0]
    """
    e, A, sigma = np.asarray(e, float), np.asarray(A, float), np.asarray(sigma, float)
    bad = ~((e > 0.0) & (e <= 1.0))
    if bad.any():
        raise PredictorError(f"efficiency must be in (0, 1], got {e[bad].flat[0]:g}")
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        first = np.where(sigma > 0.0, 1.0 + 2.0 * A * (1.0 / e - 1.0) / sigma, np.inf)
        second = (A / e - sigma * (A - 0.5)) / (1.0 - 0.5 * sigma)
        low = np.where(first <= A, first, np.where(second <= 2.0 * A - 1.0, second, A / e))
        rising = (A * (sigma + 1.0) / e - A) / sigma - A + 1.0
        high = np.where(rising <= A + A * sigma - sigma, rising, A / e)
    return np.asarray(np.where(sigma <= 1.0, low, high), float)


def _candidates(
    n: FloatArray, least: ArrayLike, most: ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    """Return floor and ceil of real counts, clipped to [least, most]."""
    least = np.asarray(least, float)
    most = np.asarray(np.inf if most is None else most, float)
    if (least < 1).any() or (most < least).any():
        raise PredictorError(
            f"counts must run upwards from at least 1, got {least.min():g} to {most.min():g}"
        )
    return np.clip(np.floor(n), least, most), np.clip(np.ceil(n), least, most)


def integer_largest_useful(
    A: ArrayLike, sigma: ArrayLike, least: ArrayLike = 1, most: ArrayLike | None = None
) -> IntArray:
    """Return the smallest integer n in [least, most] with the shortest time there.

    It is the real-valued limit (at sigma = 0, where the curve is flat from A
    on, A) rounded up where the last step still gains.
    """
    end = np.where(np.asarray(sigma) == 0.0, A, largest_useful(A, sigma))
    low, high = _candidates(end, least, most)
    gains = speedup(high, A, sigma) > speedup(low, A, sigma) * (1.0 + _ROUNDING)
    return np.asarray(np.where(gains, high, low), np.int64)
