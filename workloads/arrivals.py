"""When jobs are submitted: offered load, daily cycles, windows of a log, weeks drawn again."""

import numpy as np
import pandas as pd

from workloads.base import FloatArray, IntArray
from workloads.errors import WorkloadError

DAY = 86_400.0


def arrivals_in_cycle(points: FloatArray, weights: FloatArray) -> FloatArray:
    """Return when each amount of a daily cycle has passed.

    The day is cut into equal buckets. Passing a bucket costs its weight, evenly
    over its length, so time runs fast through buckets of little weight.

    Parameters
    ----------
    points : numpy.ndarray of float, shape (n,)
        Cumulated amounts, not decreasing, from midnight of the first day.
    weights : numpy.ndarray of float, shape (b,)
        Positive cost of each bucket.

    Returns
    -------
    numpy.ndarray of float, shape (n,), seconds since that midnight

    Examples
    --------
    >>> arrivals_in_cycle(np.array([0.5, 2.0, 4.5]), np.array([1.0, 3.0])).tolist()
    [21600.0, 57600.0, 108000.0]
    """
    passed = np.concatenate([[0.0], np.cumsum(weights)])
    edges = np.linspace(0.0, DAY, len(weights) + 1)
    days, rest = np.divmod(points, passed[-1])
    days *= DAY
    days += np.interp(rest, passed, edges)
    return days


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


PERIODS = (("weeks", 604800.0), ("days", 86400.0), ("hours", 3600.0))
"""What is drawn again: the longest of which a log has at least two."""


def radical_inverse(number: int) -> float:
    """Return the binary digits of a number mirrored at the point (van der Corput).

    Examples
    --------
    >>> [radical_inverse(number) for number in range(5)]
    [0.0, 0.5, 0.25, 0.75, 0.125]
    """
    digits = f"{number:b}"[::-1]
    return int(digits, 2) / float(1 << len(digits))


def window_of(replication: int, windows: int) -> int | None:
    """Return which window a replication takes, None when none is left.

    Windows come in van der Corput order: the first, then always one that lies far
    from those before, whatever the number of replications.

    Examples
    --------
    >>> [window_of(replication, 5) for replication in range(6)]
    [0, 2, 1, 3, 4, None]
    """
    if replication >= windows:
        return None
    taken: list[int] = []
    number = 0
    while len(taken) <= replication:
        place = int(radical_inverse(number) * windows)
        number += 1
        if place not in taken:
            taken.append(place)
    return taken[-1]


def resample(
    jobs: pd.DataFrame, wanted: int, rng: np.random.Generator
) -> tuple[pd.DataFrame, str | None]:
    """Return so many jobs of whole weeks that are drawn with replacement.

    Each week drawn follows the one before; jobs keep their instant in the week,
    and get fresh numbers. A job follows its predecessor only where both are in
    one week.

    Parameters
    ----------
    jobs : pandas.DataFrame
        A job table in submit order.
    wanted : int
        How many jobs.
    rng : numpy.random.Generator

    Returns
    -------
    jobs : pandas.DataFrame
    period : str or None
        ``weeks``; ``days`` or ``hours`` where the log is shorter than two weeks
        or two days; None where it is too short for these, and comes as it is.
    """
    submit = jobs["submit_time"].to_numpy(float)
    since = submit - submit[0]
    fitting = [(name, length) for name, length in PERIODS if since[-1] >= 2 * length]
    if not fitting:
        return jobs.iloc[:wanted], None
    period, seconds = fitting[0]
    whole = int(since[-1] // seconds)
    edges = np.searchsorted(since, np.arange(whole + 1) * seconds)
    weeks: list[IntArray] = []
    drawn: list[int] = []
    total = 0
    while total < wanted:
        drawn.append(int(rng.integers(whole)))
        weeks.append(np.arange(edges[drawn[-1]], edges[drawn[-1] + 1]))
        total += len(weeks[-1])
    rows = np.concatenate(weeks)[:wanted]
    place = np.repeat(np.arange(len(drawn)), [len(week) for week in weeks])[:wanted]
    table = jobs.iloc[rows].reset_index(drop=True)
    table["submit_time"] = submit[rows] + (place - np.array(drawn)[place]) * seconds
    table["preceding_job"] = _predecessors(table, place)
    table["job_id"] = np.arange(1, len(table) + 1)
    return table, period


def _predecessors(table: pd.DataFrame, place: IntArray) -> IntArray:
    """Return the fresh number of each job's predecessor in its week, -1 without one."""
    own = pd.MultiIndex.from_arrays([place, table["job_id"]])
    asked = pd.MultiIndex.from_arrays([place, table["preceding_job"]])
    found = own.get_indexer(asked)
    return np.where((table["preceding_job"] > 0) & (found >= 0), found + 1, -1)
