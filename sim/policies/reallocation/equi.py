"""Rules that need little or no prediction: EQUI, DEQ and greedy expansion."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from predictors.base import IntArray
from predictors.compiling import compiled
from sim.errors import check_choice
from sim.policies.allocation.rigid import Request
from sim.policies.backfill.easy import EasyScheduler
from sim.policies.base import SHARING
from sim.policies.reallocation.beliefs import Beliefs, Members
from sim.policies.reallocation.rule import ReallocatingScheduler, Reallocation
from sim.policies.reallocation.shares import apportion, hand_out, make_room
from sim.policies.ties import TIE, first_least


@compiled(makes_arrays=True)
def equal_shares(total: int, least: IntArray, largest: IntArray) -> IntArray:
    """Return the same for all, as far as limits allow; what whole shares leave goes to the first.

    Parameters
    ----------
    total : int
        Processors to share out.
    least, largest : numpy.ndarray of int, shape (n,)

    Returns
    -------
    numpy.ndarray of int, shape (n,)
    """
    return apportion(np.ones(least.size), total, least, largest)


@dataclass(frozen=True)
class Equipartition(Reallocation):
    """EQUI (Tucker & Gupta 1989): all malleable jobs get the same, as far as each can use it.

    Whoever can use less gets that and leaves the rest to the others; processors
    that are left over by whole shares go to the oldest jobs. Nothing is
    predicted. The parameters are those of `Reallocation`.
    """

    def share(self, beliefs: Beliefs, members: Members, total: int) -> IntArray:
        """Return equal shares, clipped to what each may hold."""
        return equal_shares(total, members.least, members.largest)

    def compiled(self, scheduler: ReallocatingScheduler) -> int | None:
        """Return `SHARING` where passes are those of `equal_passes`.

        They are under EASY in the order of arrival, where changes are free, every count
        between the least and the largest of a malleable job is feasible, the predictor
        does not learn, and nobody is kept to the request: there are curves, or nobody waits
        while a processor is free.
        """
        inner, view = scheduler.inner, scheduler.view
        is_free = self.cost.free and self.cost.start(1) == self.distance == 0 and self.reclaim
        if (
            type(self) is not Equipartition
            or not is_free
            or view.learns
            or not (isinstance(inner, EasyScheduler) and inner.is_plain)
            or inner.strict
            or inner.rule["shortest"][0]
            or inner.reservations != 1
            or inner.anew is not None
            or type(scheduler.allocation) is not Request
        ):
            return None
        return SHARING


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

    parallelism: Literal["average", "useful"] = "average"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(("average", "useful"), parallelism=self.parallelism)

    def share(self, beliefs: Beliefs, members: Members, total: int) -> IntArray:
        """Return equal shares, clipped to what each may hold and can use."""
        usable = np.array([beliefs.read_off(job, self._usable) for job in members.job])
        largest = np.clip(usable, members.least, members.largest)
        return apportion(np.ones(len(members)), total, members.least, largest)

    def _usable(self, beliefs: Beliefs, job: int) -> int:
        """Return how many processors a job is believed to put to use."""
        table = beliefs.table(job)
        if self.parallelism == "average":
            return max(int(1.0 / float(table[1:].min()) * (1 + TIE) + 0.5), 1)
        return int(first_least(table))


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

    victims: Literal["oldest", "youngest"] = "oldest"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(("oldest", "youngest"), victims=self.victims)

    def share(self, beliefs: Beliefs, members: Members, total: int) -> IntArray:
        """Return what each holds, less or more as there is need or room."""
        shares = np.maximum(members.held, members.least)
        running = [k for k, run in enumerate(members.run) if run is not None]
        starting = [k for k, run in enumerate(members.run) if run is None]
        victims = running if self.victims == "oldest" else running[::-1]
        make_room(shares, members.least, total, victims)
        hand_out(shares, members.largest, total, [*starting, *running])
        return shares
