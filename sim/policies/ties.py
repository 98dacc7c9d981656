"""When two figures count as equal: one tolerance for every choice over curves and plans.

Sums and quotients of floating-point numbers that should be equal differ in their
last digits. A choice that compared them to the bit would be decided by rounding; so
a figure counts as less than another only if it is so by more than `TIE` of the
larger one. Among equals the smaller count is taken, then the earlier job.
"""

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled

TIE = 1e-9
"""Relative difference up to which two figures are equal."""


@compiled(inline="always")
def is_less(one: float, other: float) -> bool:
    """Say whether a figure is less than another by more than rounding.

    Both are of one sign, such as seconds, processor-seconds or efficiencies; a
    difference of figures is compared on the scale of what it is the difference of
    (see `is_less_on`).

    Examples
    --------
    >>> is_less(1.0, 2.0), is_less(1.0, 1.0 + 1e-12), is_less(1.0, np.inf)
    (True, False, True)
    """
    return one < other and (other == np.inf or other - one > TIE * max(abs(one), abs(other)))


@compiled(inline="always")
def is_less_on(one: float, other: float, scale: float) -> bool:
    """Say whether a figure is less than another by more than rounding on a scale.

    Examples
    --------
    >>> is_less_on(-1e-17, 1e-17, 1.0), is_less_on(-1e-3, 0.0, 1.0)
    (False, True)
    """
    return one < other and (other == np.inf or other - one > TIE * scale)


@compiled
def first_least(values: FloatArray) -> int:
    """Return the first place of the least of some figures, equal ones being equal.

    Parameters
    ----------
    values : numpy.ndarray of float, shape (n,), n at least 1

    Examples
    --------
    >>> first_least(np.array([3.0, 1.0 + 1e-12, 1.0, 2.0]))
    1
    """
    least = values.min()
    for k in range(values.size):
        if not is_less(least, values[k]):
            return k
    return 0


@compiled
def ranks(values: FloatArray) -> IntArray:
    """Return the rank of each figure from 0, ascending; equal figures share a rank.

    Parameters
    ----------
    values : numpy.ndarray of float, shape (n,)

    Returns
    -------
    numpy.ndarray of int, shape (n,)

    Examples
    --------
    >>> ranks(np.array([2.0, 1.0, 2.0 + 1e-12, 5.0])).tolist()
    [1, 0, 1, 2]
    """
    found = np.empty(values.size, np.int64)
    order = np.argsort(values, kind="mergesort")
    rank = 0
    for i in range(order.size):
        if i == 0:
            least = values[order[0]]
        elif is_less(least, values[order[i]]):
            rank += 1
            least = values[order[i]]
        found[order[i]] = rank
    return found
