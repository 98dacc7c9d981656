"""The compiled heart of the log-log regressions: triangular factors, forms and splits.

Runs come as a table `known`, shape (1 + k, n): log2 of the processor counts, then of
each of the k inputs, a column a run. The triangular factor of a design with the
response as its last column holds all that is asked of a fit (`predictors.leastsquares`).
Failures are numbers here; `predictors.model_choice` puts them into words.
"""

import numba
import numpy as np

AUTO, LINEAR, QUADRATIC = 0, 1, 2
TOTAL, SEPARATE = 1, 2
DETERMINED, TOO_FEW, NO_SPLIT = -1, -2, -3
"""Numbers of a failure; from 0 on it is the column that is collinear with those before."""
SHARES, GROWTH, ASKED = 1, 2, 3
"""Why computation and communication are fitted apart; 0: they are not."""
REST, UNEVEN = 1, 2
"""What was done to parts that do not add up: the rest taken as communication, or nothing."""

COLLINEAR = 1e-9
COMPUTATION_BOUND = 0.9
GUARD_LEVELS = 4
GUARD_FACTOR = 1.5
EXACT = 1e-9
ADDS_UP = 0.02
LARGEST_ERROR = 900.0
"""Errors and times in log2 units are told apart up to here; their powers stay finite."""

compiled = numba.njit(cache=True, error_model="numpy")


@compiled
def put_in_order(values):  # type: ignore[no-untyped-def]
    """Sort an array in place (Shell 1959)."""
    gap = values.size // 2
    while gap > 0:
        for i in range(gap, values.size):
            value, j = values[i], i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap = 1 if gap == 2 else int(gap / 2.2)


@compiled
def middle_of(values):  # type: ignore[no-untyped-def]
    """Return the median of an array, which is put in order."""
    put_in_order(values)
    return 0.5 * (values[(values.size - 1) // 2] + values[values.size // 2])


@compiled
def levels_of(log_q):  # type: ignore[no-untyped-def]
    """Return the distinct values, ascending."""
    ordered, number = log_q.copy(), 0
    put_in_order(ordered)
    for i in range(ordered.size):
        if i == 0 or ordered[i] != ordered[number - 1]:
            ordered[number] = ordered[i]
            number += 1
    return ordered[:number]


@compiled
def triangle(table, upper):  # type: ignore[no-untyped-def]
    """Write the triangular factor of the table's transpose (modified Gram-Schmidt).

    The table is overwritten. On a design with its response appended the factor gives
    least squares as accurately as Householder's (Björck 1967).
    """
    width, rows = table.shape
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


@compiled
def factored(known, response, weights, without, upper):  # type: ignore[no-untyped-def]
    """Write the factor of a design with its response; return how many runs it holds.

    Its columns are ones, the known rows, (log2 q)² if `upper` has a place for it, and
    the response.

    Parameters
    ----------
    weights : numpy.ndarray, shape (n,) or (0,)
        Brought to a mean of one.
    without : float
        log2 of the count whose runs are left out (as zeros), NaN for none.
    """
    inputs, total, number = known.shape[0], 0.0, 0
    last = upper.shape[0] - 1
    for i in range(weights.size):
        total += weights[i]
    table = np.zeros((last + 1, response.size))
    for i in range(response.size):
        if known[0, i] == without:
            continue
        root = (weights[i] * (weights.size / total)) ** 0.5 if weights.size else 1.0
        table[0, i] = root
        for j in range(inputs):
            table[1 + j, i] = root * known[j, i]
        if last > 1 + inputs:
            table[1 + inputs, i] = root * known[0, i] * known[0, i]
        table[last, i] = root * response[i]
        number += 1
    triangle(table, upper)
    return number


@compiled
def collinear(upper):  # type: ignore[no-untyped-def]
    """Return the first column of the design that those before it make up, or -1."""
    for j in range(1, upper.shape[0] - 1):
        about_mean = 0.0
        for i in range(1, j + 1):
            about_mean += upper[i, j] * upper[i, j]
        if abs(upper[j, j]) <= COLLINEAR * max(about_mean**0.5, abs(upper[0, j]) * 1e-4):
            return j
    return DETERMINED


@compiled
def solved(upper, columns):  # type: ignore[no-untyped-def]
    """Return the coefficients of the first `columns` columns, and 0 for the others."""
    last = upper.shape[0] - 1
    coefficients = np.zeros(last)
    for i in range(columns - 1, -1, -1):
        value = upper[i, last]
        for j in range(i + 1, columns):
            value -= upper[i, j] * coefficients[j]
        coefficients[i] = value / upper[i, i]
    return coefficients


@compiled
def log_time(coefficients, known, run):  # type: ignore[no-untyped-def]
    """Return the fitted log2 time of one run; a coefficient beyond the inputs' is the square's."""
    inputs = known.shape[0]
    value = coefficients[0]
    for j in range(inputs):
        value += coefficients[1 + j] * known[j, run]
    if coefficients.size > 1 + inputs:
        value += coefficients[1 + inputs] * known[0, run] * known[0, run]
    return value


@compiled
def guard(known, response, top, none):  # type: ignore[no-untyped-def]
    """Return the form that the held-out largest count clearly prefers, AUTO if none.

    By the median of 2^|e| − 1 over the log2 errors e there (BARNES section 2.2).
    """
    columns = known.shape[0] + 2
    upper, middle = np.zeros((columns + 1, columns + 1)), np.empty(2)
    number = factored(known, response, none, top, upper)
    if number < columns or collinear(upper) != DETERMINED:
        return AUTO
    errors = np.empty(response.size)
    for form in range(2):
        coefficients, held = solved(upper, columns - 1 + form), 0
        for i in range(response.size):
            if known[0, i] == top:
                errors[held] = abs(log_time(coefficients, known, i) - response[i])
                held += 1
        middle[form] = 2.0 ** min(middle_of(errors[:held]), LARGEST_ERROR) - 1.0
    if middle[1] > GUARD_FACTOR * middle[0] + EXACT:
        return LINEAR
    return QUADRATIC if middle[0] > GUARD_FACTOR * middle[1] + EXACT else AUTO


@compiled
def rmse_of(upper, columns, rows):  # type: ignore[no-untyped-def]
    """Return the RMSE over rows minus coefficients; NaN where none is left."""
    last, squares = upper.shape[0] - 1, 0.0
    for i in range(columns, last + 1):
        squares += upper[i, last] * upper[i, last]
    return (squares / (rows - columns)) ** 0.5 if rows > columns else np.nan


@compiled
def fitted(known, response, form, levels, upper):  # type: ignore[no-untyped-def]
    """Fit one log2 time in a form, or in the better one by RMSE under the hold-out guard.

    `upper` takes the factor, and has a place for the square unless the form is linear.
    Returns a failure, and how many of the design's columns the model has.
    """
    none = np.empty(0)
    columns = upper.shape[0] - 1
    rows, curved = factored(known, response, none, np.nan, upper), columns > known.shape[0] + 1
    which = collinear(upper)
    if which != DETERMINED:
        if curved and which == columns - 1 and form != QUADRATIC:
            return DETERMINED, columns - 1
        return which, columns
    if not curved or form == QUADRATIC:
        return DETERMINED, columns
    preferred = AUTO if rows > columns else LINEAR
    if preferred == AUTO and levels.size >= GUARD_LEVELS:
        preferred = guard(known, response, levels[levels.size - 1], none)
    if preferred == AUTO:
        bent = rmse_of(upper, columns - 1, rows) > rmse_of(upper, columns, rows) + EXACT
        preferred = QUADRATIC if bent else LINEAR
    return DETERMINED, columns if preferred == QUADRATIC else columns - 1


@compiled
def usable(parts):  # type: ignore[no-untyped-def]
    """Say whether both parts can be logged: communication that is zero throughout is absent."""
    some = False
    for i in range(parts.shape[1]):
        if not parts[0, i] > 0.0:
            return False
        some |= parts[1, i] > 0.0
    return some


@compiled
def logs_of(times, logs):  # type: ignore[no-untyped-def]
    """Write log2 of times; a zero counts as half the smallest positive one."""
    least = np.inf
    for i in range(times.size):
        if times[i] > 0.0:
            least = min(least, times[i])
    for i in range(times.size):
        logs[i] = np.log2(times[i] if times[i] > 0.0 else 0.5 * least)


@compiled
def mean_share(log_q, first, log_second, level):  # type: ignore[no-untyped-def]
    """Return the mean share of the first of two times at one count."""
    total, number = 0.0, 0
    for i in range(log_q.size):
        if log_q[i] == level:
            total += first[i] / (first[i] + 2.0 ** log_second[i])
            number += 1
    return total / number


@compiled
def least_share(log_q, parts, levels):  # type: ignore[no-untyped-def]
    """Return the least, over the counts, of computation's mean share of the time."""
    least = np.inf
    for v in range(levels.size):
        total, number = 0.0, 0
        for i in range(log_q.size):
            if log_q[i] == levels[v]:
                total += parts[0, i] / (parts[0, i] + parts[1, i])
                number += 1
        least = min(least, total / number)
    return least


@compiled
def adding_up(runtime, parts, communication):  # type: ignore[no-untyped-def]
    """Write communication that adds up with computation; return what was done, and the gap."""
    gaps, all_positive = np.empty(runtime.size), True
    for i in range(runtime.size):
        gaps[i] = abs(runtime[i] - parts[0, i] - parts[1, i]) / runtime[i]
        all_positive &= runtime[i] - parts[0, i] > 0.0
    gap, done = middle_of(gaps), 0
    if gap > ADDS_UP:
        done = REST if all_positive else UNEVEN
    for i in range(runtime.size):
        communication[i] = runtime[i] - parts[0, i] if done == REST else parts[1, i]
    return done, gap


@compiled
def determines(levels, rows, inputs, form):  # type: ignore[no-untyped-def]
    """Say whether there are counts and rows enough for the coefficients."""
    needed = 3 if form == QUADRATIC else 2
    return levels.size >= needed and rows >= needed + inputs


@compiled
def should_separate(known, parts, levels):  # type: ignore[no-untyped-def]
    """Return why to fit the parts apart (BARNES section 3), computation's share, a failure."""
    share = least_share(known[0], parts, levels)
    if share < COMPUTATION_BOUND:
        return SHARES, share, DETERMINED
    width = known.shape[0] + 2
    upper, logs = np.zeros((width, width)), np.empty(parts.shape[1])
    logs_of(parts[1], logs)
    factored(known, logs, np.empty(0), np.nan, upper)
    failed = collinear(upper)
    if failed == DETERMINED and solved(upper, width - 1)[1] > 0.0:
        return GROWTH, share, failed
    return 0, share, failed


@compiled
def fitted_part(known, runtime, splits, form, levels, way, second, upper):  # type: ignore[no-untyped-def]
    """Fit the total (a way of -1), or one part of a split.

    Returns a failure, how many columns the model has, its weighted RMSE (one for the
    total), what was done to parts that do not add up, and the gap.
    """
    logs, communication = np.empty(runtime.size), np.empty(runtime.size)
    done, gap, share = 0, 0.0, 1.0
    if way < 0:
        logs_of(runtime, logs)
    else:
        done, gap = adding_up(runtime, splits[way], communication)
        logs_of(communication, logs)
        share = mean_share(known[0], splits[way, 0], logs, levels[levels.size - 1])
        if not second:
            logs_of(splits[way, 0], logs)
    failed, columns = fitted(known, logs, form, levels, upper)
    rmse = rmse_of(upper, columns, runtime.size)
    return failed, columns, (1.0 - share if second else share) * rmse, done, gap


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
    uppers : numpy.ndarray, shape (ways + 1, 2, columns + 1, columns + 1)
        The triangular factors, of the total's only part last.
    columns : numpy.ndarray of int, shape (ways + 1, 2)
        How many columns each model has.
    """
    levels, ways = levels_of(known[0]), splits.shape[0]
    width = known.shape[0] + (3 if form != LINEAR and levels.size >= 3 else 2)
    uppers = np.zeros((ways + 1, 2, width, width))
    columns = np.zeros((ways + 1, 2), np.int64)
    best, why, share, done, gap, least = -1, 0, 1.0, 0, 0.0, np.nan
    if not determines(levels, runtime.size, known.shape[0] - 1, form):
        return TOO_FEW, best, why, share, done, gap, uppers, columns
    some_usable, failed = False, DETERMINED
    for w in range(ways + 1):
        way, reason, its_share = w, 0, 1.0
        if w == ways:
            if best >= 0 or (split == SEPARATE and not some_usable):
                break
            way = -1
        else:
            if split == TOTAL or not usable(splits[w]):
                continue
            some_usable = True
            reason, its_share, failed = should_separate(known, splits[w], levels)
            if failed != DETERMINED:
                break
            if reason == 0 and split != SEPARATE:
                continue
        error, its_doing, its_gap = 0.0, 0, 0.0
        for p in range(1 if way < 0 else 2):
            failed, columns[w, p], part, its_doing, its_gap = fitted_part(
                known, runtime, splits, form, levels, way, p == 1, uppers[w, p]
            )
            error += part
            if failed != DETERMINED:
                return failed, best, why, share, done, gap, uppers, columns
        if way >= 0 and (best < 0 or error < least):
            best, why, share, done, gap, least = w, reason, its_share, its_doing, its_gap, error
            why = ASKED if reason == 0 else reason
    if split == SEPARATE and not some_usable:
        failed = NO_SPLIT
    return failed, best, why, share, done, gap, uppers, columns


@compiled
def coefficients_of(uppers, columns, parts):  # type: ignore[no-untyped-def]
    """Return the coefficients of one or two parts, 0 for columns they do without."""
    coefficients = np.zeros((parts, uppers.shape[1] - 1))
    for p in range(parts):
        values = solved(uppers[p], columns[p])
        for j in range(values.size):
            coefficients[p, j] = values[j]
    return coefficients


@compiled
def predicted(coefficients, targets):  # type: ignore[no-untyped-def]
    """Return the seconds of all parts, added up, at the columns of `targets`.

    Parameters
    ----------
    coefficients : numpy.ndarray, shape (parts, columns)
    targets : numpy.ndarray, shape (1 + k, m)
        log2 of counts and inputs, as the runs come.
    """
    seconds = np.zeros(targets.shape[1])
    for p in range(coefficients.shape[0]):
        for i in range(seconds.size):
            value = log_time(coefficients[p], targets, i)
            seconds[i] += 2.0 ** min(max(value, -LARGEST_ERROR), LARGEST_ERROR)
    return seconds


@compiled
def up_to(known, runtime, splits, limit, side):  # type: ignore[no-untyped-def]
    """Return the runs on at most so many processors (log2), on at least so many if side is -1."""
    number = 0
    for i in range(runtime.size):
        number += side * known[0, i] <= side * limit
    its_known, its_runtime = np.empty((known.shape[0], number)), np.empty(number)
    its_splits = np.empty((splits.shape[0], 2, number))
    at = 0
    for i in range(runtime.size):
        if side * known[0, i] <= side * limit:
            for j in range(known.shape[0]):
                its_known[j, at] = known[j, i]
            for w in range(splits.shape[0]):
                its_splits[w, 0, at] = splits[w, 0, i]
                its_splits[w, 1, at] = splits[w, 1, i]
            its_runtime[at] = runtime[i]
            at += 1
    return its_known, its_runtime, its_splits


@compiled
def error_at(coefficients, known, runtime, level):  # type: ignore[no-untyped-def]
    """Return the median of 2^|e| − 1 over the runs at one count (log2), e their log2 errors."""
    seconds, number = predicted(coefficients, known), 0
    errors = np.empty(runtime.size)
    for i in range(runtime.size):
        if known[0, i] == level:
            errors[number] = 2.0 ** abs(np.log2(seconds[i] / runtime[i])) - 1.0
            number += 1
    return middle_of(errors[:number])


@compiled
def work_by_level(known, runtime):  # type: ignore[no-untyped-def]
    """Return the counts (log2), the median of log2 work at each, and a failure.

    Times are first brought to equal inputs with the exponents of a linear fit.
    """
    levels, width = levels_of(known[0]), known.shape[0] + 2
    middles, work = np.empty(levels.size), np.empty(runtime.size)
    upper, some = np.zeros((width, width)), np.empty(runtime.size)
    logs_of(runtime, work)
    factored(known, work, np.empty(0), np.nan, upper)
    failed = collinear(upper)
    coefficients = solved(upper, width - 1)
    for v in range(levels.size):
        number = 0
        for i in range(runtime.size):
            if known[0, i] == levels[v]:
                some[number] = work[i] + known[0, i]
                for j in range(1, known.shape[0]):
                    some[number] -= coefficients[1 + j] * known[j, i]
                number += 1
        middles[v] = middle_of(some[:number])
    return levels, middles, failed
