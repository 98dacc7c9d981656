"""Whole shares of a number of processors within each job's limits, and moves in an order."""

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.state.view import place_up_to


@compiled
def fill_level(
    weights: FloatArray, total: float, least: FloatArray, largest: FloatArray
) -> FloatArray:
    """Return shares proportional to weights, clipped to limits, that use up the total.

    This is water-filling: who would get less than the least gets the least, who
    would get more than the largest gets the largest, and the others share the
    rest in proportion.

    Parameters
    ----------
    weights : numpy.ndarray of float, shape (n,), above 0
    total : float
        At least the sum of `least`.
    least, largest : numpy.ndarray of float, shape (n,)

    Examples
    --------
    >>> low, high = np.array([1.0, 1.0, 1.0]), np.array([2.0, 8.0, 8.0])
    >>> fill_level(np.ones(3), 12.0, low, high).tolist()
    [2.0, 5.0, 5.0]
    """
    if total >= largest.sum():
        return largest
    number, lowest = weights.size, least.sum()
    levels, slopes = np.empty(2 * number), np.empty(2 * number)
    for k in range(number):
        levels[k], slopes[k] = least[k] / weights[k], weights[k]
        levels[number + k], slopes[number + k] = largest[k] / weights[k], -weights[k]
    order = np.argsort(levels, kind="mergesort")
    height, slope, raised, filled = levels[order[0]], slopes[order[0]], 0.0, lowest
    for place in order[1:]:
        raised += slope * (levels[place] - height)
        if raised + lowest > total:
            break
        height, slope, filled = levels[place], slope + slopes[place], raised + lowest
    if slope > 0:
        height += (total - filled) / slope
    shares: FloatArray = np.minimum(np.maximum(weights * height, least), largest)
    return shares


@compiled
def apportion(weights: FloatArray, total: int, least: IntArray, largest: IntArray) -> IntArray:
    """Return whole shares by weight within limits; the largest remainders are rounded up.

    Ties go to the first; the least is never undercut.

    Examples
    --------
    >>> apportion(np.array([1.0, 3.0, 5.0]), 10, np.array([1, 1, 1]), np.array([9, 9, 9])).tolist()
    [1, 3, 6]
    """
    lowest, highest = least.astype(np.float64), largest.astype(np.float64)
    exact = fill_level(weights, float(total), lowest, highest)
    shares: IntArray = np.floor(exact + 1e-9).astype(np.int64)
    over = min(total, int(largest.sum())) - int(shares.sum())
    if over > 0:
        remainder = np.where(shares < largest, np.rint((exact - shares) * 1e9) / 1e9, -1.0)
        shares[np.argsort(-remainder, kind="mergesort")[:over]] += 1
    return shares


@compiled
def in_equal_parts(total: int, least: IntArray, largest: IntArray) -> IntArray:
    """Return what `apportion` does where all weigh the same.

    Examples
    --------
    >>> in_equal_parts(11, np.array([1, 1, 6]), np.array([9, 9, 9])).tolist()
    [3, 2, 6]
    """
    level, too_high = 0, total + 1
    while too_high - level > 1:
        middle, wanted = (level + too_high) // 2, 0
        for k in range(least.size):
            wanted += min(max(middle, least[k]), largest[k])
        level, too_high = (middle, too_high) if wanted <= total else (level, middle)
    shares = np.minimum(np.maximum(level, least), largest)
    left = total - shares.sum()
    for k in range(least.size):
        more = left > 0 and least[k] <= level < largest[k]
        shares[k] += more
        left -= more
    return shares


def snap(shares: IntArray, total: int, allowed: list[IntArray | None]) -> IntArray:
    """Return the shares lowered to allowed counts, what becomes free handed on in order.

    Parameters
    ----------
    shares : numpy.ndarray of int, shape (n,)
    total : int
        Processors that may be handed out.
    allowed : list of (numpy.ndarray of int or None), length n
        Ascending counts; None where every count is allowed.

    Examples
    --------
    >>> powers = np.array([1, 2, 4, 8])
    >>> snap(np.array([3, 7]), 10, [powers, powers]).tolist()
    [2, 8]
    """
    snapped = shares.copy()
    for place, counts in enumerate(allowed):
        if counts is not None:
            snapped[place] = counts[place_up_to(counts, shares[place])]
    left = total - int(snapped.sum())
    if left > 0:
        for place in np.argsort(snapped - shares, kind="stable").tolist():
            counts = allowed[place]
            if counts is None or snapped[place] >= shares[place]:
                continue
            where = int(np.searchsorted(counts, snapped[place], side="right"))
            if where < counts.size and counts[where] - snapped[place] <= left:
                left -= int(counts[where] - snapped[place])
                snapped[place] = counts[where]
    return snapped


@compiled
def shrink_to_fit(counts: IntArray, least: IntArray, total: int, victims: IntArray) -> None:
    """Lower counts in place, one victim after the other, until they fit in the total.

    Examples
    --------
    >>> counts = np.array([4, 4, 2])
    >>> shrink_to_fit(counts, np.array([1, 1, 2]), 7, np.array([0, 1]))
    >>> counts.tolist()
    [1, 4, 2]
    """
    over = int(counts.sum()) - total
    for place in victims:
        if over <= 0:
            return
        given = min(over, int(counts[place] - least[place]))
        counts[place] -= given
        over -= given


@compiled
def hand_out(counts: IntArray, limits: IntArray, total: int, takers: IntArray) -> None:
    """Raise counts in place up to limits, one taker after the other, as the total allows.

    Examples
    --------
    >>> counts = np.array([1, 1])
    >>> hand_out(counts, np.array([4, 9]), 8, np.array([0, 1]))
    >>> counts.tolist()
    [4, 4]
    """
    left = total - int(counts.sum())
    for place in takers:
        if left <= 0:
            return
        taken = min(left, int(limits[place] - counts[place]))
        if taken > 0:
            counts[place] += taken
            left -= taken


@compiled
def level(counts: IntArray, least: IntArray, largest: IntArray, total: int) -> None:
    """Take or give processor by processor, always from the highest or to the lowest rank.

    The rank is (n - least)/(largest - least); ties go to the first.
    """
    width, change = np.maximum(largest - least, 1), total - int(counts.sum())
    step, bound = (1, largest) if change > 0 else (-1, least)
    ranks = np.where(counts == bound, np.inf, step * (counts - least) / width)
    for _ in range(abs(change) if ranks.size > 0 else 0):
        place = ranks.argmin()
        if ranks[place] == np.inf:
            return
        counts[place] += step
        rank = step * (counts[place] - least[place]) / width[place]
        ranks[place] = np.inf if counts[place] == bound[place] else rank
