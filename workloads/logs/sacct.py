"""Slurm's accounting: what ``sacct --parsable2`` prints, read as a log.

References
----------
The manual page of ``sacct``: fields, states and formats of time.
"""

import datetime
import hashlib
import os
import re
import zoneinfo
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from workloads.errors import WorkloadError
from workloads.limits import LARGEST, USUAL, Limits
from workloads.logs.log import FileWorkload
from workloads.logs.swf import Comment, SwfLog
from workloads.logs.swf_text import FIELDS, check_lines, unpack

SACCT = (
    "sacct --allusers --allocations --parsable2 --noconvert --starttime=2024-01-01 "
    "--endtime=2024-07-01 --format=JobIDRaw,User,Group,Partition,Submit,Start,End,"
    "ElapsedRaw,TimelimitRaw,ReqCPUS,AllocCPUS,NNodes,State,JobName"
)
"""The command whose output has every column that is read."""

NEEDED: Mapping[str, tuple[str, ...]] = {
    "job": ("JobIDRaw", "JobID"),
    "submit": ("Submit",),
    "start": ("Start",),
    "runtime": ("ElapsedRaw", "Elapsed", "End"),
    "processors": ("AllocCPUS", "NCPUS"),
    "state": ("State",),
}
"""What a replay needs, and the columns that say it, the preferred one first."""

_STATUS = {"COMPLETED": 1, "CANCELLED": 5, "PREEMPTED": 2, "REQUEUED": 2, "REVOKED": 2}
_UNFINISHED = ("PENDING", "RUNNING", "SUSPENDED", "RESIZING", "COMPLETING", "CONFIGURING")
_UNKNOWN = ("", "Unknown", "None", "N/A", "INVALID")
_DURATION = re.compile(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+)(?:\.\d+)?")


def read_sacct(
    path: str | os.PathLike[str],
    timezone: str = "UTC",
    unit: Literal["cpus", "nodes"] = "cpus",
    limits: Limits = USUAL,
) -> SwfLog:
    """Read an accounting dump, plain or gzip-compressed, as a log of the 18 fields.

    Steps (``17.batch``) are parts of a job and left out. Submit times are seconds
    since 1970. Users, groups, partitions and job names (the executable) become
    numbers from 1, in order of their names.

    Parameters
    ----------
    path : path-like
        What ``sacct --parsable2`` printed, with its header line.
    timezone : str
        Of times without an offset, such as ``America/Costa_Rica``.
    unit : str
        What a processor is: ``cpus``, or ``nodes`` where whole nodes are given out.
    limits : Limits
        How much the file may hold.

    Raises
    ------
    WorkloadError
        If the file cannot be read, lacks columns (all are named), or a value is
        not what its column holds (with its line).
    """
    file = Path(path).expanduser()
    zone = check_sacct(timezone, unit)
    stored, text = unpack(file, "an accounting dump", limits=limits)
    check_lines(text, file, limits)
    table = _table(text.decode("utf-8", "replace"), file)
    chosen = _choose_columns(table, unit, file)
    table = table[~table[chosen["job"]].str.contains(".", regex=False)]
    jobs = _told_apart(_fields(table, chosen, zone, unit, file), table[chosen["job"]])
    names = _stems(table)
    comments = (Comment(0, f"; Note: times are seconds since 1970, read as {timezone}"),)
    return SwfLog(jobs, comments, file.name, hashlib.sha256(stored).hexdigest(), names)


def check_sacct(timezone: str, unit: str) -> datetime.tzinfo:
    """Return the time zone, or refuse what `read_sacct` does not take.

    Raises
    ------
    WorkloadError
        Naming the key, and what is accepted.

    Examples
    --------
    >>> check_sacct("Mars/Base", "cpus")
    Traceback (most recent call last):
    ...
    workloads.errors.WorkloadError: workload.timezone=Mars/Base: no such zone; give a name \
such as Europe/Berlin or UTC
    """
    if unit not in ("cpus", "nodes"):
        raise WorkloadError(f"workload.unit={unit}: must be cpus or nodes")
    try:
        return datetime.UTC if timezone == "UTC" else zoneinfo.ZoneInfo(timezone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise WorkloadError(
            f"workload.timezone={timezone}: no such zone; give a name such as Europe/Berlin or UTC"
        ) from None


def _table(text: str, file: Path) -> pd.DataFrame:
    """Split lines at ``|``; further ones in the last column belong to its text."""
    lines = text.split("\n")
    header = lines[0].rstrip("|").split("|")
    trailing = lines[0].endswith("|")  # --parsable ends lines with a delimiter
    rows, numbers = [], []
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        cells = (line.removesuffix("|") if trailing else line).split("|", len(header) - 1)
        if len(cells) < len(header):
            raise WorkloadError(
                f"{file}, line {number}: {len(cells)} fields, the header has {len(header)}; "
                "print with --parsable2, columns of free text last"
            )
        rows.append(cells)
        numbers.append(number)
    return pd.DataFrame(rows, columns=header, index=pd.Index(numbers, name="line"), dtype="str")


def _choose_columns(table: pd.DataFrame, unit: str, file: Path) -> dict[str, str]:
    """Return which column says what.

    Raises
    ------
    WorkloadError
        Naming everything that is missing, in one line.
    """
    needed = dict(NEEDED)
    if unit == "nodes":
        needed["processors"] = ("NNodes", "AllocNodes")
    chosen = {
        what: next((name for name in names if name in table.columns), "")
        for what, names in needed.items()
    }
    missing = [" or ".join(needed[what]) for what, name in chosen.items() if not name]
    if missing:
        raise WorkloadError(
            f"{file}: an accounting dump without the columns {', '.join(missing)} cannot be "
            f"replayed; print them with: {SACCT}"
        )
    return chosen


def _fields(
    table: pd.DataFrame, chosen: Mapping[str, str], zone: datetime.tzinfo, unit: str, file: Path
) -> pd.DataFrame:
    """Return the 18 fields of each job."""

    def column(name: str, parse: Callable[[str], float]) -> np.ndarray:
        if name not in table.columns:
            return np.full(len(table), -1.0)
        return _parsed(table[name], parse, file)

    submit = column("Submit", lambda text: _instant(text, zone))
    start = column("Start", lambda text: _instant(text, zone))
    state = table[chosen["state"]].str.split(" ").str[0].str.rstrip("+")
    asked = "ReqCPUS" if unit == "cpus" else "ReqNodes"
    known = {
        "job_number": _numbers(table[chosen["job"]]),
        "submit_time": submit,
        "wait_time": np.where((start >= 0) & (submit >= 0), start - submit, -1.0),
        "run_time": _runtime(table, chosen["runtime"], start, state, column, zone),
        "allocated_processors": column(chosen["processors"], _count),
        "requested_processors": column(asked, _count),
        "requested_time": _requested(table, column),
        "status": state.map(lambda name: _status(str(name))).to_numpy(float),
        "user": _codes(table, ("UID", "User")),
        "group": _codes(table, ("GID", "Group", "Account")),
        "executable": _codes(table, ("JobName",)),
        "partition": _codes(table, ("Partition",)),
    }
    absent = np.full(len(table), -1.0)
    return pd.DataFrame({name: _whole(known.get(name, absent)) for name in FIELDS})


def _parsed(cells: pd.Series, parse: Callable[[str], float], file: Path) -> np.ndarray:
    """Parse each distinct text of a column once."""
    values = {}
    for text in cells.unique():
        try:
            values[text] = parse(text)
        except (ValueError, OverflowError):
            values[text] = np.inf
        if not abs(values[text]) <= LARGEST:
            line = int(cells.index[cells == text][0])
            raise WorkloadError(
                f"{file}, line {line}, column {cells.name}: {text[:40]!r} is not what this column "
                "holds; print with --parsable2 --noconvert"
            )
    return cells.map(values).to_numpy(float)


def _runtime(
    table: pd.DataFrame,
    name: str,
    start: np.ndarray,
    state: pd.Series,
    column: Callable[[str, Callable[[str], float]], np.ndarray],
    zone: datetime.tzinfo,
) -> np.ndarray:
    if name == "End":
        end = column("End", lambda text: _instant(text, zone))
        runtime = np.where((end >= 0) & (start >= 0), end - start, -1.0)
    else:
        runtime = column(name, _duration if name == "Elapsed" else _count)
    return np.where(state.isin(_UNFINISHED), -1.0, runtime)


def _requested(
    table: pd.DataFrame, column: Callable[[str, Callable[[str], float]], np.ndarray]
) -> np.ndarray:
    if "TimelimitRaw" in table.columns:
        minutes = column("TimelimitRaw", lambda text: _count(text) if text.isdecimal() else -1.0)
        return np.where(minutes > 0, 60.0 * minutes, -1.0)
    return column("Timelimit", lambda text: _duration(text) if text[:1].isdecimal() else -1.0)


def _instant(text: str, zone: datetime.tzinfo) -> float:
    """Return seconds since 1970, -1 for what is unknown."""
    if text in _UNKNOWN:
        return -1.0
    if text.isdecimal():
        return float(text)
    when = datetime.datetime.fromisoformat(text)
    return (when if when.tzinfo else when.replace(tzinfo=zone)).timestamp()


def _duration(text: str) -> float:
    """Return the seconds of ``[[days-]hours:]minutes:seconds``.

    Examples
    --------
    >>> _duration("1-02:03:04"), _duration("05:06")
    (93784.0, 306.0)
    """
    if text in _UNKNOWN:
        return -1.0
    match = _DURATION.fullmatch(text)
    if not match:
        raise ValueError(text)
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _count(text: str) -> float:
    if text in _UNKNOWN:
        return -1.0
    if not text.isdecimal():
        raise ValueError(text)
    return float(text)


def _status(state: str) -> int:
    return -1 if state in _UNFINISHED else _STATUS.get(state, 0)


def _numbers(identifiers: pd.Series) -> np.ndarray:
    """Return job numbers; tasks of an array (``17_4``) share one, and cleaning renumbers them."""
    return (
        identifiers.str.extract(r"^(\d{1,15})(?:\D|$)", expand=False)
        .fillna("-1")
        .to_numpy()
        .astype(float)
    )


def _told_apart(jobs: pd.DataFrame, identifiers: pd.Series) -> pd.DataFrame:
    """Return the jobs with fresh numbers for tasks that are alike in everything but their name.

    Otherwise they would pass for one line that was printed again.
    """
    alike = jobs.duplicated().to_numpy() & ~identifiers.duplicated().to_numpy()
    first = int(jobs["job_number"].max()) + 1 if len(jobs) else 1
    fresh = first + np.cumsum(alike) - 1
    return jobs.assign(job_number=np.where(alike, fresh, jobs["job_number"]))


def _codes(table: pd.DataFrame, names: tuple[str, ...]) -> np.ndarray:
    """Return a number for each distinct name, whole numbers as they are; -1 where empty."""
    name = next((n for n in names if n in table.columns), None)
    if name is None:
        return np.full(len(table), -1.0)
    cells = table[name].fillna("")
    if cells.str.fullmatch(r"\d{0,15}").all():
        return cells.replace("", "-1").to_numpy().astype(float)
    order = {text: code for code, text in enumerate(sorted(set(cells) - {""}), start=1)}
    return cells.map(order).fillna(-1).to_numpy(float)


def _stems(table: pd.DataFrame) -> np.ndarray | None:
    """Return a number for each job name without its digits: ``run_017`` and ``run_18`` are one."""
    if "JobName" not in table.columns:
        return None
    stems = table["JobName"].str.replace(r"\d+", "#", regex=True)
    known = ~stems.str.fullmatch("#?")
    return np.where(known, pd.factorize(stems)[0], -1)


def _whole(values: np.ndarray) -> np.ndarray:
    return values.astype(np.int64) if (values % 1 == 0).all() else values


@dataclass
class SacctWorkload(FileWorkload):
    """Jobs from Slurm's accounting: what ``sacct --parsable2`` printed.

    Parameters
    ----------
    path
        As for `FileWorkload`; others as for `LogWorkload`.
    timezone, unit
        As for `read_sacct`.
    """

    timezone: str = "UTC"
    unit: Literal["cpus", "nodes"] = "cpus"
    wanted = "what sacct printed, such as workload.path=jobs.txt"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sacct(self.timezone, self.unit)

    def read(self) -> SwfLog:
        """Read the file."""
        return read_sacct(self.file, self.timezone, self.unit, self._limits)
