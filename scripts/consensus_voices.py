"""What every method says on every case of the protocol, as arrays (for the two studies)."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from predictors import Adept, Amdahl, LogLogRegression, UniversalScalability
from predictors.consensus import BETWEEN
from predictors.consensus_members import LINE, fit_members
from predictors.consensus_rule import ConsensusRule, RangeModel, damped_growth, weighted_median
from predictors.evaluation import Case, MeasuredCurve, cases, read_curves
from scripts.gaussian_process import gaussian_process

METHODS = ("adept", "linear", "quadratic", "amdahl", "usl")
ALONE: dict[str, Callable[[], Any]] = {
    "adept": Adept,
    "linear": partial(LogLogRegression, (), "linear", "total"),
    "quadratic": partial(LogLogRegression, (), "quadratic", "total"),
    "amdahl": Amdahl,
    "usl": UniversalScalability,
}


@dataclass(frozen=True)
class Voices:
    """Cases of one number of inputs, each method's ln seconds at the target and at the end.

    Attributes
    ----------
    source, problem, distance : numpy.ndarray of str, shape (c,)
    counts : numpy.ndarray of int, shape (c,)
        Inputs of the case.
    actual : numpy.ndarray, shape (c,)
        ln seconds measured at the target.
    target, at_end : numpy.ndarray, shape (k, c)
        ln seconds of each of `METHODS`; NaN where a method cannot be fitted.
    between : numpy.ndarray, shape (c,)
        ln seconds on the straight line between inputs, at the end or inside.
    reach : numpy.ndarray, shape (c,)
        ln(target / end), 0 inside.
    information : numpy.ndarray, shape (c,)
    grade : numpy.ndarray of str, shape (c,)
        ADEPT's own, at the target.
    declining : numpy.ndarray of bool, shape (c,)
        Whether the target lies in or beyond a declining end, where no method answers.
    """

    source: np.ndarray
    problem: np.ndarray
    distance: np.ndarray
    counts: np.ndarray
    actual: np.ndarray
    target: np.ndarray
    at_end: np.ndarray
    between: np.ndarray
    reach: np.ndarray
    information: np.ndarray
    grade: np.ndarray
    declining: np.ndarray

    def take(self, rows: np.ndarray) -> "Voices":
        """Return the cases at these rows."""
        return Voices(**{f.name: getattr(self, f.name)[..., rows] for f in fields(self)})


def _answers(case: Case) -> tuple[np.ndarray, np.ndarray, float, float, float, str, bool]:
    members = fit_members((), case.nprocs, case.runtime)
    log_q, known = np.log2([case.target]), members.curve.nprocs
    end = np.clip(log_q, np.log2(known[0]), np.log2(known[-1]))
    assert members.evidence is not None
    nothing = np.empty((1, 0))
    found = [np.full(len(METHODS), np.nan), np.full(len(METHODS), np.nan)]
    for name, method in members.methods.items():
        for values, where in zip(found, (log_q, end), strict=True):
            values[METHODS.index(name)] = method(where, nothing)[0]
    logs = np.log(known)
    return (
        found[0],
        found[1],
        float(members.between(end, nothing)[0]),
        float((log_q - end)[0] * np.log(2.0)),
        float(((logs - logs.mean()) ** 2).sum()),
        members.adept_grades(log_q)[0],
        bool(members.evidence.declining(np.array([case.target]))[0]),
    )


def voices(folder: Path, counts: tuple[int, ...]) -> Voices:
    """Fit every method to every case in the folder with these numbers of inputs."""
    curves: list[MeasuredCurve] = read_curves(folder)
    asked = [case for count in counts for case in cases(curves, count)]
    answers = [_answers(case) for case in asked]
    target, at_end, between, reach, information, grade, declining = map(
        np.array, zip(*answers, strict=True)
    )
    return Voices(
        source=np.array([case.source for case in asked]),
        problem=np.array([f"{case.source}: {case.problem}" for case in asked]),
        distance=np.array([case.distance for case in asked]),
        counts=np.array([len(case.nprocs) for case in asked]),
        actual=np.log([case.actual for case in asked]),
        target=target.T,
        at_end=at_end.T,
        between=between,
        reach=reach,
        information=information,
        grade=grade,
        declining=declining,
    )


def single_errors(folder: Path, counts: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Return relative errors of every single method, as it answers, and of a Gaussian process."""
    asked = [case for count in counts for case in cases(read_curves(folder), count)]
    answer: dict[str, Callable[[Case], float]] = {
        name: partial(_alone, model) for name, model in ALONE.items()
    }
    answer["gaussian process"] = lambda c: gaussian_process(c.nprocs, c.runtime, c.target)
    return {
        name: np.array([abs(seconds(case) / case.actual - 1.0) for case in asked])
        for name, seconds in answer.items()
    }


def _alone(model: Callable[[], Any], case: Case) -> float:
    fitted = model().fit_arrays(case.nprocs, case.runtime)
    return float(fitted.predict([case.target])[0])


def combine(rule: ConsensusRule, said: Voices) -> tuple[np.ndarray, np.ndarray]:
    """Return the consensus' ln seconds and the disagreement, as `Consensus` computes them.

    It is the plain consensus, before the layer that keeps answers to what was measured.
    """
    middle, apart = np.empty(said.actual.size), np.empty(said.actual.size)
    weights = np.repeat([[rule.weights[name]] for name in METHODS], said.actual.size, axis=1)
    weights[METHODS.index("adept")] *= [rule.grades.get(grade, 1.0) for grade in said.grade]
    silent = np.isnan(said.target)
    for pattern in np.unique(silent, axis=1).T:
        there, rows = ~pattern, np.flatnonzero((silent == pattern[:, None]).all(axis=0))
        part, chosen = said.take(rows), weights[there][:, rows]
        between = np.full((1, rows.size), rule.weights[BETWEEN])
        found = weighted_median(
            np.vstack([part.at_end[there], part.between]), np.vstack([chosen, between])
        )
        names = [name for name, speaks in zip(METHODS, there, strict=True) if speaks]
        out = part.reach != 0.0
        found[out] += damped_growth(
            rule,
            part.target[there][:, out] - found[out],
            part.reach[out],
            chosen[:, out],
            names.index(LINE) if LINE in names else None,
            part.information[out],
        )
        middle[rows] = found
        distance = np.abs(part.target[there] - found)
        apart[rows] = (chosen * distance).sum(axis=0) / chosen.sum(axis=0)
    return middle, apart


def scales(ranges: RangeModel, said: Voices, apart: np.ndarray) -> np.ndarray:
    """Return the scale of the range at each case, in ln T."""
    return np.array(
        [
            float(ranges.scale(int(m), np.array(abs(u)), np.array(a)))
            for m, u, a in zip(said.counts, said.reach, apart, strict=True)
        ]
    )
