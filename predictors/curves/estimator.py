"""What every model of runtimes answers alike, the runs it keeps to among it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from predictors.base import BoolArray, Estimator, FloatArray, Remark, asked_of, run_table
from predictors.curves.measured import Evidence
from predictors.errors import BETWEEN_0_AND_1
from predictors.observations import checked_targets
from predictors.remarks import refuse_unusable


class RuntimeEstimator(Estimator, ABC):
    """Answer for targets; subclasses fit and bring the model.

    Where there is evidence, answers keep to what was measured (`predictors.curves.measured`):
    at a measured count they lie within the scatter of its runs, in and beyond a declining
    end never below the fastest measured time. `predict_model` is the plain model.

    Targets come to the model as `_rows` returns them, an array with a column a target.
    """

    _learned: ClassVar[str]
    """The attribute that `fit` sets."""

    def fit(self, observations: pd.DataFrame | ArrayLike, runtime: ArrayLike | None = None) -> Self:
        """Fit to runs.

        Parameters
        ----------
        observations : pandas.DataFrame or array_like
            A row a run: columns ``nprocs``, ``runtime``, and, where the model reads them, its
            inputs, split times and what its condition is on. With `runtime`, counts, or rows
            of counts and inputs.
        runtime : array_like, optional
            Seconds.

        Raises
        ------
        PredictorError
            If columns are missing, a count is below 1 or a value not positive and finite, no
            run meets the condition, inputs are collinear, or there are too few counts or rows.
        """
        self.check_parameters()
        return self._fit_table(run_table(self, observations, runtime))

    def predict(
        self, nprocs: ArrayLike | pd.DataFrame, *, strict: bool = False, **inputs: ArrayLike
    ) -> FloatArray:
        """Return runtimes in seconds, in the shape of `nprocs` (and inputs, broadcast).

        A table answers by its columns, a row a value.

        Raises
        ------
        NotFittedError
            Before `fit`.
        PredictorError
            For a count below 1, or an input missing, unknown or not positive.
        UndeterminedError
            With ``strict=True``, for a target graded ``unusable``.
        """
        rows, shape = self._rows(nprocs, inputs)
        if strict:
            refuse_unusable(self.reliability(nprocs, **inputs))
        return self._answers(rows)[0].reshape(shape)

    def predict_model(self, nprocs: ArrayLike, **inputs: ArrayLike) -> FloatArray:
        """Return the plain model's runtimes, which need not keep to what was measured.

        It is for those who correct the model by a layer of their own; beyond
        `declines_after_` it says what the model makes of the counts before.
        """
        rows, shape = self._rows(nprocs, inputs)
        return self._model_seconds(rows).reshape(shape)

    def predict_range(
        self, nprocs: ArrayLike | pd.DataFrame, level: float = 0.8, **inputs: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return the ends of a prediction range that holds `level` of new runs, seconds."""
        BETWEEN_0_AND_1.check(level=level)
        rows, shape = self._rows(nprocs, inputs)
        ends, evidence = self._model_range(rows, level), self._evidence
        if evidence is not None:
            ends = evidence.range(self._counts(rows), self._answers(rows), ends, level)
        return ends[0].reshape(shape), ends[1].reshape(shape)

    @property
    def declines_after_(self) -> float | None:
        """The fastest measured count, where those beyond it decline; else None.

        Remarks on counts beyond it have the code ``declining``. None where inputs vary.
        """
        self.check_fitted(self._learned)
        return None if self._evidence is None else self._evidence.declines_after

    def declining(self, nprocs: ArrayLike) -> BoolArray:
        """Say which counts lie beyond `declines_after_`: their grade has the code ``declining``."""
        self.check_fitted(self._learned)
        targets, evidence = checked_targets(asked_of(nprocs, {})[0]), self._evidence
        return np.zeros(targets.shape, bool) if evidence is None else evidence.declining(targets)

    @property
    def _evidence(self) -> Evidence | None:
        """What answers keep to; None where they need not."""
        return None

    @abstractmethod
    def reliability(self, nprocs: ArrayLike | pd.DataFrame, **inputs: ArrayLike) -> list[Remark]:
        """Say how far to trust the predictions, and where to measure next."""

    @abstractmethod
    def _fit_table(self, table: pd.DataFrame) -> Self:
        """Fit to a table of runs."""

    @abstractmethod
    def _rows(
        self, nprocs: ArrayLike | pd.DataFrame, inputs: Mapping[str, ArrayLike]
    ) -> tuple[FloatArray, tuple[int, ...]]:
        """Return targets as the model takes them, a column each, and the shape to answer in."""

    @abstractmethod
    def _model_seconds(self, rows: FloatArray) -> FloatArray:
        """Return what the model says, seconds, shape (t,)."""

    @abstractmethod
    def _model_range(self, rows: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the range around what the model says, each of shape (t,)."""

    def _counts(self, rows: FloatArray) -> FloatArray:
        """Return the processor counts of targets, shape (t,)."""
        return rows

    def _at(self, counts: FloatArray) -> FloatArray:
        """Return processor counts as targets, where no input varies."""
        return counts

    def _answers(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what is predicted and what the model says, seconds, each of shape (t,)."""
        if self._evidence is None:
            model = self._model_seconds(rows)
            return model, model
        told = self._counts(rows), lambda counts: self._model_seconds(self._at(counts))
        return self._evidence.answers(*told)
