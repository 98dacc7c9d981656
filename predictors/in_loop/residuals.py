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

from math import exp, log, nan, sqrt

import numpy as np

from predictors.base import BoolArray, FloatArray, IntArray
from predictors.compiling import njit

KEPT_RUNS = 16
"""Of each count the latest so many runs are kept."""
NOISE, ERROR = 0.01, 0.02
"""Variances of ln runtime at one count, and of a model's error, before there are data."""
PRIOR = 2.0
"""So many data these weigh as."""
MOST_PRIOR_RUNS = 2.0
"""A model weighs as no more runs than that."""
_DOUBLING = 0.69
LIKE = np.log(2.0)
"""A run of a size that is off by this much, as a logarithm, counts half."""


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
    noise = (max(squares, 0.0) + PRIOR * NOISE) / (max(numbers.sum() - raw.size, 0.0) + PRIOR)
    error = 0.0
    for k in range(raw.size):
        error += raw[k] * raw[k] - noise / numbers[k]
    error = (max(error, 0.0) + PRIOR * ERROR) / (raw.size + PRIOR)
    return float(min(noise / error, MOST_PRIOR_RUNS))


@njit(cache=True)
def corrected(
    runtimes: FloatArray,
    counts: IntArray,
    predicted: FloatArray,
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
    predicted : numpy.ndarray of float, shape (m,), seconds
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
    top, slope = log(predicted[last]) + residuals[last], -np.inf
    if before >= 0:
        fall = top - log(predicted[before]) - residuals[before]
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
    predicted: FloatArray,
    known: IntArray,
    raw: FloatArray,
    numbers: FloatArray,
    squares: float,
) -> FloatArray:
    """Return `corrected` for a model whose runtimes stand in a table by count."""
    runtimes = np.empty(counts.size)
    for i in range(counts.size):
        runtimes[i] = table[counts[i]]
    return corrected(runtimes, counts, predicted, known, raw, numbers, squares)


class MeasuredCounts:
    """The runs kept at each processor count, as logarithms, and a model's residuals there.

    A model of the count alone is compared with the runs as they are. A model with
    more inputs is compared run by run, and only the ratios run / model come here. Of
    each count the latest `kept` runs are kept.

    Attributes
    ----------
    known : numpy.ndarray of int, shape (m,), ascending
        The measured counts.

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
        self._places: dict[int, int] = {}
        self._runs: list[list[float]] = []
        self.known: IntArray = np.empty(0, np.int64)
        self._means: FloatArray = np.empty(0)
        self._numbers: FloatArray = np.empty(0)
        self._squares = 0.0
        self._predicted: FloatArray = np.empty(0)
        self._log_predicted: FloatArray = np.empty(0)
        self._raw: FloatArray = np.empty(0)

    def number(self, nprocs: int) -> int:
        """Return how many runs are kept at a count."""
        place = self._places.get(nprocs)
        return 0 if place is None else len(self._runs[place])

    def mean(self, nprocs: int) -> float:
        """Return the geometric mean of the runs kept at a count, NaN without any."""
        place = self._places.get(nprocs)
        return nan if place is None else exp(self._means.item(place))

    @property
    def scatter(self) -> float:
        """Standard deviation of ln runtime between runs at one count, `NOISE` among them."""
        more = max(self._numbers.sum() - self._numbers.size, 0.0)
        return sqrt((max(self._squares, 0.0) + PRIOR * NOISE) / (more + PRIOR))

    def add(self, nprocs: int, runtime: float) -> None:
        """Add a run, or its ratio; the oldest one at its count goes if too many are kept there."""
        place = self._places.get(nprocs)
        if place is None:
            place = self._begin(nprocs)
        runs, value, mean = self._runs[place], log(runtime), self._means.item(place)
        runs.append(value)
        number = len(runs)
        off = value - mean
        mean += off / number
        self._squares += off * (value - mean)
        if number > self._kept:
            number -= 1
            off = runs.pop(0) - mean
            mean -= off / number
            self._squares -= off * (off + off / number)
        self._means[place], self._numbers[place] = mean, number
        self._raw[place] = mean - self._log_predicted.item(place)

    def _begin(self, nprocs: int) -> int:
        """Make room for the runs at a new count; a model of ratios says 1 there."""
        place = int(self.known.searchsorted(nprocs))
        self.known = np.insert(self.known, place, nprocs)
        self._runs.insert(place, [])
        self._means, self._numbers, self._log_predicted, self._raw = (
            np.insert(column, place, 0.0)
            for column in (self._means, self._numbers, self._log_predicted, self._raw)
        )
        self._places = {count: k for k, count in enumerate(self.known.tolist())}
        return place

    def fill(self, counts: FloatArray, ratios: FloatArray) -> None:
        """Put the ratios of runs to a model, in the order of their ends, for all there is."""
        order = np.argsort(counts, kind="stable")
        distinct, first = np.unique(counts[order], return_index=True)
        logs = [own[-self._kept :] for own in np.split(np.log(ratios[order]), first[1:])]
        self.known = distinct.astype(np.int64)
        self._places = {count: k for k, count in enumerate(self.known.tolist())}
        self._runs = [own.tolist() for own in logs]
        self._means = np.array([own.mean() for own in logs])
        self._numbers = np.array([float(own.size) for own in logs])
        self._squares = float(sum(((own - own.mean()) ** 2).sum() for own in logs))
        self._log_predicted, self._raw = np.zeros(len(logs)), self._means.copy()

    def compare(self, table: FloatArray) -> None:
        """Take the residuals against a model; runs that follow at these counts go on with it.

        Parameters
        ----------
        table : numpy.ndarray of float
            The model's runtimes, by count, seconds.
        """
        self._predicted = table[self.known]
        self._log_predicted = np.log(self._predicted)
        self._raw = self._means - self._log_predicted

    def believed(self, table: FloatArray, counts: IntArray) -> FloatArray:
        """Return the runtimes of the model last compared, by count, as the runs correct them."""
        found: FloatArray = believed(
            table, counts, self._predicted, self.known, self._raw, self._numbers, self._squares
        )
        return found

    def corrected(
        self, runtimes: FloatArray, counts: IntArray, predicted: FloatArray
    ) -> FloatArray:
        """Return what a model says, to which the runs are ratios, as the runs correct it.

        Parameters
        ----------
        runtimes : numpy.ndarray of float, shape (n,), seconds
        counts : numpy.ndarray of int, shape (n,)
        predicted : numpy.ndarray of float, shape (m,), seconds
            What it says at the counts in `known`.
        """
        found: FloatArray = corrected(
            runtimes, counts, predicted, self.known, self._raw, self._numbers, self._squares
        )
        return found


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
    >>> predicted = np.array([8.0, 1.0])
    >>> runs.corrected(predicted, runs.counts, predicted, 1.0).round(2).tolist()
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
        predicted: FloatArray,
        size: float,
        other: FloatArray | None = None,
    ) -> FloatArray:
        """Return what a model says of a job of a size as the runs correct it.

        Parameters
        ----------
        runtimes : numpy.ndarray of float, shape (k,), seconds
        counts : numpy.ndarray of int, shape (k,)
        predicted : numpy.ndarray of float, shape (m,), seconds
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
            means += np.log(other / predicted)
        found: FloatArray = corrected(
            runtimes, counts, predicted, self.counts, means, runs, squares
        )
        return found

    def _at(self, nprocs: int) -> BoolArray:
        return np.asarray(self.counts[self._places] == nprocs, bool)
