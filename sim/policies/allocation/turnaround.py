"""Schedule-time molding: the earliest predicted end, chosen when a job could start."""

from dataclasses import dataclass

from sim.policies.molding.base import Candidates, OpenCounts
from sim.state.view import View


@dataclass(frozen=True, kw_only=True)
class BestTurnaround(OpenCounts):
    """Keep the count open and take the one with the earliest predicted end.

    The greedy scheme of Srinivasan, Subramani, Kettimuthu, Holenarsipur &
    Sadayappan (HiPC 2002), our reading: with EASY backfilling (one reservation)
    it is their aggressive, with conservative backfilling their conservative
    variant.
    """

    def open(self, view: View) -> Candidates:
        """Begin a run."""
        return Candidates(view, self)
