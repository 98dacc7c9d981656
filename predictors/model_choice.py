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
from predictors.leastsquares import LeastSquares, collinear_column, factor, from_factor
from predictors.loglog import LogLogModel, PartName, TimePart, design_matrix
from predictors.training_runs import TrainingRuns

Form = Literal["auto", "linear", "quadratic"]
Split = Literal["auto", "total", "separate"]

COMPUTATION_BOUND = 0.9
GUARD_LEVELS = 4
GUARD_FACTOR = 1.5
EXACT = 1e-9
ADDS_UP = 0.02
_LARGEST_ERROR = 900.0
"""Errors in log2 units are told apart up to here; their powers stay finite."""


def levels_of(log_q: FloatArray) -> list[float]:
    """Return the distinct log2 processor counts, ascending."""
    return sorted(set(log_q.tolist()))


def check_determined(runs: TrainingRuns, levels: int, form: Form) -> None:
    """Refuse training runs that cannot determine the coefficients.

    Raises
    ------
    PredictorError
        With fewer than two processor counts (three for a quadratic), or fewer rows
        than coefficients.
    """
    needed = 3 if form == "quadratic" else 2
    if levels < needed:
        raise PredictorError(
            f"{levels} distinct processor count(s) in training: "
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


def _median(values: FloatArray) -> float:
    """Return the median of a short array, for a fraction of what numpy's costs."""
    ordered = np.sort(values)
    return float(0.5 * (ordered[(ordered.size - 1) // 2] + ordered[ordered.size // 2]))


def middle_error(model: LeastSquares, design: FloatArray, response: FloatArray) -> float:
    """Return the median of 2^|e| − 1 over the log2 errors e (BARNES section 2.2)."""
    error = _median(np.abs(model.predict(design) - response))
    return float(2.0 ** min(error, _LARGEST_ERROR) - 1.0)


def guard_prefers(
    design: FloatArray, response: FloatArray
) -> Literal["linear", "quadratic"] | None:
    """Return the form that the held-out largest count clearly prefers, if any."""
    held = design[:, 1] == design[:, 1].max()
    rest, columns = design[~held], design.shape[1]
    if rest.shape[0] < columns:
        return None
    upper = factor(rest, response[~held])
    if collinear_column(upper) is not None:
        return None
    out, truth = design[held], response[held]
    linear = middle_error(from_factor(upper, len(rest), columns - 1), out[:, :-1], truth)
    quadratic = middle_error(from_factor(upper, len(rest), columns), out, truth)
    if quadratic > GUARD_FACTOR * linear + EXACT:
        return "linear"
    return "quadratic" if linear > GUARD_FACTOR * quadratic + EXACT else None


def prefers_quadratic(
    upper: FloatArray, design: FloatArray, response: FloatArray, levels: int
) -> bool:
    """Choose the quadratic by RMSE (rows minus coefficients), under the hold-out guard."""
    if levels >= GUARD_LEVELS:
        preferred = guard_prefers(design, response)
        if preferred is not None:
            return preferred == "quadratic"
    rows, columns = design.shape
    last, left = float(upper[columns - 1, columns]), float(upper[columns, columns])
    linear = ((last * last + left * left) / (rows - columns + 1)) ** 0.5
    return bool(linear > abs(left) / (rows - columns) ** 0.5 + EXACT)


def fit_part(
    name: PartName, runs: TrainingRuns, seconds: FloatArray, form: Form, levels: int
) -> TimePart:
    """Fit one time in the form asked for, or in the better of the two.

    Raises
    ------
    PredictorError
        If an input is collinear with the others.
    """
    curved = form != "linear" and levels >= 3
    design = design_matrix(runs.log_q, runs.log_inputs, curved)
    response = np.log2(seconds)
    rows, columns = design.shape
    upper = factor(design, response)
    which = collinear_column(upper)
    if which is not None and (not curved or which < columns - 1 or form == "quadratic"):
        raise name_collinear(runs, which)
    if form == "quadratic" or (
        curved
        and which is None
        and rows > columns
        and prefers_quadratic(upper, design, response, levels)
    ):
        return TimePart(name, from_factor(upper, rows, columns), "quadratic")
    return TimePart(name, from_factor(upper, rows, columns - curved), "linear")


def growing_communication(runs: TrainingRuns, communication: FloatArray) -> bool:
    """Say whether the linear fit to communication rises with the processor count."""
    part = fit_part("communication", runs, communication, "linear", 2)
    return bool(part.fit.coefficients[1] > 0.0)


def computation_shares(runs: TrainingRuns, way: str) -> list[float]:
    """Return the mean share of computation at each processor count, ascending."""
    computation, communication = runs.splits[way]
    share = computation / (computation + communication)
    _, level = np.unique(runs.log_q, return_inverse=True)
    shares: list[float] = (np.bincount(level, share) / np.bincount(level)).tolist()
    return shares


def should_separate(runs: TrainingRuns, way: str) -> str | None:
    """Return why to fit the parts of this split separately, or None (BARNES section 3)."""
    least = min(computation_shares(runs, way))
    if least < COMPUTATION_BOUND:
        return f"computation is {least:.0%} of the time at some count, less than 90 %"
    communication = logged_communication(runs.splits[way][1])
    if growing_communication(runs, communication):
        return "communication grows with the processor count"
    return None


def logged_communication(communication: FloatArray) -> FloatArray:
    """Return communication times that have logarithms: half the smallest for zeros."""
    positive = communication > 0.0
    if positive.all():
        return communication
    return np.where(positive, communication, 0.5 * communication[positive].min())


def usable_ways(runs: TrainingRuns) -> list[str]:
    """Return the ways of splitting that can be logged: communication all zero is absent."""
    return [
        way
        for way, (computation, communication) in runs.splits.items()
        if (computation > 0.0).all() and (communication > 0.0).any()
    ]


def adding_up(runs: TrainingRuns, way: str) -> tuple[FloatArray, FloatArray, str]:
    """Return the parts so that they add up to the runtime, and a note if they did not."""
    computation, communication = runs.splits[way]
    gap = _median(np.abs(runs.runtime - computation - communication) / runs.runtime)
    rest = runs.runtime - computation
    if gap <= ADDS_UP:
        return computation, communication, ""
    if (rest > 0.0).all():
        note = (
            f"computation and communication leave {gap:.0%} of the runtime unexplained: "
            "all that is not computation was taken as communication"
        )
        return computation, rest, note
    note = f"computation and communication miss the runtime by {gap:.0%} (median)"
    return computation, communication, note


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


def _model(runs: TrainingRuns, parts: tuple[TimePart, ...]) -> LogLogModel:
    return LogLogModel(parts, runs.inputs, design_matrix(runs.log_q, runs.log_inputs, False)[:, 1:])


def fit_separate(
    runs: TrainingRuns, way: str, why: str, form: Form, levels: int
) -> tuple[float, Choice]:
    """Fit both parts of one split; return the RMSE weighted by shares at p0, and the model."""
    computation, communication, note = adding_up(runs, way)
    logged = logged_communication(communication)
    parts = (
        fit_part("computation", runs, computation, form, levels),
        fit_part("communication", runs, logged, form, levels),
    )
    top = runs.log_q == runs.log_q.max()
    share = float((computation[top] / (computation[top] + logged[top])).mean())
    model = _model(runs, parts)
    return model.weighted_rmse((share, 1.0 - share)), Choice(model, way, why, note)


def choose_model(runs: TrainingRuns, form: Form = "auto", split: Split = "auto") -> Choice:
    """Fit the total, or the split with the lowest weighted RMSE, by the paper's rules.

    Raises
    ------
    PredictorError
        If the runs do not determine the coefficients, or a split is asked for and
        the runs have none.
    """
    levels = len(levels_of(runs.log_q))
    check_determined(runs, levels, form)
    ways = usable_ways(runs) if split != "total" else []
    if split == "separate" and not ways:
        raise PredictorError(
            "split=separate needs positive computation or communication times in the "
            "observations (columns computation, communication, or the same with _cp)"
        )
    fits: list[tuple[float, Choice]] = []
    for way in ways:
        why = should_separate(runs, way)
        if split == "separate" or why is not None:
            fits.append(fit_separate(runs, way, why or "asked for", form, levels))
    if fits:
        return min(fits, key=lambda pair: pair[0])[1]
    return Choice(_model(runs, (fit_part("total", runs, runs.runtime, form, levels),)), "total")
