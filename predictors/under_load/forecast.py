"""The Network Weather Service's mixture of forecasters, for many series at once.

Eighteen simple forecasters run side by side; sixteen selectors each follow the
one with the smallest error over some stretch of the past; the answer is that of
one selector. Every error is that of a forecast made before its value was known.
"""

from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from predictors.base import BoolArray, FloatArray, IntArray
from predictors.errors import PredictorError
from predictors.under_load.forecast_kernel import (
    ADAPTIVE,
    GAINS,
    SERIES,
    SPANS,
    update_series,
)

Selection = Literal["mae_50", "mse", "mae"]
MAE_50 = len(SPANS) + SPANS.index(50)

PRIMARY_NAMES = (
    "last value",
    "running mean",
    *(f"smoothing {gain:.2f}" for gain in GAINS),
    "median 31",
    "median 5",
    "mean 31",
    "mean 5",
    "trimmed mean 31",
    "trimmed mean 51",
    "adaptive median 5-21",
    "adaptive median 21-51",
)
"""The primary forecasters, in the order that settles ties."""

SELECTOR_NAMES = tuple(f"{error} {span or 'all'}" for error in ("mse", "mae") for span in SPANS)
"""The selectors: by which error, over how many of the latest values."""


class NwsMixture:
    """Forecasts the next value of each of many series, with an error bar.

    Parameters
    ----------
    series : int
        How many series; `extend` adds more, `keep` drops some.
    selection : {"mae_50", "mse", "mae"}
        Whose forecast is the answer: the selector by mean absolute error over
        the last 50 values, or the selector with the least mean squared (or
        absolute) error of its own so far, as in the original.
    limits : pair of float or None
        Answers are kept within them; None leaves them alone.
    empty : float
        The answer for a series without values.

    Attributes
    ----------
    counts : numpy.ndarray of int, shape (series,)
        Values taken in so far.

    References
    ----------
    Wolski, Spring & Hayes, "The Network Weather Service", Future Generation
    Computer Systems 15, 1999. The sets of forecasters and selectors are those of
    the released sources; the adaptive medians follow the description there,
    with candidates one offset below and above the current window.

    Examples
    --------
    >>> mixture = NwsMixture(2).update([0.5, 1.0]).update([0.5, 0.8])
    >>> mixture.forecast().tolist()
    [0.5, 0.8]
    >>> NwsMixture(1).forecast().tolist()
    [1.0]
    """

    def __init__(
        self,
        series: int,
        selection: Selection = "mae_50",
        limits: tuple[float, float] | None = (0.01, 1.0),
        empty: float = 1.0,
    ) -> None:
        if series < 0:
            raise PredictorError(f"series must be at least 0, got {series}")
        if selection not in ("mae_50", "mse", "mae"):
            raise PredictorError(f"selection must be 'mae_50', 'mse' or 'mae', got {selection!r}")
        if limits is not None and not limits[0] < limits[1]:
            raise PredictorError(f"limits must be a pair (low, high), got {limits}")
        if not np.isfinite(empty):
            raise PredictorError(f"empty must be finite, got {empty}")
        self.selection = selection
        self.limits = limits
        self.empty = empty
        self._table = _without_values(series)

    @property
    def counts(self) -> IntArray:
        """Values of each series taken in so far."""
        return np.asarray(self._table["count"])

    def __len__(self) -> int:
        return len(self._table)

    def update(self, values: ArrayLike) -> Self:
        """Take in one new value of every series; NaN where a series has none.

        Parameters
        ----------
        values : array_like, shape (series,) or (times, series)
            With two axes: several values of each series, the oldest first.

        Raises
        ------
        PredictorError
            If the shape does not fit or a value is infinite.
        """
        block = np.atleast_2d(np.asarray(values, float))
        if block.ndim != 2 or block.shape[1] != len(self):
            raise PredictorError(
                f"values must have shape ({len(self)},) or (times, {len(self)}), "
                f"got {np.shape(values)}"
            )
        if np.isinf(block).any():
            raise PredictorError("values must be finite, or NaN where there is none")
        update_series(np.ascontiguousarray(block), self._table)
        return self

    def extend(self, series: int, like: int | None = None) -> Self:
        """Add series at the end, new or with the history of the existing series `like`."""
        more = _without_values(series)
        if like is not None:
            more[:] = self._table[like]
        self._table = np.concatenate([self._table, more])
        return self

    def keep(self, series: ArrayLike) -> Self:
        """Keep only the series of these numbers, in this order."""
        self._table = self._table[np.asarray(series, np.int64)]
        return self

    def _answer(self) -> IntArray:
        """Return for each series the primary forecaster that gives the answer."""
        if self.selection == "mae_50":
            return np.asarray(self._table["chosen"][:, MAE_50])
        which = self._table["answers"][:, 1 if self.selection == "mse" else 2]
        return np.asarray(self._table["chosen"][np.arange(len(self)), which])

    def forecast(self) -> FloatArray:
        """Return the forecast next value of every series, shape (series,)."""
        values = self._table["standing"][np.arange(len(self)), self._answer()]
        values = np.where(self.counts > 0, values, self.empty)
        return values if self.limits is None else np.clip(values, *self.limits)

    def error_bar(self) -> FloatArray:
        """Return the typical error of the answers so far, shape (series,); NaN before any.

        The mean absolute error of the answers given, or the root of their mean
        squared error with ``selection="mse"``.
        """
        row = ("mae_50", "mse", "mae").index(self.selection)
        scored = self.counts - 1
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(scored > 0, self._table["answer_scores"][:, row] / scored, np.nan)
        return np.sqrt(mean) if self.selection == "mse" else np.asarray(mean)

    def empty_history(self) -> BoolArray:
        """Return which series have no value yet: their forecast is a mere assumption."""
        return np.asarray(self.counts == 0)

    def methods(self) -> list[str]:
        """Return the name of the forecaster behind each answer."""
        return [PRIMARY_NAMES[k] for k in self._answer().tolist()]

    def primaries(self) -> FloatArray:
        """Return what every primary forecaster says now, shape (series, 18)."""
        return self._table["standing"].copy()

    def selectors(self) -> FloatArray:
        """Return what every selector says now, shape (series, 16)."""
        return np.take_along_axis(self._table["standing"], self._table["chosen"], axis=1)


def _without_values(series: int) -> np.ndarray:
    """Return what is kept of so many series before any value."""
    table = np.zeros(series, SERIES)
    table["windows"] = [row[2] for row in ADAPTIVE]
    return table


def postcast(values: ArrayLike, selection: Selection = "mae_50") -> FloatArray:
    """Return the forecast made just before each value of one series.

    Parameters
    ----------
    values : array_like, shape (n,)
    selection : {"mae_50", "mse", "mae"}

    Returns
    -------
    numpy.ndarray, shape (n + 1,)
        The first is the answer to an empty history; the last looks ahead.

    Examples
    --------
    >>> postcast([0.5, 0.5, 0.7]).round(3).tolist()
    [1.0, 0.5, 0.5, 0.7]
    """
    mixture = NwsMixture(1, selection, limits=None)
    forecasts = [mixture.forecast()[0]]
    forecasts += [mixture.update([value]).forecast()[0] for value in np.asarray(values, float)]
    return np.array(forecasts)
