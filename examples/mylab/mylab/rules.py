"""A compiled backfilling rule of one's own: EASY while few jobs wait, FCFS while many do."""

import numpy as np

from predictors.compiling import compiled
from sim import View
from sim.engine.engine import Engine
from sim.policies.backfill import easy
from sim.policies.base import Allocation
from sim.policies.order import Order
from sim.policies.passes.memory import RuleMemory, start_found
from sim.policies.passes.queue_rule import CompiledQueueRule
from sim.state.run_state import State
from sim.state.run_steps import holders_in


@compiled
def find(queue, ends, free, now, kept, own):  # type: ignore[no-untyped-def]
    """Put the places of those who start into ``queue.found``; return how many they are."""
    number, free, is_blocked = easy.start_heads(queue, free, kept)
    if is_blocked and queue.at[0].waiting - number <= own[0, 0]:
        number = easy.start_behind(queue, ends, free, now, kept)
    return number


@compiled
def decide(state: State, memory: RuleMemory) -> None:
    """Make a pass of a run whose decisions are all compiled."""
    run, queue = state.run[0], memory.queue
    if queue.at[0].waiting > 0:
        ends = holders_in(state)
        start_found(
            state, queue, find(queue, ends, run.free, run.now, memory.backfilling, memory.own)
        )


class Scheduler(easy.EasyScheduler):
    """EASY's scheduler but for who starts; `own` is what the rule keeps."""

    own: np.ndarray

    def find_starts(self) -> int:
        """Find who starts in all other runs, such as those on nodes that fail."""
        view, queue = self.view, self.queue.tables
        return int(find(queue, view._ends, view.free, view.now, self.backfilling, self.own))

    def compiled_rule(self, engine: Engine) -> CompiledQueueRule | None:
        """Return the compiled rule, where the run allows one."""
        return self.queue_rule(engine, {"decide": decide}, own=self.own)


class EasyWhileFew:
    """EASY while at most so many jobs wait."""

    def __init__(self, most: int) -> None:
        self.most = most

    def begin(self, view: View, order: Order, allocation: Allocation) -> Scheduler:
        """Begin a run."""
        scheduler = Scheduler(view, order, allocation)
        scheduler.own = np.array([[float(self.most)]])
        return scheduler
