"""One attempt of an evolving job: what it does on its processors until it ends or fails.

Where no checkpoint and no limit hangs on single cycles they are not even drawn
before somebody asks for them.

Times are seconds at full speed since the attempt began, its restart included;
the machine turns them into times of the clock. Nothing of the engine is
imported here.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray
from predictors.cycles.checkpointing import (
    CyclePlan,
    Outcome,
    place_checkpoints,
    plan_cycles,
    stopped_in_time,
)
from predictors.cycles.online import OnlineCyclePredictor
from sim.errors import ConfigError
from sim.evolving.settings import Evolving
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


@dataclass(frozen=True)
class Attempt:
    """An attempt on some processors, laid out cycle by cycle once somebody asks.

    The job predicts its cycles from those that it has measured, in this
    attempt and before.

    Parameters
    ----------
    saving : Evolving
    run : EvolvingRun
    nprocs : int
    total : float, seconds
        True runtime of the whole run on so many processors, no checkpoint and
        all cells in memory.
    nodes : int
        Nodes that the job holds; their failures add up.
    first : int
        Cycles of the run that were saved before.
    limit : float, seconds
        Wall time of the attempt.
    restart : float, seconds
        In which a checkpoint is read first.
    clock : callable, optional
        Where the job is slowed: its seconds at full speed to seconds of the
        clock, by which it measures its cycles, checkpoints and stops.
    told : float, seconds
        When, after it began, it is told to save and stop.

    Raises
    ------
    ConfigError
        If the restart alone exceeds the limit, or no cycle is left.

    Examples
    --------
    >>> from workloads.evolving.cycle_costs import CYCLE_MACHINES
    >>> from workloads.evolving.phases import DECKS
    >>> run = EvolvingRun(DECKS["timing_a"], CYCLE_MACHINES["itanium2"], 16, key=1)
    >>> attempt = Attempt(Evolving(node_mtbf=86400.0), run, 16, total=7200.0, nodes=8)
    >>> attempt.outcome, attempt.wall > 7200.0, attempt.account(attempt.wall).saved
    ('completed', True, 200)
    """

    saving: Evolving
    run: EvolvingRun
    nprocs: int
    total: float
    nodes: int
    first: int = 0
    limit: float = inf
    restart: float = 0.0
    clock: Clock | None = None
    told: float = inf

    def __post_init__(self) -> None:
        if not self.restart < self.limit:
            raise ConfigError(
                f"a restart of {self.restart:g} s does not fit a limit of {self.limit:g} s"
            )
        if not 0 <= self.first < self.run.cycles:
            raise ConfigError(f"first must be 0 to {self.run.cycles - 1}, got {self.first}")

    @cached_property
    def cells(self) -> FloatArray:
        """Cells per processor in each cycle of the plan, shape (k,)."""
        return self.run.cells_per_processor(self.nprocs)[self.first :]

    @cached_property
    def computation(self) -> float | None:
        """Seconds where it runs through without a checkpoint or a stop; None where it may not."""
        saving = self.saving
        if self.first or min(self.limit, self.told) < inf or saving.cost_per_cell != 0.0:
            return None
        if not np.isinf(saving.between(saving.cost, self.nodes)):
            return None
        return self.total if saving.memory is None else self._ends().item(-1)

    @cached_property
    def plan(self) -> CyclePlan:
        """Its cycles, checkpoints and end, after the restart."""
        ends = self._ends()
        if self.computation is not None:
            return CyclePlan(ends, np.empty(0, np.int64), np.empty(0), ends.size)
        costs = self.saving.costs(self.cells)
        plan = self._laid_out(ends, costs)
        if self.told == inf:
            return plan
        return plan.told_to_stop(max(self.told - self.restart, 0.0), costs)

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

    def account(self, elapsed: float) -> Account:
        """Return what is done so many seconds after the attempt began."""
        inside = max(elapsed - self.restart, 0.0)
        if elapsed >= self.wall:
            if self.computation is not None:
                last = self.run.cycles
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
        return self.cells[low:high], ends - lengths, ends

    def _ends(self) -> FloatArray:
        """Return the end of each cycle, longer where its cells do not fit the memory."""
        ends, saving = self.run.cumulative(self.nprocs, self.total), self.saving
        if saving.memory is None:
            return ends
        pages = self.run.cells_per_processor(self.nprocs) > saving.memory
        if not pages.any():
            return ends
        return np.cumsum(np.diff(ends, prepend=0.0) * np.where(pages, saving.paging, 1.0))

    def _laid_out(self, ends: FloatArray, costs: FloatArray) -> CyclePlan:
        """Return its cycles, of which each ends then, with the checkpoints that its rule places."""
        saving, clock, first, again = self.saving, self.clock, self.first, self.restart
        between = self._between(costs)
        done = ends[first:] - (ends[first - 1] if first else 0.0)
        cells = self.run.cells_per_processor(self.nprocs)
        cycles, online = np.diff(ends, prepend=0.0), OnlineCyclePredictor(saving.window)
        ahead = online.follow(cells, cycles)[first:]
        within, stops = self.limit - again, saving.stop_in_time
        if clock is None:
            return plan_cycles(done, between, costs, ahead, within, stops, saving.margin)
        plan = plan_cycles(done, between, costs, ahead)
        for _ in range(CLOCK_ROUNDS):
            walls = clock(again + plan.wall_ends)
            slowed = walls - clock(again + plan.wall_ends - cycles[first:])
            ahead = online.follow(cells, np.concatenate((cycles[:first], slowed)))[first:]
            places = place_checkpoints(np.cumsum(slowed), between, ahead)
            if np.array_equal(places, plan.places):
                break
            plan = CyclePlan(done, places, costs[places], done.size)
        plan = replace(plan, limit=within)
        if not stops or self.limit == inf:
            return plan
        walls = clock(again + plan.wall_ends)
        return stopped_in_time(plan, costs, saving.margin * ahead, walls, self.limit)

    def _between(self, costs: FloatArray) -> FloatArray:
        """Return the computation between checkpoints as seen before each cycle, seconds."""
        same = self.saving.cost_per_cell == 0.0
        between = self.saving.between(costs[:1] if same else costs, self.nodes)
        # Free checkpoints would come at no distance at all: then one each cycle.
        return np.broadcast_to(np.maximum(between, np.finfo(float).tiny), costs.shape)
