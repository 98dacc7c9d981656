"""The Network Weather Service's mixture of forecasters, for many series at once.

Eighteen simple forecasters run side by side; sixteen selectors each follow the
one with the smallest error over some stretch of the past; the answer is that of
one selector. Every error is that of a forecast made before its value was known.

The 51 newest values of a series are kept as they came and in order. For each of them there
is the set of ranks that it and all newer ones have there, a bit each: no median or trimmed
mean of the newest values, however many, needs sorting.
"""

from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from predictors.base import BoolArray, FloatArray, IntArray
from predictors.compiling import compiled, direct, record
from predictors.errors import AT_LEAST_0, PredictorError, check_choice

GAINS = (0.05, 0.10, 0.15, 0.20, 0.30, 0.40, 0.50, 0.75)
ADAPTIVE = ((5, 21, 10, 1), (21, 51, 30, 5))
"""Smallest, largest and first window, and offset, of each adaptive median."""
VALUES, MIDDLE, FEW = 51, 31, 5
"""Of how many of the newest values there are means and medians."""
PRIMARIES = 18
TRIM = 0.3
TIE = 1e-10

LEAST, MOST = 0.01, 1.0
"""What answers are kept within."""

_GAINS = np.array(GAINS)
_ADAPTIVE = np.array(ADAPTIVE)


class ForecastRule(NamedTuple):
    """Whose forecast is the answer.

    Attributes
    ----------
    spans, squared : numpy.ndarray of int and of bool, shape (selectors,)
        Over how many of the latest values each selector judges (0: over all), and
        whether by squared errors. Of several the one with the least errors of its own answers.
    by_squares : bool
        Whether these errors are squared.
    """

    spans: IntArray
    squared: BoolArray
    by_squares: bool


def series_without_values(number: int, rule: ForecastRule) -> np.ndarray:
    """Return so many series before any value, a record each.

    Of each: how many values it has had and their sum, the newest of them as they came and in
    order, the sets of ranks there, the windows of adaptive medians with their medians and
    those of one offset less and more, what each primary forecaster says, its absolute errors
    on the latest values and their sums for each selector, whom that follows, the selectors'
    own errors, and the answer.
    """
    selectors, history = len(rule.spans), int(rule.spans.max())
    kind = record(
        count=np.int64,
        total=np.float64,
        answer=np.float64,
        windows=(np.int64, 2),
        medians=(np.float64, (2, 3)),
        standing=(np.float64, PRIMARIES),
        chosen=(np.int64, selectors),
        missed=(np.float64, selectors),
        scores=(np.float64, (selectors, PRIMARIES)),
        newest=(np.float64, 2 * VALUES),
        ordered=(np.float64, VALUES + 1),
        rest=(np.float64, VALUES + 1),
        ranks=(np.int64, VALUES),
        errors=(np.float64, (history, PRIMARIES)),
    )
    series = np.zeros(number, kind)
    series["windows"] = _ADAPTIVE[:, 2]
    series["ordered"], series["rest"] = np.inf, -np.inf
    series["answer"] = MOST
    return series


@compiled(forceinline=True)
def _lowest(ranks):  # type: ignore[no-untyped-def]
    """Return the lowest of a set of ranks: how many bits come before its first one.

    They are counted as ones, in ever larger groups of bits, which is one instruction in the end.
    """
    ranks = int(ranks)
    below = (ranks & -ranks) - 1
    pairs = below - ((below >> 1) & 0x5555555555555555)
    fours = (pairs & 0x3333333333333333) + ((pairs >> 2) & 0x3333333333333333)
    bytes_ = (fours + (fours >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((bytes_ * 0x0101010101010101) >> 56) & 0x7F


@compiled(forceinline=True)
def _keep(one, value):  # type: ignore[no-untyped-def]
    """Put a value among the newest and in order; the oldest of 51 leaves both."""
    ordered, rest, ranks, slot = one.ordered, one.rest, one.ranks, one.count % VALUES
    gone, leaving = one.count, np.inf
    if one.count >= VALUES:
        gone = _lowest(ranks[slot] & ~ranks[(slot + 1) % VALUES])
        leaving = one.newest[slot]
    at = 0
    for i in range(VALUES):
        rest[i + 1] = ordered[i] if ordered[i] < leaving else ordered[i + 1]
        at += 1 if rest[i + 1] <= value else 0
    for i in range(VALUES):
        ordered[i] = rest[i + 1] if rest[i + 1] <= value else max(rest[i], value)
    stay, below = (1 << gone) - 1, (1 << at) - 1
    for i in range(VALUES):
        own = (ranks[i] & stay) | ((ranks[i] >> 1) & ~stay)
        ranks[i] = (own & below) | ((own & ~below) << 1) | (below + 1)
    ranks[slot] = 1 << at
    one.newest[slot], one.newest[slot + VALUES] = value, value
    one.total += value
    one.count += 1


@compiled(forceinline=True)
def _mean(one, number):  # type: ignore[no-untyped-def]
    """Return the mean of so many of the newest values."""
    last, total = (one.count - 1) % VALUES + VALUES, 0.0
    for age in range(number):
        total += one.newest[last - age]
    return total / number


@compiled(forceinline=True)
def _median(one, number):  # type: ignore[no-untyped-def]
    """Return the median of so many of the newest values."""
    ranks = one.ranks[(one.count - number) % VALUES]
    for _ in range((number - 1) // 2):
        ranks &= ranks - 1
    low = one.ordered[_lowest(ranks)]
    high = one.ordered[_lowest(ranks & (ranks - 1) | 1 << VALUES)]
    return low if number % 2 else (low + high) / 2


@compiled(forceinline=True)
def _trimmed(one, number):  # type: ignore[no-untyped-def]
    """Return the mean of the middle 40 % of so many of the newest values."""
    ranks, cut, total = one.ranks[(one.count - number) % VALUES], int(TRIM * number), 0.0
    for _ in range(cut):
        ranks &= ranks - 1
    for _ in range(number - 2 * cut):
        total += one.ordered[_lowest(ranks)]
        ranks &= ranks - 1
    return total / (number - 2 * cut)


@compiled(forceinline=True)
def _adapt(one, value):  # type: ignore[no-untyped-def]
    """Move each adaptive window by one towards whichever neighbour erred less on the value."""
    for a in range(2):
        least, most, window = _ADAPTIVE[a, 0], _ADAPTIVE[a, 1], one.windows[a]
        now = (one.medians[a, 0] - value) ** 2
        less = (one.medians[a, 1] - value) ** 2
        more = (one.medians[a, 2] - value) ** 2
        longer = min(most, window + 1) if more < now else window
        nearer = max(least, window - 1) if less < now and less <= more else longer
        one.windows[a] = nearer if one.count >= most else window


@compiled(forceinline=True)
def _fixed(one, size, middle, few):  # type: ignore[no-untyped-def]
    """Renew medians and means of so many of the newest values."""
    one.standing[10], one.standing[11] = _median(one, middle), _median(one, few)
    one.standing[12], one.standing[13] = _mean(one, middle), _mean(one, few)
    one.standing[14], one.standing[15] = _trimmed(one, middle), _trimmed(one, size)


@compiled(forceinline=True)
def _forecast(one, value):  # type: ignore[no-untyped-def]
    """Renew what the primary forecasters say."""
    standing, size = one.standing, min(one.count, VALUES)
    standing[0], standing[1] = value, one.total / one.count
    for g in range(len(_GAINS)):
        old = standing[2 + g] if one.count > 1 else value
        standing[2 + g] = old + _GAINS[g] * (value - old)
    if size == VALUES:  # sizes that are known when this is compiled make it fast
        _fixed(one, VALUES, MIDDLE, FEW)
    else:
        _fixed(one, size, min(size, MIDDLE), min(size, FEW))
    for a in range(2):
        least, most, _, offset = _ADAPTIVE[a]
        window, medians = one.windows[a], one.medians[a]
        medians[0] = _median(one, min(size, window))
        medians[1] = _median(one, min(size, max(least, window - offset)))
        medians[2] = _median(one, min(size, min(most, window + offset)))
        standing[16 + a] = medians[0]


@compiled(forceinline=True)
def _smallest(sums):  # type: ignore[no-untyped-def]
    """Return the first of the smallest sums; what differs by rounding alone is a tie."""
    least, most, first = sums[0], sums[0], 0
    for f in range(1, len(sums)):
        least, most = min(least, sums[f]), max(most, sums[f])
    for f in range(len(sums) - 1, -1, -1):
        first = f if sums[f] <= least + TIE * most else first
    return first


@compiled(forceinline=True)
def _score(one, value, rule):  # type: ignore[no-untyped-def]
    """Score what was forecast against the value, for every selector.

    What leaves a selector's span is taken out of its sums.
    """
    scored, errors, scores, standing = one.count - 1, one.errors, one.scores, one.standing
    row = scored % len(errors)
    for s in range(len(rule.spans)):
        missed, span, square = abs(standing[one.chosen[s]] - value), rule.spans[s], rule.squared[s]
        one.missed[s] += missed * missed if rule.by_squares else missed
        gone, leaves = row - span + (len(errors) if row < span else 0), 0 < span <= scored
        for f in range(PRIMARIES):
            old, new = errors[gone, f] if leaves else 0.0, abs(standing[f] - value)
            scores[s, f] -= old * old if square else old
            scores[s, f] += new * new if square else new
    for f in range(PRIMARIES):
        errors[row, f] = abs(standing[f] - value)


@compiled
def take(values, series, places, rule, before):  # type: ignore[no-untyped-def]
    """Take in values of the series in some places; score standing forecasts first, then renew all.

    Parameters
    ----------
    values : numpy.ndarray of float, shape (times, series)
        NaN where a series has none.
    series : numpy.ndarray
        As `series_without_values` returns it.
    places : numpy.ndarray of int
    rule : ForecastRule
    before : numpy.ndarray of float, shape (times, series)
        Where it writes what was forecast of each value.
    """
    for k in places:
        one = series[k]
        for t in range(len(values)):
            value, before[t, k] = values[t, k], one.answer
            if np.isnan(value):
                continue
            if one.count > 0:
                _score(one, value, rule)
                _adapt(one, value)
            _keep(one, value)
            _forecast(one, value)
            for s in range(len(rule.spans)):
                one.chosen[s] = _smallest(one.scores[s])
            answer = one.standing[one.chosen[_smallest(one.missed)]]
            one.answer = min(max(answer, LEAST), MOST)


Selection = Literal["mae_50", "mse", "mae"]

SPANS = (0, 1, 5, 10, 20, 30, 50, 100)
"""Over how many of the latest values selectors judge; 0: over all."""
LATEST = 50
"""The span of the selector that `mae_50` follows alone."""


def rule_of(selection: Selection = "mae_50") -> ForecastRule:
    """Return the rule by which the mixture of forecasters answers; see `NwsMixture`."""
    if selection == "mae_50":
        spans, squared = np.array([LATEST]), np.array([False])
    else:
        spans, squared = np.array(SPANS * 2), np.repeat([True, False], len(SPANS))
    return ForecastRule(spans, squared, selection == "mse")


class NwsMixture:
    """Forecasts the next value of each of many series of fractions in (0, 1].

    Answers are kept within `LEAST` and `MOST`; without values a series is forecast to be free.

    Parameters
    ----------
    series : int
        How many series.
    selection : {"mae_50", "mse", "mae"}
        Whose forecast is the answer: the selector by mean absolute error over
        the last 50 values, or the selector with the least mean squared (or
        absolute) error of its own so far, as in the original.

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

    def __init__(self, series: int, selection: Selection = "mae_50") -> None:
        AT_LEAST_0.check(series=series)
        check_choice(("mae_50", "mse", "mae"), selection=selection)
        self._rule = rule_of(selection)
        self._series = series_without_values(series, self._rule)
        self._all = np.arange(series)
        self._take = direct(take)

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

        All 16 of them, by the mean squared error over each of `SPANS` and by the mean absolute
        one, but one alone with ``selection="mae_50"``.
        """
        return np.take_along_axis(self._series["standing"], self._series["chosen"], axis=1)
