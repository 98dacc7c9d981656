"""The paper's two-pass search inside the envelope (section V.B), kept for comparison."""

import numpy as np

from predictors.adept.envelope import (
    DELTA_STEP,
    FIRST_DELTA,
    LAST_DELTA,
    Box,
    Envelope,
    derive_envelope,
    serial_sigma,
)
from predictors.adept.fit import residuals_of
from predictors.adept.search import LARGEST_SIGMA, REACH, Instances, Problem, Scale, solve
from predictors.base import BoolArray, FloatArray

FIRST_PASS = 5000
SECOND_PASS = 500
VARIATION = 0.15
"""v of the paper: how far around the first pass the second looks."""


def grid_search(problem: Problem, targets: FloatArray) -> Instances:
    """Search each target's instance on the paper's two grids.

    The envelope's delta is raised until the instance misses no observation by
    more; then the candidates of the first pass and the best of the second are
    returned, a row a target.
    """
    rows = [_one_target(problem.row(place), target) for place, target in enumerate(targets)]
    values = np.concatenate([row.values for row in rows])
    return Instances(values, rows[0].high, rows[0].neighbours)


def _one_target(problem: Problem, target: float) -> Instances:
    """Search for one target, which need be no observation."""
    reach = float(problem.reach[0])
    nearest = _nearest(problem.nprocs, target)
    misfit = 0.0
    scale: Scale = "unit" if problem.serial == 0.0 else "free"
    while True:
        envelope = derive_envelope(problem.nprocs, problem.runtime, scale, reach, misfit)
        found = _two_passes(problem, envelope, nearest)
        error = _largest_error(problem, found)
        if error <= envelope.delta or not envelope.found:
            return found
        misfit = max(FIRST_DELTA, envelope.delta) + DELTA_STEP
        if misfit > LAST_DELTA:
            misfit = np.inf


def _nearest(nprocs: FloatArray, target: float) -> int:
    """Return the place of the observation nearest to the target, ties to the larger count."""
    distance = np.abs(nprocs - target)
    return int(len(nprocs) - 1 - np.argmin(distance[::-1]))


def _largest_error(problem: Problem, found: Instances) -> float:
    best = int(np.argmin(found.wssre[0]))
    return float(np.abs(residuals_of(found, best, 1.0, problem.nprocs, problem.runtime)).max())


def _two_passes(problem: Problem, envelope: Envelope, nearest: int) -> Instances:
    bounds = envelope.bounds
    B, r, high = _first_pass(problem, bounds, nearest)
    values = _evaluated(problem, B, r, high, bounds)
    _, _, r, w = values
    A = np.where(high, (B + r) / (1.0 + r), B)
    inside = envelope.holds(A, r)
    if (inside & np.isfinite(w)).any():
        w[~inside] = np.inf
    best = int(np.argmin(w))
    ends = [_second_pass(problem, envelope, A[best], r[best], family) for family in (False, True)]
    values = np.concatenate([values, np.array(ends).T], axis=1)
    high = np.concatenate([high, [False, True]])
    places, last = np.arange(len(high)), len(high) - 1
    neighbours = np.stack([np.maximum(places - 1, 0), np.minimum(places + 1, last)], axis=1)
    return Instances(values[None], high, neighbours)


def _first_pass(
    problem: Problem, bounds: Box, nearest: int
) -> tuple[FloatArray, FloatArray | None, BoolArray]:
    """Return breakpoints and, where the curve is to pass through the nearest point, sigma."""
    A = np.linspace(bounds.A_low, bounds.A_high, FIRST_PASS)
    if problem.serial is not None:
        through = _through_nearest(problem, A, nearest)
        if through is not None:
            return through
    top = REACH * float(problem.reach[0])
    s_low, s_high = max(bounds.sigma_low, 1.0), max(bounds.sigma_high, 1.0)
    least = bounds.A_low * (1.0 + s_low) - s_low
    most = min(bounds.A_high * (1.0 + s_high) - s_high, top)
    N = np.linspace(max(least, 1.0), max(most, least, 1.0), FIRST_PASS)
    return np.concatenate([A, N]), None, np.repeat([False, True], FIRST_PASS)


def _through_nearest(
    problem: Problem, A: FloatArray, nearest: int
) -> tuple[FloatArray, FloatArray, BoolArray] | None:
    """Return the instances through the nearest observation; None if there is none."""
    n, t = float(problem.nprocs[nearest]), float(problem.runtime[nearest])
    serial = problem.serial or None
    half, F = 0.5 / n, np.maximum(A / n, 1.0)
    G = np.maximum(np.minimum(A / n - half - 0.5, 0.5 - half), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = (t / (1.0 if serial is None else serial / A) - F) / G
        if serial is None:
            rising = (t - A / n) / (1.0 + (A - 1.0) / n)
            rising = np.where(A + (A - 1.0) * rising < n, t - 1.0, rising)
        else:
            rising = np.array([serial_sigma("H1", n, n * t / serial, each) for each in A])
        N = A + (A - 1.0) * rising
    good_low = np.isfinite(low) & (low >= 0.0) & (low <= 1.0)
    good_high = np.isfinite(rising) & (rising >= 1.0) & (rising <= LARGEST_SIGMA)
    if serial is not None:
        good_high &= n <= N
    if not (good_low.any() or good_high.any()):
        return None
    # Where the curve is flat at the point, sigma stays open (NaN); an infinite
    # one marks an A through which no instance of the family passes.
    factor = np.ones_like(A) if serial is None else serial / A
    flat = (G <= 0.0) & (np.abs(factor * F / t - 1.0) < 1e-9)
    low = np.where(flat, np.nan, np.where(good_low, low, np.inf))
    B = np.concatenate([A, np.where(good_high, N, 1.0)])
    r = np.concatenate([low, np.where(good_high, rising, np.inf)])
    return B, r, np.repeat([False, True], len(A))


def _evaluated(
    problem: Problem, B: FloatArray, r: FloatArray | None, high: BoolArray, bounds: Box
) -> FloatArray:
    """Return B, c, sigma and WSSRE, shape (4, k); sigma is fitted where it is not given."""
    least, most = high.astype(float), np.where(high, LARGEST_SIGMA, 1.0)
    least = np.minimum(np.maximum(least, bounds.sigma_low), most)
    most = np.maximum(np.minimum(most, bounds.sigma_high), least)
    impossible = np.zeros(len(B), bool)
    if r is not None:
        impossible = np.isinf(r)
        given = np.isfinite(r)
        least, most = np.where(given, r, least), np.where(given, r, most)
    found: FloatArray = solve(problem, np.stack([B, high.astype(float), least, most]))
    found[3, impossible] = np.inf
    return found


def _second_pass(
    problem: Problem, envelope: Envelope, A: float, sigma: float, high: bool
) -> tuple[float, float, float, float]:
    """Return breakpoint, factor, sigma and WSSRE of the best of 500 x 500 instances.

    The WSSRE is infinite where the part of the grid that belongs to the family
    is empty.
    """
    bounds = envelope.bounds
    A_ends = np.clip([A * (1 - VARIATION), A * (1 + VARIATION)], bounds.A_low, bounds.A_high)
    around = (sigma * (1 - VARIATION), sigma * (1 + VARIATION)) if sigma > 0 else (0.0, VARIATION)
    s_ends = np.clip(around, bounds.sigma_low, bounds.sigma_high)
    As = np.linspace(float(A_ends[0]), float(A_ends[1]), SECOND_PASS)
    sigmas = np.linspace(float(s_ends[0]), float(s_ends[1]), SECOND_PASS)
    sigmas = sigmas[sigmas > 1.0] if high else sigmas[sigmas <= 1.0]
    if not len(sigmas):
        return 1.0, 1.0, float(high), np.inf
    once, twice = _sums(problem, As, sigmas, high)
    c = _factor(problem, As, sigmas, high, once, twice)
    w = c * (c * twice - 2.0 * once) + 1.0
    inside = envelope.holds(As[:, None], sigmas)
    if inside.any():
        w[~inside] = np.inf
    row, column = np.unravel_index(int(np.argmin(w)), w.shape)
    best_A, best_sigma = float(As[row]), float(sigmas[column])
    B = best_A + (best_A - 1.0) * best_sigma if high else best_A
    best_c = float(np.broadcast_to(c, w.shape)[row, column])
    return B, best_c, best_sigma, max(float(w[row, column]), 0.0)


def _sums(
    problem: Problem, A: FloatArray, sigma: FloatArray, high: bool
) -> tuple[FloatArray, FloatArray]:
    """Return the weighted sums of T/t and (T/t)^2, T normalised, over an A x sigma grid."""
    once = np.zeros((len(A), len(sigma)))
    twice = np.zeros_like(once)
    A = A[:, None]
    ends = A + (A - 1.0) * sigma if high else None
    for n, t, weight in zip(problem.nprocs, problem.runtime, problem.weights[0], strict=True):
        if ends is not None:
            T = np.maximum(ends / n, 1.0) + sigma
        else:
            # n T(n) is convex, so T is the largest of its pieces.
            T = A / n + sigma * (0.5 - 0.5 / n)
            np.maximum(T, 1.0 + sigma * ((A - 0.5) / n - 0.5), out=T)
            np.maximum(T, 1.0, out=T)
        T /= t
        once += weight * T
        T *= T
        T *= weight
        twice += T
    return once, twice


def _factor(
    problem: Problem,
    A: FloatArray,
    sigma: FloatArray,
    high: bool,
    once: FloatArray,
    twice: FloatArray,
) -> FloatArray:
    if problem.serial is None:
        return once / twice
    if problem.serial == 0.0:
        return np.ones((1, 1))
    first = A[:, None] * (1.0 + sigma) if high else A[:, None] + 0.0 * sigma
    return problem.serial / first
