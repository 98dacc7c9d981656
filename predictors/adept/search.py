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
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np

from predictors.base import BoolArray, FloatArray, IntArray

Scale = Literal["free", "unit", "serial"]

LARGEST_SIGMA = 3000.0
"""Bound on sigma (ADEPT paper, section V.C)."""
REACH = 4.0
"""Candidates for A go this far beyond the targets and the observations; those for N, twice."""
STEPS = 16
"""Candidates in a doubling."""
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


@dataclass(frozen=True)
class Candidates:
    """The lattice of breakpoints, low variance first, then high, then those of flat curves.

    Attributes
    ----------
    breakpoint : numpy.ndarray of float, shape (k,)
    high : numpy.ndarray of bool, shape (k,)
    least, most : numpy.ndarray of float, shape (k,)
        Ends of the ratio.
    neighbours : numpy.ndarray of int, shape (k, 2)
    edges : numpy.ndarray of int, shape (4,)
        Ends of the families: 0, of the low, of the high, of all.
    """

    breakpoint: FloatArray
    high: BoolArray
    least: FloatArray
    most: FloatArray
    neighbours: IntArray
    edges: IntArray

    def with_refined(self) -> "Candidates":
        """Return the same with places for the refined minima at the end."""
        fill = np.repeat([0.0, 1.0], MINIMA)
        places = len(self.high) + np.arange(2 * MINIMA)
        return Candidates(
            np.concatenate([self.breakpoint, np.ones(2 * MINIMA)]),
            np.concatenate([self.high, fill > 0.0]),
            np.concatenate([self.least, fill]),
            np.concatenate([self.most, np.where(fill > 0.0, LARGEST_SIGMA, 1.0)]),
            np.concatenate([self.neighbours, np.stack([places, places], axis=1)]),
            self.edges,
        )


def basis(
    breakpoint: FloatArray, high: FloatArray, nprocs: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return F and G; `high` is 1 for the high-variance family, else 0. All broadcast."""
    x = breakpoint / nprocs
    half = 0.5 / nprocs
    G = np.minimum(x - half - 0.5, 0.5 - half)
    return np.maximum(x, 1.0), np.maximum(G, high)


def search(problem: Problem) -> Instances:
    """Evaluate the lattice of candidates and refine the best local minima of each family."""
    top = float(problem.reach.max())
    if problem.scale == "free":
        return _search_free(problem, top)
    lattice = _candidates(problem.nprocs.tobytes(), top)
    c, r, w = solve(
        problem,
        lattice.breakpoint[None, :],
        lattice.least,
        lattice.most,
        lattice.high.astype(float),
    )
    limit = problem.reach[:, None] * np.where(lattice.high, REACH, 1.0)
    w = np.where(lattice.breakpoint > limit, np.inf, w)
    spread = np.broadcast_to(lattice.breakpoint, w.shape)
    coarse = Instances(np.stack([spread, c, r, w], axis=1), lattice.high, lattice.neighbours)
    _, low, both, _ = lattice.edges.tolist()
    return _joined(coarse, _refined(problem, coarse, low, both - low))


def _search_free(problem: Problem, top: float) -> Instances:
    """Search with a fitted scale, compiled; numba is imported when it is first needed."""
    from predictors.adept.kernels import search_free

    lattice, table = _wider_candidates(problem.nprocs.tobytes(), top)
    reach = np.stack([problem.reach, REACH * problem.reach])
    values = search_free(
        problem.nprocs,
        problem.runtime,
        problem.weights,
        table,
        lattice.edges,
        reach,
        LARGEST_SIGMA,
    )
    return Instances(values, lattice.high, lattice.neighbours)


@lru_cache(maxsize=1024)
def _wider_candidates(nprocs: bytes, top: float) -> tuple[Candidates, FloatArray]:
    """Return the lattice with places for refined minima, also as a table of shape (4, k)."""
    wider = _candidates(nprocs, top).with_refined()
    table = np.stack([wider.breakpoint, wider.high.astype(float), wider.least, wider.most])
    return wider, table


@lru_cache(maxsize=64)
def _candidates(nprocs: bytes, top: float) -> Candidates:
    """Return the candidates for A and N, and those below all observations once more."""
    n = np.frombuffer(nprocs)
    octaves = np.log2(REACH * top)
    lattice = 2.0 ** (np.arange(int(octaves * STEPS) + 1) / STEPS)
    within = lattice[: int(np.log2(top) * STEPS) + 1]
    low = np.unique(np.concatenate([within, n, 0.5 * (n + 1.0)]))
    high = np.unique(np.concatenate([lattice, n]))
    parts = [low, high, low[2.0 * low - 1.0 <= n[0]], high[high <= n[0]]]
    sizes = [len(part) for part in parts]
    is_high = np.repeat([False, True, False, True], sizes)
    least, most = is_high.astype(float), np.where(is_high, LARGEST_SIGMA, 1.0)
    # A flat curve through all points leaves r open: both ends stand for it.
    least[sizes[0] + sizes[1] :] = most[sizes[0] + sizes[1] :]
    edges = np.array([0, sizes[0], sizes[0] + sizes[1], sum(sizes)])
    return Candidates(np.concatenate(parts), is_high, least, most, _neighbours(sizes), edges)


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


def _neighbours(sizes: list[int]) -> IntArray:
    places = np.arange(sum(sizes))
    before, after = places - 1, places + 1
    edges = np.cumsum([0, *sizes])
    for begin, end in pairwise(edges):
        if end > begin:
            before[begin], after[end - 1] = begin, end - 1
    return np.stack([before, after], axis=1)


def _joined(coarse: Instances, fine: Instances) -> Instances:
    shift = len(coarse.high)
    return Instances(
        np.concatenate([coarse.values, fine.values], axis=2),
        np.concatenate([coarse.high, fine.high]),
        np.concatenate([coarse.neighbours, fine.neighbours + shift]),
    )
