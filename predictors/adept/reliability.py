"""How far to trust a prediction (ADEPT paper, Table 3, completed), and where to measure next."""

from typing import cast

import numpy as np

from predictors.adept.curve_kernels import COUNTS, FIRST, FLOOR, LAST, WORST, Fits, Reading
from predictors.adept.layout import Layout
from predictors.adept.patterns import Feasible
from predictors.adept.phase import Answers, Phase
from predictors.base import BoolArray, FloatArray, Grade, IntArray, Remark
from predictors.compiling import njit
from predictors.curves.measured import Evidence
from predictors.observations import RISE, ObservedCurve
from predictors.remarks import (
    FAR_FACTOR,
    GRADES,
    INFEASIBLE,
    SINGLE,
    are_far,
    data_remarks,
    far_remarks,
    few_remark,
)

HIGH_ERROR = 0.10
"""Relative fitting error that is high, as printed in section IX."""
RUNNER_UP = 1.5
"""Two instances as good as each other differ if one A is this many times the other."""
APART = 0.20
"""Spread of indistinguishable instances at which a measurement tells them apart."""
ALIKE = 0.10
"""Spread below which no measurement is needed."""
VERY_HIGH_ERROR = 1.0
"""Fitting error that no curve should have; lower ones do not go with larger errors elsewhere."""
OPEN = 6.0
"""Largest over smallest prediction at a target from which the data say little."""
UNANSWERED = 12.0
"""The same from which they do not answer."""
DETERMINED = 0.001
"""Spread that noiseless observations leave only where they do not determine the curve."""
NOTHING, NOTE, WARNING, UNUSABLE = range(len(GRADES))
OPEN_CODES = ("single_observation", "linear_section", "runner_up")
"""What remarks on what instances leave open are called."""


@njit(cache=True)
def severities(
    nprocs: FloatArray, reading: Reading, fits: Fits, targets: FloatArray, answers: FloatArray
) -> tuple[IntArray, IntArray]:
    """Return how severe what is said of each target is, but of the curve and of declining ends.

    Also which of `OPEN_CODES` the instances' remark has. `answers` are what
    `predictors.adept.curve_kernels.answer` says of the targets.
    """
    found, codes = np.zeros(targets.size, np.int64), np.zeros(targets.size, np.int64)
    for i in range(targets.size):
        target, figures = targets[i], fits.figures[int(answers[9, i])]
        if figures[COUNTS] == 1.0:
            found[i] = NOTHING if target == figures[FIRST] else UNUSABLE
        else:
            ratio = answers[2, i] / answers[1, i]
            linear = answers[8, i] > 0.0 and target > figures[LAST]
            apart = answers[7, i] > RUNNER_UP * answers[6, i] and ratio - 1.0 >= ALIKE
            open_from = 1.0 + DETERMINED if figures[FLOOR] == 0.0 else OPEN
            grade = WARNING if ratio >= open_from else NOTE
            grade = UNUSABLE if ratio >= UNANSWERED else grade
            found[i] = grade if linear or apart or grade > NOTE else NOTHING
            codes[i] = 1 if linear else 2
        if figures[COUNTS] < 3.0 or figures[WORST] > VERY_HIGH_ERROR:
            found[i] = max(found[i], WARNING)
        elif figures[WORST] > HIGH_ERROR:
            found[i] = max(found[i], NOTE)
        if target > FAR_FACTOR * nprocs[-1] or target < nprocs[0] / FAR_FACTOR:
            found[i] = max(found[i], WARNING)
        for point in reading.points:
            if target == nprocs[point]:
                found[i] = max(found[i], WARNING)
    return found, codes


@njit(cache=True)
def severity_of_curve(nprocs: FloatArray, runtime: FloatArray, reading: Reading) -> int:
    """Return how severe what `curve_remarks` says is, but of what was left out."""
    if reading.start < 0 and runtime[-1] > (1.0 + RISE) * runtime.min():
        return WARNING
    work = nprocs * runtime
    noted = reading.points.size > 0 or reading.starts.size > 1
    return NOTE if noted or np.any(work[1:] < 0.95 * work[:-1]) else NOTHING


def curve_remarks(curve: ObservedCurve, layout: Layout) -> list[Remark]:
    """Say what was found in the observations and what was done about it."""
    found = data_remarks(curve)
    for point in layout.points:
        text = (
            f"the runtime on {point.nprocs:g} is off the trend of the others "
            f"(deviation {point.deviation:.1f}); its weight is "
            f"{layout.kept_weight[point.place]:.2f} of what it would be"
        )
        found.append(Remark("note", "anomalous_point", text, round(point.nprocs)))
    if len(layout.starts) > 1:
        breaks = ", ".join(
            f"{curve.nprocs[start - 1]:g} and {curve.nprocs[start]:g}"
            for start in layout.starts[1:]
        )
        text = f"work falls in a step between {breaks}; each phase has its own curve"
        found.append(Remark("note", "stepwise", text))
    if layout.special is not None:
        text = f"the application is optimised for {layout.special}; other counts are left out"
        found.append(Remark("note", "special", text))
    return found + _superlinear(curve) + _end_remarks(curve, layout)


def phase_remarks(phase: Phase, end: float | None) -> list[Remark]:
    """Say how well the observations of a phase are met and determine its curve."""
    found = few_remark(phase.curve, 3, "Downey's curve", end)
    residuals = phase.residuals * (phase.kept_weight > 0.0)
    worst = int(np.argmax(np.abs(residuals)))
    if abs(residuals[worst]) > HIGH_ERROR:
        count = float(phase.curve.nprocs[worst])
        text = f"the curve misses the runtime on {count:g} by {abs(residuals[worst]):.0%}"
        grade: Grade = "warning" if abs(residuals[worst]) > VERY_HIGH_ERROR else "note"
        found.append(Remark(grade, "high_fitting_error", text, round(count)))
    return found


def open_grades(phase: Phase, answers: Answers, targets: FloatArray) -> IntArray:
    """Grade what the instances leave open at each target; `answers` are those of `targets`.

    Without noise any difference between instances that fit equally well says that the
    curve is not determined. With noise a moderate one goes with no larger errors
    (measured curves), so it takes a large one for a warning.
    """
    if len(phase.curve.nprocs) == 1:
        return np.where(targets == phase.curve.nprocs[0], NOTHING, UNUSABLE)
    spread = answers.high / answers.low - 1.0
    open_from = 1.0 + DETERMINED if phase.floor == 0.0 else OPEN
    grade = np.where(1.0 + spread >= open_from, WARNING, NOTE)
    grade[1.0 + spread >= UNANSWERED] = UNUSABLE
    apart = (answers.A_high > RUNNER_UP * answers.A_low) & (spread >= ALIKE)
    told = _in_linear_section(phase, answers, targets) | apart | (grade > NOTE)
    return np.where(told, grade, NOTHING)


def _in_linear_section(phase: Phase, answers: Answers, targets: FloatArray) -> BoolArray:
    """Say which targets lie beyond observations that all precede the curve's bend."""
    return np.asarray(answers.unbent & (targets > phase.curve.nprocs[-1]), bool)


def open_codes(phase: Phase, answers: Answers, targets: FloatArray) -> np.ndarray:
    """Return the code of what `open_remarks` says of each target, if it says anything."""
    if len(phase.curve.nprocs) == 1:
        return np.full(len(targets), "single_observation")
    linear = _in_linear_section(phase, answers, targets)
    return np.where(linear, "linear_section", "runner_up")


def open_remarks(
    phase: Phase, answers: Answers, targets: FloatArray, layout: Layout
) -> list[Remark]:
    """Say what the instances leave open at each target; `answers` are those of `targets`.

    Where all observations are in the linear section a run on at least the predicting
    instance's A is asked for (the paper's Table 3): one on fewer may lie there as well.
    """
    grades = open_grades(phase, answers, targets)
    codes = open_codes(phase, answers, targets).tolist()
    advice = measure_next(phase, layout.feasible, layout.start is not None)
    found = []
    for place in np.flatnonzero(grades > NOTHING).tolist():
        target, grade = targets.item(place), cast(Grade, GRADES[grades[place]])
        A_low, A_high = answers.A_low[place], answers.A_high[place]
        between = f"{answers.low[place]:.4g} to {answers.high[place]:.4g} s"
        code, measure = codes[place], advice
        if code == "single_observation":
            text = SINGLE
        elif code == "linear_section":
            measure = layout.feasible.at_least(_bend(answers, place))
            text = (
                f"all observations lie before the curve bends, so any A from {A_low:.3g} on fits; "
                f"at {target:g} that means {between}"
            )
        else:
            text = (
                f"instances with A from {A_low:.3g} to {A_high:.3g} fit equally well; "
                f"at {target:g} they say {between}"
            )
        found.append(Remark(grade, code, text, measure, target))
    return found


def _bend(answers: Answers, place: int) -> float:
    """Return where the predicting instance bends: A, or N = A + A sigma - sigma above sigma = 1."""
    A, sigma = float(answers.A[place]), float(answers.sigma[place])
    return A + sigma * (A - 1.0) if sigma > 1.0 else A


def _infeasible_grades(layout: Layout, evidence: Evidence, targets: FloatArray) -> IntArray:
    """Grade the targets that the application does not run on: less where a family was found."""
    if not layout.feasible.restricts:
        return np.zeros(len(targets), np.int64)
    believed = evidence.measured(targets) & (layout.special is not None)
    outside = np.where(believed, WARNING, UNUSABLE)
    return np.where(layout.feasible.holds(targets), NOTHING, outside)


def point_grades(
    curve: ObservedCurve, layout: Layout, evidence: Evidence, targets: FloatArray
) -> IntArray:
    """Grade what `point_remarks` says of each target."""
    grades = np.where(are_far(curve, targets), WARNING, NOTHING)
    for point in layout.points:
        grades[targets == point.nprocs] = WARNING
    return np.maximum(grades, _infeasible_grades(layout, evidence, targets))


def point_remarks(
    curve: ObservedCurve, layout: Layout, evidence: Evidence, targets: FloatArray
) -> list[Remark]:
    """Say which targets are far, infeasible or measured off the trend; not of declining ends."""
    found = far_remarks(curve, targets)
    anomalous = {point.nprocs: point for point in layout.points}
    infeasible = _infeasible_grades(layout, evidence, targets).tolist()
    for target, severity in zip(targets.tolist(), infeasible, strict=True):
        if severity:
            count = layout.feasible.at_least(target)
            text = f"{target:g} is none of {layout.feasible.name}"
            grade = cast(Grade, GRADES[severity])
            found.append(Remark(grade, INFEASIBLE, text, count, target))
        if target in anomalous:
            text = (
                f"the runtime measured on {target:g} is off the trend of the others, and the "
                "trend is what answers there"
            )
            found.append(Remark("warning", "anomalous_point", text, round(target), target))
    return found


def measure_next(phase: Phase, feasible: Feasible, declines: bool = False) -> int | None:
    """Return the count that would best tell the indistinguishable instances apart.

    It is the smallest feasible one outside the observations where they differ
    by 20 %, else the one with the largest spread; None if that is below 10 %. Beyond
    the observations there is none if what is there declines.
    """
    first, last = float(phase.curve.nprocs[0]), float(phase.curve.nprocs[-1])
    counts = np.unique(np.ceil(last * 2.0 ** (np.arange(1, 33) / 8.0)))
    below = np.unique(np.floor(first * 2.0 ** (-np.arange(1, 25) / 8.0)))
    tried = below if declines else np.concatenate([below, counts])
    options = [feasible.at_least(float(count)) for count in tried]
    outside = np.array(
        sorted({float(n) for n in options if n is not None and not first <= n <= last and n >= 1})
    )
    if not len(outside):
        return None
    spreads = phase.spreads(outside)
    apart = outside[spreads >= APART]
    if len(apart):
        above = apart[apart > last]
        return int(above[0] if len(above) else apart[-1])
    return int(outside[int(np.argmax(spreads))]) if spreads.max() >= ALIKE else None


def _superlinear(curve: ObservedCurve) -> list[Remark]:
    work = curve.nprocs * curve.runtime
    falling = np.flatnonzero(work[1:] < 0.95 * work[:-1])
    if not len(falling):
        return []
    pairs = ", ".join(f"{curve.nprocs[i]:g} to {curve.nprocs[i + 1]:g}" for i in falling)
    text = f"speedup is superlinear from {pairs}, which no Downey curve follows"
    return [Remark("note", "superlinear", text)]


def _end_remarks(curve: ObservedCurve, layout: Layout) -> list[Remark]:
    if not layout.rises:
        return []
    best = float(curve.nprocs[int(curve.runtime.argmin())])
    text = (
        f"the runtime on {curve.nprocs[-1]:g} is longer than on {best:g}, which may be scatter, "
        "an outlier or the start of a decline"
    )
    return [Remark("warning", "rising_end", text, round(2.0 * float(curve.nprocs[-1])))]
