"""Bytes to columns and back: the fast path of SWF, and the exact place of a defect."""

import gzip
import hashlib
import io
import os
import re
import tempfile
import warnings
import zlib
from pathlib import Path

import numpy as np
import pandas as pd

from workloads.errors import WorkloadError
from workloads.limits import LARGEST, USUAL, Limits, beyond

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
        Of its size.

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
    """Refuse text with a line that is too long, or with more lines of jobs than is allowed.

    Raises
    ------
    WorkloadError
    """
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
    """Refuse a file of more jobs than the limit.

    Raises
    ------
    WorkloadError
    """
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
    """Write text under a temporary name beside `file`, then move it into place.

    Raises
    ------
    WorkloadError
        If the folder cannot be written.
    """
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


def parse_rows(rows: bytes, text: bytes, file: Path) -> pd.DataFrame:
    """Parse job lines by column.

    Parameters
    ----------
    rows : bytes
        The job lines alone.
    text : bytes
        The whole file, to find the line of a defect.
    file : pathlib.Path
        For messages.

    Raises
    ------
    WorkloadError
        If a line has not 18 finite numbers.
    """
    if not rows.strip():
        return pd.DataFrame({name: np.empty(0, np.int64) for name in FIELDS})
    table = _parse_fast(rows)
    return table if table is not None else _parse_slow(text, file)


def _parse_fast(rows: bytes) -> pd.DataFrame | None:
    """Parse with the C engine; None where anything looks odd."""
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
