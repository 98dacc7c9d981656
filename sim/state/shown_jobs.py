"""What may be known of jobs by those who decide and predict: nothing before they arrive."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors.base import IntArray, VisibleJobs
from sim.state.feasible_counts import FeasibleCounts, sealed


class ShownJobs:
    """The jobs that have arrived; of all others everything is 0.

    Parameters
    ----------
    jobs : VisibleJobs
        All jobs.
    more : mapping of str to numpy.ndarray
        What policies may know besides, ``least`` and ``largest`` count among it.
    special : callable
        As of `FeasibleCounts`.
    processors : int
        Size of the machine.

    Attributes
    ----------
    jobs : VisibleJobs
    more : dict of str to numpy.ndarray
        What is shown; nothing leads from there to who has not arrived.
    counts : FeasibleCounts
        Of jobs that have arrived.
    """

    def __init__(
        self,
        jobs: VisibleJobs,
        more: Mapping[str, NDArray[Any]],
        special: Callable[[int], IntArray | None],
        processors: int,
    ) -> None:
        self._known = {**vars(jobs), **more}
        self._written = {
            name: np.zeros(len(column), column.dtype) for name, column in self._known.items()
        }
        self._ask, self._special = special, dict[int, IntArray]()
        shown = {name: sealed(column) for name, column in self._written.items()}
        self.jobs = VisibleJobs(**{name: shown[name] for name in vars(jobs)})
        self.more = {name: shown[name] for name in more}
        self.counts = FeasibleCounts(
            shown["least"], shown["largest"], self._special.get, processors
        )

    def arrive(self, jobs: Sequence[int]) -> None:
        """Show jobs that have arrived."""
        at = jobs[0] if len(jobs) == 1 else jobs
        for name, column in self._written.items():
            column[at] = self._known[name][at]
        for job in jobs:
            if self._known["least"][job] != self._known["largest"][job]:
                special = self._ask(job)
                if special is not None:
                    self._special[job] = sealed(special)

    def leave(self, job: int) -> None:
        """Keep no counts of a job that has ended."""
        self._special.pop(job, None)
        self.counts.leave(job)
