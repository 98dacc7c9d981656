"""Compiled steps of the Network Weather Service's forecasters, for several series side by side.

A bank is so many series that take in values together, each in a lane of arrays that the
processor works on at once. Of a series the 51 newest values are kept as they came; these, the
31 and the 5 newest are kept in order, too, with the set of ranks that all since each value
have among the 51, a bit each: no median or trimmed mean needs sorting.
"""

from typing import NamedTuple

import numpy as np

from predictors.base import BoolArray, IntArray
from predictors.compiling import compiled, record

GAINS = (0.05, 0.10, 0.15, 0.20, 0.30, 0.40, 0.50, 0.75)
ADAPTIVE = ((5, 21, 10, 1), (21, 51, 30, 5))
"""Smallest, largest and first window, and offset, of each adaptive median."""
VALUES = 51
MIDDLE, FEW = 31, 5
STEP = 17
"""Rows that a compiled loop takes at a time."""
OF_MIDDLE, OF_FEW, IN_ORDER = 3 * STEP + 1, 5 * STEP + 2, 6 * STEP + 3
"""Rows where so many of the newest begin among those in order, and all; 51 begin at 0."""
PRIMARIES = 18
WIDTH = 16
"""Series side by side."""
TRIM = 0.3
TIE = 1e-10

_GAINS = np.array(GAINS)
_ADAPTIVE = np.array(ADAPTIVE)
SHORT, LONG = ADAPTIVE[0][1], ADAPTIVE[1][1]


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
    """Return banks with room for so many series, before any value.

    Series p stands in lane p % WIDTH of bank p // WIDTH. Of each bank: how many values
    its series have had, and of each series its values, the newest of them in order, the
    sets of ranks there of all values since each, standing forecasts, their absolute
    errors and sums of these for each selector, whom these follow, and the sum of the
    answer's own errors. After the last selector come the answer, and the selectors' own
    sums. The last fields hold nothing from one value to the next.
    """
    selectors, history = len(rule.spans), int(rule.spans.max())
    fields = [
        ("count", np.int64),
        ("value", np.float64, WIDTH),
        ("total", np.float64, WIDTH),
        ("recent", np.float64, (2 * VALUES, WIDTH)),
        ("ordered", np.float64, (IN_ORDER, WIDTH)),
        ("ranks", np.int64, (VALUES, WIDTH)),
        ("windows", np.int64, (2, WIDTH)),
        ("candidates", np.float64, (2, 3, WIDTH)),
        ("standing", np.float64, (PRIMARIES, WIDTH)),
        ("errors", np.float64, (history, PRIMARIES * WIDTH)),
        ("scores", np.float64, (selectors + 1, PRIMARIES * WIDTH)),
        ("chosen", np.int64, (selectors + 1, WIDTH)),
        ("low", np.float64, WIDTH),
        ("high", np.float64, WIDTH),
        ("at", np.int64, WIDTH),
        ("gone", np.int64, WIDTH),
        ("set", np.int64, WIDTH),
    ]
    banks = np.zeros(-(-series // WIDTH), record(fields))
    for a, row in enumerate(ADAPTIVE):
        banks["windows"][:, a] = row[2]
    banks["ordered"] = np.inf
    return banks


@compiled
def _put(bank, first, steps, newest):  # type: ignore[no-untyped-def]
    """Put values among so many of the newest, in order from a row on; those before these leave.

    `bank.at` becomes the rank of each.
    """
    ordered, at, above, leaving = bank.ordered, bank.at, bank.low, bank.high
    oldest = (bank.count - newest) % VALUES
    for k in range(WIDTH):
        old = bank.recent[oldest, k]
        leaving[k] = old if bank.count >= newest else np.inf
        above[k], at[k] = -np.inf, 0
    for step in range(first, first + steps * STEP, STEP):
        for k in range(WIDTH):
            value, old, before, rank = bank.value[k], leaving[k], above[k], at[k]
            for i in range(STEP):
                own, after = ordered[step + i, k], ordered[step + i + 1, k]
                own = own if own < old else after
                higher = before if before > value else value
                ordered[step + i, k] = own if own <= value else higher
                rank += 1 if own <= value else 0
                before = own
            above[k], at[k] = before, rank


@compiled
def _keep(bank):  # type: ignore[no-untyped-def]
    """Put values into ring and order; the oldest of 51 leaves both."""
    ranks, at, gone = bank.ranks, bank.at, bank.gone
    slot, size = bank.count % VALUES, min(bank.count, VALUES)
    following = (slot + 1) % VALUES
    for k in range(WIDTH):
        gone[k] = size
    if size == VALUES:
        for k in range(WIDTH):
            gone[k] = _lowest(ranks[slot, k] & ~ranks[following, k])
    _put(bank, OF_FEW, 1, FEW)
    _put(bank, OF_MIDDLE, 2, MIDDLE)
    _put(bank, 0, 3, VALUES)
    for i in range(VALUES):
        for k in range(WIDTH):
            stay, below = (1 << gone[k]) - 1, (1 << at[k]) - 1
            own = ranks[i, k]
            own = (own & stay) | ((own >> 1) & ~stay)
            ranks[i, k] = (own & below) | ((own & ~below) << 1) | (below + 1)
    for k in range(WIDTH):
        ranks[slot, k] = 1 << at[k]
        bank.recent[slot, k], bank.recent[slot + VALUES, k] = bank.value[k], bank.value[k]
        bank.total[k] += bank.value[k]
    bank.count += 1


@compiled
def _lowest(ranks: int) -> int:
    """Return the lowest of a set of ranks, a bit each: how many zeros come before its first one.

    Of an empty set 64, a row that there is: in lanes that nobody uses sets may be empty. The
    zeros are counted as ones, in ever larger groups of bits.
    """
    below = (ranks & -ranks) - 1
    pairs = below - ((below >> 1) & 0x5555555555555555)
    fours = (pairs & 0x3333333333333333) + ((pairs >> 2) & 0x3333333333333333)
    bytes_ = (fours + (fours >> 4)) & 0x0F0F0F0F0F0F0F0F
    return (bytes_ * 0x0101010101010101) >> 56


@compiled
def _middle(bank, first, size, median, trimmed):  # type: ignore[no-untyped-def]
    """Renew median and mean of the middle 40 % of so many values, in order from a row on."""
    ordered, standing, cut = bank.ordered, bank.standing, int(TRIM * size)
    for k in range(WIDTH):
        low, high = ordered[first + (size - 1) // 2, k], ordered[first + size // 2, k]
        standing[median, k] = low if size % 2 else (low + high) / 2
    for k in range(WIDTH):
        total = 0.0
        for i in range(cut, size - cut):
            total += ordered[first + i, k]
        standing[trimmed, k] = total / (size - 2 * cut)


@compiled
def _means(bank):  # type: ignore[no-untyped-def]
    """Renew the means of the newest 31 and 5; of fewer values the rest are zeros."""
    recent, standing, newest = bank.recent, bank.standing, (bank.count - 1) % VALUES + VALUES
    some, few = min(bank.count, MIDDLE), min(bank.count, FEW)
    for k in range(WIDTH):
        total = 0.0
        for age in range(FEW):
            total += recent[newest - age, k]
        standing[13, k] = total / few
    for k in range(WIDTH):
        total = 0.0
        for age in range(MIDDLE):
            total += recent[newest - age, k]
        standing[12, k] = total / some


@compiled
def _windowed(bank, a, c, most, change):  # type: ignore[no-untyped-def]
    """Renew a candidate of an adaptive median, whose window is so much longer than the present."""
    ranks, ordered, windows, half, set_ = (
        bank.ranks,
        bank.ordered,
        bank.windows,
        bank.gone,
        bank.set,
    )
    least, size, start = _ADAPTIVE[a, 0], min(bank.count, VALUES), bank.count % VALUES
    for k in range(WIDTH):
        number = min(size, max(least, min(most, windows[a, k] + change)))
        slot = start - number
        slot += VALUES if slot < 0 else 0
        half[k], set_[k] = (number - 1) >> 1, ranks[slot, k]
    for k in range(WIDTH):
        below, rest = half[k], set_[k]
        for i in range((most - 1) // 2):
            rest = rest & (rest - 1) if i < below else rest
        set_[k] = rest
    for k in range(WIDTH):
        number = min(size, max(least, min(most, windows[a, k] + change)))
        low = ordered[_lowest(set_[k]), k]
        high = ordered[_lowest(set_[k] & (set_[k] - 1) | 1 << VALUES), k]
        bank.candidates[a, c, k] = low if number & 1 else (low + high) / 2


@compiled
def _order_statistics(bank):  # type: ignore[no-untyped-def]
    """Renew medians and trimmed means; places 15 and 16 are written twice."""
    size, standing, candidates = min(bank.count, VALUES), bank.standing, bank.candidates
    if size == VALUES:  # sizes that are known when this is compiled make it fast
        _middle(bank, OF_FEW, FEW, 11, 15)
        _middle(bank, OF_MIDDLE, MIDDLE, 10, 14)
        _middle(bank, 0, VALUES, 16, 15)
    else:
        _middle(bank, OF_FEW, min(size, FEW), 11, 15)
        _middle(bank, OF_MIDDLE, min(size, MIDDLE), 10, 14)
        _middle(bank, 0, size, 16, 15)
    _windowed(bank, 0, 0, SHORT, 0)
    _windowed(bank, 0, 1, SHORT, -_ADAPTIVE[0, 3])
    _windowed(bank, 0, 2, SHORT, _ADAPTIVE[0, 3])
    _windowed(bank, 1, 0, LONG, 0)
    _windowed(bank, 1, 1, LONG, -_ADAPTIVE[1, 3])
    _windowed(bank, 1, 2, LONG, _ADAPTIVE[1, 3])
    for k in range(WIDTH):
        standing[16, k], standing[17, k] = candidates[0, 0, k], candidates[1, 0, k]


@compiled
def _adapt(bank):  # type: ignore[no-untyped-def]
    """Move each adaptive window by one towards whichever neighbour erred less on the value."""
    for a in range(2):
        least, most = _ADAPTIVE[a, 0], _ADAPTIVE[a, 1]
        if bank.count < most:
            continue
        windows, candidates, value = bank.windows[a], bank.candidates[a], bank.value
        for k in range(WIDTH):
            now = (candidates[0, k] - value[k]) ** 2
            less = (candidates[1, k] - value[k]) ** 2
            more = (candidates[2, k] - value[k]) ** 2
            if less < now and less <= more:
                windows[k] = max(least, windows[k] - 1)
            elif more < now:
                windows[k] = min(most, windows[k] + 1)


@compiled
def _forecast(bank):  # type: ignore[no-untyped-def]
    """Renew what the primary forecasters say."""
    standing, value = bank.standing, bank.value
    for k in range(WIDTH):
        standing[0, k] = value[k]
        standing[1, k] = bank.total[k] / bank.count
    for g in range(len(_GAINS)):
        for k in range(WIDTH):
            old = standing[2 + g, k] if bank.count > 1 else value[k]
            standing[2 + g, k] = old + _GAINS[g] * (value[k] - old)
    _means(bank)
    _order_statistics(bank)


@compiled
def _smallest(bank, choice, number):  # type: ignore[no-untyped-def]
    """Choose the first of so many smallest sums; what differs by rounding alone is a tie."""
    sums, chosen = bank.scores, bank.chosen
    for k in range(WIDTH):
        least, largest, smallest = sums[choice, k], sums[choice, k], 0
        for f in range(1, number):
            own = sums[choice, f * WIDTH + k]
            least, largest = own if own < least else least, own if own > largest else largest
        limit = least + TIE * largest
        for f in range(number - 1, -1, -1):
            smallest = f if sums[choice, f * WIDTH + k] <= limit else smallest
        chosen[choice, k] = smallest


@compiled
def _score(bank, spans, squared):  # type: ignore[no-untyped-def]
    """Score the primaries' standing forecasts against the value, for every selector.

    What leaves a selector's span is taken out of its sums.
    """
    scored, errors, scores, standing = bank.count - 1, bank.errors, bank.scores, bank.standing
    row = scored % len(errors)
    for s in range(len(spans)):
        square, gone = squared[s], (scored - spans[s]) % len(errors)
        if 0 < spans[s] <= scored:
            for j in range(PRIMARIES * WIDTH):
                error = errors[gone, j]
                scores[s, j] -= error * error if square else error
    for k in range(WIDTH):
        for f in range(PRIMARIES):
            errors[row, f * WIDTH + k] = abs(standing[f, k] - bank.value[k])
    for s in range(len(spans)):
        square = squared[s]
        for j in range(PRIMARIES * WIDTH):
            error = errors[row, j]
            scores[s, j] += error * error if square else error


@compiled
def _score_selectors(bank, by_squares):  # type: ignore[no-untyped-def]
    """Score the selectors, where there are several to choose from."""
    standing, chosen, value = bank.standing, bank.chosen, bank.value
    selectors = len(chosen) - 1
    if selectors > 1:
        for s in range(selectors):
            for k in range(WIDTH):
                error = abs(standing[chosen[s, k], k] - value[k])
                bank.scores[selectors, s * WIDTH + k] += error * error if by_squares else error


@compiled
def take_values(bank, rule):  # type: ignore[no-untyped-def]
    """Take in `bank.value`, one of each series; score standing forecasts first, then renew all.

    Parameters
    ----------
    bank : numpy.record of what `without_values` returns
    rule : Rule
    """
    if bank.count > 0:
        _score_selectors(bank, rule.by_squares)
        _score(bank, rule.spans, rule.squared)
        _adapt(bank)
    _keep(bank)
    _forecast(bank)
    selectors = len(rule.spans)
    for s in range(selectors):
        _smallest(bank, s, PRIMARIES)
    if selectors > 1:
        _smallest(bank, selectors, selectors)


@compiled
def begin_with_ones(bank, k):  # type: ignore[no-untyped-def]
    """Let the series in a lane of a bank be one of ones, as many as the others have values."""
    count, size = bank.count, min(bank.count, VALUES)
    for i in range(len(bank.recent)):
        bank.recent[i, k] = 1.0 if i % VALUES < count else 0.0
    bank.ordered[:, k] = np.inf
    for first, newest in ((0, VALUES), (OF_MIDDLE, MIDDLE), (OF_FEW, FEW)):
        bank.ordered[first : first + min(count, newest), k] = 1.0
    for age in range(size):
        bank.ranks[(count - 1 - age) % VALUES, k] = (1 << size) - (1 << (size - 1 - age))
    for a in range(len(ADAPTIVE)):
        bank.windows[a, k], bank.candidates[a, :, k] = ADAPTIVE[a][2], 1.0
    bank.standing[:, k], bank.chosen[:, k], bank.total[k] = 1.0, 0, count
    bank.errors[:, k::WIDTH], bank.scores[:, k::WIDTH] = 0.0, 0.0


@compiled
def answer_of(bank, k, rule) -> float:  # type: ignore[no-untyped-def]
    """Return the forecast next value of the series in a lane of a bank."""
    if bank.count == 0:
        return float(min(max(rule.empty, rule.low), rule.high))
    standing = bank.standing[bank.chosen[bank.chosen[-1, k], k], k]
    return float(min(max(standing, rule.low), rule.high))


@compiled
def take_block(block, banks, each, rule, before):  # type: ignore[no-untyped-def]
    """Take in block[time, series]; write what was forecast of each value.

    Parameters
    ----------
    block : numpy.ndarray of float, shape (times, series)
        NaN is left out; there may be some where a bank has one series.
    banks : numpy.ndarray of such records
    each : int
        Series a bank.
    rule : Rule
    before : numpy.ndarray of float, shape (times, series)
    """
    for b in range(len(banks)):
        bank, first = banks[b], b * each
        lanes = min(each, block.shape[1] - first)
        for t in range(block.shape[0]):
            for k in range(lanes):
                before[t, first + k] = answer_of(bank, k, rule)
            if each > 1 or not np.isnan(block[t, first]):
                for k in range(lanes):
                    bank.value[k] = block[t, first + k]
                take_values(bank, rule)


@compiled
def answers_of(banks, places, rule):  # type: ignore[no-untyped-def]
    """Return the forecast next values of the series in some places."""
    found = np.empty(len(places))
    for s in range(len(places)):
        found[s] = answer_of(banks[places[s] // WIDTH], places[s] % WIDTH, rule)
    return found
