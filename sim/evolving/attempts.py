"""One attempt of an evolving job: what it does on its processors until it ends or fails.

Where no checkpoint and no limit hangs on single cycles they are not even drawn
before somebody asks for them.

Times are seconds at full speed since the attempt began, its restart included;
the machine turns them into times of the clock. Nothing of the engine is
imported here.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray
from predictors.cycles.checkpointing import CheckpointCost, DalyRule, IntervalRule
from predictors.cycles.online import OnlineCyclePredictor
from predictors.cycles.plan import (
    CyclePlan,
    Outcome,
    place_checkpoints,
    plan_cycles,
    stopped_in_time,
)
from sim.errors import (
    AT_LEAST_1,
    AT_LEAST_1_AND_FINITE,
    FINITE,
    POSITIVE,
    POSITIVE_AND_FINITE,
    ConfigError,
)
from workloads.evolving.phases import EvolvingRun

Clock = Callable[[FloatArray], FloatArray]
"""Seconds at full speed since an attempt began to seconds of the clock since then."""

CLOCK_ROUNDS = 4
"""Times that checkpoints are placed anew by the clock, which they set forward themselves."""


class Account(NamedTuple):
    """What an attempt has done by some time; seconds, and cycles of the whole run.

    Attributes
    ----------
    finished, saved : int
        Cycles done, and cycles that survive a failure now.
    computed, lost, overhead, restarting : float
        Computation done, the part of it that a failure now throws away,
        checkpoints, and the restart.
    """

    finished: int
    saved: int
    computed: float
    lost: float
    overhead: float
    restarting: float


class Layout(NamedTuple):
    """An attempt cycle by cycle.

    Attributes
    ----------
    plan : CyclePlan
        From the first cycle of this attempt on, after its restart.
    cells : numpy.ndarray of float, shape (k,)
        Cells per processor in each cycle of the plan.
    costs : numpy.ndarray of float, shape (k,), seconds
        Of a checkpoint before each cycle of the plan.
    """

    plan: CyclePlan
    cells: FloatArray
    costs: FloatArray


@dataclass(frozen=True)
class Attempt:
    """An attempt from its first cycle on, laid out cycle by cycle once somebody asks.

    Attributes
    ----------
    lay_out : callable
        Returns the `Layout`.
    first : int
        Cycles of the run that were saved before.
    restart : float, seconds
    left : int
        Cycles that it has to do.
    computation : float or None, seconds
        Where it runs through without a checkpoint or a stop; None where it may not.
    """

    lay_out: Callable[[], Layout]
    first: int
    restart: float
    left: int
    computation: float | None = None

    @cached_property
    def layout(self) -> Layout:
        """The attempt cycle by cycle."""
        return self.lay_out()

    @property
    def plan(self) -> CyclePlan:
        """Its cycles, checkpoints and end."""
        return self.layout.plan

    @property
    def wall(self) -> float:
        """Seconds until the attempt ends by itself."""
        return self.restart + (self.plan.wall if self.computation is None else self.computation)

    @property
    def outcome(self) -> Outcome:
        """``completed``, ``stopped`` to be resubmitted, or ``killed`` by the limit."""
        return "completed" if self.computation is not None else self.plan.outcome

    @property
    def is_stuck(self) -> bool:
        """Whether it ends without a cycle more than it began with, and without a failure."""
        return self.outcome != "completed" and self.plan.saved(self.plan.wall) == 0

    def told_to_stop(self, elapsed: float) -> "Attempt":
        """Return the attempt that is told, so many seconds after it began, to save and stop."""
        plan, cells, costs = self.layout
        early = plan.told_to_stop(max(elapsed - self.restart, 0.0), costs)
        return Attempt(lambda: Layout(early, cells, costs), self.first, self.restart, self.left)

    def account(self, elapsed: float) -> Account:
        """Return what is done so many seconds after the attempt began."""
        inside = max(elapsed - self.restart, 0.0)
        if elapsed >= self.wall:
            if self.computation is not None:
                last = self.first + self.left
                return Account(last, last, self.computation, 0.0, 0.0, self.restart)
            inside = self.plan.wall  # to the bit, whatever the addition rounded
        ended = self.outcome == "completed" and inside >= self.plan.wall
        plan = self.plan
        return Account(
            finished=self.first + plan.finished(inside),
            saved=self.first + (plan.ends.size if ended else plan.saved(inside)),
            computed=plan.computed(inside),
            lost=0.0 if ended else plan.lost(inside),
            overhead=plan.overhead(inside),
            restarting=min(elapsed, self.restart),
        )

    def cycles(self, after: float, until: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return cells, begins and ends of the cycles that end in (after, until].

        Returns
        -------
        cells, begins, ends : numpy.ndarray of float, shape (m,)
            Seconds since the attempt began; no checkpoint lies within a cycle.
        """
        walls = self.plan.wall_ends[: self.plan.stopped_after]
        window = np.array([after, until]) - self.restart
        low, high = walls.searchsorted(window, side="right").tolist()
        lengths, done = self.plan.ends[low:high].copy(), self.plan.ends
        lengths[int(low == 0) :] -= done[max(low - 1, 0) : max(high - 1, 0)]
        ends = self.restart + walls[low:high]
        return self.layout.cells[low:high], ends - lengths, ends


@dataclass(frozen=True)
class Checkpointing:
    """How evolving jobs save their work and stop in time.

    Parameters
    ----------
    rule : IntervalRule
        Computation between checkpoints; Daly's interval by default.
    cost : CheckpointCost
    restart : float, seconds
        Reading a checkpoint at the start of every attempt but the first.
    node_mtbf : float, seconds
        Mean time between failures of one node, as the site believes it;
        infinite means that no checkpoint pays.
    window : int or None
        Window of the online prediction of the next cycle.
    stop_in_time : bool
        Checkpoint and stop before a walltime limit.
    margin : float
        How many times its prediction a cycle is given before the limit.
    memory : float or None
        Cells that the memory of a processor holds; None holds all.
    paging : float
        How many times as long a cycle takes whose cells it does not hold.

    Raises
    ------
    ConfigError
        If a value is out of range.

    Examples
    --------
    >>> from workloads.evolving.cycle_costs import CYCLE_MACHINES
    >>> from workloads.evolving.phases import DECKS
    >>> run = EvolvingRun(DECKS["timing_a"], CYCLE_MACHINES["itanium2"], 16, key=1)
    >>> attempt = Checkpointing(node_mtbf=86400.0).attempt(run, 16, total=7200.0, nodes=8)
    >>> attempt.outcome, attempt.wall > 7200.0, attempt.account(attempt.wall).saved
    ('completed', True, 200)
    """

    rule: IntervalRule = field(default_factory=DalyRule)
    cost: CheckpointCost = field(default_factory=CheckpointCost)
    restart: float = 0.0
    node_mtbf: float = inf
    window: int | None = 8
    stop_in_time: bool = True
    margin: float = 1.25
    memory: float | None = None
    paging: float = 3.0

    def __post_init__(self) -> None:
        FINITE.check(restart=self.restart)
        POSITIVE.check(node_mtbf=self.node_mtbf, margin=self.margin)
        AT_LEAST_1.check_or_null(window=self.window)
        POSITIVE_AND_FINITE.check_or_null(memory=self.memory)
        AT_LEAST_1_AND_FINITE.check(paging=self.paging)

    def attempt(
        self,
        run: EvolvingRun,
        nprocs: int,
        total: float,
        nodes: int,
        first: int = 0,
        limit: float = inf,
        is_restart: bool = False,
        clock: Clock | None = None,
    ) -> Attempt:
        """Lay out an attempt on some processors.

        The job predicts its cycles from those that it has measured, in this
        attempt and before.

        Parameters
        ----------
        run : EvolvingRun
        nprocs : int
        total : float, seconds
            True runtime of the whole run on so many processors, no checkpoint and
            all cells in memory.
        nodes : int
            Nodes that the job holds; their failures add up.
        first : int
            Cycles that were saved before.
        limit : float, seconds
            Wall time of the attempt.
        is_restart : bool
            Whether a checkpoint has to be read first.
        clock : callable, optional
            Where the job is slowed: its seconds at full speed to seconds of the
            clock, by which it measures its cycles, checkpoints and stops.

        Raises
        ------
        ConfigError
            If the restart alone exceeds the limit, or no cycle is left.
        """
        again = self.restart if is_restart else 0.0
        if not again < limit:
            raise ConfigError(f"a restart of {again:g} s does not fit a limit of {limit:g} s")
        if not 0 <= first < run.cycles:
            raise ConfigError(f"first must be 0 to {run.cycles - 1}, got {first}")
        left = run.cycles - first
        if first == 0 and limit == inf and self._never(nodes):

            def plain() -> Layout:
                cells, none = run.cells_per_processor(nprocs), np.empty(0, np.int64)
                cost = self.cost.at(cells)
                ends = self._ends(run, nprocs, total)
                return Layout(CyclePlan(ends, none, cost[none], ends.size), cells, cost)

            whole = total if self.memory is None else plain().plan.ends.item(-1)
            return Attempt(plain, first, again, left, whole)
        layout = self._laid_out(run, nprocs, total, nodes, first, limit, again, clock)
        return Attempt(lambda: layout, first, again, left)

    def _ends(self, run: EvolvingRun, nprocs: int, total: float) -> FloatArray:
        """Return the end of each cycle, longer where its cells do not fit the memory."""
        ends = run.cumulative(nprocs, total)
        if self.memory is None:
            return ends
        pages = run.cells_per_processor(nprocs) > self.memory
        if not pages.any():
            return ends
        return np.cumsum(np.diff(ends, prepend=0.0) * np.where(pages, self.paging, 1.0))

    def _never(self, nodes: int) -> bool:
        """Say whether no checkpoint is ever due, whatever the cells."""
        between = self.rule.interval(self.cost.seconds, self.node_mtbf / nodes)
        return self.cost.seconds_per_cell == 0.0 and bool(np.isinf(between))

    def _laid_out(
        self,
        run: EvolvingRun,
        nprocs: int,
        total: float,
        nodes: int,
        first: int,
        limit: float,
        again: float,
        clock: Clock | None,
    ) -> Layout:
        """Lay out an attempt cycle by cycle; see `attempt`."""
        ends, cells = self._ends(run, nprocs, total), run.cells_per_processor(nprocs)
        cost = self.cost.at(cells[first:])
        between = self._between(cost, nodes)
        done = ends[first:] - (ends[first - 1] if first else 0.0)
        cycles, online = np.diff(ends, prepend=0.0), OnlineCyclePredictor(self.window)
        ahead = online.follow(cells, cycles)[first:]
        if clock is None:
            within = limit - again
            plan = plan_cycles(done, between, cost, ahead, within, self.stop_in_time, self.margin)
            return Layout(plan, cells[first:], cost)
        plan = plan_cycles(done, between, cost, ahead)
        for _ in range(CLOCK_ROUNDS):
            walls = clock(again + plan.wall_ends)
            slowed = walls - clock(again + plan.wall_ends - cycles[first:])
            ahead = online.follow(cells, np.concatenate((cycles[:first], slowed)))[first:]
            places = place_checkpoints(np.cumsum(slowed), between, ahead)
            if np.array_equal(places, plan.places):
                break
            plan = CyclePlan(done, places, cost[places], done.size)
        plan = replace(plan, limit=limit - again)
        if self.stop_in_time and limit < inf:
            walls = clock(again + plan.wall_ends)
            plan = stopped_in_time(plan, cost, self.margin * ahead, walls, limit)
        return Layout(plan, cells[first:], cost)

    def _between(self, cost: FloatArray, nodes: int) -> FloatArray:
        """Return the computation between checkpoints as seen before each cycle, seconds."""
        same = self.cost.seconds_per_cell == 0.0
        between = self.rule.interval(cost[:1] if same else cost, self.node_mtbf / nodes)
        # Free checkpoints would come at no distance at all: then one each cycle.
        return np.broadcast_to(np.maximum(between, np.finfo(float).tiny), cost.shape)


@dataclass(slots=True)
class Costs:
    """What one job paid for failures, limits and checkpoints, processor-seconds."""

    lost: float = 0.0
    overhead: float = 0.0
    restarting: float = 0.0
