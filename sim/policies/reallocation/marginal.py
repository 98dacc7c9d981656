"""Processors go where the predictor says that the next one helps most."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.errors import SHARE
from sim.policies.passes.malleable import Claims
from sim.policies.reallocation.beliefs import BelievedCurves
from sim.policies.reallocation.rule import Reallocation
from sim.policies.ties import TIE, is_less


def concave_gains(speedup: FloatArray) -> FloatArray:
    """Return what each processor adds to the least concave curve above a speedup.

    Parameters
    ----------
    speedup : numpy.ndarray of float, shape (n,)
        From one processor on.

    Returns
    -------
    numpy.ndarray of float, shape (n,)
        Falling, never below 0; their sums up to k are the concave curve at k.

    Examples
    --------
    >>> concave_gains(np.array([1.0, 1.2, 2.6, 2.0])).round(9).tolist()
    [1.0, 0.8, 0.8, 0.0]
    """
    best = np.concatenate([[0.0], np.maximum.accumulate(speedup)])
    if (np.diff(best, 2) <= TIE).all():
        return np.diff(best)
    hull = [0]
    for k in range(1, best.size):
        while len(hull) > 1:
            before, last = hull[-2], hull[-1]
            rise = (best[last] - best[before]) * (k - before)
            if rise > (best[k] - best[before]) * (last - before):
                break
            hull.pop()
        hull.append(k)
    return np.asarray(np.diff(np.interp(np.arange(best.size), hull, best[hull])))


@compiled
def largest_gains(claims: Claims) -> IntArray:
    """Return the counts that the largest gains lead to.

    Parameters
    ----------
    claims : Claims
        A job's curve values are its gains by each processor worth having, from the first on; they
        count over its work left if the parameter says so.

    Returns
    -------
    numpy.ndarray of int, shape (n,)
    """
    gains, shares = claims.curve_values, claims.least.copy()
    most, equal = np.minimum(claims.largest, gains.shape[1]), np.inf
    weights = np.ones(shares.size)
    if claims.parameters[0] > 0:
        weights = 1.0 / np.maximum(claims.work, 1e-12)
    for _ in range(claims.total - shares.sum()):
        largest, best = -1.0, -1
        for k in range(shares.size):
            if shares[k] < most[k]:
                largest = max(largest, gains[k, shares[k]] * weights[k])
        if largest < 0.0:
            break
        if is_less(largest, equal):
            equal = largest
        for k in range(shares.size):
            is_next = shares[k] < most[k] and (best < 0 or shares[k] < shares[best])
            if is_next and not is_less(gains[k, shares[k]] * weights[k], equal):
                best = k
        shares[best] += 1
    return shares


@dataclass(frozen=True)
class MarginalEfficiency(Reallocation):
    """Each further processor goes to the job with the largest predicted gain in speedup.

    For the least concave curves above the predicted speedups this maximises the
    sum of the (weighted) speedups of all malleable jobs. Processors whose
    marginal efficiency would be below a bound stay free; of equal gains the smaller
    count comes first, then the older job, so that equal curves share alike.

    Parameters
    ----------
    cost, gain_factor, distance, reclaim
        See `Reallocation`.
    weight : {"none", "work"}
        Gains count as they are, or over the remaining work, which prefers the
        jobs that are nearly done.
    minimum : float
        Least marginal efficiency of a processor, in [0, 1].
    """

    shares = staticmethod(largest_gains)
    reads_beliefs = reads_curves = True

    weight: Literal["none", "work"] = "none"
    minimum: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        SHARE.check(minimum=self.minimum)

    @property
    def weighs_work(self) -> bool:
        """Whether gains count over the work that is left."""
        return self.weight == "work"

    @property
    def parameters(self) -> tuple[float, ...]:
        """Whether they do."""
        return (self.weighs_work,)

    def read_off(self, beliefs: BelievedCurves, job: int) -> FloatArray:
        """Return the predicted gain in speedup by each processor worth having, falling."""
        gains = concave_gains(1.0 / beliefs.table(job)[1:])
        return gains[: int(np.searchsorted(-gains, -self.minimum - TIE, side="left"))]
