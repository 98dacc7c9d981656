"""The Network Weather Service's mixture of forecasters, for many series at once.

Eighteen simple forecasters run side by side; sixteen selectors each follow the
one with the smallest error over some stretch of the past; the answer is that of
one selector. Every error is that of a forecast made before its value was known.
"""

from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from predictors.base import FloatArray, IntArray
from predictors.compiling import direct
from predictors.errors import AT_LEAST_0, PredictorError, check_choice
from predictors.under_load.forecasters import Rule, series_without_values, take

Selection = Literal["mae_50", "mse", "mae"]

SPANS = (0, 1, 5, 10, 20, 30, 50, 100)
"""Over how many of the latest values selectors judge; 0: over all."""
LATEST = 50
"""The span of the selector that `mae_50` follows alone."""

SELECTOR_NAMES = tuple(f"{error} {span or 'all'}" for error in ("mse", "mae") for span in SPANS)
"""The selectors: by which error, over how many of the latest values."""


def rule_of(
    selection: Selection = "mae_50",
    limits: tuple[float, float] | None = (0.01, 1.0),
    empty: float = 1.0,
) -> Rule:
    """Return the rule by which the mixture of forecasters answers; see `NwsMixture`."""
    low, high = (-np.inf, np.inf) if limits is None else limits
    if selection == "mae_50":
        spans, squared = np.array([LATEST]), np.array([False])
    else:
        spans, squared = np.array(SPANS * 2), np.repeat([True, False], len(SPANS))
    return Rule(spans, squared, selection == "mse", float(low), float(high), float(empty))


class NwsMixture:
    """Forecasts the next value of each of many series, with an error bar.

    Parameters
    ----------
    series : int
        How many series.
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
        AT_LEAST_0.check(series=series)
        check_choice(("mae_50", "mse", "mae"), selection=selection)
        if limits is not None and not limits[0] < limits[1]:
            raise PredictorError(f"limits must be a pair (low, high), got {limits}")
        if not np.isfinite(empty):
            raise PredictorError(f"empty must be finite, got {empty}")
        self.selection = selection
        self._rule = rule_of(selection, limits, empty)
        self._series = series_without_values(series, self._rule)
        self._all = np.arange(series)
        self._take = direct(take)

    @property
    def counts(self) -> IntArray:
        """Values of each series taken in so far."""
        return self._series["count"].copy()

    def __len__(self) -> int:
        return len(self._series)

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
        self.follow(values)
        return self

    def follow(self, values: ArrayLike) -> FloatArray:
        """Take in values as `update` does; return what was forecast of each before it came.

        Returns
        -------
        numpy.ndarray of float, shape (times, series)
        """
        block = np.atleast_2d(np.asarray(values, float))
        if block.ndim != 2 or block.shape[1] != len(self):
            raise PredictorError(
                f"values must have shape ({len(self)},) or (times, {len(self)}), "
                f"got {np.shape(values)}"
            )
        if np.isinf(block).any():
            raise PredictorError("values must be finite, or NaN where there is none")
        before = np.empty(block.shape)
        self._take(np.ascontiguousarray(block), self._series, self._all, self._rule, before)
        return before

    def forecast(self) -> FloatArray:
        """Return the forecast next value of every series, shape (series,)."""
        return self._series["answer"].copy()

    def primaries(self) -> FloatArray:
        """Return what every primary forecaster says now, shape (series, 18).

        The last value; the running mean; smoothing with each of `GAINS`; medians and means of
        31 and of 5 values; means of 31 and of 51 values trimmed; medians of windows that adapt
        within 5 to 21 and within 21 to 51 values. Of equal ones the earlier answers.
        """
        return self._series["standing"].copy()

    def selectors(self) -> FloatArray:
        """Return what every selector that is followed says now, shape (series, selectors).

        All 16 of them, in the order of `SELECTOR_NAMES`, but one alone with
        ``selection="mae_50"``.
        """
        return np.take_along_axis(self._series["standing"], self._series["chosen"], axis=1)
