"""The exact search with a free scale and the choice among its instances, compiled.

The formulas of the search are those of `predictors.adept.search`; there they
are arrays.
"""

import numpy as np

from predictors.base import BoolArray, FloatArray, IntArray
from predictors.compiling import compiled

_POINTS = 17
_ROUNDS = 4
_MINIMA = 4


@compiled
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


@compiled
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


@compiled
def _products(breakpoint: FloatArray, high: FloatArray, nprocs: FloatArray) -> FloatArray:
    """Return F·F, F·G, G·G, F and G at each observation, of each candidate, shape (5, m, k)."""
    products = np.empty((5, nprocs.size, breakpoint.size))
    for i in range(nprocs.size):
        half = 0.5 / nprocs[i]
        for k in range(breakpoint.size):
            x = breakpoint[k] / nprocs[i]
            F = max(x, 1.0)
            G = max(min(x - half - 0.5, 0.5 - half), high[k])
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
    ends: FloatArray,
    sums: FloatArray,
    found: FloatArray,
) -> None:
    """Write c, r and WSSRE of each candidate for one target into rows 1 to 3 of `found`."""
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
        found[1, k], found[2, k], found[3, k] = _best(own, ends[0, k], ends[1, k])


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


@compiled
def _fill_refined(
    begin: int,
    end: int,
    high: float,
    observed: tuple[FloatArray, FloatArray, FloatArray],
    largest: float,
    found: FloatArray,
    into: int,
) -> None:
    """Refine the best minima of one family for one target; write them from column `into` on.

    Without that many minima, the first candidate of the family, which is flat,
    fills the rest.
    """
    nprocs, once, twice = observed
    places = np.empty(_MINIMA, np.int64)
    _lowest(found[3], begin, end, places)
    most = largest if high > 0.0 else 1.0
    for i in range(_MINIMA):
        breakpoint = found[0, begin]
        if places[i] >= 0:
            lower = found[0, max(places[i] - 1, begin)]
            upper = found[0, min(places[i] + 1, end - 1)]
            breakpoint = _narrow(lower, upper, high, nprocs, once, twice, largest)
        j = into + i
        found[0, j] = breakpoint
        sums = _sums(breakpoint, high, nprocs, once, twice)
        found[1, j], found[2, j], found[3, j] = _best(sums, high, most)


@compiled
def _copy(source: FloatArray, target: FloatArray, columns: int) -> None:
    """Copy the first columns of all rows; assigning slices takes far longer to compile."""
    for i in range(source.shape[0]):
        for k in range(columns):
            target[i, k] = source[i, k]


@compiled
def search_free(
    nprocs: FloatArray,
    runtime: FloatArray,
    weights: FloatArray,
    candidates: FloatArray,
    edges: IntArray,
    reach: FloatArray,
    largest: float,
) -> FloatArray:
    """Return B, c, r and WSSRE of candidates and refined minima, shape (t, 4, k).

    Parameters
    ----------
    nprocs, runtime : numpy.ndarray of float, shape (m,)
    weights : numpy.ndarray of float, shape (t, m)
    candidates : numpy.ndarray of float, shape (4, k)
        Breakpoint, 1 for the high-variance family, least and largest ratio;
        the last columns are for the refined minima.
    edges : numpy.ndarray of int, shape (4,)
        Ends of the low and of the high family, and of all but the refined.
    reach : numpy.ndarray of float, shape (2, t)
        Largest breakpoint of either family.
    largest : float
        Largest ratio of the high-variance family.
    """
    number, rows = candidates.shape[1], weights.shape[0]
    coarse = edges[3]
    found = np.empty((rows, 4, number))
    products = _products(candidates[0, :coarse], candidates[1, :coarse], nprocs)
    sums = np.empty((5, coarse))
    plain = np.empty((4, coarse))
    once, twice = np.empty(runtime.size), np.empty(runtime.size)
    for row in range(rows):
        is_alike = row > 0
        for i in range(runtime.size):
            once[i] = weights[row, i] / runtime[i]
            twice[i] = once[i] / runtime[i]
            is_alike = is_alike and weights[row, i] == weights[row - 1, i]
        if is_alike:
            _copy(plain, found[row], coarse)
        else:
            _copy(candidates[:1], found[row], coarse)
            _fill_lattice(products, once, twice, candidates[2:], sums, found[row])
            _copy(found[row], plain, coarse)
        for k in range(coarse):
            if found[row, 0, k] > reach[int(candidates[1, k]), row]:
                found[row, 3, k] = np.inf
        observed = (nprocs, once, twice)
        for family in range(2):
            begin, end, into = edges[family], edges[family + 1], coarse + family * _MINIMA
            _fill_refined(begin, end, float(family), observed, largest, found[row], into)
            for j in range(into, into + _MINIMA):
                if found[row, 0, j] > reach[family, row]:
                    found[row, 3, j] = np.inf
    return found


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
def _describe(found: FloatArray, high: BoolArray, own: IntArray, answer: FloatArray) -> None:
    """Write the extremes of A and of the breakpoint over the members."""
    answer[3], answer[4], answer[5] = np.inf, 0.0, np.inf
    for k in own:
        B, r = found[0, k], found[2, k]
        A = (B + r) / (1.0 + r) if high[k] else B
        answer[3] = min(answer[3], A)
        answer[4] = max(answer[4], A)
        answer[5] = min(answer[5], B)


@compiled
def _evaluate(
    found: FloatArray, family: FloatArray, places: IntArray, n: float, runtime: FloatArray
) -> tuple[float, float]:
    """Write the runtime at `n` of the candidates at `places`; return the extremes."""
    half, low, high = 0.5 / n, np.inf, 0.0
    for k in places:
        x = found[0, k] / n
        G = max(min(x - half - 0.5, 0.5 - half), family[k])
        runtime[k] = found[1, k] * (max(x, 1.0) + found[2, k] * G)
        low = min(low, runtime[k])
        high = max(high, runtime[k])
    return low, high


@compiled
def choose(
    found: FloatArray,
    high: BoolArray,
    neighbours: IntArray,
    targets: FloatArray,
    bounds: tuple[float, float],
    balanced: bool,
    plain: bool,
) -> tuple[IntArray, BoolArray, FloatArray]:
    """Choose among the candidates of each target; see `predictors.adept.selection.select`.

    Parameters
    ----------
    found : numpy.ndarray of float, shape (t or 1, 4, k)
        B, c, r and WSSRE; a single row serves all targets.
    bounds : tuple of float
        Factor and addend that the best WSSRE bounds the members' with.

    Returns
    -------
    chosen : numpy.ndarray of int, shape (t,)
    members : numpy.ndarray of bool, shape (t or 1, k)
    answers : numpy.ndarray of float, shape (t, 9)
        Runtime of the chosen, lowest and highest runtime, lowest and highest A,
        lowest breakpoint; serial runtime, A and sigma of the chosen.
    """
    rows, number = targets.size, found.shape[2]
    family = np.zeros(number)
    for k in range(number):
        family[k] = 1.0 if high[k] else 0.0
    chosen = np.empty(rows, np.int64)
    members = np.empty((found.shape[0], number), np.bool_)
    answers = np.empty((rows, 9))
    runtime, weight = np.empty(number), np.empty(number)
    best, middle = 0, 0.0
    own = near = np.empty(0, np.int64)
    for row in range(rows):
        at = row if found.shape[0] > 1 else 0
        one = found[at]
        if row == 0 or at > 0:
            best = int(np.argmin(one[3]))
            bound = bounds[0] * one[3, best] + bounds[1]
            for k in range(number):
                members[at, k] = one[3, k] <= bound
            own = np.flatnonzero(members[at])
            near = _beside(one, members[at], neighbours)
            middle = _family_weights(own, high, balanced, weight)
            _describe(one, high, own, answers[row])
        else:
            for k in range(answers.shape[1]):
                answers[row, k] = answers[0, k]
        answers[row, 1], answers[row, 2] = _evaluate(one, family, near, targets[row], runtime)
        place = best if plain else _lower_median(runtime, weight, own.copy(), middle)
        chosen[row] = place
        answers[row, 0] = runtime[place]
        B, r = one[0, place], one[2, place]
        answers[row, 6] = one[1, place] * (B + r * family[place])
        answers[row, 7] = (B + r) / (1.0 + r) if high[place] else B
        answers[row, 8] = r
    return chosen, members, answers
