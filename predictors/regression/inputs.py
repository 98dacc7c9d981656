"""What every estimator with inputs beside the processor count answers alike."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from predictors.base import BoolArray, Estimator, FloatArray, Remark, asked_of, run_table
from predictors.curves.measured import Evidence
from predictors.errors import PredictorError
from predictors.observations import checked_targets
from predictors.regression.training_runs import (
    TrainingRuns,
    counts_of,
    runs_from_arrays,
    runs_from_frame,
)
from predictors.remarks import check_level, refuse_unusable


def target_rows(
    wanted: tuple[str, ...],
    constants: Mapping[str, float],
    nprocs: ArrayLike | pd.DataFrame,
    inputs: Mapping[str, ArrayLike],
) -> tuple[FloatArray, FloatArray, tuple[int, ...]]:
    """Return log2 counts, log2 inputs in the order `wanted`, and the shape to answer in.

    Raises
    ------
    PredictorError
        If an input is missing or unknown, shapes do not match, or a value is not
        finite and positive (a count: at least 1).
    """
    nprocs, inputs = asked_of(nprocs, inputs, (*wanted, *constants))
    missing = [name for name in wanted if name not in inputs]
    unknown = [name for name in inputs if name not in wanted and name not in constants]
    if missing or unknown:
        raise PredictorError(
            f"inputs of this model are {list(wanted)} (with nprocs): "
            f"missing {missing}, unknown {unknown}"
        )
    values = [np.asarray(nprocs, dtype=np.float64)]
    values += [np.asarray(inputs[name], dtype=np.float64) for name in wanted]
    try:
        values = list(np.broadcast_arrays(*values))
    except ValueError as error:
        shapes = [value.shape for value in values]
        raise PredictorError(f"nprocs and inputs of shapes {shapes} do not match") from error
    for name, value in zip(("nprocs", *wanted), values, strict=True):
        good = (value >= 1.0 if name == "nprocs" else value > 0.0) & (value < np.inf)
        if not good.all():
            least = "of at least 1" if name == "nprocs" else "above 0"
            raise PredictorError(
                f"{name}: expected finite values {least}, got {value[~good].flat[0]:g}"
            )
    logs = [np.log2(value.ravel()) for value in values]
    stacked = np.column_stack(logs[1:]) if wanted else np.empty((logs[0].size, 0))
    return logs[0], stacked, values[0].shape


class InputEstimator(Estimator, ABC):
    """Answer for processor counts and inputs; subclasses fit and bring the model.

    Where no input varies, answers keep to what was measured (`predictors.curves.measured`);
    `predict_model` is the plain model. With inputs the model is the answer.

    A subclass has `_fit_given`, `_rows`, `_evidence`, `_model_seconds`, `_model_range` and
    `reliability`.
    """

    inputs: Sequence[str]

    def check_parameters(self) -> None:
        """Refuse names of inputs that cannot be; see `Estimator`."""
        inputs = self.inputs
        if isinstance(inputs, str):
            raise PredictorError(f"inputs must be a sequence of names, got the string {inputs!r}")
        names = tuple(str(name) for name in inputs)
        if len(set(names)) != len(names) or {"nprocs", "runtime"} & set(names):
            raise PredictorError(
                f"inputs must be distinct names other than nprocs and runtime: {names}"
            )

    def fit(self, observations: pd.DataFrame | ArrayLike, runtime: ArrayLike | None = None) -> Self:
        """Fit to a table with columns ``nprocs``, ``runtime``, the inputs and split times.

        With `runtime`, observations are counts, or rows of counts and inputs. A model with
        a condition reads its columns too.

        Raises
        ------
        PredictorError
            If columns are missing, no run meets the condition, values have no logarithm,
            inputs are collinear, or there are too few counts or rows.
        """
        self.check_parameters()
        table = self._taken(run_table(self, observations, runtime))
        return self._fit_given(runs_from_frame(table, tuple(self.inputs)))

    def fit_arrays(
        self, nprocs: ArrayLike, runtime: ArrayLike, inputs: Sequence[ArrayLike] = ()
    ) -> Self:
        """Fit to arrays: the fast entry, without a table or condition.

        Parameters
        ----------
        nprocs, runtime : array_like, shape (rows,)
        inputs : sequence of array_like, each of shape (rows,)
            One for each name in ``inputs``, or none.
        """
        self.check_parameters()
        names = self.inputs if len(inputs) else ()
        return self._fit_given(runs_from_arrays(names, nprocs, runtime, inputs))

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
        log_q, log_inputs, shape = self._rows(nprocs, inputs)
        if strict:
            refuse_unusable(self.reliability(nprocs, **inputs))
        return self._answers(log_q, log_inputs)[0].reshape(shape)

    def predict_model(self, nprocs: ArrayLike, **inputs: ArrayLike) -> FloatArray:
        """Return the plain model's runtimes, which need not keep to what was measured.

        It is for those who correct the model by a layer of their own.
        """
        log_q, log_inputs, shape = self._rows(nprocs, inputs)
        return self._model_seconds(log_q, log_inputs).reshape(shape)

    def predict_range(
        self, nprocs: ArrayLike | pd.DataFrame, level: float = 0.8, **inputs: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return the ends of a prediction range that holds `level` of new runs, seconds."""
        check_level(level)
        log_q, log_inputs, shape = self._rows(nprocs, inputs)
        ends, evidence = self._model_range(log_q, log_inputs, level), self._evidence()
        if evidence is not None:
            answers = self._answers(log_q, log_inputs)
            ends = evidence.range(counts_of(log_q), answers, ends, level)
        return ends[0].reshape(shape), ends[1].reshape(shape)

    @property
    def declines_after_(self) -> float | None:
        """The fastest measured count, where those beyond it decline; else None.

        Remarks on counts beyond it have the code ``declining``. None where inputs vary.
        """
        evidence = self._evidence()
        return None if evidence is None else evidence.declines_after

    def declining(self, nprocs: ArrayLike) -> BoolArray:
        """Say which counts lie beyond `declines_after_`: their grade has the code ``declining``."""
        targets, evidence = checked_targets(nprocs), self._evidence()
        return np.zeros(targets.shape, bool) if evidence is None else evidence.declining(targets)

    @abstractmethod
    def reliability(self, nprocs: ArrayLike | pd.DataFrame, **inputs: ArrayLike) -> list[Remark]:
        """Say how far to trust predictions at these counts and inputs."""

    def _taken(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of a table that are fitted to."""
        return table

    @abstractmethod
    def _fit_given(self, runs: TrainingRuns) -> Self:
        """Fit to all runs that were given."""

    @abstractmethod
    def _rows(
        self, nprocs: ArrayLike | pd.DataFrame, inputs: Mapping[str, ArrayLike]
    ) -> tuple[FloatArray, FloatArray, tuple[int, ...]]:
        """Return log2 counts and inputs, a row a target, and the shape to answer in."""

    @abstractmethod
    def _evidence(self) -> Evidence | None:
        """Return what answers keep to; None where inputs vary."""

    @abstractmethod
    def _model_seconds(self, log_q: FloatArray, log_inputs: FloatArray) -> FloatArray:
        """Return what the model says at each row, seconds."""

    @abstractmethod
    def _model_range(
        self, log_q: FloatArray, log_inputs: FloatArray, level: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the range around what the model says, seconds."""

    def _answers(self, log_q: FloatArray, log_inputs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return answers that keep to what was measured, and the model's, seconds."""
        evidence = self._evidence()
        if evidence is None:
            plain = self._model_seconds(log_q, log_inputs)
            return plain, plain

        def seconds_of(counts: FloatArray) -> FloatArray:
            return self._model_seconds(np.log2(counts), np.empty((counts.size, 0)))

        return evidence.answers(counts_of(log_q), seconds_of)
