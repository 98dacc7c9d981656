"""Exact search for Downey instances, over candidates and targets at once, compiled.

For a fixed breakpoint the model is linear in two unknowns, so a search in one
dimension suffices. Both families are written t(n) = c (F + r G) with

- low variance, breakpoint B = A: F = max(A/n, 1), G = clip((A - 1/2)/n - 1/2, 0,
  1/2 - 1/(2n)), r = sigma in [0, 1];
- high variance, breakpoint B = N = A + A sigma - sigma: F = max(N/n, 1), G = 1,
  r = sigma in [1, 3000].

For given B, the best r and c follow from five weighted sums.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np

from predictors.base import BoolArray, FloatArray, IntArray
from predictors.compiling import compiled

Scale = Literal["free", "unit", "serial"]
SERIAL_TIMES: Mapping[Scale, float | None] = {"free": None, "unit": 0.0, "serial": 1.0}
"""`Problem.serial` where the first runtime is taken as 1."""

LARGEST_SIGMA = 3000.0
"""Bound on sigma (ADEPT paper, section V.C)."""
REACH = 4.0
"""Candidates for A go this far beyond the targets and the observations; those for N, twice."""
STEPS = 16
"""Candidates in a doubling."""
LATTICE = 2.0 ** (np.arange(64 * STEPS) / STEPS)
"""Candidates beside those that the observations give."""
MINIMA = 4
"""Local minima of each family that are refined."""
_ROUNDS = 4
_POINTS = 17
Sums = tuple[float, float, float, float, float]


class Problem(NamedTuple):
    """Observations with the weights of one or more targets.

    Attributes
    ----------
    nprocs, runtime : numpy.ndarray of float, shape (m,)
    weights : numpy.ndarray of float, shape (t, m)
        A row a target, summing to 1.
    reach : numpy.ndarray of float, shape (t,)
        Largest A considered for each target.
    serial : float or None
        T(1) where it is met exactly, 0 where the scale c is 1, None where c is fitted.
    """

    nprocs: FloatArray
    runtime: FloatArray
    weights: FloatArray
    reach: FloatArray
    serial: float | None = None

    def row(self, place: int) -> "Problem":
        """Return the problem of one target."""
        part = slice(place, place + 1)
        return self._replace(weights=self.weights[part], reach=self.reach[part])


class Instances(NamedTuple):
    """Candidate instances, a row a target.

    Attributes
    ----------
    values : numpy.ndarray of float, shape (t, 4, k)
        B, c, r, and the weighted sum of squared relative errors.
    high : numpy.ndarray of bool, shape (k,)
        Whether the candidate belongs to the high-variance family.
    neighbours : numpy.ndarray of int, shape (k, 2)
        Place of the candidate before and after in the same family; itself at an end.
    """

    values: FloatArray
    high: BoolArray
    neighbours: IntArray

    @property
    def wssre(self) -> FloatArray:
        """Weighted sum of squared relative errors of each candidate, shape (t, k)."""
        return self.values[:, 3]


@compiled
def merged_with(lattice: FloatArray, counts: FloatArray) -> FloatArray:
    """Return both, ascending, each value once."""
    found, number, i, j = np.empty(lattice.size + counts.size), 0, 0, 0
    while i < lattice.size or j < counts.size:
        if j == counts.size or (i < lattice.size and lattice[i] <= counts[j]):
            value, i = lattice[i], i + 1
        else:
            value, j = counts[j], j + 1
        if number == 0 or value > found[number - 1]:
            found[number] = value
            number += 1
    return found[:number]


@compiled
def candidates(nprocs: FloatArray, top: float) -> tuple[FloatArray, IntArray, IntArray]:
    """Return candidates, where families end, and the places beside each, shape (k, 2).

    Of each candidate its breakpoint, 1 for the high-variance family, least and largest ratio,
    shape (4, k): low variance comes first, then high, then those of flat curves, whose ratio is
    open, so that both its ends stand for it; the last columns are for refined minima. The ends
    are those of the low and of the high family, and of all but the refined.
    """
    lattice = LATTICE[: int(np.log2(REACH * top) * STEPS) + 1]
    within = merged_with(LATTICE[: int(np.log2(top) * STEPS) + 1], nprocs)
    low, high = merged_with(within, 0.5 * (nprocs + 1.0)), merged_with(lattice, nprocs)
    flat_low = np.sum(2.0 * low - 1.0 <= nprocs[0])
    flat_high = np.sum(high <= nprocs[0])
    ends = np.cumsum(np.array([0, low.size, high.size, flat_low, flat_high]))
    coarse, number = ends[4], ends[4] + 2 * MINIMA
    table, neighbours = np.ones((4, number)), np.repeat(np.arange(number), 2).reshape(-1, 2)
    table[1, coarse : coarse + MINIMA] = 0.0
    for family in range(4):
        is_high = family % 2 == 1
        kind = 1.0 if is_high else 0.0
        source = high if is_high else low
        for k in range(ends[family], ends[family + 1]):
            most = LARGEST_SIGMA if is_high else 1.0
            table[0, k], table[1, k], table[3, k] = source[k - ends[family]], kind, most
            table[2, k] = most if family > 1 else kind
            neighbours[k, 0] = max(k - 1, ends[family])
            neighbours[k, 1] = min(k + 1, ends[family + 1] - 1)
    return table, np.array([0, ends[1], ends[2], coarse]), neighbours


@compiled
def terms(breakpoint: float, high: float, count: float) -> tuple[float, float]:
    """Return F and G at a count; `high` is 1 for the high-variance family, else 0."""
    x, half = breakpoint / count, 0.5 / count
    return max(x, 1.0), max(min(x - half - 0.5, 0.5 - half), high)


@compiled
def _sums(
    breakpoint: float, high: float, nprocs: FloatArray, once: FloatArray, twice: FloatArray
) -> Sums:
    """Return the weighted sums of F·F, F·G, G·G, F and G over the observations."""
    FF = FG = GG = F1 = G1 = 0.0
    for i in range(nprocs.size):
        F, G = terms(breakpoint, high, nprocs[i])
        FF += F * F * twice[i]
        FG += F * G * twice[i]
        GG += G * G * twice[i]
        F1 += F * once[i]
        G1 += G * once[i]
    return FF, FG, GG, F1, G1


@compiled
def _best(
    sums: Sums, breakpoint: float, high: float, serial: float | None, least: float, most: float
) -> tuple[float, float, float]:
    """Return c, r and WSSRE of the best instance with a given breakpoint.

    With a fitted scale the share explained has one maximum over r; else r alone is sought.
    """
    FF, FG, GG, F1, G1 = sums
    if serial is None:
        above = FF * G1 - FG * F1
        below = GG * F1 - FG * G1
        if abs(above) <= 1e-14 * FF * G1:
            r = least
        elif below > 0.0:
            r = min(max(above / below, least), most)
        else:
            r = most
        top = F1 + r * G1
        c = top / (FF + r * (2.0 * FG + r * GG))
        return c, r, max(1.0 - top * c, 0.0)
    c = serial / breakpoint if serial > 0.0 else 1.0
    r = (G1 / c - FG) / GG if GG > 0.0 else np.inf
    if serial > 0.0 and high > 0.0:
        # t = serial (1 + (F - N) v) with v = 1/(N + r), linear in v.
        across = serial * (FG - breakpoint * GG) - (F1 - breakpoint * G1)
        square = FF - breakpoint * (2.0 * FG - breakpoint * GG)
        r = -serial * square / across - breakpoint if across != 0.0 else np.inf
    r = min(max(r if np.isfinite(r) else most, least), most)
    if serial > 0.0 and high > 0.0:
        c = serial / (breakpoint + r)
    w = c * c * (FF + r * (2.0 * FG + r * GG)) - 2.0 * c * (F1 + r * G1) + 1.0
    return c, r, max(w, 0.0)


@compiled
def _products(breakpoint: FloatArray, high: FloatArray, nprocs: FloatArray) -> FloatArray:
    """Return F·F, F·G, G·G, F and G at each observation, of each candidate, shape (5, m, k)."""
    products = np.empty((5, nprocs.size, breakpoint.size))
    for i in range(nprocs.size):
        count = nprocs[i]
        for k in range(breakpoint.size):
            F, G = terms(breakpoint[k], high[k], count)
            products[0, i, k] = F * F
            products[1, i, k] = F * G
            products[2, i, k] = G * G
            products[3, i, k] = F
            products[4, i, k] = G
    return products


@compiled
def _fill_lattice(
    products: FloatArray,
    once: FloatArray,
    twice: FloatArray,
    table: FloatArray,
    serial: float | None,
    sums: FloatArray,
    found: FloatArray,
) -> None:
    """Write B, c, r and WSSRE of each candidate for one target into the rows of `found`."""
    sums[:] = 0.0
    for column in range(5):
        out = sums[column]
        for i in range(once.size):
            weight = twice[i] if column < 3 else once[i]
            values = products[column, i]
            for k in range(out.size):
                out[k] += values[k] * weight
    for k in range(sums.shape[1]):
        own = (sums[0, k], sums[1, k], sums[2, k], sums[3, k], sums[4, k])
        B, high, least, most = table[0, k], table[1, k], table[2, k], table[3, k]
        found[0, k] = B
        found[1, k], found[2, k], found[3, k] = _best(own, B, high, serial, least, most)


@compiled
def _lowest(wssre: FloatArray, begin: int, end: int, places: IntArray) -> None:
    """Write the places of the best few local minima, a plateau counting once, else -1."""
    places[:] = -1
    for k in range(begin, end):
        if k > begin and not wssre[k] < wssre[k - 1] - 1e-14:
            continue
        if k + 1 < end and not wssre[k] <= wssre[k + 1]:
            continue
        if wssre[k] == np.inf:
            continue
        at = places.size - 1
        if places[at] >= 0 and wssre[places[at]] <= wssre[k]:
            continue
        while at > 0 and (places[at - 1] < 0 or wssre[places[at - 1]] > wssre[k]):
            places[at] = places[at - 1]
            at -= 1
        places[at] = k


@compiled
def _narrow(
    lower: float,
    upper: float,
    high: float,
    nprocs: FloatArray,
    once: FloatArray,
    twice: FloatArray,
    serial: float | None,
) -> float:
    """Return the breakpoint of least WSSRE in a bracket: rounds of points, then a parabola."""
    w = np.empty(_POINTS)
    most = LARGEST_SIGMA if high > 0.0 else 1.0
    middle = 1
    step = 0.0
    for round_ in range(_ROUNDS):
        step = (upper - lower) / (_POINTS - 1)
        for i in range(_POINTS):
            at = lower + step * i
            sums = _sums(at, high, nprocs, once, twice)
            w[i] = _best(sums, at, high, serial, high, most)[2]
        middle = min(max(int(np.argmin(w)), 1), _POINTS - 2)
        if round_ + 1 < _ROUNDS:
            lower, upper = lower + step * (middle - 1), lower + step * (middle + 1)
    falling, rising = w[middle - 1] - w[middle], w[middle + 1] - w[middle]
    shift = 0.0
    if falling + rising > 0.0:
        shift = min(max(0.5 * (falling - rising) / (falling + rising), -1.0), 1.0)
    return max(lower + step * middle + shift * step, 1.0)


@compiled
def _fill_refined(
    begin: int,
    end: int,
    high: float,
    observed: tuple[FloatArray, FloatArray, FloatArray],
    serial: float | None,
    found: FloatArray,
    into: int,
) -> None:
    """Refine the best minima of one family for one target; write them from column `into` on.

    Without that many minima, the first candidate of the family, which is flat,
    fills the rest.
    """
    nprocs, once, twice = observed
    places = np.empty(MINIMA, np.int64)
    _lowest(found[3], begin, end, places)
    most = LARGEST_SIGMA if high > 0.0 else 1.0
    for i in range(MINIMA):
        breakpoint = found[0, begin]
        if places[i] >= 0:
            lower = found[0, max(places[i] - 1, begin)]
            upper = found[0, min(places[i] + 1, end - 1)]
            breakpoint = _narrow(lower, upper, high, nprocs, once, twice, serial)
        j = into + i
        found[0, j] = breakpoint
        sums = _sums(breakpoint, high, nprocs, once, twice)
        found[1, j], found[2, j], found[3, j] = _best(sums, breakpoint, high, serial, high, most)


@compiled
def solve(problem: Problem, table: FloatArray) -> FloatArray:
    """Return B, c, r and WSSRE of candidates for a single target, shape (4, k).

    `table` is as `candidates` returns it.
    """
    nprocs, runtime, weights = problem.nprocs, problem.runtime, problem.weights[0]
    products, found = _products(table[0], table[1], nprocs), np.empty(table.shape)
    once, sums = weights / runtime, np.empty((5, table.shape[1]))
    _fill_lattice(products, once, once / runtime, table, problem.serial, sums, found)
    return found


@compiled
def search(problem: Problem) -> Instances:
    """Evaluate the lattice of candidates and refine the best local minima of each family."""
    nprocs, runtime, weights, reach, serial = problem
    table, edges, neighbours = candidates(nprocs, reach.max())
    rows, coarse = weights.shape[0], edges[3]
    values = np.empty((rows, 4, table.shape[1]))
    products = _products(table[0, :coarse], table[1, :coarse], nprocs)
    sums = np.empty((5, coarse))
    once, twice = np.empty(runtime.size), np.empty(runtime.size)
    for row in range(rows):
        found = values[row]
        for i in range(runtime.size):
            once[i] = weights[row, i] / runtime[i]
            twice[i] = once[i] / runtime[i]
        _fill_lattice(products, once, twice, table, serial, sums, found)
        for k in range(coarse):
            if found[0, k] > reach[row] * (REACH if table[1, k] > 0.0 else 1.0):
                found[3, k] = np.inf
        observed = (nprocs, once, twice)
        for family in range(2):
            begin, end, into = edges[family], edges[family + 1], coarse + family * MINIMA
            _fill_refined(begin, end, float(family), observed, serial, found, into)
            for j in range(into, into + MINIMA):
                if found[0, j] > reach[row] * (REACH if family > 0 else 1.0):
                    found[3, j] = np.inf
    return Instances(values, table[1] > 0.0, neighbours)
