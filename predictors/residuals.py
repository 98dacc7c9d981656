"""What was measured is believed: a model's answers corrected by the runs at and between its counts.

The formula is ours (policies.md 3.16). A model smooths what it is fitted to; where
an application bends as no model does, its runs there know better than any fit.
"""

from math import exp, log, nan

import numpy as np
from numba import njit

from predictors.base import FloatArray, IntArray

KEPT_RUNS = 16
"""Of each count the latest so many runs are kept."""
PRIOR_RUNS = 0.5
"""A model's answer at a measured count weighs as so many runs there."""


def shrunk(mean: float, runs: int) -> float:
    """Return a count's residual: the mean ln(run / model) there, shrunk by the number of runs.

    Examples
    --------
    >>> [round(shrunk(0.3, runs), 3) for runs in (1, 2, 16)]
    [0.2, 0.24, 0.291]
    """
    return mean * (runs / (runs + PRIOR_RUNS))


@njit(cache=True)
def factors(counts: IntArray, known: FloatArray, residuals: FloatArray) -> FloatArray:
    """Return what a model's answers at some counts are corrected by: exp(r(n)).

    r is the residual at a measured count, linear in ln n between two, and held
    beyond the least and the largest.

    Parameters
    ----------
    counts : numpy.ndarray of int, shape (n,)
    known : numpy.ndarray of float, shape (m,), ascending
        ln of the measured counts, at least one.
    residuals : numpy.ndarray of float, shape (m,)

    Examples
    --------
    >>> known, residuals = np.log([2.0, 8.0]), np.log([1.0, 1.21])
    >>> factors(np.array([1, 2, 4, 8, 16]), known, residuals).round(6).tolist()
    [1.0, 1.0, 1.1, 1.21, 1.21]
    """
    found = np.empty(counts.size)
    last = known.size - 1
    for i in range(counts.size):
        at = log(counts[i])
        if at >= known[last]:
            found[i] = exp(residuals[last])
            continue
        k = 0
        while known[k] <= at:
            k += 1
        residual = residuals[k]
        if k > 0:
            share = (at - known[k - 1]) / (known[k] - known[k - 1])
            residual = residuals[k - 1] + share * (residuals[k] - residuals[k - 1])
        found[i] = exp(residual)
    return found


@njit(cache=True)
def believed(
    runtimes: FloatArray, counts: IntArray, known: FloatArray, residuals: FloatArray
) -> FloatArray:
    """Return a model's runtimes at some counts, corrected: model(n)·exp(r(n)).

    Parameters
    ----------
    runtimes : numpy.ndarray of float, seconds
        The model's, by count; NaN where it was not asked yet.
    counts, known, residuals : numpy.ndarray
        As `factors` has them.
    """
    found = factors(counts, known, residuals)
    for i in range(counts.size):
        found[i] *= runtimes[counts[i]]
    return found


class MeasuredCounts:
    """The runs kept at each processor count, as logarithms, and a model's residuals there.

    A model of the count alone is compared with the runs as they are. A model with
    more inputs is compared run by run, and only the ratios run / model come here.

    Parameters
    ----------
    kept : int
        Of each count the latest so many runs are kept.

    Examples
    --------
    >>> runs = MeasuredCounts()
    >>> for nprocs, runtime in ((1, 100.0), (4, 32.0), (4, 30.0)):
    ...     runs.add(nprocs, runtime)
    >>> runs.number(4), round(runs.mean(4), 3), runs.number(2)
    (2, 30.984, 0)
    >>> model = np.array([np.nan, 100.0, 50.0, 33.3, 25.0])
    >>> runs.compare(model)
    >>> runs.believed(model, np.array([1, 2, 4])).round(2).tolist()
    [100.0, 54.48, 29.68]
    """

    def __init__(self, kept: int = KEPT_RUNS) -> None:
        self._kept = kept
        self._logs: dict[int, list[float]] = {}
        self._means: dict[int, float] = {}
        self._places: dict[int, int] = {}
        self._model: dict[int, float] | None = None

    def number(self, nprocs: int) -> int:
        """Return how many runs are kept at a count."""
        runs = self._logs.get(nprocs)
        return 0 if runs is None else len(runs)

    def mean(self, nprocs: int) -> float:
        """Return the geometric mean of the runs kept at a count, NaN without any."""
        mean = self._means.get(nprocs)
        return nan if mean is None else exp(mean)

    def add(self, nprocs: int, runtime: float) -> None:
        """Add a run, or its ratio; the oldest one at its count goes if too many are kept there."""
        runs = self._logs.setdefault(nprocs, [])
        runs.append(log(runtime))
        if len(runs) > self._kept:
            del runs[0]
        self._means[nprocs] = sum(runs) / len(runs)
        place = self._places.get(nprocs)
        if place is not None:
            self._residuals[place] = self._residual(nprocs)
        elif self._model is None:
            self._places = {}

    def fill(self, counts: FloatArray, ratios: FloatArray) -> None:
        """Put the ratios of runs to a model, in the order of their ends, for all there is."""
        self._logs, self._means, self._model, self._places = {}, {}, None, {}
        order = np.argsort(counts, kind="stable")
        distinct, first = np.unique(counts[order], return_index=True)
        logs = np.split(np.log(ratios[order]), first[1:])
        for nprocs, runs in zip(distinct.astype(np.int64).tolist(), logs, strict=True):
            self._logs[nprocs] = runs[-self._kept :].tolist()
            self._means[nprocs] = sum(self._logs[nprocs]) / len(self._logs[nprocs])

    def compare(self, runtimes: FloatArray | None = None) -> None:
        """Take the residuals against a model; runs that follow at these counts go on with it.

        Parameters
        ----------
        runtimes : numpy.ndarray of float, optional
            The model's, by count, seconds; none if the runs are ratios to a model.
        """
        counts = sorted(self._logs)
        self._places = {nprocs: place for place, nprocs in enumerate(counts)}
        self._model = None
        if runtimes is not None:
            self._model = {nprocs: log(runtimes.item(nprocs)) for nprocs in counts}
        self._known = np.log(counts)
        self._residuals = np.array([self._residual(nprocs) for nprocs in counts])

    def believed(self, runtimes: FloatArray, counts: IntArray) -> FloatArray:
        """Return the runtimes of the model last compared, by count, as the runs correct them."""
        found: FloatArray = believed(runtimes, counts, self._known, self._residuals)
        return found

    def factors(self, counts: IntArray) -> FloatArray:
        """Return what the answers of a model are corrected by to which the runs are ratios."""
        if not self._places:
            self.compare()
        found: FloatArray = factors(counts, self._known, self._residuals)
        return found

    def _residual(self, nprocs: int) -> float:
        model = 0.0 if self._model is None else self._model[nprocs]
        return shrunk(self._means[nprocs] - model, len(self._logs[nprocs]))
