"""How far to trust a prediction (ADEPT paper, Table 3, completed), and where to measure next."""

from typing import cast

import numpy as np

from predictors.adept.fit import (
    ALIKE,
    CODES,
    LINEAR,
    NOTHING,
    OTHERS,
    UNUSABLE,
    VERY_HIGH_ERROR,
    WARNING,
    open_severities,
)
from predictors.adept.layout import Feasible, Layout
from predictors.adept.phase import Answers, Phase
from predictors.base import FloatArray, Grade, IntArray, Remark
from predictors.curves.estimator import Evidence
from predictors.observations import RISE, ObservedCurve
from predictors.remarks import (
    CONTRADICTED,
    GRADES,
    HIGH_ERROR,
    INFEASIBLE,
    SINGLE,
    data_remarks,
    far_remarks,
    few_remark,
)

APART = 0.20
"""Spread of indistinguishable instances at which a measurement tells them apart."""


def curve_remarks(layout: Layout) -> list[Remark]:
    """Say what was found in the observations and what was done about it."""
    curve, reading = layout.curve, layout.reading
    found = data_remarks(curve)
    for point in layout.points:
        weight, code = reading.kept_weight[point.place], "anomalous_point"
        text = (
            f"the runtime on {point.nprocs:g} is off the trend of the others "
            f"(deviation {point.deviation:.1f}); its weight is {weight:.2f} of what it would be"
        )
        if weight == 0.0 and point.place == len(curve.nprocs) - 1:
            text, code = f"{text}, which contradicts what is said of larger counts", CONTRADICTED
        found.append(Remark("note", code, text, round(point.nprocs)))
    if len(reading.starts) > 1:
        breaks = ", ".join(
            f"{curve.nprocs[start - 1]:g} and {curve.nprocs[start]:g}"
            for start in reading.starts[1:]
        )
        text = f"work falls in a step between {breaks}; each phase has its own curve"
        found.append(Remark("note", "stepwise", text))
    if layout.special is not None:
        text = f"the application is optimised for {layout.special}; other counts are left out"
        found.append(Remark("note", "special", text))
    return found + _superlinear(curve) + _end_remarks(layout)


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


def open_remarks(
    phase: Phase, answers: FloatArray, targets: FloatArray, layout: Layout
) -> list[Remark]:
    """Say what the instances leave open at each target; `answers` are those of `targets`.

    Where all observations are in the linear section a run on at least the predicting
    instance's A is asked for (the paper's Table 3): one on fewer may lie there as well.
    """
    severities, codes = open_severities(answers, phase.curve.nprocs, phase.fit.floor, targets)
    advice = measure_next(phase, layout.feasible, layout.declines)
    found = []
    for place in np.flatnonzero(severities > NOTHING).tolist():
        target, grade = targets.item(place), cast(Grade, GRADES[severities[place]])
        one = Answers(*answers[:, place])
        between = f"{one.low:.4g} to {one.high:.4g} s"
        measure, text = advice, SINGLE
        if codes[place] == LINEAR:
            A, sigma = float(one.A), float(one.sigma)
            bend = A + sigma * (A - 1.0) if sigma > 1.0 else A  # N = A + A sigma - sigma
            measure = layout.feasible.at_least(bend)
            text = (
                f"all observations lie before the curve bends, so any A from {one.A_low:.3g} on "
                f"fits; at {target:g} that means {between}"
            )
        elif codes[place] == OTHERS:
            text = (
                f"curves with A from {one.A_low:.3g} to {one.A_high:.3g} fit equally well; "
                f"at {target:g} they predict {between}"
            )
        found.append(Remark(grade, CODES[codes[place]], text, measure, target))
    return found


def _infeasible_grades(layout: Layout, evidence: Evidence, targets: FloatArray) -> IntArray:
    """Grade the targets that the application does not run on: less where a family was found."""
    if not layout.feasible.restricts:
        return np.zeros(len(targets), np.int64)
    believed = evidence.measured(targets) & (layout.special is not None)
    outside = np.where(believed, WARNING, UNUSABLE)
    return np.where(layout.feasible.holds(targets), NOTHING, outside)


def point_remarks(layout: Layout, evidence: Evidence, targets: FloatArray) -> list[Remark]:
    """Say which targets are far, infeasible or measured off the trend; not of declining ends."""
    found = far_remarks(layout.curve, targets)
    anomalous = {point.nprocs: point for point in layout.points}
    infeasible = _infeasible_grades(layout, evidence, targets).tolist()
    for target, severity in zip(targets.tolist(), infeasible, strict=True):
        if severity:
            count = layout.feasible.at_least(target)
            text = f"{target:g} is not among {layout.feasible.name}"
            grade = cast(Grade, GRADES[severity])
            found.append(Remark(grade, INFEASIBLE, text, count, target))
        if target in anomalous:
            text = (
                f"the runtime measured on {target:g} is off the trend of the others, so the trend "
                "is used there"
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


def _end_remarks(layout: Layout) -> list[Remark]:
    curve, fastest = layout.curve, int(layout.curve.runtime.argmin())
    if layout.declines or curve.runtime[-1] <= (1.0 + RISE) * curve.runtime[fastest]:
        return []
    best = float(curve.nprocs[fastest])
    text = (
        f"the runtime on {curve.nprocs[-1]:g} is longer than on {best:g}, which may be scatter, "
        "an outlier or the start of a decline"
    )
    return [Remark("warning", "rising_end", text, round(2.0 * float(curve.nprocs[-1])))]
