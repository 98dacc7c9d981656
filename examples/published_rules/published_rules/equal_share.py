"""Equal shares for jobs that run to completion: ASP and AEP."""

from dataclasses import dataclass
from math import floor

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from published_rules.targets import aim
from sim.errors import SHARE
from sim.policies.advice import last_up_to, round_down
from sim.policies.allocation.queue_time import Cap, CappedCandidates, CappedCounts
from sim.policies.molding.base import Candidates
from sim.policies.molding.candidates import OpenQueue, Spans
from sim.policies.ties import is_less
from sim.state.view import View


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
        return FreeShare(view, self)


class FreeShare(CappedCandidates):
    """Divides what is free among those who wait."""

    def narrow(self, queue: OpenQueue) -> None:
        """Fix the counts of the first jobs, as many as there is room for."""
        places = queue.places()
        chosen = self._share(queue, places)
        targets = np.zeros(queue.last - queue.first)
        for place, pick in zip(places.tolist(), chosen, strict=False):
            targets[place - queue.first] = queue.candidates(place)[0][pick]
        aim(queue, targets)
        queue.spans["held"][places[: len(chosen)]] = 0
        queue.spans["held"][places[len(chosen) :]] = 1

    def _share(self, queue: OpenQueue, places: IntArray) -> list[int]:
        """Return which candidate each of the first jobs gets."""
        free = self.view.free
        share = max(free // places.size, 1)
        offered: list[list[int]] = []
        chosen: list[int] = []
        for place in places.tolist():
            counts = queue.candidates(place)[0]
            pick = round_down(counts, share)
            if counts[pick] > free:
                break
            free -= int(counts[pick])
            offered.append(counts.tolist())
            chosen.append(pick)
        return _grow(offered, chosen, free)


def _grow(offered: list[list[int]], chosen: list[int], free: int) -> list[int]:
    """Hand out free processors, a step to the next count to each job in turn, while any fits."""
    grew = True
    while free > 0 and grew:
        grew = False
        for i, (counts, pick) in enumerate(zip(offered, chosen, strict=True)):
            step = counts[pick + 1] - counts[pick] if pick + 1 < len(counts) else 0
            if 0 < step <= free:
                chosen[i] += 1
                free -= step
                grew = True
    return chosen


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

    def __init__(self, view: View, rule: CappedCounts) -> None:
        super().__init__(view, rule)
        self._unlimited: FloatArray = np.full(len(view.submit_time), np.inf)

    def narrow(self, queue: OpenQueue) -> None:
        """Fix every count at the target."""
        target = max(floor(self.view.processors / queue.waiting + 0.5), 1)
        queue.settle(self._unlimited, float(target))


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
def take_free(
    counts: IntArray, spans: Spans, processors: IntArray, first: int, last: int,
    free: int, share: float,
) -> None:  # fmt: skip
    """Give heads what is free of their caps; from the first that waits on, all get their cap."""
    waits = False
    for k in range(first, last):
        if processors[k] == 0:
            continue
        begin, end = spans[k].begin, spans[k].begin + spans[k].number
        spans[k].low, spans[k].high = end - 1, end
        if waits or free < counts[begin] or is_less(free, share * counts[end - 1]):
            waits = True
            continue
        spans[k].low = last_up_to(counts, begin, end, free)
        spans[k].high = spans[k].low + 1
        free -= counts[spans[k].low]


class WhatIsFree(CappedCandidates):
    """Gives heads what is free, in queue order."""

    def __init__(self, view: View, rule: Available) -> None:
        super().__init__(view, rule)
        self._share = float(rule.share)

    def narrow(self, queue: OpenQueue) -> None:
        """Fix the counts of the heads that take what is free; the next waits for its cap."""
        take_free(
            queue.counts, queue.spans, queue.processors, queue.first, queue.last,
            self.view.free, self._share,
        )  # fmt: skip
