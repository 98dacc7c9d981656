"""Schedule-time molding: the earliest predicted end, chosen when a job could start."""

from dataclasses import dataclass

from sim.errors import AT_LEAST_0
from sim.policies.molding.base import Candidates, OpenCounts
from sim.policies.molding.candidates import EVERYTHING, Narrowing, OpenQueue
from sim.state.view import View


@dataclass(frozen=True, kw_only=True)
class BestTurnaround(OpenCounts):
    """Keep the count open and take the one with the earliest predicted end.

    The greedy scheme of Srinivasan, Subramani, Kettimuthu, Holenarsipur &
    Sadayappan (HiPC 2002), our reading: with EASY backfilling (one reservation)
    it is their aggressive, with conservative backfilling their conservative
    variant.

    Parameters
    ----------
    lazy : bool
        False (eager) takes the count with the earliest end. True delays: the
        end that is first predicted for a job is its promise, and as soon as a
        count can start now and keep the promise, the least such count is taken.
    slack : float
        With `lazy`, how much longer than first predicted a job may take to end,
        as a share of the time until then; at least 0.
    """

    lazy: bool = False
    slack: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        AT_LEAST_0.check(slack=self.slack)

    def open(self, view: View) -> Candidates:
        """Begin a run."""
        candidates = AllCandidates(view, self.advice, self.counts)
        candidates.slack = self.slack if self.lazy else -1.0
        candidates.looks_ahead = self.lazy
        return candidates


class AllCandidates(Candidates):
    """Allows everything."""

    @property
    def narrowing(self) -> Narrowing:
        """How it narrows, for compiled passes."""
        return Narrowing(EVERYTHING)

    def narrow(self, queue: OpenQueue) -> None:
        """Allow every job all its candidates."""
        queue.allow_all()
