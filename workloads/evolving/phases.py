"""Applications that adapt their mesh: runs of cycles whose cells change on the way.

And which jobs of a workload evolve: a share of them, each with an input deck.

Between two adaptations nothing changes, so a run is kept as pieces of equal
cycles. The noise of a piece's sum is drawn with the piece; how it spreads over
the piece's cycles is drawn only when someone asks for single cycles. Gamma noise
makes the two agree: the sum of equal gamma variables is a gamma variable, and
independent of their shares. No draw depends on the schedule.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np
import pandas as pd

from workloads.base import BoolArray, FloatArray, IntArray
from workloads.errors import WorkloadError
from workloads.evolving.cycle_costs import CYCLE_MACHINES, CycleMachine
from workloads.streams import Streams

BLOCK = 50
"""Cycles that share one draw of the slow part of the noise."""
MEASURED_CYCLES = 5
"""Cycles that each measurement of a benchmark is the mean of."""


@dataclass(frozen=True)
class EvolvingApplication:
    """An adaptive application and its input deck.

    Parameters
    ----------
    name : str
    cells : float
        Cells on each processor of the reference count when the run begins.
    growth : float
        Expected cells at the end over those at the beginning.
    adapt_every : float
        Mean cycles between adaptations, at least 1.
    variation : float
        Standard deviation of an adaptation's growth over its mean; with 1 a
        sixth of the adaptations combine cells instead of dividing them.
    cost : float
        Factor on the machine's time per cell.
    cycles : int
        Cycles of a run where none are given.
    """

    name: str
    cells: float
    growth: float
    adapt_every: float = 10.0
    variation: float = 1.0
    cost: float = 1.0
    cycles: int = 200

    def seconds(
        self, machine: CycleMachine, cells: FloatArray, nprocs: int, deviate: float = 0.0
    ) -> FloatArray:
        """Return the noiseless time of a cycle with so many cells per processor.

        `deviate` says how well the nodes of the run lie; see `CycleMachine.communication`.
        """
        computation = machine.computation(cells, nprocs)
        return np.asarray(self.cost * computation + machine.communication(cells, nprocs, deviate))

    def benchmark(
        self, machine: CycleMachine, cells: Sequence[float], rng: np.random.Generator
    ) -> pd.DataFrame:
        """Measure cycles with so many cells per processor on a node, for an offline model.

        Returns
        -------
        pandas.DataFrame
            ``cells``, ``processes_per_node`` (every number up to the node's
            processors) and ``runtime``, seconds of computation in a cycle.
        """
        size = np.asarray(cells, dtype=float)
        tables = []
        for shared in range(1, machine.processors_per_node + 1):
            true = self.cost * machine.computation(size, shared)
            spread = machine.noise * machine.unrest(shared) / np.sqrt(MEASURED_CYCLES)
            noise = 1.0 + spread * rng.standard_normal(size.size)
            runtime = true * np.maximum(noise, 0.5)
            columns = {"cells": size, "processes_per_node": shared, "runtime": runtime}
            tables.append(pd.DataFrame(columns))
        return pd.concat(tables, ignore_index=True)


DECKS = {
    deck.name: deck
    for deck in (
        EvolvingApplication("timing_a", cells=4_000, growth=8.5, adapt_every=4.0),
        EvolvingApplication("timing_b", cells=4_000, growth=5.0, adapt_every=6.0, cost=1.6),
        EvolvingApplication("timing_c", cells=80_000, growth=1.6, adapt_every=10.0, cost=1.6),
    )
}
"""The input decks of Mathis & Kerbyson, Table 1.

Initial cells and what is computed (hydrodynamics; b and c with heat, which is
more work a cell) are the paper's, and so are the 200 cycles of its figures.
Growth and the distance of adaptations are not printed. That of timing_a is set
so that on 16 Itanium-2 processors, M = 10 min and δ = 10 s, the first
checkpoints follow cycles 27 and 43 as in section 4; the rest is chosen.
"""


class EvolvingRun:
    """One run of an adaptive application: its cycles on any number of processors.

    Parameters
    ----------
    application : EvolvingApplication
    machine : CycleMachine
    processors : int
        Reference count: the run begins with ``application.cells`` on each. On
        other counts the same cells are spread over more or fewer processors.
    key : int
        Key of the random stream, at least 0.
    number : int
        Which run of that stream, at least 0.
    cycles : int, optional
        The application's by default.

    Attributes
    ----------
    edges : numpy.ndarray of int, shape (p + 1,)
        First cycle of each piece of equal cycles, and the number of cycles.
    cells : numpy.ndarray of float, shape (p,)
        Cells of the whole run in each piece.

    Raises
    ------
    WorkloadError
        If a count is below 1 or a key below 0.

    Examples
    --------
    >>> from workloads.evolving.cycle_costs import CYCLE_MACHINES
    >>> run = EvolvingRun(DECKS["timing_a"], CYCLE_MACHINES["itanium2"], processors=16, key=1)
    >>> ends = run.cumulative(16)
    >>> ends.size, bool(abs(ends[-1] / run.total(16) - 1) < 1e-12)
    (200, True)
    """

    def __init__(
        self,
        application: EvolvingApplication,
        machine: CycleMachine,
        processors: int,
        key: int,
        number: int = 0,
        cycles: int | None = None,
    ) -> None:
        cycles = application.cycles if cycles is None else cycles
        for name, value, least in (
            ("processors", processors, 1),
            ("cycles", cycles, 1),
            ("key", key, 0),
            ("number", number, 0),
        ):
            if value < least:
                raise WorkloadError(f"{name} must be at least {least}, got {value}")
        self.application = application
        self.machine = machine
        self.processors = processors
        self.cycles = cycles
        self.key = key
        self.number = number

    def _stream(self, purpose: int) -> np.random.Generator:
        """Open one of this run's streams: 0 for pieces, 1 for single cycles, 2 for placement."""
        return np.random.Generator(
            np.random.Philox(key=self.key, counter=[0, 0, self.number, purpose])
        )

    @property
    def edges(self) -> IntArray:
        """First cycle of each piece of equal cycles, and the number of cycles."""
        return self._pieces[0]

    @property
    def cells(self) -> FloatArray:
        """Cells of the whole run in each piece."""
        return self._pieces[1]

    @cached_property
    def _deviate(self) -> float:
        """How well the nodes of this run lie."""
        return float(self._stream(2).standard_normal()) if self.machine.placement else 0.0

    @cached_property
    def _pieces(self) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Draw adaptations, cells and both noises of each piece, once somebody asks."""
        rng = self._stream(0)
        gaps = self._draw_gaps(rng)
        adapted = np.cumsum(gaps)[:-1]  # the last gap reaches beyond the run
        deck = self.application
        rise = (deck.growth - 1.0) / self.cycles * gaps[:-1]
        steps = rise * (1.0 + deck.variation * rng.standard_normal(adapted.size))
        levels = np.maximum(1.0 + np.concatenate(([0.0], np.cumsum(steps))), 0.1)
        blocks = np.arange(0, self.cycles, BLOCK)
        edges = np.sort(np.concatenate((blocks, adapted, [self.cycles])), kind="stable")
        edges = edges[np.append(True, np.diff(edges) > 0)]
        at = np.searchsorted(adapted, edges[:-1], side="right")
        cells = deck.cells * self.processors * levels[at]
        slow = np.exp(self.machine.drift * rng.standard_normal(blocks.size))
        sums = self._shape * np.diff(edges)
        return edges, cells, slow[edges[:-1] // BLOCK], rng.standard_gamma(sums) / sums

    def _draw_gaps(self, rng: np.random.Generator) -> IntArray:
        """Return cycles between adaptations, the first that pass the run's end included."""
        chance = 1.0 / self.application.adapt_every
        gaps = np.empty(0, dtype=np.int64)
        while gaps.sum() < self.cycles:
            size = int(1.2 * self.cycles * chance) + 16
            gaps = np.concatenate((gaps, rng.geometric(chance, size)))
        reached = int(np.searchsorted(np.cumsum(gaps), self.cycles, side="left"))
        return np.asarray(gaps[: reached + 1])

    @property
    def _shape(self) -> float:
        """Shape of the gamma noise of one cycle."""
        return 1.0 / self.machine.noise**2

    def cells_per_processor(self, nprocs: int) -> FloatArray:
        """Return the cells on each processor, by cycle, shape (cycles,)."""
        return np.repeat(self.cells / nprocs, np.diff(self.edges))

    def noiseless(self, nprocs: int) -> FloatArray:
        """Return the time of each cycle without noise, shape (cycles,), seconds."""
        seconds = self.application.seconds(self.machine, self.cells / nprocs, nprocs, self._deviate)
        return np.repeat(seconds, np.diff(self.edges))

    def piece_ends(self, nprocs: int, total: float | None = None) -> FloatArray:
        """Return the end of each piece after the start, seconds, shape (p,).

        Costs nothing per cycle.

        Parameters
        ----------
        nprocs : int
            At least 1.
        total : float, optional
            Stretch the run to take so many seconds, above 0, to the bit.
        """
        if nprocs < 1:
            raise WorkloadError(f"nprocs must be at least 1, got {nprocs}")
        if total is not None and not total > 0.0:
            raise WorkloadError(f"total must be positive, got {total}")
        cycle = self.application.seconds(self.machine, self.cells / nprocs, nprocs, self._deviate)
        # The same draws on every count: what is noise on many processors is less of
        # the same on few, so that no draw depends on the schedule.
        unrest, (_, _, slow, sums) = self.machine.unrest(nprocs), self._pieces
        calmed = slow * sums if unrest == 1.0 else slow**unrest * (1.0 + unrest * (sums - 1.0))
        ends = np.cumsum(cycle * np.diff(self.edges) * calmed)
        if total is not None:
            ends *= total / ends[-1]
            ends[-1] = total
        return np.asarray(ends)

    def total(self, nprocs: int) -> float:
        """Return the time of the whole run in its own seconds."""
        return float(self.piece_ends(nprocs)[-1])

    def cumulative(self, nprocs: int, total: float | None = None) -> FloatArray:
        """Return the end of each cycle after the start, seconds, shape (cycles,).

        Draws the shares of the cycles on the first call and keeps them.
        Parameters are those of `piece_ends`, with which the ends of the pieces agree.
        """
        ends = self.piece_ends(nprocs, total)
        lengths = np.diff(self.edges)
        starts = np.concatenate(([0.0], ends[:-1]))
        shares = self._calmed(self._shares, nprocs)
        cycles = np.repeat(starts, lengths) + np.repeat(ends - starts, lengths) * shares
        cycles[self.edges[1:] - 1] = ends
        return np.asarray(cycles)

    def _calmed(self, shares: FloatArray, nprocs: int) -> FloatArray:
        """Return shares as they are with less noise: nearer to those of equal cycles."""
        unrest = self.machine.unrest(nprocs)
        if unrest == 1.0:
            return shares
        lengths = np.diff(self.edges)
        noisy = unrest * self._pieces[3]
        weight = np.repeat(noisy / (noisy + 1.0 - unrest), lengths)
        first = np.repeat(self.edges[:-1], lengths)
        equal = (np.arange(self.cycles) + 1.0 - first) / np.repeat(lengths, lengths)
        return np.asarray(weight * shares + (1.0 - weight) * equal)

    @cached_property
    def _shares(self) -> FloatArray:
        """How much of its piece is done at the end of each cycle, shape (cycles,)."""
        parts = np.cumsum(self._stream(1).standard_gamma(self._shape, self.cycles))
        last = parts[self.edges[1:] - 1]
        first = np.concatenate(([0.0], last[:-1]))
        lengths = np.diff(self.edges)
        return np.asarray((parts - np.repeat(first, lengths)) / np.repeat(last - first, lengths))


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
        """Build the run of a job index that evolves; the same at every call."""
        if not self.evolving[job]:
            raise WorkloadError(f"job index {job} does not evolve")
        application = self.applications[self.deck[job]]
        count = int(self.processors[job])
        return EvolvingRun(application, self.machine, count, self.key, job, self.cycles)


@dataclass(eq=False, repr=False)
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

    share: float = 1.0
    decks: Sequence[str] = ("timing_a", "timing_b", "timing_c")
    machine: str = "itanium2"
    cycles: int | None = None
    deal: Deal = "draw"

    def __post_init__(self) -> None:
        if not 0.0 <= self.share <= 1.0:
            raise WorkloadError(f"share must lie between 0 and 1, got {self.share}")
        if not self.decks:
            raise WorkloadError(f"decks must name at least one of {', '.join(DECKS)}")
        if self.cycles is not None and not 1 <= self.cycles <= MOST_CYCLES:
            raise WorkloadError(f"cycles must be 1 to {MOST_CYCLES:,}, got {self.cycles}")
        if self.deal not in ("draw", "in_turn"):
            raise WorkloadError(f"deal must be draw or in_turn, got {self.deal!r}")
        self.applications = tuple(_named(DECKS, "deck", name) for name in self.decks)
        self._machine = _named(CYCLE_MACHINES, "cycle machine", self.machine)

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
            self.applications, self._machine, processors, evolving, deck, key, self.cycles
        )


def _named(known: Mapping[str, Preset], what: str, name: str) -> Preset:
    """Return a preset by its name, or say which there are."""
    if name not in known:
        raise WorkloadError(f"no {what} {name!r}; there are {', '.join(known)}")
    return known[name]
