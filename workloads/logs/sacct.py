"""Slurm's accounting: what ``sacct --parsable2`` prints, read as a log.

References
----------
The manual page of ``sacct``: fields, states and formats of time.
"""

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np
import pandas as pd

from workloads.base import BoolArray, FloatArray
from workloads.errors import WorkloadError, check_choice
from workloads.logs.log import FileWorkload
from workloads.logs.swf import Comment, SwfLog, fields_of, read_lines
from workloads.logs.table import (
    DELIMITERS,
    body,
    codes,
    duration,
    instant,
    parsed,
    rows_of,
    words,
    zone_of,
)

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


def _count(text: str) -> float:
    if not text.isdecimal():
        raise ValueError(text)
    return float(text)


@dataclass(frozen=True)
class _Dump:
    """The cells of a dump by what they say; -1 where it has no such column."""

    table: pd.DataFrame
    zone: datetime.tzinfo
    file: Path

    def numbers(self, name: str, parse: Callable[[str], float] = _count) -> FloatArray:
        if name not in self.table.columns:
            return np.full(len(self.table), -1.0)
        asks = "is not what this column holds; print with --parsable2 --noconvert"
        return parsed(self.table[name], parse, self.file, lambda text, _: f": {text} {asks}")

    def instants(self, name: str) -> FloatArray:
        return self.numbers(name, lambda text: instant(text, self.zone))

    def limits(self) -> FloatArray:
        if "TimelimitRaw" not in self.table.columns:
            return self.numbers(
                "Timelimit", lambda text: duration(text) if text[:1].isdecimal() else -1.0
            )
        minutes = self.numbers("TimelimitRaw", lambda text: float(text) if text.isdecimal() else -1)
        return np.where(minutes > 0, 60.0 * minutes, -1.0)

    @cached_property
    def states(self) -> pd.Series:
        """State of each job in one word."""
        return self.table["State"].str.split(" ").str[0].str.rstrip("+")

    def outcome(self, runtime: FloatArray) -> dict[str, FloatArray]:
        """Return the fields that tell how jobs ended, -1 for those that have not."""
        going = self.states.isin(_UNFINISHED)
        status = self.states.map(_STATUS).fillna(0.0)
        return {"run_time": np.where(going, -1.0, runtime), "status": np.where(going, -1.0, status)}


def _recorded(dump: _Dump, unit: str) -> SwfLog:
    """Return the jobs of an export that says when they started."""
    chosen = _choose_columns(dump.table, unit, dump.file)
    table = dump.table[~dump.table[chosen["job"]].str.contains(".", regex=False)]
    jobs, negative = _fields(replace(dump, table=table), chosen, unit)
    jobs = _told_apart(jobs, table[chosen["job"]])
    named = _words(table, **{field: jobs[field] for field in NAMED})
    return SwfLog(jobs, names=_stems(table), found={"negative_wait": negative}, words=named)


def _words(table: pd.DataFrame, **codes: Iterable[float]) -> dict[str, dict[int, str]]:
    """Return the names behind the codes of fields whose columns are there."""
    there = {field: _first(table, NAMED[field]) for field in codes}
    return {field: words(codes[field], table[name]) for field, name in there.items() if name}


def _first(table: pd.DataFrame, names: Sequence[str]) -> str:
    return next((name for name in names if name in table.columns), "")


def _table(text: str, file: Path) -> pd.DataFrame:
    """Split lines at delimiters; further ones in the last column belong to its text.

    With another one than ``|`` there may be quotation marks, as in a table.
    """
    lines = text.split("\n")
    if (delimiter := delimiter_of(lines[0])) != "|":
        (_, names), *rest = rows_of(text, file, delimiter)
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


def _fields(dump: _Dump, chosen: Mapping[str, str], unit: str) -> tuple[pd.DataFrame, BoolArray]:
    """Return the 18 fields of each job, and which started before they were submitted."""
    table = dump.table
    submit, start = dump.instants("Submit"), dump.instants("Start")
    wait = np.where((start >= 0) & (submit >= 0), start - submit, -1.0)
    negative = (wait < 0) & (start >= 0) & (submit >= 0)
    name = chosen["runtime"]
    if name == "End":
        end = dump.instants("End")
        runtime = np.where((end >= 0) & (start >= 0), end - start, -1.0)
    else:
        runtime = dump.numbers(name, duration if name == "Elapsed" else _count)
    known = {
        "job_number": _numbers(table[chosen["job"]]),
        "submit_time": submit,
        "wait_time": np.where(negative, -1.0, wait),
        "allocated_processors": dump.numbers(chosen["processors"]),
        "requested_processors": dump.numbers("ReqCPUS" if unit == "cpus" else "ReqNodes"),
        "requested_time": dump.limits(),
        **dump.outcome(runtime),
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


def _reckoned(dump: _Dump) -> SwfLog:
    """Return jobs of an export without starts, runtimes and allocated processors.

    A job that waited r seconds on n CPUs has ResvCPURAW = r n, n those that it
    requested; CPUTimeRAW is its runtime on the CPUs that it was given.
    """
    table = dump.table
    requested, nodes = (np.maximum(dump.numbers(name), 1.0) for name in ("ReqCPUS", "ReqNodes"))
    work, reserved, limit = dump.numbers("CPUTimeRAW"), dump.numbers("ResvCPURAW"), dump.limits()
    partition = _codes(table, ("Partition",))
    asked = {
        "requested": requested,
        "nodes": nodes,
        "work": work,
        "limit": np.where(limit > 0, limit, np.nan),
        "partition": partition,
        "timeout": (dump.states == "TIMEOUT").to_numpy(),
    }
    count, told, whole = _counts(pd.DataFrame(asked))
    known = {
        "job_number": np.arange(1.0, len(table) + 1),
        "submit_time": dump.instants("Submit"),
        "wait_time": np.where(reserved < 0, -1.0, reserved / requested),
        "allocated_processors": count,
        "requested_processors": requested,
        "requested_time": limit,
        **dump.outcome(work / count),
        "partition": partition,
    }
    beyond = (limit > 0) & (known["run_time"] > PAST_LIMIT * limit)
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
    """Jobs from Slurm's accounting: what ``sacct --parsable2`` printed, with its header line.

    Steps (``17.batch``) are parts of a job and left out. Submit times are seconds
    since 1970. Users, groups, partitions and job names (the executable) become
    numbers from 1, in order of their names.

    Parameters
    ----------
    path
        As for `FileWorkload`; others as for `LogWorkload`.
    timezone : str
        Of times without an offset, such as ``America/Costa_Rica``.
    unit : str
        What a processor is: ``cpus``, or ``nodes`` where whole nodes are given out.
    """

    timezone: str = "UTC"
    unit: Literal["cpus", "nodes"] = "cpus"
    usual = MappingProxyType({"zero_runtime": "keep"})
    wanted = "what sacct printed, such as workload.path=jobs.txt"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("workload.unit", self.unit, "cpus", "nodes")
        self._zone = zone_of(self.timezone)

    def read(self) -> SwfLog:
        """Return the dump as a log of the 18 fields.

        Raises
        ------
        WorkloadError
            If the file cannot be read, lacks columns (all are named), or a value is
            not what its column holds (with its line).
        """
        checksum, text = read_lines(self.file, "an accounting dump", self._limits)
        table = _table(text.decode("utf-8", "replace"), self.file)
        again = table.index[(table == list(table.columns)).all(axis=1)]
        notes = f"Note: times are seconds since 1970, read as {self.timezone}", "UnixStartTime: 0"
        comments = tuple(Comment(0, f"; {line}") for line in notes)
        reckons = is_reckoned(table.columns) and self.unit == "cpus"
        dump = _Dump(table.drop(again), self._zone, self.file)
        log = _reckoned(dump) if reckons else _recorded(dump, self.unit)
        told = f"lines that repeat the header, left out: {len(again):,} (line {again.min()} first)"
        log = replace(log, remarks=(*log.remarks, told)) if len(again) else log
        return replace(log, comments=comments, source=self.file.name, checksum=checksum)
