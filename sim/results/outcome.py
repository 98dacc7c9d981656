"""One finished simulation: who ran, what happened, and the tables made of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sim.results.frames import GROUP_ROWS, Columns, Tables, tables
from sim.results.steps import Demand, History, Steps
from sim.state.records import Records
from workloads.base import GroundTruth, Trace


def demand(trace: Trace, truth: GroundTruth, counted: NDArray[np.bool_]) -> Demand:
    """Return what each job asks for while it waits.

    Parameters
    ----------
    trace : Trace
    truth : GroundTruth
    counted : numpy.ndarray of bool, shape (n,)
        Whether the job's waiting counts.
    """
    jobs = trace.jobs
    requested = jobs["requested_processors"].to_numpy()
    return Demand(requested, truth.min_processors, jobs["reference_runtime"].to_numpy(), counted)


class Timeline(Columns):
    """The table of ``timeline.parquet``: a row a change of machine or queue.

    Parameters
    ----------
    history : History
        Of all jobs.
    """

    def __init__(self, history: History) -> None:
        super().__init__(0, dict.fromkeys(CHANGES, np.asarray))
        self._history = history

    def __len__(self) -> int:
        return sum(map(len, self._parts()))

    def __getitem__(self, key: Any) -> Any:
        frame = self.frame()
        return frame[key] if isinstance(key, str) else Columns.of(frame)[key]

    def frame(self) -> pd.DataFrame:
        """Return all of it as a data frame."""
        return pd.concat(self._parts(), ignore_index=True)

    def pieces(self, rows: int = GROUP_ROWS) -> Iterator[pd.DataFrame]:
        """Return it piece by piece, `rows` rows each and in the last what is left; at least one."""
        left = pd.DataFrame()
        for part in self._parts():
            left = pd.concat([left, part], ignore_index=True) if len(left) else part
            whole = (len(left) - 1) // rows * rows
            for first in range(0, whole, rows):
                yield left.iloc[first : first + rows]
            left = left.iloc[whole:]
        yield left

    def _parts(self) -> Iterator[pd.DataFrame]:
        """Return the changes of a piece of time after the other."""
        last: Steps | None = None
        for steps in self._history:
            changed = np.zeros(len(steps.times), np.bool_)
            changed[:1] = last is None
            for name in CHANGES[1:]:
                values = getattr(steps, FIELDS[name])
                changed[1:] |= values[1:] != values[:-1]
                if last is not None:
                    changed[0] |= values[0] != getattr(last, FIELDS[name])[-1]
            last = steps
            yield pd.DataFrame({name: getattr(steps, FIELDS[name])[changed] for name in CHANGES})


FIELDS = {
    "time": "times",
    "busy_processors": "busy",
    "queued_jobs": "queued_jobs",
    "queued_processors": "queued_processors",
}
"""Columns of the timeline, and what of `Steps` they are."""
CHANGES = tuple(FIELDS)


@dataclass(frozen=True)
class Outcome:
    """A finished simulation.

    Attributes
    ----------
    trace : Trace
    truth : GroundTruth
    records : Records
    tables : Tables
        The run's tables, over all jobs.
    history : History
        Machine and queue over time; only jobs that count are in the queue.
    counted : numpy.ndarray of bool, shape (n,)
        Jobs that count in metrics: all but calibration runs that were submitted
        as jobs, which have a negative ``job_id``.
    """

    trace: Trace
    truth: GroundTruth
    records: Records
    tables: Tables
    history: History
    counted: NDArray[np.bool_]

    @property
    def own(self) -> "slice | NDArray[np.bool_]":
        """What picks the jobs that count: a slice, which makes no copy, where all do."""
        return slice(None) if self.counted.all() else self.counted


def outcome(trace: Trace, truth: GroundTruth, records: Records) -> Outcome:
    """Return a finished simulation with its tables.

    Parameters
    ----------
    trace : Trace
    truth : GroundTruth
    records : Records
        All three by the same job index.

    Examples
    --------
    >>> import sim, workloads
    >>> from predictors.in_loop.user_estimate import UserEstimate
    >>> from workloads.shapes.family import NoMoldability
    >>> streams = workloads.Streams(seed=1, replication=0)
    >>> trace = workloads.Lublin(jobs=20).trace(streams, 64)
    >>> truth = workloads.build_truth(trace, NoMoldability(), streams, 64)
    >>> policy = sim.Policy(sim.FirstComeFirstServed(), sim.Easy(), sim.Request())
    >>> setup = sim.Setup(trace, truth, policy, UserEstimate(), sim.Dedicated(64))
    >>> ended = sim.outcome(trace, truth, sim.simulate(setup))
    >>> len(ended.tables.jobs)
    20
    """
    counted = trace.jobs["job_id"].to_numpy() >= 0
    everyone = np.ones(len(counted), np.bool_)
    history = History(records, demand(trace, truth, everyone))
    made = tables(trace, truth, records, Timeline(history))
    if not counted.all():
        history = History(records, demand(trace, truth, counted))
    return Outcome(trace, truth, records, made, history, counted)
