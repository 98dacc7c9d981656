"""What a distance is made of: a candidate is played again with one thing changed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from predictors.base import FloatArray, IntArray
from sim.site.candidate_schedules import Candidate, starts, with_order
from sim.site.causes import LONG, free_over_time, seconds_beside
from sim.site.comparison import Compared, compare
from sim.site.log_schedule import Recorded, beginning
from sim.site.outages import outages_of, weeks_of

TIE = 1e-6
"""Seconds by which submits at one instant are told apart."""
MEANINGS = {
    "nothing": "as it is",
    "capacity": "without what the log shows to have been missing of the machine",
    "estimates": "every limit is the runtime",
    "order": "jobs are taken in the order of their recorded starts",
    "holds": "each job is submitted later by its wait while enough was free",
    "partitions": "each partition or queue is a machine of its own, of the most that it ever held",
}
"""What is changed, by name."""


class RecordedOrder:
    """Jobs in the order in which a log started them, known by their submits.

    Parameters
    ----------
    submits : sequence of float, seconds
        Distinct submit times, in the order of the starts.

    Examples
    --------
    >>> one = np.array([1, 1])
    >>> RecordedOrder([5.0, 4.0]).keys(9.0, np.array([4.0, 5.0]), one, one * 1.0).tolist()
    [1.0, 0.0]
    """

    recomputed = False

    def __init__(self, submits: Sequence[float]) -> None:
        given = np.array(submits, float)
        self._place = np.argsort(given, kind="stable")
        self._sorted = given[self._place]

    def keys(
        self, now: float, submit: FloatArray, processors: IntArray, runtime: FloatArray
    ) -> FloatArray:
        """Return the place of each job."""
        found = np.searchsorted(self._sorted, submit).clip(max=len(self._sorted) - 1)
        return np.asarray(self._place[found], float)


def changes(found: Recorded, name: str, config: Mapping[str, Any]) -> list[Compared]:
    """Return how far a candidate is as it is and with each thing changed alone, by `MEANINGS`.

    Parameters
    ----------
    found : Recorded
    name : str
        Of the candidate.
    config : mapping
        The whole configuration of its run.
    """
    plain = Candidate(name, config, beginning(found))
    exact = found.trace.jobs.assign(requested_time=np.maximum(found.runtime, 1.0))
    known = beginning(replace(found, trace=replace(found.trace, jobs=exact)))
    played = {
        "nothing": starts(found, plain, []),
        "capacity": starts(found, plain, outages_of(found)),
        "estimates": starts(found, replace(plain, first=known), []),
        "order": starts(found, _ordered(found, plain), []),
        "holds": _held(found, plain),
    }
    if found.trace.jobs["partition"].nunique() > 1:
        played["partitions"] = _apart(found, plain)
    return [compare(found, what, start) for what, start in played.items()]


def _ordered(found: Recorded, plain: Candidate) -> Candidate:
    jobs = plain.first.trace.jobs
    submit = jobs["submit_time"].to_numpy() + TIE * np.arange(len(jobs))
    by_start = submit[np.argsort(found.start[plain.first.index], kind="stable")]
    config = with_order(plain.config, RecordedOrder, submits=by_start.tolist())
    trace = replace(plain.first.trace, jobs=jobs.assign(submit_time=submit))
    return replace(plain, config=config, first=replace(plain.first, trace=trace))


def _held(found: Recorded, plain: Candidate) -> FloatArray:
    """Return the starts where jobs come later by what they waited beside a free machine."""
    beside = seconds_beside(found, free_over_time(found, weeks_of(found)))
    submit = found.submit + np.where(beside > LONG, beside, 0.0)
    order = np.argsort(submit, kind="stable")
    jobs = found.trace.jobs.iloc[order].reset_index(drop=True)
    wait = np.where(found.known, np.maximum(found.start - submit, 0.0), -1.0)
    jobs = jobs.assign(submit_time=submit[order], recorded_wait_time=wait[order])
    later = replace(found, trace=replace(found.trace, jobs=jobs))
    began = np.empty(len(order))
    began[order] = starts(later, replace(plain, first=beginning(later)), [])
    return began


def _apart(found: Recorded, plain: Candidate) -> FloatArray:
    """Return the starts where no partition lends processors to another."""
    began, jobs = np.full(len(found.submit), np.nan), found.trace.jobs
    for rows in jobs.groupby("partition").indices.values():
        own = jobs.iloc[rows].reset_index(drop=True)
        alone = replace(found, trace=replace(found.trace, jobs=own))
        alone = replace(alone, processors=int(max(alone.held.values.max(), alone.count.max())))
        first = beginning(alone)
        if len(first.index):
            began[rows] = starts(alone, replace(plain, first=first), [])
    return began
