"""Offered load, and scaling to it by the distances between submits."""

import numpy as np
import pandas as pd

from workloads.errors import WorkloadError


def offered_load(jobs: pd.DataFrame, processors: int) -> float:
    """Return the offered load of a job table.

    It is the sum of reference count x reference runtime over processors x
    (last submit - first submit); infinite where all jobs come at one instant.

    Parameters
    ----------
    jobs : pandas.DataFrame
        With the columns of `workloads.base.COLUMNS`, at least one row.
    processors : int
        Size of the machine.

    Examples
    --------
    >>> jobs = pd.DataFrame({"submit_time": [0.0, 100.0], "requested_processors": [2, 1],
    ...                      "reference_runtime": [30.0, 20.0]})
    >>> offered_load(jobs, processors=4)
    0.2
    """
    submit = jobs["submit_time"].to_numpy(float)
    span = float(submit.max() - submit.min())
    runtime = jobs["reference_runtime"].to_numpy(float)
    area = float(np.dot(jobs["requested_processors"].to_numpy(float), runtime))
    return area / (processors * span) if span > 0 else np.inf


def scale_load(jobs: pd.DataFrame, processors: int, target: float) -> pd.DataFrame:
    """Return the jobs with distances from the first submit scaled to an offered load.

    A single job, which offers no load over no time, is returned as it is.

    Raises
    ------
    WorkloadError
        If `target` is not positive and finite, or the jobs have no distances to
        scale.

    Examples
    --------
    >>> jobs = pd.DataFrame({"submit_time": [50.0, 100.0], "requested_processors": [2, 1],
    ...                      "reference_runtime": [30.0, 20.0]})
    >>> scale_load(jobs, processors=4, target=0.8)["submit_time"].tolist()
    [50.0, 75.0]
    """
    if not (np.isfinite(target) and target > 0):
        raise WorkloadError(f"workload.load={target}: must be positive and finite, or null")
    if len(jobs) == 1:
        return jobs
    current = offered_load(jobs, processors)
    if not np.isfinite(current):
        raise WorkloadError(
            f"workload.load={target}: {len(jobs)} jobs submitted at one instant have no "
            "interarrival times to scale; set workload.load=null"
        )
    submit = jobs["submit_time"].to_numpy(float)
    return jobs.assign(submit_time=submit[0] + (submit - submit[0]) * (current / target))
