"""What a run leaves behind, as tables with the contract's columns."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray
from sim.state.processors import NodeSets
from sim.state.records import Records, Requests, Rows, are
from workloads.base import COLUMNS, GroundTruth, Trace

Column = Any
"""An array, or what returns the values of a column on the rows that it is handed."""


class Columns:
    """A table by column, each worked out when it is looked at, and not kept.

    It is looked at as a data frame is: by a column's name, or by which rows are to
    stay.

    Parameters
    ----------
    rows : slice or numpy.ndarray of int
        From which row to which, or row numbers in the order of the table.
    columns : mapping of str to array or callable
        An array, or what returns the values of a column on the rows that it is handed.

    Examples
    --------
    >>> numbers = np.arange(4)
    >>> table = Columns(slice(0, 4), {"number": numbers, "double": lambda rows: 2 * numbers[rows]})
    >>> table[np.array([True, False, False, True])]["double"].tolist()
    [0, 6]
    >>> table[2:3]["number"].tolist()
    [2]
    """

    def __init__(self, rows: Rows, columns: Mapping[str, Column]) -> None:
        self._rows, self._columns = rows, columns

    def __len__(self) -> int:
        rows = self._rows
        return int(rows.stop - rows.start) if isinstance(rows, slice) else len(rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    @overload
    def __getitem__(self, key: str) -> "pd.Series[Any]": ...
    @overload
    def __getitem__(self, key: "slice | NDArray[np.bool_] | pd.Series[bool]") -> "Columns": ...
    def __getitem__(
        self, key: "str | slice | NDArray[np.bool_] | pd.Series[bool]"
    ) -> "pd.Series[Any] | Columns":
        if isinstance(key, str):
            column = self._columns[key]
            values = column(self._rows) if callable(column) else column[self._rows]
            return pd.Series(values, copy=False)
        if not isinstance(key, slice) and key.all():
            return self
        kept = key if isinstance(key, slice) else np.flatnonzero(key)
        return Columns(kept if isinstance(self._rows, slice) else self._rows[kept], self._columns)


BOUND_SECONDS = 10.0
"""Runtimes below this count as this in bounded slowdowns (policies: tau)."""


RECOVERY_PARTS = ("lost_work", "checkpoint_overhead", "restart_overhead")
"""Areas, processor-seconds, that failures, limits and checkpoints cost."""


STRETCH = ("run", "start_time", "end_time", "processors")
"""Columns of allocations that records have under the same names."""
TABLES = ("jobs", "allocations", "timeline", "predictions")
"""The tables of a run."""


class Frames:
    """What has the four tables of a run as data frames."""

    _frame: Callable[[str], pd.DataFrame]

    @property
    def jobs(self) -> pd.DataFrame:
        """A row a job, as ``jobs.parquet``."""
        return self._frame("jobs")

    @property
    def allocations(self) -> pd.DataFrame:
        """A row for each stretch of constant allocation, as ``allocations.parquet``."""
        return self._frame("allocations")

    @property
    def timeline(self) -> pd.DataFrame:
        """A row a change of machine or queue, as ``timeline.parquet``."""
        return self._frame("timeline")

    @property
    def predictions(self) -> pd.DataFrame:
        """A row for each started run that a predictor was asked about."""
        return self._frame("predictions")


Table = pd.DataFrame | Columns


class Tables(Frames):
    """The four tables of a run; times in seconds, areas in processor-seconds.

    Parameters
    ----------
    jobs, allocations, timeline, predictions : pandas.DataFrame or Columns
        Jobs in submit order, allocations in order of their start.

    Notes
    -----
    A data frame is made when it is first asked for by its attribute, and kept.
    """

    def __init__(
        self, jobs: Table, allocations: Table, timeline: Table, predictions: Table
    ) -> None:
        self._tables = dict(zip(TABLES, (jobs, allocations, timeline, predictions), strict=True))

    def __reduce__(self) -> tuple[Any, ...]:
        """Go to another process as data frames."""
        return Tables, tuple(map(self._frame, TABLES))

    def columns(self, name: str) -> Table:
        """Return one of `TABLES` without making a data frame of it."""
        return self._tables[name]

    def _frame(self, name: str) -> pd.DataFrame:
        table = self._tables[name]
        if isinstance(table, Columns):
            table = self._tables[name] = pd.DataFrame({key: table[key] for key in table})
        return table


def completed(records: Records) -> NDArray[np.bool_]:
    """Return which jobs ended by themselves, shape (n,)."""
    return are(records.status, {"completed"})


def held_area(records: Records) -> FloatArray:
    """Return the processor-seconds that each job held over all its runs, shape (n,)."""
    runs = records.stretches
    area = runs.processors * (runs.end_time - runs.start_time)
    return np.bincount(runs.job, area, len(records.submit_time)).astype(np.float64)


def bounded(response: FloatArray, runtime: FloatArray) -> FloatArray:
    """Return bounded slowdowns."""
    return np.maximum(1.0, response / np.maximum(runtime, BOUND_SECONDS))


def recovery_columns(records: Records) -> dict[str, Column]:
    """Return what failures and limits cost each job; no column where nothing could.

    Returns
    -------
    dict
        ``evolving``, ``lost_work``, ``checkpoint_overhead``, ``restart_overhead``
        (processor-seconds) and ``reason``, by job index.
    """
    paid = records.recoveries
    if paid is None:
        return {}
    found = {name: getattr(paid, name) for name in ("evolving", *RECOVERY_PARTS)}
    return found | {"reason": _words(paid.reason)}


def recorded_columns(trace: Trace) -> dict[str, Column]:
    """Return the log's names of users, and when it says that each job started, where it does.

    Where submit times are scaled, a job's recorded wait follows its scaled submit.
    """
    jobs = trace.jobs
    named = {f"{part}_name": _words(names) for part, names in trace.names().items()}
    if "recorded_wait_time" not in jobs or (jobs["recorded_wait_time"] < 0).all():
        return named
    submit, wait = (jobs[name].to_numpy() for name in ("submit_time", "recorded_wait_time"))

    def start(rows: Rows) -> FloatArray:
        return np.asarray(np.where(wait[rows] >= 0, submit[rows] + wait[rows], np.nan), float)

    return named | {"recorded_start_time": start}


def _words(values: Any) -> Column:
    """Return the column of a sequence of words, of which many are alike."""
    words = pd.Categorical(values)
    texts = words.categories.astype("str").array
    return lambda rows: pd.Series(texts.take(words.codes[rows], allow_fill=True))


def numbered(trace: Trace, application: IntArray) -> IntArray:
    """Return applications by the log's numbers, which hold for all its windows, where it has any.

    Parameters
    ----------
    trace : Trace
    application : numpy.ndarray of int
        By the truth's numbers, without gaps among the jobs of the trace.
    """
    if "application" not in trace.words:
        return application
    own = trace.jobs["job_id"] >= 0
    return np.asarray(np.unique(trace.jobs.loc[own, "application"])[application], np.int64)


def jobs_table(trace: Trace, truth: GroundTruth, records: Records) -> Columns:
    """Return the table of ``jobs.parquet``: a row a job, in submit order."""
    jobs = {name: trace.jobs[name].to_numpy() for name in COLUMNS}
    reference: FloatArray = jobs["reference_runtime"]
    submit, start, end = records.submit_time, records.start_time, records.end_time
    area, done, serial = held_area(records), completed(records), truth.serial_time

    def efficiency(rows: Rows) -> FloatArray:
        held = area[rows]
        share: FloatArray = np.full(len(held), np.nan)
        np.divide(serial[rows], held, out=share, where=done[rows] & (held > 0))
        return share

    columns: dict[str, Column] = {
        "job_id": jobs["job_id"],
        "user": jobs["user"],
        "application": numbered(trace, truth.application),
        "size": truth.size,
        "submit_time": submit,
        "start_time": start,
        "end_time": end,
        "wait_time": lambda rows: start[rows] - submit[rows],
        "response_time": lambda rows: end[rows] - submit[rows],
        "bounded_slowdown": lambda rows: bounded(end[rows] - submit[rows], reference[rows]),
        "requested_processors": jobs["requested_processors"],
        "requested_time": jobs["requested_time"],
        "reference_runtime": reference,
        "allocated_processors": records.allocated,
        "runtime": lambda rows: end[rows] - records.run_start[rows],
        "held_area": area,
        "efficiency": efficiency,
        "believed_runtime": records.believed_runtime,
        "status": _words(records.status),
        "restarts": records.restarts,
        **recovery_columns(records),
        **recorded_columns(trace),
    }
    # Feedback can change the order.
    in_order = (np.diff(submit) >= 0).all()
    rows = slice(0, len(submit)) if in_order else np.argsort(submit, kind="stable")
    return Columns(rows, columns)


def allocations_table(trace: Trace, records: Records) -> Columns:
    """Return the table of ``allocations.parquet``: a row a stretch of constant allocation.

    ``nodes`` is null where nobody says which processors a job held.
    """
    held, names = records.stretches, trace.jobs["job_id"].to_numpy()
    nodes = NodeSets.of(held.nodes)
    columns: dict[str, Column] = {
        "job_id": lambda rows: names[held.job[rows]],
        **{name: getattr(held, name) for name in STRETCH},
        "nodes": lambda rows: pd.Series(pd.array(nodes.part(rows).texts(), dtype="str")),
    }
    return Columns(slice(0, len(held.job)), columns)


def _actual(truth: GroundTruth, records: Records) -> Column:
    """Return what each consulted run took at the count it started on, NaN if that is nothing.

    Runs that did not end and those of zero seconds say nothing of a prediction.
    A run that kept its processors took what the clock says; one that was
    resized would have taken the ground truth's time. Where the clock agrees
    with the ground truth up to its own rounding, the latter is exact.
    """
    asked, held = records.consultations, records.stretches
    pieces = np.bincount(held.job, minlength=len(records.submit_time))
    resized = pieces > records.restarts + 1
    done = completed(records)

    def part(rows: Rows) -> FloatArray:
        job = asked.job[rows]
        exact = truth.runtimes_at(job, asked.nprocs[rows])
        end = records.end_time[job]
        clock = end - records.run_start[job]
        agrees = np.abs(clock - exact) <= 4 * np.spacing(np.abs(end) + clock)
        actual = np.where(agrees | resized[job], exact, clock)
        ended = asked.final[rows] & done[job]
        return np.where(ended & (actual > 0), actual, np.nan)

    return part


def predictions_table(trace: Trace, truth: GroundTruth, records: Records) -> Columns:
    """Return the table of ``predictions.parquet``: a row for each started run asked about."""
    asked, names = records.consultations, trace.jobs["job_id"].to_numpy()
    runs, application = asked.runs_at_count, numbered(trace, truth.application)
    columns: dict[str, Column] = {
        "job_id": lambda rows: names[asked.job[rows]],
        "time": asked.time,
        "application": lambda rows: application[asked.job[rows]],
        "nprocs": asked.nprocs,
        "size": lambda rows: truth.size[asked.job[rows]],
        "predicted": asked.predicted,
        "actual": _actual(truth, records),
        "method": _words(asked.method),
        "observations": asked.observations,
        "reliability": _words(asked.reliability),
        "runs_at_count": lambda rows: pd.Series(runs[rows], dtype="Int64").where(runs[rows] > 0),
        "mean_at_count": lambda rows: np.where(runs[rows] > 0, asked.mean_at_count[rows], np.nan),
    }
    return Columns(slice(0, len(asked.job)), columns)


def requests_frame(trace: Trace, requests: Requests) -> pd.DataFrame:
    """Return the table of ``requests.parquet``: a row a request, in the order of asking.

    Returns
    -------
    pandas.DataFrame
        ``job_id``, ``run``, ``time`` (s), ``kind``, ``held_processors``,
        ``wanted_processors``, ``wanted_seconds`` (beyond the limit), ``outcome``,
        ``answered_time`` (s), ``denied_time`` (s).
    """
    asked = requests.asked
    names = trace.jobs["job_id"].to_numpy()
    return pd.DataFrame(
        {
            "job_id": names[[a.job for a in asked]] if asked else np.empty(0, np.int64),
            "run": np.array([a.run for a in asked], np.int64),
            "time": np.array([a.time for a in asked], np.float64),
            "kind": pd.Series([a.kind for a in asked], dtype="str"),
            "held_processors": np.array([a.held for a in asked], np.int64),
            "wanted_processors": np.array([a.wanted for a in asked], np.int64),
            "wanted_seconds": np.array([a.seconds for a in asked], np.float64),
            "outcome": pd.Series([a.outcome for a in asked], dtype="str"),
            "answered_time": np.array([a.answered for a in asked], np.float64),
            "denied_time": np.array([a.denied_time for a in asked], np.float64),
        }
    )
