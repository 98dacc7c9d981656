"""Arrivals whose rate follows the hour of the day."""

import numpy as np

from workloads.base import FloatArray

DAY = 86_400.0


def arrivals_in_cycle(points: FloatArray, weights: FloatArray) -> FloatArray:
    """Return when each amount of a daily cycle has passed.

    The day is cut into equal buckets. Passing a bucket costs its weight, evenly
    over its length, so time runs fast through buckets of little weight.

    Parameters
    ----------
    points : numpy.ndarray of float, shape (n,)
        Cumulated amounts, not decreasing, from midnight of the first day.
    weights : numpy.ndarray of float, shape (b,)
        Positive cost of each bucket.

    Returns
    -------
    numpy.ndarray of float, shape (n,), seconds since that midnight

    Examples
    --------
    >>> arrivals_in_cycle(np.array([0.5, 2.0, 4.5]), np.array([1.0, 3.0])).tolist()
    [21600.0, 57600.0, 108000.0]
    """
    passed = np.concatenate([[0.0], np.cumsum(weights)])
    edges = np.linspace(0.0, DAY, len(weights) + 1)
    days, rest = np.divmod(points, passed[-1])
    return days * DAY + np.interp(rest, passed, edges)
