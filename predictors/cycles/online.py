"""The cycles to come of a run from those so far: the online mode of Mathis & Kerbyson.

The next cycle, and how long the run will still take, each with an interval.
"""

from dataclasses import dataclass
from numbers import Integral
from typing import NamedTuple, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from predictors.base import Estimator, FloatArray, Remark
from predictors.compiling import compiled, direct
from predictors.cycles.messages import alike, check_within
from predictors.cycles.offline import OfflineCyclePredictor
from predictors.errors import AT_LEAST_1, BETWEEN_0_AND_1, NotFittedError, PredictorError

KEPT_ERRORS = 64
"""How many of the latest errors the range of a prediction is taken from."""


@compiled
def rates(
    seconds: FloatArray, cells: FloatArray, known: int, window: int, before: FloatArray
) -> FloatArray:
    """Return the time per cell over the window before each cycle that is not known yet.

    Parameters
    ----------
    seconds, cells : numpy.ndarray of float, shape (n,)
        Of the cycles kept, and the new ones.
    known : int
        How many were kept.
    window : int
        0 for all.
    before : numpy.ndarray of float, shape (2,)
        Sums of seconds and cells that are not kept.

    Returns
    -------
    numpy.ndarray of float, shape (n - known,), seconds
        NaN without a cycle before.
    """
    found = np.empty(seconds.size - known)
    if window == 1:
        for end in range(known, seconds.size):
            found[end - known] = seconds[end - 1] / cells[end - 1] if end > 0 else np.nan
        return found
    time, size = np.zeros(seconds.size + 1), np.zeros(seconds.size + 1)
    time[1:], size[1:] = np.cumsum(seconds), np.cumsum(cells)
    for end in range(known, seconds.size):
        start = max(end - window, 0) if window > 0 else 0
        if end > start or before[0] > 0.0:
            taken = time[end] - time[start] + before[0]
            found[end - known] = taken / (size[end] - size[start] + before[1])
        else:
            found[end - known] = np.nan
    return found


_rates = direct(rates)


def _rows(cells: ArrayLike, seconds: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return cycles as two rows of floats, or refuse them."""
    given, taken = np.asarray(cells, dtype=float), np.asarray(seconds, dtype=float)
    if given.ndim and taken.ndim and given.shape != taken.shape:
        raise PredictorError(
            f"cells and seconds must have one shape, got {given.shape} and {taken.shape}"
        )
    size, time = alike(np.atleast_1d(given), taken)
    check_within("cells", size)
    check_within("seconds", time)
    return size.ravel(), time.ravel()


@dataclass(eq=False, repr=False)
class OnlineCyclePredictor(Estimator):
    """Time per cell over a window of past cycles, times the cells of the next.

    The time per cell is the sum of measured times over the sum of cells in the
    window. With all cycles in it the prediction follows a change slowly; with
    the last alone it follows within a cycle, and hides a disturbance.

    Parameters
    ----------
    window : int, optional
        How many past cycles count, at least 1; all of them by default.
    fallback : OfflineCyclePredictor, optional
        Asked before the first cycle; fitted. Without it there is no prediction
        then.
    nprocs : int
        Processors of the run, for the fallback.

    Attributes
    ----------
    cycles_ : int
        Cycles seen.

    Raises
    ------
    PredictorError
        If the window or `nprocs` is below 1.

    References
    ----------
    M. M. Mathis and D. J. Kerbyson, "Dynamic performance prediction of an
    adaptive mesh application", section 2.

    Examples
    --------
    >>> model = OnlineCyclePredictor(window=2).update([100, 200], [1.0, 2.3])
    >>> model.predict(cells=[300, 600]).round(3).tolist()
    [3.3, 6.6]
    """

    window: int | None = None
    fallback: OfflineCyclePredictor | None = None
    nprocs: int = 1
    cycles_ = 0
    _cells = _seconds = _errors = np.empty(0)
    _before = (0.0, 0.0)

    def check_parameters(self) -> None:
        """Refuse a window or count that is none; see `Estimator`."""
        window = self.window
        if window is not None and (not isinstance(window, Integral) or window < 1):
            raise PredictorError(
                f"window must be at least 1 cycle, whole, or None for all, got {window}"
            )
        AT_LEAST_1.check(nprocs=self.nprocs)

    def update(self, cells: ArrayLike, seconds: ArrayLike) -> Self:
        """Take in finished cycles, one or many, in their order.

        Parameters
        ----------
        cells : array_like of float
            Cells on the fullest processor.
        seconds : array_like of float
            Measured time of each cycle.

        Raises
        ------
        PredictorError
            If a value is not positive and finite.
        """
        self.follow(cells, seconds)
        return self

    def follow(self, cells: ArrayLike, seconds: ArrayLike) -> FloatArray:
        """Take in finished cycles and return what was predicted before each.

        The same as `predict` and `update` in turn, in one go.

        Parameters and errors are those of `update`.

        Returns
        -------
        numpy.ndarray of float, shape (k,), seconds
            NaN for a first cycle without a fallback.
        """
        if not self.cycles_:
            self.check_parameters()
        size, time = _rows(cells, seconds)
        known = self._cells.size
        all_cells = np.concatenate((self._cells, size))
        all_seconds = np.concatenate((self._seconds, time))
        before = np.array(self._before)
        predicted = _rates(all_seconds, all_cells, known, self.window or 0, before) * size
        if self.cycles_ == 0 and size.size and self.fallback is not None:
            predicted[0] = float(self.fallback.predict(self.nprocs, cells=size[0]))
        self._keep(all_cells, all_seconds)
        errors = np.log((time / predicted)[-KEPT_ERRORS - 1 :])
        self._errors = np.concatenate((self._errors, errors[np.isfinite(errors)]))[-KEPT_ERRORS:]
        self.cycles_ += size.size
        return np.asarray(predicted)

    def _keep(self, cells: FloatArray, seconds: FloatArray) -> None:
        """Hold on to the window alone; to two sums where the window is everything."""
        if self.window is None:
            taken, size = self._before
            self._before = taken + float(seconds.sum()), size + float(cells.sum())
            self._cells = self._seconds = np.empty(0)
        else:
            self._cells, self._seconds = cells[-self.window :], seconds[-self.window :]

    def seconds_per_cell(self) -> float:
        """Return the time per cell over the window.

        Raises
        ------
        NotFittedError
            Before the first cycle.
        """
        if self.cycles_ == 0:
            raise NotFittedError("OnlineCyclePredictor has seen no cycle yet, and has no fallback")
        if self.window is None:
            return self._before[0] / self._before[1]
        return float(self._seconds.sum() / self._cells.sum())

    @property
    def recent_cells(self) -> FloatArray:
        """Cells of the cycles in the window; empty where the window is everything."""
        return self._cells

    @property
    def spread(self) -> float:
        """Standard deviation of the log errors of the last predictions; 0 before the third."""
        return float(self._errors.std(ddof=1)) if self._errors.size > 1 else 0.0

    def predict(self, *, cells: ArrayLike) -> FloatArray:
        """Return the time of the next cycle for each number of cells, seconds.

        Raises
        ------
        NotFittedError
            Before the first cycle, without a fallback.
        PredictorError
            If a number of cells is not positive.
        """
        size = np.asarray(cells, dtype=float)
        check_within("cells", size)
        if self.cycles_ == 0 and self.fallback is not None:
            return self.fallback.predict(self.nprocs, cells=size)
        return np.asarray(self.seconds_per_cell() * size)

    def predict_range(
        self, level: float = 0.8, *, cells: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return the low and high ends in which the next cycle lies with `level`.

        From the errors of the last predictions, log-normal around their mean.

        Raises
        ------
        NotFittedError
            Before the third cycle.
        PredictorError
            If `level` is not between 0 and 1, or as `predict`.
        """
        BETWEEN_0_AND_1.check(level=level)
        if self._errors.size < 2:
            raise NotFittedError("a range needs at least 3 cycles")
        middle = self.predict(cells=cells)
        bias = self._errors.mean()
        tail = scipy.special.ndtri(0.5 + level / 2.0)
        half = tail * self.spread * np.sqrt(1.0 + 1.0 / self._errors.size)
        return middle * np.exp(bias - half), middle * np.exp(bias + half)

    def reliability(self) -> list[Remark]:
        """Say how far to trust the next prediction."""
        if self.cycles_ == 0:
            return [Remark("unusable", "no_cycles", "no cycle has been measured yet")]
        if self.cycles_ < 3:
            return [Remark("warning", "few_cycles", f"only {self.cycles_} cycles measured")]
        recent = self._errors[-3:]
        spread = max(float(1.4826 * np.median(np.abs(self._errors))), 0.01)
        if recent.size == 3 and float(np.abs(np.median(recent))) > 3.0 * spread:
            text = f"the last 3 cycles were off by {np.expm1(np.median(recent)):+.0%}"
            return [Remark("warning", "drifting", text)]
        return []


QUADRATURE = 32
"""Places along the remaining cycles at which the cells are followed."""
_PLACES = np.arange(QUADRATURE) + 0.5

PRIOR_STEP = 0.1
"""A step of the cells by this share is held possible before any was seen."""


class Remaining(NamedTuple):
    """Seconds that a run will still take.

    Attributes
    ----------
    seconds, low, high : float
        Median of the belief and the ends of its interval, seconds.
    online, offline : float
        What either mode says alone, along the same trend of cells, seconds;
        `offline` is NaN without an offline model.
    """

    seconds: float
    low: float
    high: float
    online: float
    offline: float


class CellTrend:
    """Where the cells are heading: a random walk with drift, one step a cycle.

    The drift is the mean change per cycle so far, the variance that of the changes
    around it and one more change by `PRIOR_STEP`, so that a run which has not
    adapted yet is not believed to stay as it is.

    Examples
    --------
    >>> trend = CellTrend().update([100.0, 110.0, 120.0])
    >>> trend.ahead(np.array([1.0, 10.0])).tolist()
    [130.0, 220.0]
    """

    def __init__(self) -> None:
        self.count = 0
        self.last = np.nan
        self._sums = np.zeros(3)  # changes, their sum, their squares: all cycles so far

    def update(self, cells: ArrayLike) -> Self:
        """Take in the cells of finished cycles, in their order.

        Raises
        ------
        PredictorError
            If a number is not positive and finite.
        """
        row = np.atleast_1d(np.asarray(cells, dtype=float)).ravel()
        check_within("cells", row)
        known = row if self.count == 0 else np.concatenate(([self.last], row))
        changes = known[1:] - known[:-1]
        self._sums = self._sums + np.array([changes.size, changes.sum(), (changes**2).sum()])
        self.count += row.size
        self.last = float(row[-1]) if row.size else self.last
        return self

    @property
    def drift(self) -> float:
        """Mean change of the cells per cycle."""
        steps, total, _ = self._sums
        return float(total / steps) if steps else 0.0

    @property
    def variance(self) -> float:
        """Variance of the change per cycle, the prior step included."""
        steps, total, squares = self._sums
        around = max(squares - total**2 / steps, 0.0) if steps else 0.0
        return float((around + (PRIOR_STEP * self.last) ** 2) / (steps + 1.0))

    def ahead(self, cycles: FloatArray) -> FloatArray:
        """Return the expected cells so many cycles ahead, at least a quarter of now."""
        return np.maximum(self.last + self.drift * cycles, 0.25 * self.last)

    def variance_of_sum(self, cycles: float) -> float:
        """Return the variance of the sum of cells over so many coming cycles."""
        walk = cycles**3 / 3.0 + cycles**2 / 2.0 + cycles / 6.0
        drift = (cycles * (cycles + 1.0) / 2.0) ** 2 / (self._sums[0] + 1.0)
        return float(self.variance * (walk + drift))


@dataclass(eq=False, repr=False)
class RemainingTime:
    """Remaining time of a run from both modes and the trend of its cells.

    The present speed is the online time per cell; how it changes as the cells
    change comes from the shape of the offline curve, whose level does not
    matter. The interval covers the walk of the cells, the spread of the cycles
    and half the distance between the online mode with and without the shape.

    Parameters
    ----------
    cycles : int
        Cycles that the run will have in all.
    offline : OfflineCyclePredictor, optional
        Fitted benchmark of the application.
    nprocs : int
        Processors of the run.
    window : int
        Latest cycles from which the speed is taken, at least 1.

    Raises
    ------
    PredictorError
        If a count is below 1.

    Examples
    --------
    >>> run = RemainingTime(cycles=100).update(np.full(50, 1000.0), np.full(50, 2.0))
    >>> run.predict().seconds
    100.0
    """

    cycles: int
    offline: OfflineCyclePredictor | None = None
    nprocs: int = 1
    window: int = 32

    def __post_init__(self) -> None:
        AT_LEAST_1.check(cycles=self.cycles)
        if self.window is None:
            raise PredictorError("window must be at least 1 cycle, whole, got None")
        self.online = OnlineCyclePredictor(self.window, self.offline, self.nprocs)
        self.online.check_parameters()
        self.trend = CellTrend()
        self._shape = np.nan

    def update(self, cells: ArrayLike, seconds: ArrayLike) -> Self:
        """Take in finished cycles, one or many, in their order.

        Raises
        ------
        PredictorError
            If a value is not positive and finite.
        """
        row = np.atleast_1d(np.asarray(cells, dtype=float))
        self.online.update(row, seconds)
        self.trend.update(row)
        recent = self.online.recent_cells
        if self.offline is not None and recent.size:
            mean = self.offline.predict(self.nprocs, cells=recent).sum() / recent.sum()
            self._shape = float(mean)
        return self

    def predict(self, level: float = 0.8, left: int | None = None) -> Remaining:
        """Return the remaining time and the interval that holds it with `level`.

        Parameters
        ----------
        level : float
            Between 0 and 1.
        left : int, optional
            Cycles that remain, where some were measured more than once (after a
            restart from a checkpoint); by default those not measured yet.

        Raises
        ------
        NotFittedError
            Before the first cycle.
        PredictorError
            If `level` is not between 0 and 1.
        """
        BETWEEN_0_AND_1.check(level=level)
        if self.online.cycles_ == 0:
            raise NotFittedError("RemainingTime has seen no cycle yet")
        left = self.cycles - self.online.cycles_ if left is None else left
        if left <= 0:
            return Remaining(0.0, 0.0, 0.0, 0.0, np.nan if self.offline is None else 0.0)
        cells = self.trend.ahead(_PLACES * left / QUADRATURE + 0.5)
        speed, mean = self.online.seconds_per_cell(), float(cells.mean())
        online = speed * mean * left
        shaped, offline = online, np.nan
        if self.offline is not None:
            seconds = self.offline.predict(self.nprocs, cells=cells)
            offline = float(seconds.mean()) * left
            shaped = offline * speed / self._shape
        spread = self._spread(left, speed, mean, online, shaped)
        factor = float(np.exp(scipy.special.ndtri(0.5 + level / 2.0) * spread / shaped))
        return Remaining(shaped, shaped / factor, shaped * factor, online, offline)

    def _spread(self, left: int, speed: float, mean: float, online: float, shaped: float) -> float:
        """Return the standard deviation of the remaining time, seconds."""
        noise = max(self.online.spread, 0.01)
        seen = self.online.recent_cells.size
        walk = speed**2 * self.trend.variance_of_sum(float(left))
        cycle = (noise * speed * mean) ** 2 * left
        level = (noise * online) ** 2 / seen
        return float(np.sqrt(walk + cycle + level + 0.25 * (online - shaped) ** 2))
