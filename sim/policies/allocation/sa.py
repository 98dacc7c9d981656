"""SA: the smallest predicted turnaround, chosen at submit (Cirne & Berman)."""

from typing import Literal

import numpy as np

from predictors.base import IntArray
from sim.policies.base import Outlook
from sim.view import View


class SmallestTurnaround:
    """SA: each arriving job tries its counts against the queue and takes the best.

    The turnaround of a count is its predicted start, given everything that runs
    and waits, plus the predicted runtime. Then the job is rigid. Cirne & Berman,
    JPDC 2002; TPDS 2003.

    Parameters
    ----------
    counts : {"powers_of_two", "all"}
        Which counts to try; the request and the job's largest are always among them.
    adopters : float
        Share of the jobs that choose so; the others keep their request.
    """

    def __init__(
        self, counts: Literal["powers_of_two", "all"] = "powers_of_two", adopters: float = 1.0
    ) -> None:
        if counts not in ("powers_of_two", "all"):
            raise ValueError(f"counts must be 'powers_of_two' or 'all', got {counts!r}")
        if not 0 <= adopters <= 1:
            raise ValueError(f"adopters must be in [0, 1], got {adopters}")
        self.counts = counts
        self.adopters = adopters

    def choose(self, job: int, view: View, outlook: Outlook) -> int:
        """Return the count with the least turnaround, ties to the smaller one."""
        request = view.requested_processors[job]
        if view.luck[job] >= self.adopters:
            return request
        counts = self.candidates(job, view)
        if counts.size == 1:
            return int(counts[0])
        runtimes = view.curve(job, counts)
        if runtimes is None:
            return request
        best = int(np.argmin(outlook(counts, runtimes) + runtimes))
        view.believe(job, int(counts[best]), float(runtimes[best]))
        return int(counts[best])

    def candidates(self, job: int, view: View) -> IntArray:
        """Return the counts to try, ascending."""
        counts = view.counts(job)
        if self.counts == "all" or counts.size == 1:
            return counts
        request = view.requested_processors[job]
        tried: IntArray = counts[((counts & (counts - 1)) == 0) | (counts == request)]
        return tried
