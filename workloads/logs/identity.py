"""Which application a job of a log belongs to, by what the log says of its jobs.

A log names users, executables or job names, and requests; none of them is an
application by definition. An identity says which of them stand for one.
"""

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np
import pandas as pd

from workloads.base import FloatArray, IntArray
from workloads.errors import WorkloadError

KEYS: Mapping[str, tuple[str, ...]] = {
    "user_executable": ("user", "executable"),
    "user_name": ("user", "name"),
    "executable": ("executable",),
    "user": ("user",),
    "user_request": ("user", "requested_processors", "requested_time"),
}
"""What jobs of one application have in common, in the order in which ``auto`` tries:
from the finest on, and the one that contains the count last."""

NONE = "none"
Identity = Literal[
    "auto", "user_executable", "user_name", "executable", "user", "user_request", "none"
]
IDENTITIES = get_args(Identity)
"""What ``workload.identity`` may say."""

SEEN, COUNTS = 3, 3
"""A job's application counts as known once so many jobs of it came before, and as
measured once these had so many different processor counts."""

ENOUGH = 0.5
"""Share of jobs, seen `SEEN` times before, that makes ``auto`` take an identity."""

POPULAR = 0.01
"""Share of jobs that ask for a popular requested time, and at least two jobs."""


def labels_by(jobs: pd.DataFrame, identity: str) -> IntArray:
    """Return a number from 0 for the application of each job, in order of appearance.

    A job of which the log says nothing is an application of its own.

    Parameters
    ----------
    jobs : pandas.DataFrame
        ``user``, ``executable``, ``name`` (-1 where unknown), ``requested_processors``
        and ``requested_time`` (NaN where unknown), in submit order.
    identity : str
        A key of `KEYS`, or ``none``.

    Examples
    --------
    >>> jobs = pd.DataFrame({"user": [7, 8, 7, -1, -1]})
    >>> labels_by(jobs, "user").tolist()
    [0, 1, 0, 2, 3]
    """
    if identity == NONE:
        return np.arange(len(jobs), dtype=np.int64)
    keys = jobs[list(KEYS[identity])].fillna(-1)
    alone = ~_is_known(keys)
    apart = np.where(alone, np.arange(len(jobs)), -1)
    groups = keys.assign(apart=apart).groupby([*keys, "apart"], sort=False)
    return np.asarray(groups.ngroup(), np.int64)


def _is_known(keys: pd.DataFrame) -> np.ndarray:
    """Return of which jobs the log says enough; a request may do without its user."""
    known = keys.drop(columns="requested_processors", errors="ignore").to_numpy(float) >= 0
    either = "requested_time" in keys
    return np.asarray(known.any(axis=1) if either else known.all(axis=1), bool)


def counts_before(labels: IntArray, processors: IntArray) -> IntArray:
    """Return at how many processor counts each job's application had come before it.

    Examples
    --------
    >>> counts_before(np.zeros(4, int), np.array([4, 4, 8, 1])).tolist()
    [0, 1, 1, 2]
    """
    pairs = pd.DataFrame({"label": labels, "count": processors})
    fresh = (~pairs.duplicated()).astype(np.int64)
    return np.asarray(fresh.groupby(labels).cumsum() - fresh, np.int64)


def known_share(labels: IntArray) -> float:
    """Return the share of jobs whose application had come `SEEN` times before."""
    return float((pd.Series(labels).groupby(labels).cumcount() >= SEEN).mean())


def measured_share(labels: IntArray, processors: IntArray) -> float:
    """Return the share of jobs whose application had come at `COUNTS` counts before."""
    return float((counts_before(labels, processors) >= COUNTS).mean())


def offered(jobs: pd.DataFrame) -> list[str]:
    """Return the identities that a log has anything to say on, ``none`` among them.

    Names without their numbers that tell no more than the users are none.
    """
    found = [name for name in KEYS if _is_known(jobs[list(KEYS[name])].fillna(-1)).any()]
    if "user_name" in found:
        users, names = (labels_by(jobs, name).max() for name in ("user", "user_name"))
        if names == users:
            found.remove("user_name")
    return [*found, NONE]


def identify(jobs: pd.DataFrame, identity: str, source: str) -> tuple[str, IntArray]:
    """Return the identity that is used, and the application of each job.

    Parameters
    ----------
    jobs : pandas.DataFrame
        As for `labels_by`: all jobs of the log that can run.
    identity : str
        Of `IDENTITIES`. ``auto`` takes the first of `KEYS` under which at least
        half of the jobs belong to an application that came three times before,
        and ``none`` where there is none. The log must say what it asks for.
    source : str
        Name of the log, for messages.
    """
    there = offered(jobs)
    if identity == "auto":
        for name in there:
            labels = labels_by(jobs, name)
            if name == NONE or known_share(labels) >= ENOUGH:
                return name, labels
    if identity not in there:
        raise WorkloadError(
            f"workload.identity={identity}: {source} records it for no job; accepted are "
            f"{', '.join(('auto', *there))}"
        )
    return identity, labels_by(jobs, identity)


def application_words(
    jobs: pd.DataFrame, identity: str, words: Mapping[str, Mapping[int, str]]
) -> dict[int, str]:
    """Return what the ``application`` of jobs is called: by the names of what these share.

    Examples
    --------
    >>> jobs = pd.DataFrame({"application": [0, 1], "user": [1, 2], "executable": [3, 3]})
    >>> application_words(jobs, "user_executable", {"user": {1: "ann"}})
    {0: 'user ann, executable 3', 1: 'user 2, executable 3'}
    >>> jobs = pd.DataFrame({"application": [0], "user": [-1], "requested_processors": [24]})
    >>> application_words(jobs, "user_request", {})
    {0: 'user unknown, 24 processors, application 0'}
    """
    first = jobs.drop_duplicates("application")
    numbers = first["application"].tolist()
    keys, parts = KEYS.get(identity, ()), []
    for key in keys:
        if key != "requested_time":
            column = {"name": "executable"}.get(key, key)
            said = "{} processors" if key == "requested_processors" else f"{column} {{}}"
            of = {-1: "unknown", **words.get(column, {})}
            parts.append([said.format(of.get(code, code)) for code in first[column].tolist()])
    if len(parts) < max(len(keys), 1):
        parts.append([f"application {number}" for number in numbers])
    return dict(zip(numbers, map(", ".join, zip(*parts, strict=True)), strict=True))


def request_classes(requested_time: FloatArray) -> IntArray:
    """Return which popular requested time each job's is nearest to, in log.

    Parameters
    ----------
    requested_time : numpy.ndarray of float, shape (jobs,), seconds
        NaN where unknown.

    Returns
    -------
    numpy.ndarray of int, shape (jobs,)
        Place among the popular values, ascending; -1 where the requested time is
        unknown or none is popular.

    Examples
    --------
    >>> request_classes(np.array([600, 3600, 700, 3600, 600, np.nan])).tolist()
    [0, 1, 0, 1, 0, -1]
    """
    known = np.isfinite(requested_time)
    values, uses = np.unique(requested_time[known], return_counts=True)
    popular = values[uses >= max(2.0, POPULAR * known.sum())]
    classes = np.full(len(requested_time), -1, np.int64)
    if len(popular):
        borders = np.sqrt(popular[1:] * popular[:-1])
        classes[known] = np.searchsorted(borders, requested_time[known], side="left")
    return classes
