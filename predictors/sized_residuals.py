"""Runs of many sizes against a model with the size as an input, count by count."""

from math import exp, nan

import numpy as np
from numba import njit

from predictors.base import BoolArray, FloatArray, IntArray
from predictors.residuals import corrected

LIKE = np.log(2.0)
"""A run of a size that is off by this much, as a logarithm, counts half."""


@njit(cache=True)
def averages(
    places: IntArray, ratios: FloatArray, sizes: FloatArray, size: float, number: int
) -> tuple[FloatArray, FloatArray, float]:
    """Return the mean ratio at each measured count, runs of like size first, and their number.

    Besides, the sum of their squared distances to these means, weighed as the runs are.
    However far their sizes are, runs at a count are as many runs there.

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
    means, weights, squares = np.zeros(number), np.zeros(number), np.zeros(number)
    runs = np.zeros(number)
    for i in range(places.size):
        off = (sizes[i] - size) / LIKE
        weight = 1.0 if np.isnan(off) else 1.0 / (1.0 + off * off)
        means[places[i]] += weight * ratios[i]
        weights[places[i]] += weight
        squares[places[i]] += weight * ratios[i] * ratios[i]
        runs[places[i]] += 1.0
    total = 0.0
    for k in range(number):
        means[k] /= weights[k]
        total += runs[k] * max(squares[k] / weights[k] - means[k] * means[k], 0.0)
    return means, runs, total


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
    >>> said = np.array([8.0, 1.0])
    >>> runs.corrected(said, runs.counts, said, 1.0).round(2).tolist()
    [8.0, 1.97]
    """

    def __init__(
        self, counts: FloatArray, runtimes: FloatArray, sizes: FloatArray, predicted: FloatArray
    ) -> None:
        distinct, places = np.unique(counts, return_inverse=True)
        self.counts: IntArray = distinct.astype(np.int64)
        self._places: IntArray = places
        self._ratios = np.log(runtimes / predicted)
        self._sizes = np.log(sizes)

    def number(self, nprocs: int) -> int:
        """Return how many runs are kept at a count."""
        return int(np.count_nonzero(self._at(nprocs)))

    def mean(self, nprocs: int) -> float:
        """Return the geometric mean of the ratios at a count, NaN without any."""
        here = self._at(nprocs)
        return exp(self._ratios[here].mean()) if here.any() else nan

    def corrected(
        self,
        runtimes: FloatArray,
        counts: IntArray,
        said: FloatArray,
        size: float,
        other: FloatArray | None = None,
    ) -> FloatArray:
        """Return what a model says of a job of a size as the runs correct it.

        Parameters
        ----------
        runtimes : numpy.ndarray of float, shape (k,), seconds
        counts : numpy.ndarray of int, shape (k,)
        said : numpy.ndarray of float, shape (m,), seconds
            What it says at the measured counts.
        size : float
            NaN where hidden.
        other : numpy.ndarray of float, shape (m,), seconds, optional
            What the model that the runs were compared with says there, if it is another.
        """
        means, runs, squares = averages(
            self._places, self._ratios, self._sizes, float(np.log(size)), self.counts.size
        )
        if other is not None:
            means += np.log(other / said)
        found: FloatArray = corrected(runtimes, counts, said, self.counts, means, runs, squares)
        return found

    def _at(self, nprocs: int) -> BoolArray:
        return np.asarray(self.counts[self._places] == nprocs, bool)
