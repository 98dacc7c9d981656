"""Curve fitting on the observations of one phase, for any targets at once."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import isinf
from typing import Literal

import numpy as np

from predictors.adept.curve import DowneyCurve
from predictors.adept.envelope import Envelope, derive_envelope
from predictors.adept.grid import grid_search
from predictors.adept.layout import Layout
from predictors.adept.search import REACH, Instances, Problem, Scale, basis, search
from predictors.adept.selection import Selection, distance_weights, is_well_met, noise_floor, select
from predictors.base import FloatArray, IntArray
from predictors.curves.laws import Amdahl
from predictors.curves.measured import part_of
from predictors.observations import ObservedCurve

_FAR = 4.0


def is_sparse(curve: ObservedCurve, scale: Scale) -> bool:
    """Say whether the observations are fewer than a search can work with."""
    return len(curve.nprocs) <= {"free": 2, "serial": 1, "unit": 0}[scale]


def amdahl_curve(curve: ObservedCurve) -> DowneyCurve:
    """Return Amdahl's law as far as a Downey instance can follow it.

    A, of which nothing is known beyond the observations, is put at four times
    the last count or where the law's serial share bounds it.
    """
    law = Amdahl().fit_arrays(curve.nprocs, curve.runtime)
    serial_time = law.serial_ + law.parallel_
    share = law.serial_ / serial_time
    far = _FAR * float(curve.nprocs[-1])
    if 2.0 * share * far <= 1.0:
        return DowneyCurve(far, 2.0 * share * far, serial_time)
    sigma = min(share * far / max(1.0 - share, 1e-12), 3000.0)
    if sigma < 1.0:
        return DowneyCurve(0.5 / share, 1.0, serial_time)
    return DowneyCurve((far + sigma) / (1.0 + sigma), sigma, serial_time)


def single_bounds(curve: ObservedCurve, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the bounds from one observation: no scaling at all, and ideal scaling."""
    same = np.full(len(targets), float(curve.runtime[0]))
    ideal = same * curve.nprocs[0] / targets
    return np.minimum(same, ideal), np.maximum(same, ideal)


SearchName = Literal["exact", "grid"]
_AHEAD = 2.0
"""The curve as a whole is settled for this many times the last count."""


def rounded(values: FloatArray) -> FloatArray:
    """Round to 40 binary digits, so that a change of the unit of time changes no digit.

    Ties are common among instances, and the last digit would decide them.
    """
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.rint(mantissa * 2.0**40) * 2.0**-40, exponent), float)


_DRIFT = 0.20
"""Relative model error a doubling outside the observations, where there is any noise."""
_BETWEEN = 0.10
"""The same a doubling from the nearest observation, between observations; found on measured
curves, file by file on the other files (docs/methods/adept.md)."""


@dataclass(frozen=True)
class FitOptions:
    """How instances are searched for; see `Adept`."""

    q: float = 2.0
    search: SearchName = "exact"
    scale: Scale = "free"
    floor: float | None = None


@dataclass(frozen=True)
class Answers:
    """What the instances of some targets say, each of shape (t,).

    Attributes
    ----------
    predicted, low, high : numpy.ndarray of float, seconds
        Runtime, and the ends of what indistinguishable instances say.
    serial_time : numpy.ndarray of float, seconds
        Runtime on one processor by the same instance.
    A, sigma : numpy.ndarray of float
    A_low, A_high : numpy.ndarray of float
        Smallest and largest A among the indistinguishable instances.
    unbent : numpy.ndarray of bool
        Whether no indistinguishable instance has its breakpoint among the observations.
    """

    predicted: FloatArray
    low: FloatArray
    high: FloatArray
    serial_time: FloatArray
    A: FloatArray
    sigma: FloatArray
    A_low: FloatArray
    A_high: FloatArray
    unbent: np.ndarray

    def rows(self, places: IntArray) -> "Answers":
        """Return the answers of some of the targets."""
        return Answers(*(column[places] for column in self.__dict__.values()))

    def scaled(self, factor: float) -> "Answers":
        """Return the same with every runtime multiplied by a factor."""
        return replace(
            self,
            predicted=self.predicted * factor,
            low=self.low * factor,
            high=self.high * factor,
            serial_time=self.serial_time * factor,
        )


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

    def __init__(
        self,
        curve: ObservedCurve,
        kept_weight: FloatArray,
        options: FitOptions,
        lender: "Phase | None" = None,
    ) -> None:
        self.lender = lender
        self.curve = curve
        self.kept_weight = kept_weight
        self.options = options
        self._whole: tuple[Instances, Selection] | None = None
        self._floor = 0.0
        self._balanced = False
        self._plain = options.search == "grid"
        self.is_sparse = is_sparse(curve, options.scale)

    @property
    def unit(self) -> float:
        """Seconds that are taken as 1 in the search, so that units do not matter."""
        return 1.0 if self.options.scale == "unit" else float(self.curve.runtime[0])

    @property
    def whole(self) -> tuple[Instances, Selection]:
        """The fit with equal weights, for the curve as a whole; a single row."""
        if self._whole is None:
            self._fit(np.ones((0, len(self.curve.nprocs))), np.zeros(0))
        assert self._whole is not None
        return self._whole

    @property
    def floor(self) -> float:
        """Relative noise below which instances are not told apart."""
        assert self.whole
        return self._floor

    @cached_property
    def fitted(self) -> DowneyCurve:
        """The instance that stands for the whole phase."""
        if self.lender is not None:
            lent = self.lender.fitted
            return replace(lent, serial_time=lent.serial_time * self._borrowed_scale)
        if self.is_sparse:
            return amdahl_curve(self.curve)
        answers = self._answers(self.whole[1])
        return DowneyCurve(
            float(answers.A[0]), float(answers.sigma[0]), float(answers.serial_time[0])
        )

    @cached_property
    def residuals(self) -> FloatArray:
        """Predicted over observed runtime minus 1, by the whole curve."""
        if self.lender is not None or self.is_sparse:
            met = self.fitted.runtime(self.curve.nprocs)
            return np.asarray(met / self.curve.runtime - 1.0, float)
        instances, selection = self.whole
        chosen = selection.chosen.item(0)
        B, c, r, _ = instances.values[0, :, chosen]
        F, G = basis(B, np.asarray(instances.high[chosen], float), self.curve.nprocs)
        return np.asarray(c * (F + r * G) * self.unit / self.curve.runtime - 1.0, float)

    @cached_property
    def envelope(self) -> Envelope:
        """What A and sigma can be if no observation is off by more than a delta."""
        worst = float(np.abs(self.residuals).max())
        n, t = self.curve.nprocs, self.curve.runtime
        return derive_envelope(n, t, self.options.scale, REACH * n[-1], worst)

    def answers(self, targets: FloatArray) -> Answers:
        """Predict, an instance a target.

        Parameters
        ----------
        targets : numpy.ndarray of float, shape (t,)
        """
        if self.lender is not None:
            return self.lender.answers(targets).scaled(self._borrowed_scale)
        if not len(targets):
            nothing = np.zeros(0)
            return Answers(*(nothing,) * 8, unbent=nothing > 0.0)
        if isinf(self.options.q) and not self._plain:
            answers = self._answers(self._evenly(targets))
        else:
            weights = distance_weights(self.curve.nprocs, targets, self.options.q)
            answers = self._answers(self._fit(weights, targets)[1])
        return self._sparse(answers, targets) if self.is_sparse else answers

    def spreads(self, nprocs: FloatArray) -> FloatArray:
        """Return largest over smallest prediction minus 1 of the indistinguishable instances."""
        instances, selection = self.whole
        members = np.flatnonzero(selection.members[0])
        breakpoint, c, r = (
            getattr(instances, name)[0, members] for name in ("breakpoint", "factor", "ratio")
        )
        F, G = basis(breakpoint, instances.high[members].astype(float), nprocs[:, None])
        runtime = c * (F + r * G)
        return np.asarray(runtime.max(axis=1) / runtime.min(axis=1) - 1.0, float)

    @cached_property
    def _borrowed_scale(self) -> float:
        """Factor that brings the lender's curve to this phase's observations."""
        assert self.lender is not None
        ratio = self.lender.fitted.runtime(self.curve.nprocs) / self.curve.runtime
        return float(ratio.sum() / (ratio**2).sum())

    def _sparse(self, answers: Answers, targets: FloatArray) -> Answers:
        """Put Amdahl's law in place of instances that nothing chooses between."""
        law = Amdahl().fit_arrays(self.curve.nprocs, self.curve.runtime)
        predicted = law.predict(targets)
        low, high = answers.low, answers.high
        if len(self.curve.nprocs) == 1:
            low, high = single_bounds(self.curve, targets)
        return replace(
            answers,
            predicted=predicted,
            low=np.minimum(low, predicted),
            high=np.maximum(high, predicted),
            serial_time=np.full(len(targets), self.fitted.serial_time),
        )

    def _fit(self, weights: FloatArray, targets: FloatArray) -> tuple[Instances, Selection]:
        """Search and select; the first time, a row for the curve as a whole goes first."""
        if self._whole is not None:
            instances = self._searched(weights, targets)
            return instances, self._selected(instances, targets)
        weights = np.concatenate([np.ones((1, weights.shape[1])), weights])
        targets = np.concatenate([self.curve.nprocs[-1:] * _AHEAD, targets])
        instances = self._searched(weights, targets)
        self._floor, self._balanced = self._noise_of(instances)
        selection = self._selected(instances, targets)
        first, others = slice(0, 1), slice(1, None)
        self._whole = instances.rows(first), selection.rows(first)
        return instances.rows(others), selection.rows(others)

    def _evenly(self, targets: FloatArray) -> Selection:
        """Select for each target among the instances of a single search with equal weights.

        Targets far out get a search that reaches farther. The first time, the
        curve as a whole is settled along with them.
        """
        ahead = self.curve.nprocs[-1:] * _AHEAD
        farthest = targets.max(keepdims=True)
        is_first, is_far = self._whole is None, bool(farthest > ahead)
        if self._whole is not None and not is_far:
            return self._selected(self._whole[0], targets)
        reached = np.concatenate([ahead[: int(is_first)], farthest[: int(is_far)]])
        found = self._searched(np.ones((len(reached), len(self.curve.nprocs))), reached)
        first, last = found.rows(slice(0, 1)), found.rows(slice(len(reached) - 1, None))
        if is_first:
            self._floor, self._balanced = self._noise_of(first)
        if not is_first or is_far:
            if is_first:
                self._whole = first, self._selected(first, ahead)
            return self._selected(last, targets)
        both = self._selected(first, np.concatenate([ahead, targets]))
        self._whole = first, both.rows(slice(0, 1))
        return both.rows(slice(1, None))

    def _selected(self, instances: Instances, targets: FloatArray) -> Selection:
        return select(instances, targets, self._floor, self._balanced, self._plain)

    def _searched(self, weights: FloatArray, targets: FloatArray) -> Instances:
        weights = weights * self.kept_weight
        weights = weights / weights.sum(axis=1, keepdims=True)
        nprocs, runtime = self.curve.nprocs, rounded(self.curve.runtime / self.unit)
        reach = REACH * np.maximum(targets, nprocs[-1])
        if self.options.scale == "unit":  # A/n and N/n are bounds of t(n), however far off they lie
            reach = np.maximum(reach, (nprocs * runtime).max())
        problem = Problem(nprocs, runtime, weights, reach, self.options.scale)
        if self.options.search == "grid":
            return grid_search(problem, targets)
        return search(problem)

    def errors(self, targets: FloatArray) -> FloatArray:
        """Return the relative error of predictions beside what instances leave open."""
        floor = self.floor
        if self.options.floor is None and not self.curve.scatter_degrees_of_freedom:
            floor = floor or noise_floor(self.curve, 0.0, 3)  # one run a count tells of no noise
        if floor == 0.0:
            return np.zeros(len(targets))
        seen = self.curve.nprocs
        away = np.abs(np.log2(targets[:, None] / seen)).min(axis=1)
        outside = (targets < seen[0]) | (targets > seen[-1])
        drift = np.where(outside, _DRIFT, _BETWEEN)
        return np.asarray(np.hypot(floor, drift * away), float)

    def _noise_of(self, instances: Instances) -> tuple[float, bool]:
        """Return the floor, and whether the observations are met well."""
        residual, used = float(np.sqrt(instances.wssre[0].min())), int((self.kept_weight > 0).sum())
        floor = self.options.floor
        if floor is None:
            floor = noise_floor(self.curve, residual, used)
        return floor, is_well_met(floor, residual, used)

    def _answers(self, selection: Selection) -> Answers:
        runtime, low, high, A_low, A_high, bend, serial_time, A, sigma = selection.answers.T
        unit, unbent = self.unit, bend >= self.curve.nprocs[-1] * (1.0 - 1e-9)
        return Answers(
            runtime * unit, low * unit, high * unit, serial_time * unit,
            A, sigma, A_low, A_high, unbent,
        )  # fmt: skip


def phases_of(curve: ObservedCurve, layout: Layout, options: FitOptions) -> list[Phase]:
    """Return a fit for each phase; small ones borrow the shape of all observations."""
    places = np.arange(len(curve.nprocs))
    edges = [*layout.starts, len(places)]
    whole = Phase(part_of(curve, layout.used), layout.kept_weight[layout.used], options)
    if len(layout.starts) == 1:
        return [whole]
    found = []
    for begin, end in pairwise(edges):
        inside = layout.used & (places >= begin) & (places < end)
        part = part_of(curve, inside)
        lender = whole if len(part.nprocs) < 3 else None
        found.append(Phase(part, layout.kept_weight[inside], options, lender))
    return found


def answers_of(rows: FloatArray) -> Answers:
    """Return what `predictors.adept.curve_kernels.answer` says, which may have more rows."""
    return Answers(*rows[:8], *(rows[8:9] > 0.0))


def merged_answers(parts: list[tuple[np.ndarray, Answers]], count: int) -> Answers:
    """Put the answers of phases in the order of the targets."""
    if len(parts) == 1:
        return parts[0][1]
    columns = []
    for name in Answers.__dataclass_fields__:
        column = np.empty(count, bool if name == "unbent" else float)
        for places, answers in parts:
            column[places] = getattr(answers, name)
        columns.append(column)
    return Answers(*columns)
