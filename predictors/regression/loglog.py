"""Fitted log-log models: what they predict, how surely, and the size for a wanted time.

log2 T = γ0 + γ1·log2 q + Σ β_k·log2 x_k (+ γ2·(log2 q)²), with q processors and
inputs x_k (BARNES equations 4 to 6; GARREN equation 5 where x is the size alone).
A model has one such part for the total time, or one each for computation and
communication, whose predictions add up. The form with the lower RMSE wins, unless holding
out the largest processor count shows it to be much the worse one; computation and
communication are fitted apart where communication matters or grows (BARNES sections 3
and 4.2).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from predictors.base import FloatArray
from predictors.errors import PredictorError, UndeterminedError
from predictors.least_squares import LeastSquares
from predictors.regression import loglog_kernels as kernels
from predictors.regression.training_runs import TrainingRuns, stacked

PartName = Literal["total", "computation", "communication"]
FormName = Literal["linear", "quadratic"]
SIZE_REACH = 24.0  # doublings of size searched beyond the training sizes
MIN_SIZE_EXPONENT = 1e-6
HALVINGS = 60


def design_matrix(log_q: FloatArray, log_inputs: FloatArray, quadratic: bool) -> FloatArray:
    """Return the columns 1, log2 q, log2 x_1 ... log2 x_k, and (log2 q)² if asked.

    Parameters
    ----------
    log_q : numpy.ndarray, shape (rows,)
    log_inputs : numpy.ndarray, shape (rows, k)
    """
    rows, k = log_inputs.shape
    design = np.empty((rows, 3 + k if quadratic else 2 + k))
    design[:, 0] = 1.0
    design[:, 1] = log_q
    design[:, 2 : 2 + k] = log_inputs
    if quadratic:
        design[:, 2 + k] = log_q * log_q
    return design


@dataclass(frozen=True)
class TimePart:
    """One fitted time: the total, or computation or communication alone."""

    name: PartName
    fit: LeastSquares
    form: FormName

    def design(self, log_q: FloatArray, log_inputs: FloatArray) -> FloatArray:
        """Return the design that this part's coefficients belong to."""
        return design_matrix(log_q, log_inputs, self.form == "quadratic")


@dataclass(frozen=True)
class LogLogModel:
    """One or two fitted parts over the same inputs.

    Attributes
    ----------
    parts : tuple of TimePart
        The total alone, or computation and communication.
    inputs : tuple of str
        Names of the inputs that varied in training, in column order.
    trained : numpy.ndarray, shape (rows, 1 + k)
        log2 q and each input's log2 in training.
    coefficients : numpy.ndarray, shape (parts, 2 + k) or (parts, 3 + k)
        Every part's, 0 for the square of log2 q in one that does without.
    """

    parts: tuple[TimePart, ...]
    inputs: tuple[str, ...]
    trained: FloatArray
    coefficients: FloatArray

    @cached_property
    def low(self) -> FloatArray:
        """Smallest log2 q and inputs in training, shape (1 + k,)."""
        low: FloatArray = self.trained.min(axis=0)
        return low

    @cached_property
    def high(self) -> FloatArray:
        """Largest log2 q and inputs in training, shape (1 + k,)."""
        high: FloatArray = self.trained.max(axis=0)
        return high

    @cached_property
    def ends(self) -> list[tuple[float, float]]:
        """Smallest and largest log2 q, and of each input, in training."""
        return list(zip(self.low.tolist(), self.high.tolist(), strict=True))

    def part_seconds(self, log_q: FloatArray, log_inputs: FloatArray) -> list[FloatArray]:
        """Return the seconds of every part at each row."""
        targets = stacked(log_q, log_inputs)
        parts = range(len(self.parts))
        return [kernels.predicted(self.coefficients[p : p + 1], targets) for p in parts]

    def seconds(self, log_q: FloatArray, log_inputs: FloatArray) -> FloatArray:
        """Return predicted seconds at each row: medians, not means, of log-normals."""
        seconds: FloatArray = kernels.predicted(self.coefficients, stacked(log_q, log_inputs))
        return seconds

    def deviation(self, log_q: FloatArray, log_inputs: FloatArray) -> FloatArray:
        """Return the standard error of a new run's log2 time at each row.

        Parts are taken as independent, each weighing by its share of the time.
        """
        if len(self.parts) == 1:
            part = self.parts[0]
            return part.fit.deviation(part.design(log_q, log_inputs))
        seconds = self.part_seconds(log_q, log_inputs)
        total = seconds[0] + seconds[1]
        variance = np.zeros_like(total)
        for part, amount in zip(self.parts, seconds, strict=True):
            variance += (amount / total * part.fit.deviation(part.design(log_q, log_inputs))) ** 2
        return np.sqrt(variance)

    def quantile(self, level: float) -> float:
        """Return how many standard errors a range of `level` reaches, each way."""
        return max(part.fit.quantile(level) for part in self.parts)

    def interval(
        self, log_q: FloatArray, log_inputs: FloatArray, level: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the prediction interval of a new run in seconds."""
        seconds = self.seconds(log_q, log_inputs)
        reach = np.minimum(self.quantile(level) * self.deviation(log_q, log_inputs), 60.0)
        return seconds * np.exp2(-reach), seconds * np.exp2(reach)

    def weighted_rmse(self, shares: tuple[float, ...] = (1.0,)) -> float:
        """Return the RMSE of the parts, weighted by their shares of the time (BARNES 4.2)."""
        return sum(s * part.fit.rmse for s, part in zip(shares, self.parts, strict=True))

    def solve(
        self, log_seconds: FloatArray, log_q: FloatArray, log_inputs: FloatArray, column: int
    ) -> FloatArray:
        """Return log2 of the input in `column` at which the model takes the wanted time.

        Raises
        ------
        UndeterminedError
            If the time does not grow with that input, or no size within reach fits.
        """
        exponents = tuple(float(part.fit.coefficients[2 + column]) for part in self.parts)
        name = self.inputs[column]
        if max(exponents) < MIN_SIZE_EXPONENT:
            raise UndeterminedError(
                f"the fitted time does not grow with {name} (exponents {exponents}): "
                f"no {name} can be solved for"
            )
        if len(self.parts) == 1:
            without = log_inputs.copy()
            without[:, column] = 0.0
            part = self.parts[0]
            rest = part.fit.predict(part.design(log_q, without))
            log_size: FloatArray = (log_seconds - rest) / exponents[0]
            return log_size
        return self._search(log_seconds, log_q, log_inputs, column, 0.0)

    def solve_interval(
        self,
        log_seconds: FloatArray,
        log_q: FloatArray,
        log_inputs: FloatArray,
        column: int,
        level: float,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the sizes whose prediction intervals contain the wanted time, as log2.

        An end at which the intervals contain it however far one goes is infinite.
        """
        reach = self.quantile(level)
        low = self._search(log_seconds, log_q, log_inputs, column, reach, outside=-np.inf)
        high = self._search(log_seconds, log_q, log_inputs, column, -reach, outside=np.inf)
        return low, high

    def _search(
        self,
        log_seconds: FloatArray,
        log_q: FloatArray,
        log_inputs: FloatArray,
        column: int,
        reach: float,
        outside: float | None = None,
    ) -> FloatArray:
        """Find where log2 time plus `reach` standard errors crosses the wanted time."""

        def above(log_size: FloatArray) -> FloatArray:
            inputs = log_inputs.copy()
            inputs[:, column] = log_size
            value = np.log2(self.seconds(log_q, inputs))
            if reach:
                value = value + reach * self.deviation(log_q, inputs)
            difference: FloatArray = value - log_seconds
            return difference

        low = np.full(log_q.shape, self.low[1 + column] - SIZE_REACH)
        high = np.full(log_q.shape, self.high[1 + column] + SIZE_REACH)
        bracketed = (above(low) < 0.0) & (above(high) > 0.0)
        if outside is None and not bracketed.all():
            raise UndeterminedError(
                f"no {self.inputs[column]} within 2^{SIZE_REACH:g} times the training range "
                "takes the wanted time"
            )
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            beyond = above(middle) > 0.0
            low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
        found = 0.5 * (low + high)
        return found if outside is None else np.where(bracketed, found, outside)


Form = Literal["auto", "linear", "quadratic"]
Split = Literal["auto", "total", "separate"]


def check_determined(runs: TrainingRuns, form: Form) -> None:
    """Refuse training runs that cannot determine the coefficients.

    Raises
    ------
    PredictorError
        With fewer than two processor counts (three for a quadratic), or fewer rows
        than coefficients.
    """
    levels, needed = runs.levels.size, 3 if form == "quadratic" else 2
    if levels < needed:
        raise PredictorError(
            f"distinct processor counts in training: {levels}; "
            f"a {'quadratic' if needed == 3 else 'linear'} form needs at least {needed}"
        )
    coefficients = needed + runs.log_inputs.shape[1]
    if runs.rows < coefficients:
        raise PredictorError(
            f"{runs.rows} runs cannot determine {coefficients} coefficients "
            f"(intercept, nprocs, {', '.join(runs.inputs) or 'no inputs'}): "
            "add runs or leave out inputs"
        )


def name_collinear(runs: TrainingRuns, column: int) -> PredictorError:
    """Return the error that names the input which the others make up."""
    names = ["the intercept", "nprocs", *runs.inputs, "the square of log nprocs"]
    return PredictorError(
        f"{names[column]} is collinear with {', '.join(names[1:column])} in the training runs "
        "(in log-log scale it is their product of powers): their effects cannot be told apart; "
        "vary it independently or leave it out"
    )


def refusal(runs: TrainingRuns, failed: int, form: Form) -> PredictorError:
    """Return the error for a failure's number."""
    if failed >= 0:
        return name_collinear(runs, failed)
    if failed == kernels.NO_SPLIT:
        return PredictorError(
            "split=separate needs positive computation or communication times in the "
            "observations (columns computation, communication, or the same with _cp)"
        )
    try:
        check_determined(runs, form)
    except PredictorError as error:
        return error
    raise AssertionError(f"no such failure: {failed}")  # pragma: no cover


@dataclass(frozen=True)
class Choice:
    """A chosen model and why.

    Attributes
    ----------
    model : LogLogModel
    split : str
        ``total``, ``max`` or ``cp``.
    why : str
        Why the parts were separated; empty for the total.
    note : str
        What had to be done to split times that do not add up.
    """

    model: LogLogModel
    split: str
    why: str = ""
    note: str = ""


def reason_of(why: int, share: float) -> str:
    """Return why parts were fitted apart, in words."""
    if why == kernels.SHARES:
        return f"computation is {share:.0%} of the time at some count, less than 90 %"
    return "communication grows with the processor count" if why == kernels.GROWTH else "asked for"


def note_on_parts(done: int, gap: float) -> str:
    """Return what was done to split times that do not add up, in words."""
    if not done:
        return ""
    if done == kernels.REST:
        return (
            f"computation and communication leave {gap:.0%} of the runtime unexplained: "
            "all that is not computation was taken as communication"
        )
    return f"computation and communication miss the runtime by {gap:.0%} (median)"


def time_part(name: PartName, upper: FloatArray, rows: int, columns: int, linear: int) -> TimePart:
    """Return the fitted time of a triangular factor: linear if it has so many columns."""
    form: FormName = "linear" if columns == linear else "quadratic"
    return TimePart(name, LeastSquares(upper, columns, rows), form)


def model_of(runs: TrainingRuns, uppers: FloatArray, columns: np.ndarray, way: int) -> LogLogModel:
    """Return the model of the total (`way` below 0) or of both parts of a split.

    Parameters
    ----------
    runs : TrainingRuns
    uppers : numpy.ndarray of float
        Triangular factors, one a part.
    columns : numpy.ndarray of int
        Their coefficients, one number a part.
    way : int
    """
    known = runs.arrays[0]
    names: tuple[PartName, ...] = ("total",) if way < 0 else ("computation", "communication")
    parts = tuple(
        time_part(name, upper, runs.rows, width, known.shape[0] + 1)
        for name, upper, width in zip(names, uppers, columns.tolist(), strict=False)
    )
    coefficients = kernels.coefficients_of(uppers, columns, len(parts))
    return LogLogModel(parts, runs.inputs, known.T, coefficients)


def ideal_model(runs: TrainingRuns) -> Choice:
    """Fit runs of one count and size: beside them stands ideal scaling, as one run more."""
    table = np.column_stack([np.ones(runs.rows), runs.log_q, np.log2(runs.runtime)])
    upper = np.zeros((3, 3))
    upper[: min(3, runs.rows + 1)] = np.linalg.qr(np.vstack([table, [0.0, 1.0, -1.0]]), mode="r")
    part = time_part("total", upper, runs.rows + 1, 2, 2)
    known = runs.arrays[0]
    return Choice(LogLogModel((part,), (), known.T, part.fit.coefficients[None, :]), "total")


def is_single(runs: TrainingRuns) -> bool:
    """Say whether the runs show nothing but one count and one size."""
    return runs.levels.size == 1 and not runs.inputs


def choose_model(runs: TrainingRuns, form: Form = "auto", split: Split = "auto") -> Choice:
    """Fit the total, or the split with the lowest weighted RMSE, by the paper's rules.

    Raises
    ------
    PredictorError
        If the runs do not determine the coefficients, or a split is asked for and
        the runs have none.
    """
    known, runtime, splits = runs.arrays
    failed, way, why, share, done, gap, uppers, columns = kernels.choose(
        known, runtime, splits, kernels.FORMS[form], kernels.SPLITTING[split]
    )
    if failed != kernels.DETERMINED:
        raise refusal(runs, failed, form)
    model = model_of(runs, uppers, columns, way)
    if way < 0:
        return Choice(model, "total")
    return Choice(model, list(runs.splits)[way], reason_of(why, share), note_on_parts(done, gap))
