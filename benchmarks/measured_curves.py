"""How predictors are compared on measured curves: one protocol for every method.

A case is a handful of consecutive processor counts of one curve (medians of
repeats), a target count outside or between them, and the measured runtime there.
Cases are weighted so that every source file counts the same, however many
curves it holds.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from predictors.base import FloatArray
from predictors.errors import PredictorError

Distance = Literal["inside", "near", "far"]
DISTANCES: dict[Distance, tuple[float, float]] = {"near": (1.5, 2.1), "far": (3.0, 4.2)}
"""Target over the last input count, both ends included; "inside" lies between inputs."""


@dataclass(frozen=True)
class MeasuredCurve:
    """One strong-scaling curve, a median a processor count.

    Attributes
    ----------
    source : str
        Name of the file it came from.
    problem : str
    nprocs : numpy.ndarray of float, shape (m,)
        Ascending.
    runtime : numpy.ndarray of float, shape (m,), seconds
    """

    source: str
    problem: str
    nprocs: FloatArray
    runtime: FloatArray


@dataclass(frozen=True)
class Case:
    """One question to a predictor, with its answer.

    Attributes
    ----------
    source, problem : str
    nprocs, runtime : numpy.ndarray of float, shape (k,)
        What the predictor sees; seconds.
    target : float
        Processor count asked for.
    actual : float
        Seconds measured there.
    distance : {"inside", "near", "far"}
    """

    source: str
    problem: str
    nprocs: FloatArray
    runtime: FloatArray
    target: float
    actual: float
    distance: Distance


def read_curves(folder: Path) -> list[MeasuredCurve]:
    """Read every CSV with columns ``problem``, ``nprocs`` and ``runtime_s`` in a folder.

    Raises
    ------
    PredictorError
        If there is none.
    """
    curves = []
    for path in sorted(folder.glob("*.csv")):
        rows = pd.read_csv(path, usecols=["problem", "nprocs", "runtime_s"])
        medians = rows.groupby(["problem", "nprocs"])["runtime_s"].median()
        for problem, times in medians.groupby(level="problem"):
            counts = times.index.get_level_values("nprocs").to_numpy(float)
            curves.append(MeasuredCurve(path.stem, str(problem), counts, times.to_numpy(float)))
    if not curves:
        raise PredictorError(f"no measured curves (*.csv) in {folder}")
    return curves


def cases(curves: Iterable[MeasuredCurve], inputs: int) -> list[Case]:
    """Return the cases of all windows of `inputs` consecutive counts.

    Beyond the window, every count 1.5 to 2.1 or 3 to 4.2 times its last is a
    target. For targets inside, each inner count of `inputs` + 1 consecutive
    ones is left out in turn.
    """
    found = []
    for curve in curves:
        places = np.arange(len(curve.nprocs))
        for first in range(len(places) - inputs + 1):
            window = places[first : first + inputs]
            for distance, (least, most) in DISTANCES.items():
                ratio = curve.nprocs / curve.nprocs[window[-1]]
                for target in places[(ratio >= least - 1e-9) & (ratio <= most + 1e-9)]:
                    found.append(_case(curve, window, int(target), distance))
        for first in range(len(places) - inputs):
            window = places[first : first + inputs + 1]
            for target in window[1:-1]:
                found.append(_case(curve, window[window != target], int(target), "inside"))
    return found


def _case(curve: MeasuredCurve, window: np.ndarray, target: int, distance: Distance) -> Case:
    return Case(
        curve.source,
        curve.problem,
        curve.nprocs[window],
        curve.runtime[window],
        float(curve.nprocs[target]),
        float(curve.runtime[target]),
        distance,
    )


def relative_errors(
    questions: Sequence[Case], predict: Callable[[FloatArray, FloatArray, float], float]
) -> FloatArray:
    """Return |predicted - actual| / actual of each case.

    Parameters
    ----------
    questions : sequence of Case
    predict : callable
        From the inputs' processor counts, their runtimes and the target count to seconds.
    """
    predicted = [predict(case.nprocs, case.runtime, case.target) for case in questions]
    actual = np.array([case.actual for case in questions])
    errors = np.abs(np.asarray(predicted, float) - actual) / actual
    return np.asarray(errors, float)


def source_weights(sources: Sequence[str]) -> FloatArray:
    """Return a weight a case, the same total for every source, summing to 1."""
    _, place, count = np.unique(np.asarray(sources), return_inverse=True, return_counts=True)
    return np.asarray(1.0 / (count[place] * len(count)), float)


def weighted_quantile(values: ArrayLike, weights: ArrayLike, level: float) -> float:
    """Return the quantile of a weighted sample, linear between the cases' midpoints.

    Examples
    --------
    >>> weighted_quantile([3.0, 1.0, 2.0], [1, 1, 1], 0.5)
    2.0
    """
    values, weights = np.asarray(values, float), np.asarray(weights, float)
    order = np.argsort(values, kind="stable")
    middle = np.cumsum(weights[order]) - 0.5 * weights[order]
    return float(np.interp(level * weights.sum(), middle, values[order]))


def source_halves(sources: Iterable[str], seed: int = 0) -> tuple[frozenset[str], frozenset[str]]:
    """Split source files into two halves at random."""
    names = sorted(set(sources))
    shuffled = np.random.default_rng(seed).permutation(names)
    half = len(names) // 2
    return frozenset(map(str, shuffled[:half])), frozenset(map(str, shuffled[half:]))


def bootstrap_interval(
    statistic: Callable[[np.ndarray], float],
    groups: Sequence[object],
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[float, float]:
    """Return the percentile interval of a statistic under resampling of whole groups.

    Parameters
    ----------
    statistic : callable
        From indices of cases (repeated where drawn repeatedly) to a number.
    groups : sequence
        What each case belongs to and is drawn with: a curve, or the case itself.
    """
    labels = np.unique([str(group) for group in groups], return_inverse=True)[1]
    members = [np.flatnonzero(labels == label) for label in range(labels.max() + 1)]
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(resamples):
        chosen = rng.integers(len(members), size=len(members))
        drawn.append(statistic(np.concatenate([members[place] for place in chosen])))
    low, high = np.quantile(drawn, [0.5 - 0.5 * level, 0.5 + 0.5 * level])
    return float(low), float(high)
