"""Curve fitting on the observations of one phase, for any targets at once."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import inf, isinf, isnan, nan
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from predictors import downey
from predictors.adept.fit import (
    AHEAD,
    LARGEST,
    LEAST,
    PhaseFit,
    Selection,
    answered,
    distance_weights,
    fit_phase,
    graded,
    noise_of,
    problem_of,
    residuals_of,
    select,
    settle,
    settled,
    spreads_of,
)
from predictors.adept.grid import Envelope, derive_envelope, grid_search
from predictors.adept.layout import Layout
from predictors.adept.search import REACH, SERIAL_TIMES, Instances, Scale, search
from predictors.base import BoolArray, FloatArray, IntArray
from predictors.compiling import direct
from predictors.curves.laws import Amdahl
from predictors.observations import ObservedCurve


@dataclass(frozen=True)
class PhaseCurve:
    """A Downey instance whose times are seconds.

    Attributes
    ----------
    A, sigma : float
        Average parallelism and its variance.
    serial_time : float
        Runtime on one processor, seconds.
    declines_after : float
        Count beyond which measured runtimes rise: what is useful ends there.

    Examples
    --------
    >>> curve = PhaseCurve(A=60, sigma=1, serial_time=1200)
    >>> curve.runtime([1, 200]).tolist(), curve.knee, round(curve.largest_at_efficiency(0.9), 2)
    ([1200.0, 20.0], 119.0, 14.33)
    """

    A: float
    sigma: float
    serial_time: float
    declines_after: float = inf

    def runtime(self, nprocs: ArrayLike) -> FloatArray:
        """Return seconds at each count."""
        return np.asarray(self.serial_time * downey.relative_time(nprocs, self.A, self.sigma))

    def speedup(self, nprocs: ArrayLike) -> FloatArray:
        """Return T(1)/T(n)."""
        return downey.speedup(nprocs, self.A, self.sigma)

    @property
    def largest_useful(self) -> float:
        """Count beyond which nothing is gained, real-valued."""
        return min(float(downey.largest_useful(self.A, self.sigma)), self.declines_after)

    @property
    def knee(self) -> float:
        """Processor working set: the count that maximises S(n)^2/n, real-valued."""
        return min(float(downey.knee(self.A, self.sigma)), self.declines_after)

    def largest_at_efficiency(self, least: float) -> float:
        """Return the largest count, real-valued, with at least this efficiency."""
        largest = float(downey.largest_at_efficiency(least, self.A, self.sigma))
        return min(largest, self.declines_after)


_fit_phase, _graded = direct(fit_phase), direct(graded)
_FAR = 4.0
SearchName = Literal["exact", "grid"]


def amdahl_curve(curve: ObservedCurve) -> PhaseCurve:
    """Return Amdahl's law as far as a Downey instance can follow it.

    A, of which nothing is known beyond the observations, is put at four times
    the last count or where the law's serial share bounds it.
    """
    law = Amdahl().fit_arrays(curve.nprocs, curve.runtime)
    serial_time = law.serial_ + law.parallel_
    share = law.serial_ / serial_time
    far = _FAR * float(curve.nprocs[-1])
    if 2.0 * share * far <= 1.0:
        return PhaseCurve(far, 2.0 * share * far, serial_time)
    sigma = min(share * far / max(1.0 - share, 1e-12), 3000.0)
    if sigma < 1.0:
        return PhaseCurve(0.5 / share, 1.0, serial_time)
    return PhaseCurve((far + sigma) / (1.0 + sigma), sigma, serial_time)


_TOO_FEW: Mapping[Scale, int] = {"free": 2, "serial": 1, "unit": 0}
"""So few observations are fewer than a search can work with."""
_DRIFT = 0.20
"""Relative model error a doubling outside the observations, where there is any noise."""
_BETWEEN = 0.10
"""The same a doubling from the nearest observation, between observations; found on measured
curves, file by file on the other files (docs/methods/adept.md)."""


class FitOptions(NamedTuple):
    """How instances are searched for; see `Adept`."""

    q: float = 2.0
    search: SearchName = "exact"
    scale: Scale = "free"
    floor: float | None = None


class Answers(NamedTuple):
    """What the instances of some targets say, each of shape (t,).

    Attributes
    ----------
    predicted, low, high : numpy.ndarray of float, seconds
        Runtime, and the ends of what indistinguishable instances, and the first rejected
        beside them, say.
    serial_time : numpy.ndarray of float, seconds
        Runtime on one processor by the same instance.
    A, sigma : numpy.ndarray of float
    A_low, A_high : numpy.ndarray of float
        Smallest and largest A among the indistinguishable instances.
    unbent : numpy.ndarray of float
        1 where no indistinguishable instance has its breakpoint among the observations.
    """

    predicted: FloatArray
    low: FloatArray
    high: FloatArray
    serial_time: FloatArray
    A: FloatArray
    sigma: FloatArray
    A_low: FloatArray
    A_high: FloatArray
    unbent: FloatArray


@dataclass(eq=False, repr=False)
class Phase:
    """Observations that one curve is to explain.

    Parameters
    ----------
    curve : ObservedCurve
        The observations of this phase alone.
    kept_weight : numpy.ndarray of float, shape (m,)
        Share of its weight that each observation keeps (less than 1 where anomalous).
    options : FitOptions
    lender : Phase, optional
        The fit to all observations, whose shape a phase of one or two borrows.
    """

    curve: ObservedCurve
    kept_weight: FloatArray
    options: FitOptions
    lender: "Phase | None" = None

    def __post_init__(self) -> None:
        self._observed = self.curve.nprocs, self.curve.runtime, self.kept_weight
        self._serial = SERIAL_TIMES[self.options.scale]
        self._plain = self.options.search == "grid"
        self.is_sparse = len(self.curve.nprocs) <= _TOO_FEW[self.options.scale]

    @cached_property
    def fit(self) -> PhaseFit:
        """The fit with equal weights, for the curve as a whole."""
        if self._plain:
            return self._settled(self._searched(*self._ahead))
        fitting = _fit_phase if self._serial is None else fit_phase
        return fitting(self._observed, self._scatter, self._serial)

    @property
    def _ahead(self) -> tuple[FloatArray, FloatArray]:
        """Weights and target by which the curve as a whole is settled."""
        nprocs = self.curve.nprocs
        return np.ones((1, len(nprocs))), nprocs[-1:] * AHEAD

    @property
    def _scatter(self) -> tuple[IntArray, float, int, float]:
        curve, floor = self.curve, self.options.floor
        given = nan if floor is None else floor
        return curve.repeats, curve.scatter, curve.scatter_degrees_of_freedom, given

    def _settled(self, instances: Instances) -> PhaseFit:
        return settle(self._observed, instances, self._scatter, self._serial, self._plain)

    @cached_property
    def whole(self) -> Selection:
        """The instance that stands for the whole phase."""
        return settled(self.fit, self._plain, self.curve.nprocs.item(-1))

    @cached_property
    def fitted(self) -> PhaseCurve:
        """The instance that stands for the whole phase."""
        if self.lender is not None:
            lent = self.lender.fitted
            return replace(lent, serial_time=lent.serial_time * self._factor)
        if self.is_sparse:
            return amdahl_curve(self.curve)
        serial_time, A, sigma = self.whole.answers[3:6, 0].tolist()
        return PhaseCurve(A, sigma, serial_time)

    @cached_property
    def residuals(self) -> FloatArray:
        """Predicted over observed runtime minus 1, by the whole curve."""
        if self.lender is not None:
            return self.lender.misses(self.curve.nprocs, self.curve.runtime / self._factor)
        if self.is_sparse:
            met = self.fitted.runtime(self.curve.nprocs)
            return np.asarray(met / self.curve.runtime - 1.0, float)
        return self.misses(self.curve.nprocs, self.curve.runtime)

    @cached_property
    def envelope(self) -> Envelope:
        """What A and sigma can be if no observation is off by more than a delta."""
        worst = float(np.abs(self.residuals).max())
        n, t = self.curve.nprocs, self.curve.runtime
        return derive_envelope(n, t, self.options.scale, REACH * n[-1], worst)

    def answers(self, targets: FloatArray) -> FloatArray:
        """Return what instances say, a row a figure of `Answers`, an instance a target.

        Parameters
        ----------
        targets : numpy.ndarray of float, shape (t,)
        """
        if self.lender is not None:
            answers = self.lender.answers(targets)
            answers[:4] *= self._factor
            return answers
        if isinf(self.options.q) and not self._plain:
            answers = answered(self._observed, self._serial, self.fit, 1.0, targets)
        else:
            weights = distance_weights(self.curve.nprocs, targets, self.options.q)
            if "fit" in self.__dict__:
                instances = self._searched(weights, targets)
            else:  # the curve as a whole is searched for along with the first targets
                even, ahead = self._ahead
                both = np.concatenate([even, weights]), np.concatenate([ahead, targets])
                found = self._searched(*both)
                self.fit = self._settled(found._replace(values=found.values[:1]))
                instances = found._replace(values=found.values[1:])
            fit = self.fit
            told = fit.floor, fit.balanced, self._plain, fit.unit, self.curve.nprocs[-1]
            answers = select(instances, targets, *told).answers
        return self._sparse(answers, targets) if self.is_sparse else answers

    def graded(
        self, curve: tuple[FloatArray, IntArray, float, int], targets: FloatArray
    ) -> FloatArray:
        """Return what equally weighted instances say, and two rows of grades; see `graded`."""
        if self.lender is None:
            own = self.curve.nprocs, self.fit.floor, self.fit.worst
            return _graded(self._observed, self.fit, 1.0, own, curve, targets)
        worst = float(np.abs(self.residuals[self.kept_weight > 0.0]).max(initial=0.0))
        # so few counts never are without noise, but if that is said
        floor = LARGEST if self.options.floor is None else self.options.floor
        own = self.curve.nprocs, floor, worst
        lent = self.lender._observed, self.lender.fit
        return _graded(*lent, self._factor, own, curve, targets)

    def spreads(self, nprocs: FloatArray) -> FloatArray:
        """Return largest over smallest prediction minus 1 of the indistinguishable instances."""
        members = np.flatnonzero(self.whole.members[0])
        return spreads_of(self.fit.instances, members, nprocs)

    def misses(self, nprocs: FloatArray, runtime: FloatArray) -> FloatArray:
        """Return what the whole curve says of observations over what was measured, minus 1."""
        chosen, fit = self.whole.chosen.item(0), self.fit
        return residuals_of(fit.instances, chosen, fit.unit, nprocs, runtime)

    @cached_property
    def _factor(self) -> float:
        """Factor that brings the lender's curve to this phase's observations."""
        assert self.lender is not None
        ratio = self.lender.misses(self.curve.nprocs, self.curve.runtime) + 1.0
        return float(ratio.sum() / (ratio * ratio).sum())

    def _sparse(self, answers: FloatArray, targets: FloatArray) -> FloatArray:
        """Put Amdahl's law in place of instances that nothing chooses between."""
        predicted = Amdahl().fit_arrays(self.curve.nprocs, self.curve.runtime).predict(targets)
        _, low, high, *_ = answers
        if len(self.curve.nprocs) == 1:  # between no scaling at all, and ideal scaling
            same = np.full(len(targets), float(self.curve.runtime[0]))
            ideal = same * self.curve.nprocs[0] / targets
            low, high = np.minimum(same, ideal), np.maximum(same, ideal)
        serial_time = np.full(len(targets), self.fitted.serial_time)
        ends = np.minimum(low, predicted), np.maximum(high, predicted)
        return np.stack([predicted, *ends, serial_time, *answers[4:]])

    def _searched(self, weights: FloatArray, targets: FloatArray) -> Instances:
        weights = weights * self.kept_weight
        weights = weights / weights.sum(axis=1, keepdims=True)
        observed = self.curve.nprocs, self.curve.runtime
        problem = problem_of(*observed, weights, targets, self._serial)
        return grid_search(problem, targets) if self._plain else search(problem)

    def errors(self, targets: FloatArray) -> FloatArray:
        """Return the relative error of predictions beside what instances leave open."""
        floor, (repeats, scatter, degrees, given) = self.fit.floor, self._scatter
        if isnan(given) and not degrees:
            floor = floor or noise_of(repeats, scatter, degrees, 0.0, 3)  # one run a count: none
        if floor == 0.0:
            return np.zeros(len(targets))
        seen = self.curve.nprocs
        away = np.abs(np.log2(targets[:, None] / seen)).min(axis=1)
        outside = (targets < seen[0]) | (targets > seen[-1])
        drift = np.where(outside, _DRIFT, _BETWEEN)
        return np.asarray(np.hypot(floor, drift * away), float)


def fit_phases(layout: Layout, options: FitOptions) -> list[Phase]:
    """Return a fit for each phase; small ones borrow the shape of all observations."""
    curve, reading = layout.curve, layout.reading
    places = np.arange(len(curve.nprocs))

    def phase(inside: BoolArray, lender: Phase | None = None) -> Phase:
        return Phase(curve.take(inside), reading.kept_weight[inside], options, lender)

    whole = phase(reading.used)
    if len(reading.starts) == 1:
        return [whole]
    found = []
    for begin, end in pairwise([*reading.starts.tolist(), len(places)]):
        inside = reading.used & (places >= begin) & (places < end)
        found.append(phase(inside, whole if inside.sum() < LEAST else None))
    return found
