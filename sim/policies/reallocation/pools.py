"""Minimum, preferred and average pools (Posner, Hupfeld & Finnerty 2023; Zojer et al. 2026)."""

from typing import Literal

import numpy as np

from predictors.base import FloatArray, IntArray
from sim.policies.reallocation.base import Reallocation
from sim.policies.reallocation.beliefs import Beliefs
from sim.policies.reallocation.costs import CostModel
from sim.policies.reallocation.moves import hand_out, level, make_room
from sim.policies.reallocation.sharing import Members, PlainSharing
from sim.policies.ties import TIE

Strategy = Literal["min", "pref", "average"]


class Pools(Reallocation):
    """Jobs have a minimum, a preferred and a maximum count, read off believed efficiencies.

    Jobs start on the minimum. Running jobs shrink, down to their minimum, if
    that lets waiting jobs start, all or nothing for each of them: ``min`` takes
    from those most above their minimum, ``pref`` from those most above their
    preferred count, ``average`` processor by processor from the highest
    (n - min)/(max - min). What is still free is handed out: ``min`` to those
    least above their minimum first, up to the maximum, ``pref`` to all up to the
    preferred count and then up to the maximum, ``average`` processor by
    processor to the lowest rank.

    Changes take effect at once, so processors that are given up for a waiting
    job are its own at the same instant: agreement, steal agreement and common
    pool, which say who may use them until then, are the same rule here.

    Parameters
    ----------
    cost, gain_factor, distance, reclaim
        See `Reallocation`.
    strategy : {"min", "pref", "average"}
    min_efficiency, preferred_efficiency, max_efficiency : float
        A job's three counts are the largest whose believed efficiency is above
        these; all within its feasible range.
    """

    def __init__(
        self,
        cost: CostModel | None = None,
        gain_factor: float = 1.0,
        distance: float = 0.0,
        reclaim: bool = True,
        strategy: Strategy = "average",
        min_efficiency: float = 0.95,
        preferred_efficiency: float = 0.8,
        max_efficiency: float = 0.5,
    ) -> None:
        super().__init__(cost, gain_factor, distance, reclaim)
        if strategy not in ("min", "pref", "average"):
            raise ValueError(f"strategy must be 'min', 'pref' or 'average', got {strategy!r}")
        if not 1 >= min_efficiency >= preferred_efficiency >= max_efficiency >= 0:
            raise ValueError(
                "efficiencies must fall from min over preferred to max, within 1 and 0, got "
                f"{min_efficiency}, {preferred_efficiency}, {max_efficiency}"
            )
        self.strategy: Strategy = strategy
        self.efficiencies = (min_efficiency, preferred_efficiency, max_efficiency)

    def sharing(self, beliefs: Beliefs) -> "PoolSharing":
        """Return the rule at work in a new run."""
        return PoolSharing(beliefs, self.strategy, self.efficiencies)


class PoolSharing(PlainSharing):
    """Shrinks and expands between the three counts.

    Parameters
    ----------
    beliefs : Beliefs
    strategy : {"min", "pref", "average"}
    efficiencies : tuple of float
        Of the minimum, the preferred and the maximum count.
    """

    def __init__(
        self, beliefs: Beliefs, strategy: Strategy, efficiencies: tuple[float, float, float]
    ) -> None:
        super().__init__(beliefs)
        self._strategy = strategy
        self._efficiencies = efficiencies
        self._counts: dict[int, tuple[FloatArray, tuple[int, int, int]]] = {}

    def counts(self, job: int) -> tuple[int, int, int]:
        """Return a job's minimum, preferred and maximum count."""
        table = self.beliefs.table(job)
        known = self._counts.get(job)
        if known is None or known[0] is not table:
            known = self._counts[job] = (table, self._read_off(job, table))
        return known[1]

    def _all_counts(self, jobs: list[int]) -> list[tuple[int, int, int]]:
        """Return the counts of each job."""
        known, tables = self._counts, self.beliefs.tables
        found = []
        for job in jobs:
            entry = known.get(job)
            is_right = entry is not None and entry[0] is tables.get(job)
            found.append(entry[1] if entry is not None and is_right else self.counts(job))
        return found

    def _read_off(self, job: int, table: FloatArray) -> tuple[int, int, int]:
        least, largest = self.view.extremes(job)
        efficiency = 1.0 / (table[1:] * np.arange(1, table.size))
        found = []
        for bound in self._efficiencies:
            enough = np.flatnonzero(efficiency > bound * (1 + TIE))
            count = int(enough[-1]) + 1 if enough.size else 1
            found.append(min(max(count, least), largest))
        return found[0], found[1], found[2]

    def queue_count(self, job: int) -> int:
        """Return the largest feasible count up to the job's minimum."""
        wanted = self.counts(job)[0]
        special = self.view.special(job)
        if special is None:
            return wanted
        return int(special[max(int(np.searchsorted(special, wanted, side="right")) - 1, 0)])

    def share(self, members: Members, total: int) -> IntArray:
        """Return what each holds after shrinking for starts and expanding into the rest."""
        shares = np.maximum(members.held, members.least)
        left = total - int(shares.sum())
        if left == 0 and (self._strategy != "pref" or members.held.all()):
            return shares
        found = self._all_counts(members.job)
        most = np.array([counts[2] for counts in found])
        largest = np.minimum(np.maximum(most, members.least), members.largest)
        if self._strategy == "average":
            level(shares, members.least, np.maximum(largest, shares), total)
        elif self._strategy == "min":
            self._even_out(shares, largest, members, total)
        else:
            wanted = np.array([counts[1] for counts in found])
            preferred = np.minimum(np.maximum(wanted, members.least), largest)
            self._prefer(shares, preferred, members, total)
            for limits in (preferred, largest):
                hand_out(shares, limits, total, (shares < limits).nonzero()[0].tolist())
        return shares

    @staticmethod
    def _even_out(shares: IntArray, largest: IntArray, members: Members, total: int) -> None:
        """Take from those most above their least count, or give to those least above it."""
        above = shares - members.least
        if int(shares.sum()) > total:
            make_room(shares, members.least, total, np.argsort(-above, kind="stable").tolist())
        else:
            hand_out(shares, largest, total, above.argsort(kind="stable").tolist())

    @staticmethod
    def _prefer(shares: IntArray, preferred: IntArray, members: Members, total: int) -> None:
        """Let one starter after the other in, and shrink the others as far as that needs.

        Where its least count is free, a starter gets what is free up to its
        preferred count. Else it gets the preferred count if the others can keep
        theirs, and its least count if not.
        """
        starting = (members.held == 0).nonzero()[0]
        wanted = shares[starting]
        shares[starting] = 0
        room = total - int(shares.sum())
        for place, least in zip(starting.tolist(), wanted.tolist(), strict=True):
            most = preferred.item(place)
            if room >= least:
                shares[place] = min(most, room)
                room -= shares.item(place)
                continue
            spare = int(np.maximum(shares - preferred, 0).sum())
            shares[place] = most if most <= room + spare else least
            PoolSharing._shrink(shares, preferred, members.least, total)
            room = total - int(shares.sum())
        if room < 0:
            PoolSharing._shrink(shares, preferred, members.least, total)

    @staticmethod
    def _shrink(shares: IntArray, preferred: IntArray, least: IntArray, total: int) -> None:
        """Take from those most above their preferred count, then from those above their least."""
        above = np.argsort(preferred - shares, kind="stable").tolist()
        make_room(shares, np.minimum(shares, preferred), total, above)
        most = np.argsort(least - shares, kind="stable").tolist()
        make_room(shares, np.minimum(shares, least), total, most)
