"""Which column of a table says what, and how: given by keys, or known by its usual name."""

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from workloads.errors import WorkloadError
from workloads.limits import check_mapping
from workloads.logs.cells import zone_of

ROLES: Mapping[str, tuple[str, ...]] = {
    "job": ("job", "jobid", "id", "jobnumber", "jobname_id", "cobaltjobid"),
    "submit": ("submit", "submittime", "submitted", "submittimestamp", "queuedtimestamp", "qtime"),
    "start": ("start", "starttime", "started", "starttimestamp", "begintime"),
    "end": ("end", "endtime", "ended", "endtimestamp", "finishtime", "finished", "completiontime"),
    "wait": ("wait", "waittime", "queuetime"),
    "runtime": ("runtime", "elapsed", "elapsedraw", "walltimeused", "runtimeseconds", "duration"),
    "processors": ("processors", "procs", "cores", "cpus", "ncpus", "alloccpus", "nprocs",
                   "allocatedprocessors", "coresused", "nodes", "nodesused", "slots"),
    "requested_processors": ("requestedprocessors", "reqcpus", "coresrequested", "nodesrequested"),
    "requested_time": ("requestedtime", "walltime", "timelimit", "walltimeseconds", "timelimitraw",
                       "requestedwalltime", "walltimerequested", "estimate"),
    "user": ("user", "username", "owner", "uid", "usernamegenid"),
    "group": ("group", "account", "project", "gid", "projectnamegenid"),
    "application": ("application", "executable", "app", "jobname", "exe"),
    "queue": ("queue", "queuename", "class"),
    "partition": ("partition",),
    "status": ("status", "state", "jobstate"),
}  # fmt: skip
"""What a column may say, and the names, without spaces and case, that are known to say it."""
TIMES = ("submit", "start", "end")
LENGTHS = ("wait", "runtime", "requested_time")
NAMES = {"user": "user", "group": "group", "application": "executable", "queue": "queue",
         "partition": "partition"}  # fmt: skip
"""Columns of names, and the fields of the log that hold their numbers."""
UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
DELIMITERS = ",;\t|"


@dataclass(kw_only=True)
class Layout:
    """How a table says what.

    Attributes
    ----------
    columns : mapping of str to str
        Which column says what, of `ROLES`, by its name in the header; those that
        are not given are found by usual names.
    units : mapping of str to str
        Of numbers in the columns of times: ms, s, min, h or d; seconds without it.
    time_format : str or None
        Of submit, start and end, as Python's ``strptime`` has it; None takes
        numbers and ISO 8601.
    timezone : str
        Of times without an offset.
    delimiter : str or None
        None takes the one of comma, semicolon, tab and bar that the header has most.
    header : int
        Lines above the first job; names stand in the last that has the columns.

    Raises
    ------
    WorkloadError
        If one is out of range; with its key.
    """

    columns: Mapping[str, str] | None = None
    units: Mapping[str, str] | None = None
    time_format: str | None = None
    timezone: str = "UTC"
    delimiter: str | None = None
    header: int = 1

    def __post_init__(self) -> None:
        for key, given in (("columns", self.columns), ("units", self.units)):
            check_mapping(key, given)
            for role in given or {}:
                known = ROLES if key == "columns" else (*TIMES, *LENGTHS)
                if role not in known:
                    raise WorkloadError(
                        f"workload.{key}.{role}: there is no such column; there are "
                        f"{', '.join(known)}"
                    )
        for role, unit in (self.units or {}).items():
            if unit not in UNITS:
                raise WorkloadError(f"workload.units.{role}={unit}: must be {' or '.join(UNITS)}")
        if self.delimiter is not None and len(str(self.delimiter)) != 1:
            raise WorkloadError(f"workload.delimiter={self.delimiter}: must be one character")
        if isinstance(self.header, bool) or not isinstance(self.header, int) or self.header < 1:
            raise WorkloadError(
                f"workload.header={self.header}: must be a whole number, at least 1"
            )
        zone_of(self.timezone)

    def unit(self, role: str) -> float:
        """Return the seconds of one of a column's unit."""
        return UNITS[(self.units or {}).get(role, "s")]


def rows_of(text: str, file: Path, layout: Layout) -> list[tuple[int, list[str]]]:
    """Return the number and the cells of each line that is not empty.

    Raises
    ------
    WorkloadError
        If there is no delimiter, or no job.
    """
    delimiter = layout.delimiter
    if delimiter is None:
        head = text.lstrip("\n").split("\n", 1)[0]
        delimiter = max(DELIMITERS, key=head.count)
        if delimiter not in head:
            raise WorkloadError(
                f"{file}, line 1: no comma, semicolon, tab or bar between columns; "
                "workload.delimiter names another character"
            )
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True, strict=True)
    rows: list[tuple[int, list[str]]] = []
    line = 0
    try:
        for cells in reader:
            line, before = reader.line_num, line
            if line > before + 1 and len(rows) >= layout.header:
                raise WorkloadError(
                    f"{file}, line {before + 1}: a quotation mark opens a cell that goes on to "
                    f"line {line}; a job stands on one line"
                )
            if any(cell.strip() for cell in cells):
                rows.append((line, [cell.strip() for cell in cells]))
    except csv.Error as error:
        raise WorkloadError(f"{file}, line {line + 1}: quotation marks: {error}") from None
    if len(rows) <= layout.header:
        raise WorkloadError(f"{file}: no job below the header (workload.header={layout.header})")
    return rows


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def choose(
    rows: list[tuple[int, list[str]]], file: Path, layout: Layout
) -> tuple[dict[str, str], pd.DataFrame]:
    """Return which column says what, and the cells below the header.

    Raises
    ------
    WorkloadError
        Naming what no column is known to say, or a line with other fields than the header.
    """
    heads, problem = rows[: layout.header], None
    for _, names in reversed(heads):
        chosen, problem = _named(names, file, layout)
        if problem is None:
            return chosen, body(names, rows[layout.header :], file)
    assert problem is not None
    raise problem


def _named(
    names: list[str], file: Path, layout: Layout
) -> tuple[dict[str, str], WorkloadError | None]:
    """Return the columns that a header has for each role, and what is wrong with it."""
    chosen = {}
    shown = ", ".join(name for name in names if name)[:300]
    for role, usual in ROLES.items():
        given = (layout.columns or {}).get(role)
        if given is not None:
            if names.count(given) != 1:
                times = f"{names.count(given)} columns" if given in names else "no column"
                said = f"workload.columns.{role}={given}: {file} has {times} of that name; "
                return {}, WorkloadError(f"{said}it has {shown}")
            chosen[role] = given
            continue
        alike = [name for name in names if _plain(name) in usual]
        if len(alike) > 1:
            best = min(usual.index(_plain(name)) for name in alike)
            alike = [name for name in alike if _plain(name) == usual[best]]
        if len(alike) > 1:
            said = f"{file}: columns {' and '.join(alike)} may both say {role}; "
            return {}, WorkloadError(f"{said}choose one with workload.columns.{role}=NAME")
        if alike:
            chosen[role] = alike[0]
    return chosen, _lacking(chosen, file, shown)


def _lacking(chosen: Mapping[str, str], file: Path, shown: str) -> WorkloadError | None:
    missing = [role for role in ("submit", "processors") if role not in chosen]
    if "processors" in missing and "requested_processors" in chosen:
        missing.remove("processors")
    if not ("runtime" in chosen or ("end" in chosen and ("start" in chosen or "wait" in chosen))):
        missing.append("runtime (or start and end)")
    if not missing:
        return None
    return WorkloadError(
        f"{file}: no column is known to say {', '.join(missing)}; name them, such as "
        f"'workload.columns={{submit: NAME, start: NAME, end: NAME, processors: NAME}}'; "
        f"it has {shown}"
    )


def body(names: list[str], rows: list[tuple[int, list[str]]], file: Path) -> pd.DataFrame:
    """Return the cells below a header by their lines, or refuse a line of other fields."""
    for number, cells in rows:
        if len(cells) != len(names):
            raise WorkloadError(
                f"{file}, line {number}: {len(cells)} fields, the header has {len(names)}"
            )
    index = pd.Index([number for number, _ in rows], name="line")
    body = [cells for _, cells in rows]
    unique = [f"{name}\0{place}" if names.count(name) > 1 else name
              for place, name in enumerate(names)]  # fmt: skip
    return pd.DataFrame(body, columns=unique, index=index, dtype="str")
