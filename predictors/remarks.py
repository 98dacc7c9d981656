"""Findings that every model of one curve shares, and refusals built on them."""

from collections.abc import Iterable, Sequence

import numpy as np

from predictors.base import FloatArray, IntArray, Remark
from predictors.errors import UndeterminedError
from predictors.observations import ObservedCurve

FAR_FACTOR = 4.0
"""A target this many times beyond the observations is far."""
FAR_APART = 1.5
"""So many times as long as another run on the same count is one that is not like it."""
HIGH_ERROR = 0.10
"""A relative fitting error that is high (ADEPT paper, section IX)."""
UNUSABLE = "unusable"
"""The worst grade."""
CONTRADICTED = "contradicted"
"""Code of the remark on the last measured count where the curve does without it."""
DECLINING = "declining"
"""Code of the remarks on counts beyond the fastest of a declining end."""
INFEASIBLE = "infeasible"
"""Code of the remarks on counts that an application is not made for."""
UNLIKE = "unlike"
"""Code of beliefs about a job that asks for far longer than the runs took."""
ELSEWHERE = (DECLINING, INFEASIBLE)
"""Codes that speak against a count and for others, not against the curve."""
GRADES = ("", "note", "warning", "unusable")
"""From no remark at all to the worst; the place of a grade is its severity."""
SEVERITY = {grade: place for place, grade in enumerate(GRADES)}


def worse(one: str, other: str) -> str:
    """Return the worse of two grades, of which an empty one is none."""
    return one if SEVERITY[one] >= SEVERITY[other] else other


def graded(names: Sequence[str], severities: IntArray, codes: IntArray) -> list[tuple[str, str]]:
    """Return the grade of each severity, and the code's name where it is unusable."""
    told = zip((GRADES[one] for one in severities.tolist()), codes.tolist(), strict=True)
    return [(grade, names[code] if grade == UNUSABLE else "") for grade, code in told]


def gravest(remarks: Iterable[Remark]) -> tuple[str, str]:
    """Return grade and code of the worst remark; both empty without any.

    Of equally bad ones those of `ELSEWHERE` come last: rules may make light of them, of others not.
    """
    ranked = ((SEVERITY[r.grade], r.code not in ELSEWHERE, r) for r in remarks)
    worst = max(ranked, key=lambda one: one[:2], default=None)
    return ("", "") if worst is None else (worst[2].grade, worst[2].code)


def refuse_unusable(remarks: Iterable[Remark]) -> None:
    """Refuse to predict where a finding says that it is no use.

    Raises
    ------
    UndeterminedError
        With the texts of the findings graded ``unusable``.
    """
    reasons = list(dict.fromkeys(item.text for item in remarks if item.grade == "unusable"))
    if reasons:
        raise UndeterminedError("; ".join(reasons))


def data_remarks(curve: ObservedCurve) -> list[Remark]:
    """Say what was left out of the observations."""
    return outlier_remarks(curve.dropped) + ignored_remarks(curve.ignored)


def outlier_remarks(dropped: Sequence[tuple[float, float]]) -> list[Remark]:
    """Say which runs were left out, counts and seconds of which are given."""
    listed = ", ".join(f"{time:.4g} s on {count:g}" for count, time in dropped)
    return [Remark("note", "outlier_runs", f"left out among repeats: {listed}")] if dropped else []


def ignored_remarks(ignored: Sequence[str], done: str = "used") -> list[Remark]:
    """Say which columns were there to no purpose."""
    text = f"columns not {done}: {', '.join(ignored)}"
    return [Remark("note", "ignored_columns", text)] if ignored else []


def far_remarks(curve: ObservedCurve, targets: FloatArray) -> list[Remark]:
    """Warn of targets more than four times outside the observed counts."""
    low, high = curve.nprocs[0], curve.nprocs[-1]
    far, found = (targets > FAR_FACTOR * high) | (targets < low / FAR_FACTOR), []
    for target in np.unique(targets[far]):
        end, at = (high, "end") if target > high else (low, "begin")
        factor = max(target / end, end / target)
        text = f"{target:g} is {factor:.3g} times outside the observations, which {at} at {end:g}"
        found.append(Remark("warning", "far", text, measure_between(end, target), float(target)))
    return found


SINGLE = "one processor count shows no scaling: how it goes on is assumed"


def single_remarks(counts: FloatArray, targets: FloatArray) -> list[Remark]:
    """Refuse to trust any count but the one measured, where it is the only one."""
    if len(counts) > 1:
        return []
    only = float(counts[0])
    return [
        Remark("unusable", "single_observation", SINGLE, round(2.0 * only), target)
        for target in np.unique(targets[targets != only]).tolist()
    ]


def measure_between(end: float, target: float) -> int:
    """Return the count to measure on the way to a far target: the geometric middle."""
    return int(max(round(float(np.sqrt(end * target))), 1))


def misfit_remark(curve: ObservedCurve, residuals: FloatArray, keeps: bool) -> list[Remark]:
    """Warn of the worst fitted point if its relative error is above 10 %.

    Unless answers keep to what was measured, a point `FAR_APART` from it makes them unusable.
    """
    worst = int(np.argmax(np.abs(residuals)))
    error = abs(float(residuals[worst]))
    if error <= HIGH_ERROR:
        return []
    count = round(float(curve.nprocs[worst]))
    text = f"the curve misses the runtime at {count} by {error:.0%}"
    is_far = not keeps and np.abs(np.log1p(residuals)).max() > np.log(FAR_APART)
    return [Remark("unusable" if is_far else "warning", "high_fitting_error", text, count)]


def few_remark(
    curve: ObservedCurve, least: int, model: str, end: float | None = None
) -> list[Remark]:
    """Warn if there are fewer distinct counts than the model's parameters.

    The next to measure is twice the last, or half of the first where counts beyond
    `end` decline.
    """
    seen = len(curve.nprocs)
    if seen >= least:
        return []
    first, last = curve.nprocs[0], curve.nprocs[-1]
    next_count: int | None = int(np.ceil(2.0 * last))
    before = ""
    if end is not None:
        next_count = int(np.ceil(0.5 * first)) if first > 1.0 else None
        before = " before the decline" if last <= end else ""
    text = (
        f"{seen} distinct processor count{'s' if seen > 1 else ''}{before}; {model} needs {least}"
    )
    return [Remark("warning", "few_points", text, next_count)]
