"""The paper's own runs as a workload: each input deck on each number of processors."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workloads.base import Trace
from workloads.errors import WorkloadError
from workloads.evolving.phases import EvolvingJobs
from workloads.models.estimates import Estimates
from workloads.models.model import finish, job_table
from workloads.streams import Streams


@dataclass(eq=False, repr=False)
class Decks:
    """One run of every deck on every count, submitted together.

    Each takes the time of its own cycles, so that under
    ``evolving=adaptive evolving.deal=in_turn``, with the same decks, machine and
    cycles, nothing is stretched.

    Parameters
    ----------
    decks : sequence of str
    counts : sequence of int
        Processors of each deck's runs, at least 1.
    machine : str
        What a cycle costs.
    cycles : int, optional
        Cycles of each run; each deck's own by default.
    estimate_factor : float
        Requested over true time, at least 1.

    Raises
    ------
    WorkloadError
        If a name is unknown or a value out of range.

    Examples
    --------
    >>> Decks(counts=[1, 16]).trace(Streams(seed=1)).jobs["requested_processors"].tolist()
    [1, 1, 1, 16, 16, 16]
    """

    decks: Sequence[str] = ("timing_a", "timing_b", "timing_c")
    counts: Sequence[int] = (1, 16)
    machine: str = "itanium2"
    cycles: int | None = None
    estimate_factor: float = 1.5

    def __post_init__(self) -> None:
        if not self.counts or not all(type(n) is int and n >= 1 for n in self.counts):
            said = f"got {list(self.counts)}"
            raise WorkloadError(f"counts must be whole numbers, at least 1, {said}")
        if not self.estimate_factor >= 1.0:
            raise WorkloadError(f"estimate_factor must be at least 1, got {self.estimate_factor}")
        self.jobs = EvolvingJobs(1.0, self.decks, self.machine, self.cycles, "in_turn")

    def trace(self, streams: Streams, processors: int | None = None) -> Trace:
        """Return the runs, those of the first count first."""
        decks = len(self.jobs.applications)
        counts = np.repeat(np.array(self.counts, np.int64), decks)
        runs = self.jobs.assign(counts, streams)
        runtimes = [runs.run(job).total(int(n)) for job, n in enumerate(counts)]
        table = job_table(np.zeros(counts.size), counts, runtimes)
        machine = int(counts.sum()) if processors is None else processors
        exact = Estimates("exact", 1.0, None)
        trace = finish(table, "decks", machine, None, exact, streams, {})
        trace.jobs["requested_time"] *= self.estimate_factor
        return trace
