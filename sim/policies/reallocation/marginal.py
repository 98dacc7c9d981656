"""Processors go where the predictor says that the next one helps most."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from predictors.base import FloatArray, IntArray
from sim.errors import SHARE, check_choice
from sim.policies.reallocation.beliefs import Beliefs, Members
from sim.policies.reallocation.rule import Reallocation
from sim.policies.ties import TIE, ranks


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
    gains: FloatArray = np.diff(np.interp(np.arange(best.size), hull, best[hull]))
    return gains


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

    weight: Literal["none", "work"] = "none"
    minimum: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(("none", "work"), weight=self.weight)
        SHARE.check(minimum=self.minimum)

    def _gains(self, beliefs: Beliefs, job: int) -> FloatArray:
        """Return the predicted gain in speedup by each processor worth having, falling."""
        gains = concave_gains(1.0 / beliefs.table(job)[1:])
        return gains[: int(np.searchsorted(-gains, -self.minimum - TIE, side="left"))]

    def share(self, beliefs: Beliefs, members: Members, total: int) -> IntArray:
        """Return the counts that the largest gains lead to."""
        shares = members.least.copy()
        left = total - int(shares.sum())
        if left <= 0:
            return shares
        weights = np.ones(len(members))
        if self.weight == "work":
            weights = 1.0 / np.maximum(beliefs.work_left(members), 1e-12)
        least, largest = members.least.tolist(), members.largest.tolist()
        values, sizes = [], []
        for place, job in enumerate(members.job):
            most = min(largest[place], least[place] + left)
            gains = beliefs.read_off(job, self._gains)[least[place] : most]
            values.append(gains if self.weight == "none" else gains * weights[place])
            sizes.append(gains.size)
        value, owner = np.concatenate(values), np.repeat(np.arange(len(members)), sizes)
        count = np.concatenate([np.arange(size) + n for n, size in zip(least, sizes, strict=True)])
        chosen = owner[np.lexsort((owner, count, ranks(-value)))[:left]]
        found: IntArray = shares + np.bincount(chosen, minlength=len(members))
        return found
