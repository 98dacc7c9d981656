"""The compiled heart of focused regression: the region, and the fit within it.

Runs come as in `predictors.regression.loglog_kernels`.
"""

import numpy as np

from predictors.compiling import compiled
from predictors.regression.loglog_kernels import (
    DETERMINED,
    LINEAR,
    TOO_FEW,
    adding_up,
    collinear_column,
    design_factor,
    determines,
    logs_of,
    solve_triangular,
    usable,
)

WIDEN = 0.1
SPARE_ROWS = 3
MAX_WIDENINGS = 400
ROUNDING = 1e-12
MUCH_COMMUNICATION = 0.5


@compiled
def varying(known):  # type: ignore[no-untyped-def]
    """Return which rows of the table have several values; the counts' always counts as one."""
    stays = np.ones(known.shape[0], np.bool_)
    for j in range(1, known.shape[0]):
        stays[j] = np.any(known[j] != known[j, 0])
    return stays


@compiled
def region(known, log_time, centre, half_width):  # type: ignore[no-untyped-def]
    """Return the runs near the focal time, the half-width taken, and how often it was widened.

    Widening by 0.1 ends with three rows more than coefficients, at two counts or more,
    and no input collinear with the others; inputs of one value are left out of a fit
    and do not count. If even all rows do not allow a fit, all are taken, and the
    half-width is infinite.
    """
    distance = np.abs(log_time - centre) - ROUNDING
    enough = min(known.shape[0] + 1 + SPARE_ROWS, distance.size)
    nearest, last = np.sort(distance)[enough - 1], distance.max()
    for widened in range(max(0, int((nearest - half_width) / WIDEN)), MAX_WIDENINGS):
        width = half_width + widened * WIDEN
        kept = distance <= width
        if last <= width:
            return kept, width, widened
        if nearest <= width:
            its_known = known[:, kept]
            its_known = its_known[varying(its_known)]
            upper = design_factor(its_known, its_known[0], np.empty(0), False)
            if collinear_column(upper) == DETERMINED:
                return kept, width, widened
    return np.ones(distance.size, np.bool_), np.inf, MAX_WIDENINGS


@compiled
def linear_parts(known, runtime, splits, weights):  # type: ignore[no-untyped-def]
    """Fit the total, or both parts where communication is over half at the largest count.

    Returns
    -------
    failed, way, done : int
    gap : float
    uppers : numpy.ndarray, shape (2, columns + 1, columns + 1)
    """
    width, way, done, gap = known.shape[0] + 2, -1, 0, 0.0
    uppers = np.zeros((2, width, width))
    if not determines(np.unique(known[0]), runtime.size, width - 3, LINEAR):
        return TOO_FEW, way, done, gap, uppers
    first, second, top = runtime, runtime, known[0] == known[0].max()
    for w in range(splits.shape[0]):
        if not usable(splits[w]):
            continue
        done, gap, second = adding_up(runtime, splits[w])
        computation, communication = np.sum(splits[w, 0][top]), np.sum(second[top])
        if communication > MUCH_COMMUNICATION * (computation + communication):
            first, way = splits[w, 0], w
            break
    failed = DETERMINED
    for p in range(2 if way >= 0 else 1):
        uppers[p] = design_factor(known, logs_of(second if p else first), weights, False)
        failed = collinear_column(uppers[p])
        if failed != DETERMINED:
            break
    return failed, way, done, gap, uppers


@compiled
def prepared(runs, spread):  # type: ignore[no-untyped-def]
    """Return the latest runs of an application as regressions take them.

    Parameters
    ----------
    runs : numpy.ndarray, shape (5, n)
        Counts, runtimes, sizes (NaN where hidden), computation and communication (NaN
        where unknown), seconds.
    spread : float
        Where sizes differ by less than this factor all times are for one unit of size.

    Returns
    -------
    known : numpy.ndarray, shape (2, n), or (1, n) without the size
    runtime, log_time : numpy.ndarray, shape (n,)
    splits : numpy.ndarray, shape (1, 2, n), or (0, 2, n) where parts are unknown
    low, high : float
        Smallest and largest size.
    """
    number, some, complete = runs.shape[1], False, True
    low, high = np.inf, -np.inf
    for i in range(number):
        low, high = min(low, runs[2, i]), max(high, runs[2, i])
        complete &= np.isfinite(runs[3, i])
        some |= runs[4, i] > 0.0
    if np.isnan(runs[2, number - 1]):
        low = high = np.nan
    known = np.empty((2 if high >= spread * low else 1, number))
    splits = np.empty((1 if complete and some else 0, 2, number))
    runtime, log_time = np.empty(number), np.empty(number)
    for i in range(number):
        unit = runs[2, i] if high < spread * low else 1.0
        known[0, i] = np.log2(runs[0, i])
        if known.shape[0] == 2:
            known[1, i] = np.log2(runs[2, i])
        runtime[i] = runs[1, i] / unit
        log_time[i] = np.log2(runtime[i])
        for w in range(splits.shape[0]):
            splits[w, 0, i] = runs[3, i] / unit
            splits[w, 1, i] = runs[4, i] / unit
    return known, runtime, log_time, splits, low, high


@compiled
def focal_fit(known, runtime, log_time, splits, centre, half_width):  # type: ignore[no-untyped-def]
    """Fit the runs in focus: region and parts at once.

    `log_time` is log2 of `runtime`, which many foci share.

    Returns
    -------
    failed : int
    coefficients : numpy.ndarray, shape (parts, 2 + k)
        0 for inputs of one value among the runs in focus.
    width : float
        Half-width of the region.
    all_kept : bool
        Whether every run is in focus.
    low, high : numpy.ndarray, shape (1 + k,)
        Least and largest count and inputs in focus, as they come.
    """
    kept, width, _ = region(known, log_time, centre, half_width)
    its_known, its_runtime = known[:, kept], runtime[kept]
    stays = varying(its_known)
    fewer = its_known[stays]
    failed, way, _, _, uppers = linear_parts(fewer, its_runtime, splits[:, :, kept], np.empty(0))
    coefficients = np.zeros((1 if way < 0 else 2, known.shape[0] + 1))
    if failed == DETERMINED:
        for p in range(coefficients.shape[0]):
            values, at = solve_triangular(uppers[p], fewer.shape[0] + 1), 1
            coefficients[p, 0] = values[0]
            for j in range(stays.size):
                if stays[j]:
                    coefficients[p, 1 + j] = values[at]
                    at += 1
    all_kept = its_runtime.size == runtime.size
    low, high = np.empty(known.shape[0]), np.empty(known.shape[0])
    for j in range(low.size):
        low[j], high[j] = its_known[j].min(), its_known[j].max()
    return failed, coefficients, width, all_kept, low, high
