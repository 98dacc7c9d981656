"""The Network Weather Service's mixture of forecasters, for many series at once.

Eighteen simple forecasters run side by side; sixteen selectors each follow the
one with the smallest error over some stretch of the past; the answer is that of
one selector. Every error is that of a forecast made before its value was known.
"""

from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from predictors.base import FloatArray, IntArray
from predictors.errors import AT_LEAST_0, PredictorError, check_choice
from predictors.under_load.forecasters import WIDTH, Rule, answers_of, take_block, without_values

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
        self._series = series
        self._each = WIDTH
        self._banks = without_values(series, self._rule)

    @property
    def counts(self) -> IntArray:
        """Values of each series taken in so far."""
        return np.repeat(self._banks["count"], self._each)[: self._series]

    def __len__(self) -> int:
        return self._series

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
        if self._each > 1 and np.isnan(block).any():
            self._part()
        before = np.empty(block.shape)
        take_block(np.ascontiguousarray(block), self._banks, self._each, self._rule, before)
        return before

    def _part(self) -> None:
        """Give each series a bank of its own, so that it can have fewer values than others."""
        alone = without_values(self._series * WIDTH, self._rule)
        alone["count"] = self.counts
        for name in (alone.dtype.names or ())[1:]:
            alone[name].reshape(self._series, -1, WIDTH)[:] = self._of(name)[:, :, None]
        self._banks, self._each = alone, 1

    def _of(self, name: str) -> np.ndarray:
        """Return what is kept under a name, a row a series."""
        kept = self._banks[name].reshape(len(self._banks), -1, WIDTH)[:, :, : self._each]
        return np.moveaxis(kept, 2, 1).reshape(-1, kept.shape[1])[: self._series]

    def forecast(self) -> FloatArray:
        """Return the forecast next value of every series, shape (series,)."""
        places = np.arange(self._series) * (WIDTH // self._each)
        return np.asarray(answers_of(self._banks, places, self._rule))

    def primaries(self) -> FloatArray:
        """Return what every primary forecaster says now, shape (series, 18).

        The last value; the running mean; smoothing with each of `GAINS`; medians and means of
        31 and of 5 values; means of 31 and of 51 values trimmed; medians of windows that adapt
        within 5 to 21 and within 21 to 51 values. Of equal ones the earlier answers.
        """
        return self._of("standing").copy()

    def selectors(self) -> FloatArray:
        """Return what every selector that is followed says now, shape (series, selectors).

        All 16 of them, in the order of `SELECTOR_NAMES`, but one alone with
        ``selection="mae_50"``.
        """
        return np.take_along_axis(self._of("standing"), self._of("chosen")[:, :-1], axis=1)
