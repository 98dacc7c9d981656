"""How several predictions become one: a damped weighted median and mean, and its range.

The rule works on logarithms of seconds and knows no method; past errors, here and
elsewhere, say how much each method weighs.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class ConsensusRule:
    """The few constants of the combination.

    Attributes
    ----------
    weights : mapping of str to float
        Weight of each method in the median.
    grades : mapping of str to float
        Factor on the weight of a method where it grades itself so.
    line_rate : float
        The straight log-log line decides a share 1 − exp(−line_rate·ln(n / end)) of
        the growth beyond the measurements on its own, the weighted median the rest:
        far out, bends seen in a few measurements say little.
    mean_share : float
        Share of the weighted mean in that of the methods' exponents, the weighted
        median has the rest: exponents are limited, so the mean is robust as well.
    steepest, flattest : float
        Limits of the exponent d ln T / d ln n of any method beyond the measurements.
    typical_exponent, typical_information : float
        Exponent to lean on where measurements say little, and how much they must
        say (the squared deviations of ln n from their mean) to weigh as much.
    """

    weights: Mapping[str, float]
    grades: Mapping[str, float]
    line_rate: float
    mean_share: float
    steepest: float
    flattest: float
    typical_exponent: float
    typical_information: float


@dataclass(frozen=True)
class RangeModel:
    """How large errors in ln T are, by what is known beforehand.

    The scale of an error is base + reach·|ln(n / nearest measured end)| +
    disagreement·(weighted mean distance of the methods from the consensus), with
    base and reach by the number of distinct counts measured (1, 2, 3, 4 and more).

    Attributes
    ----------
    base, reach : tuple of float, length 4
    disagreement : float
    levels, quantiles : tuple of float
        Quantiles of ln(measured / consensus) / scale.
    """

    base: tuple[float, ...]
    reach: tuple[float, ...]
    disagreement: float
    levels: tuple[float, ...]
    quantiles: tuple[float, ...]

    def scale(self, counts: int, distance: FloatArray, disagreement: FloatArray) -> FloatArray:
        """Return the scale of the error in ln T at each target."""
        place = min(counts, len(self.base)) - 1
        apart = np.minimum(disagreement, MOST_DISAGREEMENT)
        scale: FloatArray = (
            self.base[place] + self.reach[place] * distance + self.disagreement * apart
        )
        return scale

    def ends(self, level: float) -> tuple[float, float]:
        """Return the ends of a range of that level, in units of the scale: low <= 0 <= high."""
        wanted = [0.5 - 0.5 * level, 0.5 + 0.5 * level]
        low, high = np.interp(wanted, self.levels, self.quantiles)
        return min(float(low), 0.0), max(float(high), 0.0)


MOST_DISAGREEMENT = 1.5


def weighted_median(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted median of each column, the middle of a tie.

    Parameters
    ----------
    values, weights : numpy.ndarray, shape (k, m)
        Weights are not negative, some in each column positive.
    """
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


def damped_growth(
    rule: ConsensusRule,
    growth: FloatArray,
    distance: FloatArray,
    weights: FloatArray,
    line: int | None,
    information: float | FloatArray,
    line_factor: float = 1.0,
) -> FloatArray:
    """Return the consensus' change of ln T from the nearest measured end.

    Parameters
    ----------
    growth : numpy.ndarray, shape (k, m)
        Each method's ln T minus the consensus at that end.
    distance : numpy.ndarray, shape (m,)
        ln(n / end): positive above the measurements, negative below, never 0.
    weights : numpy.ndarray, shape (k, m)
    line : int or None
        Which method is the straight line, if it could be fitted.
    information : float
        Squared deviations of the measured ln n from their mean.
    line_factor : float
        Factor on the line's rate: below 1 where it has been off before.
    """
    exponents = np.clip(growth / distance, rule.steepest, rule.flattest)
    mean = (weights * exponents).sum(axis=0) / weights.sum(axis=0)
    exponent = weighted_median(exponents, weights)
    exponent = exponent + rule.mean_share * (mean - exponent)
    if line is not None:
        share = 1.0 - np.exp(-rule.line_rate * line_factor * np.abs(distance))
        exponent = exponent + share * (exponents[line] - exponent)
    trust = information / (information + rule.typical_information)
    exponent = rule.typical_exponent + trust * (exponent - rule.typical_exponent)
    change: FloatArray = exponent * distance
    return change


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
