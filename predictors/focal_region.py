"""Which training runs a focused regression looks at, and how much each weighs (GARREN)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from predictors.base import FloatArray
from predictors.errors import PredictorError
from predictors.focal_kernels import ROUNDING, region


@dataclass(frozen=True)
class FocalRegion:
    """The rows in focus.

    Attributes
    ----------
    rows : numpy.ndarray of bool, shape (n,)
    half_width : float
        In log2 units of time, after widening; infinite without a focal time.
    widened : int
        How many times it was widened by 0.1 to hold enough rows.
    """

    rows: np.ndarray
    half_width: float
    widened: int = 0


def within_time(log_time: FloatArray, focal_time: float, half_width: float) -> np.ndarray:
    """Return which log2 times lie within the half-width of the focal time (GARREN 3.2)."""
    inside: np.ndarray = np.abs(log_time - np.log2(focal_time)) <= half_width + ROUNDING
    return inside


def within_bands(
    columns: Mapping[str, FloatArray], condition: Mapping[str, float], band: float
) -> np.ndarray:
    """Return the rows with every conditioned column within ± band of its value, in log2.

    With the ratio of two processor dimensions as the column and band 1 this is
    the thesis's region k ± 1 (GARREN section 3.4.3); with band 0, equality.

    Raises
    ------
    PredictorError
        If a conditioned column is missing or not positive.
    """
    inside: np.ndarray | None = None
    for name, value in condition.items():
        if name not in columns:
            raise PredictorError(f"condition on {name!r}: the observations have no such column")
        column = columns[name]
        if not (column > 0.0).all():
            raise PredictorError(f"condition on {name!r}: its values must be positive")
        meets = np.abs(np.log2(column) - np.log2(value)) <= band + 1e-9
        inside = meets if inside is None else inside & meets
    if inside is None:
        raise PredictorError("a condition needs at least one column")
    return inside


def focal_region(
    log_time: FloatArray,
    design: FloatArray,
    focal_time: float,
    half_width: float,
) -> FocalRegion:
    """Return the runs near the focal time, widening by 0.1 until they determine a fit.

    They do with three rows more than coefficients, at two processor counts or more,
    with no input collinear with the others (runs of equal time tend to have sizes in
    proportion to their counts). If even all rows do not, all are taken.

    Parameters
    ----------
    log_time : numpy.ndarray, shape (n,)
    design : numpy.ndarray, shape (n, columns)
        Intercept, log2 q, log2 inputs.
    focal_time : float, seconds
    half_width : float, log2 units
    """
    known = np.ascontiguousarray(design[:, 1:].T)
    return FocalRegion(*region(known, log_time, float(np.log2(focal_time)), float(half_width)))


def distance_weights(log_time: FloatArray, focal_time: float, half_width: float) -> FloatArray:
    """Return weights that fall with the distance from the focal time, 1 at it.

    w = 1 / (1 + (|LT − LT0| / h)²): one half at the edge of the region h. The thesis
    describes such weights on the complete training set without a formula (section 3.2).
    """
    distance = (log_time - np.log2(focal_time)) / half_width
    weights: FloatArray = 1.0 / (1.0 + distance * distance)
    return weights
