"""How errors of runtime predictions are stated: medians, distributions, expectations."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from predictors.base import FloatArray
from predictors.errors import PredictorError

MEDIAN_OF_NORMAL = 0.675  # the thesis's rounding of the normal's upper quartile, 0.6745


def expected_mape(rmse: float) -> float:
    """Return the median absolute error that a fit's RMSE promises, a fraction.

    E(MAPE) = 2^(0.675·RMSE) − 1, RMSE in log2 units (GARREN section 3.1, without
    its factor 100): the median of the absolute error if the log errors are normal
    without bias.

    Examples
    --------
    >>> round(expected_mape(0.306), 4)
    0.1539
    """
    if not rmse >= 0.0:
        raise PredictorError(f"rmse must not be negative, got {rmse}")
    return float(2.0 ** (MEDIAN_OF_NORMAL * rmse) - 1.0)


def focal_tolerance(half_width: float) -> float:
    """Return the half-width h of a focal region in log2 units as a fraction, 2^h − 1.

    Examples
    --------
    >>> round(focal_tolerance(0.3), 4)
    0.2311
    """
    if not half_width > 0.0:
        raise PredictorError(f"a focal half-width must be positive, got {half_width}")
    return float(2.0**half_width - 1.0)


def relative_errors(observed: ArrayLike, predicted: ArrayLike) -> FloatArray:
    """Return (predicted − observed) / observed, signed, element by element.

    Raises
    ------
    PredictorError
        If shapes differ or an observed time is not positive.
    """
    truth = np.asarray(observed, dtype=np.float64)
    guess = np.asarray(predicted, dtype=np.float64)
    if truth.shape != guess.shape:
        raise PredictorError(f"{truth.shape} observed times against {guess.shape} predicted ones")
    if truth.size == 0 or not (truth > 0.0).all():
        raise PredictorError("observed times must be positive and at least one")
    errors: FloatArray = (guess - truth) / truth
    return errors


def median_error(observed: ArrayLike, predicted: ArrayLike) -> float:
    """Return the median absolute relative error, a fraction.

    The thesis writes MAPE for it, in percent (GARREN section 3.1); it divides by
    the observed time.
    """
    return float(np.median(np.abs(relative_errors(observed, predicted))))


@dataclass(frozen=True)
class ErrorDistribution:
    """Distribution of signed relative errors, as fractions (GARREN Table 4.1).

    Examples
    --------
    >>> ErrorDistribution.of([100.0, 100.0, 100.0], [90.0, 105.0, 120.0]).median
    0.05
    """

    median_absolute: float
    minimum: float
    lower_quartile: float
    median: float
    upper_quartile: float
    maximum: float

    @classmethod
    def of(cls, observed: ArrayLike, predicted: ArrayLike) -> "ErrorDistribution":
        """Return the distribution of predicted times around observed ones."""
        errors = relative_errors(observed, predicted)
        low, lower, middle, upper, high = np.percentile(errors, [0, 25, 50, 75, 100])
        return cls(
            median_absolute=float(np.median(np.abs(errors))),
            minimum=float(low),
            lower_quartile=float(lower),
            median=float(middle),
            upper_quartile=float(upper),
            maximum=float(high),
        )
