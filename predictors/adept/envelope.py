"""Bounds on A and sigma from pairs of observations, in closed form.

Two observations in the same piece of a Downey curve, where n T(n) = k + m n,
give slope m and intercept k and with them the piece's parameters. If every
observation may be off by a share delta, each closed form is evaluated at the
corners of what the two runtimes can be. (The paper's eq. (3) multiplies sigma
by 1 +- delta instead, which misses most true values, m being a difference of
nearly equal numbers.)
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from predictors.adept.search import LARGEST_SIGMA, Scale
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


class _Corners(NamedTuple):
    """Slope and intercept of a pair's work at the four corners of its runtimes."""

    m: FloatArray
    k: FloatArray


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
    corners = _corners(n_i, t_i, n_j, t_j, delta)
    m, k = corners
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
    corners = _corners(n_i, t_i, n_j, t_j, delta)
    m, k = np.maximum(corners.m, 0.0), np.maximum(corners.k, 0.0)
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


def _corners(n_i: float, t_i: float, n_j: float, t_j: float, delta: float) -> _Corners:
    first = n_i * t_i * (1.0 + delta * np.array([-1.0, -1.0, 1.0, 1.0]))
    second = n_j * t_j * (1.0 + delta * np.array([-1.0, 1.0, -1.0, 1.0]))
    m = (second - first) / (n_j - n_i)
    return _Corners(m, first - m * n_i)


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
