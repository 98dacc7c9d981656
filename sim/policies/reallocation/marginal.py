"""Processors go where the predictor says that the next one helps most."""

from typing import Literal

import numpy as np

from predictors.base import FloatArray, IntArray
from sim.policies.reallocation.base import Reallocation
from sim.policies.reallocation.beliefs import Beliefs
from sim.policies.reallocation.costs import CostModel
from sim.policies.reallocation.sharing import Members, PlainSharing
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

    def __init__(
        self,
        cost: CostModel | None = None,
        gain_factor: float = 1.0,
        distance: float = 0.0,
        reclaim: bool = True,
        weight: Literal["none", "work"] = "none",
        minimum: float = 0.1,
    ) -> None:
        super().__init__(cost, gain_factor, distance, reclaim)
        if weight not in ("none", "work"):
            raise ValueError(f"weight must be 'none' or 'work', got {weight!r}")
        if not 0 <= minimum <= 1:
            raise ValueError(f"minimum must be in [0, 1], got {minimum}")
        self.weight = weight
        self.minimum = minimum

    def sharing(self, beliefs: Beliefs) -> "MarginalSharing":
        """Return the rule at work in a new run."""
        return MarginalSharing(beliefs, self.weight, self.minimum)


class MarginalSharing(PlainSharing):
    """Shares by marginal gain.

    Parameters
    ----------
    beliefs : Beliefs
    weight : {"none", "work"}
    minimum : float
    """

    def __init__(self, beliefs: Beliefs, weight: str, minimum: float) -> None:
        super().__init__(beliefs)
        self._weight = weight
        self._minimum = minimum
        self._gains: dict[int, tuple[FloatArray, FloatArray]] = {}

    def gains(self, job: int) -> FloatArray:
        """Return the predicted gain in speedup by each processor worth having, falling."""
        table = self.beliefs.table(job)
        known = self._gains.get(job)
        if known is None or known[0] is not table:
            gains = concave_gains(1.0 / table[1:])
            enough = int(np.searchsorted(-gains, -self._minimum - TIE, side="left"))
            known = self._gains[job] = (table, gains[:enough])
        return known[1]

    def share(self, members: Members, total: int) -> IntArray:
        """Return the counts that the largest gains lead to."""
        shares = members.least.copy()
        left = total - int(shares.sum())
        if left <= 0:
            return shares
        weights = np.ones(len(members))
        if self._weight == "work":
            weights = 1.0 / np.maximum(self.work_left(members), 1e-12)
        least, largest = members.least.tolist(), members.largest.tolist()
        values, sizes = [], []
        for place, job in enumerate(members.job):
            gains = self.gains(job)[least[place] : min(largest[place], least[place] + left)]
            values.append(gains if self._weight == "none" else gains * weights[place])
            sizes.append(gains.size)
        value, owner = np.concatenate(values), np.repeat(np.arange(len(members)), sizes)
        count = np.concatenate([np.arange(size) + n for n, size in zip(least, sizes, strict=True)])
        chosen = owner[np.lexsort((owner, count, ranks(-value)))[:left]]
        found: IntArray = shares + np.bincount(chosen, minlength=len(members))
        return found
