"""Which log-log model, compiled: linear or quadratic, total or in parts (BARNES 2.2, 3, 4.2).

And focused regression (GARREN 3.2): the region around a time, and the fit within it.

Runs come as a table `known`, shape (1 + k, n): log2 of the processor counts, then of
each of the k inputs, a column a run. Least squares takes one QR factor a fit: the
triangular factor of a design with the response as its last column holds all that is
asked of a fit, and of the fits to the design's first columns
(`predictors.least_squares.LeastSquares`). Failures are numbers here;
`predictors.regression.loglog` puts them into words.
"""

import numpy as np

from predictors.base import FloatArray
from predictors.compiling import compiled

DETERMINED = -1
"""No column is collinear with those before it."""
COLLINEAR = 1e-9
LARGEST_LOG = 900.0
"""Errors and times in log2 units are told apart up to here; their powers stay finite."""


@compiled
def qr_factor(table):  # type: ignore[no-untyped-def]
    """Return the triangular factor of the table's transpose; the table is overwritten.

    By modified Gram-Schmidt, which on a design with its response appended gives least
    squares as accurately as Householder's method (Björck 1967), and is seven times as
    fast as LAPACK on so few columns.
    """
    width, rows = table.shape
    upper = np.zeros((width, width))
    for i in range(width):
        squares = 0.0
        for m in range(rows):
            squares += table[i, m] * table[i, m]
        length = squares**0.5
        upper[i, i] = length
        for j in range(i + 1, width):
            common = 0.0
            for m in range(rows):
                common += table[i, m] * table[j, m]
            common = common / squares if squares > 0.0 else 0.0
            upper[i, j] = common * length
            for m in range(rows):
                table[j, m] -= common * table[i, m]
    return upper


@compiled
def design_factor(known, response, weights, quadratic):  # type: ignore[no-untyped-def]
    """Return the factor of a design (ones, the known rows, perhaps (log2 q)²) and its response.

    Parameters
    ----------
    weights : numpy.ndarray, shape (n,), or (0,) for none
        Brought to a mean of one.
    """
    inputs, total = known.shape[0], 0.0
    for i in range(weights.size):
        total += weights[i]
    last = inputs + (2 if quadratic else 1)
    table = np.empty((last + 1, response.size))
    for i in range(response.size):
        root = (weights[i] * (weights.size / total)) ** 0.5 if weights.size else 1.0
        table[0, i] = root
        for j in range(inputs):
            table[1 + j, i] = root * known[j, i]
        if quadratic:
            table[1 + inputs, i] = root * known[0, i] * known[0, i]
        table[last, i] = root * response[i]
    return qr_factor(table)


@compiled
def collinear_column(upper) -> int:  # type: ignore[no-untyped-def]
    """Return the first column of the design that those before it make up, or `DETERMINED`."""
    for j in range(1, upper.shape[0] - 1):
        about_mean = 0.0
        for i in range(1, j + 1):
            about_mean += upper[i, j] * upper[i, j]
        if abs(upper[j, j]) <= COLLINEAR * max(about_mean**0.5, abs(upper[0, j]) * 1e-4):
            return j
    return DETERMINED


@compiled
def solve_triangular(upper, columns):  # type: ignore[no-untyped-def]
    """Return the coefficients of the design's first columns, and 0 for the others."""
    last = upper.shape[0] - 1
    coefficients = np.zeros(last)
    for i in range(columns - 1, -1, -1):
        value = upper[i, last]
        for j in range(i + 1, columns):
            value -= upper[i, j] * coefficients[j]
        coefficients[i] = value / upper[i, i]
    return coefficients


@compiled
def rmse_of(upper, columns, rows) -> float:  # type: ignore[no-untyped-def]
    """Return the RMSE over rows minus coefficients; NaN where none is left."""
    last, squares = upper.shape[0] - 1, 0.0
    for i in range(columns, last + 1):
        squares += upper[i, last] * upper[i, last]
    return (squares / (rows - columns)) ** 0.5 if rows > columns else np.nan


@compiled
def coefficients_of(uppers, columns, parts):  # type: ignore[no-untyped-def]
    """Return the coefficients of one or two parts, 0 for columns they do without."""
    coefficients = np.empty((parts, uppers.shape[1] - 1))
    for p in range(parts):
        coefficients[p] = solve_triangular(uppers[p], columns[p])
    return coefficients


@compiled
def log_times(coefficients, known):  # type: ignore[no-untyped-def]
    """Return the fitted log2 time of each run; a coefficient past the inputs' is the square's."""
    inputs = known.shape[0]
    values = np.empty(known.shape[1])
    for i in range(values.size):
        value = coefficients[0]
        for j in range(inputs):
            value += coefficients[1 + j] * known[j, i]
        if coefficients.size > 1 + inputs:
            value += coefficients[1 + inputs] * known[0, i] * known[0, i]
        values[i] = value
    return values


@compiled
def predicted(coefficients: FloatArray, targets: FloatArray) -> FloatArray:
    """Return the seconds of all parts, added up, at the columns of `targets`.

    Parameters
    ----------
    coefficients : numpy.ndarray, shape (parts, columns)
    targets : numpy.ndarray, shape (1 + k, m)
        log2 of counts and inputs, as the runs come.
    """
    seconds = np.zeros(targets.shape[1])
    for p in range(coefficients.shape[0]):
        logs = log_times(coefficients[p], targets)
        for i in range(seconds.size):
            seconds[i] += 2.0 ** min(max(logs[i], -LARGEST_LOG), LARGEST_LOG)
    return seconds


AUTO, LINEAR, QUADRATIC = 0, 1, 2
TOTAL, SEPARATE = 1, 2
FORMS = {"auto": AUTO, "linear": LINEAR, "quadratic": QUADRATIC}
SPLITTING = {"auto": AUTO, "total": TOTAL, "separate": SEPARATE}
TOO_FEW, NO_SPLIT = -2, -3
"""Numbers of a failure; from 0 on it is the column that is collinear with those before."""
SHARES, GROWTH, ASKED = 1, 2, 3
"""Why computation and communication are fitted apart; 0: they are not."""
REST, UNEVEN = 1, 2
"""What was done to parts that do not add up: the rest taken as communication, or nothing."""

COMPUTATION_BOUND = 0.9
GUARD_LEVELS = 4
GUARD_FACTOR = 1.5
EXACT = 1e-9
ADDS_UP = 0.02
FALLING_WORK = 0.05
STRONG_FALL = 0.10
POOR_FIT = 0.10
MEDIAN_OF_NORMAL = 0.675  # the thesis's rounding of the normal's upper quartile, 0.6745


@compiled
def guard(known, response, top):  # type: ignore[no-untyped-def]
    """Return the form that the held-out largest count clearly prefers, AUTO if none.

    By the median of 2^|e| − 1 over the log2 errors e there (BARNES section 2.2).
    """
    columns, held = known.shape[0] + 2, known[0] == top
    fitted = response[~held]
    upper = design_factor(known[:, ~held], fitted, np.empty(0), True)
    if fitted.size < columns or collinear_column(upper) != DETERMINED:
        return AUTO
    error, there = np.empty(2), known[:, held]
    for form in range(2):
        coefficients = solve_triangular(upper, columns - 1 + form)
        middle = np.median(np.abs(log_times(coefficients, there) - response[held]))
        error[form] = 2.0 ** min(middle, LARGEST_LOG) - 1.0
    if error[1] > GUARD_FACTOR * error[0] + EXACT:
        return LINEAR
    return QUADRATIC if error[0] > GUARD_FACTOR * error[1] + EXACT else AUTO


@compiled
def fitted(known, response, form, levels):  # type: ignore[no-untyped-def]
    """Fit one log2 time in a form, or in the better one by RMSE under the hold-out guard.

    Returns a failure, how many of the design's columns the model has, and the factor,
    which has a place for the square unless the form is linear or counts are too few.
    """
    rows, curved = response.size, form != LINEAR and levels.size >= 3
    upper = design_factor(known, response, np.empty(0), curved)
    columns, which = upper.shape[0] - 1, collinear_column(upper)
    if which != DETERMINED:
        if curved and which == columns - 1 and form != QUADRATIC:
            return DETERMINED, columns - 1, upper
        return which, columns, upper
    if not curved or form == QUADRATIC:
        return DETERMINED, columns, upper
    preferred = AUTO if rows > columns else LINEAR
    if preferred == AUTO and levels.size >= GUARD_LEVELS:
        preferred = guard(known, response, levels[levels.size - 1])
    if preferred == AUTO:
        bent = rmse_of(upper, columns - 1, rows) > rmse_of(upper, columns, rows) + EXACT
        preferred = QUADRATIC if bent else LINEAR
    return DETERMINED, columns if preferred == QUADRATIC else columns - 1, upper


@compiled
def usable(parts):  # type: ignore[no-untyped-def]
    """Say whether both parts can be logged: communication that is zero throughout is absent."""
    return np.all(parts[0] > 0.0) and np.any(parts[1] > 0.0)


@compiled
def logs_of(times):  # type: ignore[no-untyped-def]
    """Return log2 of times; a zero counts as half the smallest positive one."""
    least, logs = np.inf, np.empty(times.size)
    for i in range(times.size):
        if times[i] > 0.0:
            least = min(least, times[i])
    for i in range(times.size):
        logs[i] = np.log2(times[i] if times[i] > 0.0 else 0.5 * least)
    return logs


@compiled
def mean_share(log_q, first, second, level):  # type: ignore[no-untyped-def]
    """Return the mean share of the first of two times at one count."""
    here = log_q == level
    return np.mean(first[here] / (first[here] + second[here]))


@compiled
def adding_up(runtime, parts):  # type: ignore[no-untyped-def]
    """Return what was done that the parts add up, by how much they do not, and communication."""
    rest = runtime - parts[0]
    gap = np.median(np.abs(rest - parts[1]) / runtime)
    if gap <= ADDS_UP:
        return 0, gap, parts[1].copy()
    return (REST, gap, rest) if np.all(rest > 0.0) else (UNEVEN, gap, parts[1].copy())


@compiled
def determines(levels, rows, inputs, form) -> bool:  # type: ignore[no-untyped-def]
    """Say whether there are counts and rows enough for the coefficients."""
    needed = 3 if form == QUADRATIC else 2
    return bool(levels.size >= needed and rows >= needed + inputs)


@compiled
def should_separate(known, parts, levels):  # type: ignore[no-untyped-def]
    """Return why to fit the parts apart (BARNES section 3), computation's share, a failure."""
    share = np.inf
    for level in levels:
        share = min(share, mean_share(known[0], parts[0], parts[1], level))
    if share < COMPUTATION_BOUND:
        return SHARES, share, DETERMINED
    upper = design_factor(known, logs_of(parts[1]), np.empty(0), False)
    failed = collinear_column(upper)
    if failed == DETERMINED and solve_triangular(upper, known.shape[0] + 1)[1] > 0.0:
        return GROWTH, share, failed
    return 0, share, failed


@compiled
def fitted_parts(known, runtime, parts, form, levels):  # type: ignore[no-untyped-def]
    """Fit computation and communication apart.

    Returns a failure, the weighted RMSE, what was done to parts that do not add up, the
    gap, both factors, and how many columns either model has.
    """
    done, gap, communication = adding_up(runtime, parts)
    logs = logs_of(communication)
    share = mean_share(known[0], parts[0], 2.0**logs, levels[-1])
    columns = np.zeros(2, np.int64)
    failed, columns[0], first = fitted(known, logs_of(parts[0]), form, levels)
    uppers = np.zeros((2, first.shape[0], first.shape[1]))
    uppers[0] = first
    if failed == DETERMINED:
        failed, columns[1], uppers[1] = fitted(known, logs, form, levels)
    error = share * rmse_of(uppers[0], columns[0], runtime.size)
    error += (1.0 - share) * rmse_of(uppers[1], columns[1], runtime.size)
    return failed, error, done, gap, uppers, columns


@compiled
def choose(known, runtime, splits, form, split):  # type: ignore[no-untyped-def]
    """Fit the total, or the split with the lowest weighted RMSE, by the paper's rules.

    Parameters
    ----------
    known : numpy.ndarray, shape (1 + k, n)
    runtime : numpy.ndarray, shape (n,)
        Seconds.
    splits : numpy.ndarray, shape (ways, 2, n)
        Seconds of computation and communication.
    form, split : int

    Returns
    -------
    failed, way : int
        The way of splitting is -1 for the total.
    why, share, done, gap
        Why parts are apart, computation's least share, what was done to parts that do
        not add up, and by how much they do not.
    uppers : numpy.ndarray, shape (2, columns + 1, columns + 1)
        The triangular factors, the first alone for the total.
    columns : numpy.ndarray of int, shape (2,)
        How many columns each model has.
    """
    levels = np.unique(known[0])
    best, why, share, done, gap, least = -1, 0, 1.0, 0, 0.0, np.inf
    uppers, columns = np.zeros((2, 1, 1)), np.zeros(2, np.int64)
    if not determines(levels, runtime.size, known.shape[0] - 1, form):
        return TOO_FEW, best, why, share, done, gap, uppers, columns
    some_usable, apart = False, split == SEPARATE
    for way in range(splits.shape[0]):
        if split != TOTAL and not apart and usable(splits[way]):
            reason, its_share, failed = should_separate(known, splits[way], levels)
            apart = reason != 0 or failed != DETERMINED
    for way in range(splits.shape[0]):
        if split == TOTAL or not usable(splits[way]):
            continue
        some_usable = True
        reason, its_share, failed = should_separate(known, splits[way], levels)
        if failed == DETERMINED and not apart:
            continue
        if failed == DETERMINED:
            failed, error, what, off, both, widths = fitted_parts(
                known, runtime, splits[way], form, levels
            )
        if failed != DETERMINED:
            return failed, best, why, share, done, gap, uppers, columns
        if best < 0 or error < least:
            best, why, share, done, gap, least = way, reason, its_share, what, off, error
            why, uppers, columns = ASKED if reason == 0 else reason, both, widths
    if best >= 0 or (split == SEPARATE and not some_usable):
        failed = DETERMINED if best >= 0 else NO_SPLIT
        return failed, best, why, share, done, gap, uppers, columns
    failed, columns[0], total = fitted(known, logs_of(runtime), form, levels)
    uppers = np.zeros((2, total.shape[0], total.shape[1]))
    uppers[0] = total
    return failed, best, why, share, done, gap, uppers, columns


@compiled
def error_at(
    coefficients: FloatArray, known: FloatArray, runtime: FloatArray, level: float
) -> float:
    """Return the median of 2^|e| − 1 over the runs at one count (log2), e their log2 errors."""
    here = known[0] == level
    seconds = predicted(coefficients, known[:, here])
    return float(np.median(2.0 ** np.abs(np.log2(seconds / runtime[here])) - 1.0))


@compiled
def work_by_level(known, runtime):  # type: ignore[no-untyped-def]
    """Return the counts (log2), the median of log2 work at each, and a failure.

    Times are first brought to equal inputs with the exponents of a linear fit.
    """
    levels, logs = np.unique(known[0]), logs_of(runtime)
    upper = design_factor(known, logs, np.empty(0), False)
    coefficients = solve_triangular(upper, known.shape[0] + 1)
    work = logs + known[0]
    for j in range(1, known.shape[0]):
        work -= coefficients[1 + j] * known[j]
    middles = np.empty(levels.size)
    for v in range(levels.size):
        middles[v] = np.median(work[known[0] == levels[v]])
    return levels, middles, collinear_column(upper)


@compiled
def weighted_rmse(known, uppers, columns, coefficients):  # type: ignore[no-untyped-def]
    """Return the RMSE of the parts, weighted by their shares at the largest count (BARNES 4.2)."""
    rows = known.shape[1]
    error = rmse_of(uppers[0], columns[0], rows)
    if coefficients.shape[0] == 1:
        return error
    top = known[:, known[0] == known[0].max()]
    first, second = predicted(coefficients[:1], top), predicted(coefficients[1:], top)
    share = np.mean(first / (first + second))
    return share * error + (1.0 - share) * rmse_of(uppers[1], columns[1], rows)


@compiled
def grade_of_fit(known, runtime, uppers, columns, coefficients):  # type: ignore[no-untyped-def]
    """Return how severe what runs show of their own fit is: 2 warns, 1 notes, 0 is nothing.

    `predictors.regression.validation` says it in words: no freedom or a poor fit, few
    counts, superlinear steps.
    """
    rows, grade = runtime.size, 0
    if rows <= columns[: coefficients.shape[0]].max():
        return 2
    rmse = weighted_rmse(known, uppers, columns, coefficients)
    levels, middles, failed = work_by_level(known, runtime)
    if levels.size < 3 or 2.0 ** (MEDIAN_OF_NORMAL * rmse) - 1.0 > POOR_FIT:
        return 2
    for v in range(levels.size - 1 if failed == DETERMINED else 0):
        fall = 1.0 - 2.0 ** (middles[v + 1] - middles[v])
        if fall > FALLING_WORK:
            grade = max(grade, 2 if fall > STRONG_FALL else 1)
    return grade


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
    sizes = runs[2]
    low, high = sizes.min(), sizes.max()
    unit = sizes if high < spread * low else np.ones(sizes.size)
    known = np.log2(runs[:3:2] if high >= spread * low else runs[:1])
    are_split = np.all(np.isfinite(runs[3])) and np.any(runs[4] > 0.0)
    splits = np.empty((1 if are_split else 0, 2, sizes.size))
    if are_split:
        splits[0] = runs[3:5] / unit
    runtime = runs[1] / unit
    return known, runtime, np.log2(runtime), splits, low, high


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
