"""What every method says on every case of the protocol, as arrays (for the two studies)."""

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from predictors.consensus import BETWEEN
from predictors.consensus_members import LINE, fit_members
from predictors.consensus_rule import ConsensusRule, RangeModel, damped_growth, weighted_median
from predictors.evaluation import Case, MeasuredCurve, cases, read_curves
from scripts.gaussian_process import gaussian_process

METHODS = ("adept", "linear", "quadratic", "amdahl", "usl")
ABSENT = -1


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
    held : numpy.ndarray, shape (c,)
        ln seconds that answer whatever the methods say: the last measured, beyond a
        declining end; NaN elsewhere.
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
    held: np.ndarray

    def take(self, rows: np.ndarray) -> "Voices":
        """Return the cases at these rows."""
        return Voices(**{f.name: getattr(self, f.name)[..., rows] for f in fields(self)})


def _answers(case: Case) -> tuple[np.ndarray, np.ndarray, float, float, float, str, float]:
    members = fit_members((), case.nprocs, case.runtime)
    log_q, known = np.log2([case.target]), members.curve.nprocs
    end = np.clip(log_q, np.log2(known[0]), np.log2(known[-1]))
    beyond = len(known) < len(case.nprocs) and case.target > case.nprocs[-1]
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
        float(np.log(case.runtime[-1])) if beyond else np.nan,
    )


def voices(folder: Path, counts: tuple[int, ...]) -> Voices:
    """Fit every method to every case in the folder with these numbers of inputs."""
    curves: list[MeasuredCurve] = read_curves(folder)
    asked = [case for count in counts for case in cases(curves, count)]
    answers = [_answers(case) for case in asked]
    target, at_end, between, reach, information, grade, held = map(
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
        held=held,
    )


def single_errors(folder: Path, said: Voices, counts: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Return relative errors of every single method, and of a Gaussian process.

    `said` holds the cases in the folder with these numbers of inputs.
    """
    errors = {
        name: np.abs(np.expm1(np.where(np.isnan(said.held), row, said.held) - said.actual))
        for name, row in zip(METHODS, said.target, strict=True)
    }
    asked = [case for count in counts for case in cases(read_curves(folder), count)]
    errors["gaussian process"] = np.array(
        [abs(gaussian_process(c.nprocs, c.runtime, c.target) / c.actual - 1.0) for c in asked]
    )
    return errors


def combine(rule: ConsensusRule, said: Voices) -> tuple[np.ndarray, np.ndarray]:
    """Return the consensus' ln seconds and the disagreement, as `Consensus` computes them."""
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
        middle[rows] = np.where(np.isnan(part.held), found, part.held)
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


def covered(
    ranges: RangeModel, said: Voices, middle: np.ndarray, apart: np.ndarray, level: float
) -> np.ndarray:
    """Return which cases lie within the range of that level."""
    low, high = ranges.ends(level)
    scale, error = scales(ranges, said, apart), said.actual - middle
    return (error >= low * scale) & (error <= high * scale)
