"""Which jobs of a workload evolve: a share of them, each with an input deck."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from workloads.base import BoolArray, IntArray
from workloads.errors import WorkloadError
from workloads.evolving.cycle_costs import CYCLE_MACHINES, CycleMachine
from workloads.evolving.phases import DECKS, EvolvingApplication, EvolvingRun
from workloads.streams import Streams

Preset = TypeVar("Preset")
Deal = Literal["draw", "in_turn"]
MOST_CYCLES = 10_000_000
"""Of a run: more than any deck has."""


@dataclass(frozen=True)
class EvolvingRuns:
    """Which jobs evolve, and their runs on demand.

    Attributes
    ----------
    evolving : numpy.ndarray of bool, shape (n,)
    deck : numpy.ndarray of int, shape (n,)
        Index into `applications`.
    """

    applications: tuple[EvolvingApplication, ...]
    machine: CycleMachine
    processors: IntArray
    evolving: BoolArray
    deck: IntArray
    key: int
    cycles: int | None = None

    def run(self, job: int) -> EvolvingRun:
        """Build the run of a job index; the same at every call.

        Raises
        ------
        WorkloadError
            If the job does not evolve.
        """
        if not self.evolving[job]:
            raise WorkloadError(f"job index {job} does not evolve")
        application = self.applications[self.deck[job]]
        count = int(self.processors[job])
        return EvolvingRun(application, self.machine, count, self.key, job, self.cycles)


class EvolvingJobs:
    """Makes a share of the jobs of any workload evolve.

    Parameters
    ----------
    share : float
        Share of the jobs, 0 to 1.
    decks : sequence of str
        Presets to draw from, all equally likely: names in `DECKS`.
    machine : str
        A name in `CYCLE_MACHINES`.
    cycles : int, optional
        Cycles of each run; each deck's own by default.
    deal : str
        ``draw`` decks at random, or give them to the jobs ``in_turn``.

    Raises
    ------
    WorkloadError
        If the share is out of range or a name unknown.

    Examples
    --------
    >>> runs = EvolvingJobs(cycles=1000).assign(np.array([4, 8]), Streams(seed=1))
    >>> runs.run(1).cycles
    1000
    """

    def __init__(
        self,
        share: float = 1.0,
        decks: Sequence[str] = ("timing_a", "timing_b", "timing_c"),
        machine: str = "itanium2",
        cycles: int | None = None,
        deal: Deal = "draw",
    ) -> None:
        if not 0.0 <= share <= 1.0:
            raise WorkloadError(f"share must lie between 0 and 1, got {share}")
        if not decks:
            raise WorkloadError(f"decks must name at least one of {', '.join(DECKS)}")
        if cycles is not None and not 1 <= cycles <= MOST_CYCLES:
            raise WorkloadError(f"cycles must be 1 to {MOST_CYCLES:,}, got {cycles}")
        if deal not in ("draw", "in_turn"):
            raise WorkloadError(f"deal must be draw or in_turn, got {deal!r}")
        self.share = share
        self.deal = deal
        self.applications = tuple(_named(DECKS, "deck", name) for name in decks)
        self.machine = _named(CYCLE_MACHINES, "cycle machine", machine)
        self.cycles = cycles

    def assign(self, processors: IntArray, streams: Streams) -> EvolvingRuns:
        """Draw which jobs evolve and their decks, from their reference counts."""
        rng = streams("evolving jobs")
        evolving = rng.random(processors.size) < self.share
        decks = len(self.applications)
        deck = rng.integers(decks, size=processors.size)
        if self.deal == "in_turn":
            deck = np.arange(processors.size) % decks
        key = streams.key("evolving runs")
        return EvolvingRuns(
            self.applications, self.machine, processors, evolving, deck, key, self.cycles
        )


def _named(known: Mapping[str, Preset], what: str, name: str) -> Preset:
    """Return a preset by its name, or say which there are."""
    if name not in known:
        raise WorkloadError(f"no {what} {name!r}; there are {', '.join(known)}")
    return known[name]
