"""Compiled steps of the Network Weather Service's forecasters: one value of one series at a time.

Of a series the 51 newest values are kept as they came and in order, with the set of
ranks that so many of the newest have there, a bit each: no median or trimmed mean needs sorting.
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from predictors.base import BoolArray, IntArray
from predictors.compiling import njit

GAINS = (0.05, 0.10, 0.15, 0.20, 0.30, 0.40, 0.50, 0.75)
ADAPTIVE = ((5, 21, 10, 1), (21, 51, 30, 5))
"""Smallest, largest and first window, and offset, of each adaptive median."""
VALUES = 51
PRIMARIES = 18
TRIM = 0.3
TIE = 1e-10

_GAINS = np.array(GAINS)
_ADAPTIVE = np.array(ADAPTIVE)


class Rule(NamedTuple):
    """Whose forecast is the answer.

    Attributes
    ----------
    spans, squared : numpy.ndarray of int and of bool, shape (selectors,)
        Over how many of the latest values each selector judges (0: over all), and
        whether by squared errors. Of several the one with the least errors of its own answers.
    by_squares : bool
        Whether these errors are squared.
    low, high, empty : float
        What answers are kept within, and the answer without values.
    """

    spans: IntArray
    squared: BoolArray
    by_squares: bool
    low: float
    high: float
    empty: float


def without_values(series: int, rule: Rule) -> np.ndarray:
    """Return what is kept of so many series, before any value.

    Of each: its values, the newest of them in order and the ranks of so many of the
    newest, standing forecasts, their absolute errors and sums of these for each
    selector, whom these follow, and the sums of the selectors' and of the answer's own errors.
    """
    selectors, history = len(rule.spans), int(rule.spans.max())
    fields = [
        ("count", np.int64),
        ("total", np.float64),
        ("recent", np.float64, 2 * VALUES),
        ("ordered", np.float64, VALUES),
        ("ranks", np.int64, VALUES + 1),
        ("windows", np.int64, 2),
        ("candidates", np.float64, (2, 3)),
        ("standing", np.float64, PRIMARIES),
        ("errors", np.float64, (history, PRIMARIES)),
        ("scores", np.float64, (selectors, PRIMARIES)),
        ("chosen", np.int64, (selectors,)),
        ("misses", np.float64, (selectors,)),
        ("answer", np.int64),
        ("missed", np.float64),
    ]
    table = np.zeros(series, np.dtype(fields, align=True))
    table["windows"] = [row[2] for row in ADAPTIVE]
    return table


@njit(cache=True)
def _keep(series, value):  # type: ignore[no-untyped-def]
    """Put a value into ring and order; the oldest of 51 leaves both."""
    ordered, ranks, slot = series.ordered, series.ranks, series.count % VALUES
    size = min(series.count, VALUES)
    gone = size
    if size == VALUES:
        gone = _lowest(ranks[VALUES] & ~ranks[VALUES - 1])
    at = 0
    for i in range(size):
        at += ordered[i] <= value
    at -= gone < at
    for i in range(gone, at, -1):
        ordered[i] = ordered[i - 1]
    for i in range(gone, at):
        ordered[i] = ordered[i + 1]
    ordered[at] = value
    stay, below, own = (1 << gone) - 1, (1 << at) - 1, 1 << at
    for age in range(VALUES, 0, -1):
        before = ranks[age - 1]
        before = (before & stay) | ((before >> 1) & ~stay)
        ranks[age] = (before & below) | ((before & ~below) << 1) | own
    series.recent[slot], series.recent[slot + VALUES] = value, value
    series.total += value
    series.count += 1


def _count_zeros(typing, mask):  # type: ignore[no-untyped-def]
    def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), code


_lowest: Any = intrinsic(_count_zeros)
"""Returns the lowest of a set of ranks, a bit each: how many zeros come before its first one."""


@njit(cache=True)
def _median(ordered, mask, size):  # type: ignore[no-untyped-def]
    """Return the median of the `size` values whose ranks are in a set."""
    for _ in range((size - 1) // 2):
        mask &= mask - 1
    low = ordered[_lowest(mask)]
    if size % 2:
        return low
    return (low + ordered[_lowest(mask & (mask - 1))]) / 2


@njit(cache=True)
def _trimmed(ordered, mask, size):  # type: ignore[no-untyped-def]
    """Return the mean of such values without the lowest and highest 30 %."""
    cut = int(TRIM * size)
    for _ in range(cut):
        mask &= mask - 1
    total = 0.0
    for _ in range(size - 2 * cut):
        total += ordered[_lowest(mask)]
        mask &= mask - 1
    return total / (size - 2 * cut)


@njit(cache=True)
def _means(series):  # type: ignore[no-untyped-def]
    """Renew the means of the newest 31 and 5."""
    standing, recent = series.standing, series.recent
    end, total = (series.count - 1) % VALUES + VALUES, 0.0
    size, few = min(series.count, 31), min(series.count, 5)
    for age in range(few):
        total += recent[end - age]
    standing[13] = total / few
    for age in range(few, size):
        total += recent[end - age]
    standing[12] = total / size


@njit(cache=True)
def _order_statistics(series):  # type: ignore[no-untyped-def]
    """Renew medians and trimmed means, from the ranks of so many of the newest."""
    ranks, size = series.ranks, min(series.count, VALUES)
    ordered, standing = series.ordered, series.standing
    some, few = min(size, 31), min(size, 5)
    standing[10], standing[11] = (
        _median(ordered, ranks[some], some),
        _median(ordered, ranks[few], few),
    )
    standing[14] = _trimmed(ordered, ranks[some], some)
    total, cut = 0.0, int(TRIM * size)
    for i in range(cut, size - cut):
        total += ordered[i]
    standing[15] = total / (size - 2 * cut)
    for a in range(2):
        window, offset = series.windows[a], _ADAPTIVE[a, 3]
        less, more = max(_ADAPTIVE[a, 0], window - offset), min(_ADAPTIVE[a, 1], window + offset)
        for c, wanted in enumerate((window, less, more)):
            number = min(size, wanted)
            series.candidates[a, c] = _median(ordered, ranks[number], number)
        standing[16 + a] = series.candidates[a, 0]


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
    standing = series.standing
    standing[0] = value
    standing[1] = series.total / series.count
    for g in range(len(_GAINS)):
        old = value if series.count == 1 else standing[2 + g]
        standing[2 + g] = old + _GAINS[g] * (value - old)
    _means(series)
    _order_statistics(series)


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
def _score(series, value, spans, squared):  # type: ignore[no-untyped-def]
    """Score the primaries' standing forecasts against `value`, for every selector.

    What leaves a selector's span is taken out of its sums.
    """
    scored, errors, scores = series.count - 1, series.errors, series.scores
    history, standing = len(errors), series.standing
    for k in range(len(spans)):
        if 0 < spans[k] <= scored:
            gone = errors[(scored - spans[k]) % history]
            for f in range(PRIMARIES):
                scores[k, f] -= gone[f] * gone[f] if squared[k] else gone[f]
    row = errors[scored % history]
    for f in range(PRIMARIES):
        row[f] = abs(standing[f] - value)
    for k in range(len(spans)):
        for f in range(PRIMARIES):
            scores[k, f] += row[f] * row[f] if squared[k] else row[f]


@njit(cache=True)
def _score_selectors(series, value, by_squares):  # type: ignore[no-untyped-def]
    """Score the answer and, where there are several to choose from, the selectors."""
    standing, chosen, misses = series.standing, series.chosen, series.misses
    error = abs(standing[chosen[series.answer]] - value)
    series.missed += error * error if by_squares else error
    if len(chosen) > 1:
        for k in range(len(chosen)):
            error = abs(standing[chosen[k]] - value)
            misses[k] += error * error if by_squares else error


@njit(cache=True)
def take_value(series, value, rule):  # type: ignore[no-untyped-def]
    """Take in a value of a series; score standing forecasts first, then renew all.

    Parameters
    ----------
    series : numpy.record of what `without_values` returns
    value : float
    rule : Rule
    """
    if series.count > 0:
        _score_selectors(series, value, rule.by_squares)
        _score(series, value, rule.spans, rule.squared)
        _adapt(series, value)
    _keep(series, value)
    _forecast(series, value)
    for k in range(len(rule.spans)):
        series.chosen[k] = _smallest(series.scores[k])
    if len(rule.spans) > 1:
        series.answer = _smallest(series.misses)


@njit(cache=True)
def answer_of(series, rule):  # type: ignore[no-untyped-def]
    """Return the forecast next value of a series."""
    if series.count == 0:
        return min(max(rule.empty, rule.low), rule.high)
    return min(max(series.standing[series.chosen[series.answer]], rule.low), rule.high)


@njit(cache=True)
def take_block(block, table, rows, rule, before):  # type: ignore[no-untyped-def]
    """Take in block[time, series], leaving out NaN; write what was forecast of each value.

    Parameters
    ----------
    block : numpy.ndarray of float, shape (times, series)
    table : numpy.ndarray of such records
    rows : numpy.ndarray of int, shape (series,)
        Where each series stands in the table.
    rule : Rule
    before : numpy.ndarray of float, shape (times, series)
    """
    for s in range(block.shape[1]):
        series = table[rows[s]]
        for t in range(block.shape[0]):
            before[t, s] = answer_of(series, rule)
            if not np.isnan(block[t, s]):
                take_value(series, block[t, s], rule)


@njit(cache=True)
def answers_of(table, rows, rule):  # type: ignore[no-untyped-def]
    """Return the forecast next values of some rows of a table."""
    found = np.empty(len(rows))
    for s in range(len(rows)):
        found[s] = answer_of(table[rows[s]], rule)
    return found
