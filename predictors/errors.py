"""Errors of the predictors package, and the ranges and choices that parameters must keep to."""

import math
import sys
from collections.abc import Collection
from typing import NamedTuple


class PredictorError(ValueError):
    """An observation, input or parameter that no model can use."""


class NotFittedError(PredictorError):
    """A model was asked before it was fitted."""


class UndeterminedError(PredictorError):
    """The observations do not determine what was asked (``strict=True``)."""


class Bounds(NamedTuple):
    """A range of numbers.

    Attributes
    ----------
    words : str
        What a number must be, for messages.
    least, most : float
    error : type
        What is raised.
    """

    words: str
    least: float
    most: float = math.inf
    error: type[ValueError] = PredictorError

    def check(self, **values: float) -> None:
        """Refuse parameters that lie outside, by their names; NaN lies in no range.

        Examples
        --------
        >>> AT_LEAST_1.check(depth=3, window=0)
        Traceback (most recent call last):
        ...
        predictors.errors.PredictorError: window must be at least 1, got 0
        """
        for name, value in values.items():
            if not self.least <= value <= self.most:
                raise self.error(f"{name} must be {self.words}, got {value}")

    def check_or_null(self, **values: float | None) -> None:
        """Refuse what `check` refuses, but for None."""
        known = {name: value for name, value in values.items() if value is not None}
        self._replace(words=f"{self.words}, or null").check(**known)


ABOVE_0, BELOW_1, BELOW_INFINITY = math.ulp(0.0), math.nextafter(1.0, 0.0), sys.float_info.max
AT_LEAST_0 = Bounds("at least 0", 0)
AT_LEAST_1 = Bounds("at least 1", 1)
POSITIVE = Bounds("positive", ABOVE_0)
FINITE = Bounds("at least 0 and finite", 0, BELOW_INFINITY)
POSITIVE_AND_FINITE = Bounds("positive and finite", ABOVE_0, BELOW_INFINITY)
AT_LEAST_1_AND_FINITE = Bounds("at least 1 and finite", 1, BELOW_INFINITY)
SHARE = Bounds("at least 0 and at most 1", 0, 1)
POSITIVE_SHARE = Bounds("above 0 and at most 1", ABOVE_0, 1)
BETWEEN_0_AND_1 = Bounds("between 0 and 1", ABOVE_0, BELOW_1)


def check_choice(
    accepted: Collection[str], error: type[ValueError] = PredictorError, **values: object
) -> None:
    """Refuse parameters that are none of the accepted names.

    Examples
    --------
    >>> check_choice(("mae", "mse"), selection="rmse")
    Traceback (most recent call last):
    ...
    predictors.errors.PredictorError: selection must be one of mae, mse; got 'rmse'
    """
    for name, value in values.items():
        if value not in accepted:
            raise error(f"{name} must be one of {', '.join(accepted)}; got {value!r}")
