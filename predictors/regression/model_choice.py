"""Which log-log model: linear or quadratic, total or separate (BARNES sections 3 and 4.2).

The form with the lower RMSE wins, unless holding out the largest processor count
shows it to be much the worse one; computation and communication are fitted apart
where communication matters or grows.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from predictors.base import FloatArray
from predictors.errors import PredictorError
from predictors.least_squares import LeastSquares
from predictors.regression.loglog import FormName, LogLogModel, PartName, TimePart
from predictors.regression.loglog_kernels import (
    AUTO,
    GROWTH,
    LINEAR,
    NO_SPLIT,
    QUADRATIC,
    REST,
    SEPARATE,
    SHARES,
    TOTAL,
    choose,
)
from predictors.regression.qr import DETERMINED, coefficients_of
from predictors.regression.training_runs import TrainingRuns

Form = Literal["auto", "linear", "quadratic"]
Split = Literal["auto", "total", "separate"]

FORMS: dict[Form, int] = {"auto": AUTO, "linear": LINEAR, "quadratic": QUADRATIC}
SPLITTING: dict[Split, int] = {"auto": AUTO, "total": TOTAL, "separate": SEPARATE}


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
    if failed == NO_SPLIT:
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
    if why == SHARES:
        return f"computation is {share:.0%} of the time at some count, less than 90 %"
    return "communication grows with the processor count" if why == GROWTH else "asked for"


def note_on_parts(done: int, gap: float) -> str:
    """Return what was done to split times that do not add up, in words."""
    if not done:
        return ""
    if done == REST:
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
    coefficients = coefficients_of(uppers, columns, len(parts))
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
    failed, way, why, share, done, gap, uppers, columns = choose(
        known, runtime, splits, FORMS[form], SPLITTING[split]
    )
    if failed != DETERMINED:
        raise refusal(runs, failed, form)
    model = model_of(runs, uppers, columns, way)
    if way < 0:
        return Choice(model, "total")
    return Choice(model, list(runs.splits)[way], reason_of(why, share), note_on_parts(done, gap))
