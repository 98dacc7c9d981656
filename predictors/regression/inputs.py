"""What every estimator with inputs beside the processor count answers alike."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from predictors.base import FloatArray, asked_of
from predictors.curves.estimator import RuntimeEstimator
from predictors.errors import PredictorError
from predictors.regression.training_runs import (
    TrainingRuns,
    counts_of,
    runs_from_arrays,
    runs_from_frame,
)


def target_rows(
    wanted: tuple[str, ...],
    constants: Mapping[str, float],
    nprocs: ArrayLike | pd.DataFrame,
    inputs: Mapping[str, ArrayLike],
) -> tuple[FloatArray, tuple[int, ...]]:
    """Return log2 counts and inputs in the order `wanted`, and the shape to answer in.

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
    return np.array([np.log2(value.ravel()) for value in values]), values[0].shape


class InputEstimator(RuntimeEstimator):
    """Answer for processor counts and inputs; subclasses fit and bring the model.

    Targets are a table of log2 counts and inputs, shape (1 + k, t). With inputs that vary the
    model is the answer, without them answers keep to what was measured.
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

    def _fit_table(self, table: pd.DataFrame) -> Self:
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

    @abstractmethod
    def _fit_given(self, runs: TrainingRuns) -> Self:
        """Fit to all runs that were given."""

    def _counts(self, rows: FloatArray) -> FloatArray:
        return counts_of(rows[0])

    def _at(self, counts: FloatArray) -> FloatArray:
        return np.log2(counts)[None]
