"""Intervals of a mean by Student's t, and comparisons by paired log ratios, read together."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from predictors.base import FloatArray
from sim.errors import StatisticsError
from workloads.streams import Streams

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


RESAMPLES = 2000
NOTHING = Interval(np.nan, np.nan, np.nan, 0)
LEAST_PAIRS = 8
"""Pairs, and blocks of neighbours, below which there is no interval."""
MIRRORED = 0.015
"""Share of the resampled deviations, for each row and up to a half, whose sign is turned.

Were none turned, intervals of heavy tails would cover too much; half of them in few rows, those
of skewed differences too little. It was chosen on other seeds than the guide's coverage is of.
"""
CORRELATED = 0.2
"""A p value of no correlation up to this one makes blocks of neighbours."""


def log_ratios(own: ArrayLike, reference: ArrayLike) -> FloatArray:
    """Return the logarithm of each paired ratio; 0 of equals, NaN where one is not positive.

    Examples
    --------
    >>> log_ratios([50.0, 0.0, 0.0], [100.0, 0.0, 3.0]).round(3).tolist()
    [-0.693, 0.0, nan]
    """
    first, second = _pairs(own, reference)
    found = np.where(first == second, 0.0, np.nan)
    positive = (first > 0) & (second > 0)
    found[positive] = np.log(first[positive] / second[positive])
    return found


@dataclass(frozen=True)
class Comparison:
    """How a figure differs from that of a reference on the same jobs.

    Attributes
    ----------
    change : Interval
        exp of the mean paired log ratio, less 1, or the mean difference of shares; its
        limits hold together with those of all that it was read with. NaN where a ratio is
        undefined; limits are NaN with fewer than eight pairs and where all pairs are alike.
    least, most : float
        The range of the pairs' changes.
    identical : str
        Empty, or what is the same to the last bit and so leaves nothing to infer: ``runs``
        (own and reference) or ``replications`` (of both).
    single : Interval
        The change with limits that hold if it is read alone.
    """

    change: Interval
    least: float
    most: float
    identical: str = ""
    single: Interval = NOTHING

    @property
    def certain(self) -> bool:
        """Whether it has an interval, and that excludes 0."""
        return not np.isnan(self.change.low) and not self.change.contains(0.0)


@dataclass(frozen=True)
class Family:
    """Comparisons that are read together.

    Attributes
    ----------
    comparisons : list of Comparison
    intervals : int
        How many of them have one; all hold at once at the level.
    block : int
        So many neighbouring windows were resampled as one; 1 where neighbours are uncorrelated.
    correlation : float
        The largest correlation of neighbours; NaN where rows have no order.
    """

    comparisons: list[Comparison]
    intervals: int
    block: int = 1
    correlation: float = np.nan


def compare(
    columns: Sequence[ArrayLike],
    level: float = LEVEL,
    *,
    shares: Sequence[bool] = (),
    ordered: bool = False,
    jobs: Sequence[Hashable] = (),
) -> Family:
    """Return what paired log ratios that are read together say, by the symmetric bootstrap-t.

    Parameters
    ----------
    columns : sequence of array_like of float, shape (n,)
        Paired log ratios (see `log_ratios`), or differences of shares; row k of all is
        replication or window k. NaN where a comparison has no such pair.
    level : float
    shares : sequence of bool
        Which columns are differences; without it none.
    ordered : bool
        Whether rows follow each other in time, as windows of a log do: then they are resampled
        in the smallest blocks, doubled from one row, between which no correlation is left.
    jobs : sequence of hashable
        What each column's jobs are, such as a log; without it one for all. Rows of the same
        jobs are resampled together, of others apart.

    Raises
    ------
    StatisticsError
        If columns of the same jobs differ in length or the level is out of range.

    Notes
    -----
    Whole rows are resampled; an interval that is read alone reaches out by the quantile of its
    own absolute t at `level`. Read together all reach further out as Student's t does from
    `level` to the share of the draws within which they are all at once at `level`: of such tails
    few rows say too little. Some of the deviations change their sign (`MIRRORED`).

    References
    ----------
    Hall, On symmetric bootstrap confidence intervals, J. R. Stat. Soc. B 50 (1988); Beran,
    Balanced simultaneous confidence sets, JASA 83 (1988).

    Examples
    --------
    >>> found = compare([log_ratios([8, 9, 10, 7, 6, 8, 9, 5], [10, 11, 12, 8, 8, 9, 10, 7])])
    >>> round(found.comparisons[0].change.mean, 3), found.comparisons[0].certain
    (-0.18, True)
    """
    if not 0 < level < 1:
        raise StatisticsError(f"level must lie between 0 and 1, got {level}")
    every = [np.atleast_1d(np.asarray(one, np.float64)) for one in columns]
    told = [one[~np.isnan(one)] for one in every]
    varies = [len(one) > 0 and np.ptp(one) > ROUNDING * np.abs(one).max() for one in told]
    able = [v and len(one) >= LEAST_PAIRS for v, one in zip(varies, told, strict=True)]
    alike: dict[Hashable, list[int]] = {}
    for place, label in enumerate(jobs or [0] * len(every)):
        alike.setdefault(label, []).append(place)
    error, drawn = np.full((2, len(every)), np.nan), np.zeros((RESAMPLES, len(every)))
    found = [(1, np.nan)]
    for number, places in enumerate(alike.values()):
        lengths = {len(every[place]) for place in places}
        if len(lengths) > 1:
            raise StatisticsError(f"columns must be of one length, got {sorted(lengths)}")
        kept = [place for place in places if able[place]]
        if kept:
            values = np.column_stack([every[place] for place in kept])
            found += [_blocks(values)] if ordered else []
            error[:, kept], drawn[:, kept] = _drawn(_in_blocks(values, found[-1][0]), number)
    alone = np.quantile(drawn, level, axis=0) * error[0] if drawn.size else error[0]
    half = np.stack((alone * _together(drawn, error[1], level), alone), axis=1)
    block, correlation = max(found, key=lambda one: (one[0], np.nan_to_num(one[1])))
    is_share = shares or [False] * len(told)
    made = [_told(*one) for one in zip(told, varies, half, is_share, strict=True)]
    return Family(made, sum(able), block, correlation)


def _told(values: FloatArray, varies: bool, half: FloatArray, is_share: bool) -> Comparison:
    """Return what a column says of itself, given how far its intervals reach out."""
    if not len(values):
        return Comparison(NOTHING, np.nan, np.nan)
    mean = values.mean()
    ends = np.array([mean, *(mean - half), *(mean + half), values.min(), values.max()])
    with np.errstate(over="ignore"):  # an interval may be endless
        told = (ends if is_share else np.expm1(ends)).tolist()
    middle, low, low_alone, high, high_alone, least, most = told
    single = Interval(middle, low_alone, high_alone, len(values))
    same = "" if varies else "runs" if not values.any() else "replications"
    same = "" if same == "replications" and len(values) == 1 else same
    return Comparison(Interval(middle, low, high, len(values)), least, most, same, single)


def _in_blocks(values: FloatArray, block: int) -> FloatArray:
    """Return the means of neighbouring rows, those without a pair left out."""
    parts = np.array_split(values, max(len(values) // block, 1))
    seen = np.array([(~np.isnan(part)).sum(axis=0) for part in parts])
    return np.array([np.nansum(part, axis=0) for part in parts]) / np.where(seen, seen, np.nan)


def _blocks(values: FloatArray) -> tuple[int, float]:
    """Return the rows in a block, and the largest correlation of single neighbours."""
    block, first = 1, np.nan
    while True:
        tests = [neighbours(one[~np.isnan(one)]) for one in _in_blocks(values, block).T]
        first = max(found for found, _ in tests) if block == 1 else first
        chance = min(p for _, p in tests) * len(tests)
        if chance > CORRELATED or len(values) // (2 * block) < LEAST_PAIRS:
            return block, first
        block *= 2


def _drawn(values: FloatArray, number: int) -> tuple[FloatArray, FloatArray]:
    """Return the columns' standard errors and degrees, and their absolute t in each draw."""
    rng, rows = Streams(0, number)("comparison"), len(values)
    drawn = rng.integers(rows, size=(RESAMPLES, rows))
    mirrored = rng.random(drawn.shape) < min(MIRRORED * rows, 0.5)
    places = (drawn + rows * np.arange(RESAMPLES)[:, None]).ravel()
    signed, times = (
        np.bincount(places, weights, RESAMPLES * rows).reshape(RESAMPLES, rows)
        for weights in (np.where(mirrored, -1.0, 1.0).ravel(), None)
    )
    seen = ~np.isnan(values)
    count = seen.sum(axis=0)
    apart = np.where(seen, values - np.nanmean(values, axis=0), 0.0)
    error = np.sqrt((apart**2).sum(axis=0) / (count - 1) / count)
    size = np.maximum(times @ seen, 2.0)
    mean = signed @ apart / size
    spread = (times @ apart**2 / size - mean**2) / (size - 1)
    some = spread > (ROUNDING * error) ** 2  # one row drawn n times has no spread
    t = np.where(some, np.abs(mean) / np.sqrt(np.where(some, spread, 1.0)), 0.0)
    return np.array([error, count - 1]), t


def _together(drawn: FloatArray, degrees: FloatArray, level: float) -> FloatArray:
    """Return how many times as far each column's t reaches where all do at once, at a level.

    Each keeps to the same share of its own draws, so that one whose t is often huge, as where
    few replications differ at all, widens no other.
    """
    ranks = [np.searchsorted(np.sort(t), t) for t in drawn.T if t.any()]
    if not ranks:
        return np.ones(drawn.shape[1])
    share = (np.quantile(np.max(ranks, axis=0), level) + 0.5) / len(drawn)
    reach = [student_quantile(degrees, one) for one in (max(share, level), level)]
    return np.asarray(reach[0] / reach[1], float)


def _pairs(own: ArrayLike, reference: ArrayLike) -> tuple[FloatArray, FloatArray]:
    first, second = samples(own), samples(reference)
    if len(first) != len(second):
        raise StatisticsError(f"pairs need equal numbers, got {len(first)} and {len(second)}")
    return first, second


def ratio_of_means(numerator: ArrayLike, denominator: ArrayLike) -> Interval:
    """Return the ratio of two paired means with Fieller's 95 % interval.

    Returns
    -------
    Interval
        Its limits are infinite where the denominator does not differ from 0 at
        this level: then no finite interval has it.

    References
    ----------
    Fieller, Some problems in interval estimation, J. R. Stat. Soc. B 16 (1954).

    Examples
    --------
    >>> found = ratio_of_means([1.0, 1.1, 0.9], [2.0, 2.1, 1.9])
    >>> found.mean, found.contains(0.5), found.contains(0.6)
    (0.5, True, False)
    """
    above, below = _pairs(numerator, denominator)
    number = len(above)
    if number > 1 and not np.ptp(above) and not np.ptp(below):
        above, below, number = above[:1], below[:1], 1  # the same replication again and again
    if number < 2:
        mean = float(above[0] / below[0]) if number and below[0] else np.nan
        return Interval(mean, np.nan, np.nan, number)
    top, bottom = float(above.mean()), float(below.mean())
    if not bottom:
        return Interval(np.nan, -np.inf, np.inf, number)
    reach = student_quantile(number - 1, LEVEL).item() ** 2 / number
    covariance = np.cov(above, below)
    # roots r of (top - r·bottom)² = reach·var(above - r·below)
    square = bottom**2 - reach * covariance[1, 1]
    middle = top * bottom - reach * covariance[0, 1]
    constant = top**2 - reach * covariance[0, 0]
    if square <= 0:
        return Interval(top / bottom, -np.inf, np.inf, number)
    root = float(np.sqrt(max(middle**2 - square * constant, 0.0)))
    low, high = float((middle - root) / square), float((middle + root) / square)
    return Interval(top / bottom, low, high, number)
