"""Comparisons on common random numbers: paired differences, ratios, and the share of a gain."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from predictors.base import FloatArray
from sim.errors import StatisticsError
from sim.statistics.intervals import (
    LEVEL,
    Interval,
    bootstrap_interval,
    check_level,
    samples,
    standard_error,
    student_quantile,
    t_interval,
)


@dataclass(frozen=True)
class Comparison:
    """How a figure differs from a reference on the same jobs.

    Attributes
    ----------
    difference : Interval
        Of the mean difference, own less reference, by Student's t.
    bootstrap : Interval
        Of the same by the studentized bootstrap.
    change : Interval
        Of the relative change: geometric mean of own over reference, less 1. NaN
        where a value is not positive.
    p_value : float
        Two-sided, of no difference, paired t test; NaN with fewer than two pairs.
    identical : str
        Empty, or what is the same to the last bit and so leaves nothing to infer:
        ``runs`` (own and reference) or ``replications`` (of both). Then there
        is no interval and no p value.
    """

    difference: Interval
    bootstrap: Interval
    change: Interval
    p_value: float
    identical: str = ""


def _identical(own: FloatArray, reference: FloatArray) -> str:
    if len(own) < 2:
        return ""
    if (own == reference).all():
        return "runs"
    return "replications" if not np.ptp(own) and not np.ptp(reference) else ""


def _pairs(own: ArrayLike, reference: ArrayLike) -> tuple[FloatArray, FloatArray]:
    first, second = samples(own), samples(reference)
    if len(first) != len(second):
        raise StatisticsError(f"pairs need equal numbers, got {len(first)} and {len(second)}")
    return first, second


def compare_paired(
    own: ArrayLike, reference: ArrayLike, level: float = LEVEL, *, seed: int = 0
) -> Comparison:
    """Compare a figure with that of a reference, replication by replication.

    Parameters
    ----------
    own, reference : array_like of float, shape (n,)
        Entry k of both is replication k: the same jobs, noise and failures.
    level : float
    seed : int
        Of the bootstrap.

    Raises
    ------
    StatisticsError
        If the numbers of replications differ or a value is not finite.

    Examples
    --------
    >>> found = compare_paired([8.0, 9.0, 10.0], [10.0, 11.0, 12.5])
    >>> round(found.difference.mean, 3), found.p_value < 0.01
    (-2.167, True)
    """
    first, second = _pairs(own, reference)
    apart = first - second
    same = _identical(first, second)
    if same:
        change = relative_change(first[:1], second[:1], level)
        alone = t_interval(apart[:1], level)
        return Comparison(alone, alone, change, float("nan"), same)
    return Comparison(
        t_interval(apart, level),
        bootstrap_interval(apart, level, seed=seed),
        relative_change(first, second, level),
        _p_value(apart),
    )


def relative_change(own: ArrayLike, reference: ArrayLike, level: float = LEVEL) -> Interval:
    """Return the interval of the geometric mean of ratios, less 1.

    Examples
    --------
    >>> round(relative_change([50.0, 60.0], [100.0, 120.0]).mean, 3)
    -0.5
    """
    first, second = _pairs(own, reference)
    if (first <= 0).any() or (second <= 0).any():
        return Interval(np.nan, np.nan, np.nan, len(first), level)
    return t_interval(np.log(first / second), level).transformed(lambda v: float(np.expm1(v)))


def _p_value(apart: FloatArray) -> float:
    from scipy.special import stdtr

    if len(apart) < 2:
        return float("nan")
    error = standard_error(apart)
    if error == 0:
        return 1.0 if abs(apart[0]) == 0 else 0.0
    return float(2 * stdtr(len(apart) - 1, -abs(float(apart.mean())) / error))


def ratio_of_means(numerator: ArrayLike, denominator: ArrayLike, level: float = LEVEL) -> Interval:
    """Return the ratio of two paired means with Fieller's interval.

    Parameters
    ----------
    numerator, denominator : array_like of float, shape (n,)

    Returns
    -------
    Interval
        Its limits are infinite where the denominator does not differ from 0 at
        this level: then no finite interval has the level.

    References
    ----------
    Fieller, Some problems in interval estimation, J. R. Stat. Soc. B 16 (1954).

    Examples
    --------
    >>> found = ratio_of_means([1.0, 1.1, 0.9], [2.0, 2.1, 1.9])
    >>> found.mean, found.contains(0.5), found.contains(0.6)
    (0.5, True, False)
    """
    check_level(level)
    above, below = _pairs(numerator, denominator)
    number = len(above)
    if number > 1 and not np.ptp(above) and not np.ptp(below):
        above, below, number = above[:1], below[:1], 1  # the same replication again and again
    if number < 2:
        mean = float(above[0] / below[0]) if number and below[0] else np.nan
        return Interval(mean, np.nan, np.nan, number, level)
    top, bottom = float(above.mean()), float(below.mean())
    if not bottom:
        return Interval(np.nan, -np.inf, np.inf, number, level)
    reach = student_quantile(number - 1, level) ** 2 / number
    covariance = np.cov(above, below)
    # roots r of (top - r·bottom)² = reach·var(above - r·below)
    square = bottom**2 - reach * covariance[1, 1]
    middle = top * bottom - reach * covariance[0, 1]
    constant = top**2 - reach * covariance[0, 0]
    if square <= 0:
        return Interval(top / bottom, -np.inf, np.inf, number, level)
    root = float(np.sqrt(max(middle**2 - square * constant, 0.0)))
    return Interval(
        top / bottom,
        float((middle - root) / square),
        float((middle + root) / square),
        number,
        level,
    )


def share_of_gain(
    own: ArrayLike, best: ArrayLike, reference: ArrayLike, level: float = LEVEL
) -> Interval:
    """Return how much of the best one's gain over a reference is kept.

    Parameters
    ----------
    own, best, reference : array_like of float, shape (n,)
        A figure of which less is better, such as mean response times in seconds,
        by replication: of a predictor, of the oracle, of rigid jobs.

    Returns
    -------
    Interval
        1 is all of it, 0 is none, below 0 it does worse than the reference.

    Examples
    --------
    >>> share_of_gain([60.0, 63.0], [50.0, 53.0], [100.0, 105.0]).mean.__round__(3)
    0.804
    """
    own, reference = _pairs(own, reference)
    best = _pairs(best, reference)[0]
    return ratio_of_means(reference - own, reference - best, level)


def holm(p_values: Sequence[float]) -> FloatArray:
    """Return p values corrected for their number by Holm's step-down rule.

    Parameters
    ----------
    p_values : sequence of float
        NaN where a comparison could not be made; it does not count.

    Returns
    -------
    numpy.ndarray of float, shape (n,)
        A comparison stands at level alpha if its corrected value is at most
        alpha; the chance that any one stands wrongly is then at most alpha.

    References
    ----------
    Holm, A simple sequentially rejective multiple test procedure, Scand. J. Stat. 6 (1979).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    given = _probabilities(p_values)
    known = np.flatnonzero(~np.isnan(given))
    order = known[np.argsort(given[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    corrected = np.full(len(given), np.nan)
    corrected[order] = np.minimum(np.maximum.accumulate(factors * given[order]), 1.0)
    return corrected


def false_discovery(p_values: Sequence[float]) -> FloatArray:
    """Return p values corrected by Benjamini & Hochberg's rule.

    Calling significant what is at most alpha, the expected share of wrong ones
    among them is at most alpha: more power than `holm` for exploring.

    Examples
    --------
    >>> false_discovery([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    from scipy.stats import false_discovery_control

    given = _probabilities(p_values)
    known = ~np.isnan(given)
    corrected = np.full(len(given), np.nan)
    if known.any():
        corrected[known] = false_discovery_control(given[known])
    return corrected


def _probabilities(p_values: Sequence[float]) -> FloatArray:
    given = np.asarray(p_values, np.float64)
    if ((given < 0) | (given > 1)).any():
        raise StatisticsError(f"p values must lie between 0 and 1, got {given.tolist()}")
    return given
