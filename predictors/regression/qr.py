"""Least squares on the small designs of log-log models, compiled: one QR factor a fit.

Runs come as a table `known`, shape (1 + k, n): log2 of the processor counts, then of
each of the k inputs, a column a run. The triangular factor of a design with the
response as its last column holds all that is asked of a fit, and of the fits to the
design's first columns (`predictors.least_squares.NestedFit`).
"""

import numpy as np

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
        logs = log_times(coefficients[p], targets)
        for i in range(seconds.size):
            seconds[i] += 2.0 ** min(max(logs[i], -LARGEST_LOG), LARGEST_LOG)
    return seconds
