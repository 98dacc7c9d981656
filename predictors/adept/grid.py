"""The paper's two-pass search inside its envelope (sections V.A and V.B), kept for comparison.

The envelope bounds A and sigma by pairs of observations, in closed form. Two in the same piece
of a Downey curve, where n T(n) = k + m n, give slope m and intercept k and with them the piece's
parameters. If every observation may be off by a share delta, each closed form is evaluated at
the corners of what the two runtimes can be. (The paper's eq. (3) multiplies sigma by 1 +- delta
instead, which misses most true values, m being a difference of nearly equal numbers.)
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from predictors.adept.fit import residuals_of
from predictors.adept.search import LARGEST_SIGMA, REACH, Instances, Problem, Scale, solve
from predictors.base import BoolArray, FloatArray

FIRST_DELTA = 0.10
DELTA_STEP = 0.05
LAST_DELTA = 1.0


class Box(NamedTuple):
    """A range of A and a range of sigma."""

    A_low: float
    A_high: float
    sigma_low: float
    sigma_high: float

    def holds(self, A: ArrayLike, sigma: ArrayLike, slack: float = 1e-9) -> BoolArray:
        """Say which instances lie inside, up to a relative `slack`."""
        A, sigma = np.asarray(A, float), np.asarray(sigma, float)
        in_A = (self.A_low * (1 - slack) <= A) & (self.A_high * (1 + slack) >= A)
        in_sigma = self.sigma_low - slack <= sigma
        in_sigma &= self.sigma_high * (1 + slack) + slack >= sigma
        return np.asarray(in_A & in_sigma, bool)


@dataclass(frozen=True)
class Envelope:
    """The instances that can explain the observations.

    Attributes
    ----------
    boxes : tuple of Box
        Their union is the envelope.
    delta : float
        Largest share by which an observation may be off.
    found : bool
        False if no delta up to 1 gave an envelope that passes; the single box
        is then everything.
    """

    boxes: tuple[Box, ...]
    delta: float
    found: bool = True

    @property
    def bounds(self) -> Box:
        """Extreme A and sigma over the boxes."""
        A_low, A_high, sigma_low, sigma_high = zip(*self.boxes, strict=True)
        return Box(min(A_low), max(A_high), min(sigma_low), max(sigma_high))

    def holds(self, A: ArrayLike, sigma: ArrayLike, slack: float = 1e-9) -> BoolArray:
        """Say which instances some box holds."""
        return np.asarray(np.any([box.holds(A, sigma, slack) for box in self.boxes], axis=0), bool)


def derive_envelope(
    nprocs: FloatArray, runtime: FloatArray, scale: Scale, reach: float, misfit: float
) -> Envelope:
    """Raise delta from 10 % by steps of 5 % until the check of section V.A passes.

    Parameters
    ----------
    nprocs, runtime : numpy.ndarray of float, shape (m,)
    scale : {"free", "unit", "serial"}
    reach : float
        Largest A considered.
    misfit : float
        Largest relative error of the fitted curve, which delta must reach.
    """
    for delta in np.arange(FIRST_DELTA, LAST_DELTA + 1e-9, DELTA_STEP):
        if misfit <= delta + 1e-12:
            boxes = envelope_boxes(nprocs, runtime, float(delta), scale, reach)
            if boxes:
                return Envelope(tuple(boxes), float(delta))
    return Envelope((Box(1.0, reach, 0.0, LARGEST_SIGMA),), LAST_DELTA, found=False)


def envelope_boxes(
    nprocs: FloatArray, runtime: FloatArray, delta: float, scale: Scale, reach: float
) -> list[Box]:
    """Return the boxes of all pairs and pieces, redundant ones discarded."""
    boxes: list[Box] = []
    for j in range(1, len(nprocs)):
        for i in range(j):
            pair = float(nprocs[i]), float(runtime[i]), float(nprocs[j]), float(runtime[j])
            make = unit_boxes if scale == "unit" else free_boxes
            boxes += make(*pair, delta, reach)
    return without_redundant(boxes)


def without_redundant(boxes: list[Box]) -> list[Box]:
    """Drop every box that lies inside another; of equal ones one stays.

    Examples
    --------
    >>> without_redundant([Box(2, 3, 0, 1), Box(1, 4, 0, 1), Box(1, 4, 0, 1)])
    [Box(A_low=1, A_high=4, sigma_low=0, sigma_high=1)]
    """
    kept: list[Box] = []
    for box in boxes:
        if any(_inside(box, other) for other in kept):
            continue
        kept = [other for other in kept if not _inside(other, box)]
        kept.append(box)
    return kept


def unit_boxes(
    n_i: float, t_i: float, n_j: float, t_j: float, delta: float, reach: float
) -> list[Box]:
    """Return the boxes of a pair n_i < n_j whose times are those of the normalised model.

    With delta = 0 the closed forms give A and sigma outright: L1 sigma = 2m,
    A = k + m; L2 sigma = 2(1 - m), A = 1/2 + k/sigma; H1 sigma = m,
    A = (k + sigma)/(1 + sigma); L3 and H2 leave A (L3 sigma too) free.
    """
    m, k = _corners(n_i, t_i, n_j, t_j, delta)
    shortest, longest = min(t_i, t_j) * (1 + delta), max(t_i, t_j) * (1 - delta)
    sigma_two = np.clip(2.0 * (1.0 - m), 0.0, None)
    with np.errstate(divide="ignore", invalid="ignore"):
        A_two = 0.5 + np.where(sigma_two > 0.0, np.maximum(k, 0.0) / sigma_two, np.inf)
    high = np.maximum(m, 0.0)
    A_high = (k + high) / (1.0 + high)
    flat = [(1.0, 0.5 * (n_i + 1.0), 0.0, 1.0)] if longest <= 1.0 <= shortest else []
    least = max(longest - 1.0, 1.0)
    ranges = [
        (*_clipped(k + m, max(n_j, 1.0), reach), *_clipped(2.0 * m, 0.0, 1.0)),
        (*_clipped(A_two, max(0.5 * (n_j + 1.0), 1.0), n_i), *_clipped(sigma_two, 0.0, 1.0)),
        *flat,
        (*_clipped(A_high, 1.0, reach), *_clipped(m, 1.0, LARGEST_SIGMA)),
        (1.0, (n_i + least) / (1.0 + least), least, min(shortest - 1.0, LARGEST_SIGMA)),
    ]
    return _boxes(ranges)


def free_boxes(
    n_i: float, t_i: float, n_j: float, t_j: float, delta: float, reach: float
) -> list[Box]:
    """Return the boxes of a pair n_i < n_j in any unit of time.

    A pair leaves one parameter free, so each piece is a family: L1 sigma =
    2 kappa A; L2 sigma = 2k/(m(2A - 1) + k); H1 A = sigma/(kappa(1 + sigma));
    kappa = m/(k + m). L3 and H2 need equal runtimes.
    """
    m, k = (np.maximum(ends, 0.0) for ends in _corners(n_i, t_i, n_j, t_j, delta))
    kappa = m / (k + m)
    kappa_low, kappa_high = float(kappa.min()), float(kappa.max())
    steepest = np.inf if kappa_low == 0.0 else 1.0 / kappa_low
    least_A = max(0.5 * (n_j + 1.0), 1.0)
    ends = np.array([least_A, max(n_i, least_A)])[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        sigma_two = 2.0 * k / (m * (2.0 * ends - 1.0) + k)
    lift = np.inf if kappa_low >= 1.0 else n_j * kappa_low / (1.0 - kappa_low)
    s = max(1.0, lift)
    A_least = s / (kappa_high * (1.0 + s)) if np.isfinite(s) and kappa_high > 0.0 else 1.0
    ranges = [
        (n_j, min(reach, 0.5 * steepest), 2.0 * kappa_low * n_j, 1.0),
        (least_A, n_i, *_clipped(sigma_two, 0.0, 1.0)),
        (max(A_least, 1.0), min(reach, steepest), s, LARGEST_SIGMA),
    ]
    if abs(t_i / t_j - 1.0) <= 2.0 * delta / max(1.0 - delta, 1e-300) + 1e-12:
        flat = 0.5 * (n_i + 1.0)
        ranges += [(1.0, flat, 0.0, 1.0), (1.0, flat, 1.0, LARGEST_SIGMA)]
    return _boxes(ranges)


def serial_sigma(piece: str, n: float, u: float, A: float) -> float:
    """Return sigma from one observation when T(1) is known.

    Parameters
    ----------
    piece : {"L1", "L2", "H1"}
    n : float
    u : float
        n T(n)/T(1), the inverse of the efficiency.
    A : float
    """
    if piece == "L1":
        return 2.0 * A * (u - 1.0) / (n - 1.0)
    if piece == "L2":
        return (2.0 * A * u - 2.0 * n) / (2.0 * A - 1.0 - n)
    return A * (u - 1.0) / ((n - 1.0) - A * (u - 1.0))


def _corners(
    n_i: float, t_i: float, n_j: float, t_j: float, delta: float
) -> tuple[FloatArray, FloatArray]:
    """Return slope and intercept of a pair's work at the four corners of its runtimes."""
    first = n_i * t_i * (1.0 + delta * np.array([-1.0, -1.0, 1.0, 1.0]))
    second = n_j * t_j * (1.0 + delta * np.array([-1.0, 1.0, -1.0, 1.0]))
    m = (second - first) / (n_j - n_i)
    return m, first - m * n_i


def _clipped(values: FloatArray, least: float, most: float) -> tuple[float, float]:
    """Return the part of the values' range inside [least, most]; inverted if there is none."""
    return max(float(np.min(values)), least), min(float(np.max(values)), most)


def _boxes(ranges: list[tuple[float, float, float, float]]) -> list[Box]:
    """Return the non-empty ranges as boxes; rounding does not empty a box."""
    boxes = []
    for A_low, A_high, sigma_low, sigma_high in ranges:
        slack_A, slack_sigma = 1e-9 * abs(A_high), 1e-9 * max(abs(sigma_high), 1.0)
        if A_low <= A_high + slack_A and sigma_low <= sigma_high + slack_sigma:
            boxes.append(Box(A_low, max(A_high, A_low), sigma_low, max(sigma_high, sigma_low)))
    return boxes


def _inside(inner: Box, outer: Box) -> bool:
    return (
        outer.A_low <= inner.A_low
        and inner.A_high <= outer.A_high
        and outer.sigma_low <= inner.sigma_low
        and inner.sigma_high <= outer.sigma_high
    )


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
    away = np.abs(problem.nprocs - target)  # of equally near observations the larger count
    nearest, misfit = int(len(away) - 1 - np.argmin(away[::-1])), 0.0
    scale: Scale = "unit" if problem.serial == 0.0 else "free"
    while True:
        envelope = derive_envelope(problem.nprocs, problem.runtime, scale, reach, misfit)
        found = _two_passes(problem, envelope, nearest)
        best = int(np.argmin(found.wssre[0]))
        errors = residuals_of(found, best, 1.0, problem.nprocs, problem.runtime)
        if np.abs(errors).max() <= envelope.delta or not envelope.found:
            return found
        misfit = max(FIRST_DELTA, envelope.delta) + DELTA_STEP
        if misfit > LAST_DELTA:
            misfit = np.inf


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
