"""Schedule-time molding: the earliest predicted end, chosen when a job could start."""

from collections.abc import Callable
from dataclasses import dataclass

from predictors.compiling import compiled
from sim.policies.molding.base import Candidates, OpenCounts
from sim.policies.molding.candidates import OpenMemory, allow_all
from sim.policies.passes.memory import RuleMemory
from sim.policies.passes.open_counts import begin_pass, start_allowed
from sim.state.run_state import State
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
        return AllCandidates(view, self.advice, self.counts)


@compiled
def decide(state: State, memory: RuleMemory) -> None:
    """Start who may, on the count with the earliest end."""
    if begin_pass(state, memory):
        last = state.run[0].arrived
        allow_all(memory.offers, state.run[0].head, last)
        start_allowed(state, memory, last)


class AllCandidates(Candidates):
    """Allows everything, as candidates do that say nothing else."""

    @property
    def compiled_pass(self) -> tuple[Callable[..., None], OpenMemory]:
        """The compiled pass, and what it keeps."""
        return decide, OpenMemory()
