"""What a user with a few runs wants to know, computed from any fitted predictor."""

from dataclasses import asdict, dataclass
from math import isclose
from typing import Any

import numpy as np

from predictors.advice import Advice, measure_next
from predictors.base import FloatArray, Predictor, Remark
from predictors.observations import observed_curve
from predictors.remarks import GRADES, SEVERITY

EFFICIENCIES = (0.8, 0.5)
WIDE = ((2.0, "warning"), (1.5, "note"))
"""Half-widths of ranges, as factors either way, beyond which a prediction is trusted less.

A method that grades its ranges itself says so by `grades_ranges`.
"""
_PARAMETERS = ("A", "sigma", "floor", "serial", "parallel", "scale", "contention", "coherency")
"""Fitted attributes, without the closing underscore, that are reported where there."""


@dataclass(frozen=True)
class Question:
    """What is asked of a curve.

    Attributes
    ----------
    targets : numpy.ndarray of float or None
        Counts to predict; None for the measured ones and powers of two around them.
    most : float or None
        The largest count to be had.
    level : float
        Of the ranges.
    free : bool
        Whether runs to measure next cost nothing.
    serial_known : bool
        Whether a run on one processor is one of the problem asked about.
    """

    targets: FloatArray | None = None
    most: float | None = None
    level: float = 0.8
    free: bool = False
    serial_known: bool = True


@dataclass(frozen=True)
class Row:
    """A prediction.

    Attributes
    ----------
    nprocs : float
    runtime, low, high : float
        Seconds; the ends of the range.
    speedup, efficiency : float
    grade : str
        ``good``, ``note``, ``warning`` or ``unusable``.
    measured : bool
        Whether there are runs on this count.
    """

    nprocs: float
    runtime: float
    low: float
    high: float
    speedup: float
    efficiency: float
    grade: str
    measured: bool = False


@dataclass(frozen=True)
class Report:
    """The answer to the measurements of a curve.

    Attributes
    ----------
    answer : str
        In a sentence: what to expect at the targets, what to use, what to measure next.
    method : str
    observations : int
    rows : tuple of Row
    serial_time : float
        Seconds on one processor, to which all speedups refer.
    serial_measured : bool
        Whether it was measured.
    parameters : dict
        What the method fitted, by name.
    use : float or None
        Count to use: the knee, or the largest to be had if that is less.
    use_runtime : float or None
        Seconds there.
    knee : float or None
        Count with the best balance of speedup and efficiency, S(n)^2/n.
    fastest : float
        Count with the shortest runtime of those considered.
    at_efficiency : dict
        Largest count for each efficiency in `EFFICIENCIES`.
    declines_after : float or None
        The fastest measured count, where those beyond it decline: knee and counts for
        an efficiency end there.
    remarks : tuple of Remark
    measure_next : int or None
    advice : Advice or None
        What that is expected to gain.
    """

    answer: str
    method: str
    observations: int
    rows: tuple[Row, ...]
    serial_time: float
    serial_measured: bool
    parameters: dict[str, float]
    use: float | None
    use_runtime: float | None
    knee: float | None
    fastest: float
    at_efficiency: dict[str, float | None]
    declines_after: float | None
    remarks: tuple[Remark, ...]
    measure_next: int | None
    advice: Advice | None

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        plain = asdict(self)
        plain["remarks"] = [remark._asdict() for remark in self.remarks]
        plain["advice"] = None if self.advice is None else self.advice._asdict()
        return plain


def default_targets(observed: FloatArray, most: float | None = None) -> FloatArray:
    """Return the observed counts and powers of two up to four times the last, or to `most`."""
    top = 4.0 * float(observed.max()) if most is None else most
    powers = 2.0 ** np.arange(np.floor(np.log2(max(top, 1.0))) + 1)
    return np.unique(np.concatenate([powers, observed, [] if most is None else [np.floor(most)]]))


def build_report(
    method: str, model: Predictor, observed: FloatArray, runtime: FloatArray, question: Question
) -> Report:
    """Ask a fitted model for everything that is reported.

    Parameters
    ----------
    method : str
    model : Predictor
    observed, runtime : numpy.ndarray of float
        Measured counts and seconds.
    question : Question
    """
    asked = question.targets
    targets = default_targets(observed, question.most) if asked is None else asked
    remarks = tuple(dict.fromkeys(model.reliability(targets)))
    at_one = observed == 1.0
    measured = question.serial_known and bool(at_one.any())
    one = float(
        observed_curve(observed[at_one], runtime[at_one]).runtime[0]
        if measured
        else model.predict([1.0])[0]
    )
    end = getattr(model, "declines_after_", None)
    most = question.most or max(4.0 * float(observed.max()), float(targets.max()))
    counts = _considered(model, min(end, most) if end else most)
    speedup = one / model.predict(counts)
    knee = _knee(counts, speedup, bool(end or question.most))
    efficient = {e: _at_efficiency(counts, speedup, e, end) for e in EFFICIENCIES}
    fastest = float(counts[int(np.argmax(speedup >= speedup.max() * (1.0 - 1e-6)))])
    matters = [*efficient.values(), fastest] if asked is None else asked.tolist()
    advice = measure_next(
        model,
        observed,
        [count for count in matters if count is not None and (not end or count <= end)],
        end if question.most is None else min(question.most, end or question.most),
        question.free,
    )
    rows = _rows(model, targets, one, question.level, remarks, observed)
    use = knee if knee is not None else (fastest if end or question.most else None)
    seconds = None if use is None else float(model.predict([use])[0])
    told = rows if asked is not None else ()
    sentences = _answer(told, use, seconds, efficient[0.5], end, advice)
    return Report(
        sentences,
        method,
        len(observed),
        rows,
        one,
        measured,
        _parameters(model),
        use,
        seconds,
        knee,
        fastest,
        {f"{least:g}": count for least, count in efficient.items()},
        end,
        remarks,
        advice.nprocs if advice else None,
        advice,
    )


def _rows(
    model: Predictor,
    targets: FloatArray,
    one: float,
    level: float,
    remarks: tuple[Remark, ...],
    observed: FloatArray,
) -> tuple[Row, ...]:
    predicted = model.predict(targets)
    low, high = model.predict_range(targets, level)
    graded = getattr(model, "grades_ranges", False)
    grades = _grades(remarks, targets, np.sqrt(high / low) if not graded else np.ones(len(low)))
    return tuple(
        Row(
            float(n), float(t), float(a), float(b), one / t, one / t / n, grade, bool(n in observed)
        )
        for n, t, a, b, grade in zip(targets, predicted, low, high, grades, strict=True)
    )


def _grades(remarks: tuple[Remark, ...], targets: FloatArray, factors: FloatArray) -> list[str]:
    """Return the worst grade that concerns each target, by its remarks and its range.

    A note on the curve as a whole is none on a target.
    """
    grades: list[str] = []
    for target, factor in zip(targets.tolist(), factors.tolist(), strict=True):
        wide = next((grade for least, grade in WIDE if factor > least), "")
        worst = [SEVERITY[wide]]
        for remark in remarks:
            if remark.target is None or isclose(remark.target, target):
                severity = SEVERITY[remark.grade]
                worst.append(severity if severity > 1 or remark.target is not None else 0)
        grades.append(GRADES[max(worst)] or "good")
    return grades


def _parameters(model: Predictor) -> dict[str, float]:
    """Return the public fitted numbers of a model, without the closing underscore."""
    values = {name: getattr(model, f"{name}_", None) for name in _PARAMETERS}
    return {
        name: float(value)
        for name, value in values.items()
        if isinstance(value, float) and np.isfinite(value)
    }


def _considered(model: Predictor, top: float) -> FloatArray:
    """Return counts from 1 to `top` that the application runs on, a few hundred at most."""
    counts = np.unique(np.rint(np.append(np.geomspace(1.0, max(top, 1.0), 400), np.floor(top))))
    feasible = getattr(model, "feasible", None)
    held = counts[feasible(counts)] if feasible is not None else counts
    return held if held.size else counts


def _knee(counts: FloatArray, speedup: FloatArray, bounded: bool) -> float | None:
    """Return the count with the largest S²/n; None where it rises to an end that is no bound."""
    best = int(np.argmax(np.round(speedup**2 / counts, 9)))
    return None if best == len(counts) - 1 and not bounded else float(counts[best])


def _at_efficiency(
    counts: FloatArray, speedup: FloatArray, least: float, end: float | None
) -> float | None:
    """Return the largest count with an efficiency, None if it is beyond all counts tried."""
    enough = np.flatnonzero(speedup / counts >= least)
    if not len(enough):
        return None
    return end if enough[-1] == len(counts) - 1 else float(counts[enough[-1]])


def _answer(
    rows: tuple[Row, ...],
    use: float | None,
    seconds: float | None,
    half: float | None,
    end: float | None,
    advice: Advice | None,
) -> str:
    """Say in a sentence what to expect, to use and to measure."""
    parts = [
        f"{row.nprocs:g} processors take about {row.runtime:.3g} s "
        f"({row.low:.3g} to {row.high:.3g} s{', ' + row.grade if row.grade != 'good' else ''})"
        for row in rows[:3]
    ]
    if use is None:
        parts.append("the more processors the better, as far as these runs show")
    else:
        parts.append(f"use {use:g} (about {seconds:.3g} s)")
    if end is not None:
        parts.append(f"beyond {end:g} it gets slower")
    elif half is not None and half >= (use or 1.0):
        parts.append(f"beyond {half:g} you pay more than double for what you get")
    if advice is None:
        parts.append("no further count is needed")
    else:
        parts.append(
            f"measure {advice.nprocs} next: the range at {advice.target:g} should narrow from "
            f"a factor of {advice.now:.2f} either way to {advice.then:.2f}"
        )
    sentence = "; ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}."
