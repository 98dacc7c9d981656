"""Candidates near a target: what rules aim at that choose counts by load."""

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled, direct
from sim.policies.advice import last_up_to
from sim.policies.passes.memory import RuleMemory
from sim.policies.ties import TIE


@compiled
def around(
    counts: IntArray, begin: int, end: int, target: float, tolerance: float
) -> tuple[int, int]:
    """Return the first candidate, and one past the last, within a tolerance of a target.

    Without tolerance, the largest count up to the target alone; at least one stays.
    """
    last = last_up_to(counts, begin, end, target * (1 + tolerance) * (1 + TIE))
    first = last
    if tolerance > 0:
        floor = np.ceil(target / (1 + tolerance) * (1 - TIE))
        while first > begin and counts[first - 1] >= floor:
            first -= 1
    return first, last + 1


@compiled
def aim_at(memory: RuleMemory, target: FloatArray, tolerance: float) -> int:
    """Allow every waiting job what is around its target, at least one count.

    `target` is by place, from the first in use. Returns one past the last place in use.
    """
    queue, at = memory.queue, memory.queue.at[0]
    for k in range(at.first, at.last):
        own = memory.menu_spans[queue.job[k]]
        end, wanted = own.begin + own.number, target[k - at.first]
        own.low, own.high = around(memory.menu_counts, own.begin, end, wanted, tolerance)
    return int(at.last)


aim = direct(aim_at)
