"""Exact search for Downey instances, over candidates and targets at once.

For a fixed breakpoint the model is linear in two unknowns, so a search in one
dimension suffices. Both families are written t(n) = c (F + r G) with

- low variance, breakpoint B = A: F = max(A/n, 1), G = clip((A - 1/2)/n - 1/2, 0,
  1/2 - 1/(2n)), r = sigma in [0, 1];
- high variance, breakpoint B = N = A + A sigma - sigma: F = max(N/n, 1), G = 1,
  r = sigma in [1, 3000].

For given B, the best r and c follow from five weighted sums.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from predictors.adept.kernels import search_free
from predictors.base import BoolArray, FloatArray, IntArray
from predictors.compiling import compiled

Scale = Literal["free", "unit", "serial"]

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
_FRACTIONS = np.linspace(0.0, 1.0, _POINTS)


@dataclass(frozen=True)
class Problem:
    """Observations with the weights of one or more targets.

    Attributes
    ----------
    nprocs, runtime : numpy.ndarray of float, shape (m,)
    weights : numpy.ndarray of float, shape (t, m)
        A row a target, summing to 1.
    reach : numpy.ndarray of float, shape (t,)
        Largest A considered for each target.
    scale : {"free", "unit", "serial"}
        Whether the scale c is fitted, 1, or such that T(1) is met exactly.
    """

    nprocs: FloatArray
    runtime: FloatArray
    weights: FloatArray
    reach: FloatArray
    scale: Scale = "free"

    def row(self, place: int) -> "Problem":
        """Return the problem of one target."""
        part = slice(place, place + 1)
        return Problem(self.nprocs, self.runtime, self.weights[part], self.reach[part], self.scale)


@dataclass(frozen=True)
class Instances:
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
    def breakpoint(self) -> FloatArray:
        """Breakpoint B of each candidate, shape (t, k)."""
        return self.values[:, 0]

    @property
    def factor(self) -> FloatArray:
        """Factor c of each candidate, shape (t, k)."""
        return self.values[:, 1]

    @property
    def ratio(self) -> FloatArray:
        """Ratio r of each candidate, shape (t, k)."""
        return self.values[:, 2]

    @property
    def wssre(self) -> FloatArray:
        """Weighted sum of squared relative errors of each candidate, shape (t, k)."""
        return self.values[:, 3]

    def runtime(self, nprocs: FloatArray) -> FloatArray:
        """Return each candidate's runtime at its row's count, shape (t, k)."""
        F, G = basis(self.breakpoint, self.high.astype(float), nprocs[:, None])
        return np.asarray(self.factor * (F + self.ratio * G), float)

    def parameters(self) -> tuple[FloatArray, FloatArray]:
        """Return A and sigma of each candidate, shape (t, k)."""
        A = np.where(
            self.high, (self.breakpoint + self.ratio) / (1.0 + self.ratio), self.breakpoint
        )
        return A, self.ratio

    def rows(self, part: slice) -> "Instances":
        """Return some of the targets' rows."""
        return Instances(self.values[part], self.high, self.neighbours)


def basis(
    breakpoint: FloatArray, high: FloatArray, nprocs: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return F and G; `high` is 1 for the high-variance family, else 0. All broadcast."""
    x = breakpoint / nprocs
    half = 0.5 / nprocs
    G = np.minimum(x - half - 0.5, 0.5 - half)
    return np.maximum(x, 1.0), np.maximum(G, high)


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
    """Return the lattice as `search_free` takes it, ends of its families, and neighbours.

    Low variance comes first, then high, then those of flat curves, whose ratio is open: both
    its ends stand for it.
    """
    lattice = LATTICE[: int(np.log2(REACH * top) * STEPS) + 1]
    within = merged_with(LATTICE[: int(np.log2(top) * STEPS) + 1], nprocs)
    low, high = merged_with(within, 0.5 * (nprocs + 1.0)), merged_with(lattice, nprocs)
    flat_low = np.sum(2.0 * low - 1.0 <= nprocs[0])
    flat_high = np.sum(high <= nprocs[0])
    ends = np.cumsum(np.array([0, low.size, high.size, flat_low, flat_high]))
    coarse = ends[4]
    table, neighbours = (
        np.ones((4, coarse + 2 * MINIMA)),
        np.empty((coarse + 2 * MINIMA, 2), np.int64),
    )
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
    for j in range(2 * MINIMA):
        is_high = j >= MINIMA
        kind = 1.0 if is_high else 0.0
        k = coarse + j
        table[1, k], table[2, k] = kind, kind
        table[3, k] = LARGEST_SIGMA if is_high else 1.0
        neighbours[k] = k
    return table, np.array([0, ends[1], ends[2], coarse]), neighbours


def search(problem: Problem) -> Instances:
    """Evaluate the lattice of candidates and refine the best local minima of each family.

    With a fitted scale all of it is compiled.
    """
    table, edges, neighbours = candidates(problem.nprocs, float(problem.reach.max()))
    is_high = table[1] > 0.0
    if problem.scale == "free":
        reach = np.stack([problem.reach, REACH * problem.reach])
        observed = problem.nprocs, problem.runtime, problem.weights
        values = search_free(*observed, table, edges, reach, LARGEST_SIGMA)
        return Instances(values, is_high, neighbours)
    _, low, both, end = edges.tolist()
    breakpoint, high, least, most = table[:, :end]
    c, r, w = solve(problem, breakpoint[None, :], least, most, high)
    limit = problem.reach[:, None] * np.where(is_high[:end], REACH, 1.0)
    w = np.where(breakpoint > limit, np.inf, w)
    spread = np.broadcast_to(breakpoint, w.shape)
    coarse = Instances(np.stack([spread, c, r, w], axis=1), is_high[:end], neighbours[:end])
    return _joined(coarse, _refined(problem, coarse, low, both - low))


def solve(
    problem: Problem, breakpoint: FloatArray, least: FloatArray, most: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return c, r and WSSRE for breakpoints of shape (t or 1, k)."""
    F, G = basis(breakpoint[..., None], high[:, None], problem.nprocs)
    once = (problem.weights / problem.runtime)[:, :, None]
    twice = once / problem.runtime[:, None]
    FF, FG, GG = ((product @ twice)[..., 0] for product in (F * F, F * G, G * G))
    F1, G1 = ((product @ once)[..., 0] for product in (F, G))
    sums = (FF, FG, GG, F1, G1)
    if problem.scale == "free":
        return _solve_free(sums, least, most)
    c, r = _solve_fixed(problem, sums, breakpoint, least, most, high)
    w = c * c * (FF + r * (2.0 * FG + r * GG)) - 2.0 * c * (F1 + r * G1) + 1.0
    return c, r, np.maximum(w, 0.0)


def _solve_free(
    sums: tuple[FloatArray, ...], least: FloatArray, most: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Minimise over r and c: the share explained has one maximum over r >= 0."""
    FF, FG, GG, F1, G1 = sums
    above = FF * G1 - FG * F1
    below = GG * F1 - FG * G1
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        r = above / below
    r = np.where(below > 0.0, r, most)
    r = np.minimum(np.maximum(np.where(np.abs(above) <= 1e-14 * FF * G1, least, r), least), most)
    top = F1 + r * G1
    c = top / (FF + r * (2.0 * FG + r * GG))
    return c, r, np.maximum(1.0 - top * c, 0.0)


def _solve_fixed(
    problem: Problem,
    sums: tuple[FloatArray, ...],
    breakpoint: FloatArray,
    least: FloatArray,
    most: FloatArray,
    high: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Minimise over r alone, c being 1 or fixed by the runtime on one processor."""
    FF, FG, GG, F1, G1 = sums
    serial = float(problem.runtime[0])
    pinned = problem.scale == "serial"
    c = serial / breakpoint if pinned else np.ones_like(breakpoint)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        r = (G1 / c - FG) / GG
        if pinned:
            # t = serial (1 + (F - N) v) with v = 1/(N + r), linear in v.
            across = serial * (FG - breakpoint * GG) - (F1 - breakpoint * G1)
            square = FF - breakpoint * (2.0 * FG - breakpoint * GG)
            r = np.where(high > 0.0, -serial * square / across - breakpoint, r)
    r = np.minimum(np.maximum(np.where(np.isfinite(r), r, most), least), most)
    if pinned:
        c = np.where(high > 0.0, serial / (breakpoint + r), c)
    return np.broadcast_to(c, r.shape), r


def _refined(problem: Problem, coarse: Instances, low: int, high: int) -> Instances:
    """Narrow the brackets of the best local minima of each family, then fit a parabola."""
    left: list[FloatArray] = []
    right: list[FloatArray] = []
    starts = []
    for begin, count in ((0, low), (low, high)):
        places = begin + _minima(coarse.wssre[:, begin : begin + count])
        starts.append(places)
        for ends, shift in ((left, -1), (right, 1)):
            beside = np.clip(places + shift, begin, begin + count - 1)
            ends.append(coarse.breakpoint[0, beside])
    lower, upper = np.concatenate(left, axis=1), np.concatenate(right, axis=1)
    is_high = np.repeat([False, True], [starts[0].shape[1], starts[1].shape[1]])
    bounds = (is_high.astype(float), np.where(is_high, LARGEST_SIGMA, 1.0))
    vertex = _narrowed(problem, lower, upper, bounds)
    c, r, w = solve(problem, vertex, *bounds, is_high.astype(float))
    limit = problem.reach[:, None] * np.where(is_high, REACH, 1.0)
    w = np.where(vertex > limit, np.inf, w)
    own = np.arange(vertex.shape[1])
    return Instances(np.stack([vertex, c, r, w], axis=1), is_high, np.stack([own, own], axis=1))


def _minima(wssre: FloatArray) -> IntArray:
    """Return the places of the best few local minima in each row, a plateau counting once."""
    below_left = np.ones(wssre.shape, bool)
    with np.errstate(invalid="ignore"):
        below_left[:, 1:] = wssre[:, 1:] < wssre[:, :-1] - 1e-14
    not_above_right = np.ones(wssre.shape, bool)
    not_above_right[:, :-1] = wssre[:, :-1] <= wssre[:, 1:]
    values = np.where(below_left & not_above_right, wssre, np.inf)
    few = min(MINIMA, wssre.shape[1])
    return np.argpartition(values, few - 1, axis=1)[:, :few]


def _narrowed(
    problem: Problem, lower: FloatArray, upper: FloatArray, bounds: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """Return the breakpoint of least WSSRE inside each bracket, shape (t, brackets)."""
    rows, brackets = lower.shape
    least, most = (np.repeat(bound, _POINTS) for bound in bounds)
    first = np.arange(rows * brackets) * _POINTS
    for _ in range(_ROUNDS):
        points = lower[..., None] + (upper - lower)[..., None] * _FRACTIONS
        w = solve(problem, points.reshape(rows, -1), least, most, np.minimum(least, 1.0))[2].ravel()
        best = w.reshape(-1, _POINTS).argmin(axis=1)
        middle = np.clip(best, 1, _POINTS - 2) + first
        flat = points.ravel()
        lower, upper = (flat[middle + shift].reshape(lower.shape) for shift in (-1, 1))
    falling, rising = w[middle - 1] - w[middle], w[middle + 1] - w[middle]
    curvature = falling + rising
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.where(curvature > 0.0, 0.5 * (falling - rising) / curvature, 0.0)
    step = 0.5 * (upper - lower)
    vertex = flat[middle].reshape(lower.shape) + np.clip(shift, -1, 1).reshape(lower.shape) * step
    return np.asarray(np.maximum(vertex, 1.0), float)


def _joined(coarse: Instances, fine: Instances) -> Instances:
    shift = len(coarse.high)
    return Instances(
        np.concatenate([coarse.values, fine.values], axis=2),
        np.concatenate([coarse.high, fine.high]),
        np.concatenate([coarse.neighbours, fine.neighbours + shift]),
    )
