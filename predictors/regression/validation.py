"""How far a log-log regression can be trusted: its findings in plain words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np
from numpy.typing import ArrayLike

from predictors.base import FloatArray, Grade, Remark
from predictors.errors import AT_LEAST_0, PredictorError
from predictors.regression.inputs import TrainingRuns, counts_of
from predictors.regression.loglog import Chosen, Form, LogLogModel, Split, name_collinear
from predictors.regression.loglog_kernels import (
    DETERMINED,
    FALLING_WORK,
    FORMS,
    MEDIAN_OF_NORMAL,
    POOR_FIT,
    SPLITTING,
    STRONG_FALL,
    choose,
    coefficients_of,
    error_at,
    work_by_level,
)
from predictors.remarks import FAR_FACTOR, ignored_remarks, measure_between, outlier_remarks

FAR_INPUT = 4.0
GOOD_ERROR = 0.10
ACCEPTABLE_ERROR = 0.20
HOPELESS_ERROR = 0.50
FORETOLD, BY_CHECK, LEAST_CHECK = 0.13, 0.25, 0.02
"""A prediction f times beyond is off by 0.13·f·e^¼ (median), e the check's error or 2 %."""
SIGNIFICANT = 2.0
_FAR, _FAR_INPUT = log2(FAR_FACTOR) + 1e-9, log2(FAR_INPUT) + 1e-9
"""Beyond the runs, in log2 units."""


def expected_mape(rmse: float) -> float:
    """Return the median absolute error that a fit's RMSE promises, a fraction.

    E(MAPE) = 2^(0.675·RMSE) − 1, RMSE in log2 units (GARREN section 3.1, without
    its factor 100): the median of the absolute error if the log errors are normal
    without bias.

    Examples
    --------
    >>> round(expected_mape(0.306), 4)
    0.1539
    """
    AT_LEAST_0.check(rmse=rmse)
    return float(2.0 ** (MEDIAN_OF_NORMAL * rmse) - 1.0)


def focal_tolerance(half_width: float) -> float:
    """Return the half-width h of a focal region in log2 units as a fraction, 2^h − 1.

    Examples
    --------
    >>> round(focal_tolerance(0.3), 4)
    0.2311
    """
    if not half_width > 0.0:
        raise PredictorError(f"a focal half-width must be positive, got {half_width}")
    return float(2.0**half_width - 1.0)


@dataclass(frozen=True)
class Validation:
    """What predicting within the training runs gave (BARNES section 4.4).

    Attributes
    ----------
    error : float
        Median relative error (2^|e| − 1) at the last training count.
    factor : float
        How far that prediction reached: from the nearest fitted count to the last one.
    end : float
        The last training count: the largest, or the smallest where the targets are below.
    """

    error: float
    factor: float
    end: float

    def expected(self, factor: float) -> float:
        """Return the median error to expect so many times beyond the last training count.

        On the collected measured curves the check foretells little: its error counts
        with the power ¼, the factor in full.
        """
        return FORETOLD * factor * float(max(self.error, LEAST_CHECK) ** BY_CHECK)

    def grade(self, factor: float) -> Grade:
        """Return how far to trust a prediction so many times beyond."""
        expected = self.expected(factor)
        if expected > HOPELESS_ERROR:
            return "unusable"
        return "warning" if expected > ACCEPTABLE_ERROR else "note"


def check_from(levels: FloatArray, doublings: float) -> list[float]:
    """Return the counts (log2) from which the last one may be predicted, best first.

    The distinct training counts come towards the target, which is so many doublings beyond the
    last one: the check is to reach as far.
    """
    reached = np.abs(levels[-1] - levels[1:-1])
    order = np.argsort(np.abs(reached - doublings), kind="stable")
    return list(map(float, levels[1:-1][order]))


def validate_within(
    runs: TrainingRuns, form: Form, split: Split, starts: Sequence[float], end: float
) -> Validation | None:
    """Fit on counts up to (or from) a start and predict the end, all in log2.

    The first start from which a fit can be made counts; None if there is none.
    """
    counts = runs.known[0]
    for start in starts:
        fitted = counts <= start if start < end else counts >= start
        error = _error_of(runs, form, split, fitted, end)
        if error is not None:
            return Validation(error, 2.0 ** abs(end - start), 2.0**end)
    return None


def _error_of(
    runs: TrainingRuns, form: Form, split: Split, fitted: np.ndarray, end: float
) -> float | None:
    """Return the median error at a count (log2) of a fit to some of the runs, if it can be made."""
    near = runs.take(fitted)
    failed, way, *_, uppers, columns = choose(
        near.known, near.runtime, near.splits, FORMS[form], SPLITTING[split]
    )
    if failed != DETERMINED:
        return None
    coefficients = coefficients_of(uppers, columns, 1 if way < 0 else 2)
    return error_at(coefficients, runs.known, runs.runtime, end)


def smallest_count(runs: TrainingRuns, form: Form, split: Split) -> float:
    """Return the count from which training foretells the largest training count best, in log2.

    At least three counts stay below the largest; all of them, where there are fewer.
    """
    counts = runs.known[0]
    levels, errors = runs.levels, {}
    for start in levels[: max(levels.size - 3, 0)].tolist():
        kept = (counts >= start) & (counts < levels[-1])
        error = _error_of(runs, form, split, kept, levels[-1])
        if error is not None:
            errors[start] = error
    return float(min(errors, key=errors.__getitem__) if errors else levels[0])


def validation_remark(validation: Validation | None, target: float, factor: float) -> Remark:
    """Return the error to expect at a target count beyond the runs as a graded remark."""
    if validation is None:
        text = f"too few processor counts to check a prediction at {target:g} within the runs"
        return Remark("note", "not_validated", text, None, target)
    expected, grade = validation.expected(factor), validation.grade(factor)
    quality = "good" if expected <= GOOD_ERROR else "acceptable" if grade == "note" else "poor"
    text = (
        f"within the training runs, a prediction over a factor of {validation.factor:.3g} (to "
        f"{validation.end:g} processors) was off by {validation.error:.1%} (median); "
        f"{factor:.3g} times beyond them, at {target:g}, expect {expected:.0%} ({quality})"
    )
    text += ", even if the range, which covers scatter only, is narrower" * (quality == "poor")
    measure = None if grade == "note" else measure_between(validation.end, target)
    return Remark(grade, "expected_error", text, measure, target)


def superlinear_remarks(runs: TrainingRuns) -> list[Remark]:
    """Say where speedup is superlinear, as it is when the data come to fit in caches."""
    counts, medians, failed = work_by_level(runs.known, runs.runtime)
    if failed != DETERMINED:
        raise name_collinear(runs, failed)
    levels, middles, steps = counts.tolist(), medians.tolist(), []
    for i in range(len(levels) - 1):
        fall = 1.0 - 2.0 ** (middles[i + 1] - middles[i])
        if fall > FALLING_WORK:
            steps.append((2.0 ** levels[i], 2.0 ** levels[i + 1], fall))
    if not steps:
        return []
    grade: Grade = "warning" if max(fall for _, _, fall in steps) > STRONG_FALL else "note"
    places = ", ".join(f"by {fall:.0%} from {a:g} to {b:g}" for a, b, fall in steps)
    text = (
        f"superlinear speedup: total work falls {places} processors, as when data come to fit in "
        "caches; a fit through such a step predicts too much speedup beyond it"
    )
    last = steps[-1][1]
    return [Remark(grade, "superlinear", text, round(2 * last))]


def fit_remarks(runs: TrainingRuns, model: LogLogModel) -> list[Remark]:
    """Say what the fit itself shows: rows, counts, spread, columns left out."""
    remarks, twice = [], round(2 ** (1 + runs.known[0].max()))
    if min(part.fit.degrees_of_freedom for part in model.parts) < 1:
        text = f"{runs.rows} runs fix the coefficients exactly: nothing is left to judge the fit by"
        remarks.append(Remark("warning", "no_freedom", text, twice))
    elif (error := expected_mape(model.rmse)) > POOR_FIT:
        text = f"the fit leaves errors of {error:.1%} (median) in its own training runs"
        remarks.append(Remark("warning", "poor_fit", text))
    if runs.levels.size < 3:
        text = "fewer than three processor counts: curvature cannot be seen"
        remarks.append(Remark("warning", "few_levels", text, twice))
    return remarks + outlier_remarks(runs.dropped) + ignored_remarks(runs.ignored, "read")


def choice_remarks(choice: Chosen) -> list[Remark]:
    """Say why parts were fitted apart, and what had to be done to them."""
    remarks = []
    if choice.why:
        text = f"computation and communication fitted apart: {choice.why}"
        remarks.append(Remark("note", "separate", text))
    if choice.note:
        remarks.append(Remark("note", "split_mismatch", choice.note))
    return remarks


def constant_remarks(
    constants: Mapping[str, float], inputs: Mapping[str, ArrayLike]
) -> list[Remark]:
    """Say which inputs were constant in training, and where a target differs in one."""
    remarks = []
    for name, value in constants.items():
        asked = np.asarray(inputs.get(name, value), dtype=np.float64)
        if np.allclose(asked, value, rtol=1e-9, atol=0.0):
            text = f"{name} was {value:g} in every training run: predictions hold for it alone"
            remarks.append(Remark("note", "constant_input", text))
        else:
            text = f"{name} was {value:g} in every training run: its effect is unknown"
            remarks.append(Remark("unusable", "constant_input", text))
    return remarks


def range_remarks(
    model: LogLogModel, targets: FloatArray, measured: tuple[float, float] | None = None
) -> list[Remark]:
    """Say which targets, shape (1 + k, t), lie far outside the training range.

    `measured` is log2 of the smallest and largest count, where the fit left some out.
    """
    remarks = []
    smallest, largest = measured or (model.low[0], model.high[0])
    out = np.maximum(targets[0] - largest, smallest - targets[0])
    far = np.unique(targets[0, out > _FAR])
    for target in far:
        factor = 2.0 ** max(target - largest, smallest - target)
        end = largest if target > largest else smallest
        count = counts_of(target).item()
        text = f"a count of {count:g} is {factor:.3g} times beyond the training runs"
        measure = measure_between(2.0**end, count)
        remarks.append(Remark("warning", "far", text, measure, count))
    for k, name in enumerate(model.inputs, 1):
        beyond = np.maximum(targets[k] - model.high[k], model.low[k] - targets[k])
        if beyond.size and beyond.max() > _FAR_INPUT:
            text = f"{name} is up to {2 ** beyond.max():.3g} times beyond the training runs"
            remarks.append(Remark("warning", "far_input", text))
    return remarks


def size_remarks(
    model: LogLogModel, log_seconds: FloatArray, targets: FloatArray, of: str
) -> list[Remark]:
    """Say how far a solved size can be trusted.

    It is unusable where the exponent of size is less than two standard errors from
    zero: then the data do not say that time grows with size.
    """
    row, exponents = 1 + model.inputs.index(of), model.exponents(of)
    exponent = max(exponents)
    main = model.parts[exponents.index(exponent)].fit
    error = float(np.sqrt(main.covariance[1 + row, 1 + row]))
    if exponent < SIGNIFICANT * error:
        text = (
            f"the exponent of {of}, {exponent:.3g}, is within two standard errors ({error:.2g}) "
            "of zero or below: these runs do not support a size for a wanted time"
        )
        return [Remark("unusable", "size_effect", text)]
    solved = targets.copy()
    solved[row] = model.solve(log_seconds, targets, of)
    return range_remarks(model, solved)
