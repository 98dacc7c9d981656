"""One curve read, fitted and answered for in compiled calls, with one search for all counts.

They do what `predictors.adept.phase` does for a fitted scale, equal weights and applications
that run on any count; it has the other options.
"""

from math import frexp, ldexp
from typing import NamedTuple

import numpy as np

from predictors.adept.anomalies import anomalies_of
from predictors.adept.kernels import choose, search_free
from predictors.adept.search import LARGEST_SIGMA, REACH, candidates
from predictors.adept.selection import (
    EXACT,
    LARGEST,
    LAST_RESORT,
    LEAST,
    PARAMETERS,
    RUNNER_UP,
    UNCHECKED,
    WELL_MET,
    anomaly_factor,
    noise_of,
    total,
)
from predictors.base import BoolArray, FloatArray, IntArray
from predictors.compiling import compiled
from predictors.observations import decline_place

AHEAD = 2.0
"""The curve as a whole is settled for this many times the last count."""
UNIT, FLOOR, BALANCED, FIRST, LAST, COUNTS, WORST, SCALE = range(8)
"""Columns of `Fits.figures`."""


class Reading(NamedTuple):
    """How observations are read; see `predictors.adept.layout.Layout`.

    Attributes
    ----------
    used : numpy.ndarray of bool, shape (m,)
    kept_weight : numpy.ndarray of float, shape (m,)
    starts, points : numpy.ndarray of int
        Where phases start, and which observations are anomalous.
    deviations : numpy.ndarray of float
        Of these.
    start : int
        Place of the fastest count if those beyond it decline, else -1.
    """

    used: BoolArray
    kept_weight: FloatArray
    starts: IntArray
    points: IntArray
    deviations: FloatArray
    start: int


class Fits(NamedTuple):
    """The instances of the curve as a whole, and then of each phase if there are several.

    Attributes
    ----------
    values : numpy.ndarray of float, shape (p, 4, k)
        As `predictors.adept.search.Instances` has them.
    high : numpy.ndarray of bool, shape (p, k)
    neighbours : numpy.ndarray of int, shape (p, k, 2)
    figures : numpy.ndarray of float, shape (p, 8)
        Seconds taken as 1, relative noise, 1 where the families weigh the same, first and
        last count, how many counts, the largest relative residual, and the factor that
        brings the whole to a phase that borrows it (0 where it does not).
    """

    values: FloatArray
    high: BoolArray
    neighbours: IntArray
    figures: FloatArray


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
    return Reading(used, weight, starts, points, deviations, start)


@compiled
def search_evenly(
    nprocs: FloatArray, runtime: FloatArray, kept_weight: FloatArray, farthest: float
) -> tuple[FloatArray, BoolArray, IntArray]:
    """Search with equal weights; return values, shape (1, 4, k), families and neighbours."""
    scaled = np.empty(runtime.size)
    for i in range(runtime.size):
        mantissa, exponent = frexp(runtime[i] / runtime[0])
        scaled[i] = ldexp(np.rint(mantissa * 2.0**40) * 2.0**-40, exponent)
    weights = (kept_weight / total(kept_weight)).reshape(1, -1)
    top = REACH * max(farthest, nprocs[-1])
    table, edges, neighbours = candidates(nprocs, top)
    reach = np.array([[top], [REACH * top]])
    values = search_free(nprocs, scaled, weights, table, edges, reach, LARGEST_SIGMA)
    return values, table[1] > 0.0, neighbours


@compiled
def residual_of(value: FloatArray, high: bool, count: float, seconds: float) -> float:
    """Return what an instance predicts at a count over what was measured there, minus 1."""
    B, c, r = value[0], value[1], value[2]
    x, half = B / count, 0.5 / count
    G = max(min(x - half - 0.5, 0.5 - half), 1.0 if high else 0.0)
    return float(c * (max(x, 1.0) + r * G) / seconds - 1.0)


@compiled(inline="always")
def fit_part(
    nprocs: FloatArray,
    runtime: FloatArray,
    kept_weight: FloatArray,
    scatter: tuple[IntArray, float, int, float],
    figures: FloatArray,
) -> tuple[FloatArray, BoolArray, IntArray]:
    """Fit one phase; return its instances, and write its figures.

    `scatter` holds repeats, their scatter and its degrees of freedom, and the noise that is
    given, NaN where it is to be estimated.
    """
    values, high, neighbours = search_evenly(nprocs, runtime, kept_weight, AHEAD * nprocs[-1])
    repeats, spread, degrees, floor = scatter
    residual, used = np.sqrt(values[0, 3].min()), int(np.sum(kept_weight > 0.0))
    if np.isnan(floor):
        floor = noise_of(repeats, spread, degrees, residual, used)
    balanced = floor > 0.0 and used > PARAMETERS and residual < WELL_MET
    figures[UNIT], figures[FLOOR], figures[BALANCED] = runtime[0], floor, 1.0 if balanced else 0.0
    figures[FIRST], figures[LAST], figures[COUNTS] = nprocs[0], nprocs[-1], nprocs.size
    return values, high, neighbours


@compiled
def whole_of(instances: tuple[FloatArray, BoolArray, IntArray], figures: FloatArray) -> FloatArray:
    """Return B, c in seconds and r of the instance that stands for a phase, and its family."""
    values, high, neighbours = instances
    ahead = np.array([AHEAD * figures[LAST]])
    bounds = RUNNER_UP, max(figures[FLOOR], EXACT) ** 2
    balanced = figures[BALANCED] > 0.0
    chosen = choose(values, high, neighbours, ahead, bounds, balanced, False)[0][0]
    found = values[0, :, chosen].copy()
    found[1] *= figures[UNIT]
    found[3] = 1.0 if high[chosen] else 0.0
    return found


@compiled
def put_instances(
    row: tuple[FloatArray, BoolArray, IntArray], found: tuple[FloatArray, BoolArray, IntArray]
) -> None:
    """Write instances into a row that has room for them."""
    for k in range(found[1].size):  # assigning slices takes far longer to compile
        for i in range(4):
            row[0][i, k] = found[0][i, k]
        row[1][k] = found[1][k]
        row[2][k, 0], row[2][k, 1] = found[2][k, 0], found[2][k, 1]


@compiled
def fit_phases(
    nprocs: FloatArray,
    runtime: FloatArray,
    reading: Reading,
    scatter: tuple[IntArray, float, int, float],
) -> Fits:
    """Fit the curve as a whole, and each phase where there are several."""
    repeats, starts = scatter[0], reading.starts
    parts = 1 if starts.size == 1 else 1 + starts.size
    values, room = np.ones((parts, 4, 1)), 0
    high, neighbours = np.zeros((parts, 1), np.bool_), np.zeros((parts, 1, 2), np.int64)
    figures, whole = np.zeros((parts, 8)), np.zeros(4)
    some_borrow = np.any(counts_of_parts(reading)[1:] < LEAST)
    for p in range(parts):
        n, t, weight = observations_of(nprocs, runtime, reading, p)
        if p == 0 and parts > 1 and not some_borrow:
            continue  # nobody asks the curve as a whole
        value, scale = whole, 1.0
        if p > 0 and n.size < LEAST:
            scale = scale_of(whole, n, t)
            figures[p, FIRST], figures[p, LAST], figures[p, COUNTS] = n[0], n[-1], n.size
            figures[p, SCALE] = scale  # so few counts never are without noise, but if that is said
            figures[p, FLOOR] = LARGEST if np.isnan(scatter[3]) else scatter[3]
        else:
            own = repeats[np.searchsorted(nprocs, n)], scatter[1], scatter[2], scatter[3]
            its_values, its_high, its_neighbours = fit_part(n, t, weight, own, figures[p])
            if its_high.size > room:  # the whole is not always the widest
                room = its_high.size
                values, high, neighbours = widened(values, high, neighbours, room)
            own_row = values[p], high[p], neighbours[p]
            put_instances(own_row, (its_values[0], its_high, its_neighbours))
            value = whole_of((its_values, its_high, its_neighbours), figures[p])
            if p == 0:
                whole = value
        for i in range(n.size):
            met = residual_of(value, value[3] > 0.0, n[i], t[i] / scale)
            if weight[i] > 0.0 and abs(met) > figures[p, WORST]:
                figures[p, WORST] = abs(met)
    return Fits(values, high, neighbours, figures)


@compiled
def counts_of_parts(reading: Reading) -> IntArray:
    """Return how many observations take part in the whole, and in each phase of several."""
    starts = reading.starts
    found = np.zeros(1 if starts.size == 1 else 1 + starts.size, np.int64)
    for k in range(reading.used.size):
        if reading.used[k]:
            found[0] += 1
            if starts.size > 1:
                found[int(np.sum(starts <= k))] += 1
    return found


@compiled
def widened(
    values: FloatArray, high: BoolArray, neighbours: IntArray, room: int
) -> tuple[FloatArray, BoolArray, IntArray]:
    """Return instances with room for more of them, which are never chosen."""
    parts, before = high.shape[0], high.shape[1]
    wider = np.ones((parts, 4, room))
    wider[:, 3] = np.inf
    its_high, beside = np.zeros((parts, room), np.bool_), np.empty((parts, room, 2), np.int64)
    for k in range(room):
        beside[:, k] = k
    for p in range(parts if before > 1 else 0):
        put_instances((wider[p], its_high[p], beside[p]), (values[p], high[p], neighbours[p]))
    return wider, its_high, beside


@compiled
def scale_of(whole: FloatArray, nprocs: FloatArray, runtime: FloatArray) -> float:
    """Return the factor that brings the whole curve to a phase's observations."""
    total = squares = 0.0
    for i in range(nprocs.size):
        ratio = residual_of(whole, whole[3] > 0.0, nprocs[i], runtime[i]) + 1.0
        total += ratio
        squares += ratio * ratio
    return float(total / squares)


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


@compiled(inline="always")
def answer(
    nprocs: FloatArray, runtime: FloatArray, reading: Reading, fits: Fits, targets: FloatArray
) -> FloatArray:
    """Return what the instances say of each target, a row a figure.

    Runtime, its low and high ends, runtime on one processor, A, sigma, least and largest
    A, and 1 where no indistinguishable instance bends among the observations; then the
    phase that the target belongs to. Two rows more are left for grades.
    """
    found = np.empty((12, targets.size))
    belongs = phases_of(nprocs, reading, targets)
    several = reading.starts.size > 1
    for phase in range(reading.starts.size):
        places = np.flatnonzero(belongs == phase)
        if places.size == 0:
            continue
        own = phase + 1 if several else 0
        scale = fits.figures[own, SCALE]
        p = 0 if scale > 0.0 else own
        figures, asked = fits.figures[p], targets[places]
        values, high, neighbours = fits.values[p : p + 1], fits.high[p], fits.neighbours[p]
        if asked.max() > AHEAD * figures[LAST]:
            n, t, weight = observations_of(nprocs, runtime, reading, p)
            values, high, neighbours = search_evenly(n, t, weight, asked.max())
        bounds = RUNNER_UP, max(figures[FLOOR], EXACT) ** 2
        balanced = figures[BALANCED] > 0.0
        _, _, own_answers = choose(values, high, neighbours, asked, bounds, balanced, False)
        unit = figures[UNIT] * (scale if scale > 0.0 else 1.0)
        for i in range(places.size):
            at, row = places[i], own_answers[i]
            found[0, at], found[1, at], found[2, at] = row[0] * unit, row[1] * unit, row[2] * unit
            found[3, at], found[4, at], found[5, at] = row[6] * unit, row[7], row[8]
            found[6, at], found[7, at] = row[3], row[4]
            found[8, at] = 1.0 if row[5] >= figures[LAST] * (1.0 - 1e-9) else 0.0
            found[9, at] = own
    return found


@compiled
def observations_of(
    nprocs: FloatArray, runtime: FloatArray, reading: Reading, part: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return counts, runtimes and weights of a row of `Fits`."""
    inside, starts = reading.used.copy(), reading.starts
    if part > 0:
        inside[: starts[part - 1]] = False
        if part < starts.size:
            inside[starts[part] :] = False
    return nprocs[inside], runtime[inside], reading.kept_weight[inside]
