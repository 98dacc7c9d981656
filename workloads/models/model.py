"""What all models of workloads share: their limits, and the last steps to a trace."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from workloads.arrivals import scale_load
from workloads.base import Trace, check_jobs
from workloads.errors import ABOVE_0, WorkloadError, check_count, check_load, check_number
from workloads.models.estimates import METHODS, Estimates, estimates_of
from workloads.streams import Streams


def job_table(submit_time: ArrayLike, processors: ArrayLike, runtime: ArrayLike) -> pd.DataFrame:
    """Return what a model draws of each job, for `finish`."""
    columns = {
        "submit_time": submit_time,
        "requested_processors": processors,
        "reference_runtime": runtime,
    }
    return pd.DataFrame(columns, copy=False)


def finish(
    jobs: pd.DataFrame,
    source: str,
    processors: int,
    load: float | None,
    estimates: Estimates,
    streams: Streams,
    models: Mapping[str, np.ndarray],
) -> Trace:
    """Make a trace of a model's jobs: numbered, scaled to the load, with estimates.

    Parameters
    ----------
    jobs : pandas.DataFrame
        Of `job_table`, in submit order.
    source, processors, load, estimates
        As the model was asked.
    streams : Streams
        Estimates come from the stream ``estimates``.
    models : mapping of str to numpy.ndarray
        Per-job columns that only this model knows.
    """
    if load is not None:
        jobs = scale_load(jobs, processors, load)
    runtimes = jobs["reference_runtime"].to_numpy(float)
    columns = {name: jobs[name].to_numpy() for name in jobs.columns} | {
        "job_id": np.arange(1, len(jobs) + 1),
        "requested_time": estimates.draw(runtimes, streams("estimates")),
        **{name: np.broadcast_to(-1, len(jobs)) for name in ("user", "executable")},
        "preceding_job": np.broadcast_to(-1, len(jobs)),
        "think_time": np.broadcast_to(-1.0, len(jobs)),
    }
    table = pd.DataFrame(columns, copy=False)  # where all jobs have one value, it takes no room
    return Trace(check_jobs(table, source), processors, source, models=models)


@dataclass(kw_only=True)
class ModelWorkload(ABC):
    """Jobs drawn from a model, scaled to an offered load.

    Parameters
    ----------
    jobs : int
        How many jobs.
    load : float or None
        Offered load; None leaves the model's interarrival times alone.
    estimates : str
        Requested times, see `Estimates`; all but ``recorded``.
    processors : int
        Machine size where the cluster names none.
    estimate_factor, estimate_limit, time_limit, at_limit
        Of `Estimates`.
    widest : float or None
        Share of the machine that the widest job may have, above 0 and at most 1; None
        takes jobs as wide as the model's law has them.

    Raises
    ------
    WorkloadError
        If a value is out of range.
    """

    jobs: int = 5000
    load: float | None = 0.7
    estimates: str = "tsafrir"
    processors: int = 256
    estimate_factor: float = 5.0
    estimate_limit: float | None = None
    time_limit: float | None = 64800.0
    at_limit: float | None = 0.1
    widest: float | None = 0.7

    def __post_init__(self) -> None:
        check_count("workload.jobs", self.jobs)
        check_count("workload.processors", self.processors)
        check_load(self.load)
        if self.estimates == "recorded":
            raise WorkloadError(
                "workload.estimates=recorded: a model records no requested times; "
                f"allowed: {', '.join(METHODS)}"
            )
        wanted = "above 0 and at most 1, or null"
        check_number("workload.widest", self.widest, wanted, ABOVE_0, 1.0)
        self._estimates = estimates_of(self)

    def widest_on(self, processors: int) -> int:
        """Return how many processors the widest job may have on a machine of so many."""
        return processors if self.widest is None else max(int(self.widest * processors), 1)

    @abstractmethod
    def draw(
        self, streams: Streams, processors: int
    ) -> tuple[pd.DataFrame, Mapping[str, np.ndarray]]:
        """Return the jobs for `finish`, and per-job columns that only this model knows."""

    def trace(self, streams: Streams, processors: int | None = None) -> Trace:
        """Return the jobs, on a machine of so many processors where the cluster names one."""
        machine = self.processors if processors is None else processors
        jobs, models = self.draw(streams, machine)
        source = type(self).__name__.lower()
        trace = finish(jobs, source, machine, self.load, self._estimates, streams, models)
        return replace(trace, lacks_users=True)
