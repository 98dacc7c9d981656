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
from typing import Any, NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled, direct

KEPT_RUNS = 16
"""Of each count the latest so many runs are kept."""
NOISE, ERROR = 0.01, 0.02
"""Variances of ln runtime at one count, and of a model's error, before there are data."""
PRIOR = 2.0
"""So many data these weigh as."""
MOST_PRIOR_RUNS = 2.0
"""A model weighs as no more runs than that."""
_DOUBLING = 0.69
NUMBER, MEAN, PREDICTED, LOG_PREDICTED, RAW, RUNS, TOTAL, FITTED = range(8)
"""Rows of `CountTable.figures`."""
COUNTS, KEPT, SQUARES = range(3)
"""Places of `CountTable.sums`."""
NEW_COUNT = 2
"""What `take_in` returns for a run at a new count."""
_ROOM = 8
"""For so many counts there is room at first."""


@compiled
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
    error = np.sum(raw * raw - noise / numbers)
    error = (max(error, 0.0) + PRIOR * ERROR) / (raw.size + PRIOR)
    return float(min(noise / error, MOST_PRIOR_RUNS))


@compiled
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
    residuals = raw * numbers / (numbers + prior_runs(raw, numbers, squares))
    logs = np.log(known)
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


class CountTable(NamedTuple):
    """The runs kept at each processor count, and how a model compares with them.

    Attributes
    ----------
    known : numpy.ndarray of int, shape (room,)
        The measured counts, ascending.
    figures : numpy.ndarray of float, shape (8, room)
        At each: how many runs are kept, their mean ln runtime, what the model says
        (seconds, and its logarithm), the mean less that; how many runs there were, the
        sum of their runtimes, and their mean at the last fit (NaN before one).
    runs : numpy.ndarray of float, shape (2, room, kept)
        Runtimes in the order of their ends, and their logarithms.
    sums : numpy.ndarray of float, shape (3,)
        Number of counts, of runs kept, and the sum of their squared distances to the
        means, as logarithms.
    """

    known: IntArray
    figures: FloatArray
    runs: FloatArray
    sums: FloatArray


@compiled
def place_of(known: IntArray, nprocs: int) -> int:
    """Return the place of a count among ascending ones; -1 - where it would be without it."""
    place = int(np.searchsorted(known, nprocs))
    return place if place < known.size and known[place] == nprocs else -1 - place


@compiled
def begin_count(table: CountTable, place: int, nprocs: int) -> None:
    """Put a new count in its place; a model of ratios says 1 there."""
    known, figures, runs, sums = table  # in loops: assigning slices takes far longer to compile
    for k in range(int(sums[COUNTS]), place, -1):
        known[k] = known[k - 1]
        for row in range(figures.shape[0]):
            figures[row, k] = figures[row, k - 1]
        for row in range(runs.shape[0]):
            for i in range(runs.shape[2]):
                runs[row, k, i] = runs[row, k - 1, i]
    known[place] = nprocs
    for row in range(figures.shape[0]):
        figures[row, place] = 0.0
    figures[FITTED, place] = np.nan
    sums[COUNTS] += 1.0


@compiled
def take_in(table: CountTable, nprocs: int, runtime: float, tolerance: float) -> int:
    """Add a run, or its ratio; the oldest one at its count goes if too many are kept there.

    Returns `NEW_COUNT` for such, 1 where the mean of all runs at it is off the one last fitted
    to by more than a tolerance, relatively, else 0.
    """
    place, moved = place_of(table.known[: int(table.sums[COUNTS])], nprocs), 1
    if place < 0:
        place, moved = -1 - place, NEW_COUNT
        begin_count(table, place, nprocs)
    figures, runs, sums = table.figures, table.runs, table.sums
    value, mean, number = log(runtime), figures[MEAN, place], int(figures[NUMBER, place])
    off = value - mean
    mean += off / (number + 1)
    sums[SQUARES] += off * (value - mean)
    if number == runs.shape[2]:
        off = runs[1, place, 0] - mean
        mean -= off / number
        sums[SQUARES] -= off * (off + off / number)
        for k in range(number - 1):
            runs[0, place, k], runs[1, place, k] = runs[0, place, k + 1], runs[1, place, k + 1]
        number -= 1
        sums[KEPT] -= 1.0
    runs[0, place, number], runs[1, place, number] = runtime, value
    sums[KEPT] += 1.0
    figures[NUMBER, place], figures[MEAN, place] = number + 1, mean
    figures[RAW, place] = mean - figures[LOG_PREDICTED, place]
    figures[RUNS, place] += 1.0
    figures[TOTAL, place] += runtime
    usual, fitted = figures[TOTAL, place] / figures[RUNS, place], figures[FITTED, place]
    return 0 if abs(usual - fitted) <= tolerance * fitted else moved


@compiled
def kept_at(table: CountTable, nprocs: int) -> tuple[int, float]:
    """Return how many runs are kept at a count, and their geometric mean, NaN without any."""
    place = place_of(table.known[: int(table.sums[COUNTS])], nprocs)
    if place < 0:
        return 0, np.nan
    return int(table.figures[NUMBER, place]), exp(table.figures[MEAN, place])


@compiled
def compare(table: CountTable, predicted: FloatArray) -> None:
    """Take the residuals against a model, whose runtimes stand in a table by count."""
    figures = table.figures
    for k in range(int(table.sums[COUNTS])):
        figures[PREDICTED, k] = predicted[table.known[k]]
        figures[LOG_PREDICTED, k] = log(figures[PREDICTED, k])
        figures[RAW, k] = figures[MEAN, k] - figures[LOG_PREDICTED, k]


@compiled
def believed(table: CountTable, predicted: FloatArray, counts: IntArray) -> FloatArray:
    """Return `corrected` for a model whose runtimes stand in a table by count; nothing without."""
    runtimes, number, figures = np.empty(counts.size), int(table.sums[COUNTS]), table.figures
    for i in range(counts.size):
        if counts[i] >= predicted.size or np.isnan(predicted[counts[i]]):
            return runtimes[:0]
        runtimes[i] = predicted[counts[i]]
    own = figures[PREDICTED, :number], table.known[:number], figures[RAW, :number]
    return corrected(
        runtimes, counts, own[0], own[1], own[2], figures[NUMBER, :number], table.sums[SQUARES]
    )


def count_table(kept: int, room: int = _ROOM) -> CountTable:
    """Return an empty table with room for so many counts, and runs at each."""
    figures, runs = np.zeros((8, room)), np.zeros((2, room, kept))
    return CountTable(np.zeros(room, np.int64), figures, runs, np.zeros(3))


def with_room(rows: Any, room: int, axis: int = 0) -> Any:
    """Return an array with zeros behind what an axis holds, up to so much room.

    Examples
    --------
    >>> with_room(np.array([[1, 2]]), 3, axis=1).tolist()
    [[1, 2, 0]]
    """
    shape = list(rows.shape)
    shape[axis] = room - shape[axis]
    return np.concatenate((rows, np.zeros(shape, rows.dtype)), axis)


_take_in, _kept_at = direct(take_in), direct(kept_at)
_compare, _believed, _corrected = direct(compare), direct(believed), direct(corrected)


class MeasuredCounts:
    """The runs kept at each processor count, as logarithms, and a model's residuals there.

    A model of the count alone is compared with the runs as they are. A model with
    more inputs is compared run by run, and only the ratios run / model come here. Of
    each count the latest `kept` runs are kept.

    Attributes
    ----------
    table : CountTable

    Examples
    --------
    >>> runs = MeasuredCounts()
    >>> for nprocs, runtime in ((1, 100.0), (4, 32.0), (4, 30.0)):
    ...     moved = runs.add(nprocs, runtime)
    >>> number, mean = runs.kept_at(4)
    >>> number, round(mean, 3), runs.kept_at(2)
    (2, 30.984, (0, nan))
    >>> model = np.array([np.nan, 100.0, 50.0, 33.3, 25.0])
    >>> runs.compare(model)
    >>> runs.believed(model, np.array([1, 2, 4])).round(2).tolist()
    [100.0, 54.69, 29.91]
    """

    def __init__(self, kept: int = KEPT_RUNS) -> None:
        self._kept = kept
        self.table = count_table(kept)

    @property
    def known(self) -> IntArray:
        """The measured counts, ascending, shape (m,)."""
        return self.table.known[: self.counts]

    @property
    def counts(self) -> int:
        """How many counts were measured."""
        return int(self.table.sums.item(COUNTS))

    @property
    def scatter(self) -> float:
        """Standard deviation of ln runtime between runs at one count, `NOISE` among them."""
        counts, kept, squares = self.table.sums.tolist()
        return sqrt((max(squares, 0.0) + PRIOR * NOISE) / (kept - counts + PRIOR))

    @property
    def kept(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """The runs kept, as `predictors.observations.merged_curve` takes them."""
        table, number = self.table, self.counts
        return table.known[:number], table.runs[0, :number], table.figures[NUMBER, :number]

    @property
    def runs(self) -> tuple[IntArray, FloatArray]:
        """The counts and runtimes of the runs kept, by count."""
        numbers = self.table.figures[NUMBER, : self.counts].astype(int)
        runs = [own[:n] for own, n in zip(self.table.runs[0], numbers.tolist(), strict=False)]
        return np.repeat(self.known, numbers), np.concatenate(runs)

    def kept_at(self, nprocs: int) -> tuple[int, float]:
        """Return how many runs are kept at a count, and their geometric mean, NaN without any."""
        return _kept_at(self.table, nprocs)

    def add(self, nprocs: int, runtime: float, tolerance: float = nan) -> int:
        """Add a run, or its ratio; the oldest one at its count goes if too many are kept there.

        Returns `NEW_COUNT` for such, 1 where the mean of all runs at it is off the one that
        `note_fit` noted by more than a tolerance, relatively, else 0.
        """
        known, figures, runs, sums = self.table
        if known.size == self.counts:
            room = 2 * known.size
            wider = with_room(figures, room, axis=1), with_room(runs, room, axis=1)
            self.table = CountTable(with_room(known, room), *wider, sums)
        return _take_in(self.table, nprocs, float(runtime), float(tolerance))

    def note_fit(self) -> None:
        """Note that a model was fitted to the runs there are."""
        figures = self.table.figures[:, : self.counts]
        figures[FITTED] = figures[TOTAL] / figures[RUNS]

    def fill(self, counts: FloatArray, ratios: FloatArray) -> None:
        """Put the ratios of runs to a model, in the order of their ends, for all there is."""
        self.table = count_table(self._kept, max(_ROOM, np.unique(counts).size))
        for count, ratio in zip(counts.tolist(), ratios.tolist(), strict=True):
            take_in(self.table, int(count), ratio, nan)

    def compare(self, predicted: FloatArray) -> None:
        """Take the residuals against a model; runs that follow at these counts go on with it.

        Parameters
        ----------
        predicted : numpy.ndarray of float
            The model's runtimes, by count, seconds.
        """
        _compare(self.table, predicted)

    def corrected(
        self, runtimes: FloatArray, counts: IntArray, predicted: FloatArray
    ) -> FloatArray:
        """Return a model's runtimes at some counts, of which ratios are kept, as runs correct them.

        The parameters are those of `corrected`.
        """
        known, figures, _, sums = self.table
        raw, numbers = figures[RAW, : self.counts], figures[NUMBER, : self.counts]
        told = predicted, known[: self.counts], raw, numbers, sums.item(SQUARES)
        return _corrected(runtimes, counts, *told)

    def believed(self, predicted: FloatArray, counts: IntArray) -> FloatArray:
        """Return what `believed` says by the model that was compared last."""
        return _believed(self.table, predicted, np.ascontiguousarray(counts, np.int64))
