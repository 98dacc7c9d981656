"""The compiled heart of focused regression: the region, and the fit within it.

Runs come as in `predictors.loglog_kernels`.
"""

import numpy as np

from predictors.loglog_kernels import (
    DETERMINED,
    LINEAR,
    TOO_FEW,
    adding_up,
    collinear,
    compiled,
    determines,
    factored,
    levels_of,
    logs_of,
    solved,
    usable,
)

WIDEN = 0.1
SPARE_ROWS = 3
MAX_WIDENINGS = 400
ROUNDING = 1e-12
MUCH_COMMUNICATION = 0.5


@compiled
def taken(values, kept):  # type: ignore[no-untyped-def]
    """Return the kept columns of a table."""
    number = 0
    for i in range(kept.size):
        number += kept[i]
    chosen, at = np.empty((values.shape[0], number)), 0
    for i in range(kept.size):
        if kept[i]:
            for j in range(values.shape[0]):
                chosen[j, at] = values[j, i]
            at += 1
    return chosen


@compiled
def varying(known):  # type: ignore[no-untyped-def]
    """Return which rows of the table have several values; the counts' always counts as one."""
    stays = np.zeros(known.shape[0], np.bool_)
    stays[0] = True
    for j in range(1, known.shape[0]):
        for i in range(1, known.shape[1]):
            stays[j] |= known[j, i] != known[j, 0]
    return stays


@compiled
def without_constants(known, stays):  # type: ignore[no-untyped-def]
    """Return the rows of the table that stay."""
    number = 0
    for j in range(stays.size):
        number += stays[j]
    fewer, at = np.empty((number, known.shape[1])), 0
    for j in range(stays.size):
        if stays[j]:
            for i in range(known.shape[1]):
                fewer[at, i] = known[j, i]
            at += 1
    return fewer


@compiled
def insert(nearest, value):  # type: ignore[no-untyped-def]
    """Keep the smallest values in order, with one more to choose from."""
    i = nearest.size - 1
    if not value < nearest[i]:
        return
    while i > 0 and nearest[i - 1] > value:
        nearest[i] = nearest[i - 1]
        i -= 1
    nearest[i] = value


@compiled
def region(known, log_time, centre, half_width):  # type: ignore[no-untyped-def]
    """Return the runs near the focal time, the half-width taken, and how often it was widened.

    Widening by 0.1 ends with three rows more than coefficients, at two counts or more,
    and no input collinear with the others; inputs of one value are left out of a fit
    and do not count. If even all rows do not allow a fit, all are taken, and the
    half-width is infinite.
    """
    runs = log_time.size
    distance, kept = np.empty(runs), np.ones(runs, np.bool_)
    nearest = np.full(min(known.shape[0] + 1 + SPARE_ROWS, runs), np.inf)
    last = -np.inf
    for i in range(runs):
        distance[i] = abs(log_time[i] - centre) - ROUNDING
        last = max(last, distance[i])
        insert(nearest, distance[i])
    fewest = nearest[nearest.size - 1]
    for widened in range(max(0, int((fewest - half_width) / WIDEN)), MAX_WIDENINGS):
        width = half_width + widened * WIDEN
        for i in range(runs):
            kept[i] = distance[i] <= width
        if last <= width:
            return kept, width, widened
        if fewest <= width:
            its_known = taken(known, kept)
            its_known = without_constants(its_known, varying(its_known))
            size = its_known.shape[0] + 2
            upper = np.zeros((size, size))
            factored(its_known, its_known[0], np.empty(0), np.nan, upper)
            if collinear(upper) == DETERMINED:
                return kept, width, widened
    for i in range(runs):
        kept[i] = True
    return kept, np.inf, MAX_WIDENINGS


@compiled
def much_communication(log_q, runtime, parts, communication):  # type: ignore[no-untyped-def]
    """Say whether communication is over half of the time at the largest count.

    Also what was done that the parts add up, with communication written, and the gap.
    """
    if not usable(parts):
        return False, 0, 0.0
    top, first, second = -np.inf, 0.0, 0.0
    done, gap = adding_up(runtime, parts, communication)
    for i in range(log_q.size):
        top = max(top, log_q[i])
    for i in range(log_q.size):
        if log_q[i] == top:
            first += parts[0, i]
            second += communication[i]
    return second > MUCH_COMMUNICATION * (first + second), done, gap


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
    uppers, logs = np.zeros((2, width, width)), np.empty(runtime.size)
    if not determines(levels_of(known[0]), runtime.size, width - 3, LINEAR):
        return TOO_FEW, way, done, gap, uppers
    communication = np.empty(runtime.size)
    for w in range(splits.shape[0]):
        much, done, gap = much_communication(known[0], runtime, splits[w], communication)
        if much:
            way = w
            break
    failed = DETERMINED
    for p in range(2 if way >= 0 else 1):
        logs_of(communication if p else (runtime if way < 0 else splits[way, 0]), logs)
        factored(known, logs, weights, np.nan, uppers[p])
        failed = collinear(uppers[p])
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
    its_known, its_runtime = taken(known, kept), taken(runtime.reshape((1, -1)), kept)[0]
    its_splits = np.empty((splits.shape[0], 2, its_runtime.size))
    for w in range(splits.shape[0]):
        at = 0
        for i in range(kept.size):
            if kept[i]:
                its_splits[w, 0, at] = splits[w, 0, i]
                its_splits[w, 1, at] = splits[w, 1, i]
                at += 1
    stays = varying(its_known)
    fewer = without_constants(its_known, stays)
    failed, way, _, _, uppers = linear_parts(fewer, its_runtime, its_splits, np.empty(0))
    coefficients = np.zeros((1 if way < 0 else 2, known.shape[0] + 1))
    if failed == DETERMINED:
        for p in range(coefficients.shape[0]):
            values, at = solved(uppers[p], fewer.shape[0] + 1), 1
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
