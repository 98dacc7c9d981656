"""Schedule-time molding: the earliest predicted end, chosen when a job could start."""

from dataclasses import dataclass

from predictors.compiling import compiled
from sim.policies.molding.base import Candidates, OpenCounts, allow_all, may_start, mold_and_settle
from sim.policies.passes.memory import RuleMemory
from sim.state.run_state import RunState
from sim.state.view import View


@compiled
def decide(state: RunState, memory: RuleMemory) -> int:
    """Find who starts, on the count with the earliest end."""
    last = allow_all(state, memory) if may_start(state, memory) else 0
    return mold_and_settle(state, memory, last)


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
        return Candidates(view, self, decide)
