"""Minimum, preferred and average pools (Posner, Hupfeld & Finnerty 2023; Zojer et al. 2026)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.errors import SHARE, between
from sim.policies.passes.malleable import Claims
from sim.policies.reallocation.beliefs import BelievedCurves
from sim.policies.reallocation.rule import Reallocation
from sim.policies.reallocation.shares import hand_out, level, shrink_to_fit
from sim.policies.ties import TIE

STRATEGIES = "min", "pref", "average"


@compiled
def pooled(claims: Claims) -> IntArray:
    """Return what each holds after shrinking for starts and expanding into the rest.

    Parameters
    ----------
    claims : Claims
        A job's curve values are its minimum, preferred and maximum count.

    Returns
    -------
    numpy.ndarray of int, shape (n,)
    """
    held, least, total, strategy = claims.held, claims.least, claims.total, claims.parameters[0]
    shares = np.maximum(held, least)
    if total == shares.sum() and (strategy != 1 or held.all()):
        return shares
    counts = claims.curve_values.astype(np.int64)
    largest = np.minimum(np.maximum(counts[:, 2], least), claims.largest)
    if strategy == 2:
        level(shares, least, np.maximum(largest, shares), total)
    elif strategy == 1:
        preferred = np.minimum(np.maximum(counts[:, 1], least), largest)
        _prefer(shares, preferred, claims)
        for limits in (preferred, largest):
            hand_out(shares, limits, total, (shares < limits).nonzero()[0])
    elif shares.sum() > total:
        shrink_to_fit(shares, least, total, np.argsort(least - shares, kind="mergesort"))
    else:
        hand_out(shares, largest, total, np.argsort(shares - least, kind="mergesort"))
    return shares


@compiled
def _prefer(shares: IntArray, preferred: IntArray, claims: Claims) -> None:
    """Let one starter after the other in, and shrink the others as far as that needs.

    Where its least count is free, a starter gets what is free up to its
    preferred count. Else it gets the preferred count if the others can keep
    theirs, and its least count if not.
    """
    starting = (claims.held == 0).nonzero()[0]
    wanted = shares[starting]
    shares[starting] = 0
    room = claims.total - shares.sum()
    for k in range(starting.size):
        place, least, most = starting[k], wanted[k], preferred[starting[k]]
        if room >= least:
            shares[place] = min(most, room)
            room -= shares[place]
            continue
        spare = np.maximum(shares - preferred, 0).sum()
        shares[place] = most if most <= room + spare else least
        _shrink(shares, preferred, claims)
        room = claims.total - shares.sum()
    if room < 0:
        _shrink(shares, preferred, claims)


@compiled
def _shrink(shares: IntArray, preferred: IntArray, claims: Claims) -> None:
    """Take from those most above their preferred count, then from those above their least."""
    for limits in (preferred, claims.least):
        above = np.argsort(limits - shares, kind="mergesort")
        shrink_to_fit(shares, np.minimum(shares, limits), claims.total, above)


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

    shares = staticmethod(pooled)
    reads_beliefs = True

    strategy: Literal["min", "pref", "average"] = "average"
    min_efficiency: float = 0.95
    preferred_efficiency: float = 0.8
    max_efficiency: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        least, preferred, largest = self._efficiencies
        SHARE.check(min_efficiency=least)
        between(0.0, least).check(preferred_efficiency=preferred)
        between(0.0, preferred).check(max_efficiency=largest)

    @property
    def _efficiencies(self) -> tuple[float, float, float]:
        return self.min_efficiency, self.preferred_efficiency, self.max_efficiency

    @property
    def parameters(self) -> tuple[float, ...]:
        """The place of the strategy."""
        return (STRATEGIES.index(self.strategy),)

    def read_off(self, beliefs: BelievedCurves, job: int) -> FloatArray:
        """Return a job's minimum, preferred and maximum count, shape (3,)."""
        least, largest = beliefs.view.extremes(job)
        table = beliefs.table(job)
        efficiency = 1.0 / (table[1:] * np.arange(1, table.size))
        found = []
        for bound in self._efficiencies:
            enough = np.flatnonzero(efficiency > bound * (1 + TIE))
            count = int(enough[-1]) + 1 if enough.size else 1
            found.append(min(max(count, least), largest))
        if request := beliefs.fallback_request(job):
            found[:2] = (max(min(count, request), least) for count in found[:2])
        return np.array(found, float)

    def start_count(self, beliefs: BelievedCurves, job: int) -> int:
        """Return the largest feasible count up to the job's minimum."""
        return beliefs.view._feasible.up_to(job, int(beliefs.read_off(job, self.read_off)[0]))
