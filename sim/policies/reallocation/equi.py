"""Rules that need little or no prediction: EQUI, DEQ and greedy expansion."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.policies.passes.malleable import Claims
from sim.policies.reallocation.beliefs import BelievedCurves
from sim.policies.reallocation.rule import Reallocation
from sim.policies.reallocation.shares import hand_out, in_equal_parts, shrink_to_fit
from sim.policies.ties import TIE, first_least


@compiled
def equal_shares(claims: Claims) -> IntArray:
    """Return the same for all, as far as limits allow; what whole shares leave goes to the first.

    Parameters
    ----------
    claims : Claims

    Returns
    -------
    numpy.ndarray of int, shape (n,)
    """
    return in_equal_parts(claims.total, claims.least, claims.largest)


@compiled
def usable_shares(claims: Claims) -> IntArray:
    """Return equal shares, clipped to what each may hold and can use; see `equal_shares`."""
    usable = np.maximum(claims.curve_values[:, 0].astype(np.int64), claims.least)
    largest = np.minimum(usable, claims.largest)
    return in_equal_parts(claims.total, claims.least, largest)


@compiled
def expanded(claims: Claims) -> IntArray:
    """Return what each holds, less or more as there is need or room; see `equal_shares`."""
    shares = np.maximum(claims.held, claims.least)
    running, starting = (claims.held > 0).nonzero()[0], (claims.held == 0).nonzero()[0]
    oldest = np.arange(running.size) if claims.parameters[0] == 0 else np.arange(running.size)[::-1]
    shrink_to_fit(shares, claims.least, claims.total, running[oldest])
    hand_out(shares, claims.largest, claims.total, starting)
    hand_out(shares, claims.largest, claims.total, running)
    return shares


@dataclass(frozen=True)
class Equipartition(Reallocation):
    """EQUI (Tucker & Gupta 1989): all malleable jobs get the same, as far as each can use it.

    Whoever can use less gets that and leaves the rest to the others; processors
    that are left over by whole shares go to the oldest jobs. Nothing is
    predicted. The parameters are those of `Reallocation`.
    """

    shares = staticmethod(equal_shares)


@dataclass(frozen=True)
class DynamicEquipartition(Reallocation):
    """DEQ (McCann, Vaswani & Zahorjan 1993): EQUI up to each job's believed parallelism.

    Parameters
    ----------
    cost, gain_factor, distance, reclaim
        See `Reallocation`.
    parallelism : {"average", "useful"}
        A job can use its average parallelism, which is the largest believed
        speedup, rounded; or every processor that is believed to shorten it.
    """

    shares = staticmethod(usable_shares)
    reads_beliefs = True

    parallelism: Literal["average", "useful"] = "average"

    def read_off(self, beliefs: BelievedCurves, job: int) -> FloatArray:
        """Return how many processors a job is believed to put to use, shape (1,)."""
        table = beliefs.table(job)
        if self.parallelism == "average":
            return np.array([max(int(1.0 / float(table[1:].min()) * (1 + TIE) + 0.5), 1.0)])
        return np.array([float(first_least(table))])


@dataclass(frozen=True)
class GreedyExpansion(Reallocation):
    """Whoever starts takes what is free, then the oldest grow; for a start the oldest shrink.

    After ElastiSim's example and Utrera et al. (2012).

    Parameters
    ----------
    cost, gain_factor, distance, reclaim
        See `Reallocation`.
    victims : {"oldest", "youngest"}
        Who shrinks first.
    """

    shares = staticmethod(expanded)

    victims: Literal["oldest", "youngest"] = "oldest"

    @property
    def parameters(self) -> tuple[float, ...]:
        """Whether the youngest shrink first."""
        return (self.victims == "youngest",)
