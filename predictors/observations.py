"""Runs of one application, checked and merged to one runtime a processor count."""

from dataclasses import dataclass, replace
from math import log, sqrt
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from predictors.base import BoolArray, FloatArray, IntArray, numbers
from predictors.compiling import compiled
from predictors.errors import PredictorError

_OUTLIER_DISTANCE = 3.0 * 1.4826
"""Distance from the median, in median absolute deviations, that makes an outlier."""


@dataclass(frozen=True)
class ObservedCurve:
    """What was measured, a processor count an entry, in ascending order.

    Attributes
    ----------
    nprocs : numpy.ndarray of float, shape (m,)
        Distinct processor counts.
    runtime : numpy.ndarray of float, shape (m,), seconds
        Mean of the runs kept at each count.
    repeats : numpy.ndarray of int, shape (m,)
        Runs kept at each count.
    shortest, longest : numpy.ndarray of float, shape (m,), seconds
        Of the runs kept at each count.
    scatter : float
        Relative standard deviation of a single run, pooled over the repeated
        counts; 0 without repeats.
    scatter_degrees_of_freedom : int
        Degrees of freedom behind `scatter`.
    log_scatter : float
        The same standard deviation of ln runtime.
    dropped : tuple of (float, float)
        Processor count and runtime of each run left out as an outlier.
    ignored : tuple of str
        Columns that were there and not used.
    """

    nprocs: FloatArray
    runtime: FloatArray
    repeats: IntArray
    shortest: FloatArray
    longest: FloatArray
    scatter: float = 0.0
    scatter_degrees_of_freedom: int = 0
    log_scatter: float = 0.0
    dropped: tuple[tuple[float, float], ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def reach(self) -> float:
        """Ln s = 2 d: how far outside its runs an answer may lie, either way."""
        return reach_of(self.scatter_degrees_of_freedom, self.log_scatter)

    @property
    def decline(self) -> int:
        """Place of the fastest count if those beyond it decline, else -1; see `decline_place`."""
        return decline_place(self.runtime, self.reach)

    def take(self, kept: BoolArray) -> "ObservedCurve":
        """Return some of the counts as a curve of their own."""
        if np.count_nonzero(kept) == kept.size:
            return self
        names = ("nprocs", "runtime", "repeats", "shortest", "longest")
        return replace(self, **{name: getattr(self, name)[kept] for name in names})


def observed_curve(nprocs: ArrayLike, runtime: ArrayLike) -> ObservedCurve:
    """Check runs, drop obvious outliers among repeats and average the rest.

    Of three or more runs at one count, those farther than 3 x 1.4826 median
    absolute deviations from the median are left out (ADEPT paper, section V.B;
    the measure of "obvious" is ours). Two are averaged.

    Raises
    ------
    PredictorError
        If there is no run, lengths differ, a processor count is below 1 or not
        finite, or a runtime is not positive and finite. The row is named.

    Examples
    --------
    >>> curve = observed_curve([8, 4, 4, 4, 4], [30, 50, 51, 49, 500])
    >>> curve.nprocs.tolist(), curve.runtime.tolist(), curve.dropped
    ([4.0, 8.0], [50.0, 30.0], ((4.0, 500.0),))
    """
    counts, times = _checked(nprocs, runtime)
    order = np.lexsort((times, counts))
    counts, times = counts[order], times[order]
    distinct = np.ones(len(counts), bool)
    distinct[1:] = counts[1:] > counts[:-1]
    starts = np.flatnonzero(distinct)
    repeats = np.diff(starts, append=len(counts))
    runs = np.zeros((len(starts), repeats.max()))
    runs[np.arange(repeats.max()) < repeats[:, None]] = times
    return merged_curve(counts[starts], runs, repeats.astype(float))


@compiled
def _median(ordered: FloatArray) -> float:
    return float(0.5 * (ordered[(ordered.size - 1) // 2] + ordered[ordered.size // 2]))


class Merged(NamedTuple):
    """The runs at one count, made one.

    Attributes
    ----------
    mean : float
        Seconds, of the runs kept.
    repeats : int
        Runs kept.
    squares : float
        Sum of their squared relative deviations from the mean.
    shortest, longest : float
        Seconds, of the runs kept.
    log_squares : float
        Sum of the squared deviations of ln runtime from their mean.
    middle, limit : float
        Seconds; runs farther than the limit from the middle are left out as outliers.
    """

    mean: float
    repeats: int
    squares: float
    shortest: float
    longest: float
    log_squares: float
    middle: float
    limit: float


@compiled
def merge_repeats(runtimes: FloatArray) -> Merged:
    """Drop obvious outliers among a few runs at one count, seconds, and average the rest.

    The rule is that of `observed_curve`.

    Examples
    --------
    >>> merge_repeats(np.array([50.0, 51.0, 49.0, 500.0]))[:2]
    (50.0, 3)
    """
    ordered = np.sort(runtimes)
    number = ordered.size
    middle, limit, begin, end = _median(ordered), np.inf, 0, number
    if number >= 3:
        spread = _median(np.sort(np.abs(ordered - middle)))
        limit = _OUTLIER_DISTANCE * spread + 1e-9 * middle
        while abs(ordered[begin] - middle) > limit:
            begin += 1
        while abs(ordered[end - 1] - middle) > limit:
            end -= 1
    mean = log_mean = squares = log_squares = 0.0
    for i in range(begin, end):
        mean += ordered[i]
        log_mean += log(ordered[i])
    mean, log_mean = mean / (end - begin), log_mean / (end - begin)
    for i in range(begin, end):
        squares += (ordered[i] / mean - 1.0) ** 2
        if end - begin > 1:
            log_squares += (log(ordered[i]) - log_mean) ** 2
    return Merged(
        mean, end - begin, squares, ordered[begin], ordered[end - 1], log_squares, middle, limit
    )


def dropped_of(runtimes: FloatArray) -> list[float]:
    """Return the obvious outliers that `merge_repeats` drops."""
    merged = merge_repeats(runtimes)
    far = np.abs(runtimes - merged.middle) > merged.limit
    return list(map(float, np.sort(runtimes[far])))


@compiled
def merge_runs(
    counts: IntArray | FloatArray, runs: FloatArray, numbers: FloatArray
) -> tuple[FloatArray, FloatArray, tuple[float, int, float]]:
    """Merge good runs by count; parameters are those of `merged_curve`.

    Returns the counts as float64; a column a count with the first six figures of `Merged`; and
    scatter, its degrees of freedom, and scatter of the logarithm.
    """
    figures, kept, squares, log_squares = np.empty((6, numbers.size)), 0, 0.0, 0.0
    for k in range(numbers.size):
        one = merge_repeats(runs[k, : int(numbers[k])])
        figures[0, k], figures[1, k], figures[2, k] = one.mean, one.repeats, one.squares
        figures[3, k], figures[4, k], figures[5, k] = one.shortest, one.longest, one.log_squares
        kept += one.repeats
        squares += one.squares
        log_squares += one.log_squares
    degrees = kept - numbers.size
    scatter = sqrt(squares / degrees) if degrees > 0 else 0.0
    log_scatter = sqrt(log_squares / degrees) if degrees > 0 else 0.0
    return counts.astype(np.float64), figures, (scatter, degrees, log_scatter)


def merged_curve(
    counts: IntArray | FloatArray, runs: FloatArray, numbers: FloatArray
) -> ObservedCurve:
    """Return the curve of runs that are good.

    Parameters
    ----------
    counts : numpy.ndarray of int or float, shape (m,), ascending
    runs : numpy.ndarray of float, shape (m, room), seconds
        Those at each count come first.
    numbers : numpy.ndarray of float, shape (m,)
        How many they are.
    """
    nprocs, figures, scatter = merge_runs(counts, runs, numbers)
    mean, repeats, _, shortest, longest, _ = figures
    dropped = [
        (nprocs.item(k), time)
        for k in np.flatnonzero(repeats < numbers).tolist()
        for time in dropped_of(runs[k, : int(numbers[k])])
    ]
    own = nprocs, mean, repeats.astype(np.int64), shortest, longest
    return ObservedCurve(*own, *scatter, tuple(dropped))


LEAST_SCATTER = 0.02
"""Standard deviation of ln runtime that repeats are taken to have at least."""
UNKNOWN_SCATTER = 0.10
"""The same where nothing repeats."""
SAME = 1e-9
"""Relative difference of counts that are the same, and how far inside its bounds an answer lies."""
RISE = 0.03
"""A runtime that ends more than this above the shortest is rising, whatever the scatter."""


@compiled
def reach_of(degrees_of_freedom: int, log_scatter: float) -> float:
    """Return `ObservedCurve.reach` of a curve with this scatter."""
    if degrees_of_freedom == 0:
        return 2.0 * UNKNOWN_SCATTER
    return 2.0 * max(log_scatter, LEAST_SCATTER)


@compiled
def is_measured(nprocs: FloatArray, target: float) -> bool:
    """Say whether a count was measured."""
    return bool(np.any(np.abs(nprocs - target) <= SAME * target))


@compiled
def decline_place(runtime: FloatArray, reach: float) -> int:
    """Return the place of the fastest of some times by count if those beyond it decline, else -1.

    They do where two or more are slower than it, the last by more than 3 % and, as a
    logarithm, by more than `reach`.
    """
    fastest = int(np.argmin(runtime))
    slower = 0
    for i in range(fastest + 1, runtime.size):
        slower += runtime[i] > runtime[fastest]
    rise = log(runtime[runtime.size - 1]) - log(runtime[fastest])
    return fastest if slower >= 2 and rise > max(log(1.0 + RISE), reach) else -1


def observed_frame(observations: pd.DataFrame) -> ObservedCurve:
    """Read columns ``nprocs`` and ``runtime``, a row a run; others are ignored and named."""
    missing = [name for name in ("nprocs", "runtime") if name not in observations.columns]
    if missing:
        have = ", ".join(map(str, observations.columns)) or "none"
        raise PredictorError(f"missing column {', '.join(missing)}; the columns are {have}")
    curve = observed_curve(
        numbers(observations["nprocs"], "nprocs"), numbers(observations["runtime"], "runtime")
    )
    ignored = (str(name) for name in observations.columns if name not in ("nprocs", "runtime"))
    return replace(curve, ignored=tuple(ignored))


def checked_targets(nprocs: ArrayLike) -> FloatArray:
    """Return target processor counts as float64, or refuse one below 1 or not finite."""
    try:
        targets = np.asarray(nprocs, float)
    except (TypeError, ValueError):
        raise PredictorError(f"processor counts must be numbers, got {nprocs!r}") from None
    if targets.size and not (targets.min() >= 1.0 and targets.max() < np.inf):
        bad = ~(np.isfinite(targets) & (targets >= 1.0))
        raise PredictorError(
            f"processor counts must be finite and at least 1, got {targets[bad].flat[0]:g}"
        )
    return targets


def checked_column(name: str, values: ArrayLike) -> FloatArray:
    """Return a column of runs as float64 of its own, finite and above 0 (a count: at least 1).

    What it is not is refused, by its row.
    """
    array = np.array(values, dtype=np.float64)
    if not array.size:
        raise PredictorError("there is no observation; at least one run is needed")
    if array.ndim != 1:
        raise PredictorError(f"{name}: expected values in one dimension, got {array.ndim}")
    good = (array >= 1.0 if name == "nprocs" else array > 0.0) & (array < np.inf)
    if not good.all():
        row, accepted = int(np.argmin(good)), "at least 1" if name == "nprocs" else "above 0"
        raise PredictorError(
            f"{name} in row {row} is {array[row]:g}; it must be finite and {accepted}"
        )
    return array


def _checked(nprocs: ArrayLike, runtime: ArrayLike) -> tuple[FloatArray, FloatArray]:
    counts, times = np.atleast_1d(np.asarray(nprocs, float)), np.atleast_1d(np.asarray(runtime))
    if times.dtype.kind not in "iuf" and times.ndim == 1:
        times = numbers(pd.Series(times), "runtime")
    if counts.shape != times.shape or counts.ndim != 1:
        raise PredictorError(
            f"a runtime for each processor count is needed, got shapes {counts.shape} "
            f"and {times.shape}"
        )
    return checked_column("nprocs", counts), checked_column("runtime", times)
