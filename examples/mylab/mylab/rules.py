"""A compiled backfilling rule of one's own: EASY while few jobs wait, FCFS while many do."""

import numpy as np

from predictors.compiling import compiled
from sim import View
from sim.policies.backfill import easy
from sim.policies.base import Allocation
from sim.policies.order import Order
from sim.policies.passes.memory import RuleMemory
from sim.state.run_state import RunState
from sim.state.run_steps import holders_in


@compiled
def decide(state: RunState, memory: RuleMemory) -> int:
    """Put the places of those who start into ``queue.found``; return how many they are."""
    run, queue, kept = state.scalars[0], memory.queue, memory.backfilling
    number, free, is_blocked = easy.find_heads(queue, run.free, kept)
    if is_blocked and queue.at[0].waiting - number <= memory.plugin_data[0, 0]:
        number = easy.find_backfills(queue, holders_in(state), free, run.now, kept)
    return int(number)


class EasyWhileFew:
    """EASY while at most so many jobs wait."""

    def __init__(self, most: int) -> None:
        self.most = most

    def begin(self, view: View, order: Order, allocation: Allocation) -> easy.EasyScheduler:
        """Begin a run."""
        own = np.array([[float(self.most)]])
        return easy.EasyScheduler(view, order, allocation, decides=decide, plugin_data=own)
