"""SA that tries the counts which ADEPT asks for while processors idle."""

from typing import Literal

import numpy as np

from sim.errors import AT_LEAST_1, SHARE
from sim.policies.allocation.sa import SmallestTurnaround
from sim.policies.base import Outlook
from sim.policies.ties import is_less
from sim.state.view import View


class Explore(SmallestTurnaround):
    """Choose by SA, but try the count that the predictor asks for when processors idle.

    ADEPT's reliability judgement names, with its warnings, the count to measure
    next (its paper, section VI). A job is run on that count instead if a share
    `idle` of the machine is free, the count is feasible and could start at
    once, and the job would end no later than `patience` times the turnaround it
    would have had. Our reading; the paper leaves the use of the judgement open.

    Parameters
    ----------
    idle : float
        In [0, 1].
    patience : float
        At least 1.
    counts, adopters
        As in `SmallestTurnaround`.
    """

    def __init__(
        self,
        idle: float = 0.5,
        patience: float = 2.0,
        counts: Literal["powers_of_two", "all"] = "powers_of_two",
        adopters: float = 1.0,
    ) -> None:
        super().__init__(counts, adopters)
        SHARE.check(idle=idle)
        AT_LEAST_1.check(patience=patience)
        self.idle = idle
        self.patience = patience

    def choose(self, job: int, view: View, outlook: Outlook) -> int:
        """Return SA's count, or the one that the predictor wants measured."""
        best = super().choose(job, view, outlook)
        if view.jobs.adopter_draws[job] >= self.adopters or view.free < self.idle * view.processors:
            return best
        wanted = view.predictor.wanted(job, best)
        if wanted is None or wanted == best or not self._can_start(job, wanted, view):
            return best
        counts = np.array([best, wanted])
        runtimes = view.curve(job, counts)
        if runtimes is None:
            return best
        runtimes = runtimes * view.predictor.caution(job)
        starts = outlook(counts, runtimes)
        ends = starts + runtimes - view.now
        if starts[1] > view.now or is_less(self.patience * ends[0], ends[1]):
            return best
        return wanted

    def _can_start(self, job: int, processors: int, view: View) -> bool:
        return processors <= view.free and processors in view.counts(job)
