"""Runs merged, read, fitted, answered for and graded in one compiled call.

It is for what a simulation asks again and again: a fitted scale, equal weights, and an
application that runs on any count; `predictors.adept.model` has the other options.
"""

from math import sqrt

import numpy as np

from predictors.adept.anomalies import Metric
from predictors.adept.curve_kernels import Fits, Reading, answer, fit_phases, read_curve
from predictors.adept.layout import reading_of
from predictors.adept.patterns import may_be_special, special_family
from predictors.adept.reliability import (
    NOTE,
    NOTHING,
    OPEN_CODES,
    UNUSABLE,
    WARNING,
    severities,
    severity_of_curve,
)
from predictors.adept.selection import LEAST
from predictors.base import FloatArray, IntArray
from predictors.compiling import Direct, njit
from predictors.curves.measured import LEAST_SCATTER, SAME, UNKNOWN_SCATTER
from predictors.observations import ObservedCurve, merge_all
from predictors.remarks import DECLINING, GRADES

SEVERITY, CODE = 10, 11
"""Rows that `graded_answer` has beside those of `answer`."""
CODES = (*OPEN_CODES, DECLINING)
Made = tuple[FloatArray, FloatArray, Reading, Fits]
"""Counts and runtimes, how they are read, and what was fitted to them."""
NOBODY, UNSAID = np.empty(0), np.empty((12, 0))


@njit(cache=True)
def is_measured(nprocs: FloatArray, target: float) -> bool:
    """Say whether a count was measured."""
    return bool(np.any(np.abs(nprocs - target) <= SAME * target))


@njit(cache=True)
def graded_answer(
    nprocs: FloatArray,
    runtime: FloatArray,
    reading: Reading,
    fits: Fits,
    targets: FloatArray,
    least: int,
) -> FloatArray:
    """Return `answer` with two rows more: the worst severity of a remark, and its code's place.

    `least` is how severe what is said of the data is, apart from the curve.
    """
    said = np.empty((12, targets.size))
    said[:SEVERITY] = answer(nprocs, runtime, reading, fits, targets)
    found, codes = severities(nprocs, reading, fits, targets, said)
    general = max(least, severity_of_curve(nprocs, runtime, reading))
    end = np.inf if reading.start < 0 else nprocs[reading.start] * (1.0 + SAME)
    for i in range(targets.size):
        if targets[i] > end:
            found[i] = WARNING if is_measured(nprocs, targets[i]) else UNUSABLE
            codes[i] = len(OPEN_CODES)
        said[SEVERITY, i], said[CODE, i] = max(found[i], general), codes[i]
    return said


@njit(cache=True)
def fit_kept(
    counts: IntArray,
    runs: FloatArray,
    numbers: FloatArray,
    is_paper: bool,
    floor: float,
    targets: IntArray,
) -> tuple[bool, FloatArray, FloatArray, Reading, Fits, FloatArray]:
    """Fit to the runs kept at some counts, and answer for targets.

    Parameters
    ----------
    counts, runs, numbers
        As `predictors.observations.merged_curve` takes them.
    is_paper : bool
        Whether anomalies are found by the paper's statistic.
    floor : float
        Relative noise; NaN where it is to be estimated.
    targets : numpy.ndarray of int, shape (t,)

    Returns
    -------
    is_fitted : bool
        False where too few counts are left, or the application may be made for certain ones.
    nprocs : numpy.ndarray of float, shape (m,)
    merged : numpy.ndarray of float, shape (6, m)
        As `predictors.observations.merge_all` returns it.
    reading : Reading
    fits : Fits
    said : numpy.ndarray of float, shape (12, t)
        What `graded_answer` says of the targets.
    """
    nprocs, merged = counts.astype(np.float64), merge_all(runs, numbers)
    runtime, repeats = merged[0], merged[1].astype(np.int64)
    kept = repeats.sum()
    degrees, squares, log_squares = kept - counts.size, 0.0, 0.0
    for k in range(counts.size):
        squares += merged[2, k]
        log_squares += merged[5, k]
    scatter = sqrt(squares / degrees) if degrees > 0 else 0.0
    log_scatter = sqrt(log_squares / degrees) if degrees > 0 else 0.0
    reach = 2.0 * (max(log_scatter, LEAST_SCATTER) if degrees > 0 else UNKNOWN_SCATTER)
    reading = read_curve(nprocs, runtime, reach, is_paper)
    if may_be_special(nprocs, runtime) or np.sum(reading.used) < LEAST:
        nobody = np.zeros((0, 0), np.bool_)
        none = Fits(np.zeros((0, 4, 0)), nobody, np.zeros((0, 0, 2), np.int64), np.zeros((0, 8)))
        return False, nprocs, merged, reading, none, np.zeros((12, 0))
    fits = fit_phases(nprocs, runtime, reading, (repeats, scatter, degrees, floor))
    least = NOTE if kept < numbers.sum() else NOTHING
    said = graded_answer(nprocs, runtime, reading, fits, targets.astype(np.float64), least)
    return True, nprocs, merged, reading, fits, said


_graded_answer, _fit_kept = Direct(graded_answer), Direct(fit_kept)


class FitAtOnce:
    """A curve's fits, and what they say of the targets asked last.

    Parameters
    ----------
    made : Made
    least : int
        Severity of what is said of the data, apart from the curve.
    asked : numpy.ndarray of float, shape (t,), optional
    said : numpy.ndarray of float, shape (12, t), optional
        What `graded_answer` says of these.
    """

    def __init__(
        self, made: Made, least: int, asked: FloatArray = NOBODY, said: FloatArray = UNSAID
    ) -> None:
        self.made, self._least = made, least
        self._asked, self._said = asked, said

    def answer(self, targets: FloatArray) -> FloatArray:
        """Return what `graded_answer` says of targets; of those asked last what it said then."""
        if np.array_equal(self._asked, targets):
            return self._said
        known = dict(zip(self._asked.tolist(), range(self._asked.size), strict=True))
        if all(target in known for target in targets.tolist()):
            return self._said[:, [known[target] for target in targets.tolist()]]
        targets = np.ascontiguousarray(targets)
        self._asked, self._said = targets, _graded_answer(*self.made, targets, self._least)
        return self._said

    def judgements(self, targets: FloatArray) -> list[tuple[str, str]]:
        """Return the worst grade of the remarks about each count, and why it is unusable."""
        severities, codes = self.answer(targets)[SEVERITY:].astype(int).tolist()
        return [
            (GRADES[severity], CODES[code] if severity == UNUSABLE else "")
            for severity, code in zip(severities, codes, strict=True)
        ]


def fit_at_once(
    curve: ObservedCurve, metric: Metric, floor: float
) -> tuple[Reading | None, FitAtOnce | None]:
    """Return how a curve is read and what was fitted to it; `floor` is NaN for auto.

    None where the application is optimised for certain counts; nothing is fitted where too
    few counts are left.
    """
    if special_family(curve.nprocs, curve.runtime) is not None:
        return None, None
    reading = reading_of(curve, metric)
    if np.count_nonzero(reading.used) < LEAST:
        return reading, None
    scatter = curve.repeats, curve.scatter, curve.scatter_degrees_of_freedom, floor
    fits = fit_phases(curve.nprocs, curve.runtime, reading, scatter)
    least = NOTE if curve.dropped or curve.ignored else NOTHING
    return reading, FitAtOnce((curve.nprocs, curve.runtime, reading, fits), least)


def fit_runs_at_once(
    counts: IntArray,
    runs: FloatArray,
    numbers: FloatArray,
    options: tuple[Metric, float],
    targets: IntArray,
) -> tuple[Reading, FitAtOnce] | None:
    """Return the same for runs by count, with answers for targets; None where there is no such.

    The first three are as `fit_kept` takes them; `options` are metric and floor.
    """
    metric, floor = options
    is_fitted, nprocs, merged, reading, fits, said = _fit_kept(
        counts, runs, numbers, metric == "paper", floor, targets
    )
    if not is_fitted:
        return None
    least = NOTE if merged[1].sum() < numbers.sum() else NOTHING
    return reading, FitAtOnce(
        (nprocs, merged[0], reading, fits), least, targets.astype(float), said
    )
