"""Jobs from a table in memory, such as one that a notebook has made."""

import hashlib
from dataclasses import dataclass
from typing import cast

import numpy as np
import pandas as pd

from workloads.base import LONGEST_TIME, FloatArray
from workloads.errors import WorkloadError
from workloads.logs.log import LogWorkload
from workloads.logs.swf import SwfLog, fields_of
from workloads.logs.table import words

NEEDED = ("submit_time", "runtime", "requested_processors")
NUMBERS = {
    "job_id": "job_number",
    "submit_time": "submit_time",
    "wait_time": "wait_time",
    "runtime": "run_time",
    "requested_processors": "allocated_processors",
    "requested_time": "requested_time",
}
"""Columns of numbers, and the fields of the Standard Workload Format that they are."""
NAMES = {"user": "user", "application": "executable"}
"""Columns of names, numbered from 1 in the order in which they appear."""
SOURCE = "DataFrame"
EXACT = 2.0**53
"""Up to here whole numbers are exact in float64."""


@dataclass
class FrameWorkload(LogWorkload):
    """Jobs from a DataFrame, a row a job; it is cleaned and counted like a log.

    Parameters
    ----------
    frame : pandas.DataFrame
        ``submit_time``, ``runtime`` (seconds, or dates and time spans), and
        ``requested_processors``; where there, ``requested_time`` and ``wait_time``
        (seconds), ``user``, ``application`` (names or numbers) and ``job_id``, else
        jobs are numbered from 1. Missing values are unknown. Other columns are not
        read. Others as for `LogWorkload`; ``application`` is the identity where it is there.

    Raises
    ------
    WorkloadError
        If a column is missing, or a value is not what its column holds.

    Examples
    --------
    >>> from workloads.streams import Streams
    >>> frame = pd.DataFrame({"submit_time": [0.0, 5.0], "runtime": [60.0, 30.0],
    ...     "requested_processors": [4, 2], "user": ["ann", "bob"]})
    >>> trace = FrameWorkload(frame=frame).trace(Streams(seed=1), processors=4)
    >>> trace.jobs["user"].tolist(), trace.jobs["reference_runtime"].tolist()
    ([1, 2], [60.0, 30.0])
    """

    frame: pd.DataFrame

    def __post_init__(self) -> None:
        if not isinstance(self.frame, pd.DataFrame):
            raise WorkloadError(f"jobs={self.frame!r:.60}: must be a DataFrame")
        missing = [name for name in NEEDED if name not in self.frame.columns]
        if missing:
            raise WorkloadError(
                f"jobs: the DataFrame has no column {', '.join(missing)}; needed are "
                f"{', '.join(NEEDED)}, it has {', '.join(map(str, self.frame.columns)) or 'none'}"
            )
        if self.identity == "auto" and "application" in self.frame.columns:
            self.identity = "executable"
        super().__post_init__()

    def read(self) -> SwfLog:
        """Return the table as a log."""
        frame, there = self.frame, self.frame.columns
        read = {name: _numbers(frame, name) for name in NUMBERS if name in there}
        read |= {name: _codes(frame[name]) for name in NAMES if name in there}
        fields = {"job_number": np.arange(1.0, len(frame) + 1)}
        fields |= {{**NUMBERS, **NAMES}[name]: values for name, values in read.items()}
        checksum = hashlib.sha256()
        for name, values in read.items():
            checksum.update(f"{name}\0".encode() + values.tobytes())
        named = {NAMES[name]: words(read[name], frame[name]) for name in NAMES if name in there}
        return SwfLog(fields_of(fields, len(frame)), (), SOURCE, checksum.hexdigest(), words=named)


def _numbers(frame: pd.DataFrame, name: str) -> FloatArray:
    """Return a column as numbers, seconds where it holds times; -1 where unknown."""
    column = frame[name]
    if isinstance(column, pd.DataFrame):
        raise WorkloadError(f"jobs: the DataFrame has several columns {name}")
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    if column.dtype.kind == "M":
        column = column - pd.Timestamp(0)
    if column.dtype.kind == "m":
        column = column.dt.total_seconds()
    read = column if column.dtype.kind != "c" else column.abs()
    try:
        numbers = pd.to_numeric(read, errors="coerce")
    except OverflowError:  # a whole number that no float can hold
        numbers = pd.to_numeric(read.map(str), errors="coerce")
    values = np.asarray(numbers.astype(np.float64).to_numpy(float, na_value=np.nan), np.float64)
    most = EXACT if name in ("job_id", "requested_processors") else LONGEST_TIME
    wrong = (np.isnan(values) & column.notna().to_numpy()) | (np.abs(values) > most)
    if wrong.any() or column.dtype.kind in "bc":
        row = int(np.argmax(wrong))
        raise WorkloadError(
            f"jobs: row {frame.index[row]}, column {name}: {str(column.iloc[row])[:40]!r} is not a "
            f"number of at most {most:g}"
        )
    return np.where(np.isnan(values), -1.0, values)


def _codes(column: pd.Series) -> FloatArray:
    """Return a number for each name; whole numbers from 1 as they are; -1 where unknown."""
    known = column[column.notna()]
    if known.dtype.kind in "iuf":
        values = known.to_numpy(float)
        if ((values >= 1) & (values % 1 == 0) & (values < EXACT)).all():
            return cast(FloatArray, column.fillna(-1).to_numpy(float))
    try:
        codes = pd.factorize(column)[0]
        return np.asarray(np.where(codes < 0, -1, codes + 1), np.float64)
    except TypeError:
        raise WorkloadError(
            f"jobs: column {column.name}: its values must be names or numbers"
        ) from None
