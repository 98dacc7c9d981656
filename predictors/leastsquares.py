"""Linear least squares for small designs: one factorisation serves nested models.

The triangular factor R of the design with the response as its last column holds
everything: coefficients, residual spread, R², covariance, prediction intervals,
and the same for every model made of the first columns of the design.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lapack
from scipy.special import stdtrit

from predictors.base import FloatArray
from predictors.errors import PredictorError
from predictors.loglog_kernels import DETERMINED, collinear, solved, triangle

ASSUMED_SPREAD = 0.15  # log2 units, about 11 %: where no degree of freedom is left to tell


def factor(
    design: FloatArray, response: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    """Return the triangular factor of the design with the response appended.

    Parameters
    ----------
    design : numpy.ndarray, shape (rows, columns)
        Its first column is the intercept's, all ones.
    response : numpy.ndarray, shape (rows,)
    weights : numpy.ndarray, shape (rows,), optional
        Non-negative; they are scaled to a mean of one.
    """
    rows, columns = design.shape
    table = np.empty((columns + 1, rows))
    table[:columns], table[columns] = design.T, response
    if weights is not None:
        table *= np.sqrt(weights * (rows / weights.sum()))
    upper = np.zeros((columns + 1, columns + 1))
    triangle(table, upper)
    return upper


def collinear_column(upper: FloatArray) -> int | None:
    """Return the first column of the design that the columns before it make up, if any."""
    which: int = collinear(upper)
    return None if which == DETERMINED else which


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
        values: FloatArray = solved(self.upper, self.columns)[: self.columns]
        return values

    @cached_property
    def inverse(self) -> FloatArray:
        """Inverse of the design's triangular factor: (XᵀX)⁻¹ = inverse·inverseᵀ."""
        inverse: FloatArray
        inverse, info = lapack.dtrtri(self.upper[: self.columns, : self.columns])
        if info != 0:
            raise PredictorError("the inputs are collinear: no unique least-squares fit")
        return inverse

    @property
    def beyond(self) -> FloatArray:
        """What of the response the columns leave: its squares add up to the residuals'."""
        return self.upper[self.columns :, -1]

    @property
    def explained(self) -> FloatArray:
        """What of the response the columns take, the intercept's share first."""
        return self.upper[: self.columns, -1]

    @property
    def squared_error(self) -> float:
        """Sum of squared (weighted) residuals."""
        return float(self.beyond @ self.beyond)

    @property
    def total_squares(self) -> float:
        """Sum of squared (weighted) deviations of the response from its mean."""
        return self.squared_error + float(self.explained[1:] @ self.explained[1:])

    @property
    def freedom(self) -> int:
        """Degrees of freedom left: rows minus coefficients."""
        return self.rows - self.columns

    @property
    def rmse(self) -> float:
        """Root mean squared error over rows minus coefficients; NaN where none is left."""
        return float((self.squared_error / self.freedom) ** 0.5) if self.freedom else float("nan")

    @property
    def spread(self) -> float:
        """Residual spread for intervals: the RMSE, or what is assumed where none is known."""
        return self.rmse if self.freedom >= 1 else ASSUMED_SPREAD

    @property
    def r_squared(self) -> float:
        """Share of the response's variation that is explained (1 for a flat, fitted one)."""
        if self.total_squares <= 0.0:
            return 1.0
        return 1.0 - self.squared_error / self.total_squares

    @property
    def covariance(self) -> FloatArray:
        """Covariance of the coefficients, shape (columns, columns)."""
        variance: FloatArray = (self.inverse @ self.inverse.T) * self.spread**2
        return variance

    def predict(self, design: FloatArray) -> FloatArray:
        """Return the fitted value of each row of `design`."""
        values: FloatArray = design @ self.coefficients
        return values

    def leverage(self, design: FloatArray) -> FloatArray:
        """Return x(XᵀX)⁻¹xᵀ of each row x of `design`."""
        projected = design @ self.inverse
        squares: FloatArray = np.einsum("ij,ij->i", projected, projected)
        return squares

    def deviation(self, design: FloatArray) -> FloatArray:
        """Return the standard error of a new observation at each row of `design`."""
        return self.spread * np.sqrt(1.0 + self.leverage(design))

    def quantile(self, level: float) -> float:
        """Return how many standard errors a two-sided interval of `level` reaches."""
        return float(stdtrit(max(self.freedom, 1), 0.5 + level / 2.0))


def fit_least_squares(
    design: FloatArray, response: FloatArray, weights: FloatArray | None = None
) -> LeastSquares:
    """Fit `response` on all columns of `design`.

    Raises
    ------
    PredictorError
        If there are fewer rows than columns or the columns are collinear.
    """
    rows, columns = design.shape
    if rows < columns:
        raise PredictorError(f"{columns} coefficients need at least {columns} rows, got {rows}")
    upper = factor(design, response, weights)
    which = collinear_column(upper)
    if which is not None:
        raise PredictorError(f"column {which} of the design is collinear with those before it")
    return LeastSquares(upper, columns, rows)


def cooks_distance(
    model: LeastSquares,
    design: FloatArray,
    response: FloatArray,
    weights: FloatArray | None = None,
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
    if model.freedom < 1:
        return np.full(len(response), np.nan)
    scale = model.coefficients.size * model.rmse**2
    if scale <= 1e-24:
        return np.zeros(len(response))
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = residual**2 / scale * leverage / (1.0 - leverage) ** 2
    return np.where(leverage > 1.0 - 1e-9, np.inf, distance)
