"""What every estimator of runtime over processor counts alone does alike."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from predictors.base import BoolArray, Estimator, FloatArray, Remark, asked_of, run_table
from predictors.curves.measured import Evidence
from predictors.errors import PredictorError
from predictors.observations import ObservedCurve, checked_targets, observed_curve, observed_frame
from predictors.remarks import (
    check_level,
    data_remarks,
    far_remarks,
    few_remark,
    misfit_remark,
    refuse_unusable,
    single_remarks,
)


class CurveEstimator(Estimator, ABC):
    """Fit to runs and answer for counts; subclasses bring the model.

    A subclass has `_learn`, which sets `curve_`, `_fitted` and `_residuals` among others,
    and `_model_seconds` and `_model_range`.

    Attributes
    ----------
    curve_ : ObservedCurve
        The observations as used.
    """

    curve_: ObservedCurve
    _fitted: ObservedCurve
    """The observations that the model was fitted to."""
    _residuals: FloatArray
    """Predicted over observed runtime minus 1, of each of them."""
    _needs: ClassVar[tuple[int, str]]
    """How many counts the model needs, and what it is called."""
    _keeps: ClassVar[bool] = False
    """Whether answers at measured counts keep to what was measured."""

    def fit(self, observations: pd.DataFrame | ArrayLike, runtime: ArrayLike | None = None) -> Self:
        """Fit to runs.

        Parameters
        ----------
        observations : pandas.DataFrame or array_like
            A row a run, columns ``nprocs`` and ``runtime``; or, with `runtime`, counts.
        runtime : array_like, optional
            Seconds. See `observed_frame` for errors.
        """
        self.check_parameters()
        return self.fit_observed(observed_frame(run_table(self, observations, runtime)))

    def fit_arrays(self, nprocs: ArrayLike, runtime: ArrayLike) -> Self:
        """Fit to arrays, without the cost of a frame; see `observed_curve` for errors."""
        self.check_parameters()
        return self.fit_observed(observed_curve(nprocs, runtime))

    def fit_observed(self, curve: ObservedCurve) -> Self:
        """Fit to runs that are already checked and merged."""
        self._learn(curve)
        return self

    def predict(
        self, nprocs: ArrayLike | pd.DataFrame, *, strict: bool = False, **inputs: ArrayLike
    ) -> FloatArray:
        """Return runtimes in seconds, shape of `nprocs`; a row a value for a table.

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
        return self._answers(targets.ravel())[0].reshape(targets.shape)

    def predict_range(
        self, nprocs: ArrayLike, level: float = 0.8, **inputs: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return the ends of a prediction range that holds `level` of new runs."""
        check_level(level)
        targets = self._targets(nprocs, inputs)
        low, high = self._range(targets.ravel(), level)
        return low.reshape(targets.shape), high.reshape(targets.shape)

    def reliability(self, nprocs: ArrayLike, **inputs: ArrayLike) -> list[Remark]:
        """Say how far to trust the predictions, and where to measure next.

        Remarks with a target are about that one, others about the whole curve.
        """
        return self._remarks(np.unique(self._targets(nprocs, inputs)))

    @abstractmethod
    def _learn(self, curve: ObservedCurve) -> None:
        """Learn from observations that are checked."""

    @abstractmethod
    def _model_seconds(self, targets: FloatArray) -> FloatArray:
        """Return what the model says, seconds, shape (t,)."""

    @abstractmethod
    def _model_range(self, targets: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the range around what the model says, each of shape (t,)."""

    def _answers(self, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what is predicted and what the model says, seconds, each of shape (t,)."""
        model = self._model_seconds(targets)
        return model, model

    def _range(self, targets: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the range around what is predicted, each of shape (t,)."""
        return self._model_range(targets, level)

    def _remarks(self, targets: FloatArray) -> list[Remark]:
        """Return what is to be said of distinct targets."""
        return self._model_remarks(targets, self.curve_, None)

    def _model_remarks(
        self, targets: FloatArray, ordinary: ObservedCurve, end: float | None
    ) -> list[Remark]:
        """Return what the model has to say of distinct targets.

        Parameters
        ----------
        ordinary : ObservedCurve
            The observations that the model can follow, the first ones.
        end : float or None
            The fastest count, where those beyond it decline.
        """
        return [
            *data_remarks(self.curve_),
            *few_remark(self._fitted, *self._needs, end),
            *misfit_remark(ordinary, self._residuals[: len(ordinary.nprocs)], self._keeps),
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
        self.check_fitted("curve_")
        return checked_targets(nprocs)


class AnchoredEstimator(CurveEstimator):
    """A curve whose answers keep to what was measured (`predictors.curves.measured`).

    At a measured count they lie within the scatter of its runs, in and beyond a declining
    end never below the fastest measured time. `predict_model` is the plain model.
    """

    _evidence: Evidence
    _keeps = True

    def predict_model(self, nprocs: ArrayLike) -> FloatArray:
        """Return the plain model's runtimes, which need not keep to what was measured.

        It is for those who correct the model by a layer of their own; beyond
        `declines_after_` it says what the model makes of the counts before.
        """
        targets = self._targets(nprocs)
        return self._model_seconds(targets.ravel()).reshape(targets.shape)

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

    def _answers(self, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self._evidence.answers(targets, self._model_seconds)

    def _range(self, targets: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        answers = self._answers(targets)
        return self._evidence.range(targets, answers, self._model_range(targets, level), level)

    def _remarks(self, targets: FloatArray) -> list[Remark]:
        evidence = self._evidence
        found = self._model_remarks(targets, evidence.ordinary, evidence.declines_after)
        return found + evidence.remarks(targets)
