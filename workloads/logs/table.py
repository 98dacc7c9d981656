"""Any delimited table of jobs: what PBS, LSF, Cobalt, Flux and spreadsheets export, as a log.

Which column says what, and how, is given by keys, or known by its usual name. Cells are
instants, durations, counts and names, in Slurm's accounting as here.
"""

import csv
import datetime
import io
import re
import zoneinfo
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from workloads.base import FloatArray
from workloads.errors import LARGEST, WorkloadError, check_choice, check_count, check_mapping
from workloads.logs.log import FileWorkload
from workloads.logs.swf import Comment, SwfLog, fields_of, read_lines

UNKNOWN = ("", "Unknown", "None", "N/A", "INVALID", "-", "NA", "NaN", "nan", "null", "NULL")
"""Texts that say nothing."""
_DURATION = re.compile(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+)(?:\.\d+)?")


def zone_of(timezone: str) -> datetime.tzinfo:
    """Return a time zone by its name.

    Examples
    --------
    >>> zone_of("Mars/Base")
    Traceback (most recent call last):
    ...
    workloads.errors.WorkloadError: workload.timezone=Mars/Base: no such zone; give a name \
such as Europe/Berlin or UTC
    """
    try:
        return datetime.UTC if timezone == "UTC" else zoneinfo.ZoneInfo(timezone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError, TypeError):
        raise WorkloadError(
            f"workload.timezone={timezone}: no such zone; give a name such as Europe/Berlin or UTC"
        ) from None


def instant(text: str, zone: datetime.tzinfo) -> float:
    """Return seconds since 1970 of a text in ISO 8601, or that is such seconds; else a ValueError.

    The zone is that of times without an offset.
    """
    if text.isdecimal():
        return float(text)
    when = datetime.datetime.fromisoformat(text)
    return (when if when.tzinfo else when.replace(tzinfo=zone)).timestamp()


def duration(text: str) -> float:
    """Return the seconds of ``[[days-]hours:]minutes:seconds``; others are a ValueError.

    Examples
    --------
    >>> duration("1-02:03:04"), duration("05:06")
    (93784.0, 306.0)
    """
    match = _DURATION.fullmatch(text)
    if not match:
        raise ValueError(text)
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def parsed(
    cells: pd.Series, parse: Callable[[str], float], file: Path, said: Callable[[str, str], str]
) -> FloatArray:
    """Return the numbers of a column, each distinct text parsed once; -1 where unknown.

    Parameters
    ----------
    cells : pandas.Series of str
        By line of the file.
    parse : callable
        Raises a ValueError where a text says no number.
    file : Path
    said : callable
        What is said of a wrong cell, from its text and from what is wrong.
    """
    values = {}
    for text in cells.unique():
        try:
            values[text] = -1.0 if text in UNKNOWN else parse(text)
            why = "it is too large"
        except (ValueError, OverflowError) as error:
            values[text], why = np.inf, str(error)
        if not abs(values[text]) <= LARGEST:
            line = int(cells.index[cells == text][0])
            raise WorkloadError(
                f"{file}, line {line}, column {cells.name}{said(repr(text[:40]), why)}"
            )
    return cells.map(values).to_numpy(float)


def codes(cells: pd.Series) -> FloatArray:
    """Return a number for each distinct name from 1 on, whole numbers as they are; -1 unknown.

    Examples
    --------
    >>> codes(pd.Series(["bob", "ann", "", "bob"])).tolist(), codes(pd.Series(["7", ""])).tolist()
    ([2.0, 1.0, -1.0, 2.0], [7.0, -1.0])
    """
    cells = cells.fillna("")
    if cells.str.fullmatch(r"(-1|\d{0,15})").all():
        return cells.replace("", "-1").to_numpy().astype(float)
    names = cells.where(~cells.isin(UNKNOWN), "")
    order = {text: code for code, text in enumerate(sorted(set(names) - {""}), start=1)}
    return names.map(order).fillna(-1).to_numpy(float)


def words(codes: Iterable[float], cells: Iterable[str]) -> dict[int, str]:
    r"""Return the name behind each code as the log has it, signs that show nothing as escapes.

    Examples
    --------
    >>> words([2, 1, -1], ["b\x7fb", "ann", ""])
    {2: 'b\\x7fb', 1: 'ann'}
    """
    known = {int(code): str(text) for code, text in zip(codes, cells, strict=True) if code >= 0}
    return {
        code: "".join(
            one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
        )
        for code, text in known.items()
    }


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


def rows_of(
    text: str, file: Path, delimiter: str | None = None, header: int = 1
) -> list[tuple[int, list[str]]]:
    """Return the number and the cells of each line that is not empty.

    The delimiter is by default the one of comma, semicolon, tab and bar that the first line has
    most; `header` lines stand above the first job.
    """
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
            if line > before + 1 and len(rows) >= header:
                raise WorkloadError(
                    f"{file}, line {before + 1}: a quotation mark opens a cell that goes on to "
                    f"line {line}; a job stands on one line"
                )
            if any(cell.strip() for cell in cells):
                rows.append((line, [cell.strip() for cell in cells]))
    except csv.Error as error:
        raise WorkloadError(f"{file}, line {line + 1}: quotation marks: {error}") from None
    if len(rows) <= header:
        raise WorkloadError(f"{file}: no job below the header (workload.header={header})")
    return rows


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


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


SECONDS_AT_MOST = 1e11
"""Seconds since 1970, in the year 5138: numbers beyond it are of another unit."""
_ENDED_WELL = ("completed", "complete", "done", "success", "succeeded", "finished", "cd", "c", "0")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True)
class _Cells:
    """The cells of a table by what they say."""

    table: pd.DataFrame
    chosen: Mapping[str, str]
    workload: "TableWorkload"

    def texts(self, role: str) -> pd.Series:
        """Return the cells of a column, empty ones where the table has no such column."""
        if role in self.chosen:
            return self.table[self.chosen[role]]
        return pd.Series("", self.table.index, dtype="str")

    def parsed(self, role: str, parse: Callable[[str], float]) -> np.ndarray:
        """Return the numbers of a column, each distinct text parsed once; -1 where unknown."""
        texts = self.texts(role)
        return parsed(
            texts, parse, self.workload.file, lambda text, why: f" ({role}): {text}: {why}"
        )

    def quantities(
        self, role: str, read: Callable[[str], float], wrong: str, most: float = np.inf
    ) -> np.ndarray:
        """Return what a column says in plain numbers of its unit, or else as `read` has it."""
        unit = UNITS[(self.workload.units or {}).get(role, "s")]
        more = self.workload.header + 1

        def parse(text: str) -> float:
            if _NUMBER.fullmatch(text):
                if (value := float(text) * unit) > most:
                    raise ValueError(
                        f"beyond any date; workload.units.{role}=ms reads milliseconds"
                    )
                return value
            try:
                return read(text)
            except ValueError:
                raise ValueError(
                    f"{wrong}; workload.header={more} if the header has {more} lines"
                ) from None

        return self.parsed(role, parse)

    def instants(self, role: str) -> np.ndarray:
        zone, pattern = zone_of(self.workload.timezone), self.workload.time_format
        if pattern is not None:
            return self.parsed(role, lambda text: _with_format(text, pattern, zone))
        wrong = (
            "neither a number nor a time such as 2024-03-01T12:00:00; "
            "workload.time_format says how times are written"
        )
        return self.quantities(role, lambda text: instant(text, zone), wrong, SECONDS_AT_MOST)

    def lengths(self, role: str) -> np.ndarray:
        wrong = "neither a number nor a duration such as 1-12:00:00"
        return self.quantities(role, duration, wrong)

    def counts(self, role: str) -> np.ndarray:
        return self.quantities(role, _no_count, "not a number of processors")

    def numbers(self) -> np.ndarray:
        """Return the numbers of jobs: their identifiers' own where these tell them apart."""
        if "job" not in self.chosen:
            return np.arange(1.0, len(self.table) + 1)
        cells = self.texts("job")
        digits = cells.str.extract(r"^(\d{1,15})(?:\D|$)", expand=False)
        apart = pd.DataFrame({"text": cells, "number": digits}).drop_duplicates()
        if digits.isna().any() or apart["number"].duplicated().any():
            return pd.factorize(cells)[0] + 1.0
        return digits.to_numpy().astype(float)

    def status(self) -> np.ndarray:
        """Return 1 for jobs that ended well, 5 for cancelled ones, 0 for others, -1 unknown."""
        if "status" not in self.chosen:
            return np.full(len(self.table), -1.0)
        words = self.texts("status").str.lower().str.split().str[0].fillna("")
        known = np.where(words.str.startswith("cancel") | (words == "ca"), 5.0, 0.0)
        known = np.where(words.isin(_ENDED_WELL), 1.0, known)
        return np.where(words == "", -1.0, known)


def _no_count(text: str) -> float:
    raise ValueError(text)


def _with_format(text: str, pattern: str, zone: datetime.tzinfo) -> float:
    try:
        when = datetime.datetime.strptime(text, pattern)
    except ValueError:
        raise ValueError(f"not as workload.time_format={pattern} says") from None
    return (when if when.tzinfo else when.replace(tzinfo=zone)).timestamp()


def _fields(cells: _Cells) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the 18 fields of each job, and of which jobs the wait is negative."""
    chosen = cells.chosen
    submit, start, end = (cells.instants(role) for role in TIMES)
    wait, runtime, requested = (cells.lengths(role) for role in LENGTHS)
    known = submit != -1
    if "start" not in chosen and "wait" in chosen:
        start = np.where(known & (wait != -1), submit + wait, -1.0)
    if "start" not in chosen and "wait" not in chosen and "runtime" in chosen:
        start = np.where((end != -1) & (runtime >= 0), end - runtime, -1.0)
    if "start" in chosen or "end" in chosen:
        wait = np.where(known & (start != -1), start - submit, -1.0)
    if "runtime" not in chosen:
        runtime = np.where((start != -1) & (end != -1), end - start, -1.0)
    negative = (wait < 0) & known & (start != -1)
    fields = {
        "job_number": cells.numbers(),
        "submit_time": submit,
        "wait_time": np.where(negative, -1.0, wait),
        "run_time": np.where(runtime < 0, -1.0, runtime),
        "allocated_processors": cells.counts("processors"),
        "requested_processors": cells.counts("requested_processors"),
        "requested_time": requested,
        "status": cells.status(),
        **{field: codes(cells.texts(role)) for role, field in NAMES.items()},
    }
    return fields_of(fields, len(submit)), negative


def _contradictions(cells: _Cells) -> Iterator[str]:
    """Tell how many jobs say a runtime or a wait that their instants contradict."""
    for role, begin, end, stands in (
        ("runtime", "start", "end", "runtime"),
        ("wait", "submit", "start", "start"),
    ):
        if not {role, begin, end} <= cells.chosen.keys():
            continue
        said, first, last = cells.lengths(role), cells.instants(begin), cells.instants(end)
        known = (said != -1) & (first != -1) & (last != -1)
        off = known & (np.abs(last - first - said) > np.maximum(1.0, 0.01 * said))
        if off.any():
            line = int(cells.table.index[int(np.argmax(off))])
            yield (
                f"{int(off.sum()):,} jobs have a {role} other than {end} - {begin} (line {line} "
                f"first); the {stands} is used"
            )


@dataclass
class TableWorkload(FileWorkload):
    """Jobs from a delimited table.

    Needed are submits, processors, and of start, end, wait and runtime enough to
    tell when a job ran. Users, applications and queues become numbers from 1, in
    order of their names.

    Parameters
    ----------
    path
        As for `FileWorkload`; others as for `LogWorkload`.
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
    """

    _: KW_ONLY
    columns: Mapping[str, str] | None = None
    units: Mapping[str, str] | None = None
    time_format: str | None = None
    timezone: str = "UTC"
    delimiter: str | None = None
    header: int = 1
    wanted = "a table of jobs, such as workload.path=jobs.csv"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_mapping("columns", self.columns, ROLES, "column")
        check_mapping("units", self.units, (*TIMES, *LENGTHS), "column")
        for role, unit in (self.units or {}).items():
            check_choice(f"workload.units.{role}", unit, *UNITS)
        if self.delimiter is not None and len(str(self.delimiter)) != 1:
            raise WorkloadError(f"workload.delimiter={self.delimiter}: must be one character")
        check_count("workload.header", self.header)
        zone_of(self.timezone)

    def read(self) -> SwfLog:
        """Return the table as a log of the 18 fields.

        A start before the submit is marked, for cleaning to count.

        Raises
        ------
        WorkloadError
            If the file cannot be read, columns are missing or not certain (all are
            named), or a value is not what its column holds (with its line).
        """
        checksum, text = read_lines(self.file, "a table of jobs", self._limits)
        told = self._cells(text.decode("utf-8", "replace"))
        jobs, negative = _fields(told)
        read_as = ", ".join(f"{role}: {name}" for role, name in told.chosen.items())
        comments = [Comment(0, f"; Note: read as {read_as}")]
        if (jobs["submit_time"] > SECONDS_AT_MOST / 1000).any():
            comments.append(Comment(0, "; UnixStartTime: 0"))
        return SwfLog(
            jobs,
            tuple(comments),
            self.file.name,
            checksum,
            found={"negative_wait": negative},
            remarks=tuple(_contradictions(told)),
            words={
                field: words(jobs[field], told.texts(role))
                for role, field in NAMES.items()
                if role in told.chosen
            },
        )

    def _cells(self, text: str) -> _Cells:
        """Return the cells below the last line of the header that names the columns."""
        rows = rows_of(text, self.file, self.delimiter, self.header)
        for _, names in reversed(rows[1 : self.header]):
            with suppress(WorkloadError):
                chosen = self._chosen(names)
                break
        else:
            names = rows[0][1]
            chosen = self._chosen(names)
        return _Cells(body(names, rows[self.header :], self.file), chosen, self)

    def _chosen(self, names: list[str]) -> dict[str, str]:
        """Return the columns that a header has for each role, or refuse it."""
        chosen = {}
        shown = ", ".join(name for name in names if name)[:300]
        for role, usual in ROLES.items():
            given = (self.columns or {}).get(role)
            if given is not None:
                if names.count(given) != 1:
                    times = f"{names.count(given)} columns" if given in names else "no column"
                    said = (
                        f"workload.columns.{role}={given}: {self.file} has {times} of that name; "
                    )
                    raise WorkloadError(f"{said}it has {shown}")
                chosen[role] = given
                continue
            alike = [name for name in names if _plain(name) in usual]
            if len(alike) > 1:
                best = min(usual.index(_plain(name)) for name in alike)
                alike = [name for name in alike if _plain(name) == usual[best]]
            if len(alike) > 1:
                said = f"{self.file}: columns {' and '.join(alike)} may both say {role}; "
                raise WorkloadError(f"{said}choose one with workload.columns.{role}=NAME")
            if alike:
                chosen[role] = alike[0]
        missing = [role for role in ("submit", "processors") if role not in chosen]
        if "processors" in missing and "requested_processors" in chosen:
            missing.remove("processors")
        if "runtime" not in chosen and not ("end" in chosen and {"start", "wait"} & chosen.keys()):
            missing.append("runtime (or start and end)")
        if missing:
            raise WorkloadError(
                f"{self.file}: no column is known to say {', '.join(missing)}; name them, such as "
                "'workload.columns={submit: NAME, start: NAME, end: NAME, processors: NAME}' "
                "(of moldsim run; describe and convert take --column submit=NAME); "
                f"it has {shown}"
            )
        return chosen
