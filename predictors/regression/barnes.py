"""What every fitted log-log regression answers, and that of Barnes et al. (2008)."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from math import log2
from typing import Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from predictors.base import FloatArray, Remark
from predictors.curves.estimator import Evidence
from predictors.errors import BETWEEN_0_AND_1, PredictorError, UndeterminedError, check_choice
from predictors.observations import observed_curve
from predictors.regression import validation as checks
from predictors.regression.inputs import (
    OPTIONAL_INPUT,
    InputEstimator,
    TrainingRuns,
    counts_of,
    target_rows,
    without_constants,
)
from predictors.regression.loglog import (
    Chosen,
    Form,
    LogLogModel,
    Split,
    choose_model,
    ideal_model,
    is_single,
)
from predictors.remarks import refuse_unusable, single_remarks


class LogLogPredictor(InputEstimator):
    """Predictions of a fitted log-log model; subclasses fit it.

    Attributes
    ----------
    choice_ : Chosen
        The model, how it splits the time, and why.
    runs_ : TrainingRuns
        What it was fitted to.
    """

    choice_: Chosen
    runs_: TrainingRuns
    _learned = "choice_"
    _given: TrainingRuns
    _checks: tuple[TrainingRuns, dict[tuple[float, ...], checks.Validation | None]] | None = None
    _found_evidence: tuple[LogLogModel, Evidence | None] | None = None

    def __init__(
        self, inputs: Sequence[str] = ("size",), smallest: float | Literal["auto"] = 1.0
    ) -> None:
        self.inputs, self.smallest = inputs, smallest

    def check_parameters(self) -> None:
        """Refuse arguments out of range; see `Estimator`."""
        super().check_parameters()
        if self.smallest != "auto" and not (
            isinstance(self.smallest, int | float) and 1.0 <= self.smallest < np.inf
        ):
            raise PredictorError(f"smallest must be a count or 'auto', got {self.smallest!r}")

    @abstractmethod
    def fit_runs(self, runs: TrainingRuns) -> Self:
        """Fit to runs that are already checked."""

    def _fit_given(self, runs: TrainingRuns) -> Self:
        if is_single(runs):
            self._fit_single(runs)
        else:
            self.fit_runs(self._large_enough(runs))
        self._given = runs
        return self

    def _fit_single(self, runs: TrainingRuns) -> None:
        """Fit to runs that show nothing but one count and one size."""
        self.choice_, self.runs_ = ideal_model(runs), runs

    def _large_enough(self, runs: TrainingRuns) -> TrainingRuns:
        """Return the runs on `smallest` processors or more, of which there must be one."""
        if self.smallest == 1.0:
            return runs
        if self.smallest == "auto":
            least = checks.smallest_count(runs, *self._kind)
        else:
            least = log2(float(self.smallest))
        kept = runs.known[0] >= least - 1e-9
        if not kept.any():
            raise PredictorError(
                f"smallest={self.smallest}: must be at most the largest training count, "
                f"{2.0 ** runs.levels[-1]:g}"
            )
        return runs if kept.all() else without_constants(runs.take(kept))

    @property
    def _kind(self) -> tuple[Form, Split]:
        """Which form and split a check within the training runs takes."""
        return "linear", "total"

    @property
    def model_(self) -> LogLogModel:
        """The fitted model."""
        self.check_fitted(self._learned)
        return self.choice_.model

    @property
    def coefficients_(self) -> FloatArray:
        """Coefficients of the first part: intercept, log2 nprocs, inputs, and its square."""
        return self.model_.parts[0].fit.coefficients

    @property
    def rmse_(self) -> float:
        """RMSE of the fit in log2 units, over rows minus coefficients.

        Where parts are separate: weighted by their shares at the largest count.
        """
        return self.model_.rmse

    @property
    def r_squared_(self) -> float:
        """R² of the first part."""
        return self.model_.parts[0].fit.r_squared

    def _rows(
        self, nprocs: ArrayLike | pd.DataFrame, inputs: Mapping[str, ArrayLike]
    ) -> tuple[FloatArray, tuple[int, ...]]:
        return target_rows(self.model_.inputs, self.runs_.constants, nprocs, inputs)

    def _model_seconds(self, rows: FloatArray) -> FloatArray:
        return self.model_.seconds(rows)

    def _model_range(self, rows: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        return self.model_.interval(rows, level)

    @property
    def _evidence(self) -> Evidence | None:
        """What answers keep to, worked out once a fit; None where inputs vary."""
        if self._found_evidence is None or self._found_evidence[0] is not self.model_:
            given, found = self._given, None
            if not given.inputs:
                found = Evidence(observed_curve(counts_of(given.known[0]), given.runtime))
            self._found_evidence = self.model_, found
        return self._found_evidence[1]

    def _superlinear(self) -> list[Remark]:
        return [] if is_single(self.runs_) else checks.superlinear_remarks(self.runs_)

    @abstractmethod
    def remarks_on_fit(self) -> list[Remark]:
        """Say of the fit what holds for any target."""

    def remarks_on_extrapolation(self, log_q: FloatArray) -> list[Remark]:
        """Say what error to expect at counts (log2) beyond the training runs."""
        remarks = []
        for target in np.unique(log_q).tolist():
            reach = self._reach(target)
            if reach:
                factor = 2.0 ** reach[1]
                remarks.append(checks.validation_remark(self._check(*reach), 2.0**target, factor))
        return remarks

    def validation(self, nprocs: float) -> checks.Validation | None:
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

    def _check(self, levels: FloatArray, doublings: float) -> checks.Validation | None:
        end = float(levels[-1])
        starts = checks.check_from(levels, doublings)
        key = (end, *starts)
        if self._checks is None or self._checks[0] is not self.runs_:
            self._checks = self.runs_, {}
        known = self._checks[1]
        if key not in known:
            known[key] = checks.validate_within(self.runs_, *self._kind, starts, end)
        return known[key]

    def reliability(self, nprocs: ArrayLike | pd.DataFrame, **inputs: ArrayLike) -> list[Remark]:
        """Say how far to trust predictions at these counts and inputs."""
        rows, _ = self._rows(nprocs, inputs)
        remarks = self.remarks_on_fit() + checks.constant_remarks(self.runs_.constants, inputs)
        evidence = self._evidence
        if evidence is None:
            remarks += self.remarks_on_extrapolation(rows[0])
            return remarks + checks.range_remarks(self.model_, rows)
        counts = np.log2(evidence.curve.nprocs)
        measured = counts.item(0), counts.item(-1)
        targets = np.unique(counts_of(rows[0]))
        remarks += single_remarks(evidence.curve.nprocs, targets)
        answered = targets[~evidence.declining(targets)]
        return (
            remarks
            + self.remarks_on_extrapolation(np.log2(answered))
            + checks.range_remarks(self.model_, rows, measured)
            + evidence.remarks(targets)
        )

    def _size_rows(
        self, seconds: ArrayLike, nprocs: ArrayLike, of: str, others: Mapping[str, ArrayLike]
    ) -> tuple[FloatArray, FloatArray, tuple[int, ...]]:
        """Return log2 seconds, and counts and inputs (the row of `of` is a filler)."""
        if of not in self.model_.inputs:
            constant = self.runs_.constants.get(of)
            why = f"{of} was {constant:g} in every run" if constant else f"no input named {of}"
            raise UndeterminedError(f"no {of} can be solved for: {why}")
        wanted = np.asarray(seconds, dtype=np.float64)
        if not ((wanted > 0.0) & (wanted < np.inf)).all():
            raise PredictorError(f"seconds must be positive and finite, got {wanted}")
        times, counts = np.broadcast_arrays(wanted, np.asarray(nprocs, dtype=np.float64))
        filler = 2.0 ** self.model_.low[1 + self.model_.inputs.index(of)]
        rows, shape = self._rows(counts, {**others, of: filler})
        return np.log2(times.ravel()), rows, shape

    def solve_size(
        self,
        seconds: ArrayLike,
        nprocs: ArrayLike,
        *,
        strict: bool = False,
        of: str = "size",
        **others: ArrayLike,
    ) -> FloatArray:
        """Return the size at which a run on `nprocs` takes `seconds` (time-constrained scaling).

        Parameters
        ----------
        seconds, nprocs : array_like
            Broadcast against each other.
        strict : bool
            Refuse what `size_reliability` grades unusable.
        of : str
            The input to solve for.
        **others : array_like
            The model's other inputs.

        Raises
        ------
        UndeterminedError
            If size did not vary in training, or the time does not grow with it.
        """
        log_t, rows, shape = self._size_rows(seconds, nprocs, of, others)
        if strict:
            refuse_unusable(self.size_reliability(seconds, nprocs, of=of, **others))
        return np.exp2(self.model_.solve(log_t, rows, of)).reshape(shape)

    def size_range(
        self,
        seconds: ArrayLike,
        nprocs: ArrayLike,
        level: float = 0.8,
        of: str = "size",
        **others: ArrayLike,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the sizes whose prediction intervals contain `seconds`.

        An end is 0 or infinite where the training runs do not bound it.
        """
        BETWEEN_0_AND_1.check(level=level)
        log_t, rows, shape = self._size_rows(seconds, nprocs, of, others)
        low, high = self.model_.solve_interval(log_t, rows, of, level)
        return np.exp2(low).reshape(shape), np.exp2(high).reshape(shape)

    def size_reliability(
        self, seconds: ArrayLike, nprocs: ArrayLike, of: str = "size", **others: ArrayLike
    ) -> list[Remark]:
        """Say how far to trust `solve_size` there: of the fit, of the counts, and of the size."""
        log_q = self._size_rows(seconds, nprocs, of, others)[1][0]
        remarks = self.remarks_on_fit() + self.remarks_on_extrapolation(np.unique(log_q))
        return remarks + self.remarks_on_size(seconds, nprocs, of, **others)

    def remarks_on_size(
        self, seconds: ArrayLike, nprocs: ArrayLike, of: str = "size", **others: ArrayLike
    ) -> list[Remark]:
        """Say whether time grows with the size, and how far from the runs the solved size is."""
        log_t, rows, _ = self._size_rows(seconds, nprocs, of, others)
        return checks.size_remarks(self.model_, log_t, rows, of)


class LogLogRegression(LogLogPredictor):
    """Predict runtimes by least squares of log2 time on log2 inputs and processors.

    log2 T = Σ β_k·log2 x_k + g(q), g linear or quadratic in log2 q; one model for
    the total time, or one each for computation and communication, by the rules of
    the paper (BARNES sections 2.2, 2.3, 3 and 4.2; `predictors.regression.loglog`).

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
    smallest : float or "auto"
        Runs on fewer processors are left out. Automatic: the count from which the largest
        training count is foretold best (`fit` and `fit_arrays`).

    Attributes
    ----------
    coefficients_ : numpy.ndarray
        Intercept, log2 nprocs, inputs in order, (log2 nprocs)² if quadratic.
    rmse_, r_squared_, form_, split_
        The fit's spread in log2 units, R², and the
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
        smallest: float | Literal["auto"] = 1.0,
    ) -> None:
        super().__init__(inputs, smallest)
        self.form, self.split = form, split

    def check_parameters(self) -> None:
        """Refuse arguments that are no choice; see `Estimator`."""
        super().check_parameters()
        check_choice(("auto", "linear", "quadratic"), form=self.form)
        check_choice(("auto", "total", "separate"), split=self.split)

    def fit_runs(self, runs: TrainingRuns) -> Self:
        """Fit to runs that are already checked."""
        self.choice_ = choose_model(runs, self.form, self.split)
        self.runs_ = self._given = runs
        return self

    @property
    def _kind(self) -> tuple[Form, Split]:
        return self.form, self.split

    @property
    def form_(self) -> tuple[str, ...]:
        """Chosen form of each part."""
        return tuple(part.form for part in self.model_.parts)

    @property
    def split_(self) -> str:
        """``total``, ``max`` or ``cp``."""
        return self.choice_.split if self.model_ else ""

    def remarks_on_fit(self) -> list[Remark]:
        """Say of the fit what holds for any target."""
        remarks = checks.fit_remarks(self.runs_, self.model_)
        return remarks + checks.choice_remarks(self.choice_) + self._superlinear()
