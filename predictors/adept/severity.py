"""The worst grade of what `predictors.adept.reliability` would say, without saying it.

In a simulation thousands of grades are asked for and no remark is read. Grades
are numbers here: a place in `GRADES`, which are in order of severity.
"""

import numpy as np

from predictors.adept.layout import Layout
from predictors.adept.patterns import Feasible
from predictors.adept.phase import Answers, Phase
from predictors.adept.reliability import (
    ALIKE,
    DETERMINED,
    HIGH_ERROR,
    OPEN,
    RUNNER_UP,
    UNANSWERED,
    VERY_HIGH_ERROR,
)
from predictors.base import FloatArray, IntArray
from predictors.observations import ObservedCurve
from predictors.remarks import FAR_FACTOR

GRADES = ("", "note", "warning", "unusable")
NOTHING, NOTE, WARNING, UNUSABLE = range(4)
_FEWEST = 3


def curve_severity(curve: ObservedCurve, layout: Layout) -> int:
    """Grade what `reliability.curve_remarks` says."""
    if layout.rising:
        return WARNING
    work = curve.nprocs * curve.runtime
    noted = (
        curve.dropped
        or curve.ignored
        or layout.points
        or len(layout.starts) > 1
        or layout.special is not None
        or (work[1:] < 0.95 * work[:-1]).any()
    )
    return NOTE if noted else NOTHING


def phase_severity(phase: Phase) -> int:
    """Grade what `reliability.phase_remarks` says."""
    if len(phase.curve.nprocs) < _FEWEST:
        return WARNING
    worst = float(np.abs(phase.residuals * (phase.kept_weight > 0.0)).max())
    if worst > VERY_HIGH_ERROR:
        return WARNING
    return NOTE if worst > HIGH_ERROR else NOTHING


def target_severities(
    phase: Phase, answers: Answers, targets: FloatArray, feasible: Feasible
) -> IntArray:
    """Grade what `reliability.target_remarks` says of each target.

    Parameters
    ----------
    phase : Phase
    answers : Answers
        Those of `targets`.
    targets : numpy.ndarray of float, shape (t,)
    feasible : Feasible
    """
    first, last = float(phase.curve.nprocs[0]), float(phase.curve.nprocs[-1])
    far = (targets > FAR_FACTOR * last) | (targets < first / FAR_FACTOR)
    severity = np.where(far, WARNING, NOTHING)
    if len(phase.curve.nprocs) == 1:
        severity = np.where(targets == first, severity, UNUSABLE)
    else:
        severity = np.maximum(severity, _openness(phase, answers, targets))
    if feasible.restricts:
        severity = np.where(feasible.holds(targets), severity, UNUSABLE)
    return np.asarray(severity, np.int64)


def _openness(phase: Phase, answers: Answers, targets: FloatArray) -> IntArray:
    spread = answers.high / answers.low - 1.0
    open_from = 1.0 + DETERMINED if phase.floor == 0.0 else OPEN
    grade = np.where(1.0 + spread >= open_from, WARNING, NOTE)
    grade[1.0 + spread >= UNANSWERED] = UNUSABLE
    linear = answers.unbent & (targets > float(phase.curve.nprocs[-1]))
    apart = (answers.A_high > RUNNER_UP * answers.A_low) & (spread >= ALIKE)
    return np.where(linear | apart | (grade > NOTE), grade, NOTHING)
