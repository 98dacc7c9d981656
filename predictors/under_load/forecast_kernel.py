"""The compiled heart of the forecasters: one pass over all series for each new value."""

import numba
import numpy as np

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


@numba.njit(cache=True)
def _latest(recent, count, window):  # type: ignore[no-untyped-def]
    """Return the latest values, at most `window`, the newest first."""
    size = min(count, window, VALUES)
    out = np.empty(size)
    for i in range(size):
        out[i] = recent[(count - 1 - i) % VALUES]
    return out


@numba.njit(cache=True)
def _insert(ordered, size, value):  # type: ignore[no-untyped-def]
    """Insert a value into the first `size` sorted ones."""
    i = size
    while i > 0 and ordered[i - 1] > value:
        ordered[i] = ordered[i - 1]
        i -= 1
    ordered[i] = value


@numba.njit(cache=True)
def _middle(ordered, size):  # type: ignore[no-untyped-def]
    """Return the median of the first `size` sorted values."""
    half = size // 2
    return ordered[half] if size % 2 else (ordered[half - 1] + ordered[half]) / 2


@numba.njit(cache=True)
def _trimmed(ordered, size):  # type: ignore[no-untyped-def]
    """Return the mean without the lowest and highest 30 % of the first `size` sorted values."""
    cut = int(TRIM * size)
    return ordered[cut : size - cut].mean()


@numba.njit(cache=True)
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


@numba.njit(cache=True)
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


@numba.njit(cache=True)
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


@numba.njit(cache=True, fastmath={"nnan", "nsz", "reassoc"})
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


@numba.njit(cache=True)
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


@numba.njit(cache=True)
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


@numba.njit(cache=True)
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
