"""Slurm's accounting: what ``sacct --parsable2`` prints, read as a log.

References
----------
The manual page of ``sacct``: fields, states and formats of time.
"""

import datetime
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np
import pandas as pd

from workloads.base import BoolArray, FloatArray
from workloads.errors import WorkloadError
from workloads.limits import USUAL, Limits
from workloads.logs.cells import (
    UNKNOWN,
    codes,
    duration,
    fields_of,
    instant,
    parsed,
    words,
    zone_of,
)
from workloads.logs.log import FileWorkload
from workloads.logs.swf import Comment, SwfLog
from workloads.logs.swf_text import read_lines
from workloads.logs.table_columns import DELIMITERS, Layout, body, rows_of

Column = Callable[[str, Callable[[str], float]], np.ndarray]
"""A column's name, and what reads a cell of it, to its numbers."""
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
    checksum, text = read_lines(file, "an accounting dump", limits)
    table = _table(text.decode("utf-8", "replace"), file)
    again = table.index[(table == list(table.columns)).all(axis=1)]
    notes = f"Note: times are seconds since 1970, read as {timezone}", "UnixStartTime: 0"
    comments = tuple(Comment(0, f"; {line}") for line in notes)
    reckons = is_reckoned(table.columns) and unit == "cpus"
    jobs = table.drop(again)
    log = _reckoned(jobs, zone, file) if reckons else _recorded(jobs, zone, unit, file)
    told = f"lines that repeat the header, left out: {len(again):,} (line {again.min()} first)"
    remarks = (*log.remarks, told) if len(again) else log.remarks
    return replace(log, comments=comments, source=file.name, checksum=checksum, remarks=remarks)


def _recorded(table: pd.DataFrame, zone: datetime.tzinfo, unit: str, file: Path) -> SwfLog:
    """Return the jobs of an export that says when they started."""
    chosen = _choose_columns(table, unit, file)
    table = table[~table[chosen["job"]].str.contains(".", regex=False)]
    jobs, negative = _fields(table, chosen, zone, unit, file)
    jobs = _told_apart(jobs, table[chosen["job"]])
    named = _words(table, **{field: jobs[field] for field in NAMED})
    return SwfLog(jobs, names=_stems(table), found={"negative_wait": negative}, words=named)


def _words(table: pd.DataFrame, **codes: Iterable[float]) -> dict[str, dict[int, str]]:
    """Return the names behind the codes of fields whose columns are there."""
    there = {field: _first(table, NAMED[field]) for field in codes}
    return {field: words(codes[field], table[name]) for field, name in there.items() if name}


def _first(table: pd.DataFrame, names: Sequence[str]) -> str:
    return next((name for name in names if name in table.columns), "")


def check_sacct(timezone: str, unit: str) -> datetime.tzinfo:
    """Return the time zone, or refuse what `read_sacct` does not take.

    Raises
    ------
    WorkloadError
        Naming the key, and what is accepted.
    """
    if unit not in ("cpus", "nodes"):
        raise WorkloadError(f"workload.unit={unit}: must be cpus or nodes")
    return zone_of(timezone)


def _table(text: str, file: Path) -> pd.DataFrame:
    """Split lines at delimiters; further ones in the last column belong to its text.

    With another one than ``|`` there may be quotation marks, as in a table.
    """
    lines = text.split("\n")
    if (delimiter := delimiter_of(lines[0])) != "|":
        (_, names), *rest = rows_of(text, file, Layout())
        last = len(names) - 1
        for _, cells in rest:
            cells[last:] = cells[last:] and [delimiter.join(cells[last:])]
        return body(names, rest, file)
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

    Everything that is missing is named in one line.
    """
    needed = dict(NEEDED)
    if unit == "nodes":
        needed["processors"] = ("NNodes", "AllocNodes")
    chosen = {what: _first(table, names) for what, names in needed.items()}
    missing = [" or ".join(needed[what]) for what, name in chosen.items() if not name]
    if missing:
        raise WorkloadError(
            f"{file}: an accounting dump without the columns {', '.join(missing)} cannot be "
            f"replayed; print them with: {SACCT}"
        )
    return chosen


def _fields(
    table: pd.DataFrame, chosen: Mapping[str, str], zone: datetime.tzinfo, unit: str, file: Path
) -> tuple[pd.DataFrame, BoolArray]:
    """Return the 18 fields of each job, and which started before they were submitted."""

    def column(name: str, parse: Callable[[str], float]) -> np.ndarray:
        if name not in table.columns:
            return np.full(len(table), -1.0)
        return _parsed(table[name], parse, file)

    submit = column("Submit", lambda text: instant(text, zone))
    start = column("Start", lambda text: instant(text, zone))
    state = table[chosen["state"]].str.split(" ").str[0].str.rstrip("+")
    asked = "ReqCPUS" if unit == "cpus" else "ReqNodes"
    wait = np.where((start >= 0) & (submit >= 0), start - submit, -1.0)
    negative = (wait < 0) & (start >= 0) & (submit >= 0)
    name = chosen["runtime"]
    if name == "End":
        end = column("End", lambda text: instant(text, zone))
        runtime = np.where((end >= 0) & (start >= 0), end - start, -1.0)
    else:
        runtime = column(name, duration if name == "Elapsed" else _count)
    known = {
        "job_number": _numbers(table[chosen["job"]]),
        "submit_time": submit,
        "wait_time": np.where(negative, -1.0, wait),
        "run_time": np.where(state.isin(_UNFINISHED), -1.0, runtime),
        "allocated_processors": column(chosen["processors"], _count),
        "requested_processors": column(asked, _count),
        "requested_time": _requested(table, column),
        "status": state.map(lambda name: _status(str(name))).to_numpy(float),
        **{field: _codes(table, names) for field, names in NAMED.items()},
    }
    return fields_of(known, len(table)), negative


NAMED = {"user": ("UID", "User"), "group": ("GID", "Group", "Account"),
         "executable": ("JobName",), "partition": ("Partition",)}  # fmt: skip
RECKONED = ("Submit", "CPUTimeRAW", "ReqCPUS", "ReqNodes", "ResvCPURAW", "TimelimitRaw", "State")
"""Columns from which starts and runtimes are reckoned where an export lacks both."""
PAST_LIMIT = 1.05
"""Times the limit: a longer runtime shows that the count behind it is wrong."""
WHOLE_NODES = 0.05
"""Relative difference of counts a node that are counts of the same node."""


def delimiter_of(header: str) -> str:
    """Return what stands between the columns of a header, a bar where nothing does."""
    return max(f"|{DELIMITERS}", key=header.count)


def is_reckoned(columns: Iterable[str]) -> bool:
    """Say whether an export lacks times and counts, but has what they can be reckoned from.

    Examples
    --------
    >>> is_reckoned(RECKONED), is_reckoned((*RECKONED, "Start", "ElapsedRaw", "AllocCPUS"))
    (True, False)
    """
    there = set(columns)
    told = {name for what in ("start", "runtime", "processors") for name in NEEDED[what]}
    return set(RECKONED) <= there and not there & told


def _reckoned(table: pd.DataFrame, zone: datetime.tzinfo, file: Path) -> SwfLog:
    """Return jobs of an export without starts, runtimes and allocated processors.

    A job that waited r seconds on n CPUs has ResvCPURAW = r n, n those that it
    requested; CPUTimeRAW is its runtime on the CPUs that it was given.
    """

    def column(name: str, parse: Callable[[str], float] = _count) -> FloatArray:
        return _parsed(table[name], parse, file)

    requested, nodes = np.maximum(column("ReqCPUS"), 1.0), np.maximum(column("ReqNodes"), 1.0)
    work, reserved = column("CPUTimeRAW"), column("ResvCPURAW")
    limit = _requested(table, column)
    state = table["State"].str.split(" ").str[0].str.rstrip("+")
    partition = _codes(table, ("Partition",))
    asked = {
        "requested": requested,
        "nodes": nodes,
        "work": work,
        "limit": np.where(limit > 0, limit, np.nan),
        "partition": partition,
        "timeout": (state == "TIMEOUT").to_numpy(),
    }
    count, told, whole = _counts(pd.DataFrame(asked))
    runtime = np.where(state.isin(_UNFINISHED), -1.0, work / count)
    beyond = (limit > 0) & (runtime > PAST_LIMIT * limit)
    known = {
        "job_number": np.arange(1.0, len(table) + 1),
        "submit_time": column("Submit", lambda text: instant(text, zone)),
        "wait_time": np.where(reserved < 0, -1.0, reserved / requested),
        "run_time": runtime,
        "allocated_processors": count,
        "requested_processors": requested,
        "requested_time": limit,
        "status": state.map(lambda name: _status(str(name))).to_numpy(float),
        "partition": partition,
    }
    remark = (
        f"it has no starts, runtimes or allocated CPUs; they are inferred: start = Submit + "
        f"ResvCPURAW / ReqCPUS, runtime = CPUTimeRAW / CPUs. CPUs are those requested for "
        f"{len(table) - told - whole:,} jobs, whole nodes for {whole:,}, and for {told:,} a number "
        "inferred from jobs that reached their time limits. On these assumptions "
        f"{int(beyond.sum()):,} jobs would have run more than 5 % past their limits"
    )
    jobs, found = fields_of(known, len(table)), {"beyond_limit": beyond}
    return SwfLog(jobs, found=found, remarks=(remark,), words=_words(table, partition=partition))


def _counts(jobs: pd.DataFrame) -> tuple[FloatArray, int, int]:
    """Return the CPUs of each job, and how many a TIMEOUT or whole nodes tell.

    Nodes of a partition are given whole where more than half of its TIMEOUTs have nearly
    the same CPUs a node, no job that ran asks for more, and some asked for fewer. A job that
    timed out ran a little longer than its limit; its runtime is whole seconds, so that of
    the numbers near, the one that divides most jobs' CPU seconds a node is the node's.
    """
    count = jobs["requested"].to_numpy().copy()
    asked, work = jobs[["requested", "work"]].div(jobs["nodes"], axis=0).to_numpy().T
    implied = work / jobs["limit"].to_numpy()
    ended = jobs["timeout"].to_numpy() & (implied >= 1)
    widest = pd.Series(asked * (work > 0)).groupby(jobs["partition"]).transform("max").to_numpy()
    plain = ended & (np.round(implied) >= np.floor(asked)) & (implied <= 2 * widest + 0.5)
    count[plain] = np.round((jobs["work"] / jobs["limit"]).to_numpy()[plain])
    of_nodes = np.zeros(len(jobs), bool)
    for rows in jobs.groupby("partition").indices.values():
        seen = implied[rows][ended[rows]]
        if not seen.size:
            continue
        node = np.round(np.median(seen))
        alike = np.abs(seen / node - 1) <= WHOLE_NODES
        near = np.arange(np.ceil(node * (1 - WHOLE_NODES)), node * (1 + WHOLE_NODES))
        node = max([node, *near], key=lambda n: np.mean(work[rows] % n == 0))
        fewer = (asked[rows][ended[rows]] < node).any()
        if alike.mean() > 0.5 and widest[rows[0]] <= node and fewer:
            count[rows] = node * jobs["nodes"].to_numpy()[rows]
            of_nodes[rows] = True
    return count, int((plain & ~of_nodes).sum()), int(of_nodes.sum())


def _parsed(cells: pd.Series, parse: Callable[[str], float], file: Path) -> np.ndarray:
    asks = "is not what this column holds; print with --parsable2 --noconvert"
    return parsed(cells, parse, file, lambda text, _: f": {text} {asks}")


def _requested(table: pd.DataFrame, column: Column) -> np.ndarray:
    if "TimelimitRaw" in table.columns:
        minutes = column("TimelimitRaw", lambda text: _count(text) if text.isdecimal() else -1.0)
        return np.where(minutes > 0, 60.0 * minutes, -1.0)
    return column("Timelimit", lambda text: duration(text) if text[:1].isdecimal() else -1.0)


def _count(text: str) -> float:
    if text in UNKNOWN:
        return -1.0
    if not text.isdecimal():
        raise ValueError(text)
    return float(text)


def _status(state: str) -> int:
    return -1 if state in _UNFINISHED else _STATUS.get(state, 0)


def _numbers(identifiers: pd.Series) -> FloatArray:
    """Return job numbers; tasks of an array (``17_4``) share one, and cleaning renumbers them."""
    found = identifiers.str.extract(r"^(\d{1,15})(?:\D|$)", expand=False)
    return found.fillna("-1").to_numpy().astype(float)


def _told_apart(jobs: pd.DataFrame, identifiers: pd.Series) -> pd.DataFrame:
    """Return the jobs with fresh numbers for tasks that are alike in everything but their name.

    Otherwise they would pass for one line that was printed again.
    """
    alike = jobs.duplicated().to_numpy() & ~identifiers.duplicated().to_numpy()
    first = int(jobs["job_number"].max()) + 1 if len(jobs) else 1
    fresh = first + np.cumsum(alike) - 1
    return jobs.assign(job_number=np.where(alike, fresh, jobs["job_number"]))


def _codes(table: pd.DataFrame, names: tuple[str, ...]) -> FloatArray:
    """Return the codes of the first of these columns that there is, -1 without one."""
    name = _first(table, names)
    return codes(table[name]) if name else np.full(len(table), -1.0)


def _stems(table: pd.DataFrame) -> np.ndarray | None:
    """Return a number for each job name without its digits: ``run_017`` and ``run_18`` are one."""
    if "JobName" not in table.columns:
        return None
    stems = table["JobName"].str.replace(r"\d+", "#", regex=True)
    known = ~stems.str.fullmatch("#?")
    return np.where(known, pd.factorize(stems)[0], -1)


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
    usual = MappingProxyType({"zero_runtime": "keep"})
    wanted = "what sacct printed, such as workload.path=jobs.txt"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sacct(self.timezone, self.unit)

    def read(self) -> SwfLog:
        """Read the file."""
        return read_sacct(self.file, self.timezone, self.unit, self._limits)
