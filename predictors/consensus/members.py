"""The members of the consensus, fitted and asked together, and how their answers become one.

That is their median, weighed by what each got right before. Methods that know
processors alone see times brought to one size with the exponents of the log-log line, and
their answers are brought back.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import isnan

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import direct
from predictors.consensus import member_kernels as kernels
from predictors.curves.measured import Evidence
from predictors.errors import PredictorError
from predictors.observations import ObservedCurve, observed_curve
from predictors.regression.garren import FocusedRegression
from predictors.regression.loglog import Form, LogLogModel, choose_model
from predictors.regression.training_runs import TrainingRuns, counts_of

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
class Members:
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
        return kernels.voices_of(self.kept.fits, counts_of(known[0]))


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


def fit_members(runs: TrainingRuns, columns: IntArray) -> Members:
    """Fit every method that the runs allow, to whole times; from one run up.

    `columns` are those of the methods in the memory of errors.
    """
    if runs.inputs:
        return _fit_with_inputs(replace(runs, splits=runs.splits[:0]))
    curve = observed_curve(counts_of(runs.known[0]), runs.runtime)
    return members_of(curve, columns, runs.constants)


def members_of(
    curve: ObservedCurve, columns: IntArray, constants: Mapping[str, float] = NO_CONSTANTS
) -> Members:
    """Fit every method that times by count allow, a declining end left out."""
    evidence, told = Evidence(curve), (curve.reach, bool(curve.dropped), columns)
    kept = kernels.fit_measured(curve.nprocs, curve.runtime, *told)
    names = law_of(evidence.ordinary), LINE, CURVED
    present = tuple(names[row] for row in kept.fits.present.tolist())
    return Members(present, evidence.ordinary, (), constants, NO_INPUTS, evidence, kept)


def _fit_with_inputs(runs: TrainingRuns) -> Members:
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
    return Members(methods, curve, runs.inputs, constants, scaling, voices=tuple(voices.values()))


def law_of(curve: ObservedCurve) -> str:
    """Return the name of the law.

    Amdahl's law cannot rise: where the runtime rises at the end universal scalability
    takes its place, which sees a rise in noise elsewhere.
    """
    rises = len(curve.runtime) > 1 and curve.runtime[-1] > curve.runtime[-2]
    return "usl" if rises else "amdahl"
