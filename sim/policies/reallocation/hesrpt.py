"""heSRPT (Berg, Vesilo & Harchol-Balter, Performance Evaluation 2020)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from predictors.base import FloatArray, IntArray
from sim.errors import BETWEEN_0_AND_1, check_choice
from sim.policies.reallocation.beliefs import Beliefs, Members
from sim.policies.reallocation.rule import Reallocation
from sim.policies.reallocation.shares import apportion
from sim.policies.ties import ranks

_EXPONENTS = (0.01, 0.99)


def thetas(work: FloatArray, exponent: float, weights: FloatArray | None = None) -> FloatArray:
    """Return the share of the machine of each job, for jobs that speed up as k^p.

    The i-th largest of m jobs gets (W_i/W_m)^(1/(1-p)) - (W_(i-1)/W_m)^(1/(1-p)),
    with W_i the cumulated weight of the i largest; weights of 1 minimise the
    total response time, those of 1/(original size) the mean slowdown.

    Parameters
    ----------
    work : numpy.ndarray of float, shape (n,)
        Remaining sizes.
    exponent : float
        p, in (0, 1).
    weights : numpy.ndarray of float, shape (n,), optional

    Examples
    --------
    >>> (9 * thetas(np.array([1.0, 7.0, 3.0]), 0.5)).round(12).tolist()
    [5.0, 1.0, 3.0]
    """
    order = np.argsort(ranks(-work), kind="stable")
    weight = np.ones(work.size) if weights is None else weights[order]
    cumulated = np.cumsum(weight)
    powers = np.concatenate([[0.0], (cumulated / cumulated[-1]) ** (1.0 / (1.0 - exponent))])
    shares = np.empty(work.size)
    shares[order] = np.diff(powers)
    return shares


@dataclass(frozen=True)
class HeSrpt(Reallocation):
    """heSRPT: the shorter the remaining work, the larger the share.

    Optimal for jobs that are all there, speed up as k^p and have no limits; with
    arrivals ("adaptive heSRPT") shares are computed anew and nothing is proved.
    Shares are clipped to what each job may hold, the rest goes on by weight, and
    the largest remainders are rounded up; a job whose share rounds to nothing
    waits. The other parameters are those of `Reallocation`.

    Parameters
    ----------
    cost, gain_factor, distance, reclaim
        See `Reallocation`.
    exponent : float or None
        p; None reads it off the believed curves: the mean over jobs of
        ln S(k)/ln k at an equal share k. This is our reading for unlike jobs.
    objective : {"response", "slowdown"}
        What the shares minimise.
    """

    defers = True

    exponent: float | None = None
    objective: Literal["response", "slowdown"] = "response"

    def __post_init__(self) -> None:
        super().__post_init__()
        BETWEEN_0_AND_1.check_or_null(exponent=self.exponent)
        check_choice(("response", "slowdown"), objective=self.objective)

    def share(self, beliefs: Beliefs, members: Members, total: int) -> IntArray:
        """Return the whole shares nearest to heSRPT's."""
        weights = None
        if self.objective == "slowdown":
            serial = [beliefs.serial(job) for job in members.job]
            weights = 1.0 / np.array(serial)
        exponent = self.exponent or _mean_exponent(beliefs, members, total)
        shares = thetas(beliefs.work_left(members), exponent, weights)
        return apportion(np.maximum(shares, 1e-12), total, members.least, members.largest)


def _mean_exponent(beliefs: Beliefs, members: Members, total: int) -> float:
    """Return the mean of ln S(k)/ln k at an equal share, within each job's limits."""
    equal = max(total // len(members), 2)
    counts = np.minimum(members.largest, equal)
    relative = beliefs.relative
    times = [relative(j, n) for j, n in zip(members.job, counts.tolist(), strict=True)]
    several = counts > 1
    if not several.any():
        return 0.5
    exponents = -np.log(np.array(times)[several]) / np.log(counts[several])
    return min(max(float(exponents.mean()), _EXPONENTS[0]), _EXPONENTS[1])
