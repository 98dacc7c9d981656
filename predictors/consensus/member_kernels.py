"""The methods of the consensus where no input varies, fitted and asked at once, compiled."""

from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from predictors.observations import SAME, decline_place, is_measured, merge_runs, reach_of
from predictors.regression.loglog_kernels import (
    DETERMINED,
    LINEAR,
    QUADRATIC,
    TOTAL,
    choose,
    coefficients_of,
    log_times,
    qr_factor,
    solve_triangular,
)
from predictors.remarks import DECLINING, FAR_FACTOR

LAW, LINE, CURVED = range(3)
"""Rows of `KeptFit.coefficients`: a law, a straight and a curved log-log line."""
TINY = np.finfo(np.float64).tiny
ENOUGH = 3
"""Counts that the constants below hold for: ranges narrow with the root of their number."""
BASE, REACH, BEND = 0.2, 0.3, 0.45
"""80 % of runs take exp(-(BASE + d)) to exp(BASE + d + (REACH + BEND·b)·ln m) times what is said.

d is the median distance of the methods from their median in ln T, at most 1; m the factor beyond
the measured counts, in which runs are slower than said more often than faster; b by how much the
log-log slope flattens at the end, at most 1.5. Pinball loss on measured curves found them.
"""
WIDE = (0.7, 0.9, 1.2)
"""Widths of 80 % ranges in ln T that are a note, a warning and unusable, to a doubling beyond runs.

Farther away they grow with the root of the doublings, as errors do. About a third of the ranges
on measured curves were narrower than the first, a tenth wider than the last.
"""
CODES = ("wide_range", DECLINING, "single_observation")
"""Of what makes a count unusable."""
WARNING, UNUSABLE = 2, 3
"""Places in `predictors.remarks.GRADES`."""
UNREPEATED = 0.2
"""ln s of times without repeats (`predictors.observations.ObservedCurve.reach`)."""
PRIOR_ERROR = 0.2
PRIOR_WEIGHT = 2.0
ELSEWHERE_AT_MOST = 3.0
FADING = 0.95
STRONGEST = 4.0
LARGEST_ERROR = 2.0
RECENT, RECENT_ERRORS, RUNS, ERRORS = range(4)
"""Places of the sums of a method: runs and their errors, faded and not."""


@compiled
def fit_positive(design):  # type: ignore[no-untyped-def]
    """Minimise the sum of (x·design − 1)² over x ≥ 0, for a few rows of `design`.

    The best is the best of the ordinary fits to some rows whose coefficients are all
    positive, of which there are seven at most.

    Parameters
    ----------
    design : numpy.ndarray, shape (p, m)
    """
    width, rows = design.shape
    best, least = np.zeros(width), np.inf
    for chosen in range(1, 1 << width):
        places = np.array([k for k in range(width) if chosen >> k & 1])
        table = np.ones((places.size + 1, rows))
        lengths = np.empty(places.size)
        for k in range(places.size):
            lengths[k] = np.sqrt(np.sum(design[places[k]] ** 2))
            table[k] = design[places[k]] / lengths[k]
        upper = qr_factor(table)
        if np.abs(np.diag(upper)[:-1]).min() <= 1e-14:
            continue
        values = solve_triangular(upper, places.size) / lengths
        if values.min() >= 0.0 and upper[-1, -1] < least:
            least, best = upper[-1, -1], np.zeros(width)
            best[places] = values
    return best


@compiled
def fit_law(nprocs, runtime):  # type: ignore[no-untyped-def]
    """Fit p/n + q + c·n with nothing negative, least squares on relative errors; return p, q, c.

    c is for times that rise at the end (universal scalability); else this is Amdahl's law,
    which leaves a declining end out.
    """
    rises = nprocs.size > 1 and runtime[-1] > runtime[-2]
    end = nprocs.size
    if not rises:
        place = decline_place(runtime, UNREPEATED)
        end = place + 1 if place >= 0 else end
    design = np.empty((min(3 if rises else 2, end), end))
    for i in range(end):
        powers = 1.0 / nprocs[i], 1.0, nprocs[i]
        for k in range(design.shape[0]):
            design[k, i] = powers[k] / runtime[i]
    coefficients = np.zeros(3)
    coefficients[: design.shape[0]] = fit_positive(design)
    return coefficients


@compiled
def fit_counts(nprocs, runtime):  # type: ignore[no-untyped-def]
    """Fit every method to times by count, ascending; return coefficients and the rows fitted."""
    coefficients, is_there = np.zeros((3, 3)), np.zeros(3, np.bool_)
    coefficients[LAW], is_there[LAW] = fit_law(nprocs, runtime), True
    known, splits = np.log2(nprocs).reshape(1, -1), np.empty((0, 2, nprocs.size))
    for row, form in ((LINE, LINEAR), (CURVED, QUADRATIC)):
        failed, _, _, _, _, _, uppers, columns = choose(known, runtime, splits, form, TOTAL)
        if failed == DETERMINED:
            own = coefficients_of(uppers, columns, 1)[0]
            coefficients[row, : own.size], is_there[row] = own, True
    return coefficients, np.flatnonzero(is_there)


@compiled
def law_seconds(coefficients, counts):  # type: ignore[no-untyped-def]
    """Return what the law says at counts."""
    p, q, c = coefficients
    return np.maximum(p / counts + q + c * counts, TINY)


@compiled
def voices_of(coefficients: FloatArray, present: IntArray, counts: FloatArray) -> FloatArray:
    """Return ln seconds of every method that was fitted, shape (k, m)."""
    found = np.empty((present.size, counts.size))
    known = np.log2(counts).reshape(1, -1)
    for k, row in enumerate(present):
        if row == LAW:
            found[k] = np.log(law_seconds(coefficients[row], counts))
        else:
            found[k] = np.log(2.0) * log_times(coefficients[row], known)
    return found


@compiled
def weighted_median(values, weights):  # type: ignore[no-untyped-def]
    """Return the weighted median of each column, the middle of a tie.

    Parameters
    ----------
    values : numpy.ndarray, shape (k, m)
    weights : numpy.ndarray, shape (k,)
        Positive.
    """
    number, found = weights.size, np.empty(values.shape[1])
    total = weights.sum()
    half, slack = 0.5 * total, 1e-9 * total
    for i in range(found.size):
        order = np.argsort(values[:, i], kind="mergesort")
        below, first, last = 0.0, -1, -1
        for k in range(number):
            below += weights[order[k]]
            if first < 0 and below >= half - slack:
                first = order[k]
            if last < 0 and below > half + slack:
                last = order[k]
        found[i] = 0.5 * (values[first, i] + values[last, i])
    return found


@compiled
def doublings_of(nprocs, counts):  # type: ignore[no-untyped-def]
    """Return how many doublings each count lies outside the measured ones."""
    low, high = np.log2(nprocs[0]), np.log2(nprocs[-1])
    at = np.log2(counts)
    return np.abs(at - np.minimum(np.maximum(at, low), high))


@compiled
def flattening_of(nprocs, runtime) -> float:  # type: ignore[no-untyped-def]
    """Return by how much the log-log slope rises at the last step from the one before."""
    if nprocs.size < ENOUGH:
        return 0.0
    times, logs = np.log(runtime[-3:]), np.log(nprocs[-3:])
    before = (times[1] - times[0]) / (logs[1] - logs[0])
    last = (times[2] - times[1]) / (logs[2] - logs[1])
    return float(min(max(last - before, 0.0), 1.5))


@compiled
def spread_of(voices, middle, weights, doublings, shape):  # type: ignore[no-untyped-def]
    """Return how far 80 % ranges go below and above, and how far methods differ, ln seconds.

    Parameters
    ----------
    voices : numpy.ndarray, shape (k, m)
    middle : numpy.ndarray, shape (m,)
        Their median.
    weights : numpy.ndarray, shape (k,)
    doublings : numpy.ndarray, shape (m,)
        How far each target lies outside the runs.
    shape : tuple of float
        How many counts were measured, how much the curve flattens at the end, and the
        scatter that inputs leave.
    """
    counts, flattening, scatter = shape
    apart = np.minimum(weighted_median(np.abs(voices - middle), weights), 1.0)
    above = BASE + apart + (REACH + BEND * flattening) * (np.log(2.0) * doublings)
    few = (ENOUGH / counts) ** 0.5
    return np.hypot(few * (BASE + apart), scatter), np.hypot(few * above, scatter), apart


@compiled
def record_errors(sums, row, columns, errors):  # type: ignore[no-untyped-def]
    """Add a run's errors, as logarithms, of the methods in some columns."""
    for k in range(columns.size):
        error = min(abs(errors[k]), LARGEST_ERROR)
        own, everywhere = sums[row, columns[k]], sums[0, columns[k]]
        own[RECENT] = FADING * own[RECENT] + 1.0
        own[RECENT_ERRORS] = FADING * own[RECENT_ERRORS] + error
        own[RUNS] += 1.0
        own[ERRORS] += error
        everywhere[RUNS] += 1.0
        everywhere[ERRORS] += error


@compiled
def expected_errors(sums, row):  # type: ignore[no-untyped-def]
    """Return each method's expected error on an application, NaN where nothing is known."""
    found = np.full(sums.shape[1], np.nan)
    for k in range(found.size):
        own, everywhere = sums[row, k], sums[0, k]
        if everywhere[RUNS] > 0.0:
            runs = everywhere[RUNS] - own[RUNS]
            weight = min(runs, ELSEWHERE_AT_MOST)
            elsewhere = (everywhere[ERRORS] - own[ERRORS]) / runs if runs > 0.0 else 0.0
            parts = own[RECENT_ERRORS] + weight * elsewhere + PRIOR_WEIGHT * PRIOR_ERROR
            found[k] = parts / (own[RECENT] + weight + PRIOR_WEIGHT)
    return found


@compiled
def weight_factors(sums, row):  # type: ignore[no-untyped-def]
    """Return factors on the methods' weights, 1 where nothing is known."""
    expected = expected_errors(sums, row)
    known = np.sort(expected[~np.isnan(expected)])
    found = np.ones(expected.size)
    if known.size > 0:
        middle = 0.5 * (known[(known.size - 1) // 2] + known[known.size // 2])
        for k in range(found.size):
            if not np.isnan(expected[k]):
                factor = (middle / max(expected[k], 1e-3)) ** 2
                found[k] = min(max(factor, 1.0 / STRONGEST), STRONGEST)
    return found


class KeptFit(NamedTuple):
    """What was fitted to the runs of one problem.

    Attributes
    ----------
    nprocs, runtime : numpy.ndarray of float, shape (m,)
        All measured counts, and the mean time at each.
    ordinary : int
        How many of them come before a declining end.
    coefficients : numpy.ndarray, shape (3, 3)
        Of 1/n, 1 and n in seconds for the law; of 1, log2 n and its square for log2 seconds.
    present : numpy.ndarray of int, shape (k,)
        The rows that could be fitted.
    severity : int
        How severe what holds for all counts is.
    columns : numpy.ndarray of int, shape (k,)
        Of the methods that were fitted, in the memory of errors.
    """

    nprocs: FloatArray
    runtime: FloatArray
    ordinary: int
    coefficients: FloatArray
    present: IntArray
    severity: int
    columns: IntArray


@compiled
def fit_measured(
    nprocs: FloatArray, runtime: FloatArray, reach: float, dropped: bool, known: IntArray
) -> KeptFit:
    """Fit every method to the mean time at each count, a declining end left out.

    Parameters
    ----------
    nprocs, runtime : numpy.ndarray of float, shape (m,)
    reach : float
        As `predictors.observations.decline_place` takes it.
    dropped : bool
        Whether runs were left out as outliers.
    known : numpy.ndarray of int, shape (4,)
        Columns of Amdahl's law, universal scalability, the line and the curved line.
    """
    place = decline_place(runtime, reach)
    end = place + 1 if place >= 0 else nprocs.size
    coefficients, present = fit_counts(nprocs[:end], runtime[:end])
    rises = end > 1 and runtime[end - 1] > runtime[end - 2]
    law = known[1 if rises else 0]
    columns = np.where(present == LAW, law, known[present + 1])
    severity = WARNING if end < ENOUGH else 1 if dropped else 0
    return KeptFit(nprocs, runtime, end, coefficients, present, severity, columns)


@compiled
def fit_kept(counts: IntArray, runs: FloatArray, numbers: FloatArray, known: IntArray) -> KeptFit:
    """Merge good runs by count, as `predictors.observations.merged_curve` takes them, and fit."""
    nprocs, figures, (_, degrees, log_scatter) = merge_runs(counts, runs, numbers)
    dropped = figures[1].sum() < numbers.sum()
    return fit_measured(nprocs, figures[0], reach_of(degrees, log_scatter), dropped, known)


@compiled
def seconds_of(kept: KeptFit, sums: FloatArray, row: int, counts: FloatArray) -> FloatArray:
    """Return the median at counts, seconds, finite and positive.

    `sums` and `row` are those of the memory of errors.
    """
    weights = weight_factors(sums, row)[kept.columns]
    middle = weighted_median(voices_of(kept.coefficients, kept.present, counts), weights)
    seconds: FloatArray = np.exp(np.minimum(np.maximum(middle, -600.0), 600.0))
    return seconds


@compiled
def fit_and_ask(
    counts: IntArray, runs: FloatArray, numbers: FloatArray, known: IntArray, sums: FloatArray,
    row: int, targets: IntArray,
) -> tuple[KeptFit, FloatArray]:  # fmt: skip
    """Return what `fit_kept` does, and what `seconds_of` then says of targets."""
    kept = fit_kept(counts, runs, numbers, known)
    return kept, seconds_of(kept, sums, row, targets.astype(np.float64))


@compiled
def record_run(kept, sums, row, nprocs, runtime):  # type: ignore[no-untyped-def]
    """Take in how far each method was off a run that it has not seen."""
    voices = voices_of(kept.coefficients, kept.present, np.array([float(nprocs)]))[:, 0]
    record_errors(sums, row, kept.columns, voices - np.log(runtime))


@compiled
def judge(kept, sums, row, counts):  # type: ignore[no-untyped-def]
    """Return the worst severity of a remark about each count, and the place of its code."""
    nprocs, end = kept.nprocs, kept.ordinary
    weights = weight_factors(sums, row)[kept.columns]
    voices = voices_of(kept.coefficients, kept.present, counts)
    doublings = doublings_of(nprocs[:end], counts)
    shape = end, flattening_of(nprocs[:end], kept.runtime[:end]), 0.0
    told = weighted_median(voices, weights), weights, doublings, shape
    below, above, _ = spread_of(voices, *told)
    wide = (below + above) / np.sqrt(np.maximum(doublings, 1.0))
    found = np.zeros(counts.size, np.int64)
    for least in WIDE:
        found += wide > least
    codes = np.zeros(counts.size, np.int64)
    for i in range(counts.size):
        if end < nprocs.size and counts[i] > nprocs[end - 1] * (1.0 + SAME):
            found[i], codes[i] = WARNING if is_measured(nprocs, counts[i]) else UNUSABLE, 1
        if nprocs.size == 1 and counts[i] != nprocs[0]:
            found[i], codes[i] = UNUSABLE, 2
        if counts[i] > FAR_FACTOR * nprocs[-1] or counts[i] < nprocs[0] / FAR_FACTOR:
            found[i] = max(found[i], WARNING)
        found[i] = max(found[i], kept.severity)
    return found, codes
