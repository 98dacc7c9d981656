"""Continuous piecewise linear curves, with breakpoints chosen by exact least squares."""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from predictors.errors import PredictorError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_CANDIDATES = 40
"""With more distinct inside points than these, breakpoints are sought among so many of them."""

_NOISELESS = 1e-9  # relative residual below which a fit is exact


def _hinges(x: FloatArray, knots: FloatArray) -> FloatArray:
    """Return columns 1, x and max(0, x − knot) for each knot, shape (n, 2 + k)."""
    return np.column_stack((np.ones_like(x), x, np.maximum(x[:, None] - knots[None, :], 0.0)))


def _candidates(distinct: int, breakpoints: int) -> IntArray:
    """Return which of the sorted distinct points can carry a breakpoint."""
    inside = np.arange(1, distinct - 1)
    if breakpoints > 0 and inside.size > MOST_CANDIDATES:
        inside = inside[np.linspace(0, inside.size - 1, MOST_CANDIDATES).round().astype(int)]
    return inside


def _residual(columns: FloatArray, target: FloatArray) -> float:
    """Return the residual sum of squares of a least-squares fit."""
    weights = np.linalg.lstsq(columns, target, rcond=None)[0]
    return float(np.sum((target - columns @ weights) ** 2))


def _best_subset(design: FloatArray, target: FloatArray, knots: int) -> tuple[float, list[int]]:
    """Return the least residual sum over all choices of so many hinge columns."""
    gram, right = design.T @ design, design.T @ target
    chosen = np.array([(0, 1, *pick) for pick in combinations(range(2, design.shape[1]), knots)])
    systems = gram[chosen[:, :, None], chosen[:, None, :]]
    solved = np.linalg.pinv(systems, hermitian=True) @ right[chosen][..., None]
    explained = np.einsum("sk,sk->s", right[chosen], solved[..., 0])
    # Normal equations lose digits, so the best few are fitted once more.
    few = np.argsort(-explained, kind="stable")[:8]
    again = [(_residual(design[:, chosen[k]], target), chosen[k].tolist()) for k in few]
    return min(again)


def choose_knots(x: FloatArray, y: FloatArray, breakpoints: int = 3) -> IntArray:
    """Return which points should be knots: the ends, and breakpoints between.

    For each number of breakpoints every choice among the observed inside points
    is fitted by least squares on relative errors; the number is the one of the
    smallest Bayesian information criterion, each breakpoint counting twice
    (its place and its slope).

    Parameters
    ----------
    x, y : numpy.ndarray of float, shape (n,)
        Points, in any order; y positive.
    breakpoints : int
        Most breakpoints to try.

    Returns
    -------
    numpy.ndarray of int, shape (2 to 2 + breakpoints,)
        Indices into the sorted distinct values of `x`, rising.

    Raises
    ------
    PredictorError
        If there are fewer than two distinct x.
    """
    distinct = np.unique(x)
    if distinct.size < 2:
        raise PredictorError(f"a curve needs 2 distinct points, got {distinct.size}")
    span = distinct[-1] - distinct[0]
    inside = _candidates(distinct.size, breakpoints)
    design = _hinges((x - distinct[0]) / span, (distinct[inside] - distinct[0]) / span)
    design, target = design / y[:, None], np.ones_like(y)
    best, knots = np.inf, np.empty(0, dtype=np.int64)
    for count in range(max(min(breakpoints, inside.size, x.size - 3), 0) + 1):
        residual, columns = _best_subset(design, target, count)
        mean_square = max(residual / x.size, _NOISELESS**2)
        score = x.size * np.log(mean_square) + (2 + 2 * count) * np.log(x.size)
        if score < best - 1e-9:
            best, knots = score, inside[np.array(columns[2:], dtype=np.int64) - 2]
    return np.concatenate(([0], np.sort(knots), [distinct.size - 1]))


def knot_values(x: FloatArray, y: FloatArray, knots: FloatArray) -> FloatArray:
    """Return y at the knots, by least squares on relative errors.

    Parameters
    ----------
    x, y : numpy.ndarray of float, shape (n,)
        Points; y positive.
    knots : numpy.ndarray of float, shape (k,)
        Rising; points outside them count at the nearest end.

    Raises
    ------
    PredictorError
        If the points leave a value undetermined.
    """
    place = np.clip(x, knots[0], knots[-1])
    hats = np.column_stack([np.interp(place, knots, unit) for unit in np.eye(knots.size)])
    values, _, rank, _ = np.linalg.lstsq(hats / y[:, None], np.ones_like(y), rcond=None)
    if rank < knots.size:
        raise PredictorError(f"{x.size} points do not determine a curve with {knots.size} knots")
    return np.asarray(values)
