"""What a user with a few runs wants to know, computed from any fitted predictor."""

from dataclasses import asdict, dataclass
from math import isclose
from typing import Any

import numpy as np

from predictors.base import FloatArray, Grade, Predictor, Remark

EFFICIENCIES = (0.8, 0.5)
_PARAMETERS = (
    *("A", "sigma", "serial_time", "floor", "serial", "parallel", "scale"),
    *("contention", "coherency"),
)
"""Fitted attributes, without the closing underscore, that are reported where there."""
_ORDER: tuple[Grade, ...] = ("note", "warning", "unusable")


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
    """

    nprocs: float
    runtime: float
    low: float
    high: float
    speedup: float
    efficiency: float
    grade: str


@dataclass(frozen=True)
class Report:
    """The answer to a file of measurements.

    Attributes
    ----------
    method : str
    observations : int
    rows : tuple of Row
    serial_measured : bool
        Whether speedups refer to a measured runtime on one processor.
    parameters : dict
        What the method fitted, by name.
    knee : float or None
        Count with the best balance of speedup and efficiency, S(n)^2/n.
    at_efficiency : dict
        Largest count for each efficiency in `EFFICIENCIES`.
    declines_after : float or None
        The fastest measured count, where those beyond it decline: knee and counts for
        an efficiency end there.
    remarks : tuple of Remark
    measure_next : int or None
    """

    method: str
    observations: int
    rows: tuple[Row, ...]
    serial_measured: bool
    parameters: dict[str, float]
    knee: float | None
    at_efficiency: dict[str, float | None]
    declines_after: float | None
    remarks: tuple[Remark, ...]
    measure_next: int | None

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        plain = asdict(self)
        plain["remarks"] = [remark._asdict() for remark in self.remarks]
        return plain


def default_targets(observed: FloatArray) -> FloatArray:
    """Return powers of two from 1 to four times the last count, and the observed counts."""
    last = float(observed.max())
    powers = 2.0 ** np.arange(int(np.ceil(np.log2(4.0 * last))) + 1)
    return np.unique(np.concatenate([powers[powers <= 4.0 * last], observed]))


def build_report(
    method: str,
    model: Predictor,
    observed: FloatArray,
    runtime: FloatArray,
    targets: FloatArray,
    level: float,
    serial_known: bool = True,
) -> Report:
    """Ask a fitted model for everything that is reported.

    Parameters
    ----------
    method : str
    model : Predictor
    observed, runtime : numpy.ndarray of float
        Measured counts and seconds.
    targets : numpy.ndarray of float, shape (t,)
    level : float
        Of the ranges.
    serial_known : bool
        Whether a run on one processor is one of the problem asked about.
    """
    remarks = tuple(dict.fromkeys(model.reliability(targets)))
    measured = serial_known and bool((observed == 1.0).any())
    one = runtime[observed == 1.0].mean() if measured else model.predict([1.0])[0]
    predicted = model.predict(targets)
    low, high = model.predict_range(targets, level)
    rows = tuple(
        Row(float(n), float(t), float(a), float(b), float(one / t), float(one / t / n), grade)
        for n, t, a, b, grade in zip(
            targets, predicted, low, high, _grades(remarks, targets), strict=True
        )
    )
    end = getattr(model, "declines_after_", None)
    counts = _fine(end or max(4.0 * float(observed.max()), float(targets.max())))
    speedup = float(one) / model.predict(counts)
    return Report(
        method,
        len(observed),
        rows,
        measured,
        _parameters(model),
        _knee(model, counts, speedup, end),
        {f"{e:g}": _at_efficiency(model, counts, speedup, e, end) for e in EFFICIENCIES},
        end,
        remarks,
        _next(remarks, float(observed.max()), end),
    )


def _grades(remarks: tuple[Remark, ...], targets: FloatArray) -> list[str]:
    """Return the worst grade that concerns each target."""
    grades: list[str] = []
    for target in targets:
        worst = [
            _ORDER.index(remark.grade)
            for remark in remarks
            if remark.target is None or isclose(remark.target, target)
        ]
        grades.append(_ORDER[max(worst)] if worst and max(worst) > 0 else "good")
    return grades


def _parameters(model: Predictor) -> dict[str, float]:
    """Return the public fitted numbers of a model, without the closing underscore."""
    values = {name: getattr(model, f"{name}_", None) for name in _PARAMETERS}
    return {
        name: float(value)
        for name, value in values.items()
        if isinstance(value, float) and np.isfinite(value)
    }


def _fine(top: float) -> FloatArray:
    """Return integer counts from 1 to `top`, thinned to a few hundred where there are more."""
    spaced = np.geomspace(1.0, max(top, 2.0), 400)
    return np.unique(np.rint(spaced))


def _knee(
    model: Predictor, counts: FloatArray, speedup: FloatArray, end: float | None
) -> float | None:
    curve = getattr(model, "curve", None)
    if curve is not None:
        return float(curve().knee)
    best = int(np.argmax(speedup**2 / counts))
    return end if best == len(counts) - 1 else float(counts[best])


def _at_efficiency(
    model: Predictor, counts: FloatArray, speedup: FloatArray, least: float, end: float | None
) -> float | None:
    """Return the largest count with an efficiency, None if it is beyond all counts tried."""
    curve = getattr(model, "curve", None)
    if curve is not None:
        most = float(curve().largest_at_efficiency(least))
        return most if np.isfinite(most) else None
    enough = np.flatnonzero(speedup / counts >= least)
    if not len(enough):
        return None
    if enough[-1] == len(counts) - 1:
        return end
    return float(counts[enough[-1]])


def _next(remarks: tuple[Remark, ...], last: float, end: float | None) -> int | None:
    """Return the count that the gravest remark asks to measure; nearest beyond on a tie.

    Counts beyond the fastest of a declining end are not worth it.
    """
    asked = [
        (-_ORDER.index(remark.grade), abs(remark.measure_at - last), remark.measure_at)
        for remark in remarks
        if remark.measure_at is not None and (end is None or remark.measure_at <= end)
    ]
    return min(asked)[2] if asked else None
