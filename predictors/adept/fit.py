"""One curve read, and its phases fitted, answered for and graded in compiled calls."""

from math import frexp, ldexp
from typing import NamedTuple

import numpy as np

from predictors.adept.anomalies import anomalies_of
from predictors.adept.search import REACH, Instances, Problem, search, terms
from predictors.base import BoolArray, FloatArray, IntArray
from predictors.compiling import compiled
from predictors.observations import RISE, decline_place, is_measured
from predictors.remarks import DECLINING, FAR_FACTOR, GRADES, HIGH_ERROR

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
            is_same = runtime[place] == runtime[pivot]
            if runtime[place] < runtime[pivot] or (is_same and place < pivot):
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


AHEAD = 2.0
"""The curve as a whole is settled for this many times the last count."""
DIFFERENT = 1.5
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
CODES = ("single_observation", "linear_section", "runner_up", DECLINING)
"""What remarks on what instances leave open, and on declining ends, are called."""
SINGLE, LINEAR, OTHERS, ENDED = range(len(CODES))
SEVERITY, CODE = 9, 10
"""Rows that `graded` has beside those of `answered`."""


class Reading(NamedTuple):
    """How observations are read.

    Attributes
    ----------
    used : numpy.ndarray of bool, shape (m,)
        Observations that take part in a fit.
    kept_weight : numpy.ndarray of float, shape (m,)
        Share of its weight that each keeps.
    starts, points : numpy.ndarray of int
        Where phases start, and which observations are anomalous.
    deviations : numpy.ndarray of float
        Of these.
    start : int
        Place of the fastest count if those beyond it decline, else -1.
    severity : int
        How severe what `predictors.adept.reliability.curve_remarks` says of it is, apart from
        what was left out.
    """

    used: BoolArray
    kept_weight: FloatArray
    starts: IntArray
    points: IntArray
    deviations: FloatArray
    start: int
    severity: int


class PhaseFit(NamedTuple):
    """What was fitted to a phase with equal weights.

    Attributes
    ----------
    instances : Instances
        A single row.
    unit : float
        Seconds that are taken as 1, so that units do not matter.
    floor : float
        Relative noise below which instances are not told apart.
    balanced : bool
        Whether the families weigh the same; see `predictors.adept.fit.select`.
    worst : float
        The largest relative residual of an observation that weighs anything, either way.
    """

    instances: Instances
    unit: float
    floor: float
    balanced: bool
    worst: float


@compiled
def read_curve(nprocs: FloatArray, runtime: FloatArray, reach: float, is_paper: bool) -> Reading:
    """Look for a declining end, anomalous points and steps, in this order."""
    used, weight = np.ones(nprocs.size, np.bool_), np.ones(nprocs.size)
    start = decline_place(runtime, reach)
    end = start + 1 if start >= 0 else nprocs.size
    used[end:] = False
    starts, points, deviations = anomalies_of(nprocs[:end], runtime[:end], is_paper)
    for i in range(points.size):
        weight[points[i]] = anomaly_factor(deviations[i])
    if points.size and end == LEAST + 1:
        weight = np.maximum(weight, UNCHECKED)
    if points.size and np.sum(weight[:end] > 0.0) < LEAST:
        weight = np.maximum(weight, LAST_RESORT)
    work = nprocs * runtime
    noted = points.size > 0 or starts.size > 1 or np.any(work[1:] < 0.95 * work[:-1])
    severity = NOTE if noted else NOTHING
    if start < 0 and runtime[-1] > (1.0 + RISE) * runtime.min():
        severity = WARNING
    return Reading(used, weight, starts, points, deviations, start, severity)


@compiled
def phases_of(nprocs: FloatArray, reading: Reading, targets: FloatArray) -> IntArray:
    """Return the phase of the observation nearest to each target, ties to the larger count."""
    found = np.zeros(targets.size, np.int64)
    for i in range(targets.size):
        nearest, least = 0, np.inf
        for k in range(nprocs.size):
            if reading.used[k] and abs(targets[i] - nprocs[k]) <= least:
                nearest, least = k, abs(targets[i] - nprocs[k])
        for start in reading.starts[1:]:
            found[i] += start <= nearest
    return found


@compiled
def unit_of(runtime: FloatArray, serial: float | None) -> float:
    """Return the seconds that are taken as 1 in the search."""
    return 1.0 if serial is not None and serial == 0.0 else float(runtime[0])


@compiled
def problem_of(
    nprocs: FloatArray,
    runtime: FloatArray,
    weights: FloatArray,
    targets: FloatArray,
    serial: float | None,
) -> Problem:
    """Return what is searched for targets, whose weights are rows that sum to 1.

    Runtimes are rounded to 40 binary digits, so that a change of the unit of time changes no
    digit: ties are common among instances, and the last digit would decide them.
    """
    unit, scaled = unit_of(runtime, serial), np.empty(runtime.size)
    for i in range(runtime.size):
        mantissa, exponent = frexp(runtime[i] / unit)
        scaled[i] = ldexp(np.rint(mantissa * 2.0**40) * 2.0**-40, exponent)
    reach = REACH * np.maximum(targets, nprocs[-1])
    if serial is not None and serial == 0.0:  # A/n and N/n are bounds of t(n), however far off
        reach = np.maximum(reach, (nprocs * scaled).max())
    return Problem(nprocs, scaled, weights, reach, serial)


@compiled
def search_evenly(
    nprocs: FloatArray,
    runtime: FloatArray,
    kept_weight: FloatArray,
    farthest: float,
    serial: float | None,
) -> Instances:
    """Search with equal weights, for targets up to a count."""
    weights, targets = kept_weight / total(kept_weight), np.array([farthest])
    return search(problem_of(nprocs, runtime, weights.reshape(1, -1), targets, serial))


@compiled
def residuals_of(
    instances: Instances, chosen: int, unit: float, nprocs: FloatArray, runtime: FloatArray
) -> FloatArray:
    """Return what an instance predicts at counts over what was measured there, minus 1."""
    found, one = np.empty(nprocs.size), instances.values[0]
    high = 1.0 if instances.high[chosen] else 0.0
    for i in range(nprocs.size):
        F, G = terms(one[0, chosen], high, nprocs[i])
        found[i] = one[1, chosen] * unit * (F + one[2, chosen] * G) / runtime[i] - 1.0
    return found


@compiled
def settled(fit: PhaseFit, plain: bool, last: float) -> Selection:
    """Choose the instance that stands for the curve as a whole, whose last count is given."""
    ahead = np.array([AHEAD * last])
    return select(fit.instances, ahead, fit.floor, fit.balanced, plain, fit.unit, last)


@compiled
def settle(
    observed: tuple[FloatArray, FloatArray, FloatArray],
    instances: Instances,
    scatter: tuple[IntArray, float, int, float],
    serial: float | None,
    plain: bool,
) -> PhaseFit:
    """Estimate the noise, and see how well the instance that stands for a phase meets it.

    Parameters
    ----------
    observed : tuple of numpy.ndarray
        Counts, runtimes and the share of its weight that each keeps.
    instances : Instances
    scatter : tuple
        Repeats of each count, their scatter and its degrees of freedom, and the relative
        noise that is given, NaN without one.
    serial : float or None
        As `predictors.adept.search.Problem` has it.
    plain : bool
        As `predictors.adept.fit.select` has it.
    """
    nprocs, runtime, kept_weight = observed
    repeats, spread, degrees, floor = scatter
    residual, used = np.sqrt(instances.values[0, 3].min()), int(np.sum(kept_weight > 0.0))
    if np.isnan(floor):
        floor = noise_of(repeats, spread, degrees, residual, used)
    balanced = floor > 0.0 and used > PARAMETERS and residual < WELL_MET
    fit = PhaseFit(instances, unit_of(runtime, serial), floor, balanced, 0.0)
    chosen = settled(fit, plain, nprocs[-1]).chosen[0]
    residuals = residuals_of(instances, chosen, fit.unit, nprocs, runtime)
    worst = np.max(np.where(kept_weight > 0.0, np.abs(residuals), 0.0))
    return PhaseFit(instances, fit.unit, floor, balanced, worst)


@compiled
def fit_phase(
    observed: tuple[FloatArray, FloatArray, FloatArray],
    scatter: tuple[IntArray, float, int, float],
    serial: float | None,
) -> PhaseFit:
    """Fit one curve with equal weights; see `settle`."""
    nprocs, runtime, kept_weight = observed
    instances = search_evenly(nprocs, runtime, kept_weight, AHEAD * nprocs[-1], serial)
    return settle(observed, instances, scatter, serial, False)


@compiled
def answered(
    observed: tuple[FloatArray, FloatArray, FloatArray],
    serial: float | None,
    fit: PhaseFit,
    factor: float,
    targets: FloatArray,
) -> FloatArray:
    """Return what a fit says of targets, its times multiplied by a factor, shape (9, t).

    Rows are those of `predictors.adept.phase.Answers`. Targets far out get a search that
    reaches farther.
    """
    instances, last = fit.instances, observed[0][-1]
    if targets.size > 0 and targets.max() > AHEAD * last:
        instances = search_evenly(*observed, targets.max(), serial)
    unit = fit.unit * factor
    return select(instances, targets, fit.floor, fit.balanced, False, unit, last).answers


@compiled
def spreads_of(instances: Instances, members: IntArray, counts: FloatArray) -> FloatArray:
    """Return largest over smallest prediction minus 1 of some instances, at counts."""
    found, family = np.empty(counts.size), instances.high.astype(np.float64)
    runtime = np.empty(family.size)
    for i in range(counts.size):
        low, high = evaluate(instances.values[0], family, members, counts[i], runtime)
        found[i] = high / low - 1.0
    return found


@compiled
def open_severities(
    answers: FloatArray, nprocs: FloatArray, floor: float, targets: FloatArray
) -> IntArray:
    """Return how severe what instances leave open at targets is, and its code's place, (2, t).

    Without noise any difference between instances that fit equally well says that the
    curve is not determined. With noise a moderate one goes with no larger errors
    (measured curves), so it takes a large one for a warning.
    """
    found = np.zeros((2, targets.size), np.int64)
    for i in range(targets.size):
        if nprocs.size == 1:
            found[0, i] = NOTHING if targets[i] == nprocs[0] else UNUSABLE
            continue
        ratio = answers[2, i] / answers[1, i]
        linear = answers[8, i] > 0.0 and targets[i] > nprocs[-1]
        apart = answers[7, i] > DIFFERENT * answers[6, i] and ratio - 1.0 >= ALIKE
        grade = WARNING if ratio >= (1.0 + DETERMINED if floor == 0.0 else OPEN) else NOTE
        grade = UNUSABLE if ratio >= UNANSWERED else grade
        found[0, i] = grade if linear or apart or grade > NOTE else NOTHING
        found[1, i] = LINEAR if linear else OTHERS
    return found


@compiled
def graded(
    observed: tuple[FloatArray, FloatArray, FloatArray],
    fit: PhaseFit,
    factor: float,
    phase: tuple[FloatArray, float, float],
    curve: tuple[FloatArray, IntArray, float, int],
    targets: FloatArray,
) -> FloatArray:
    """Return `answered` with two rows more: the worst severity of a remark, and its code's place.

    Parameters
    ----------
    observed : tuple of numpy.ndarray
    fit : PhaseFit
    factor : float
        As `answered` takes them; the scale is fitted.
    phase : tuple
        The phase's counts, its relative noise, and its largest relative residual.
    curve : tuple
        All counts, the places of anomalous ones, the count beyond which runtimes decline,
        and how severe what is said of the whole curve is.
    targets : numpy.ndarray of float, shape (t,)
    """
    nprocs, floor, worst = phase
    counts, points, end, least = curve
    found = np.empty((11, targets.size))
    answers = answered(observed, None, fit, factor, targets)
    said = open_severities(answers, nprocs, floor, targets)
    if nprocs.size < LEAST or worst > VERY_HIGH_ERROR:
        of_fit = WARNING
    else:
        of_fit = NOTE if worst > HIGH_ERROR else NOTHING
    for i in range(targets.size):
        target, severity, code = targets[i], max(said[0, i], of_fit), said[1, i]
        if target > FAR_FACTOR * counts[-1] or target < counts[0] / FAR_FACTOR:
            severity = max(severity, WARNING)
        if np.any(counts[points] == target):
            severity = max(severity, WARNING)
        if target > end:
            severity, code = WARNING if is_measured(counts, target) else UNUSABLE, ENDED
        found[:9, i] = answers[:, i]
        found[SEVERITY, i], found[CODE, i] = max(severity, least), code
    return found
