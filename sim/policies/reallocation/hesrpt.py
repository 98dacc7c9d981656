"""heSRPT (Berg, Vesilo & Harchol-Balter, Performance Evaluation 2020)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.errors import BETWEEN_0_AND_1
from sim.policies.passes.malleable import Claims
from sim.policies.reallocation.beliefs import BelievedCurves, equal_counts
from sim.policies.reallocation.rule import Reallocation
from sim.policies.reallocation.shares import apportion
from sim.policies.ties import ranks

_LEAST_EXPONENT, _LARGEST_EXPONENT = 0.01, 0.99


@compiled
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
    order = np.argsort(ranks(-work), kind="mergesort")
    weight = np.ones(work.size) if weights is None else weights[order]
    cumulated = np.cumsum(weight)
    powers = np.zeros(work.size + 1)
    powers[1:] = (cumulated / cumulated[-1]) ** (1.0 / (1.0 - exponent))
    shares = np.empty(work.size)
    shares[order] = np.diff(powers)
    return shares


@compiled
def _mean_exponent(claims: Claims) -> float:
    """Return the mean of ln S(k)/ln k at an equal share, within each job's limits."""
    counts = equal_counts(claims.largest, claims.total)
    several = counts > 1
    if not several.any():
        return 0.5
    exponents = -np.log(claims.relative_time[several]) / np.log(counts[several])
    return min(max(float(exponents.mean()), _LEAST_EXPONENT), _LARGEST_EXPONENT)


@compiled
def shares_by_work(claims: Claims) -> IntArray:
    """Return the whole shares nearest to heSRPT's.

    Parameters
    ----------
    claims : Claims

    Returns
    -------
    numpy.ndarray of int, shape (n,)
    """
    if claims.least.size == 0:
        return claims.least
    exponent, counts_slowdown = claims.parameters[0], claims.parameters[1] > 0
    if exponent == 0:
        exponent = _mean_exponent(claims)
    weights = 1.0 / claims.curve_values[:, 0] if counts_slowdown else np.ones(claims.work.size)
    shares = np.maximum(thetas(claims.work, exponent, weights), 1e-12)
    return apportion(shares, claims.total, claims.least, claims.largest)


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

    shares = staticmethod(shares_by_work)
    defers = reads_beliefs = weighs_work = True

    exponent: float | None = None
    objective: Literal["response", "slowdown"] = "response"

    def __post_init__(self) -> None:
        super().__post_init__()
        BETWEEN_0_AND_1.check_or_null(exponent=self.exponent)

    @property
    def parameters(self) -> tuple[float, ...]:
        """The exponent, 0 if it is read off, and whether slowdowns count."""
        return (self.exponent or 0.0, self.objective == "slowdown")

    def read_off(self, beliefs: BelievedCurves, job: int) -> FloatArray:
        """Return the work of a job where slowdowns count, seconds on one processor, shape (1,)."""
        return np.array([beliefs.serial_time(job)] if self.objective == "slowdown" else [])
