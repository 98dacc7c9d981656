"""The members of the consensus, fitted and asked together, and how their answers become one.

That is their median, weighed by what each got right before. Methods that know
processors alone see times brought to one size with the exponents of the log-log line, and
their answers are brought back.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from predictors.base import FloatArray
from predictors.curves.laws import Amdahl, UniversalScalability
from predictors.curves.measured import Evidence
from predictors.errors import PredictorError
from predictors.observations import ObservedCurve, observed_curve
from predictors.regression.garren import FocusedRegression
from predictors.regression.loglog import LogLogModel
from predictors.regression.model_choice import choose_model
from predictors.regression.training_runs import TrainingRuns, counts_of, runs_from_arrays

PRIOR_ERROR = 0.2
PRIOR_WEIGHT = 2.0
ELSEWHERE_AT_MOST = 3.0
FADING = 0.95
STRONGEST = 4.0
LARGEST_ERROR = 2.0


def weighted_median(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted median of each column, the middle of a tie.

    Parameters
    ----------
    values, weights : numpy.ndarray, shape (k, m)
        Weights are not negative, some in each column positive.
    """
    if (weights == weights[:1]).all():
        ranked = np.sort(values, axis=0)
        return np.asarray(0.5 * (ranked[(len(ranked) - 1) // 2] + ranked[len(ranked) // 2]), float)
    order = np.argsort(values, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    below = np.cumsum(np.take_along_axis(weights, order, axis=0), axis=0)
    half = 0.5 * below[-1]
    slack = 1e-9 * below[-1]
    first = np.argmax(below >= half - slack, axis=0)[None, :]
    last = np.argmax(below > half + slack, axis=0)[None, :]
    ends = np.take_along_axis(ordered, first, axis=0), np.take_along_axis(ordered, last, axis=0)
    middle: FloatArray = 0.5 * (ends[0] + ends[1]).ravel()
    return middle


class Sums(NamedTuple):
    """Runs and their errors, both possibly faded."""

    runs: float
    errors: float

    def plus(self, error: float, fading: float = 1.0) -> "Sums":
        """Return the sums with one more run, older ones faded."""
        return Sums(fading * self.runs + 1.0, fading * self.errors + error)


NOTHING = Sums(0.0, 0.0)


class ErrorMemory:
    """Past errors of every method, on each application and on all together.

    A method's expected error on an application is the mean of what it did there,
    of what it did elsewhere, which weighs as at most 3 runs, and of a common prior
    of 0.2, which weighs as 2. Errors are |ln(predicted / measured)|, at most 2,
    and fade by 0.95 a run on the same application. Weights go with the inverse
    square of the expected error, relative to the methods' median.

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
        self._recent: dict[Hashable, dict[str, Sums]] = {}
        self._own: dict[Hashable, dict[str, Sums]] = {}
        self._all: dict[str, Sums] = {}

    def record(self, application: Hashable, log_errors: Mapping[str, float]) -> None:
        """Take in each method's ln(predicted / measured) for one finished run.

        Raises
        ------
        PredictorError
            If an error is NaN.
        """
        recent = self._recent.setdefault(application, {})
        own = self._own.setdefault(application, {})
        for name, value in log_errors.items():
            if np.isnan(value):
                raise PredictorError(f"the error of {name} on {application!r} is NaN")
            error = min(abs(float(value)), LARGEST_ERROR)
            recent[name] = recent.get(name, NOTHING).plus(error, FADING)
            own[name] = own.get(name, NOTHING).plus(error)
            self._all[name] = self._all.get(name, NOTHING).plus(error)

    def expected_errors(self, application: Hashable) -> dict[str, float]:
        """Return each method's expected |ln(predicted / measured)| on an application."""
        recent, own = self._recent.get(application, {}), self._own.get(application, {})
        expected = {}
        for name, everywhere in self._all.items():
            here, mine = recent.get(name, NOTHING), own.get(name, NOTHING)
            runs = everywhere.runs - mine.runs
            weight = min(runs, ELSEWHERE_AT_MOST)
            elsewhere = (everywhere.errors - mine.errors) / runs if runs else 0.0
            parts = here.errors + weight * elsewhere + PRIOR_WEIGHT * PRIOR_ERROR
            expected[name] = parts / (here.runs + weight + PRIOR_WEIGHT)
        return expected

    def multipliers(self, application: Hashable) -> dict[str, float]:
        """Return factors on the methods' weights, between 1/4 and 4; none if nothing is known."""
        expected = self.expected_errors(application)
        if not expected:
            return {}
        middle = float(np.median(list(expected.values())))
        return {
            name: float(np.clip((middle / max(error, 1e-3)) ** 2, 1 / STRONGEST, STRONGEST))
            for name, error in expected.items()
        }


LINE = "linear"
FOCAL_STEP = 0.25  # log2 units of time: focal fits are shared by targets this close
SIZE_EXPONENT = 1.0  # time per unit of size, where the runs do not tell

LogSeconds = Callable[[FloatArray, FloatArray], FloatArray]


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

    def shift(self, log_inputs: FloatArray) -> FloatArray:
        """Return the change of ln T from the reference inputs to these."""
        change: FloatArray = (log_inputs - self.reference) @ self.exponents * np.log(2.0)
        return change


NO_INPUTS = InputScaling(np.empty(0), np.empty(0))


@dataclass(frozen=True)
class Members:
    """Fitted methods.

    Attributes
    ----------
    methods : mapping of str to callable
        From log2 counts, shape (m,), and log2 inputs, shape (m, k), to ln seconds.
    curve : ObservedCurve
        Measured times at the reference inputs, a mean a count, without a declining end.
    runs : TrainingRuns
        What was fitted, with the inputs that varied and those that did not.
    scaling : InputScaling
    evidence : Evidence or None
        What answers keep to; None where inputs vary, and no count was measured as such.
    """

    methods: Mapping[str, LogSeconds]
    curve: ObservedCurve
    runs: TrainingRuns
    scaling: InputScaling
    evidence: Evidence | None

    def log_seconds(self, log_q: FloatArray, log_inputs: FloatArray) -> FloatArray:
        """Return ln seconds of every method, shape (methods, m)."""
        return np.array([method(log_q, log_inputs) for method in self.methods.values()])


@dataclass(frozen=True)
class OnCurve:
    """A model of counts alone, brought to the inputs asked about."""

    model: Amdahl | UniversalScalability
    scaling: InputScaling

    def __call__(self, log_q: FloatArray, log_inputs: FloatArray) -> FloatArray:
        """Return ln seconds."""
        known, place = np.unique(log_q, return_inverse=True)
        seconds: FloatArray = np.log(self.model.predict_model(counts_of(known)))[place]
        return seconds + self.scaling.shift(log_inputs)


@dataclass(frozen=True)
class OnRuns:
    """A regression, which knows the inputs."""

    model: LogLogModel

    def __call__(self, log_q: FloatArray, log_inputs: FloatArray) -> FloatArray:
        """Return ln seconds."""
        return np.log(self.model.seconds(log_q, log_inputs))


class InFocus:
    """Focal predictions: T0 is what the complete fit says at each target."""

    def __init__(self, runs: TrainingRuns, complete: LogLogModel) -> None:
        self._runs, self._complete = runs, complete
        self._fits: dict[int, LogLogModel | None] = {}

    def __call__(self, log_q: FloatArray, log_inputs: FloatArray) -> FloatArray:
        """Return ln seconds."""
        seconds = np.log(self._complete.seconds(log_q, log_inputs))
        steps = np.rint(seconds / np.log(2.0) / FOCAL_STEP).astype(int)
        for step in set(steps.tolist()):
            model, rows = self._fitted(step), steps == step
            if model is not None:
                seconds[rows] = np.log(model.seconds(log_q[rows], log_inputs[rows]))
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


def _complete(runs: TrainingRuns, form: str) -> LogLogModel | None:
    """Return the regression of that form on all runs, None if they do not determine it."""
    try:
        return choose_model(runs, "linear" if form == LINE else "quadratic", "total").model
    except PredictorError:
        return None


def fit_members(
    names: Sequence[str], nprocs: ArrayLike, runtime: ArrayLike, inputs: Sequence[ArrayLike] = ()
) -> Members:
    """Fit every method that the runs allow; from one run up.

    Raises
    ------
    PredictorError
        If a count, time or input is not a finite positive number.
    """
    runs = runs_from_arrays(names if len(inputs) else (), nprocs, runtime, inputs)
    if runs.inputs:
        return _fit_with_inputs(runs)
    evidence = Evidence(observed_curve(nprocs, runtime))
    curve = evidence.ordinary
    on_curve = runs_from_arrays((), curve.nprocs, curve.runtime)
    return _assemble(runs, on_curve, curve, NO_INPUTS, evidence)


def _fit_with_inputs(runs: TrainingRuns) -> Members:
    """Fit where inputs vary: regressions see them, the others times at their medians."""
    line = _complete(runs, LINE)
    reference = np.median(runs.log_inputs, axis=0)
    if line is None:
        exponents = np.array([SIZE_EXPONENT if n == "size" else 0.0 for n in runs.inputs])
        scaling = InputScaling(reference, exponents, learned=False)
    else:
        fit = line.parts[0].fit
        scaling = InputScaling(reference, fit.coefficients[2:], float(np.log(2.0) * fit.spread))
    scaled = runs.runtime * np.exp(-scaling.shift(runs.log_inputs))
    return _assemble(runs, runs, observed_curve(counts_of(runs.log_q), scaled), scaling)


def _assemble(
    runs: TrainingRuns,
    regressed: TrainingRuns,
    curve: ObservedCurve,
    scaling: InputScaling,
    evidence: Evidence | None = None,
) -> Members:
    """Fit the law to the curve and the regressions to the runs.

    Amdahl's law cannot rise: where the runtime rises at the end universal scalability
    takes its place, which sees a rise in noise elsewhere.
    """
    rises = len(curve.runtime) > 1 and curve.runtime[-1] > curve.runtime[-2]
    name, law = ("usl", UniversalScalability()) if rises else ("amdahl", Amdahl())
    law.fit_arrays(curve.nprocs, curve.runtime)
    methods: dict[str, LogSeconds] = {name: OnCurve(law, scaling)}
    for form in (LINE, "quadratic"):
        complete = _complete(regressed, form)
        if complete is not None:
            methods[form] = OnRuns(complete)
            if form == LINE and runs.inputs:
                methods["focused"] = InFocus(runs, complete)
    return Members(methods, curve, runs, scaling, evidence)
