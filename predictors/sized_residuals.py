"""Runs of many sizes against a model with the size as an input, count by count."""

from math import exp, nan

import numpy as np
from numba import njit

from predictors.base import BoolArray, FloatArray, IntArray
from predictors.residuals import PRIOR_RUNS, factors

LIKE = np.log(2.0)
"""A run of a size that is off by this much, as a logarithm, counts half."""


@njit(cache=True)
def averages(
    places: IntArray, ratios: FloatArray, sizes: FloatArray, size: float, number: int
) -> tuple[FloatArray, FloatArray]:
    """Return the mean ratio at each measured count, runs of like size first, and their weight.

    Parameters
    ----------
    places : numpy.ndarray of int, shape (n,)
        Of each run's count among the measured ones.
    ratios, sizes : numpy.ndarray of float, shape (n,)
        Logarithms; where sizes are NaN, all runs count alike.
    size : float
        Logarithm of the size that is asked about.
    number : int
        How many counts were measured.
    """
    means, weights = np.zeros(number), np.zeros(number)
    for i in range(places.size):
        off = (sizes[i] - size) / LIKE
        weight = 1.0 if np.isnan(off) else 1.0 / (1.0 + off * off)
        means[places[i]] += weight * ratios[i]
        weights[places[i]] += weight
    return means / weights, weights


class SizedRatios:
    """The ratios run / model of the latest runs, by count and size.

    Parameters
    ----------
    counts, runtimes, sizes : numpy.ndarray, shape (n,)
        The runs, at least one; sizes are NaN where hidden.
    predicted : numpy.ndarray of float, shape (n,)
        The model's runtimes of these very runs.

    Attributes
    ----------
    counts : numpy.ndarray of int, shape (m,)
        The measured counts, ascending.

    Examples
    --------
    >>> known = np.array([1, 8, 8]), np.array([8.0, 2.0, 20.0]), np.array([1.0, 1.0, 10.0])
    >>> runs = SizedRatios(*known, np.array([8.0, 1.0, 10.0]))
    >>> runs.number(8), round(runs.mean(8), 6)
    (2, 2.0)
    >>> runs.factors(np.array([1, 8]), 1.0).round(2).tolist()
    [1.0, 1.61]
    """

    def __init__(
        self, counts: FloatArray, runtimes: FloatArray, sizes: FloatArray, predicted: FloatArray
    ) -> None:
        distinct, places = np.unique(counts, return_inverse=True)
        self.counts: IntArray = distinct.astype(np.int64)
        self._places: IntArray = places
        self._ratios = np.log(runtimes / predicted)
        self._sizes = np.log(sizes)
        self._known = np.log(distinct)

    def number(self, nprocs: int) -> int:
        """Return how many runs are kept at a count."""
        return int(np.count_nonzero(self._at(nprocs)))

    def mean(self, nprocs: int) -> float:
        """Return the geometric mean of the ratios at a count, NaN without any."""
        here = self._at(nprocs)
        return exp(self._ratios[here].mean()) if here.any() else nan

    def factors(self, counts: IntArray, size: float, other: FloatArray | None = None) -> FloatArray:
        """Return what the model's answers at some counts are corrected by for a job of a size.

        Parameters
        ----------
        counts : numpy.ndarray of int, shape (k,)
        size : float
            NaN where hidden.
        other : numpy.ndarray of float, shape (m,), optional
            Where another model answers: the ratio of the one compared to it, at each
            measured count.
        """
        means, weights = averages(
            self._places, self._ratios, self._sizes, float(np.log(size)), self.counts.size
        )
        if other is not None:
            means += np.log(other)
        found: FloatArray = factors(counts, self._known, means * (weights / (weights + PRIOR_RUNS)))
        return found

    def _at(self, nprocs: int) -> BoolArray:
        return np.asarray(self.counts[self._places] == nprocs, bool)
