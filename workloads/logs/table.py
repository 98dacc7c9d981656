"""Any delimited table of jobs: what PBS, LSF, Cobalt, Flux and spreadsheets export, as a log."""

import datetime
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

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
from workloads.logs.table_columns import LENGTHS, NAMES, TIMES, Layout, choose, rows_of

SECONDS_AT_MOST = 1e11
"""Seconds since 1970, in the year 5138: numbers beyond it are of another unit."""
_ENDED_WELL = ("completed", "complete", "done", "success", "succeeded", "finished", "cd", "c", "0")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def read_table(
    path: str | os.PathLike[str], layout: Layout | None = None, limits: Limits = USUAL
) -> SwfLog:
    """Read a delimited table, plain or gzip-compressed, as a log of the 18 fields.

    Needed are submits, processors, and of start, end, wait and runtime enough to
    tell when a job ran. Users, applications and queues become numbers from 1, in
    order of their names. Nothing is cleaned here; a start before the submit is
    marked, for cleaning to count.

    Raises
    ------
    WorkloadError
        If the file cannot be read, columns are missing or not certain (all are
        named), or a value is not what its column holds (with its line).
    """
    layout, file = layout or Layout(), Path(path).expanduser()
    checksum, text = read_lines(file, "a table of jobs", limits)
    rows = rows_of(text.decode("utf-8", "replace"), file, layout)
    chosen, cells = choose(rows, file, layout)
    told = _Cells(cells, chosen, file, layout)
    jobs, negative = _fields(told)
    read_as = ", ".join(f"{role}: {name}" for role, name in chosen.items())
    comments = [Comment(0, f"; Note: read as {read_as}")]
    if (jobs["submit_time"] > SECONDS_AT_MOST / 1000).any():
        comments.append(Comment(0, "; UnixStartTime: 0"))
    return SwfLog(
        jobs,
        tuple(comments),
        file.name,
        checksum,
        found={"negative_wait": negative},
        remarks=tuple(_contradictions(told)),
        words={
            field: words(jobs[field], cells[chosen[role]])
            for role, field in NAMES.items()
            if role in chosen
        },
    )


@dataclass(frozen=True)
class _Cells:
    """The cells of a table by what they say."""

    table: pd.DataFrame
    chosen: Mapping[str, str]
    file: Path
    layout: Layout

    def texts(self, role: str) -> pd.Series:
        """Return the cells of a column, empty ones where the table has no such column."""
        if role in self.chosen:
            return self.table[self.chosen[role]]
        return pd.Series("", self.table.index, dtype="str")

    def parsed(self, role: str, parse: Callable[[str], float]) -> np.ndarray:
        """Return the numbers of a column, each distinct text parsed once; -1 where unknown."""
        return parsed(
            self.texts(role),
            lambda text: -1.0 if text in UNKNOWN else parse(text),
            self.file,
            lambda text, why: f" ({role}): {text}: {why}",
        )

    def instants(self, role: str) -> np.ndarray:
        zone, pattern = zone_of(self.layout.timezone), self.layout.time_format
        unit, hint = self.layout.unit(role), self._header_hint()

        def parse(text: str) -> float:
            if pattern is not None:
                return _with_format(text, pattern, zone)
            if _NUMBER.fullmatch(text):
                seconds = float(text) * unit
                if seconds > SECONDS_AT_MOST:
                    raise ValueError(
                        f"beyond any date; workload.units.{role}=ms reads milliseconds"
                    )
                return seconds
            try:
                return instant(text, zone)
            except ValueError:
                raise ValueError(
                    "neither a number nor a time such as 2024-03-01T12:00:00; "
                    f"workload.time_format says how times are written{hint}"
                ) from None

        return self.parsed(role, parse)

    def lengths(self, role: str) -> np.ndarray:
        unit, hint = self.layout.unit(role), self._header_hint()

        def parse(text: str) -> float:
            if _NUMBER.fullmatch(text):
                return float(text) * unit
            try:
                return duration(text)
            except ValueError:
                raise ValueError(
                    f"neither a number nor a duration such as 1-12:00:00{hint}"
                ) from None

        return self.parsed(role, parse)

    def counts(self, role: str) -> np.ndarray:
        hint = self._header_hint()

        def parse(text: str) -> float:
            if not _NUMBER.fullmatch(text):
                raise ValueError(f"not a number of processors{hint}")
            return float(text)

        return self.parsed(role, parse)

    def _header_hint(self) -> str:
        return (
            f"; workload.header={self.layout.header + 1} if the header has "
            f"{self.layout.header + 1} lines"
        )

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
class TableWorkload(FileWorkload, Layout):
    """Jobs from a delimited table.

    Parameters
    ----------
    path
        As for `FileWorkload`; others as for `LogWorkload`.
    columns, units, time_format, timezone, delimiter, header
        As for `Layout`.
    """

    wanted = "a table of jobs, such as workload.path=jobs.csv"

    def __post_init__(self) -> None:
        super().__post_init__()
        Layout.__post_init__(self)

    def read(self) -> SwfLog:
        """Read the file."""
        return read_table(self.file, self, self._limits)
