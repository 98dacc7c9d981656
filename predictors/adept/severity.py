"""The worst grade of what `predictors.adept.reliability` would say, without saying it.

In a simulation thousands of grades are asked for and no remark is read. Grades
are numbers here: a place in `GRADES`, which are in order of severity.
"""

import numpy as np

from predictors.adept.layout import Layout
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
from predictors.measured import Evidence
from predictors.observations import ObservedCurve
from predictors.remarks import FAR_FACTOR

GRADES = ("", "note", "warning", "unusable")
NOTHING, NOTE, WARNING, UNUSABLE = range(4)
_FEWEST = 3


def curve_severity(curve: ObservedCurve, layout: Layout) -> int:
    """Grade what `reliability.curve_remarks` says."""
    if layout.rises:
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


def target_severities(phase: Phase, answers: Answers, targets: FloatArray) -> IntArray:
    """Grade what `reliability.phase_target_remarks` says of each target.

    Parameters
    ----------
    phase : Phase
    answers : Answers
        Those of `targets`.
    targets : numpy.ndarray of float, shape (t,)
    """
    if len(phase.curve.nprocs) == 1:
        severity = np.where(targets == phase.curve.nprocs[0], NOTHING, UNUSABLE)
    else:
        severity = _openness(phase, answers, targets)
    return np.asarray(severity, np.int64)


def point_severities(
    curve: ObservedCurve, layout: Layout, evidence: Evidence, targets: FloatArray
) -> IntArray:
    """Grade what `reliability.point_remarks` says of each target."""
    far = (targets > FAR_FACTOR * curve.nprocs[-1]) | (targets < curve.nprocs[0] / FAR_FACTOR)
    severity = np.where(far, WARNING, NOTHING)
    if layout.feasible.restricts:
        believed = evidence.measured(targets) & (layout.special is not None)
        outside = np.where(believed, WARNING, UNUSABLE)
        severity = np.where(layout.feasible.holds(targets), severity, outside)
    for point in layout.points:
        severity[targets == point.nprocs] = np.maximum(severity[targets == point.nprocs], WARNING)
    return np.asarray(severity, np.int64)


def decline_severities(evidence: Evidence, targets: FloatArray) -> IntArray:
    """Grade what `Evidence.remarks` says of each target."""
    return np.where(
        evidence.declining(targets),
        np.where(evidence.measured(targets), WARNING, UNUSABLE),
        NOTHING,
    )


def _openness(phase: Phase, answers: Answers, targets: FloatArray) -> IntArray:
    spread = answers.high / answers.low - 1.0
    open_from = 1.0 + DETERMINED if phase.floor == 0.0 else OPEN
    grade = np.where(1.0 + spread >= open_from, WARNING, NOTE)
    grade[1.0 + spread >= UNANSWERED] = UNUSABLE
    linear = answers.unbent & (targets > float(phase.curve.nprocs[-1]))
    apart = (answers.A_high > RUNNER_UP * answers.A_low) & (spread >= ALIKE)
    return np.where(linear | apart | (grade > NOTE), grade, NOTHING)
