"""The exact search with a free scale, compiled: one pass over candidates and targets.

The formulas are those of `predictors.adept.search`; there they are arrays.
"""

import numpy as np
from numba import njit

from predictors.base import FloatArray, IntArray

_POINTS = 17
_ROUNDS = 4
_MINIMA = 4


@njit(cache=True)
def _sums(
    breakpoint: float, high: float, nprocs: FloatArray, once: FloatArray, twice: FloatArray
) -> tuple[float, float, float, float, float]:
    """Return the weighted sums of F·F, F·G, G·G, F and G over the observations."""
    FF = FG = GG = F1 = G1 = 0.0
    for i in range(nprocs.size):
        x = breakpoint / nprocs[i]
        half = 0.5 / nprocs[i]
        F = max(x, 1.0)
        G = max(min(x - half - 0.5, 0.5 - half), high)
        FF += F * F * twice[i]
        FG += F * G * twice[i]
        GG += G * G * twice[i]
        F1 += F * once[i]
        G1 += G * once[i]
    return FF, FG, GG, F1, G1


@njit(cache=True)
def _best(
    sums: tuple[float, float, float, float, float], least: float, most: float
) -> tuple[float, float, float]:
    """Return c, r and WSSRE of the best instance with a given breakpoint."""
    FF, FG, GG, F1, G1 = sums
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


@njit(cache=True)
def lattice(
    nprocs: FloatArray,
    runtime: FloatArray,
    weights: FloatArray,
    breakpoint: FloatArray,
    high: FloatArray,
    least: FloatArray,
    most: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return c, r and WSSRE of each candidate for each target, shape (t, k)."""
    rows, number = weights.shape[0], breakpoint.size
    c = np.empty((rows, number))
    r = np.empty((rows, number))
    w = np.empty((rows, number))
    once = weights / runtime
    twice = once / runtime
    for k in range(number):
        for row in range(rows):
            sums = _sums(breakpoint[k], high[k], nprocs, once[row], twice[row])
            c[row, k], r[row, k], w[row, k] = _best(sums, least[k], most[k])
    return c, r, w


@njit(cache=True)
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


@njit(cache=True)
def _narrow(
    lower: float,
    upper: float,
    high: float,
    nprocs: FloatArray,
    once: FloatArray,
    twice: FloatArray,
    largest: float,
) -> float:
    """Return the breakpoint of least WSSRE in a bracket: rounds of points, then a parabola."""
    w = np.empty(_POINTS)
    most = largest if high > 0.0 else 1.0
    middle = 1
    step = 0.0
    for round_ in range(_ROUNDS):
        step = (upper - lower) / (_POINTS - 1)
        for i in range(_POINTS):
            sums = _sums(lower + step * i, high, nprocs, once, twice)
            w[i] = _best(sums, high, most)[2]
        middle = min(max(int(np.argmin(w)), 1), _POINTS - 2)
        if round_ + 1 < _ROUNDS:
            lower, upper = lower + step * (middle - 1), lower + step * (middle + 1)
    falling, rising = w[middle - 1] - w[middle], w[middle + 1] - w[middle]
    shift = 0.0
    if falling + rising > 0.0:
        shift = min(max(0.5 * (falling - rising) / (falling + rising), -1.0), 1.0)
    return max(lower + step * middle + shift * step, 1.0)


@njit(cache=True)
def refine(
    nprocs: FloatArray,
    runtime: FloatArray,
    weights: FloatArray,
    breakpoint: FloatArray,
    wssre: FloatArray,
    edges: IntArray,
    largest: float,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return B, c, r and WSSRE of the refined best minima of both families, shape (t, 8).

    `edges` are the ends of the low and of the high family among the candidates.
    A place without a minimum has an infinite WSSRE.
    """
    rows = weights.shape[0]
    B = np.ones((rows, 2 * _MINIMA))
    c = np.ones((rows, 2 * _MINIMA))
    r = np.zeros((rows, 2 * _MINIMA))
    w = np.full((rows, 2 * _MINIMA), np.inf)
    places = np.empty(_MINIMA, np.int64)
    once = weights / runtime
    twice = once / runtime
    for row in range(rows):
        for family in range(2):
            high = float(family)
            begin, end = edges[family], edges[family + 1]
            _lowest(wssre[row], begin, end, places)
            for i in range(_MINIMA):
                place = places[i]
                if place < 0:
                    break
                lower = breakpoint[max(place - 1, begin)]
                upper = breakpoint[min(place + 1, end - 1)]
                j = family * _MINIMA + i
                B[row, j] = _narrow(lower, upper, high, nprocs, once[row], twice[row], largest)
                sums = _sums(B[row, j], high, nprocs, once[row], twice[row])
                most = largest if family else 1.0
                c[row, j], r[row, j], w[row, j] = _best(sums, high, most)
    return B, c, r, w
