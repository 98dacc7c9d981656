"""Least squares on columns of very different size, with or without a sign constraint."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import nnls

from predictors.base import BoolArray, FloatArray
from predictors.errors import PredictorError

Method = Literal["nnls", "ols"]
Weights = Literal["absolute", "relative"]
RANK_TOLERANCE = 1e-10
ROW_TOLERANCE = 1e-6


@dataclass(frozen=True)
class LinearFit:
    """Coefficients of a linear model and what the data say of them.

    Attributes
    ----------
    coefficients : numpy.ndarray, shape (p,)
        In the units of the columns; those that are not `determined` are one
        choice among many.
    rank : int
        Rank of the columns, each normalised to length 1.
    condition : float
        Largest over smallest singular value within the rank.
    determined : numpy.ndarray of bool, shape (p,)
        Which coefficients the data fix.
    scales : numpy.ndarray, shape (p,)
        What normalises each column: one over its length.
    blind : numpy.ndarray, shape (p - rank, p)
        Directions, in normalised columns, in which the data say nothing.
    """

    coefficients: FloatArray
    rank: int
    condition: float
    determined: BoolArray
    scales: FloatArray
    blind: FloatArray

    def answers(self, columns: FloatArray) -> BoolArray:
        """Return for each row whether the data determine its value."""
        rows = columns * self.scales
        hidden = np.linalg.norm(rows @ self.blind.T, axis=1)
        return np.asarray(hidden <= ROW_TOLERANCE * np.linalg.norm(rows, axis=1))


def check_method(method: str, weights: str) -> None:
    """Raise a `PredictorError` unless both are known."""
    if method not in ("nnls", "ols"):
        raise PredictorError(f"method must be 'nnls' or 'ols', got {method!r}")
    if weights not in ("absolute", "relative"):
        raise PredictorError(f"weights must be 'absolute' or 'relative', got {weights!r}")


def solve(columns: FloatArray, seconds: FloatArray, method: Method, weights: Weights) -> FloatArray:
    """Return the coefficients alone: the fast path of cross-validation."""
    rows = 1.0 / seconds if weights == "relative" else np.ones_like(seconds)
    weighted = columns * rows[:, None]
    lengths = np.linalg.norm(weighted, axis=0)
    lengths[lengths == 0] = 1.0
    target = seconds * rows
    if method == "ols":
        return np.asarray(np.linalg.lstsq(weighted / lengths, target, rcond=1e-12)[0] / lengths)
    scale = float(target.max())
    found, _ = nnls(weighted / lengths, target / scale, maxiter=100 * columns.shape[1])
    return np.asarray(found * scale / lengths)


def fit_linear(
    columns: FloatArray, seconds: FloatArray, method: Method, weights: Weights
) -> LinearFit:
    """Fit seconds = columns · coefficients and report what is determined.

    Parameters
    ----------
    columns : numpy.ndarray, shape (n, p)
    seconds : numpy.ndarray, shape (n,)
        Positive.
    method : {"nnls", "ols"}
        With or without the constraint that no coefficient is negative.
    weights : {"absolute", "relative"}
        Errors in seconds, or divided by the seconds.

    References
    ----------
    Lawson & Hanson, Solving Least Squares Problems, chapter 23.
    """
    rows = 1.0 / seconds if weights == "relative" else np.ones_like(seconds)
    weighted = columns * rows[:, None]
    lengths = np.linalg.norm(weighted, axis=0)
    lengths[lengths == 0] = 1.0
    triangle = np.linalg.qr(weighted / lengths, mode="r")
    _, singular, directions = np.linalg.svd(triangle, full_matrices=True)
    rank = int((singular > RANK_TOLERANCE * singular[0]).sum())
    blind = directions[rank:]
    return LinearFit(
        coefficients=solve(columns, seconds, method, weights),
        rank=rank,
        condition=float(singular[0] / singular[rank - 1]),
        determined=np.linalg.norm(blind, axis=0) <= ROW_TOLERANCE,
        scales=1.0 / lengths,
        blind=blind,
    )
