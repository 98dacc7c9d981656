"""How the jobs of a run evolve, save their work and answer for their limits (``evolving``)."""

from dataclasses import dataclass, field, replace
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from predictors.base import FloatArray, IntArray
from predictors.cycles.checkpointing import DalyRule, IntervalRule
from predictors.cycles.messages import ALPHASERVER, ITANIUM2, Exchange
from predictors.cycles.offline import OfflineCyclePredictor
from sim import errors
from sim.errors import ConfigError
from sim.machine.base import Dedicated
from sim.machine.failing import FailingMachine
from workloads.evolving.cycle_costs import CycleMachine
from workloads.evolving.phases import EvolvingJobs, EvolvingRuns
from workloads.streams import Streams


@dataclass(frozen=True)
class Asks:
    """What an evolving job asks for while it runs; nothing by default.

    Parameters
    ----------
    memory : bool
        Ask for processors on which the cells to come are predicted to fit
        (``evolving.memory``).
    efficiency : float, optional
        Ask for the most processors that are predicted to keep this efficiency,
        T(1) / (n T(n)), and give back those beyond.
    walltime : bool
        Under ``overrun=kill``: ask for a longer limit once the rest of the run is
        predicted not to fit it.
    every : float, seconds
        Least time between two looks of a job at itself.

    Raises
    ------
    ConfigError
        If a value is out of range.

    Examples
    --------
    >>> Asks().any, Asks(walltime=True).any
    (False, True)
    """

    memory: bool = False
    efficiency: float | None = None
    walltime: bool = False
    every: float = 600.0

    def __post_init__(self) -> None:
        errors.POSITIVE_SHARE.check_or_null(efficiency=self.efficiency)
        errors.POSITIVE_AND_FINITE.check(every=self.every)

    @property
    def for_processors(self) -> bool:
        """Whether jobs ask for other processors."""
        return self.memory or self.efficiency is not None

    @property
    def any(self) -> bool:
        """Whether jobs ask for anything."""
        return self.for_processors or self.walltime


MOST_RESUBMITS = 1_000_000
"""More would not end."""
NETWORKS = {"alphaserver": ALPHASERVER, "itanium2": ITANIUM2}
"""Message costs that a benchmark of each machine would find."""


def exchange_of(machine: CycleMachine) -> Exchange:
    """Return the messages of a cycle as a benchmark of two nodes would have them.

    Bytes in both directions and the processes that share a network interface are in
    it; contention between more nodes, and where they lie, are not.
    """
    return Exchange(
        NETWORKS[machine.name],
        messages=machine.messages,
        reductions=machine.reductions,
        bidirectional=machine.bidirectional,
        nic=machine.nic,
        processors_per_node=machine.processors_per_node,
    )


def offline_models(runs: EvolvingRuns, streams: Streams) -> tuple[OfflineCyclePredictor, ...]:
    """Fit each application's offline model to a noisy benchmark on a single node."""
    machine, rng = runs.machine, streams("cycle benchmarks")
    exchange = exchange_of(machine)
    models = []
    for deck in runs.applications:
        cells = np.geomspace(0.4, 16.0, 24) * deck.cells
        model = OfflineCyclePredictor(
            communication=exchange, processors_per_node=machine.processors_per_node
        )
        models.append(model.fit(deck.benchmark(machine, cells.tolist(), rng)))
    return tuple(models)


@dataclass(frozen=True)
class EvolvingScene:
    """The evolving jobs of one run, by index in the job table.

    Attributes
    ----------
    runs : EvolvingRuns
    saving : Evolving
        How they save their work, what they ask for, and how often they go on.
    offline : tuple of OfflineCyclePredictor
        Benchmarked model of each application of `runs`.
    before : int
        Jobs that stand in the table ahead of those of `runs` (calibration runs).
    """

    runs: EvolvingRuns
    saving: "Evolving"
    offline: tuple[OfflineCyclePredictor, ...]
    before: int = 0

    def evolves(self, job: int) -> bool:
        """Say whether a job evolves."""
        return job >= self.before and bool(self.runs.evolving[job - self.before])

    def benchmark(self, job: int) -> OfflineCyclePredictor:
        """Return the benchmarked model of an evolving job's application."""
        return self.offline[int(self.runs.deck[job - self.before])]

    def after(self, jobs: int) -> "EvolvingScene":
        """Return the scene with so many more jobs ahead of it in the table."""
        return replace(self, before=self.before + jobs)


@dataclass(eq=False, kw_only=True)
class Evolving(EvolvingJobs):
    """A share of the jobs adapts its mesh, cycle by cycle; how they save it and stop in time.

    Parameters
    ----------
    share : float
        Share of the jobs that evolve, 0 to 1.
    decks : sequence of str
        Presets to draw from; names in `workloads.evolving.phases.DECKS`.
    deal : str
        ``draw`` decks at random, or give them to the jobs ``in_turn``.
    machine : str
        What a cycle costs; a name in `workloads.evolving.cycle_costs.CYCLE_MACHINES`.
    cycles : int, optional
        Cycles of each run; each deck's own by default.
    interval : IntervalRule
        Computation between checkpoints; Daly's interval by default.
    cost, cost_per_cell : float, seconds
        Of a checkpoint: a constant, and for each cell on a processor.
    restart : float, seconds
        Reading a checkpoint at the start of every attempt but the first.
    node_mtbf : float, optional, seconds
        Mean time between failures of one node, as the jobs believe it: by default the
        machine's own. Where there is none no checkpoint pays.
    window : int or None
        Cycles from which the next is predicted; None takes all.
    stop_in_time : bool
        Under ``overrun=kill``: checkpoint and stop before the limit.
    margin : float
        How many times its prediction a cycle is given before the limit.
    memory : float or None
        Cells that the memory of a processor holds; None holds all.
    paging : float
        How many times as long a cycle takes whose cells it does not hold.
    resubmit : bool
        Under ``overrun=kill``: a job that is killed goes on from its checkpoint.
    max_resubmits : int
        How often, at least 1; a job that needs more is given up.
    asks : Asks
        What jobs ask of the scheduler while they run; nothing by default.

    Raises
    ------
    WorkloadError, PredictorError, ConfigError
        If a value is out of range.

    Examples
    --------
    >>> scene = Evolving(cycles=100).scene(np.array([4, 8]), Streams(seed=1), Dedicated(8))
    >>> scene.runs.run(0).cycles
    100
    """

    interval: IntervalRule = field(default_factory=DalyRule)
    cost: float = 10.0
    cost_per_cell: float = 0.0
    restart: float = 10.0
    node_mtbf: float | None = None
    window: int | None = 8
    stop_in_time: bool = True
    margin: float = 1.25
    memory: float | None = None
    paging: float = 3.0
    resubmit: bool = True
    max_resubmits: int = 1000
    asks: Asks = field(default_factory=Asks)

    def __post_init__(self) -> None:
        try:
            errors.FINITE.check(
                cost=self.cost, cost_per_cell=self.cost_per_cell, restart=self.restart
            )
            errors.POSITIVE.check_or_null(node_mtbf=self.node_mtbf)
            errors.POSITIVE.check(margin=self.margin)
            errors.AT_LEAST_1.check_or_null(window=self.window)
            errors.POSITIVE_AND_FINITE.check_or_null(memory=self.memory)
            errors.AT_LEAST_1_AND_FINITE.check(paging=self.paging)
            errors.up_to(MOST_RESUBMITS).check(max_resubmits=self.max_resubmits)
        except ConfigError as error:
            raise ConfigError(f"evolving.{error}") from error
        if self.asks.memory and self.memory is None:
            raise ConfigError("evolving.asks.memory=true: needs evolving.memory, a number of cells")
        super().__post_init__()

    def costs(self, cells: FloatArray) -> FloatArray:
        """Return what a checkpoint takes with so many cells on a processor, seconds."""
        return self.cost + self.cost_per_cell * cells

    def between(self, cost: ArrayLike, nodes: int) -> FloatArray:
        """Return the computation between checkpoints that take so long, on so many nodes."""
        mtbf = inf if self.node_mtbf is None else self.node_mtbf
        return self.interval.interval(cost, mtbf / nodes)

    def scene(self, processors: IntArray, streams: Streams, machine: Dedicated) -> EvolvingScene:
        """Draw which jobs evolve.

        Parameters
        ----------
        processors : numpy.ndarray of int, shape (n,)
            Reference counts of the jobs.
        streams : Streams
        machine : Dedicated
        """
        saving = self
        if self.node_mtbf is None and isinstance(machine, FailingMachine):
            saving = replace(self, node_mtbf=machine.mtbf)
        runs = self.assign(processors, streams)
        return EvolvingScene(runs, saving, offline_models(runs, streams))
