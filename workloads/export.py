"""Job tables and schedules as SWF logs, for `workloads.swf.write_swf`."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from workloads.base import Trace
from workloads.swf import FIELDS, Comment, SwfLog

_STATUS = {"completed": 1, "failed": 0, "killed": 0, "cancelled": 5}


def log_of_trace(trace: Trace, notes: tuple[str, ...] = ()) -> SwfLog:
    """Return a trace as an SWF log of jobs that have not been scheduled yet.

    Wait times are unknown; the reference count stands as both allocated and
    requested.

    Parameters
    ----------
    trace : Trace
    notes : tuple of str
        Lines for the header.

    Examples
    --------
    >>> from workloads.lublin import Lublin
    >>> from workloads.streams import Streams
    >>> log = log_of_trace(Lublin(jobs=10).trace(Streams(seed=1)), ("A small example.",))
    >>> log.values("MaxProcs"), log.values("Note")
    (['256'], ['A small example.'])
    """
    jobs = trace.jobs
    table = _unknown(len(jobs)) | _common(jobs)
    table["queue"] = trace.models.get("queue", np.full(len(jobs), -1))
    table["run_time"] = jobs["reference_runtime"].to_numpy()
    table["allocated_processors"] = jobs["requested_processors"].to_numpy()
    return _log(table, trace.processors, trace.source, notes)


def log_of_schedule(
    jobs: pd.DataFrame,
    start_time: ArrayLike,
    end_time: ArrayLike,
    allocated: ArrayLike,
    *,
    status: ArrayLike | None = None,
    processors: int | None = None,
    source: str = "schedule",
    notes: tuple[str, ...] = (),
) -> SwfLog:
    """Return a schedule as an SWF log: what the machine would have recorded.

    Parameters
    ----------
    jobs : pandas.DataFrame
        Columns of `workloads.base.COLUMNS`.
    start_time, end_time : array_like, shape (n,), seconds
        Of the last run; wait is start - submit, runtime end - start.
    allocated : array_like of int, shape (n,)
        Processors that the job got.
    status : array_like of str, shape (n,), optional
        ``completed`` (the default), ``failed``, ``killed`` or ``cancelled``.
    processors : int, optional
        Size of the machine, for the header.
    source : str
    notes : tuple of str
        Lines for the header.

    Examples
    --------
    >>> from workloads.lublin import Lublin
    >>> from workloads.streams import Streams
    >>> jobs = Lublin(jobs=1).trace(Streams(seed=1)).jobs
    >>> start = jobs["submit_time"] + 5
    >>> log = log_of_schedule(jobs, start, start + 60, [4])
    >>> log.jobs[["wait_time", "run_time", "allocated_processors"]].values.tolist()
    [[5, 60, 4]]
    """
    start, end = np.asarray(start_time, float), np.asarray(end_time, float)
    table = _unknown(len(jobs)) | _common(jobs)
    table["wait_time"] = start - jobs["submit_time"].to_numpy(float)
    table["run_time"] = end - start
    table["allocated_processors"] = np.asarray(allocated, np.int64)
    names = ["completed"] * len(jobs) if status is None else np.asarray(status).tolist()
    table["status"] = np.array([_STATUS.get(name, -1) for name in names], np.int64)
    return _log(table, processors, source, notes)


def _unknown(count: int) -> dict[str, np.ndarray]:
    return {name: np.full(count, -1, np.int64) for name in FIELDS}


def _common(jobs: pd.DataFrame) -> dict[str, np.ndarray]:
    same = ["submit_time", "requested_processors", "requested_time", "user", "executable"]
    same += ["preceding_job", "think_time"]
    return {"job_number": jobs["job_id"].to_numpy()} | {
        name: jobs[name].to_numpy() for name in same
    }


def _log(
    table: Mapping[str, np.ndarray],
    processors: int | None,
    source: str,
    notes: tuple[str, ...],
) -> SwfLog:
    """Put a header over the columns, whole ones as integers."""
    jobs = pd.DataFrame({name: _whole(table[name]) for name in FIELDS})
    header = ["Version: 2.2", f"MaxJobs: {len(jobs)}", f"MaxRecords: {len(jobs)}"]
    header += [f"MaxProcs: {processors}"] if processors is not None else []
    header += [f"Note: {note}" for note in notes]
    return SwfLog(jobs, tuple(Comment(0, f"; {line}") for line in header), source)


def _whole(values: np.ndarray) -> np.ndarray:
    whole = values.astype(np.int64)
    return whole if (whole == values).all() else values
