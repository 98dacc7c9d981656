"""Fits of linear models by least squares, and the ranges of their predictions.

`LeastSquares` keeps the triangular factor R of a design with the response as its last
column, which holds everything: coefficients, residual spread, R², covariance, prediction
intervals, and the same for every model made of the first columns of the design.
`RelativeFit` has non-negative coefficients and minimises relative errors. `LinearFit`
takes columns of very different size, with or without a sign constraint, and says which
coefficients the data determine.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import scipy

from predictors.base import BoolArray, FloatArray
from predictors.errors import PredictorError, check_choice

Method = Literal["nnls", "ols"]
Weights = Literal["absolute", "relative"]
ASSUMED_SPREAD = 0.15  # log2 units, about 11 %: where no degree of freedom is left to tell
PRIOR_ERROR = 0.10
"""Relative error that a model of runtimes is taken to have before any evidence."""
PRIOR_RUNS = 2.0
"""How many observations that belief weighs."""
RANK_TOLERANCE = 1e-10
ROW_TOLERANCE = 1e-6


@dataclass(frozen=True)
class LeastSquares:
    """A fitted linear model y = X·β, kept as its triangular factor.

    Attributes
    ----------
    upper : numpy.ndarray, shape (width + 1, width + 1)
        Of a design that begins with the model's columns, and the response.
    columns : int
        How many of the design's columns the model has.
    rows : int
    """

    upper: FloatArray
    columns: int
    rows: int

    @cached_property
    def coefficients(self) -> FloatArray:
        """β, shape (columns,)."""
        values: FloatArray
        values, _ = scipy.linalg.lapack.dtrtrs(
            self.upper[: self.columns, : self.columns], self.explained
        )
        return values

    @cached_property
    def inverse(self) -> FloatArray:
        """Inverse of the design's triangular factor: (XᵀX)⁻¹ = inverse·inverseᵀ."""
        inverse: FloatArray
        inverse, info = scipy.linalg.lapack.dtrtri(self.upper[: self.columns, : self.columns])
        if info != 0:
            raise PredictorError("the inputs are collinear: no unique least-squares fit")
        return inverse

    @property
    def unexplained(self) -> FloatArray:
        """What of the response the columns do not explain: its squares add up to the residuals'."""
        return self.upper[self.columns :, -1]

    @property
    def explained(self) -> FloatArray:
        """What of the response the columns explain, the intercept's share first."""
        return self.upper[: self.columns, -1]

    @property
    def squared_error(self) -> float:
        """Sum of squared (weighted) residuals."""
        return float(self.unexplained @ self.unexplained)

    @property
    def degrees_of_freedom(self) -> int:
        """Degrees of freedom left: rows minus coefficients."""
        return self.rows - self.columns

    @property
    def rmse(self) -> float:
        """Root mean squared error over rows minus coefficients; NaN where none is left."""
        if not self.degrees_of_freedom:
            return float("nan")
        return float((self.squared_error / self.degrees_of_freedom) ** 0.5)

    @property
    def spread(self) -> float:
        """Residual spread for intervals: the RMSE, or what is assumed where none is known."""
        return self.rmse if self.degrees_of_freedom >= 1 else ASSUMED_SPREAD

    @property
    def r_squared(self) -> float:
        """Share of the response's variation that is explained (1 for a flat, fitted one)."""
        about_mean = self.squared_error + float(self.explained[1:] @ self.explained[1:])
        return 1.0 if about_mean <= 0.0 else 1.0 - self.squared_error / about_mean

    @property
    def covariance(self) -> FloatArray:
        """Covariance of the coefficients, shape (columns, columns)."""
        return np.asarray((self.inverse @ self.inverse.T) * self.spread**2)

    def predict(self, design: FloatArray) -> FloatArray:
        """Return the fitted value of each row of `design`."""
        return np.asarray(design @ self.coefficients)

    def leverage(self, design: FloatArray) -> FloatArray:
        """Return x(XᵀX)⁻¹xᵀ of each row x of `design`."""
        projected = design @ self.inverse
        return np.asarray(np.einsum("ij,ij->i", projected, projected))

    def deviation(self, design: FloatArray) -> FloatArray:
        """Return the standard error of a new observation at each row of `design`."""
        return self.spread * np.sqrt(1.0 + self.leverage(design))

    def quantile(self, level: float) -> float:
        """Return how many standard errors a two-sided interval of `level` reaches."""
        return float(scipy.special.stdtrit(max(self.degrees_of_freedom, 1), 0.5 + level / 2.0))


def cooks_distance(
    model: LeastSquares, design: FloatArray, response: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    """Return Cook's distance of every training row (Cook 1977; GARREN section 4.2).

    It is zero where the fit is exact, and NaN where no degree of freedom is left.
    """
    root = (
        np.ones(len(response))
        if weights is None
        else np.sqrt(weights * (weights.size / weights.sum()))
    )
    leverage = model.leverage(design * root[:, None])
    residual = (response - model.predict(design)) * root
    if model.degrees_of_freedom < 1:
        return np.full(len(response), np.nan)
    scale = model.coefficients.size * model.rmse**2
    if scale <= 1e-24:
        return np.zeros(len(response))
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = residual**2 / scale * leverage / (1.0 - leverage) ** 2
    return np.where(leverage > 1.0 - 1e-9, np.inf, distance)


@dataclass(frozen=True)
class RelativeFit:
    """Coefficients with what is needed for a range.

    Attributes
    ----------
    coefficients : numpy.ndarray of float, shape (p,)
    rows : numpy.ndarray of float, shape (m, p)
        The design over the runtimes.
    error : float
        Relative standard deviation of an observation about the curve.
    degrees_of_freedom : float
        Degrees of freedom behind `error`.
    residuals : numpy.ndarray of float, shape (m,)
        Relative residuals, predicted over observed minus 1.
    """

    coefficients: FloatArray
    rows: FloatArray
    error: float
    degrees_of_freedom: float
    residuals: FloatArray

    @cached_property
    def covariance(self) -> FloatArray:
        """Covariance of the coefficients for relative errors of standard deviation 1, (p, p)."""
        scaled, lengths = unit_columns(self.rows)
        active = self.coefficients > 0.0
        covariance = np.zeros((len(self.coefficients),) * 2)
        used = scaled[:, active]
        inverse = np.linalg.pinv(used.T @ used, hermitian=True)
        covariance[np.ix_(active, active)] = inverse / np.outer(lengths[active], lengths[active])
        return covariance


def fit_nonnegative(design: FloatArray, runtime: FloatArray) -> RelativeFit:
    """Minimise the sum of squared relative errors over coefficients >= 0.

    The design is of shape (m, p), runtimes are seconds of shape (m,).
    """
    rows = design / runtime[:, None]
    coefficients = solve_scaled(*unit_columns(rows), np.ones(len(runtime)), "nnls")
    residuals = rows @ coefficients - 1.0
    error, degrees_of_freedom = pooled_error(residuals, int((coefficients > 0.0).sum()))
    return RelativeFit(coefficients, rows, error, degrees_of_freedom, residuals)


def pooled_error(residuals: FloatArray, parameters: int) -> tuple[float, float]:
    """Return the relative error and its degrees of freedom, residuals and prior belief pooled."""
    squares = float(np.sum(residuals**2))
    own = max(len(residuals) - parameters, 0)
    degrees_of_freedom = PRIOR_RUNS + own
    variance = (PRIOR_RUNS * PRIOR_ERROR**2 + squares) / degrees_of_freedom
    return float(np.sqrt(variance)), degrees_of_freedom


def fit_range(
    fit: RelativeFit, design: FloatArray, predicted: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return the log-symmetric prediction range of a linear fit, which holds `level` of new runs.

    The design is of shape (k, p), what is predicted are seconds of shape (k,).
    """
    scaled = design / predicted[:, None]
    leverage = np.einsum("kp,pq,kq->k", scaled, fit.covariance, scaled)
    error = fit.error * np.sqrt(1.0 + leverage)
    return spread_range(predicted, error, fit.degrees_of_freedom, level)


def spread_range(
    predicted: FloatArray, error: FloatArray | float, degrees_of_freedom: float, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return ``predicted`` over and times exp(quantile x error), Student's quantile."""
    quantile = scipy.special.stdtrit(degrees_of_freedom, 0.5 + 0.5 * level)
    factor = np.exp(np.minimum(quantile * np.asarray(error, float), 50.0))
    return np.asarray(predicted / factor, float), np.asarray(predicted * factor, float)


@dataclass(frozen=True)
class LinearFit:
    """Coefficients of a linear model and what the data say of them.

    Attributes
    ----------
    coefficients : numpy.ndarray, shape (p,)
        In the units of the columns; those that are not `determined` are one
        choice among many.
    scales : numpy.ndarray, shape (p,)
        What normalises each column: one over its length.
    normalised : numpy.ndarray, shape (n, p)
        The columns that it rests on, each of length 1.
    """

    coefficients: FloatArray
    scales: FloatArray
    normalised: FloatArray

    @cached_property
    def _directions(self) -> tuple[FloatArray, FloatArray]:
        """Singular values and directions of the columns."""
        upper = np.linalg.qr(self.normalised, mode="r")
        _, singular, directions = np.linalg.svd(upper, full_matrices=True)
        return singular, directions

    @cached_property
    def rank(self) -> int:
        """Rank of the columns, each normalised to length 1."""
        singular, _ = self._directions
        return int((singular > RANK_TOLERANCE * singular[0]).sum())

    @property
    def null_space(self) -> FloatArray:
        """Directions, in normalised columns, in which the data say nothing, (p - rank, p)."""
        return self._directions[1][self.rank :]

    @property
    def determined(self) -> BoolArray:
        """Which coefficients the data fix, shape (p,)."""
        return np.asarray(np.linalg.norm(self.null_space, axis=0) <= ROW_TOLERANCE)

    def answers(self, columns: FloatArray) -> BoolArray:
        """Return for each row whether the data determine its value."""
        rows = columns * self.scales
        hidden = np.linalg.norm(rows @ self.null_space.T, axis=1)
        return np.asarray(hidden <= ROW_TOLERANCE * np.linalg.norm(rows, axis=1))


def check_method(method: str, weights: str) -> None:
    """Refuse what is not known."""
    check_choice(("nnls", "ols"), method=method)
    check_choice(("absolute", "relative"), weights=weights)


def unit_columns(design: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the columns brought to length 1, and their lengths (1 for a column of zeros)."""
    lengths = lengths_of(design * design)
    return design / lengths, lengths


def lengths_of(squares: FloatArray) -> FloatArray:
    """Return the lengths of columns from the squares of rows, shape (..., n, p); none is 0."""
    lengths: FloatArray = np.sqrt(np.add.reduce(squares, axis=-2))
    lengths[lengths == 0.0] = 1.0
    return lengths


def solve_scaled(
    scaled: FloatArray, lengths: FloatArray, target: FloatArray, method: Method
) -> FloatArray:
    """Return the coefficients of columns that were brought to length 1 from these lengths."""
    if method == "ols":
        return np.asarray(np.linalg.lstsq(scaled, target, rcond=1e-12)[0] / lengths)
    scale = float(target.max())
    from scipy.optimize import nnls  # late: not every run needs it

    found, _ = nnls(scaled, target / scale, maxiter=100 * scaled.shape[1])
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
    rows, target = weighted(columns, seconds, weights)
    scaled, lengths = unit_columns(rows)
    found = solve_scaled(scaled, lengths, target, method)
    return LinearFit(found, 1.0 / lengths, scaled)


def weighted(
    columns: FloatArray, seconds: FloatArray, weights: Weights
) -> tuple[FloatArray, FloatArray]:
    """Return columns and seconds, divided by the seconds where errors are relative."""
    weight = 1.0 / seconds if weights == "relative" else np.ones_like(seconds)
    return columns * weight[:, None], seconds * weight
