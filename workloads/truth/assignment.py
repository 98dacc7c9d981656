"""Which jobs belong to which application: popularity by Zipf's law, quotas, the nearest class."""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
import pandas as pd

from workloads.base import FloatArray, IntArray


def zipf_shares(applications: int, popularity: float) -> FloatArray:
    """Return the share of jobs of each application, proportional to rank^-popularity.

    Examples
    --------
    >>> zipf_shares(3, 1.0).round(3).tolist()
    [0.545, 0.273, 0.182]
    """
    weights = np.arange(1, applications + 1, dtype=float) ** -popularity
    return np.asarray(weights / weights.sum(), float)


def pick_applications(uniforms: FloatArray, shares: FloatArray) -> IntArray:
    """Return an application for each uniform number, with chances `shares`."""
    ends = np.cumsum(shares)
    picked = np.searchsorted(ends / ends[-1], uniforms, side="right")
    return np.minimum(picked, len(shares) - 1).astype(np.int64)


def median_by(values: FloatArray, application: IntArray, applications: int) -> FloatArray:
    """Return the median of `values` for each application, NaN where it has none."""
    medians = pd.Series(values).groupby(application).median()
    return np.asarray(medians.reindex(range(applications)), np.float64)


def class_quotas(jobs: int, shares: FloatArray, sizes: int) -> IntArray:
    """Return how many jobs each class takes: share of its application / sizes, rounded.

    Rounding is by largest remainders, so that the quotas add up to `jobs`.

    Returns
    -------
    numpy.ndarray of int, shape (applications * sizes,)
        Classes of the first application first.
    """
    exact = np.repeat(jobs * shares / sizes, sizes)
    quotas = np.floor(exact).astype(np.int64)
    left = jobs - int(quotas.sum())
    remainders = np.round(exact - quotas, 9)
    quotas[np.argsort(-remainders, kind="stable")[:left]] += 1
    return quotas


@dataclass
class _Ranking:
    """Classes sorted by predicted runtime at one count, full ones skipped from both sides."""

    runtime: list[float]
    order: list[int]
    down: list[int]
    up: list[int]

    @classmethod
    def of(cls, log_runtimes: FloatArray) -> "_Ranking":
        order = np.argsort(log_runtimes, kind="stable")
        size = len(order)
        return cls(
            log_runtimes[order].tolist(),
            order.tolist(),
            list(range(size + 1)),
            list(range(size + 2)),
        )

    def nearest(self, log_runtime: float, free: list[int]) -> int:
        """Return the class with free quota nearest to `log_runtime`; the shorter of a tie."""
        start = bisect_left(self.runtime, log_runtime)
        below = self._skip(self.down, start, -1, free) - 1
        above = self._skip(self.up, start + 1, 1, free) - 1
        if below < 0:
            return self.order[above]
        if above >= len(self.order):
            return self.order[below]
        nearer_below = log_runtime - self.runtime[below] <= self.runtime[above] - log_runtime
        return self.order[below if nearer_below else above]

    def _skip(self, jump: list[int], place: int, step: int, free: list[int]) -> int:
        """Return the next place with free quota from `place` on; places count from 1."""
        path = []
        last = len(self.order)
        while 1 <= place <= last and not free[self.order[place - 1]]:
            path.append(place)
            place = jump[place] if jump[place] != place else place + step
        for passed in path:
            jump[passed] = place
        return place


def assign_classes(
    log_runtime: FloatArray, count_index: IntArray, predicted: FloatArray, quotas: IntArray
) -> IntArray:
    """Give each job, in the order given, to the class with free quota that predicts it best.

    Parameters
    ----------
    log_runtime : numpy.ndarray of float, shape (jobs,)
        Logarithms of the recorded runtimes.
    count_index : numpy.ndarray of int, shape (jobs,)
        Which row of `predicted` belongs to the job's processor count.
    predicted : numpy.ndarray of float, shape (counts, classes)
        Logarithms of the runtimes that each class predicts at each count.
    quotas : numpy.ndarray of int, shape (classes,)
        How many jobs each class takes; at least as many as there are jobs.

    Returns
    -------
    numpy.ndarray of int, shape (jobs,)
        Class of each job.

    Notes
    -----
    Classes are ranked once for each count; those without free quota are
    skipped by path compression, so a job costs the logarithm of the number of
    classes.

    Examples
    --------
    >>> log_runtime, one_count = np.log([10.0, 11.0, 90.0]), np.zeros(3, int)
    >>> assign_classes(log_runtime, one_count, np.log([[10.0, 100.0]]), np.array([1, 2])).tolist()
    [0, 1, 1]
    """
    rankings = [_Ranking.of(row) for row in predicted]
    free = quotas.tolist()
    assigned = []
    for logarithm, index in zip(log_runtime.tolist(), count_index.tolist(), strict=True):
        chosen = rankings[index].nearest(logarithm, free)
        free[chosen] -= 1
        assigned.append(chosen)
    return np.array(assigned, np.int64)
