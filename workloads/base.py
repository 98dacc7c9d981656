"""What every workload hands over: one table of jobs and where it came from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from workloads.errors import MOST, WorkloadError
from workloads.streams import Streams

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

COLUMNS: Mapping[str, type] = {
    "job_id": np.int64,  # the trace's own number
    "submit_time": np.float64,  # s, on the trace's own clock
    "requested_processors": np.int64,  # the reference count
    "reference_runtime": np.float64,  # s, recorded at the reference count
    "requested_time": np.float64,  # s, the user's estimate
    "user": np.int64,  # -1 where unknown
    "executable": np.int64,  # the log's executable number, -1 where unknown
    "preceding_job": np.int64,  # job_id of the predecessor, -1 where none
    "think_time": np.float64,  # s after the predecessor's end, -1 where unknown
}
"""The columns of a job table with their types; times in seconds."""

LOGGED: Mapping[str, type] = {
    "recorded_wait_time": np.float64,  # s, -1 where unknown
    "application": np.int64,  # which application it is by the log's identity, from 0
    "request_class": np.int64,  # which popular requested time it asks for, -1 where unknown
    "recorded_status": np.int64,  # 1 where it completed, -1 where unknown
    "partition": np.int64,  # or queue, where the log has no two partitions; -1 where unknown
}
"""Columns that only job tables of logs have."""


@dataclass(frozen=True)
class Trace:
    """Jobs in submit order (ties in the trace's own order) and their origin.

    Attributes
    ----------
    jobs : pandas.DataFrame
        One row a job, columns and types as in `COLUMNS`, those of logs also as
        in `LOGGED`, index 0..N-1.
    processors : int or None
        Size of the machine that the trace names, if it names one.
    source : str
        Name of the file or model, without any path.
    checksum : str or None
        SHA-256 of the file, None for a model.
    dropped : mapping of str to int
        Jobs that were left out, counted by reason.
    repaired : mapping of str to int
        Values that cleaning filled or changed, counted by reason.
    models : mapping of str to numpy.ndarray
        Per-job columns that only some sources know (such as the ``A`` and
        ``sigma`` of Downey's model); empty for logs.
    feedback : bool
        Whether dependent jobs wait for their predecessors.
    epoch : float or None
        Unix time of instant 0 of the trace's clock, where the trace says it.
    identity : str or None
        What jobs of one application have in common in the log, such as ``user``.
    altered : str or None
        Why submit times are not those that a log recorded, such as
        "workload.load=0.8 scales them"; None where they are.
    size_by_use : bool
        Whether `processors` is the most that a log holds at once, as it states no size.
    words : mapping of str to mapping of int to str
        By column (``user``, ``executable``, ``application``, …) the log's names of its numbers.
    lacks_users : bool
        Whether users are yet to be drawn, by whom the model's applications are run.

    Examples
    --------
    >>> from workloads import FrameWorkload, Streams
    >>> frame = pd.DataFrame(
    ...     {"submit_time": [0.0], "runtime": [60.0], "requested_processors": [4]}
    ... )
    >>> trace = FrameWorkload(frame=frame).trace(Streams(seed=1), processors=8)
    >>> len(trace.jobs), trace.is_recorded
    (1, True)
    """

    jobs: pd.DataFrame
    processors: int | None
    source: str
    checksum: str | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    repaired: Mapping[str, int] = field(default_factory=dict)
    models: Mapping[str, np.ndarray] = field(default_factory=dict)
    feedback: bool = False
    epoch: float | None = None
    identity: str | None = None
    altered: str | None = None
    size_by_use: bool = False
    words: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    lacks_users: bool = False

    def named(self, column: str) -> list[str]:
        """Return a column of numbers by the log's names, else as numbers."""
        words = {-1: "unknown", **self.words.get(column, {})}
        return [words.get(code, str(code)) for code in self.jobs[column].tolist()]

    def names(self) -> dict[str, list[str]]:
        """Return each job's user and application by the log's names, where it has names."""
        parts = [self.words.get(part, {}) for part in ("user", "executable")]
        if all(name == str(code) for part in parts for code, name in part.items()):
            return {}
        return {part: self.named(part) for part in ("user", "application") if part in self.words}

    @property
    def is_recorded(self) -> bool:
        """Whether the jobs come from a file, not from a model."""
        return self.checksum is not None


DIGITS = 6
"""Decimals of seconds within which an end and a start are the same instant: sums round."""


def most_held(start: FloatArray, end: FloatArray, held: IntArray | FloatArray) -> int:
    """Return the most processors that are held at an instant; ends come before starts.

    Examples
    --------
    >>> most_held(np.array([0.0, 5.0, 10.0]), np.array([10.0, 10.0, 11.0]), np.array([2, 3, 4]))
    5
    """
    times = np.round(np.concatenate([end, start]), DIGITS)
    change = np.concatenate([-np.asarray(held), held])
    return int(np.cumsum(change[np.argsort(times, kind="stable")]).max(initial=0))


LONGEST_TIME = 1e12
"""Seconds (30,000 years); a float64 of that size still resolves a ten-thousandth of a second."""


class Workload(Protocol):
    """Where jobs come from."""

    def trace(self, streams: Streams, processors: int | None) -> Trace:
        """Return the jobs.

        Parameters
        ----------
        streams : Streams
            Random streams of this replication; a log uses none for its jobs.
        processors : int or None
            ``cluster.processors`` as configured; None lets the workload say.
        """
        ...


class GroundTruth(Protocol):
    """How long each job of a trace really runs at each count; the engine's secret.

    Attributes
    ----------
    application : numpy.ndarray of int, shape (n,)
    size_class : numpy.ndarray of int, shape (n,)
        Which of its application's repeated inputs the job uses, or which popular
        time it requests where its size is hidden; -1 without either.
    size : numpy.ndarray of float, shape (n,)
        Problem size as predictors see it; NaN where hidden.
    moldable : numpy.ndarray of bool, shape (n,)
    malleable : numpy.ndarray of bool, shape (n,)
        Whose processors may change while they run; moldable ones alone.
    min_processors, max_processors : numpy.ndarray of int, shape (n,)
        Both equal the reference count for a rigid job.
    serial_time : numpy.ndarray of float, shape (n,)
        T(1) in seconds; NaN where unknown.
    serial_time_assumed : numpy.ndarray of bool, shape (n,)
        Where T(1) lies below every measured count.

    Notes
    -----
    An attribute ``shared_shape``, true where jobs of one application have curves
    that are multiples of each other, is optional: it spares lower bounds from
    going through the curve of every job. So is ``restricts_counts``, false where `feasible`
    returns None for every job: it spares the engine from asking. So is a method ``tabled``,
    which returns `Tabled`, or None: it spares equal shares from asking, and counts only where
    the class itself has it, for what wraps or refines another truth may tell other runtimes.
    """

    application: IntArray
    size_class: IntArray
    size: FloatArray
    moldable: BoolArray
    malleable: BoolArray
    min_processors: IntArray
    max_processors: IntArray
    serial_time: FloatArray
    serial_time_assumed: BoolArray

    def runtimes(self, job: int, counts: IntArray) -> FloatArray:
        """Return T(n) of this very run of job index `job` at each count, seconds."""
        ...

    def runtimes_at(self, jobs: IntArray, counts: IntArray) -> FloatArray:
        """Return T(counts[i]) of job index jobs[i], elementwise, seconds.

        At a job's reference count this is its recorded runtime, to the bit.
        """
        ...

    def communication_shares(self, jobs: IntArray, counts: IntArray) -> FloatArray:
        """Return the share of T(counts[i]) that job jobs[i] communicates; NaN where unknown."""
        ...

    def feasible(self, job: int) -> IntArray | None:
        """Return the sorted counts the job can run on; None if all in its range are.

        The reference count is always among them.
        """
        ...


@runtime_checkable
class TellsOneRuntime(Protocol):
    """A ground truth that tells one runtime with less effort than an array of one."""

    def runtime_on(self, job: int, count: int) -> float:
        """Return T(count) of job index `job`, seconds, as `GroundTruth.runtimes` has it."""
        ...


class Tabled(NamedTuple):
    """All runtimes in one table: job j takes runtimes[j] g[row[j], n]/reference_g[j] on n.

    Attributes
    ----------
    g : numpy.ndarray of float, shape (applications, counts)
        By application and count; the first column is of no processors.
    row : numpy.ndarray of int, shape (n,)
        Which row of `g` a job has.
    reference_g : numpy.ndarray of float, shape (n,)
        That row at the job's reference count.
    runtimes : numpy.ndarray of float, shape (n,), seconds
        At that count.
    """

    g: FloatArray
    row: IntArray
    reference_g: FloatArray
    runtimes: FloatArray


def check_jobs(jobs: pd.DataFrame, source: str) -> pd.DataFrame:
    """Return the table with the columns of `COLUMNS` and `LOGGED` alone, or refuse it.

    Raises
    ------
    WorkloadError
        If a column is missing, a value is not finite, a job has no processors
        or a negative runtime or no positive requested time, a time is beyond what a clock
        in float64 resolves, or the rows are not in submit order. The message
        names the first such job.
    """
    missing = [name for name in COLUMNS if name not in jobs.columns]
    if missing:
        raise WorkloadError(f"{source}: the job table lacks {', '.join(missing)}")
    logged = {name: kind for name, kind in LOGGED.items() if name in jobs.columns}
    types = {**COLUMNS, **logged}
    table = jobs[list(types)].astype(types).reset_index(drop=True)
    submit = table["submit_time"].to_numpy()
    asked, runtime = table["requested_processors"], table["reference_runtime"]
    wanted = table["requested_time"]
    rules: dict[str, pd.Series[bool] | BoolArray] = {
        "submit_time must be finite": np.isfinite(submit),
        "requested_processors must be at least 1": asked >= 1,
        f"requested_processors must be at most {MOST:,}": asked <= MOST,
        "reference_runtime must be finite and not negative": np.isfinite(runtime) & (runtime >= 0),
        "requested_time must be positive and finite": np.isfinite(wanted) & (wanted > 0),
        **{
            f"{name} must be at most {LONGEST_TIME:g} s": table[name].abs() <= LONGEST_TIME
            for name in ("submit_time", "reference_runtime", "requested_time")
        },
        "submit_time must not decrease": np.append(True, submit[1:] >= submit[:-1]),
    }
    for rule, found in rules.items():
        holds = np.asarray(found)
        if not holds.all():
            row = table.loc[~holds].iloc[0]
            column = rule.split()[0]
            raise WorkloadError(
                f"{source}: job {int(row['job_id'])} has {column}={row[column]:g}; {rule}"
            )
    return table
