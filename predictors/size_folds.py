"""Cross-validation in blocks of neighbouring sizes, which tests extrapolation too."""

from collections.abc import Callable, Sequence

import numpy as np

from predictors.base import BoolArray, FloatArray

Solve = Callable[[FloatArray, FloatArray], FloatArray]
BLOCKS = 5


def folds_by_size(values: FloatArray, blocks: int = BLOCKS) -> list[BoolArray]:
    """Return the rows to hold out in each fold: blocks of neighbouring values.

    Equal values stay together, so that a held-out size was never seen; the
    outer blocks are extrapolations.

    Examples
    --------
    >>> [fold.nonzero()[0].tolist() for fold in folds_by_size(np.array([1.0, 3.0, 1.0, 2.0]))]
    [[0, 2], [3], [1]]
    >>> folds_by_size(np.ones(4))
    []
    """
    distinct = np.unique(values)
    if len(distinct) < 2:
        return []
    return [
        np.isin(values, block) for block in np.array_split(distinct, min(blocks, len(distinct)))
    ]


def score_folds(
    columns: FloatArray, seconds: FloatArray, folds: Sequence[BoolArray], solve: Solve
) -> FloatArray:
    """Return |ln(predicted / seconds)| of every held-out row, fold after fold."""
    floor = 1e-3 * seconds.min()
    errors = []
    for held in folds:
        coefficients = solve(columns[~held], seconds[~held])
        predicted = np.maximum(columns[held] @ coefficients, floor)
        errors.append(np.abs(np.log(predicted / seconds[held])))
    return np.concatenate(errors)


def simplest_good(errors: FloatArray, sizes: Sequence[int]) -> int:
    """Return the candidate with the fewest coefficients not clearly worse than the best.

    Not clearly worse: its mean excess over the best is within one standard
    error of the row by row differences, or 5 % of the best's own mean error;
    among equals the smaller error wins.

    Parameters
    ----------
    errors : numpy.ndarray, shape (candidates, rows)
    sizes : sequence of int
        Coefficients of each candidate.
    """
    best = int(errors.mean(axis=1).argmin())
    excess = errors - errors[best]
    means = errors.mean(axis=1)
    margin = np.maximum(excess.std(axis=1) / np.sqrt(errors.shape[1]), 0.05 * means[best])
    allowed = excess.mean(axis=1) <= margin
    order = sorted(np.flatnonzero(allowed).tolist(), key=lambda at: (sizes[at], means[at], at))
    return int(order[0])


def range_from_folds(
    columns: FloatArray,
    seconds: FloatArray,
    sizes: FloatArray,
    solve: Solve,
    wanted: FloatArray,
    answer: FloatArray,
    level: float,
) -> tuple[FloatArray, FloatArray]:
    """Return the jackknife+ range of ratios around `answer`, from blocks of sizes.

    Parameters
    ----------
    columns, seconds, sizes : numpy.ndarray
        Design matrix, runtimes and problem sizes of the runs.
    solve : callable
        Columns and seconds to coefficients.
    wanted : numpy.ndarray, shape (targets, coefficients)
    answer : numpy.ndarray, shape (targets,)
        The predictions, which the range always contains.
    level : float
        Share of runs to hold.
    """
    folds = folds_by_size(sizes, 2 * BLOCKS)
    if not folds:
        return answer / 2, answer * 2
    floor = 1e-3 * seconds.min()
    spread = []
    for held in folds:
        coefficients = solve(columns[~held], seconds[~held])
        there = np.maximum(wanted @ coefficients, floor)
        ratios = seconds[held] / np.maximum(columns[held] @ coefficients, floor)
        spread.append(there[None, :] * ratios[:, None])
    outcomes = np.concatenate(spread)
    tail = (1 - level) / 2
    low = np.quantile(outcomes, tail, axis=0, method="lower")
    high = np.quantile(outcomes, 1 - tail, axis=0, method="higher")
    return np.minimum(low, answer), np.maximum(high, answer)
