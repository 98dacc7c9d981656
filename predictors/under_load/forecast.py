"""The Network Weather Service's mixture of forecasters, for many series at once.

Eighteen simple forecasters run side by side; sixteen selectors each follow the
one with the smallest error over some stretch of the past; the answer is that of
one selector. Every error is that of a forecast made before its value was known.
"""

from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from predictors.base import FloatArray, IntArray
from predictors.compiling import njit
from predictors.errors import PredictorError

Selection = Literal["mae_50", "mse", "mae"]

GAINS = (0.05, 0.10, 0.15, 0.20, 0.30, 0.40, 0.50, 0.75)
ADAPTIVE = ((5, 21, 10, 1), (21, 51, 30, 5))
"""Smallest, largest and first window, and offset, of each adaptive median."""
SPANS = (0, 1, 5, 10, 20, 30, 50, 100)
"""Over how many of the latest values selectors judge; 0: over all."""
VALUES = 51
HISTORY = max(SPANS)
PRIMARIES = 18
SELECTORS = 2 * len(SPANS)
TRIM = 0.3
TIE = 1e-10

_GAINS = np.array(GAINS)
_ADAPTIVE = np.array(ADAPTIVE)
_SPANS = np.array(SPANS)

SERIES = np.dtype(
    [
        ("count", np.int64),
        ("total", np.float64),
        ("recent", np.float64, VALUES),
        ("windows", np.int64, 2),
        ("candidates", np.float64, (2, 3)),
        ("standing", np.float64, PRIMARIES),
        ("errors", np.float64, (HISTORY, PRIMARIES)),
        ("scores", np.float64, (len(SPANS), 2, PRIMARIES)),
        ("chosen", np.int64, SELECTORS),
        ("selector_scores", np.float64, (2, SELECTORS)),
        ("answers", np.int64, 3),
        ("answer_scores", np.float64, 3),
    ],
    align=True,
)
"""What is kept of a series: its values, standing forecasts, errors, and who is followed.

Scores sum squared errors and absolute ones, of the answers the absolute, squared and
absolute ones.
"""
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


@njit(cache=True)
def _latest(recent, count, window):  # type: ignore[no-untyped-def]
    """Return the latest values, at most `window`, the newest first."""
    size = min(count, window, VALUES)
    out = np.empty(size)
    for i in range(size):
        out[i] = recent[(count - 1 - i) % VALUES]
    return out


@njit(cache=True)
def _insert(ordered, size, value):  # type: ignore[no-untyped-def]
    """Insert a value into the first `size` sorted ones."""
    i = size
    while i > 0 and ordered[i - 1] > value:
        ordered[i] = ordered[i - 1]
        i -= 1
    ordered[i] = value


@njit(cache=True)
def _middle(ordered, size):  # type: ignore[no-untyped-def]
    """Return the median of the first `size` sorted values."""
    half = size // 2
    return ordered[half] if size % 2 else (ordered[half - 1] + ordered[half]) / 2


@njit(cache=True)
def _trimmed(ordered, size):  # type: ignore[no-untyped-def]
    """Return the mean without the lowest and highest 30 % of the first `size` sorted values."""
    cut = int(TRIM * size)
    return ordered[cut : size - cut].mean()


@njit(cache=True)
def _adapt(series, value):  # type: ignore[no-untyped-def]
    """Move each adaptive window by one towards whichever neighbour erred less on `value`."""
    windows, candidates = series.windows, series.candidates
    for a in range(2):
        if series.count < _ADAPTIVE[a, 1]:
            continue
        now = (candidates[a, 0] - value) ** 2
        less = (candidates[a, 1] - value) ** 2
        more = (candidates[a, 2] - value) ** 2
        if less < now and less <= more:
            windows[a] = max(_ADAPTIVE[a, 0], windows[a] - 1)
        elif more < now:
            windows[a] = min(_ADAPTIVE[a, 1], windows[a] + 1)


@njit(cache=True)
def _forecast(series, value):  # type: ignore[no-untyped-def]
    """Renew what the primary forecasters say, `value` being the newest of the series."""
    standing, candidates = series.standing, series.candidates
    standing[0] = value
    standing[1] = series.total / series.count
    for g in range(len(_GAINS)):
        old = value if series.count == 1 else standing[2 + g]
        standing[2 + g] = old + _GAINS[g] * (value - old)
    values = _latest(series.recent, series.count, VALUES)
    standing[12], standing[13] = values[:31].mean(), values[:5].mean()
    _order_statistics(values, series.windows, candidates, standing)
    standing[16], standing[17] = candidates[0, 0], candidates[1, 0]


@njit(cache=True)
def _order_statistics(values, windows, candidates, standing):  # type: ignore[no-untyped-def]
    """Write medians and trimmed means of all windows, sorting the newest values first."""
    wanted = np.empty((2, 3), np.int64)
    for a in range(2):
        low, high, offset = _ADAPTIVE[a, 0], _ADAPTIVE[a, 1], _ADAPTIVE[a, 3]
        wanted[a, 0] = windows[a]
        wanted[a, 1] = max(low, windows[a] - offset)
        wanted[a, 2] = min(high, windows[a] + offset)
    stops = np.zeros(VALUES + 1, np.bool_)
    stops[5], stops[31], stops[len(values)] = True, True, True
    for a in range(2):
        for c in range(3):
            stops[wanted[a, c]] = True
    ordered = np.empty(len(values))
    for size in range(1, len(values) + 1):
        _insert(ordered, size - 1, values[size - 1])
        if not stops[size]:
            continue
        last = size == len(values)
        for a in range(2):
            for c in range(3):
                if size == wanted[a, c] or (last and size < wanted[a, c]):
                    candidates[a, c] = _middle(ordered, size)
        if size == 31 or (last and size < 31):
            standing[10], standing[14] = _middle(ordered, size), _trimmed(ordered, size)
        if size == 5 or (last and size < 5):
            standing[11] = _middle(ordered, size)
        if last:
            standing[15] = _trimmed(ordered, size)


@njit(cache=True, fastmath={"nnan", "nsz", "reassoc"})
def _smallest(sums):  # type: ignore[no-untyped-def]
    """Return the first index of the smallest sum; what differs by rounding alone is a tie."""
    least, largest = sums[0], sums[0]
    for k in range(1, len(sums)):
        least, largest = min(least, sums[k]), max(largest, sums[k])
    limit = least + TIE * largest
    k = 0
    while sums[k] > limit:
        k += 1
    return k


@njit(cache=True)
def _score(series, value):  # type: ignore[no-untyped-def]
    """Score the primaries' standing forecasts against `value`, over all spans.

    What leaves a span is taken out of its sums.
    """
    scored, errors, scores = series.count - 1, series.errors, series.scores
    for k in range(1, len(_SPANS)):
        if scored >= _SPANS[k]:
            gone = errors[(scored - _SPANS[k]) % HISTORY]
            for f in range(PRIMARIES):
                scores[k, 0, f] -= gone[f] * gone[f]
                scores[k, 1, f] -= gone[f]
    row, standing = errors[scored % HISTORY], series.standing
    for f in range(PRIMARIES):
        row[f] = abs(standing[f] - value)
    for k in range(len(_SPANS)):
        for f in range(PRIMARIES):
            scores[k, 0, f] += row[f] * row[f]
            scores[k, 1, f] += row[f]


@njit(cache=True)
def _score_selectors(series, value):  # type: ignore[no-untyped-def]
    """Score the selectors and the three answers against `value`."""
    standing, chosen, scores = series.standing, series.chosen, series.selector_scores
    for k in range(SELECTORS):
        error = abs(standing[chosen[k]] - value)
        scores[0, k] += error * error
        scores[1, k] += error
    for k in range(3):
        error = abs(standing[chosen[series.answers[k]]] - value)
        series.answer_scores[k] += error * error if k == 1 else error


@njit(cache=True)
def update_series(block, table):  # type: ignore[no-untyped-def]
    """Take in block[time, series]; score standing forecasts first, then renew all.

    Parameters
    ----------
    block : numpy.ndarray of float, shape (times, series)
    table : numpy.ndarray of SERIES, shape (series,)
    """
    mae_50 = len(_SPANS) + 6
    for s in range(block.shape[1]):
        series = table[s]
        for t in range(block.shape[0]):
            value = block[t, s]
            if np.isnan(value):
                continue
            if series.count > 0:
                _score_selectors(series, value)
                _score(series, value)
                _adapt(series, value)
            series.recent[series.count % VALUES] = value
            series.total += value
            series.count += 1
            _forecast(series, value)
            for k in range(len(_SPANS)):
                series.chosen[k] = _smallest(series.scores[k, 0])
                series.chosen[len(_SPANS) + k] = _smallest(series.scores[k, 1])
            series.answers[0] = mae_50
            series.answers[1] = _smallest(series.selector_scores[0])
            series.answers[2] = _smallest(series.selector_scores[1])
