"""Equal shares: EQUI (Tucker & Gupta 1989) and DEQ (McCann, Vaswani & Zahorjan 1993)."""

from typing import Literal

import numpy as np

from predictors.base import FloatArray, IntArray
from sim.policies.reallocation.apportion import apportion
from sim.policies.reallocation.base import Reallocation
from sim.policies.reallocation.beliefs import Beliefs
from sim.policies.reallocation.costs import CostModel
from sim.policies.reallocation.sharing import Members, PlainSharing
from sim.policies.ties import TIE, first_least


class Equipartition(Reallocation):
    """EQUI: all malleable jobs get the same, as far as each can use it.

    Whoever can use less gets that and leaves the rest to the others; processors
    that are left over by whole shares go to the oldest jobs. Nothing is
    predicted. The other parameters are those of `Reallocation`.
    """

    def sharing(self, beliefs: Beliefs) -> "EqualSharing":
        """Return the rule at work in a new run."""
        return EqualSharing(beliefs)


class EqualSharing(PlainSharing):
    """Equal shares up to each job's largest count."""

    def share(self, members: Members, total: int) -> IntArray:
        """Return equal shares, clipped to what each may hold."""
        return apportion(np.ones(len(members)), total, members.least, members.largest)


class DynamicEquipartition(Reallocation):
    """DEQ: EQUI up to the parallelism that each job is believed to have.

    Parameters
    ----------
    cost, gain_factor, distance, reclaim
        See `Reallocation`.
    parallelism : {"average", "useful"}
        A job can use its average parallelism, which is the largest believed
        speedup, rounded; or every processor that is believed to shorten it.
    """

    def __init__(
        self,
        cost: CostModel | None = None,
        gain_factor: float = 1.0,
        distance: float = 0.0,
        reclaim: bool = True,
        parallelism: Literal["average", "useful"] = "average",
    ) -> None:
        super().__init__(cost, gain_factor, distance, reclaim)
        if parallelism not in ("average", "useful"):
            raise ValueError(f"parallelism must be 'average' or 'useful', got {parallelism!r}")
        self.parallelism = parallelism

    def sharing(self, beliefs: Beliefs) -> "ParallelismSharing":
        """Return the rule at work in a new run."""
        return ParallelismSharing(beliefs, self.parallelism)


class ParallelismSharing(PlainSharing):
    """Equal shares up to each job's believed parallelism.

    Parameters
    ----------
    beliefs : Beliefs
    parallelism : {"average", "useful"}
    """

    def __init__(self, beliefs: Beliefs, parallelism: str) -> None:
        super().__init__(beliefs)
        self._parallelism = parallelism
        self._usable: dict[int, tuple[FloatArray, int]] = {}

    def usable(self, job: int) -> int:
        """Return how many processors a job is believed to put to use."""
        table = self.beliefs.table(job)
        known = self._usable.get(job)
        if known is None or known[0] is not table:
            known = self._usable[job] = (table, self._read_off(table))
        return known[1]

    def _read_off(self, table: FloatArray) -> int:
        shortest = float(table[1:].min())
        if self._parallelism == "average":
            return max(int(1.0 / shortest * (1 + TIE) + 0.5), 1)
        return int(first_least(table))

    def share(self, members: Members, total: int) -> IntArray:
        """Return equal shares, clipped to what each may hold and can use."""
        usable = np.array([self.usable(job) for job in members.job])
        largest = np.clip(usable, members.least, members.largest)
        return apportion(np.ones(len(members)), total, members.least, largest)
