"""Log-log regression on processor count and inputs (Barnes et al. 2008)."""

from collections.abc import Sequence
from math import log2
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from predictors.base import FloatArray, Remark, run_table
from predictors.regression.inputs import checked_choice
from predictors.regression.model_choice import (
    Choice,
    Form,
    Split,
    choose_model,
    ideal_model,
    is_single,
)
from predictors.regression.predictor import LogLogPredictor
from predictors.regression.training_runs import (
    OPTIONAL_INPUT,
    TrainingRuns,
    runs_from_arrays,
    runs_from_frame,
)
from predictors.regression.validation import (
    Validation,
    check_from,
    choice_remarks,
    fit_remarks,
    validate_within,
    validation_remark,
)


class LogLogRegression(LogLogPredictor):
    """Predict runtimes by least squares of log2 time on log2 inputs and processors.

    log2 T = Σ β_k·log2 x_k + g(q), g linear or quadratic in log2 q; one model for
    the total time, or one each for computation and communication, by the rules of
    the paper (BARNES sections 2.2, 2.3, 3 and 4.2; `predictors.regression.model_choice`).

    Parameters
    ----------
    inputs : sequence of str
        Names of the input columns; ``size`` is used where the observations have it.
    form : {"auto", "linear", "quadratic"}
        Form of g. Automatic: the lower RMSE over rows minus coefficients, unless
        the held-out largest count clearly prefers the other.
    split : {"auto", "total", "separate"}
        Whether to fit computation and communication apart. Automatic: where
        computation is under 90 % at some count, or communication grows.

    Attributes
    ----------
    coefficients_ : numpy.ndarray
        Intercept, log2 nprocs, inputs in order, (log2 nprocs)² if quadratic.
    rmse_, r_squared_, covariance_, form_, split_
        The fit's spread in log2 units, R², covariance of the coefficients, and the
        chosen form of each part and way of splitting.

    Examples
    --------
    >>> import pandas as pd
    >>> runs = pd.DataFrame({"nprocs": [1, 2, 4, 8], "runtime": [80.0, 40.0, 20.0, 10.0]})
    >>> LogLogRegression().fit(runs).predict([16, 32]).round(3).tolist()
    [5.0, 2.5]
    """

    def __init__(
        self,
        inputs: Sequence[str] = OPTIONAL_INPUT,
        form: Form = "auto",
        split: Split = "auto",
    ) -> None:
        super().__init__(inputs)
        self.form, self.split = form, split

    def check_parameters(self) -> None:
        """Refuse arguments that are no choice; see `Estimator`."""
        super().check_parameters()
        checked_choice("form", self.form, ("auto", "linear", "quadratic"))
        checked_choice("split", self.split, ("auto", "total", "separate"))

    def fit(self, observations: pd.DataFrame | ArrayLike, runtime: ArrayLike | None = None) -> Self:
        """Fit to a table with columns ``nprocs``, ``runtime``, the inputs and split times.

        With `runtime`, observations are counts, or rows of counts and inputs.

        Raises
        ------
        PredictorError
            If columns are missing, values have no logarithm, inputs are collinear, or
            there are too few counts or rows.
        """
        self.check_parameters()
        table = run_table(self, observations, runtime)
        return self._fit_given(runs_from_frame(table, tuple(self.inputs)))

    def fit_arrays(
        self, nprocs: ArrayLike, runtime: ArrayLike, inputs: Sequence[ArrayLike] = ()
    ) -> Self:
        """Fit to arrays: the fast entry, without a table.

        Parameters
        ----------
        nprocs, runtime : array_like, shape (rows,)
        inputs : sequence of array_like, each of shape (rows,)
            One for each name in ``inputs``, or none.
        """
        self.check_parameters()
        names = self.inputs if len(inputs) else ()
        return self._fit_given(runs_from_arrays(names, nprocs, runtime, inputs))

    def fit_runs(self, runs: TrainingRuns) -> Self:
        """Fit to runs that are already checked."""
        self._set(choose_model(runs, self.form, self.split), runs)
        return self

    def _fit_given(self, runs: TrainingRuns) -> Self:
        if not is_single(runs):
            return self.fit_runs(runs)
        self._set(ideal_model(runs), runs)
        return self

    def _set(self, choice: Choice, runs: TrainingRuns) -> None:
        self.choice_, self.runs_, self._given = choice, runs, runs
        self._checks: dict[tuple[float, ...], Validation | None] = {}

    @property
    def form_(self) -> tuple[str, ...]:
        """Chosen form of each part."""
        return tuple(part.form for part in self.model_.parts)

    @property
    def split_(self) -> str:
        """``total``, ``max`` or ``cp``."""
        return self.choice_.split if self.model_ else ""

    def validation(self, nprocs: float) -> Validation | None:
        """Return what prediction within the training runs gave, over a target's factor.

        The last training count towards the target is predicted from the runs that are
        about as far from it as the target is beyond it. None where no fit can be made
        of those, or the target lies among the training counts.
        """
        reach = self._reach(log2(nprocs))
        return self._check(*reach) if reach else None

    def _reach(self, log_q: float) -> tuple[FloatArray, float] | None:
        """Return the training counts (log2) towards a target beyond them, and its distance."""
        low, high = self.model_.ends[0]
        if low <= log_q <= high:
            return None
        levels = self.runs_.levels
        return (levels, log_q - high) if log_q > high else (levels[::-1], low - log_q)

    def _check(self, levels: FloatArray, doublings: float) -> Validation | None:
        end = float(levels[-1])
        starts = check_from(levels, doublings)
        key = (end, *starts)
        if key not in self._checks:
            self._checks[key] = validate_within(self.runs_, self.form, self.split, starts, end)
        return self._checks[key]

    def remarks_on_fit(self) -> list[Remark]:
        """Say of the fit what holds for any target."""
        remarks = fit_remarks(self.runs_, self.model_, self.rmse_) + choice_remarks(self.choice_)
        return remarks + self._superlinear()

    def remarks_on_extrapolation(self, log_q: FloatArray) -> list[Remark]:
        """Say what error to expect at counts (log2) beyond the training runs."""
        remarks = []
        for target in np.unique(log_q).tolist():
            reach = self._reach(target)
            if reach:
                factor = 2.0 ** reach[1]
                remarks.append(validation_remark(self._check(*reach), 2.0**target, factor))
        return remarks

    def grade_on_extrapolation(self, log_q: float) -> str:
        """Return the grade of what is said of one count (log2) beyond the training runs."""
        reach = self._reach(log_q)
        if reach is None:
            return ""
        found = self._check(*reach)
        return "note" if found is None else found.grade(2.0 ** reach[1])
