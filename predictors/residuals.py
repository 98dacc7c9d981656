"""What was measured is believed: a model's answers corrected by the runs at and between its counts.

The formula is ours (policies.md 3.16, refined): belief(n) = model(n)·exp(r(n)). At a measured
count r is the mean of ln(run / model) there, shrunk by m / (m + p) with m runs;
between counts it is linear in ln n, beyond the ends it is held. p, the number of
runs that the model itself weighs as, is the variance of runs at one count over that
of the model's errors, both estimated, from 1/2 on. Beyond the largest measured count
no belief falls more steeply than over the last doubling before it.

Constants and the two refinements were chosen on the families of `workloads.shapes`,
with runs at powers of two and noise of 0.1.
"""

from math import exp, log, nan

import numpy as np
from numba import njit

from predictors.base import FloatArray, IntArray

KEPT_RUNS = 16
"""Of each count the latest so many runs are kept."""
NOISE, ERROR = 0.01, 0.02
"""Variances of ln runtime at one count, and of a model's error, before there are data."""
PRIOR = 2.0
"""So many data these weigh as."""
MOST_PRIOR_RUNS = 2.0
"""A model weighs as no more runs than that."""
_DOUBLING = 0.69


@njit(cache=True)
def prior_runs(raw: FloatArray, numbers: FloatArray, squares: float) -> float:
    """Return p, the number of runs that a model's answer at a measured count weighs as.

    Parameters
    ----------
    raw : numpy.ndarray of float, shape (m,)
        Mean ln(run / model) at each measured count.
    numbers : numpy.ndarray of float, shape (m,)
        Runs at each count.
    squares : float
        Sum over all runs of the squared distance of ln(run / model) to its count's mean.

    Examples
    --------
    >>> one, few = np.ones(1), np.full(4, 3.0)
    >>> round(prior_runs(np.array([0.1732]), one, 0.0), 2)
    0.5
    >>> [round(prior_runs(np.full(4, error), few, 0.08), 3) for error in (0.0, 0.5)]
    [1.5, 0.058]
    """
    noise = (squares + PRIOR * NOISE) / (max(numbers.sum() - raw.size, 0.0) + PRIOR)
    error = 0.0
    for k in range(raw.size):
        error += raw[k] * raw[k] - noise / numbers[k]
    error = (max(error, 0.0) + PRIOR * ERROR) / (raw.size + PRIOR)
    return float(min(noise / error, MOST_PRIOR_RUNS))


@njit(cache=True)
def corrected(
    runtimes: FloatArray,
    counts: IntArray,
    said: FloatArray,
    known: IntArray,
    raw: FloatArray,
    numbers: FloatArray,
    squares: float,
) -> FloatArray:
    """Return a model's runtimes at some counts as the runs correct them.

    Parameters
    ----------
    runtimes : numpy.ndarray of float, shape (n,), seconds
        What the model says at `counts`.
    counts : numpy.ndarray of int, shape (n,)
    said : numpy.ndarray of float, shape (m,), seconds
        What the model says at the measured counts.
    known : numpy.ndarray of int, shape (m,), ascending
        The measured counts, at least one.
    raw, numbers : numpy.ndarray of float, shape (m,)
    squares : float
        As `prior_runs` has them.

    Examples
    --------
    >>> flat, known, runs = np.full(4, 10.0), np.array([2, 8]), np.full(2, 1e6)
    >>> raw = np.log([1.0, 1.21])
    >>> corrected(flat, np.array([1, 2, 4, 8]), flat[:2], known, raw, runs, 0.0).round(3).tolist()
    [10.0, 10.0, 11.0, 12.1]

    Work that stops falling does not begin to fall again where nobody looked:

    >>> ideal, counts = 64.0 / 2.0 ** np.arange(6), 2 ** np.arange(6)
    >>> raw = np.log([1.0, 1.0, 1.0, 2.0])
    >>> corrected(ideal, counts, ideal[:4], counts[:4], raw, 1e6 * raw + 1e6, 0.0).round(2).tolist()
    [64.0, 32.0, 16.0, 16.0, 16.0, 16.0]
    """
    last = known.size - 1
    weighs_as = prior_runs(raw, numbers, squares)
    residuals, logs = np.empty(known.size), np.empty(known.size)
    for k in range(known.size):
        residuals[k] = raw[k] * numbers[k] / (numbers[k] + weighs_as)
        logs[k] = log(known[k])
    before = last - 1
    while before >= 0 and logs[last] - logs[before] < _DOUBLING:
        before -= 1
    top, slope = log(said[last]) + residuals[last], -np.inf
    if before >= 0:
        fall = top - log(said[before]) - residuals[before]
        slope = fall / (logs[last] - logs[before])
    found = np.empty(counts.size)
    for i in range(counts.size):
        at = log(counts[i])
        if at >= logs[last]:
            found[i] = runtimes[i] * exp(residuals[last])
            if at > logs[last] and before >= 0:
                found[i] = max(found[i], exp(top + slope * (at - logs[last])))
            continue
        k = 0
        while logs[k] <= at:
            k += 1
        residual = residuals[k]
        if k > 0:
            share = (at - logs[k - 1]) / (logs[k] - logs[k - 1])
            residual = residuals[k - 1] + share * (residuals[k] - residuals[k - 1])
        found[i] = runtimes[i] * exp(residual)
    return found


@njit(cache=True)
def believed(
    table: FloatArray,
    counts: IntArray,
    said: FloatArray,
    known: IntArray,
    raw: FloatArray,
    numbers: FloatArray,
    squares: float,
) -> FloatArray:
    """Return `corrected` for a model whose runtimes stand in a table by count."""
    runtimes = np.empty(counts.size)
    for i in range(counts.size):
        runtimes[i] = table[counts[i]]
    return corrected(runtimes, counts, said, known, raw, numbers, squares)


class MeasuredCounts:
    """The runs kept at each processor count, as logarithms, and a model's residuals there.

    A model of the count alone is compared with the runs as they are. A model with
    more inputs is compared run by run, and only the ratios run / model come here.

    Parameters
    ----------
    kept : int
        Of each count the latest so many runs are kept.

    Attributes
    ----------
    known : numpy.ndarray of int, shape (m,), ascending
        The measured counts when the model was compared.

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
    [100.0, 54.69, 29.91]
    """

    def __init__(self, kept: int = KEPT_RUNS) -> None:
        self._kept = kept
        self._logs: dict[int, list[float]] = {}
        self._means: dict[int, float] = {}
        self._squares: dict[int, float] = {}
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
        before = self._squares.get(nprocs, 0.0)
        self._note(nprocs, runs)
        place = self._places.get(nprocs)
        if place is not None:
            self._raw[place] = self._residual(nprocs)
            self._numbers[place] = len(runs)
            self._sum_of_squares += self._squares[nprocs] - before
        elif self._model is None:
            self._places = {}

    def _note(self, nprocs: int, runs: list[float]) -> None:
        mean = self._means[nprocs] = sum(runs) / len(runs)
        self._squares[nprocs] = sum([(one - mean) ** 2 for one in runs])

    def fill(self, counts: FloatArray, ratios: FloatArray) -> None:
        """Put the ratios of runs to a model, in the order of their ends, for all there is."""
        self._logs, self._means, self._squares = {}, {}, {}
        self._model, self._places = None, {}
        order = np.argsort(counts, kind="stable")
        distinct, first = np.unique(counts[order], return_index=True)
        logs = np.split(np.log(ratios[order]), first[1:])
        for nprocs, runs in zip(distinct.astype(np.int64).tolist(), logs, strict=True):
            kept = self._logs[nprocs] = runs[-self._kept :].tolist()
            self._note(nprocs, kept)

    def compare(self, table: FloatArray | None = None) -> None:
        """Take the residuals against a model; runs that follow at these counts go on with it.

        Parameters
        ----------
        table : numpy.ndarray of float, optional
            The model's runtimes, by count, seconds; none if the runs are ratios to a model.
        """
        counts = sorted(self._logs)
        self._places = {nprocs: place for place, nprocs in enumerate(counts)}
        self._model = None
        if table is not None:
            self._model = {nprocs: log(table.item(nprocs)) for nprocs in counts}
            self._said = table[counts]
        self.known: IntArray = np.array(counts)
        self._raw = np.array([self._residual(nprocs) for nprocs in counts])
        self._numbers = np.array([float(len(self._logs[nprocs])) for nprocs in counts])
        self._sum_of_squares = sum(self._squares.values())

    def believed(self, table: FloatArray, counts: IntArray) -> FloatArray:
        """Return the runtimes of the model last compared, by count, as the runs correct them."""
        found: FloatArray = believed(
            table, counts, self._said, self.known, self._raw, self._numbers, self._sum_of_squares
        )
        return found

    def measured(self) -> IntArray:
        """Return the counts at which there are ratios, ascending."""
        if not self._places:
            self.compare()
        return self.known

    def corrected(self, runtimes: FloatArray, counts: IntArray, said: FloatArray) -> FloatArray:
        """Return what a model says, to which the runs are ratios, as the runs correct it.

        Parameters
        ----------
        runtimes : numpy.ndarray of float, shape (n,), seconds
        counts : numpy.ndarray of int, shape (n,)
        said : numpy.ndarray of float, shape (m,), seconds
            What it says at the `measured` counts.
        """
        known = self.measured()
        found: FloatArray = corrected(
            runtimes, counts, said, known, self._raw, self._numbers, self._sum_of_squares
        )
        return found

    def _residual(self, nprocs: int) -> float:
        return self._means[nprocs] - (0.0 if self._model is None else self._model[nprocs])
