"""What observations weigh, and which of many instances that fit equally well predicts."""

from typing import NamedTuple

import numpy as np

from predictors.adept.search import Instances, terms
from predictors.base import BoolArray, FloatArray, IntArray
from predictors.compiling import compiled

RUNNER_UP = 1.1
"""WSSRE within this factor of the best is as good (ADEPT paper, Table 3)."""
EXPECTED_ERROR = 0.025
"""Relative error of a runtime about the best instance that is expected beforehand."""
EXPECTED_RUNS = 3.0
"""How many observations that expectation weighs."""
NOISELESS = 1e-5
"""Residuals below this relative size are no noise but rounding and an unfinished search."""
EXACT = 1e-6
"""What noiseless instances may differ from the best by."""
WELL_MET = 0.05
"""Root mean square residual within which the families weigh the same; see `select`."""
LARGEST = 1.0
"""Bound on the estimate; beyond it runtimes say nothing."""
PARAMETERS = 3
LEAST = 3
"""Observations that a fit must be left with."""
LAST_RESORT = 0.1
"""Weight that an anomalous point keeps where too few others are left."""
UNCHECKED = 0.5
"""The same where the three others fit some curve whatever they are, so that nothing checks
the verdict: on measured curves dropping the point then does more harm than good."""
LARGEST_DEVIATION = 10.0
"""phi of the paper: the deviation from which nothing more is lost."""
TOLERANCE = 5.0
"""theta of the paper: how much anomalous points can affect the fit."""


def distance_weights(nprocs: FloatArray, targets: FloatArray, q: float) -> FloatArray:
    """Return W_i = q max_j |target - n_j| - |target - n_i|, a row a target.

    Equal where every distance is zero (ADEPT paper, section V.B).

    Examples
    --------
    >>> distance_weights(np.array([4.0, 16.0, 64.0]), np.array([128.0]), q=2.0).tolist()
    [[124.0, 136.0, 184.0]]
    """
    distance = np.abs(targets[:, None] - nprocs)
    weights = q * distance.max(axis=1, keepdims=True) - distance
    weights[weights.max(axis=1) <= 0.0] = 1.0
    return np.asarray(weights, float)


@compiled
def anomaly_factor(deviation: float) -> float:
    """Return the share of its weight that an anomalous point keeps.

    It is max(0, (theta - min(phi, D)) / phi), as printed (section VIII.B): even
    D = 0 halves the weight, so it is for anomalous points alone.

    Examples
    --------
    >>> [anomaly_factor(deviation) for deviation in (0.0, 2.0, 5.0, 12.0)]
    [0.5, 0.3, 0.0, 0.0]
    """
    lost = TOLERANCE - min(LARGEST_DEVIATION, deviation)
    return max(0.0, lost / LARGEST_DEVIATION)


@compiled
def total(values: FloatArray) -> float:
    """Return a sum as NumPy makes it, eight at a time: where curves tie, the last digit decides."""
    eights, found = values.size // 8 * 8, 0.0
    if eights > 0:
        sums = values[:8].copy()
        for i in range(8, eights):
            sums[i % 8] += values[i]
        found = (sums[0] + sums[1]) + (sums[2] + sums[3])
        found += (sums[4] + sums[5]) + (sums[6] + sums[7])
    for i in range(eights, values.size):
        found += values[i]
    return found


@compiled
def noise_of(repeats: IntArray, scatter: float, degrees: int, residual: float, used: int) -> float:
    """Estimate the relative error below which instances cannot be told apart.

    Parameters
    ----------
    repeats : numpy.ndarray of int, shape (m,)
        Runs at each count.
    scatter : float
        Of these, with its degrees of freedom.
    residual : float
        Root mean square of the relative residuals of the best fit.
    used : int
        Distinct counts behind that fit.

    Returns
    -------
    float
        The pooled standard deviation of expectation, residuals and repeats; 0
        where more counts than parameters are met to rounding and repeats agree.
    """
    mean_runs = total(1.0 / repeats) / repeats.size
    own = max(used - PARAMETERS, 0)
    if own and residual < NOISELESS and scatter < NOISELESS:
        return 0.0
    squares = EXPECTED_RUNS * EXPECTED_ERROR**2 + used * residual**2
    squares += degrees * scatter**2 * mean_runs
    return float(min(np.sqrt(squares / (EXPECTED_RUNS + own + degrees)), LARGEST))


class Selection(NamedTuple):
    """The instances that predict, one a target.

    Attributes
    ----------
    chosen : numpy.ndarray of int, shape (t,)
        Place of the predicting candidate.
    members : numpy.ndarray of bool, shape (t or 1, k)
        The indistinguishable candidates; a single row where all targets share them.
    answers : numpy.ndarray of float, shape (9, t)
        What they say, as `predictors.adept.phase.Answers` has it.
    """

    chosen: IntArray
    members: BoolArray
    answers: FloatArray


@compiled
def _comes_first(runtime: FloatArray, i: int, j: int) -> bool:
    return runtime[i] < runtime[j] or (runtime[i] == runtime[j] and i < j)


@compiled
def _lower_median(runtime: FloatArray, weight: FloatArray, places: IntArray, half: float) -> int:
    """Return the first of `places`, by runtime, up to which the weights sum to `half`."""
    first, last, before = 0, places.size - 1, 0.0
    while first < last:
        middle = (first + last) // 2
        pivot = places[middle]
        places[middle] = places[last]
        split, sum_ = first, 0.0
        for i in range(first, last):
            place = places[i]
            if _comes_first(runtime, place, pivot):
                places[i] = places[split]
                places[split] = place
                sum_ += weight[place]
                split += 1
        places[last] = places[split]
        places[split] = pivot
        if split > first and before + sum_ >= half:
            last = split - 1
        elif before + sum_ + weight[pivot] >= half or split == last:
            return int(pivot)
        else:
            before += sum_ + weight[pivot]
            first = split + 1
    return int(places[first])


@compiled
def _family_weights(own: IntArray, high: BoolArray, balanced: bool, out: FloatArray) -> float:
    """Write the weight of each member, the families' sums the same if balanced; return half."""
    sums = np.zeros(2)
    for place in own:
        sums[int(high[place])] += 1.0
    for place in own:
        out[place] = 1.0 / sums[int(high[place])] if balanced else 1.0
    total = 0.0
    for family in range(2):
        if sums[family] > 0.0:
            total += 1.0 if balanced else sums[family]
    return 0.5 * total * (1.0 - 1e-9)


@compiled
def _beside(found: FloatArray, members: BoolArray, neighbours: IntArray) -> IntArray:
    """Return the places of the members and of those beside them that are within reach."""
    places = np.empty(members.size, np.int64)
    number = 0
    for k in range(members.size):
        near = members[k] or members[neighbours[k, 0]] or members[neighbours[k, 1]]
        if near and found[3, k] < np.inf:
            places[number] = k
            number += 1
    return places[:number]


@compiled
def evaluate(
    found: FloatArray, family: FloatArray, places: IntArray, count: float, runtime: FloatArray
) -> tuple[float, float]:
    """Write the runtime at a count of the candidates at `places`; return the extremes."""
    low, high = np.inf, 0.0
    for k in places:
        F, G = terms(found[0, k], family[k], count)
        runtime[k] = found[1, k] * (F + found[2, k] * G)
        low = min(low, runtime[k])
        high = max(high, runtime[k])
    return low, high


@compiled
def average_parallelism(breakpoint: float, ratio: float, high: bool) -> float:
    """Return A of an instance."""
    return (breakpoint + ratio) / (1.0 + ratio) if high else breakpoint


@compiled
def _extremes(found: FloatArray, high: BoolArray, own: IntArray) -> tuple[float, float, float]:
    """Return the least and the largest A and the least breakpoint of the members."""
    A_low, A_high, bend = np.inf, 0.0, np.inf
    for k in own:
        A = average_parallelism(found[0, k], found[2, k], high[k])
        A_low, A_high, bend = min(A_low, A), max(A_high, A), min(bend, found[0, k])
    return A_low, A_high, bend


@compiled
def select(
    instances: Instances,
    targets: FloatArray,
    floor: float,
    balanced: bool,
    plain: bool,
    unit: float,
    last: float,
) -> Selection:
    """Choose the candidate whose prediction is the lower median of the indistinguishable ones.

    Parameters
    ----------
    instances : Instances
        A row a target, or a single one that serves all.
    targets : numpy.ndarray of float, shape (t,)
    floor : float
        Relative noise; 0 still allows for rounding.
    balanced : bool
        Let the low-variance and the high-variance candidates together weigh the
        same. Where Downey's curve holds, this keeps the many high-variance
        candidates that have not bent yet from outvoting the others; where it
        does not, their slower predictions are the better ones.
    plain : bool
        Choose the best fit instead, as the paper does.
    unit : float
        Seconds that are 1 in the search.
    last : float
        The largest count observed.
    """
    values, high, neighbours = instances
    rows, number = targets.size, high.size
    family, answers = high.astype(np.float64), np.empty((9, rows))
    chosen = np.empty(rows, np.int64)
    members = np.empty((values.shape[0], number), np.bool_)
    runtime, weight = np.empty(number), np.empty(number)
    best, middle, A_low, A_high, bend = 0, 0.0, 0.0, 0.0, 0.0
    own = near = np.empty(0, np.int64)
    for row in range(rows):
        at = row if values.shape[0] > 1 else 0
        one = values[at]
        if row == 0 or at > 0:
            best = int(np.argmin(one[3]))
            bound = RUNNER_UP * one[3, best] + max(floor, EXACT) ** 2
            for k in range(number):
                members[at, k] = one[3, k] <= bound
            own = np.flatnonzero(members[at])
            near = _beside(one, members[at], neighbours)
            middle = _family_weights(own, high, balanced, weight)
            A_low, A_high, bend = _extremes(one, high, own)
        least, most = evaluate(one, family, near, targets[row], runtime)
        place = best if plain else _lower_median(runtime, weight, own.copy(), middle)
        B, c, r = one[0, place], one[1, place], one[2, place]
        chosen[row], answers[0, row] = place, runtime[place] * unit
        answers[1, row], answers[2, row] = least * unit, most * unit
        answers[3, row] = c * (B + r * family[place]) * unit
        answers[4, row], answers[5, row] = average_parallelism(B, r, high[place]), r
        answers[6, row], answers[7, row] = A_low, A_high
        answers[8, row] = 1.0 if bend >= last * (1.0 - 1e-9) else 0.0
    return Selection(chosen, members, answers)
