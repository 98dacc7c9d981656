"""One prediction from several methods, with a range that has been calibrated.

It is their median, weighed by what each got right before. Methods that know processors alone see
times brought to one size with the exponents of the log-log line; their answers are brought back.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import isnan
from typing import ClassVar, Self, cast

import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike

from predictors.base import FloatArray, Grade, IntArray, Remark
from predictors.compiling import direct
from predictors.consensus import member_kernels as kernels
from predictors.curves.estimator import Evidence
from predictors.errors import PredictorError
from predictors.observations import ObservedCurve, checked_targets, merged_curve, observed_curve
from predictors.regression.garren import FocusedRegression
from predictors.regression.inputs import (
    OPTIONAL_INPUT,
    InputEstimator,
    TrainingRuns,
    counts_of,
    target_rows,
)
from predictors.regression.loglog import Form, LogLogModel, choose_model
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

_ROOM = 8
_record_errors = direct(kernels.record_errors)


class ErrorMemory:
    """Past errors of every method, on each application and on all together.

    A method's expected error on an application is the mean of what it did there,
    of what it did elsewhere, which weighs as at most 3 runs, and of a common prior
    of 0.2, which weighs as 2. Errors are |ln(predicted / measured)|, at most 2,
    and fade by 0.95 a run on the same application. Weights go with the inverse
    square of the expected error, relative to the methods' median.

    Attributes
    ----------
    sums : numpy.ndarray of float, shape (rows, columns, 4)
        Of all applications in the first row, then of each: a column a method.

    Examples
    --------
    >>> memory = ErrorMemory()
    >>> for _ in range(20):
    ...     memory.record("cfd", {"linear": 0.05, "quadratic": 0.8, "usl": 0.2})
    >>> factors = memory.multipliers("cfd")
    >>> factors["linear"] > factors["usl"] > factors["quadratic"]
    True
    >>> memory.multipliers("unseen")["linear"] < factors["linear"]
    True
    """

    def __init__(self) -> None:
        self._rows: dict[Hashable, int] = {}
        self._columns: dict[str, int] = {}
        self.sums = np.zeros((_ROOM, _ROOM, 4))

    def row_of(self, application: Hashable) -> int:
        """Return the row of an application."""
        row = self._rows.setdefault(application, len(self._rows) + 1)
        if row == len(self.sums):
            self.sums = np.concatenate([self.sums, np.zeros_like(self.sums)])
        return row

    def columns_of(self, methods: tuple[str, ...]) -> IntArray:
        """Return the columns of methods, shape (k,)."""
        found = [self._columns.setdefault(name, len(self._columns)) for name in methods]
        while len(self._columns) > self.sums.shape[1]:
            self.sums = np.concatenate([self.sums, np.zeros_like(self.sums)], axis=1)
        return np.array(found, np.int64)

    def record(self, application: Hashable, log_errors: Mapping[str, float]) -> None:
        """Take in each method's ln(predicted / measured) for one finished run.

        Raises
        ------
        PredictorError
            If an error is NaN.
        """
        for name, value in log_errors.items():
            if isnan(value):
                raise PredictorError(f"the error of {name} on {application!r} is NaN")
        row, columns = self.row_of(application), self.columns_of(tuple(log_errors))
        _record_errors(self.sums, row, columns, np.array([*log_errors.values()], float))

    def expected_errors(self, application: Hashable) -> dict[str, float]:
        """Return each method's expected |ln(predicted / measured)| on an application."""
        return self._known(kernels.expected_errors(self.sums, self.row_of(application)))

    def multipliers(self, application: Hashable) -> dict[str, float]:
        """Return factors on the methods' weights, between 1/4 and 4; none if nothing is known."""
        return self._known(kernels.weight_factors(self.sums, self.row_of(application)))

    def _known(self, values: FloatArray) -> dict[str, float]:
        """Return the values of the methods of which anything is known."""
        runs = self.sums[0, :, kernels.RUNS]
        return {name: values.item(k) for name, k in self._columns.items() if runs[k] > 0.0}


LINE: Form = "linear"
CURVED: Form = "quadratic"
NO_CONSTANTS: Mapping[str, float] = {}
FOCAL_STEP = 0.25  # log2 units of time: focal fits are shared by targets this close
SIZE_EXPONENT = 1.0  # time per unit of size, where the runs do not tell

LogSeconds = Callable[[FloatArray], FloatArray]
"""ln seconds of log2 counts and inputs, shape (1 + k, m)."""


@dataclass(frozen=True)
class InputScaling:
    """How times are brought from one set of inputs to another.

    Attributes
    ----------
    reference : numpy.ndarray, shape (k,)
        log2 of the inputs that times are brought to.
    exponents : numpy.ndarray, shape (k,)
        Of each input.
    scatter : float
        Spread of ln T that the inputs leave; 0 where none vary.
    learned : bool
        False if the exponents are assumed: the runs do not tell size from count.
    """

    reference: FloatArray
    exponents: FloatArray
    scatter: float = 0.0
    learned: bool = True

    def shift(self, known: FloatArray) -> FloatArray:
        """Return the change of ln T from the reference inputs to those of some targets."""
        return np.asarray(self.exponents @ (known[1:] - self.reference[:, None]) * np.log(2.0))


NO_INPUTS = InputScaling(np.empty(0), np.empty(0))


@dataclass(frozen=True)
class Methods:
    """Fitted methods.

    Attributes
    ----------
    methods : tuple of str
        Their names.
    curve : ObservedCurve
        Measured times at the reference inputs, a mean a count, without a declining end.
    inputs : tuple of str
        Those that varied in the runs.
    constants : mapping of str to float
        Those that did not.
    scaling : InputScaling
    evidence : Evidence or None
        What answers keep to; None where inputs vary, and no count was measured as such.
    kept : KeptFit or None
        The methods where no input varies.
    voices : tuple of callable
        The methods where inputs vary.
    """

    methods: tuple[str, ...]
    curve: ObservedCurve
    inputs: tuple[str, ...]
    constants: Mapping[str, float]
    scaling: InputScaling
    evidence: Evidence | None = None
    kept: kernels.KeptFit | None = None
    voices: tuple[LogSeconds, ...] = ()

    def log_seconds(self, known: FloatArray) -> FloatArray:
        """Return ln seconds of every method, shape (methods, m)."""
        if self.kept is None:
            return np.array([voice(known) for voice in self.voices])
        return kernels.voices_of(self.kept.coefficients, self.kept.present, counts_of(known[0]))


def on_curve(coefficients: FloatArray, scaling: InputScaling, known: FloatArray) -> FloatArray:
    """Return ln seconds by a law of counts alone, brought to the inputs asked about."""
    seconds: FloatArray = np.log(kernels.law_seconds(coefficients, counts_of(known[0])))
    return seconds + scaling.shift(known)


def on_runs(model: LogLogModel, known: FloatArray) -> FloatArray:
    """Return ln seconds by a regression, which knows the inputs."""
    return np.log(model.seconds(known))


class InFocus:
    """Focal predictions: T0 is what the complete fit says at each target."""

    def __init__(self, runs: TrainingRuns, complete: LogLogModel) -> None:
        self._runs, self._complete = runs, complete
        self._fits: dict[int, LogLogModel | None] = {}

    def __call__(self, known: FloatArray) -> FloatArray:
        """Return ln seconds."""
        seconds = on_runs(self._complete, known)
        steps = np.rint(seconds / np.log(2.0) / FOCAL_STEP).astype(int)
        for step in set(steps.tolist()):
            model, rows = self._fitted(step), steps == step
            if model is not None:
                seconds[rows] = on_runs(model, np.compress(rows, known, axis=1))
        return seconds

    def _fitted(self, step: int) -> LogLogModel | None:
        if step not in self._fits:
            inputs = self._runs.inputs
            try:
                model = FocusedRegression(inputs, focal_time=2.0 ** (step * FOCAL_STEP))
                found = model.fit_runs(self._runs).model_
                self._fits[step] = found if found.inputs == inputs else None
            except PredictorError:
                self._fits[step] = None
        return self._fits[step]


def _complete(runs: TrainingRuns, form: Form) -> LogLogModel | None:
    """Return the regression of that form on all runs, None if they do not determine it."""
    try:
        return choose_model(runs, form, "total").model
    except PredictorError:
        return None


def fit_members(runs: TrainingRuns, columns: IntArray) -> Methods:
    """Fit every method that the runs allow, to whole times; from one run up.

    `columns` are those of the methods in the memory of errors.
    """
    if runs.inputs:
        return _fit_with_inputs(replace(runs, splits=runs.splits[:0]))
    curve = observed_curve(counts_of(runs.known[0]), runs.runtime)
    return members_of(curve, columns, runs.constants)


def members_of(
    curve: ObservedCurve, columns: IntArray, constants: Mapping[str, float] = NO_CONSTANTS
) -> Methods:
    """Fit every method that times by count allow, a declining end left out."""
    evidence, told = Evidence(curve), (curve.reach, bool(curve.dropped), columns)
    kept = kernels.fit_measured(curve.nprocs, curve.runtime, *told)
    names = law_of(evidence.ordinary), LINE, CURVED
    present = tuple(names[row] for row in kept.present.tolist())
    return Methods(present, evidence.ordinary, (), constants, NO_INPUTS, evidence, kept)


def _fit_with_inputs(runs: TrainingRuns) -> Methods:
    """Fit where inputs vary: regressions see them, the others times at their medians."""
    line = _complete(runs, LINE)
    reference = np.median(runs.known[1:], axis=1)
    if line is None:
        exponents = np.array([SIZE_EXPONENT if n == "size" else 0.0 for n in runs.inputs])
        scaling = InputScaling(reference, exponents, learned=False)
    else:
        fit = line.parts[0].fit
        scaling = InputScaling(reference, fit.coefficients[2:], float(np.log(2.0) * fit.spread))
    scaled = runs.runtime * np.exp(-scaling.shift(runs.known))
    curve = observed_curve(counts_of(runs.known[0]), scaled)
    voices: dict[str, LogSeconds] = {
        law_of(curve): partial(on_curve, kernels.fit_law(curve.nprocs, curve.runtime), scaling)
    }
    if line is not None:
        voices |= {LINE: partial(on_runs, line), "focused": InFocus(runs, line)}
    curved = _complete(runs, CURVED)
    if curved is not None:
        voices[CURVED] = partial(on_runs, curved)
    methods, constants = tuple(voices), runs.constants
    return Methods(methods, curve, runs.inputs, constants, scaling, voices=tuple(voices.values()))


def law_of(curve: ObservedCurve) -> str:
    """Return the name of the law.

    Amdahl's law cannot rise: where the runtime rises at the end universal scalability
    takes its place, which sees a rise in noise elsewhere.
    """
    rises = len(curve.runtime) > 1 and curve.runtime[-1] > curve.runtime[-2]
    return "usl" if rises else "amdahl"


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
    members_ : Methods
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
    def members_(self) -> Methods:
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

    def _fitted(self) -> Methods:
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
