"""Minimum, preferred and average pools (Posner, Hupfeld & Finnerty 2023; Zojer et al. 2026)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from predictors.base import IntArray
from sim.errors import check_choice
from sim.policies.reallocation.beliefs import Beliefs, Members
from sim.policies.reallocation.rule import Reallocation
from sim.policies.reallocation.shares import hand_out, level, make_room
from sim.policies.ties import TIE


@dataclass(frozen=True)
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
        these; all within its feasible range, and without a curve the minimum and the
        preferred count at most its request.
    """

    strategy: Literal["min", "pref", "average"] = "average"
    min_efficiency: float = 0.95
    preferred_efficiency: float = 0.8
    max_efficiency: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(("min", "pref", "average"), strategy=self.strategy)
        least, preferred, largest = self._efficiencies
        if not 1 >= least >= preferred >= largest >= 0:
            raise ValueError(
                f"min_efficiency={least}, preferred_efficiency={preferred}, "
                f"max_efficiency={largest}: none may be above the one before it; all within 0 to 1"
            )

    @property
    def _efficiencies(self) -> tuple[float, float, float]:
        return self.min_efficiency, self.preferred_efficiency, self.max_efficiency

    def counts(self, beliefs: Beliefs, job: int) -> tuple[int, int, int]:
        """Return a job's minimum, preferred and maximum count."""
        return beliefs.read_off(job, self._read_off)

    def _read_off(self, beliefs: Beliefs, job: int) -> tuple[int, int, int]:
        least, largest = beliefs.view.extremes(job)
        table = beliefs.table(job)
        efficiency = 1.0 / (table[1:] * np.arange(1, table.size))
        found = []
        for bound in self._efficiencies:
            enough = np.flatnonzero(efficiency > bound * (1 + TIE))
            count = int(enough[-1]) + 1 if enough.size else 1
            found.append(min(max(count, least), largest))
        low, preferred = (max(beliefs.within_request(job, n), least) for n in found[:2])
        return low, preferred, found[2]

    def queue_count(self, beliefs: Beliefs, job: int) -> int:
        """Return the largest feasible count up to the job's minimum."""
        return beliefs.feasible(job, self.counts(beliefs, job)[0])

    def share(self, beliefs: Beliefs, members: Members, total: int) -> IntArray:
        """Return what each holds after shrinking for starts and expanding into the rest."""
        shares = np.maximum(members.held, members.least)
        left = total - int(shares.sum())
        if left == 0 and (self.strategy != "pref" or members.held.all()):
            return shares
        found = [self.counts(beliefs, job) for job in members.job]
        most = np.array([counts[2] for counts in found])
        largest = np.minimum(np.maximum(most, members.least), members.largest)
        if self.strategy == "average":
            level(shares, members.least, np.maximum(largest, shares), total)
        elif self.strategy == "min":
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
            Pools._shrink(shares, preferred, members.least, total)
            room = total - int(shares.sum())
        if room < 0:
            Pools._shrink(shares, preferred, members.least, total)

    @staticmethod
    def _shrink(shares: IntArray, preferred: IntArray, least: IntArray, total: int) -> None:
        """Take from those most above their preferred count, then from those above their least."""
        above = np.argsort(preferred - shares, kind="stable").tolist()
        make_room(shares, np.minimum(shares, preferred), total, above)
        most = np.argsort(least - shares, kind="stable").tolist()
        make_room(shares, np.minimum(shares, least), total, most)
