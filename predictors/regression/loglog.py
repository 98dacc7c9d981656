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
from predictors.regression.inputs import TrainingRuns

PartName = Literal["total", "computation", "communication"]
FormName = Literal["linear", "quadratic"]
SIZE_REACH = 24.0  # doublings of size searched beyond the training sizes
MIN_SIZE_EXPONENT = 1e-6
HALVINGS = 60


@dataclass(frozen=True)
class TimePart:
    """One fitted time: the total, or computation or communication alone."""

    name: PartName
    fit: LeastSquares
    form: FormName

    def design(self, known: FloatArray) -> FloatArray:
        """Return the columns 1, log2 q, log2 x_1 ... log2 x_k, and (log2 q)² if quadratic."""
        bent = [known[0] * known[0]] if self.form == "quadratic" else []
        return np.ascontiguousarray(np.vstack([np.ones(known.shape[1]), known, *bent]).T)


@dataclass(frozen=True)
class LogLogModel:
    """One or two fitted parts over the same inputs.

    Runs and targets come as a table, shape (1 + k, rows): log2 q and each input's log2.

    Attributes
    ----------
    parts : tuple of TimePart
        The total alone, or computation and communication.
    inputs : tuple of str
        Names of the inputs that varied in training, in column order.
    trained : numpy.ndarray, shape (1 + k, rows)
        The training runs.
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
        return np.asarray(self.trained.min(axis=1))

    @cached_property
    def high(self) -> FloatArray:
        """Largest log2 q and inputs in training, shape (1 + k,)."""
        return np.asarray(self.trained.max(axis=1))

    @cached_property
    def ends(self) -> list[tuple[float, float]]:
        """Smallest and largest log2 q, and of each input, in training."""
        return list(zip(self.low.tolist(), self.high.tolist(), strict=True))

    def shares(self, known: FloatArray) -> FloatArray:
        """Return every part's share of the time at each row, shape (parts, rows)."""
        parts = self.coefficients[:, None]
        seconds = np.array([kernels.predicted(part, known) for part in parts])
        return np.asarray(seconds / seconds.sum(axis=0))

    def seconds(self, known: FloatArray) -> FloatArray:
        """Return predicted seconds at each row: medians, not means, of log-normals."""
        return kernels.predicted(self.coefficients, known)

    def deviation(self, known: FloatArray) -> FloatArray:
        """Return the standard error of a new run's log2 time at each row.

        Parts are taken as independent, each weighing by its share of the time.
        """
        own = np.array([part.fit.deviation(part.design(known)) for part in self.parts])
        return np.asarray(np.sqrt(((self.shares(known) * own) ** 2).sum(axis=0)))

    def quantile(self, level: float) -> float:
        """Return how many standard errors a range of `level` reaches, each way."""
        return max(part.fit.quantile(level) for part in self.parts)

    def interval(self, known: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the prediction interval of a new run in seconds."""
        seconds = self.seconds(known)
        reach = np.minimum(self.quantile(level) * self.deviation(known), 60.0)
        return seconds * np.exp2(-reach), seconds * np.exp2(reach)

    @cached_property
    def rmse(self) -> float:
        """RMSE of the parts, weighted by their shares at the largest count (BARNES 4.2)."""
        top = np.compress(self.trained[0] == self.high[0], self.trained, axis=1)
        errors = np.array([part.fit.rmse for part in self.parts])
        return float(self.shares(top).mean(axis=1) @ errors)

    def exponents(self, of: str) -> list[float]:
        """Return every part's exponent of an input."""
        column = 2 + self.inputs.index(of)
        return [float(part.fit.coefficients[column]) for part in self.parts]

    def solve(self, log_seconds: FloatArray, known: FloatArray, of: str) -> FloatArray:
        """Return log2 of the input at which the model takes the wanted time.

        That the time does not grow with it, or no size within reach fits, is an
        `UndeterminedError`.
        """
        exponents = tuple(self.exponents(of))
        if max(exponents) < MIN_SIZE_EXPONENT:
            raise UndeterminedError(
                f"the fitted time does not grow with {of} (exponents {exponents}): "
                f"no {of} can be solved for"
            )
        if len(self.parts) == 1:
            without = known.copy()
            without[1 + self.inputs.index(of)] = 0.0
            part = self.parts[0]
            rest = part.fit.predict(part.design(without))
            return np.asarray((log_seconds - rest) / exponents[0])
        return self._search(log_seconds, known, of, 0.0)

    def solve_interval(
        self, log_seconds: FloatArray, known: FloatArray, of: str, level: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the sizes whose prediction intervals contain the wanted time, as log2.

        An end at which the intervals contain it however far one goes is infinite.
        """
        reach = self.quantile(level)
        low = self._search(log_seconds, known, of, reach, outside=-np.inf)
        high = self._search(log_seconds, known, of, -reach, outside=np.inf)
        return low, high

    def _search(
        self,
        log_seconds: FloatArray,
        known: FloatArray,
        of: str,
        reach: float,
        outside: float | None = None,
    ) -> FloatArray:
        """Find where log2 time plus `reach` standard errors crosses the wanted time."""
        targets, row = known.copy(), 1 + self.inputs.index(of)

        def above(log_size: FloatArray) -> FloatArray:
            targets[row] = log_size
            value = np.log2(self.seconds(targets))
            if reach:
                value = value + reach * self.deviation(targets)
            return np.asarray(value - log_seconds)

        low = np.full(log_seconds.shape, self.low[row] - SIZE_REACH)
        high = np.full(log_seconds.shape, self.high[row] + SIZE_REACH)
        bracketed = (above(low) < 0.0) & (above(high) > 0.0)
        if outside is None and not bracketed.all():
            raise UndeterminedError(
                f"no {of} within 2^{SIZE_REACH:g} times the training range takes the wanted time"
            )
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            beyond = above(middle) > 0.0
            low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
        found = 0.5 * (low + high)
        return found if outside is None else np.where(bracketed, found, outside)


Form = Literal["auto", "linear", "quadratic"]
Split = Literal["auto", "total", "separate"]


def name_collinear(runs: TrainingRuns, column: int) -> PredictorError:
    """Return the error that names the input which the others make up."""
    names = ["the intercept", "nprocs", *runs.inputs, "the square of log nprocs"]
    return PredictorError(
        f"{names[column]} is collinear with {', '.join(names[1:column])} in the training runs "
        "(in log-log scale it is their product of powers): their effects cannot be told apart; "
        "vary it independently or leave it out"
    )


def refusal(runs: TrainingRuns, failed: int, form: Form) -> PredictorError:
    """Return the error for a failure's number.

    Below 0 are a split that the runs have not, fewer than two processor counts (three for a
    quadratic), and fewer rows than coefficients.
    """
    if failed >= 0:
        return name_collinear(runs, failed)
    if failed == kernels.NO_SPLIT:
        return PredictorError(
            "split=separate needs positive computation or communication times in the "
            "observations (columns computation, communication, or the same with _cp)"
        )
    levels, needed = runs.levels.size, 3 if form == "quadratic" else 2
    if levels < needed:
        return PredictorError(
            f"distinct processor counts in training: {levels}; "
            f"a {'quadratic' if needed == 3 else 'linear'} form needs at least {needed}"
        )
    return PredictorError(
        f"{runs.rows} runs cannot determine {needed + len(runs.inputs)} coefficients "
        f"(intercept, nprocs, {', '.join(runs.inputs) or 'no inputs'}): "
        "add runs or leave out inputs"
    )


@dataclass(frozen=True)
class Chosen:
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

    Of each part there are its triangular factor and the number of its coefficients.
    """
    names: tuple[PartName, ...] = ("total",) if way < 0 else ("computation", "communication")
    parts = tuple(
        time_part(name, upper, runs.rows, width, len(runs.inputs) + 2)
        for name, upper, width in zip(names, uppers, columns.tolist(), strict=False)
    )
    coefficients = kernels.coefficients_of(uppers, columns, len(parts))
    return LogLogModel(parts, runs.inputs, runs.known, coefficients)


def ideal_model(runs: TrainingRuns) -> Chosen:
    """Fit runs of one count and size: beside them stands ideal scaling, as one run more."""
    table = np.column_stack([np.ones(runs.rows), runs.known[0], np.log2(runs.runtime)])
    upper = np.zeros((3, 3))
    upper[: min(3, runs.rows + 1)] = np.linalg.qr(np.vstack([table, [0.0, 1.0, -1.0]]), mode="r")
    part = time_part("total", upper, runs.rows + 1, 2, 2)
    return Chosen(LogLogModel((part,), (), runs.known, part.fit.coefficients[None, :]), "total")


def is_single(runs: TrainingRuns) -> bool:
    """Say whether the runs show nothing but one count and one size."""
    return runs.levels.size == 1 and not runs.inputs


def choose_model(runs: TrainingRuns, form: Form = "auto", split: Split = "auto") -> Chosen:
    """Fit the total, or the split with the lowest weighted RMSE, by the paper's rules.

    A `PredictorError` says that the runs do not determine the coefficients, or have no split.
    """
    failed, way, why, share, done, gap, uppers, columns = kernels.choose(
        runs.known, runs.runtime, runs.splits, kernels.FORMS[form], kernels.SPLITTING[split]
    )
    if failed != kernels.DETERMINED:
        raise refusal(runs, failed, form)
    model = model_of(runs, uppers, columns, way)
    if way < 0:
        return Chosen(model, "total")
    return Chosen(model, runs.ways[way], reason_of(why, share), note_on_parts(done, gap))
