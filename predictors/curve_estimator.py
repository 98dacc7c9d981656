"""What every estimator of runtime over processor counts alone does alike."""

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from predictors.base import BoolArray, FloatArray, Remark
from predictors.errors import NotFittedError
from predictors.measured import Evidence
from predictors.observations import (
    ObservedCurve,
    checked_targets,
    observed_curve,
    observed_frame,
    refuse_inputs,
)
from predictors.remarks import check_level, refuse_unusable


class CurveEstimator(ABC):
    """Fit to runs and answer for counts; subclasses bring the model.

    Answers keep to what was measured (`predictors.measured`); `predict_model` is the
    plain model, without that layer.

    A subclass has `_learn`, which sets `curve_` and `_evidence` among others, and
    `_model_seconds`, `_model_range` and `_remarks`.

    Attributes
    ----------
    curve_ : ObservedCurve
        The observations as used.
    """

    curve_: ObservedCurve
    _evidence: Evidence

    def fit(self, observations: pd.DataFrame) -> Self:
        """Fit to columns ``nprocs`` and ``runtime``; see `observed_frame` for errors."""
        return self.fit_observed(observed_frame(observations))

    def fit_arrays(self, nprocs: ArrayLike, runtime: ArrayLike) -> Self:
        """Fit to arrays, without the cost of a frame; see `observed_curve` for errors."""
        return self.fit_observed(observed_curve(nprocs, runtime))

    def fit_observed(self, curve: ObservedCurve) -> Self:
        """Fit to runs that are already checked and merged."""
        self._learn(curve)
        return self

    def predict(
        self, nprocs: ArrayLike, *, strict: bool = False, **inputs: ArrayLike
    ) -> FloatArray:
        """Return runtimes in seconds, shape of `nprocs`.

        At a measured count they lie within the scatter of its runs, in and beyond a
        declining end never below the fastest measured time.

        Raises
        ------
        NotFittedError
            Before `fit`.
        PredictorError
            For a count below 1, or inputs other than `nprocs`.
        UndeterminedError
            With ``strict=True`` for a target graded ``unusable``.
        """
        targets = self._targets(nprocs, inputs)
        if strict:
            refuse_unusable(self.reliability(targets))
        answers, _ = self._evidence.answers(targets.ravel(), self._model_seconds)
        return answers.reshape(targets.shape)

    def predict_model(self, nprocs: ArrayLike) -> FloatArray:
        """Return the plain model's runtimes, which need not keep to what was measured.

        It is for those who correct the model by a layer of their own; beyond
        `declines_after_` it says what the model makes of the counts before.
        """
        targets = self._targets(nprocs)
        return self._model_seconds(targets.ravel()).reshape(targets.shape)

    def predict_range(
        self, nprocs: ArrayLike, level: float = 0.8, **inputs: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return the ends of a prediction range that holds `level` of new runs."""
        check_level(level)
        targets = self._targets(nprocs, inputs)
        flat = targets.ravel()
        answers = self._evidence.answers(flat, self._model_seconds)
        low, high = self._evidence.range(flat, answers, self._model_range(flat, level), level)
        return low.reshape(targets.shape), high.reshape(targets.shape)

    def reliability(self, nprocs: ArrayLike, **inputs: ArrayLike) -> list[Remark]:
        """Say how far to trust the predictions, and where to measure next.

        Remarks with a target are about that one, others about the whole curve.
        """
        targets = np.unique(self._targets(nprocs, inputs))
        return self._remarks(targets) + self._evidence.remarks(targets)

    @property
    def declines_after_(self) -> float | None:
        """The fastest measured count, where those beyond it decline; else None.

        Remarks on counts beyond it have the code ``declining``.
        """
        self._targets(1.0)
        return self._evidence.declines_after

    def declining(self, nprocs: ArrayLike) -> BoolArray:
        """Say which counts lie beyond `declines_after_`: their grade has the code ``declining``."""
        return self._evidence.declining(self._targets(nprocs))

    @abstractmethod
    def _learn(self, curve: ObservedCurve) -> None:
        """Learn from observations that are checked."""

    @abstractmethod
    def _model_seconds(self, targets: FloatArray) -> FloatArray:
        """Return what the model says, seconds, shape (t,)."""

    @abstractmethod
    def _model_range(self, targets: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the range around what the model says, each of shape (t,)."""

    @abstractmethod
    def _remarks(self, targets: FloatArray) -> list[Remark]:
        """Return what the model has to say of distinct targets."""

    def _targets(self, nprocs: ArrayLike, inputs: dict[str, ArrayLike] | None = None) -> FloatArray:
        if inputs:
            refuse_inputs(type(self).__name__, inputs)
        if not hasattr(self, "curve_"):
            raise NotFittedError(f"{type(self).__name__} was asked before fit")
        return checked_targets(nprocs)
