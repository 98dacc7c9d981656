"""One finished simulation: who ran, what happened, and the tables made of it."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.results.frames import Columns, Tables, tables
from sim.results.steps import Steps, steps_of
from sim.state.records import Records, Rows
from workloads.base import GroundTruth, Trace


def timeline_table(steps: Steps) -> Columns:
    """Return the table of ``timeline.parquet``: a row a change of machine or queue."""
    counts = {
        "busy_processors": steps.busy,
        "queued_jobs": steps.queued_jobs,
        "queued_processors": steps.queued_processors,
    }
    changed = np.zeros(len(steps.times), np.bool_)
    changed[:1] = True
    for values in counts.values():
        changed[1:] |= values[1:] != values[:-1]
    rows = np.flatnonzero(changed).astype(np.min_scalar_type(-changed.size))
    wide = {name: partial(_wide, values) for name, values in counts.items()}
    return Columns(rows, {"time": steps.times, **wide})


def _wide(values: NDArray[Any], rows: Rows) -> NDArray[Any]:
    """Return values of some rows, whole numbers in eight bytes each."""
    return values[rows].astype(np.promote_types(values.dtype, np.int64))


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
    steps : Steps
        Machine and queue over time; only jobs that count are in the queue.
    counted : numpy.ndarray of bool, shape (n,)
        Jobs that count in metrics: all but calibration runs that were submitted
        as jobs, which have a negative ``job_id``.
    """

    trace: Trace
    truth: GroundTruth
    records: Records
    tables: Tables
    steps: Steps
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
    steps = steps_of(trace, truth, records, np.ones(len(counted), np.bool_))
    made = tables(trace, truth, records, timeline_table(steps))
    if not counted.all():
        steps = steps_of(trace, truth, records, counted)
    return Outcome(trace, truth, records, made, steps, counted)
