"""Curves over processor counts alone: what all answer alike, and three in closed form.

Amdahl's law, universal scalability, and Downey's curve by descent are references.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from predictors.base import FloatArray, Remark, asked_of
from predictors.curves.estimator import Evidence, RuntimeEstimator
from predictors.downey import check_parameters, normalised_time
from predictors.errors import PredictorError, check_choice
from predictors.least_squares import (
    RelativeFit,
    fit_nonnegative,
    fit_range,
    pooled_error,
    spread_range,
)
from predictors.observations import ObservedCurve, checked_targets, observed_curve, observed_frame
from predictors.remarks import data_remarks, far_remarks, few_remark, misfit_remark, single_remarks


class CurveEstimator(RuntimeEstimator):
    """Fit to runs and answer for counts alone; subclasses bring the model.

    A subclass has `_learn`, which sets `curve_`, `_fitted` and `_residuals` among others.

    Attributes
    ----------
    curve_ : ObservedCurve
        The observations as used.
    """

    curve_: ObservedCurve
    _learned = "curve_"
    _fitted: ObservedCurve
    """The observations that the model was fitted to."""
    _residuals: FloatArray
    """Predicted over observed runtime minus 1, of each of them."""
    _needs: ClassVar[tuple[int, str]]
    """How many counts the model needs, and what it is called."""

    def _fit_table(self, table: pd.DataFrame) -> Self:
        return self.fit_observed(observed_frame(table))

    def fit_arrays(self, nprocs: ArrayLike, runtime: ArrayLike) -> Self:
        """Fit to arrays, without the cost of a frame; see `observed_curve` for errors."""
        self.check_parameters()
        return self.fit_observed(observed_curve(nprocs, runtime))

    def fit_observed(self, curve: ObservedCurve) -> Self:
        """Fit to runs that are already checked and merged."""
        self.__dict__.pop("_evidence", None)
        self._learn(curve)
        return self

    def reliability(self, nprocs: ArrayLike | pd.DataFrame, **inputs: ArrayLike) -> list[Remark]:
        """Say how far to trust the predictions, and where to measure next.

        Remarks with a target are about that one, others about the whole curve.
        """
        targets, evidence = np.unique(self._targets(nprocs, inputs)), self._evidence
        if evidence is None:
            return self._model_remarks(targets, self.curve_, None)
        found = self._model_remarks(targets, evidence.ordinary, evidence.declines_after)
        return found + evidence.remarks(targets)

    @abstractmethod
    def _learn(self, curve: ObservedCurve) -> None:
        """Learn from observations that are checked."""

    def _model_remarks(
        self, targets: FloatArray, ordinary: ObservedCurve, end: float | None
    ) -> list[Remark]:
        """Return what the model has to say of distinct targets.

        It can follow the `ordinary` observations, the first ones; `end` is the fastest count,
        where those beyond it decline.
        """
        keeps = self._evidence is not None
        return [
            *data_remarks(self.curve_),
            *few_remark(self._fitted, *self._needs, end),
            *misfit_remark(ordinary, self._residuals[: len(ordinary.nprocs)], keeps),
            *single_remarks(self.curve_.nprocs, targets),
            *far_remarks(self.curve_, targets),
        ]

    def _targets(
        self, nprocs: ArrayLike | pd.DataFrame, inputs: Mapping[str, ArrayLike] | None = None
    ) -> FloatArray:
        if inputs:
            raise PredictorError(
                f"{type(self).__name__} predicts from nprocs alone, not from {', '.join(inputs)}"
            )
        nprocs = asked_of(nprocs, {})[0]
        self.check_fitted(self._learned)
        return checked_targets(nprocs)

    def _rows(
        self, nprocs: ArrayLike | pd.DataFrame, inputs: Mapping[str, ArrayLike]
    ) -> tuple[FloatArray, tuple[int, ...]]:
        targets = self._targets(nprocs, inputs)
        return targets.ravel(), targets.shape


class Law(CurveEstimator):
    """Terms of a law with nothing negative, by least squares on relative errors."""

    _fit: RelativeFit
    _terms: ClassVar[int]
    """How many of 1/n, 1 and n the law has; fewer where fewer counts were measured."""

    @cached_property
    def _evidence(self) -> Evidence:
        return Evidence(self.curve_)

    def _fit_terms(self, curve: ObservedCurve) -> FloatArray:
        """Fit to counts and return the coefficients."""
        self._fitted = curve
        self._fit = fit_nonnegative(self._design(curve.nprocs), curve.runtime)
        self._residuals = self._fit.residuals
        return self._fit.coefficients

    def _model_range(self, targets: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        return fit_range(self._fit, self._design(targets), self._model_seconds(targets), level)

    def _design(self, nprocs: FloatArray) -> FloatArray:
        columns = [1.0 / nprocs, np.ones_like(nprocs), nprocs]
        return np.stack(columns[: min(self._terms, len(self._fitted.nprocs))], axis=1)


class Amdahl(Law):
    """T(n) = serial + parallel / n, least squares on relative errors, both parts >= 0.

    With a single processor count the serial part is zero. A declining end,
    which the law cannot follow, is left out of the fit.

    Attributes
    ----------
    serial_, parallel_ : float
        Seconds.
    curve_, declines_after_
        As of other curves.

    Examples
    --------
    >>> import pandas as pd
    >>> runs = pd.DataFrame({"nprocs": [1, 4, 16], "runtime": [110.0, 35.0, 16.25]})
    >>> model = Amdahl().fit(runs)
    >>> round(model.serial_, 6), round(model.parallel_, 6), model.predict(100).round(6).item()
    (10.0, 100.0, 11.0)
    """

    serial_: float
    parallel_: float
    _needs, _terms = (3, "Amdahl's law with a check"), 2

    def _learn(self, curve: ObservedCurve) -> None:
        self.curve_ = curve
        coefficients = self._fit_terms(self._evidence.ordinary)
        self.serial_, self.parallel_ = float(coefficients[1:].sum()), float(coefficients[0])

    def _model_seconds(self, targets: FloatArray) -> FloatArray:
        least = np.finfo(float).tiny
        return np.asarray(np.maximum(self.serial_ + self.parallel_ / targets, least), float)


class UniversalScalability(Law):
    """T(n) = T(1) (1 + contention (n-1) + coherency n (n-1)) / n, after Gunther.

    In seconds it is p/n + q + c n, which least squares on relative errors finds
    outright with p, q, c >= 0, that is 1 >= contention >= coherency >= 0, so
    that no runtime can come out as zero. With two processor counts the
    coherency is zero, with one the contention too.

    Attributes
    ----------
    serial_time_ : float
        T(1), seconds.
    contention_, coherency_ : float
    curve_, declines_after_
        As of other curves.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> n = np.array([1, 4, 16, 64])
    >>> time = 100 * (1 + 0.05 * (n - 1) + 0.001 * n * (n - 1)) / n
    >>> model = UniversalScalability().fit(pd.DataFrame({"nprocs": n, "runtime": time}))
    >>> round(model.contention_, 6), round(model.coherency_, 6)
    (0.05, 0.001)
    """

    serial_time_: float
    contention_: float
    coherency_: float
    _needs, _terms = (4, "the universal scalability law with a check"), 3

    def _learn(self, curve: ObservedCurve) -> None:
        self.curve_ = curve
        coefficients = self._fit_terms(curve)
        coherency = float(coefficients[2]) if len(coefficients) > 2 else 0.0
        self.serial_time_ = float(coefficients.sum())
        self.contention_ = (float(coefficients[1:2].sum()) + coherency) / self.serial_time_
        self.coherency_ = coherency / self.serial_time_

    def _model_seconds(self, targets: FloatArray) -> FloatArray:
        predicted = self._design(targets) @ self._fit.coefficients
        return np.asarray(np.maximum(predicted, np.finfo(float).tiny), float)


@dataclass(eq=False, repr=False)
class LevenbergMarquardt(CurveEstimator):
    """Downey's curve by local descent from a given start.

    The objective is flat where all observations lie in one piece and has kinks
    at the breakpoints; from an arbitrary start the descent often ends far from
    the best instance. It is here to be compared with.

    Parameters
    ----------
    start : tuple of float
        First A and sigma.
    scale : {"free", "unit"}
        Whether the unit of time is fitted too, or times are the normalised ones.

    Attributes
    ----------
    A_, sigma_, scale_ : float
        The instance: T(n) = scale_ x normalised_time(n, A_, sigma_).

    Examples
    --------
    >>> import pandas as pd
    >>> from predictors.downey import normalised_time
    >>> n = [2, 8, 30, 50]
    >>> runs = pd.DataFrame({"nprocs": n, "runtime": normalised_time(n, 20, 0.5)})
    >>> LevenbergMarquardt(start=(25, 0.4)).fit(runs).predict([16]).round(3).tolist()
    [1.484]
    """

    start: tuple[float, float] = (50.0, 0.5)
    scale: Literal["free", "unit"] = "free"
    _needs = 3, "Downey's curve"

    def check_parameters(self) -> None:
        """Refuse a start or scale that is none; see `Estimator`."""
        check_parameters(*self.start)
        check_choice(("free", "unit"), scale=self.scale)

    def _learn(self, curve: ObservedCurve) -> None:
        from scipy.optimize import least_squares

        A, sigma = self.start
        nearest = curve.runtime[0] / normalised_time(curve.nprocs[0], A, sigma)
        start = np.array([A, sigma, np.log(nearest)][: 3 if self.scale == "free" else 2])

        def residuals(parameters: FloatArray) -> FloatArray:
            times = normalised_time(curve.nprocs, *_instance(parameters)[:2])
            return np.asarray(times * _instance(parameters)[2] / curve.runtime - 1.0, float)

        if len(curve.nprocs) == 1:
            start[:2] = _IDEAL * curve.nprocs[0], 0.0
            start[2:] = np.log(curve.runtime[0] / normalised_time(curve.nprocs[0], *start[:2]))
        elif len(curve.nprocs) >= len(start):
            start = least_squares(residuals, start, method="lm", max_nfev=1000).x
        self.curve_ = self._fitted = curve
        self.A_, self.sigma_, self.scale_ = _instance(start)
        self._residuals = residuals(start)

    def _model_seconds(self, targets: FloatArray) -> FloatArray:
        return np.asarray(self.scale_ * normalised_time(targets, self.A_, self.sigma_), float)

    def _model_range(self, targets: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return a range from the scatter of the residuals alone."""
        error, degrees = pooled_error(self._residuals, 3 if self.scale == "free" else 2)
        return spread_range(self._model_seconds(targets), error, degrees, level)


_IDEAL = 1e6
"""Average parallelism, in times the only count measured, that is ideal scaling."""


def _instance(parameters: FloatArray) -> tuple[float, float, float]:
    """Return A, sigma and scale, held inside the model's domain."""
    log_scale = float(parameters[2]) if len(parameters) == 3 else 0.0
    A, sigma = max(float(parameters[0]), 1.0), abs(float(parameters[1]))
    return A, sigma, float(np.exp(np.clip(log_scale, -200.0, 200.0)))
