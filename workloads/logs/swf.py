"""The Standard Workload Format, version 2.2: one log as it stands, read and written.

Bytes become columns on a fast path; a slow one finds the place of a defect. Nothing is cleaned
here; `workloads.logs.cleaning` does that, by name and with counts.

References
----------
Feitelson et al., "The Standard Workload Format", Parallel Workloads Archive;
Chapin et al., "Benchmarks and standards for the evaluation of parallel job
schedulers", JSSPP 1999.
"""

import contextlib
import datetime
import gzip
import hashlib
import io
import os
import re
import tempfile
import warnings
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from workloads.base import BoolArray, IntArray, Trace
from workloads.errors import LARGEST, USUAL, Limits, WorkloadError, beyond

FIELDS = (
    "job_number",
    "submit_time",
    "wait_time",
    "run_time",
    "allocated_processors",
    "average_cpu_time",
    "used_memory",
    "requested_processors",
    "requested_time",
    "requested_memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding_job",
    "think_time",
)
"""The 18 fields of a job's line, in order; times in seconds, memory in KB."""
NAMES = (
    *("job_number", "status", "user", "group", "executable", "queue", "partition"),
    "preceding_job",
)
"""Those that are numbers in place of names, whole ones."""

_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WHOLE = re.compile(rb"[+-]?\d+")


def log_file(path: str | os.PathLike[str]) -> Path:
    """Return the file of a path; ``sample`` is the log in this package where no such file is.

    Examples
    --------
    >>> log_file("sample").name, log_file("my.swf").name
    ('sample.swf.gz', 'my.swf')
    """
    file = Path(path).expanduser()
    own = Path(__file__).with_name("sample.swf.gz")
    return own if os.fspath(path) == "sample" and not file.is_file() else file


def unpack(
    file: Path,
    wanted: str = "an SWF log",
    holds: str = "one line for each job",
    limits: Limits = USUAL,
) -> tuple[str, bytes]:
    """Return the SHA-256 of a file as stored, and its text with plain line ends.

    Parameters
    ----------
    file : pathlib.Path
    wanted, holds : str
        What the file should be, with its article, and what is in such a file; for messages.
    limits : Limits

    Raises
    ------
    WorkloadError
        If there is no readable text, or more of it than the limits allow.
    """
    try:
        with file.open("rb") as stream:
            stored = stream.read(limits.size + 1)
    except FileNotFoundError:
        raise WorkloadError(f"{file}: no such file; give the path of {wanted}") from None
    except IsADirectoryError:
        raise WorkloadError(
            f"{file}: is a folder; give the path of one {wanted.split(maxsplit=1)[1]}"
        ) from None
    except (OSError, ValueError) as error:  # a name with a zero byte
        said = getattr(error, "strerror", error)
        raise WorkloadError(f"{file}: cannot be read: {said}") from None
    packed = stored[:2] == b"\x1f\x8b"
    text = _decompress(stored, file, limits.size) if packed else stored
    if len(stored) > limits.size or len(text) > limits.size:
        raise beyond(file, f"holds more than {limits.size:,} bytes unpacked", "size")
    text = text.removeprefix(b"\xef\xbb\xbf")
    if not text.strip():
        raise WorkloadError(f"{file}: the file is empty; {wanted} has {holds}")
    if b"\0" in text:
        raise WorkloadError(
            f"{file}: not a text file (byte 0x00 at offset {text.index(0)}); "
            f"{wanted} is text, plain or gzip-compressed"
        )
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return hashlib.sha256(stored).hexdigest(), text


def read_lines(file: Path, wanted: str = "an SWF log", limits: Limits = USUAL) -> tuple[str, bytes]:
    """Return what `unpack` does of a file with a job a line, as long and many as is allowed."""
    checksum, text = unpack(file, wanted, limits=limits)
    check_lines(text, file, limits)
    return checksum, text


def check_lines(text: bytes, file: Path, limits: Limits) -> None:
    """Refuse text with a line that is too long, or with more lines of jobs than is allowed."""
    start = 0
    while len(text) - start > limits.line:
        end = text.rfind(b"\n", start, start + limits.line + 1)
        if end < 0:
            raise beyond(file, f"has a line of more than {limits.line:,} bytes", "line")
        start = end + 1
    if text.count(b"\n") > limits.jobs:
        lines = (line.strip() for line in io.BytesIO(text))
        jobs = sum(1 for line in lines if line and not line.startswith(b";"))
        check_jobs_held(jobs, file, limits)


def check_jobs_held(jobs: int, file: Path, limits: Limits) -> None:
    """Refuse a file of more jobs than the limit."""
    if jobs > limits.jobs:
        raise beyond(file, f"holds more than {limits.jobs:,} jobs", "jobs")


def _decompress(stored: bytes, file: Path, most: int) -> bytes:
    """Return what is unpacked, up to one more than `most` bytes."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(stored)) as stream:
            return stream.read(most + 1)
    except EOFError:
        raise WorkloadError(
            f"{file}: the gzip data breaks off before its end; fetch the file again"
        ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise WorkloadError(
            f"{file}: the gzip data is damaged ({error}); fetch the file again"
        ) from None


def pack(file: Path, text: bytes) -> None:
    """Write text under a temporary name beside `file`, then move it into place."""
    content = gzip.compress(text, mtime=0) if file.suffix == ".gz" else text
    try:
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    except OSError as error:
        raise WorkloadError(f"{file}: cannot be written: {error.strerror}") from None
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        temporary.chmod(0o644)
        temporary.replace(file)
    except OSError as error:
        raise WorkloadError(f"{file}: cannot be written: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)


def _parse_fast(rows: bytes) -> pd.DataFrame | None:
    """Parse job lines with the C engine; None where anything looks odd."""
    if not rows.strip():
        return pd.DataFrame({name: np.empty(0, np.int64) for name in FIELDS})
    try:
        with warnings.catch_warnings():  # of surplus fields, seen below; of float_precision,
            warnings.simplefilter("ignore")  # which pandas 3 has by default and deprecates
            table = pd.read_csv(
                io.BytesIO(rows),
                sep=r"\s+",
                header=None,
                names=[*FIELDS, "surplus"],
                index_col=False,
                engine="c",
                quoting=3,
                float_precision="round_trip",
                keep_default_na=False,
                na_values=[""],
                low_memory=False,
            )
    except ValueError:
        return None
    surplus = table.pop("surplus")
    kinds = [dtype.kind for dtype in table.dtypes]
    if surplus.notna().any() or not set(kinds) <= {"i", "f"}:
        return None
    fractions = [name for name, kind in zip(FIELDS, kinds, strict=True) if kind == "f"]
    if not all(np.isfinite(table[name].to_numpy()).all() for name in fractions):
        return None
    if any((table[name] % 1 != 0).any() for name in fractions if name in NAMES):
        return None
    return None if table.max().max() > LARGEST or table.min().min() < -LARGEST else table


def _parse_slow(text: bytes, file: Path) -> pd.DataFrame:
    """Parse line by line, refusing the first defect with its place."""
    rows = []
    for number, line in enumerate(text.split(b"\n"), start=1):
        words = line.split()
        if not words or words[0].startswith(b";"):
            continue
        if len(words) != len(FIELDS):
            raise WorkloadError(
                f"{file}, line {number}: {len(words)} fields; an SWF job has {len(FIELDS)}"
            )
        rows.append(
            [
                _number(word, name, f"{file}, line {number}, field {position} ({name})")
                for position, (name, word) in enumerate(zip(FIELDS, words, strict=True), start=1)
            ]
        )
    return pd.DataFrame(rows, columns=list(FIELDS))


def _number(word: bytes, name: str, place: str) -> int | float:
    shown = word.decode("utf-8", "replace")
    shown = shown if len(shown) <= 40 else f"{shown[:40]}…"
    if not _NUMBER.fullmatch(word):
        raise WorkloadError(f"{place}: {shown!r} is not a number; unknown values are -1")
    exact = len(word) <= 20 and _WHOLE.fullmatch(word)
    value = int(word) if exact else float(word)
    if not abs(value) <= LARGEST:
        raise WorkloadError(f"{place}: {shown!r} is too large; the limit is 2^62")
    if name in NAMES and value % 1 != 0:
        raise WorkloadError(f"{place}: {shown!r} is not a whole number")
    return value


def format_rows(jobs: pd.DataFrame) -> bytes:
    """Write jobs as lines of 18 numbers, each in its shortest exact form."""
    if jobs.empty:
        return b""
    import pyarrow as pa
    from pyarrow import csv

    table = pa.table({name: jobs[name].to_numpy() for name in FIELDS})
    options = csv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")
    stream = io.BytesIO()
    csv.write_csv(table, stream, options)
    return stream.getvalue()


def fields_of(known: Mapping[str, np.ndarray], number: int) -> pd.DataFrame:
    """Return the 18 fields of so many jobs, whole numbers as integers, -1 for what is unknown."""
    absent = np.full(number, -1.0)
    columns = {name: known.get(name, absent) for name in FIELDS}
    whole = {name: np.int64 for name, values in columns.items() if (values % 1 == 0).all()}
    return pd.DataFrame(columns).astype(whole)


_DIRECTIVE = re.compile(r"\s*;\s*([A-Za-z][A-Za-z ]*?)\s*:(?!//)\s*(.*?)\s*$")


UNIX_YEAR = 365 * 86400.0
"""Seconds since 1970 below which no submit is taken for a Unix time."""


class Comment(NamedTuple):
    """A line that starts with a semicolon, exactly as it stands in the file.

    Attributes
    ----------
    position : int
        How many jobs stand above it.
    text : str
        The whole line without its line end.
    """

    position: int
    text: str


@dataclass(frozen=True)
class SwfLog:
    """One log: its comment lines and its jobs, every value as recorded.

    Attributes
    ----------
    jobs : pandas.DataFrame
        One row a job in file order, the 18 columns of `FIELDS`; int64 where
        all values of a column are whole, else float64; -1 for unknown.
    comments : tuple of Comment
    source : str
        Name of the file, without its folder.
    checksum : str or None
        SHA-256 of the file as stored.
    names : numpy.ndarray of int, shape (jobs,), or None
        A number for what is left of each job's name without its numbers, -1
        where it has none; None for logs without names.
    found : mapping of str to numpy.ndarray of bool, shape (jobs,)
        Which jobs break a rule of `workloads.logs.cleaning.RULES` in a way that the
        18 fields do not show.
    remarks : tuple of str
        What its reader had to assume, a sentence each.
    words : mapping of str to mapping of int to str
        By column (``user``, ``group``, ``executable``, …) the name behind each number.

    Raises
    ------
    WorkloadError
        If the columns are not exactly those of `FIELDS`.

    Examples
    --------
    >>> row = dict.fromkeys(FIELDS, -1) | {"job_number": 1, "run_time": 60}
    >>> log = SwfLog(pd.DataFrame([row]), (Comment(0, "; MaxProcs: 128"),))
    >>> log.machine_size()
    128
    """

    jobs: pd.DataFrame
    comments: tuple[Comment, ...] = ()
    source: str = "log"
    checksum: str | None = None
    names: IntArray | None = None
    found: Mapping[str, BoolArray] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    words: Mapping[str, Mapping[int, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if tuple(self.jobs.columns) != FIELDS:
            raise WorkloadError(
                f"{self.source}: an SWF log has the columns {', '.join(FIELDS)}; "
                f"got {', '.join(map(str, self.jobs.columns))}"
            )

    def directives(self) -> list[tuple[str, str]]:
        """Return the header's ``Key: value`` lines in order; keys may repeat."""
        matches = (_DIRECTIVE.match(comment.text) for comment in self.comments)
        return [(match[1], match[2]) for match in matches if match]

    @property
    def parts(self) -> str:
        """Field that says which part of the machine a job was for: partition or queue."""
        is_one = self.jobs["partition"].nunique() < 2
        return "queue" if is_one and not self.jobs["queue"].max() < 0 else "partition"

    def of_part(self, name: str) -> "SwfLog":
        """Return the log of the jobs for one partition, or queue, by name or number.

        Its checksum is another one, so that nothing of it is taken for the whole log's.

        Raises
        ------
        WorkloadError
            If no job was for it.
        """
        words = self.words.get(self.parts, {})
        labels = self.jobs[self.parts].map(lambda code: words.get(code, str(code)))
        kept = (labels == name).to_numpy()
        if not kept.any():
            known = ", ".join(labels.value_counts().index)
            raise WorkloadError(
                f"workload.partition={name}: no job of {self.source} was for it; there are {known}"
            )
        return replace(
            self,
            source=f"{self.source} ({name})",
            checksum=self.checksum
            and hashlib.sha256(f"{self.checksum} {name}".encode()).hexdigest(),
            jobs=self.jobs[kept].reset_index(drop=True),
            names=None if self.names is None else self.names[kept],
            found={rule: which[kept] for rule, which in self.found.items()},
            remarks=tuple(f"of the whole log, {one}" for one in self.remarks),
        )

    def values(self, key: str) -> list[str]:
        """Return every value of one directive, such as ``Queue``; case does not matter."""
        return [value for name, value in self.directives() if name.lower() == key.lower()]

    def machine_size(self) -> int | None:
        """Return the processors that the header names: MaxProcs, else MaxNodes, else None.

        Raises
        ------
        WorkloadError
            If the first of the two that is given is not a whole number.
        """
        for key in ("MaxProcs", "MaxNodes"):
            for value in self.values(key):
                if not re.match(r"[+-]?\d{1,15}(\s|$)", value):
                    raise WorkloadError(
                        f"{self.source}: header {key}: {value[:40]!r} is not a whole number; "
                        "correct it or set cluster.processors"
                    )
                if int(value.split()[0]) > 0:
                    return int(value.split()[0])
        return None

    def epoch(self) -> float | None:
        """Return the Unix time of the log's instant 0, None where the header has none.

        A header that says 0 is believed where the submits are Unix times themselves.
        """
        for value in self.values("UnixStartTime"):
            if re.match(r"\d{1,11}(\s|$)", value):
                zero = float(value.split()[0])
                known = zero > 0 or self.jobs["submit_time"].max() > UNIX_YEAR
                return zero if known else None
        return None

    def date(self, seconds: float) -> str | None:
        """Return an instant of the log's clock as a date (UTC), None where that is unknown."""
        zero = self.epoch()
        if zero is None:
            return None
        with contextlib.suppress(OverflowError, ValueError):
            found = datetime.datetime.fromtimestamp(zero + seconds, datetime.UTC)
            return f"{found:%Y-%m-%d %H:%M} UTC"
        return None


def read_swf(path: str | os.PathLike[str], limits: Limits = USUAL) -> SwfLog:
    r"""Read an SWF file, plain or gzip-compressed, whatever its name.

    Parameters
    ----------
    path : path-like
    limits : Limits
        How much the file may hold.

    Raises
    ------
    WorkloadError
        If the file is missing, a folder, empty, binary, a damaged gzip file, beyond
        a limit, or has a line that is no job; the message names file, line and field.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".swf") as file:
    ...     _ = file.write("; MaxProcs: 8\n1 0 0 60 4 -1 -1 4 90 -1 1 1 -1 -1 -1 -1 -1 -1\n")
    ...     file.flush()
    ...     log = read_swf(file.name)
    >>> log.machine_size(), log.jobs["run_time"].tolist()
    (8, [60])
    """
    file = Path(path).expanduser()
    checksum, text = read_lines(file, limits=limits)
    comments, rows = _split(text)
    jobs = _parse_fast(rows)
    if jobs is None:
        jobs = _parse_slow(text, file)
    return SwfLog(jobs, tuple(comments), file.name, checksum)


def write_swf(path: str | os.PathLike[str], log: SwfLog) -> None:
    """Write a log, compressed where the name ends in ``.gz``; whole or not at all.

    Every value and every comment line comes back from `read_swf`; spacing and
    spellings of a number do not (``1.50`` is written as ``1.5``).

    Raises
    ------
    WorkloadError
        If a value is not finite, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> row = dict.fromkeys(FIELDS, -1) | {"job_number": 1, "submit_time": 0, "run_time": 60}
    >>> log = SwfLog(pd.DataFrame([row]), (Comment(0, "; MaxProcs: 8"),))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_swf(Path(folder, "log.swf"), log)
    ...     read_swf(Path(folder, "log.swf")).machine_size()
    8
    """
    finite = np.isfinite(log.jobs.to_numpy(float)).all(axis=0)
    if not finite.all():
        raise WorkloadError(
            f"{path}: {FIELDS[int(np.argmin(finite))]} has a value that is not finite; "
            "SWF writes unknown values as -1"
        )
    pieces = []
    start = 0
    for position, text in log.comments:
        pieces += [format_rows(log.jobs.iloc[start:position])]
        pieces += [text.encode("utf-8", "surrogateescape"), b"\n"]
        start = max(start, position)
    pieces += [format_rows(log.jobs.iloc[start:])]
    pack(Path(path).expanduser(), b"".join(pieces))


def _split(text: bytes) -> tuple[list[Comment], bytes]:
    """Take the comment lines out of the text, and return them and the rest."""
    comments: list[Comment] = []
    chunks: list[bytes] = []
    start = search = jobs = 0
    while (mark := text.find(b";", search)) >= 0:
        begin = text.rfind(b"\n", start, mark) + 1 or start
        end = text.find(b"\n", mark)
        search = end + 1 if end >= 0 else len(text)
        if text[begin:mark].strip():
            continue  # a semicolon inside a job's line, which the parser refuses
        chunks.append(text[start:begin])
        jobs += sum(1 for line in chunks[-1].splitlines() if line.strip())
        line = text[begin : end if end >= 0 else len(text)]
        comments.append(Comment(jobs, line.decode("utf-8", "surrogateescape")))
        start = search
    return comments, b"".join([*chunks, text[start:]])


_STATUS = {"completed": 1, "failed": 0, "killed": 0, "cancelled": 5}


def log_of_trace(trace: Trace, notes: tuple[str, ...] = ()) -> SwfLog:
    """Return a trace as an SWF log of jobs that have not been scheduled yet.

    Wait times are unknown; the reference count stands as both allocated and
    requested.

    Parameters
    ----------
    trace : Trace
    notes : tuple of str
        For the header.

    Examples
    --------
    >>> from workloads.models.lublin import Lublin
    >>> from workloads.streams import Streams
    >>> log = log_of_trace(Lublin(jobs=10).trace(Streams(seed=1)), ("A small example.",))
    >>> log.values("MaxProcs"), log.values("Note")
    (['256'], ['A small example.'])
    """
    jobs = trace.jobs
    table = _common(jobs)
    table |= {name: trace.models[name] for name in ("queue", "group") if name in trace.models}
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
        Columns of `workloads.base.COLUMNS`, and ``group`` where it is known.
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
    >>> from workloads.models.lublin import Lublin
    >>> from workloads.streams import Streams
    >>> jobs = Lublin(jobs=1).trace(Streams(seed=1)).jobs
    >>> start = jobs["submit_time"] + 5
    >>> log = log_of_schedule(jobs, start, start + 60, [4])
    >>> log.jobs[["wait_time", "run_time", "allocated_processors"]].values.tolist()
    [[5, 60, 4]]
    """
    start, end = np.asarray(start_time, float), np.asarray(end_time, float)
    table = _common(jobs)
    table["wait_time"] = start - jobs["submit_time"].to_numpy(float)
    table["run_time"] = end - start
    table["allocated_processors"] = np.asarray(allocated, np.int64)
    names = ["completed"] * len(jobs) if status is None else np.asarray(status).tolist()
    table["status"] = np.array([_STATUS.get(name, -1) for name in names], np.int64)
    return _log(table, processors, source, notes)


def _common(jobs: pd.DataFrame) -> dict[str, np.ndarray]:
    same = ["submit_time", "requested_processors", "requested_time", "user", "executable"]
    same += ["preceding_job", "think_time", *jobs.columns.intersection(["group"])]
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
    jobs = fields_of(table, len(table["job_number"]))
    header = ["Version: 2.2", f"MaxJobs: {len(jobs)}", f"MaxRecords: {len(jobs)}"]
    header += [f"MaxProcs: {processors}"] if processors is not None else []
    header += [f"Note: {note}" for note in notes]
    return SwfLog(jobs, tuple(Comment(0, f"; {line}") for line in header), source)
