"""A policy of one's own: widest jobs first, each on at most part of the machine."""

import numpy as np

from sim import Easy, Policy, View
from sim.engine.protocols import Scheduler
from sim.policies.base import Outlook


class WidestFirst:
    """Most processors first, ties by arrival."""

    recomputed = False

    def keys(
        self, now: float, submit: np.ndarray, processors: np.ndarray, runtime: np.ndarray
    ) -> np.ndarray:
        """Return a key a job, the smallest first."""
        return -processors.astype(float)


class PartOfTheMachine:
    """The request, at most a share of the machine."""

    def __init__(self, share: float) -> None:
        self.share = share

    def choose(self, job: int, view: View, outlook: Outlook) -> int:
        """Return the count for a job that has just arrived."""
        counts = view.counts(job)
        most = min(view.requested_processors[job], int(self.share * view.processors))
        fitting = counts[counts <= most]
        return int(fitting[-1]) if fitting.size else int(counts[0])


class Rule:
    """EASY backfilling of widest jobs first.

    Parameters
    ----------
    share : float
        Of the machine that a job may have, above 0 and at most 1.
    """

    def __init__(self, share: float) -> None:
        if not 0 < share <= 1:
            raise ValueError(f"share={share}: must lie above 0 and be at most 1")
        self.share = share

    def begin(self, view: View) -> Scheduler:
        """Begin a run."""
        return Policy(WidestFirst(), Easy(), PartOfTheMachine(self.share)).begin(view)
