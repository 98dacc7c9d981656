"""Equal shares for jobs that run to completion: ASP and AEP."""

from dataclasses import dataclass
from math import floor

import numpy as np

from predictors.compiling import compiled, direct
from sim.errors import SHARE
from sim.policies.advice import last_up_to
from sim.policies.allocation.queue_time import Cap, CappedCandidates, CappedCounts
from sim.policies.molding.base import Candidates, find_search_end, settle
from sim.policies.passes.memory import RuleMemory
from sim.policies.ties import is_less
from sim.state.run_state import RunState
from sim.state.view import View

_settle = direct(settle)


@dataclass(frozen=True, kw_only=True)
class AdaptiveStatic(CappedCounts):
    """ASP, adaptive static partitioning: the free processors in equal parts.

    With F processors free and Q jobs waiting each starting job gets
    min(cap, max(1, floor(F/Q))), as long as there is room; what is left over goes
    one by one to these, and nobody else starts. Setia & Tripathi 1993, Rosti, Smirni, Dowdy,
    Serazzi & Carlson 1994; from memory. Use with ``backfill=none``.
    """

    def open(self, view: View) -> Candidates:
        """Begin a run."""
        return CappedCandidates(view, self, share_free)


@compiled
def share_free(state: RunState, memory: RuleMemory) -> None:
    """Divide free processors among the first jobs; consider nobody else.

    What is left over goes to them, a step to the next count to each in turn, while any fits.
    """
    if find_search_end(state, memory) == 0:
        return
    queue, at, counts = memory.queue, memory.queue.at[0], memory.menu_counts
    free = state.scalars[0].free
    share, last = max(free // at.waiting, 1), at.first
    while last < at.last:
        own = memory.menu_spans[queue.job[last]]
        if queue.processors[last] > 0:
            pick = last_up_to(counts, own.begin, own.begin + own.number, share)
            if counts[pick] > free:
                break
            free -= counts[pick]
            own.low, own.high = pick, pick + 1
        last += 1
    for k in range(last, at.last):
        own = memory.menu_spans[queue.job[k]]
        own.low, own.high = own.begin, own.begin + 1
    grew = True
    while free > 0 and grew:
        grew = False
        for k in range(at.first, last):
            own = memory.menu_spans[queue.job[k]]
            if queue.processors[k] == 0 or own.high == own.begin + own.number:
                continue
            step = counts[own.high] - counts[own.low]
            if step <= free:
                own.low, own.high = own.low + 1, own.high + 1
                free -= step
                grew = True
    memory.kept[0].search_end = last


@dataclass(frozen=True, kw_only=True)
class AdaptiveEqual(CappedCounts):
    """AEP (AP1): the whole machine in equal parts.

    The target is max(1, round(P/(Q+1))), Q the jobs that wait besides the one
    that is to start (our reading: a single job on an idle machine gets all of
    it); a job starts only when its target is free. From memory. Use with
    ``backfill=none``.
    """

    def open(self, view: View) -> Candidates:
        """Begin a run."""
        return MachineShare(view, self)


class MachineShare(CappedCandidates):
    """Divides the machine by the number of waiting jobs."""

    def narrow(self, memory: RuleMemory) -> int:
        """Fix every count at the target."""
        waiting = memory.queue.at["waiting"].item()
        target = max(floor(self.view.processors / waiting + 0.5), 1)
        return int(_settle(memory, np.full(len(self.view.submit_time), np.inf), float(target)))


@dataclass(frozen=True, kw_only=True)
class Available(CappedCounts):
    """Downey's strategies: take what is free, once enough of the cap is.

    The head of the queue takes min(cap, F) processors as soon as F is at least
    `share` of its cap: 0 is ASP as Downey has it (start now with whatever is
    free), 1 is AVG (wait for all of A). Downey (HPDC'97; JSSPP'97), from memory.
    Use with ``backfill=none``.

    Parameters
    ----------
    share : float
        From 0 to 1.
    """

    cap: Cap = "average"
    share: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        SHARE.check(share=self.share)

    def open(self, view: View) -> Candidates:
        """Begin a run."""
        return WhatIsFree(view, self)


@compiled
def take_free(memory: RuleMemory, free: int, share: float) -> int:
    """Give heads what is free of their caps; from the first that waits on, all get their cap.

    Returns one past the last place in use.
    """
    queue, at, counts, waits = memory.queue, memory.queue.at[0], memory.menu_counts, False
    for k in range(at.first, at.last):
        if queue.processors[k] == 0:
            continue
        own = memory.menu_spans[queue.job[k]]
        begin, end = own.begin, own.begin + own.number
        own.low, own.high = end - 1, end
        if waits or free < counts[begin] or is_less(free, share * counts[end - 1]):
            waits = True
            continue
        own.low = last_up_to(counts, begin, end, free)
        own.high = own.low + 1
        free -= counts[own.low]
    return int(at.last)


_take_free = direct(take_free)


class WhatIsFree(CappedCandidates):
    """Gives heads what is free, in queue order."""

    def narrow(self, memory: RuleMemory) -> int:
        """Fix the counts of the heads that take what is free; the next waits for its cap."""
        return int(_take_free(memory, self.view.free, float(self.rule.share)))
