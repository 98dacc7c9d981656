"""Points and steps that no Downey curve explains, by the fluctuation of efficiency.

With W(n) = n T(n), the total work, a step between neighbours is judged by how
much work falls compared with the step before it.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from predictors.base import BoolArray, FloatArray, IntArray
from predictors.compiling import compiled

Metric = Literal["doubling", "paper"]
SENSITIVITY = 0.1
"""epsilon of the paper (section VIII.B)."""
THRESHOLD = float(np.log1p(SENSITIVITY))
FALLING_WORK = 0.05
"""Work that falls by more than this from one count to the next is superlinear."""


@compiled
def paper_metric(nprocs: FloatArray, runtime: FloatArray) -> FloatArray:
    """Return R_i = W_i/W_{i+1} (1 + (n_{i+1} - n_i)/n_{i+1}), shape (m - 1,).

    Even ideal speedup moves it where gaps differ.

    Examples
    --------
    >>> n = np.array([1.0, 2, 3, 4, 8, 16])
    >>> paper_metric(n, 1 / n).round(4).tolist()
    [1.5, 1.3333, 1.25, 1.5, 1.5]
    """
    work = nprocs * runtime
    metric: FloatArray = work[:-1] / work[1:] * (2.0 - nprocs[:-1] / nprocs[1:])
    return metric


@compiled
def _jumps(
    nprocs: FloatArray, runtime: FloatArray, is_paper: bool
) -> tuple[FloatArray, FloatArray]:
    """Return rise and excess of the statistic at each three neighbours, shape (m - 2,)."""
    steps = nprocs.size - 1
    gain, finer = np.empty(steps), np.empty(steps)
    for i in range(steps):
        ratio = nprocs[i] * runtime[i] / (nprocs[i + 1] * runtime[i + 1])
        doublings = np.log2(nprocs[i + 1] / nprocs[i])
        finer[i] = 1.0 / doublings
        if is_paper:
            gain[i] = np.log(ratio * (2.0 - nprocs[i] / nprocs[i + 1]))
        else:
            gain[i] = np.log(ratio) / doublings
    rise, excess = np.empty(max(steps - 1, 0)), np.empty(max(steps - 1, 0))
    for i in range(steps - 1):
        # The last factor keeps fine spacing from amplifying noise.
        factor = 1.0 if is_paper else max(1.0, 0.5 * (finer[i] + finer[i + 1]))
        rise[i] = gain[i + 1] - gain[i]
        excess[i] = rise[i] - THRESHOLD * factor
    return rise, excess


@compiled
def unrest_without(
    nprocs: FloatArray, runtime: FloatArray, candidates: IntArray, is_paper: bool
) -> tuple[FloatArray, BoolArray]:
    """Return, without each candidate, fluctuation plus falling work, and whether any falls."""
    unrest = np.zeros(candidates.size)
    falls = np.zeros(candidates.size, np.bool_)
    n, t = np.empty(nprocs.size - 1), np.empty(nprocs.size - 1)
    for j in range(candidates.size):
        out = candidates[j]
        for i in range(n.size):
            k = i if i < out else i + 1
            n[i], t[i] = nprocs[k], runtime[k]
        for excess in _jumps(n, t, is_paper)[1]:
            unrest[j] += max(excess, 0.0)
        for i in range(n.size - 1):
            falling = np.log(n[i] * t[i] / (n[i + 1] * t[i + 1])) - FALLING_WORK
            if falling > 0.0:
                unrest[j] += falling
                falls[j] = True
    return unrest, falls


@compiled(inline="always")
def suspect(nprocs: FloatArray, runtime: FloatArray, is_paper: bool) -> tuple[int, float, bool]:
    """Return the place, the change of the statistic where the test fired, and whether work falls.

    The place is that of the candidate without which the others are calmest, -1
    if the test does not fire. The change is that of the logarithm, or of the
    paper's R itself.
    """
    rise, excess = _jumps(nprocs, runtime, is_paper)
    is_candidate = np.zeros(nprocs.size, np.bool_)
    for i in range(excess.size):
        if excess[i] > 1e-9:
            is_candidate[i + 1] = is_candidate[i + 2] = True
    candidates = np.flatnonzero(is_candidate)
    if candidates.size == 0:
        return -1, 0.0, False
    unrest, falls = unrest_without(nprocs, runtime, candidates, is_paper)
    calmest = int(np.argmin(unrest))
    place = candidates[calmest]
    fired = -1
    for i in range(max(place - 2, 0), min(place, rise.size)):
        if excess[i] > 1e-9 and (fired < 0 or rise[i] > rise[fired]):
            fired = i
    change = rise[fired]
    if is_paper:
        R = paper_metric(nprocs[fired : fired + 3], runtime[fired : fired + 3])
        change = R[1] - R[0]
    return int(place), change, bool(falls[calmest])


@compiled(inline="always")
def anomalies_of(
    nprocs: FloatArray, runtime: FloatArray, is_paper: bool
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return where phases start, and anomalous points with their deviations, ascending.

    Points need four observations, steps five (sections VIII.B and VIII.C). A candidate whose
    removal leaves no falling work is a point; otherwise the curve has a step, and both sides
    are searched again.

    Parameters
    ----------
    nprocs : numpy.ndarray of float, shape (m,)
        Ascending and distinct.
    runtime : numpy.ndarray of float, shape (m,)
    is_paper : bool
        Test the paper's R instead of the logarithm of work a doubling.
    """
    number = nprocs.size
    starts, parts = np.zeros(number, np.int64), [(0, number)]
    points, deviations, found, phases = np.zeros(4 * number, np.int64), np.zeros(4 * number), 0, 0
    while len(parts) > 0:
        begin, end = parts.pop()
        kept, most, is_split = np.arange(begin, end), (end - begin) // 4, False
        for _ in range(most + 1):
            n, t = nprocs[kept], runtime[kept]
            if kept.size < 4:
                break
            place, change, falls = suspect(n, t, is_paper)
            if place < 0:
                break
            if falls and kept.size >= 5:
                work = n * t
                cut = kept[int(np.argmax(work[:-1] / work[1:])) + 1]
                parts.append((cut, end))
                parts.append((begin, cut))
                is_split = True
                break
            if falls or most == 0:
                break
            gained = change if is_paper else np.expm1(min(change, 700.0))
            rank = found
            while rank > 0 and points[rank - 1] > kept[place]:
                points[rank], deviations[rank] = points[rank - 1], deviations[rank - 1]
                rank -= 1
            points[rank], deviations[rank] = kept[place], gained / SENSITIVITY
            found, most = found + 1, most - 1
            kept = kept[kept != kept[place]]
        if not is_split:
            starts[phases] = begin
            phases += 1
    return starts[:phases], points[:found], deviations[:found]


@dataclass(frozen=True)
class AnomalousPoint:
    """An observation off the trend of the others.

    Attributes
    ----------
    place : int
        Index among the observations.
    nprocs : float
    deviation : float
        Magnitude D, in units of the sensitivity.
    """

    place: int
    nprocs: float
    deviation: float


@compiled
def jumping(nprocs: FloatArray, runtime: FloatArray) -> IntArray:
    """Return the places of inner observations whose work lies below both neighbours' trend.

    The work there is less, by more than the sensitivity, than interpolation
    between the neighbours in log n says.
    """
    log_n, log_work = np.log(nprocs), np.log(nprocs * runtime)
    stands_out = np.zeros(nprocs.size, np.bool_)
    for i in range(1, nprocs.size - 1):
        share = (log_n[i] - log_n[i - 1]) / (log_n[i + 1] - log_n[i - 1])
        trend = log_work[i - 1] + share * (log_work[i + 1] - log_work[i - 1])
        stands_out[i] = log_work[i] < trend - THRESHOLD
    return np.flatnonzero(stands_out)
