"""Linear least squares for small designs: one factorisation serves nested models.

The triangular factor R of the design with the response as its last column holds
everything: coefficients, residual spread, R², covariance, prediction intervals,
and the same for every model made of the first columns of the design.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg import lapack
from scipy.special import stdtrit

from predictors.base import FloatArray
from predictors.errors import PredictorError

COLLINEAR = 1e-9
ASSUMED_SPREAD = 0.15  # log2 units, about 11 %: where no degree of freedom is left to tell


@lru_cache(maxsize=64)
def _upper_mask(size: int) -> FloatArray:
    """Return ones on and above the diagonal (an array made once for each size)."""
    return np.triu(np.ones((size, size)))


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
    augmented = np.empty((rows, columns + 1), order="F")
    augmented[:, :columns] = design
    augmented[:, columns] = response
    if weights is not None:
        augmented *= np.sqrt(weights * (rows / weights.sum()))[:, None]
    packed, _, _, info = lapack.dgeqrf(augmented, overwrite_a=1)
    if info != 0:
        raise PredictorError(f"the design of {rows} rows and {columns} columns has no QR factor")
    if rows <= columns:
        full = np.zeros((columns + 1, columns + 1))
        full[:rows] = packed
        packed = full
    upper: FloatArray = packed[: columns + 1] * _upper_mask(columns + 1)
    return upper


def collinear_column(upper: FloatArray) -> int | None:
    """Return the first column of the design that the columns before it make up, if any."""
    rows = upper.tolist()
    for j in range(1, len(rows) - 1):
        about_mean = sum(rows[i][j] ** 2 for i in range(1, j + 1)) ** 0.5
        if abs(rows[j][j]) <= COLLINEAR * max(about_mean, abs(rows[0][j]) * 1e-4):
            return j
    return None


@dataclass(frozen=True)
class LeastSquares:
    """A fitted linear model y = X·β.

    Attributes
    ----------
    coefficients : numpy.ndarray, shape (columns,)
    inverse : numpy.ndarray, shape (columns, columns)
        Inverse of the design's triangular factor: (XᵀX)⁻¹ = inverse·inverseᵀ.
    beyond : numpy.ndarray
        What of the response the columns leave: its squares add up to the residuals'.
    explained : numpy.ndarray, shape (columns,)
        What they take, the intercept's share first.
    rows : int
    """

    coefficients: FloatArray
    inverse: FloatArray
    beyond: FloatArray
    explained: FloatArray
    rows: int

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
        return self.rows - self.coefficients.size

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


def from_factor(upper: FloatArray, rows: int, columns: int) -> LeastSquares:
    """Return the model of the first `columns` columns of a factored design."""
    inverse, info = lapack.dtrtri(upper[:columns, :columns])
    if info != 0:
        raise PredictorError("the inputs are collinear: no unique least-squares fit")
    explained = upper[:columns, -1]
    return LeastSquares(inverse @ explained, inverse, upper[columns:, -1], explained, rows)


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
    return from_factor(upper, rows, columns)


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
