"""A curve read and fitted, answered for and graded in compiled calls.

It is for what a simulation asks again and again: a fitted scale, equal weights, and an
application that runs on any count; `predictors.adept.model` has the other options.
"""

import numpy as np

from predictors.adept.anomalies import Metric
from predictors.adept.curve_kernels import (
    COUNTS,
    FIRST,
    FLOOR,
    LAST,
    WORST,
    Fits,
    Reading,
    answer,
    fit_phases,
)
from predictors.adept.layout import reading_of
from predictors.adept.patterns import special_family
from predictors.adept.selection import LEAST
from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled, direct
from predictors.observations import RISE, SAME, ObservedCurve, is_measured
from predictors.remarks import DECLINING, FAR_FACTOR, GRADES

HIGH_ERROR = 0.10
"""Relative fitting error that is high, as printed in section IX."""
RUNNER_UP = 1.5
"""Two instances as good as each other differ if one A is this many times the other."""
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
SEVERITY, CODE = 10, 11
"""Rows that `graded_answer` has beside those of `answer`."""
CODES = (*OPEN_CODES, DECLINING)
Made = tuple[FloatArray, FloatArray, Reading, Fits]
"""Counts and runtimes, how they are read, and what was fitted to them."""


@compiled(inline="always")
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


@compiled(inline="always")
def severity_of_curve(nprocs: FloatArray, runtime: FloatArray, reading: Reading) -> int:
    """Return how severe what `curve_remarks` says is, but of what was left out."""
    if reading.start < 0 and runtime[-1] > (1.0 + RISE) * runtime.min():
        return WARNING
    work = nprocs * runtime
    noted = reading.points.size > 0 or reading.starts.size > 1
    return NOTE if noted or np.any(work[1:] < 0.95 * work[:-1]) else NOTHING


@compiled
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
    said = answer(nprocs, runtime, reading, fits, targets)
    found, codes = severities(nprocs, reading, fits, targets, said)
    general = max(least, severity_of_curve(nprocs, runtime, reading))
    end = np.inf if reading.start < 0 else nprocs[reading.start] * (1.0 + SAME)
    for i in range(targets.size):
        if targets[i] > end:
            found[i] = WARNING if is_measured(nprocs, targets[i]) else UNUSABLE
            codes[i] = len(OPEN_CODES)
        said[SEVERITY, i], said[CODE, i] = max(found[i], general), codes[i]
    return said


_graded_answer = direct(graded_answer)


class FitAtOnce:
    """A curve's fits, and what they say of the targets asked last.

    Parameters
    ----------
    made : Made
    least : int
        Severity of what is said of the data, apart from the curve.
    """

    def __init__(self, made: Made, least: int) -> None:
        self.made, self._least = made, least
        self._asked, self._said = np.empty(0), np.empty((12, 0))

    def answer(self, targets: FloatArray | IntArray) -> FloatArray:
        """Return what `graded_answer` says of targets; of those asked last what it said then."""
        if np.array_equal(self._asked, targets):
            return self._said
        known = dict(zip(self._asked.tolist(), range(self._asked.size), strict=True))
        if all(target in known for target in targets.tolist()):
            return self._said[:, [known[target] for target in targets.tolist()]]
        self._asked = targets.astype(float)
        self._said = _graded_answer(*self.made, self._asked, self._least)
        return self._said

    def judgements(self, targets: FloatArray | IntArray) -> list[tuple[str, str]]:
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
