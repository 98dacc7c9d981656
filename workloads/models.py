"""What all models of workloads share: their limits, and the last steps to a trace."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from workloads.base import Trace, check_jobs
from workloads.errors import WorkloadError
from workloads.estimates import METHODS, Estimates
from workloads.limits import check_count, check_load
from workloads.load import scale_load
from workloads.streams import Streams


def check_model(jobs: object, load: object, estimates: str, processors: object) -> None:
    """Refuse arguments that no model of workloads takes.

    Raises
    ------
    WorkloadError
        Naming the key.
    """
    check_count("jobs", jobs)
    check_count("processors", processors)
    check_load(load)
    if estimates == "recorded":
        allowed = ", ".join(name for name in METHODS if name != "recorded")
        raise WorkloadError(
            f"workload.estimates=recorded: a model records no requested times; allowed: {allowed}"
        )


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
        Columns submit_time, requested_processors, reference_runtime, in submit order.
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
    table = jobs.assign(
        job_id=np.arange(1, len(jobs) + 1),
        requested_time=estimates.draw(runtimes, streams("estimates")),
        user=-1,
        executable=-1,
        preceding_job=-1,
        think_time=-1.0,
    )
    return Trace(check_jobs(table, source), processors, source, models=models)
