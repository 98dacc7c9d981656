"""How several predictions become one: their median, weighed by what each got right before."""

from collections.abc import Hashable, Mapping
from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray
from predictors.errors import PredictorError

PRIOR_ERROR = 0.2
PRIOR_WEIGHT = 2.0
ELSEWHERE_AT_MOST = 3.0
FADING = 0.95
STRONGEST = 4.0
LARGEST_ERROR = 2.0


def weighted_median(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted median of each column, the middle of a tie.

    Parameters
    ----------
    values, weights : numpy.ndarray, shape (k, m)
        Weights are not negative, some in each column positive.
    """
    if (weights == weights[:1]).all():
        ranked = np.sort(values, axis=0)
        return np.asarray(0.5 * (ranked[(len(ranked) - 1) // 2] + ranked[len(ranked) // 2]), float)
    order = np.argsort(values, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    below = np.cumsum(np.take_along_axis(weights, order, axis=0), axis=0)
    half = 0.5 * below[-1]
    slack = 1e-9 * below[-1]
    first = np.argmax(below >= half - slack, axis=0)[None, :]
    last = np.argmax(below > half + slack, axis=0)[None, :]
    ends = np.take_along_axis(ordered, first, axis=0), np.take_along_axis(ordered, last, axis=0)
    middle: FloatArray = 0.5 * (ends[0] + ends[1]).ravel()
    return middle


class Sums(NamedTuple):
    """Runs and their errors, both possibly faded."""

    runs: float
    errors: float

    def plus(self, error: float, fading: float = 1.0) -> "Sums":
        """Return the sums with one more run, older ones faded."""
        return Sums(fading * self.runs + 1.0, fading * self.errors + error)


NOTHING = Sums(0.0, 0.0)


class ErrorMemory:
    """Past errors of every method, on each application and on all together.

    A method's expected error on an application is the mean of what it did there,
    of what it did elsewhere, which weighs as at most 3 runs, and of a common prior
    of 0.2, which weighs as 2. Errors are |ln(predicted / measured)|, at most 2,
    and fade by 0.95 a run on the same application. Weights go with the inverse
    square of the expected error, relative to the methods' median.

    Examples
    --------
    >>> memory = ErrorMemory()
    >>> for _ in range(20):
    ...     memory.record("cfd", {"linear": 0.05, "quadratic": 0.8, "usl": 0.2})
    >>> factors = memory.multipliers("cfd")
    >>> factors["linear"] > factors["usl"] > factors["quadratic"]
    True
    >>> memory.multipliers("unseen")["linear"] < factors["linear"]
    True
    """

    def __init__(self) -> None:
        self._recent: dict[Hashable, dict[str, Sums]] = {}
        self._own: dict[Hashable, dict[str, Sums]] = {}
        self._all: dict[str, Sums] = {}

    def record(self, application: Hashable, log_errors: Mapping[str, float]) -> None:
        """Take in each method's ln(predicted / measured) for one finished run.

        Raises
        ------
        PredictorError
            If an error is NaN.
        """
        recent = self._recent.setdefault(application, {})
        own = self._own.setdefault(application, {})
        for name, value in log_errors.items():
            if np.isnan(value):
                raise PredictorError(f"the error of {name} on {application!r} is NaN")
            error = min(abs(float(value)), LARGEST_ERROR)
            recent[name] = recent.get(name, NOTHING).plus(error, FADING)
            own[name] = own.get(name, NOTHING).plus(error)
            self._all[name] = self._all.get(name, NOTHING).plus(error)

    def expected_errors(self, application: Hashable) -> dict[str, float]:
        """Return each method's expected |ln(predicted / measured)| on an application."""
        recent, own = self._recent.get(application, {}), self._own.get(application, {})
        expected = {}
        for name, everywhere in self._all.items():
            here, mine = recent.get(name, NOTHING), own.get(name, NOTHING)
            runs = everywhere.runs - mine.runs
            weight = min(runs, ELSEWHERE_AT_MOST)
            elsewhere = (everywhere.errors - mine.errors) / runs if runs else 0.0
            parts = here.errors + weight * elsewhere + PRIOR_WEIGHT * PRIOR_ERROR
            expected[name] = parts / (here.runs + weight + PRIOR_WEIGHT)
        return expected

    def multipliers(self, application: Hashable) -> dict[str, float]:
        """Return factors on the methods' weights, between 1/4 and 4; none if nothing is known."""
        expected = self.expected_errors(application)
        if not expected:
            return {}
        middle = float(np.median(list(expected.values())))
        return {
            name: float(np.clip((middle / max(error, 1e-3)) ** 2, 1 / STRONGEST, STRONGEST))
            for name, error in expected.items()
        }
