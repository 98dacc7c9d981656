"""Confidence intervals of a mean by Student's t, and whether neighbours are correlated."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from predictors.base import FloatArray
from sim.errors import StatisticsError

LEVEL = 0.95
ROUNDING = 1e-12
"""Samples that differ by less than this share of their size are one number."""


@dataclass(frozen=True)
class Interval:
    """A mean between its confidence limits.

    Attributes
    ----------
    mean : float
        NaN without samples.
    low, high : float
        NaN with fewer than two samples.
    count : int
        Samples.

    Examples
    --------
    >>> found = Interval(10.0, 9.0, 11.0, 5)
    >>> found.half, found.relative, found.contains(9.5)
    (1.0, 0.1, True)
    """

    mean: float
    low: float
    high: float
    count: int

    @property
    def half(self) -> float:
        """Half of the width."""
        return (self.high - self.low) / 2

    @property
    def relative(self) -> float:
        """Half of the width over the size of the mean; infinite at a mean of 0."""
        if self.half == 0:
            return 0.0
        return self.half / abs(self.mean) if self.mean else np.inf

    def contains(self, value: float) -> bool:
        """Return whether a value lies between the limits."""
        return self.low <= value <= self.high


def samples(values: ArrayLike) -> FloatArray:
    """Return samples as an array.

    Raises
    ------
    StatisticsError
        If they are not one-dimensional or not finite.
    """
    found = np.asarray(values, np.float64)
    if found.ndim != 1 or not np.isfinite(found).all():
        raise StatisticsError(f"samples must be finite and in one dimension, got {found!r}")
    return found


def student_quantile(degrees: FloatArray | float, level: float) -> FloatArray:
    """Return by how many standard errors a two-sided interval reaches out, elementwise."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(degrees, (1 + level) / 2), float)


def t_interval(values: ArrayLike) -> Interval:
    """Return the 95 % interval of a mean by Student's t over independent samples.

    Parameters
    ----------
    values : array_like of float, shape (n,)
        Differences by rounding alone are none.

    Raises
    ------
    StatisticsError
        If a value is not finite.

    Examples
    --------
    >>> found = t_interval([1.0, 2.0, 3.0])
    >>> round(found.mean, 3), round(found.half, 3), found.count
    (2.0, 2.484, 3)
    """
    found = samples(values)
    if len(found) < 2:
        mean = float(found[0]) if len(found) else np.nan
        return Interval(mean, np.nan, np.nan, len(found))
    mean = float(found.mean())
    varies = np.ptp(found) > ROUNDING * np.abs(found).max()
    error = float(found.std(ddof=1) / np.sqrt(len(found))) if varies else 0.0
    half = student_quantile(len(found) - 1, LEVEL).item() * error
    return Interval(mean, mean - half, mean + half, len(found))


def neighbours(values: FloatArray) -> tuple[float, float]:
    """Return the correlation of neighbours and the p value of none (von Neumann's ratio)."""
    from scipy.special import ndtr

    number = len(values)
    apart = values - values.mean()
    total = float((apart**2).sum())
    if total == 0:
        return 0.0, 1.0
    ends = float(apart[0] ** 2 + apart[-1] ** 2) / (2 * total)
    correlation = float((apart[1:] * apart[:-1]).sum()) / total + ends
    score = correlation * np.sqrt((number**2 - 1) / (number - 2))
    return correlation, float(ndtr(-score))
