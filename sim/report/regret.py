"""Regret against the oracle: how much longer jobs take, which jobs, and at which counts."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from predictors.base import FloatArray
from sim.errors import StatisticsError
from sim.results.job_metrics import NARROW_PROCESSORS, SHORT_SECONDS

COUNT_BINS = (1, 2, 5, 9, 17, 33, 65, 129, 257, 513, 1025)
"""Least counts of the bins of allocated processors."""
NEEDED = (
    *("job_id", "wait_time", "response_time", "requested_processors", "reference_runtime"),
    *("allocated_processors", "believed_runtime", "runtime"),
)


def job_class(jobs: pd.DataFrame) -> pd.Series:
    """Return the class of each job by its request, as summaries name them.

    Examples
    --------
    >>> jobs = pd.DataFrame({"requested_processors": [4, 64], "reference_runtime": [60.0, 9e4]})
    >>> job_class(jobs).tolist()
    ['narrow_short', 'wide_long']
    """
    width = np.where(jobs["requested_processors"] <= NARROW_PROCESSORS, "narrow_", "wide_")
    length = np.where(jobs["reference_runtime"] <= SHORT_SECONDS, "short", "long")
    return pd.Series(np.char.add(width, length), index=jobs.index)


def count_bin(counts: pd.Series) -> pd.Series:
    """Return the bin of each processor count in words.

    Examples
    --------
    >>> count_bin(pd.Series([1, 3, 8, 2000])).tolist()
    ['1', '2-4', '5-8', '1025 or more']
    """
    edges = np.array(COUNT_BINS)
    place = np.searchsorted(edges, counts.to_numpy(), side="right") - 1
    last = len(edges) - 1
    names = [
        f"{low}" if high == low else f"{low}-{high}"
        for low, high in zip(edges[:-1].tolist(), (edges[1:] - 1).tolist(), strict=True)
    ]
    names.append(f"{edges[last]} or more")
    return pd.Series(np.array(names, dtype=object)[place], index=counts.index)


def regret_of_jobs(own: pd.DataFrame, oracle: pd.DataFrame) -> pd.DataFrame:
    """Return by how much each job's times exceed those of the same job under the oracle.

    Parameters
    ----------
    own, oracle : pandas.DataFrame
        ``jobs.parquet`` of two runs of one policy on the same jobs; calibration
        jobs (negative ``job_id``) are left out.

    Returns
    -------
    pandas.DataFrame
        A row a job in the order of `own`: ``job_id, class, count`` (bin of the
        allocated processors), ``choice`` (``fewer``, ``same``, ``more``
        processors than under the oracle), ``regret`` of its response time,
        its parts ``waiting`` and ``running``, in seconds, and ``error``,
        |believed - actual| / actual of its runtime.

    Raises
    ------
    StatisticsError
        If a column is missing or the jobs are not the same.
    """
    for name, frame in (("own", own), ("oracle", oracle)):
        missing = [column for column in NEEDED if column not in frame.columns]
        if missing:
            raise StatisticsError(f"{name}: column {missing[0]} is missing")
    own = own[own["job_id"] >= 0].reset_index(drop=True)
    other = oracle[oracle["job_id"] >= 0].set_index("job_id")
    if len(own) != len(other) or not own["job_id"].isin(other.index).all():
        raise StatisticsError("regret compares runs of the same jobs; these differ")
    best = other.loc[own["job_id"]].reset_index(drop=True)
    apart = own["allocated_processors"] - best["allocated_processors"]
    regret = own["response_time"] - best["response_time"]
    waiting = own["wait_time"] - best["wait_time"]
    return pd.DataFrame(
        {
            "job_id": own["job_id"],
            "class": job_class(own),
            "count": count_bin(own["allocated_processors"]),
            "choice": np.array(["fewer", "same", "more"], object)[
                (np.sign(apart.to_numpy()) + 1).astype(np.int64)
            ],
            "regret": regret,
            "waiting": waiting,
            "running": regret - waiting,
            "error": (own["believed_runtime"] - own["runtime"]).abs() / own["runtime"],
        }
    )


def regret_by(regret: pd.DataFrame, key: str | Sequence[str]) -> pd.DataFrame:
    """Return where regret is felt: sums over groups of jobs, per job of the whole run.

    Parameters
    ----------
    regret : pandas.DataFrame
        As `regret_of_jobs` returns it.
    key : str or sequence of str
        ``class``, ``count``, ``choice``, or several.

    Returns
    -------
    pandas.DataFrame
        By group: ``jobs``, their share; ``regret``, ``waiting``, ``running``,
        their sums over all jobs of the run, so that the column adds up to the
        difference of mean response times; ``share`` of the whole regret (NaN
        where that is 0); ``median_error`` of prediction.

    Notes
    -----
    This says which jobs bear the regret, not whose errors cause it: one job's
    wrong belief makes others wait. For causes, mend the errors of a group with
    `predictors.in_loop.partial_oracle.PartialOracle` and see what regret is left.
    """
    groups = regret.groupby([key] if isinstance(key, str) else list(key), sort=False)
    number = max(len(regret), 1)
    table = groups[["regret", "waiting", "running"]].sum() / number
    whole = float(regret["regret"].sum()) / number
    table.insert(0, "jobs", groups.size() / number)
    table["share"] = table["regret"] / whole if whole else np.nan
    table["median_error"] = groups["error"].median()
    return table.sort_values("regret", ascending=False, kind="stable")


def shares_of_cause(
    regret: float, without: Sequence[float], alone: Sequence[float]
) -> tuple[FloatArray, float]:
    """Return how much of a regret each group's errors cause, from runs with errors mended.

    Parameters
    ----------
    regret : float
        Of the predictor as it is.
    without : sequence of float
        For each group, the regret left when its errors alone are mended.
    alone : sequence of float
        For each group, the regret when all errors but its own are mended.

    Returns
    -------
    shares : numpy.ndarray of float, shape (n,)
        In the units of `regret`: the mean of what mending the group takes away
        and of what its errors cost alone, its first and last place in Shapley's
        sum; exact for two groups.
    rest : float
        What is left of the regret: errors of groups act upon each other.

    Raises
    ------
    StatisticsError
        If the numbers of groups differ.

    Examples
    --------
    >>> shares, rest = shares_of_cause(10.0, without=[4.0, 8.0], alone=[6.0, 2.0])
    >>> shares.tolist(), rest
    ([6.0, 2.0], 2.0)
    """
    if len(without) != len(alone):
        raise StatisticsError(f"groups differ: {len(without)} mended, {len(alone)} alone")
    shares = (regret - np.asarray(without, np.float64) + np.asarray(alone, np.float64)) / 2
    return shares, float(regret - shares.sum())
