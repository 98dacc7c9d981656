"""One prediction from several methods, with a range that has been calibrated."""

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import ClassVar, Self, cast

import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike

from predictors.base import FloatArray, Grade, IntArray, Remark
from predictors.compiling import direct
from predictors.consensus import member_kernels as kernels
from predictors.consensus.members import CURVED, LINE, ErrorMemory, Members, fit_members, members_of
from predictors.curves.measured import Evidence
from predictors.errors import PredictorError
from predictors.observations import checked_targets, merged_curve
from predictors.regression.inputs import InputEstimator, target_rows
from predictors.regression.training_runs import OPTIONAL_INPUT, TrainingRuns
from predictors.regression.validation import constant_remarks
from predictors.remarks import (
    GRADES,
    data_remarks,
    far_remarks,
    few_remark,
    graded,
    measure_between,
    single_remarks,
)

METHODS = "amdahl", "usl", LINE, CURVED
"""What is fitted to runs of one problem: one of the laws, and the lines."""
NO_ERRORS, NO_COLUMNS = np.zeros((1, len(METHODS), 4)), np.arange(len(METHODS))
_fit_and_ask, _seconds_of = direct(kernels.fit_and_ask), direct(kernels.seconds_of)
_judge, _record_run = direct(kernels.judge), direct(kernels.record_run)
TAILS = 2.0
"""Degrees of freedom of the t distribution that carries ranges to other levels."""


class Consensus(InputEstimator):
    """The median of a law, a straight and a curved log-log line.

    Each is wrong in a way of its own: Amdahl's law levels off or never does, the line
    keeps its slope, the quadratic bends with every scatter; the middle one is none of
    these, and it has no constants. Universal scalability takes the place of Amdahl's
    law where the runtime rises at the end. Past errors may weigh the methods.

    Ranges are as wide as errors on measured curves have been at that distance and with
    that disagreement, wider upwards beyond the runs and where these flatten. Grades follow
    from how wide a range is at its distance.

    Where no input varies, an answer at a measured count keeps to its runs; a declining
    end is left out of the fits and believed at its own counts alone.

    Parameters
    ----------
    inputs : sequence of str
        Names of the input columns; ``size`` is used where the observations have it.
        Where inputs vary, focused regression joins, and methods that know counts
        alone see times brought to one size.
    memory : ErrorMemory, optional
        Past errors, kept by the caller.
    application : hashable
        Whose errors in the memory count as this application's.

    Attributes
    ----------
    members_ : Members
        The fitted methods.

    Examples
    --------
    >>> import pandas as pd
    >>> runs = pd.DataFrame({"nprocs": [4, 8, 16, 32], "runtime": [105.0, 55.0, 30.0, 17.5]})
    >>> model = Consensus().fit(runs)
    >>> low, high = model.predict_range([64], level=0.8)
    >>> bool(low[0] < model.predict([64])[0] < high[0])
    True
    """

    _learned = "members_"
    _kept: kernels.KeptFit | None = None
    _runs: tuple[IntArray, FloatArray, FloatArray]
    grades_ranges: ClassVar[bool] = True
    """Remarks grade ranges by their widths."""

    def __init__(
        self,
        inputs: Sequence[str] = OPTIONAL_INPUT,
        memory: ErrorMemory | None = None,
        application: Hashable = None,
    ) -> None:
        self.inputs = inputs
        self.memory, self.application = memory, application

    def _fit_given(self, runs: TrainingRuns) -> Self:
        self.members_, self._kept = fit_members(runs, self._columns), None
        return self

    def fit_kept(
        self, counts: IntArray, runs: FloatArray, numbers: FloatArray, targets: IntArray
    ) -> FloatArray:
        """Fit to good runs of one problem by count, and return `predict_model` of targets.

        The first three are as `predictors.observations.merged_curve` takes them.
        """
        self.__dict__.pop("members_", None)
        self._runs = counts.copy(), runs.copy(), numbers.copy()
        given = counts, runs, numbers, self._columns
        self._kept, seconds = _fit_and_ask(*given, *self._past, targets)
        return seconds

    @cached_property
    def members_(self) -> Members:
        """The fitted methods."""
        return members_of(merged_curve(*self._runs), self._columns)

    def predict_model(self, nprocs: ArrayLike, **inputs: ArrayLike) -> FloatArray:
        """Return the plain model's runtimes, which need not keep to what was measured."""
        if inputs or (self._kept is None and self._fitted().kept is None):
            return super().predict_model(nprocs, **inputs)
        targets = checked_targets(nprocs)
        seconds = _seconds_of(self._fit_of_counts(), *self._past, targets.ravel())
        return seconds.reshape(targets.shape)

    def judgements(self, nprocs: ArrayLike) -> list[tuple[str, str]]:
        """Return the worst grade of the remarks about each count, and why it is unusable.

        The grade is empty without remarks, the code where it is usable. For runs of one
        problem; `reliability` says the same in words, for inputs too.
        """
        targets = checked_targets(nprocs).ravel()
        return graded(kernels.CODES, *_judge(self._fit_of_counts(), *self._past, targets))

    def record(self, nprocs: int, runtime: float) -> None:
        """Let the memory take in how far each method is off a run that it has not seen.

        For runs of one problem, as `ErrorMemory.record` with `member_errors`.
        """
        _record_run(self._fit_of_counts(), *self._past, nprocs, runtime)

    def _fit_of_counts(self) -> kernels.KeptFit:
        """Return what was fitted where no input varies."""
        kept = self._kept or self._fitted().kept
        assert kept is not None
        return kept

    @property
    def _columns(self) -> IntArray:
        """Columns of the methods in the memory of errors."""
        return NO_COLUMNS if self.memory is None else self.memory.columns_of(METHODS)

    @property
    def _past(self) -> tuple[FloatArray, int]:
        """Past errors of all methods, and the row of this application; nothing without memory."""
        if self.memory is None:
            return NO_ERRORS, 0
        row = self.memory.row_of(self.application)
        return self.memory.sums, row

    def _model_seconds(self, rows: FloatArray) -> FloatArray:
        return _seconds(self._middle(rows)[0])

    def _model_range(self, rows: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        middle, below, above, _ = self._consensus(rows)
        scale = scipy.special.stdtrit(TAILS, 0.5 + 0.5 * level) / scipy.special.stdtrit(TAILS, 0.9)
        return _seconds(middle - scale * below), _seconds(middle + scale * above)

    def member_predictions(self, nprocs: ArrayLike, **inputs: ArrayLike) -> dict[str, FloatArray]:
        """Return each method's own prediction, by name."""
        rows, shape = self._rows(nprocs, inputs)
        values = _seconds(self.members_.log_seconds(rows))
        return {
            name: row.reshape(shape)
            for name, row in zip(self.members_.methods, values, strict=True)
        }

    def member_errors(self, nprocs: float, runtime: float, **inputs: ArrayLike) -> dict[str, float]:
        """Return each method's ln(predicted / measured) for a run it has not seen.

        What `ErrorMemory.record` takes: ask before the run joins the observations.
        """
        if not 0.0 < runtime < np.inf:
            raise PredictorError(f"a measured runtime must be positive, got {runtime}")
        predicted = self.member_predictions([nprocs], **inputs)
        return {name: float(np.log(row[0] / runtime)) for name, row in predicted.items()}

    def _rows(
        self, nprocs: ArrayLike | pd.DataFrame, inputs: Mapping[str, ArrayLike]
    ) -> tuple[FloatArray, tuple[int, ...]]:
        members = self._fitted()
        return target_rows(members.inputs, members.constants, nprocs, inputs)

    def _fitted(self) -> Members:
        self.check_fitted(self._learned)
        return self.members_

    @property
    def _evidence(self) -> Evidence | None:
        return self._fitted().evidence

    def _weights(self) -> FloatArray:
        """Return each method's weight by its past errors, shape (methods,); 1 without any."""
        factors = {} if self.memory is None else self.memory.multipliers(self.application)
        return np.array([factors.get(name, 1.0) for name in self.members_.methods])

    def _middle(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ln seconds of the median, and of every method."""
        voices = self.members_.log_seconds(rows)
        return kernels.weighted_median(voices, self._weights()), voices

    def _consensus(self, rows: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return ln seconds, how far 80 % ranges go below and above, and how far methods differ."""
        members = self.members_
        nprocs, runtime = members.curve.nprocs, members.curve.runtime
        middle, voices = self._middle(rows)
        shape = len(nprocs), kernels.flattening_of(nprocs, runtime), members.scaling.scatter
        doublings = kernels.doublings_of(nprocs, self._counts(rows))
        return middle, *kernels.spread_of(voices, middle, self._weights(), doublings, shape)

    def reliability(self, nprocs: ArrayLike | pd.DataFrame, **inputs: ArrayLike) -> list[Remark]:
        """Say how far to trust predictions at these counts and inputs."""
        rows, _ = self._rows(nprocs, inputs)
        members, targets = self.members_, self._counts(rows)
        remarks = data_remarks(members.curve)
        name, end = "a consensus of all its methods", self.declines_after_
        remarks += few_remark(members.curve, 3, name, end)
        measured = members.curve if members.evidence is None else members.evidence.curve
        remarks += single_remarks(measured.nprocs, targets) + far_remarks(measured, targets)
        remarks += constant_remarks(members.constants, inputs)
        if not members.scaling.learned:
            text = (
                f"the runs do not tell {', '.join(members.inputs)} from the processor count: "
                "time is taken as proportional to size"
            )
            remarks.append(Remark("warning", "inputs_not_told_apart", text))
        if members.evidence is not None:
            ordinary = ~members.evidence.declining(targets)
            remarks += members.evidence.remarks(np.unique(targets))
            rows = np.compress(ordinary, rows, axis=1)
        return remarks + self._remarks_on_ranges(rows)

    def _remarks_on_ranges(self, rows: FloatArray) -> list[Remark]:
        """Grade by how wide ranges are at their distance, and say where to measure."""
        (_, below, above, apart), targets = self._consensus(rows), self._counts(rows)
        doublings = kernels.doublings_of(self.members_.curve.nprocs, targets)
        usual = np.sqrt(np.maximum(doublings, 1.0))
        last = float(self.members_.curve.nprocs[-1])
        found = []
        widths = zip(targets.tolist(), (below + above) / usual, below, above, apart, strict=True)
        for target, wide, down, up, differ in dict.fromkeys(widths):
            grade = GRADES[sum(wide > least for least in kernels.WIDE)]
            if grade:
                ends = np.exp(np.minimum([-down, up], 300.0))
                text = (
                    f"80 % of such runs take {ends[0]:.2f} to {ends[1]:.2f} times the prediction "
                    f"for {target:g} processors; the methods differ by {np.expm1(differ):.0%}"
                )
                measure = measure_between(last, target) if target > last else round(target)
                found.append(Remark(cast(Grade, grade), "wide_range", text, measure, float(target)))
        return found


def _seconds(log_seconds: FloatArray) -> FloatArray:
    """Return seconds, finite and positive whatever the logarithm."""
    return np.asarray(np.exp(np.clip(log_seconds, -600.0, 600.0)))
