"""Measurements from a text file or spreadsheet export as people write them.

A heading says what a column holds, and in which unit. What can be read in two ways, or in none,
is a `PredictorError`, with file, line and field.
"""

import codecs
import csv
import logging
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from predictors.errors import PredictorError
from predictors.plain import shown_plainly
from predictors.remarks import FAR_APART

COUNTS = (
    *("nprocs", "procs", "processors", "processes", "ranks", "cores", "threads", "nodes"),
    *("cpus", "np", "n", "p", "workers", "tasks", "kerne", "prozessoren", "prozesse", "knoten"),
)
TIMES = (
    *("runtime", "time", "seconds", "sec", "walltime", "wall_time", "elapsed", "elapsed_time"),
    *("run_time", "execution_time", "exec_time", "wall_clock_time", "wallclock_time", "wallclock"),
    *("total_time", "duration", "t", "laufzeit", "zeit", "dauer"),
)
REPEATS = ("run", "rep", "repeat", "repetition", "trial", "sample", "iteration", "lauf")
"""What numbers runs, beside them in a column or in headings."""
MEANS = ("mean", "average", "avg", "median")
SPELLINGS: dict[str, tuple[str, ...]] = {
    "nprocs": COUNTS,
    "runtime": TIMES,
    "computation": ("computation", "comp"),
    "communication": ("communication", "comm"),
}
"""Column of the contract and how it may be spelt, in any case, a unit behind it."""
TIMED = ("runtime", "computation", "communication", "computation_cp", "communication_cp")
_FILLERS = {"number", "no", "num", "nr", "of", "mpi", "omp", "openmp", "used", "count", "total"}
UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds", "sek", "sekunden"), 1.0),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "µs", "μs", "usec", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nanosecond", "nanoseconds"), 1e-9),
    **dict.fromkeys(("min", "mins", "minute", "minutes", "minuten"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours", "stunden"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}
CLOCKS = ("hh:mm:ss", "h:mm:ss", "h:m:s", "mm:ss", "m:ss", "m:s", "hh:mm", "h:mm")
"""Units that are a form of clock time."""
MISSING = ("", "nan", "na", "n/a", "null", "none", "-")

_IN_BRACKETS = re.compile(r"\s*[\(\[<]\s*([^()\[\]<>]*?)\s*[\)\]>]$")
_BEHIND = re.compile(r"(?:\s+in\s+|\s*/\s*|\s*,\s*|[_\s]+)([a-zµμ:]+)$")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_MIN = re.compile(r"(?<!\bin)(?<![/,])[_\s]min$")
"""Behind a heading: minutes, or the least of several runs."""
_WITH_UNIT = re.compile(r"([+-]?[\d.,'’ \u00a0]*\d(?:[eE][+-]?\d+)?)\s*([a-zA-Zµμ]+)\.?")
_PARTS = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?:in)?)?(?:(\d+(?:[.,]\d+)?)s)?")
"""A time in several units, such as ``time`` prints: 33m10.5s, without its blanks."""
_CLOCK = re.compile(r"(?:(\d+)(?:-|d\s*|\s+))?(\d+):(\d{1,2})(?::(\d{1,2}))?([.,]\d+)?")


class Heading(NamedTuple):
    """A heading taken apart.

    Attributes
    ----------
    name : str
        Column of the contract, else the heading in small letters.
    unit : str
        As written behind it; empty without one.
    is_mean : bool
        Whether it is of several runs.
    """

    name: str
    unit: str = ""
    is_mean: bool = False


def heading(cell: str) -> Heading:
    """Take a heading apart.

    Examples
    --------
    >>> heading("Number of cores").name, heading("Time [ms]")[:2], heading("time_ms")[:2]
    ('nprocs', ('runtime', 'ms'), ('runtime', 'ms'))
    """
    text, unit = cell.strip().strip("*").lower().replace("#", " ").strip(), ""
    bracketed = _IN_BRACKETS.search(text)
    if bracketed and bracketed.start():
        text, unit = text[: bracketed.start()], bracketed[1].strip(". ")
    elif (behind := _BEHIND.search(text)) and (behind[1] in UNITS or behind[1] in CLOCKS):
        text, unit = text[: behind.start()], behind[1]
    plain = re.sub(r"[\s\-.:]+", "_", text).strip("_")
    if plain in ("seconds", "sec") and not unit:
        unit = "s"
    words = plain.split("_")
    is_mean = len(words) > 1 and words[0] in MEANS
    bare = "_".join(word for word in words if word not in _FILLERS)
    for name in (plain, "_".join(words[1:]) if is_mean else "", bare):
        for canonical, spellings in SPELLINGS.items():
            if name in spellings or (canonical == "nprocs" and f"{name}s" in spellings):
                return Heading(canonical, "" if canonical == "nprocs" else unit, is_mean)
    return Heading(plain, unit)


def is_repeat(cell: str) -> bool:
    """Say whether a heading numbers runs: run1, "Time 2 (s)", rep_3, t4."""
    text = _IN_BRACKETS.sub("", cell.strip().lower())
    found = re.fullmatch(r"([a-z_ \-#.]*?)[\s_\-#.]*\d+(?:[\s_]*([a-zµ]+))?", text)
    if not found or (found[2] and found[2] not in UNITS):
        return False
    words = re.split(r"[\s_\-#.]+", found[1].strip()) if found[1].strip() else []
    return bool(words) and all(word in (*REPEATS, *TIMES) for word in words)


def repeat_unit(cell: str) -> str:
    """Return the unit behind a heading that numbers runs."""
    return heading(re.sub(r"[\s_\-#.]*\d+", "", cell)).unit


def decimal_mark(cells: Iterable[str]) -> str:
    """Return the mark that numbers prove to be the decimal one, empty if none does."""
    proofs: dict[str, str] = {}
    for cell in cells:
        found = _proof(re.sub(r"[^\d.,]", "", cell))
        if found:
            proofs.setdefault(found, cell)
    if len(proofs) > 1:
        raise PredictorError(
            f"{proofs[',']} has a decimal comma and {proofs['.']} a decimal point; "
            "write all with a point"
        )
    return next(iter(proofs), "")


def _proof(digits: str) -> str:
    marks = [mark for mark in digits if mark in ",."]
    if not marks:
        return ""
    last, other = marks[-1], ",."[",.".index(marks[-1]) - 1]
    if other in marks:
        return last
    if len(marks) > 1:
        return other
    whole, _, fraction = digits.partition(last)
    return "" if len(fraction) == 3 and 0 < len(whole) <= 3 and whole[0] != "0" else last


def count(cell: str, mark: str) -> float:
    """Return a processor count; marks in front of three digits are of thousands."""
    text = re.sub(r"[ '’\u00a0]", "", cell)
    thousands = "," if mark != "," else "."
    if re.fullmatch(rf"\d{{1,3}}(\{thousands}\d{{3}})+", text):
        text = text.replace(thousands, "")
    text = text.replace(",", ".") if mark == "," else text
    if not _NUMBER.fullmatch(text):
        raise PredictorError(f"is {cell!r}; a number is needed")
    if float(text) % 1.0 and abs(float(text)) < float("inf"):
        raise PredictorError(f"is {cell}; a whole number is needed")
    return float(text)


def number(cell: str, mark: str) -> float:
    """Return a number with a decimal point or comma, and perhaps marks of thousands."""
    text = re.sub(r"(?<=\d)[ '’\u00a0](?=\d{3})", "", cell.strip())
    if mark == ",":
        text = text.replace(".", "").replace(",", ".")
    elif "," in text:
        if not mark:
            raise PredictorError(
                f"is {cell}, which can be a decimal comma or thousands; write a decimal point"
            )
        text = text.replace(",", "")
    if not _NUMBER.fullmatch(text):
        raise PredictorError(f"is {cell!r}; a number is needed")
    return float(text)


def seconds(cell: str, unit: str, mark: str) -> float:
    """Return a time in seconds: a number in the column's unit or its own, or a clock time."""
    if parts := _parts(cell):
        if unit:
            raise PredictorError(f"is {cell!r} in a column of {unit}; write one unit")
        return sum(float(one.replace(",", ".")) * UNITS[name] for one, name in parts)
    clock = _CLOCK.fullmatch(cell.strip())
    if clock:
        return _clock_seconds(cell, unit, clock)
    if unit in CLOCKS:
        raise PredictorError(f"is {cell!r} in a column of {unit}; a clock time is needed")
    own = _WITH_UNIT.fullmatch(cell.strip())
    if own and own[2].lower() in UNITS:
        if unit and UNITS[own[2].lower()] != UNITS[unit]:
            raise PredictorError(f"is {cell!r} in a column of {unit}; write one unit")
        return number(own[1], mark) * UNITS[own[2].lower()]
    return number(cell, mark) * (UNITS[unit] if unit else 1.0)


def says_unit(cell: str) -> bool:
    """Say whether a time has a unit of its own, or is a clock time."""
    own = _WITH_UNIT.fullmatch(cell)
    return bool(_CLOCK.fullmatch(cell) or _parts(cell) or (own and own[2].lower() in UNITS))


def _parts(cell: str) -> list[tuple[str, str]]:
    """Return numbers and units of a time in two or three of them, none of others."""
    found = _PARTS.fullmatch(re.sub(r"\s", "", cell.lower()))
    numbers = zip(found.groups(), ("h", "min", "s"), strict=True) if found else ()
    parts = [(one, unit) for one, unit in numbers if one]
    return parts if len(parts) > 1 else []


def _clock_seconds(cell: str, unit: str, clock: "re.Match[str]") -> float:
    days, first, second, third, fraction = clock.groups()
    if unit and unit not in CLOCKS:
        raise PredictorError(f"is the clock time {cell} in a column of {unit}; write one of them")
    rest = float((fraction or ".0").replace(",", "."))
    if int(second) > 59 or int(third or 0) > 59:
        raise PredictorError(f"is {cell}; minutes and seconds go to 59")
    if third is not None:
        return int(days or 0) * 86400 + int(first) * 3600 + int(second) * 60 + int(third) + rest
    of_minutes = unit.startswith("m") or fraction is not None
    if not of_minutes and not unit.startswith("h"):
        raise PredictorError(f"is {cell}, which can be hours or minutes; write hh:mm:ss")
    return (int(first) * 60 + int(second) + rest) * (1.0 if of_minutes else 60.0)


def named_by_hand(text: str) -> tuple[str, str]:
    """Return a heading in small letters, and the name and unit, from ``name=heading``."""
    name, _, title = (part.strip() for part in text.partition("="))
    if name not in SPELLINGS or not title:
        raise PredictorError(
            f"--columns {text}: NAME=HEADING is needed, with a name of {', '.join(SPELLINGS)}"
        )
    unit = "" if _MIN.search(title.lower()) else heading(title).unit
    return title.lower(), f"{name} [{unit}]" if unit else name


def refuse_unclear(path: Path, titles: list[str], place: int) -> None:
    """Refuse a column of times of which unit or runs could be two things."""
    title = titles[place]
    if _MIN.search(title.lower()):
        raise PredictorError(
            f"{path}: column {title} can be minutes or the least of several runs; write minutes "
            "as 'time [min]', or say which column is the runtime by --columns runtime=HEADING"
        )
    others = [one for one in titles if one != title and is_repeat(one)]
    if others:
        raise PredictorError(
            f"{path}: columns {title} and {others[0]} can be runs side by side or different "
            "times; name runs run1, run2, or say which is the runtime by --columns runtime=HEADING"
        )


def as_number(text: str) -> float:
    """Return the number that a text is, NaN if it is none."""
    try:
        return float(text)
    except ValueError:
        return float("nan")


def equal(cell: str, value: str) -> bool:
    """Say whether a cell is a value, as a number or as text."""
    return cell == value or as_number(cell) == as_number(value)


CURVES = (
    *("problem", "application", "app", "code", "program", "benchmark", "case", "curve", "name"),
    *("dataset", "input", "machine", "system", "cluster", "compiler", "version", "label"),
)
"""Columns whose values tell several curves apart; ``size`` does where it is no input."""
UNIT_COLUMNS = ("unit", "units", "time_unit", "einheit")
logger = logging.getLogger(__name__)
Rows = list[tuple[int, list[str]]]

LONGEST_LINE = 10_000
LONGEST_MESSAGE = 300
"""Characters; a longer one is no row of a table."""


def read(
    path: Path | str,
    where: Sequence[str] = (),
    inputs: Sequence[str] = (),
    columns: Sequence[str] = (),
) -> pd.DataFrame:
    r"""Read the runs of one curve from a text file.

    Parameters
    ----------
    path : pathlib.Path or str
        A heading and a row a run, or a row a count with runs side by side (run1, run2);
        separated by commas, semicolons, tabs, bars or blanks, with decimal points or
        commas, in UTF-8, UTF-16 or Latin-1, lines of title before it. Times are in
        seconds unless heading or cells have a unit, or are clock times.
    where : sequence of str
        Conditions ``column=value`` that choose rows.
    inputs : sequence of str
        Columns, such as a size, that tell several problems of one application
        apart; with all of them in the file it may hold several problems.
    columns : sequence of str
        Which heading is which column, ``name=heading``, where that is not plain from it.

    Returns
    -------
    pandas.DataFrame
        Columns ``nprocs`` and ``runtime`` (seconds), ``computation`` and ``communication``
        where there; others under their own names, in small letters. Columns
        other than these that hold text stay text.

    Raises
    ------
    PredictorError
        With file, line and field, for anything that cannot be read for certain; if the
        file holds several curves and `where` does not choose one.

    Examples
    --------
    >>> import tempfile, predictors
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("cores,time\n1,100\n2,52\n4,28\n")
    ...     file.flush()
    ...     runs = predictors.read(file.name)
    >>> runs["runtime"].tolist()
    [100.0, 52.0, 28.0]
    """
    found = read_curves(path, where, inputs, columns)
    if len(found) > 1:
        name = next(iter(found)).partition("=")[0]
        more = "; ..." if len(found) > 5 else ""
        listed = "; ".join(text.partition("=")[2] for text in list(found)[:5])
        raise PredictorError(
            f"{path}: {len(found)} curves in column {name}; choose one with "
            f"where=['{name}=VALUE'], where VALUE is one of: {listed}{more}"
        )
    return next(iter(found.values()))


def read_curves(
    path: Path | str,
    where: Sequence[str] = (),
    inputs: Sequence[str] = (),
    columns: Sequence[str] = (),
) -> dict[str, pd.DataFrame]:
    """Read all curves of a file, by ``column=value`` of what tells them apart; see `read`."""
    path = Path(path)
    frame, units = _table(path, columns)
    for condition in where:
        frame = _chosen(path, frame, condition)
    empty = frame["runtime"].str.lower().isin(MISSING)
    if empty.any() and not empty.all():
        lines, frame = ", ".join(map(str, frame.index[empty])), frame[~empty]
        logger.warning(shown_plainly(f"{path}: lines without a runtime are left out: {lines}"))
    _refuse_unsaid(path, frame, units)
    frame = _in_numbers(path, frame, units)
    told_apart = {*inputs} <= {*frame} and any(frame[name].nunique() > 1 for name in inputs)
    column = _curve_column(frame, inputs, told_apart)
    if column is None:
        if not told_apart:
            _refuse_groups(path, frame)
        return {"": frame.reset_index(drop=True)}
    if column in ("size", "problem_size") and not frame.duplicated(column).any():
        raise PredictorError(
            f"{path}: every run has a {column} of its own, so that none are one curve; choose "
            f"--method regression --inputs {column}, which learns from it, or remove the column"
        )
    curves = {}
    for value, part in frame.groupby(column, sort=False):
        _refuse_groups(path, part)
        shown = f"{value:g}" if isinstance(value, float) else value
        curves[f"{column}={shown!s}"] = part.reset_index(drop=True)
    return curves


def _refuse_groups(path: Path, frame: pd.DataFrame) -> None:
    """Refuse runs of which it is not clear whether they repeat or are of several inputs.

    They fall into groups far apart on every count that was measured more than once, and neither
    a column of what was available nor one that numbers the runs, nor their place side by side
    says why.
    """
    counts, seconds = (frame[name].to_numpy(float) for name in ("nprocs", "runtime"))
    values, repeats = np.unique(counts, return_counts=True)
    several = [(n, np.sort(seconds[counts == n])) for n in values[repeats > 1].tolist()]
    apart = all((times[1:] / times[:-1]).max() > FAR_APART for _, times in several)
    numbered = any(frame[one].duplicated().any() for one in REPEATS if one in frame)
    explained = numbered or any(str(one).startswith("available") for one in frame)
    if len(several) > 1 and apart and not explained and frame.index.is_unique:
        listed = ", ".join(f"{n:g} took {t[0]:g} to {t[-1]:g} s" for n, t in several[:3])
        others = frame.columns.difference(["nprocs", *TIMED])
        cells = {name: frame.groupby([name, "nprocs"])["runtime"] for name in others}
        alike = [name for name, by in cells.items() if (by.max() <= FAR_APART * by.min()).all()]
        telling = next((one for one in alike if 1 < frame[one].nunique() < len(frame)), None)
        said = "name the input of each run in a column input, or number the repetitions"
        if telling is not None:
            chosen = f"{telling}={frame[telling].iloc[0]}"
            said = f"column {telling} tells them apart, and --where {chosen} takes one; else {said}"
        raise PredictorError(
            f"{path}: runs on {listed}, which can be two inputs or repetitions; {said} in a "
            "column run"
        )


def _curve_column(frame: pd.DataFrame, inputs: Sequence[str], told_apart: bool) -> str | None:
    """Return the column that tells several curves apart, None if there is one curve."""
    if told_apart:
        apart = [name for name in CURVES if name != "problem"]
    else:
        apart = [*CURVES, *(name for name in ("size", "problem_size") if name not in inputs)]
    kinds = {name: frame[name].nunique() for name in apart if name in frame}
    least = {name: 1 if name in (*CURVES[:2], "size", "problem_size") else 0 for name in kinds}
    varying = [name for name, n in kinds.items() if 1 < n < len(frame) + least[name]]
    return max(varying, key=kinds.__getitem__) if varying else None


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise PredictorError(f"{path}: no such file") from None
    except OSError as error:
        raise PredictorError(f"{path}: cannot be read ({error.strerror})") from None
    if data[:2] == b"PK" or data[:4] == b"\xd0\xcf\x11\xe0":
        raise PredictorError(f"{path}: this is a spreadsheet file; save it as CSV")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16")
    if b"\x00" in data[:200]:
        raise PredictorError(f"{path}: cannot be read as text; save it as CSV in UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _table(path: Path, columns: Sequence[str]) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return cells as text, a row a run, under canonical names, and units of times."""
    named = dict(named_by_hand(one) for one in columns)
    rows, header = _located(path, _text(path), named)
    by_hand = [place for place, one in enumerate(rows[header][1]) if one.lower() in named]
    titles = [named.get(one.lower(), one) for one in rows[header][1]]
    cells = [
        (line, row)
        for line, row in rows[header + 1 :]
        if not all(re.fullmatch(r":?-+:?|=+", cell) for cell in row)
        and not row[0].startswith(("#", "//"))
    ]
    if not cells:
        raise PredictorError(f"{path}: there is no row below the header")
    for line, row in cells:
        if len(row) != len(titles):
            raise PredictorError(
                f"{path}:{line}: {len(row)} fields where the header has {len(titles)}"
            )
    headings = [heading(title) for title in titles]
    times = [place for place, one in enumerate(headings) if one.name == "runtime"]
    repeats = [place for place, title in enumerate(titles) if is_repeat(title)]
    if len(repeats) < 2:
        repeats = [place for place in times if titles.count(titles[place]) > 1]
    if {*times} & {*by_hand}:
        repeats = []
    _name(path, titles, headings, repeats, by_hand)
    frame = pd.DataFrame([row for _, row in cells], dtype=object)
    frame.index = pd.Index([line for line, _ in cells], name="line")
    frame, units = _stacked(frame, headings, repeats)
    frame = _without_unit_row(frame, units)
    for name, unit in units.items():
        if unit and unit not in (*UNITS, *CLOCKS):
            raise PredictorError(
                f"the unit {unit!r} of column {name} is not known; known are s, ms, us, ns, min, "
                "h, d and hh:mm:ss"
            )
    return frame, units


def _located(path: Path, text: str, named: dict[str, str]) -> tuple[Rows, int]:
    """Return all rows, and the place of the heading: the first row that names both columns."""
    lines = text.splitlines()
    for place, line in enumerate(lines, 1):
        if len(line) > LONGEST_LINE:
            long = f"{path}:{place}: a line of {len(line):,} characters"
            raise PredictorError(f"{long}; at most {LONGEST_LINE:,} are read")
    if not any(line.strip() for line in lines):
        raise PredictorError(f"{path}: the file is empty; a header and rows are needed")
    first: Rows = []
    for delimiter in (*sorted("\t;,|", key=text.count, reverse=True), " "):
        rows = _split(lines, delimiter)
        for place, (_, row) in enumerate(rows[:30]):
            unknown = set(named) - {cell.lower() for cell in row}
            names = {heading(named.get(cell.lower(), cell)).name for cell in row}
            has_time = "runtime" in names or sum(map(is_repeat, row)) > 1
            if "nprocs" in names and has_time and unknown:
                raise PredictorError(
                    f"{path}: no column {', '.join(sorted(unknown))}, which --columns names; "
                    f"the columns are {', '.join(row)}"
                )
            if "nprocs" in names and has_time:  # without empty cells behind the last heading
                end = max(k for k, cell in enumerate(row, 1) if cell)
                return [(k, one if any(one[end:]) else one[:end]) for k, one in rows], place
            if "nprocs" in names and _is_transposed(rows, place):
                turned = zip(*(row for _, row in rows[place:]), strict=True)
                return [(rows[place][0], list(cells)) for cells in turned], 0
        first = first or rows
    header = first[0][1] if first else []
    names = {heading(named.get(cell.lower(), cell)).name for cell in header}
    wanted = "runtime" if "nprocs" in names else "nprocs"
    raise PredictorError(
        f"{path}: no column for {wanted}; accepted are {', '.join(SPELLINGS[wanted])}; "
        f"the columns are {', '.join(header)}, of which --columns {wanted}=NAME names one"
    )


def _is_transposed(rows: Rows, place: int) -> bool:
    """Say whether counts stand side by side in this row, and times below them."""
    row = rows[place][1]
    below = [cells for _, cells in rows[place + 1 :]]
    return (
        heading(row[0]).name == "nprocs"
        and len(row) > 2
        and all(re.fullmatch(r"\d+", cell) for cell in row[1:])
        and bool(below)
        and all(len(cells) == len(row) for cells in below)
        and all(heading(cells[0]).name == "runtime" or is_repeat(cells[0]) for cells in below)
    )


def _split(lines: list[str], delimiter: str) -> Rows:
    """Return line numbers and cells of all rows that hold something."""
    found: Rows = []
    if delimiter == " ":
        wide = all(len(re.split(r"\s{2,}", line.strip())) > 1 for line in lines if line.strip())
        blank = r"\s{2,}" if wide else r"\s+"
        split = [(k, re.split(blank, line.strip())) for k, line in enumerate(lines, 1)]
    else:
        reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
        split = [(reader.line_num, cells) for cells in reader]
    for line, cells in split:
        stripped = [cell.strip() for cell in cells]
        if delimiter == "|" and stripped and not stripped[0] and not stripped[-1]:
            stripped = stripped[1:-1]
        if any(stripped):
            found.append((line, stripped))
    return found


def _name(
    path: Path, titles: list[str], headings: list[Heading], repeats: list[int], by_hand: list[int]
) -> None:
    """Settle which heading is which column, in place; refuse what is not certain."""
    for place in repeats:
        headings[place] = Heading("runtime", repeat_unit(titles[place]))
    for canonical in SPELLINGS:
        own = [p for p, one in enumerate(headings) if one.name == canonical and p not in repeats]
        if canonical == "runtime" and (repeats or any(not headings[p].is_mean for p in own)):
            means = [p for p in own if headings[p].is_mean]
            for place in means:
                headings[place] = Heading(f"{MEANS[0]}_{place}")
            own = [place for place in own if place not in means]
        exact = [p for p in own if p in by_hand]
        if not exact and canonical != "runtime":
            exact = [p for p in own if titles[p].lower() == canonical]
        if exact and len(own) > 1:
            for place in set(own) - set(exact[:1]):
                headings[place] = Heading(f"{titles[place].strip().lower()} ({place + 1})")
            own = exact[:1]
        if len(own) > 1:
            named = sorted(titles[p].lower() for p in own)
            raise PredictorError(
                f"{path}: columns {' and '.join(named)} could each be {canonical}; choose one: "
                f"--columns {' or '.join(f'{canonical}={name}' for name in named)}"
            )
        if canonical == "runtime" and own and own != exact:
            refuse_unclear(path, titles, own[0])
    names = [one.name for place, one in enumerate(headings) if place not in repeats]
    doubled = [name for name in names if name and names.count(name) > 1]
    if doubled:
        raise PredictorError(f"{path}: column {doubled[0]} stands in the header twice")


def _stacked(
    frame: pd.DataFrame, headings: list[Heading], repeats: list[int]
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Name the columns; stand runs that are side by side below each other."""
    units = {one.name: one.unit for one in headings if one.name in TIMED}
    single = [place for place in range(len(headings)) if place not in repeats]
    names = {place: headings[place].name or f"column_{place + 1}" for place in single}
    if not repeats:
        return frame.rename(columns=names), units
    several = {headings[place].unit for place in repeats}
    if len(several) > 1:
        raise PredictorError(
            f"runs side by side have units {', '.join(sorted(several))}; write one"
        )
    parts = []
    for place in repeats:
        part = frame[[*single, place]].rename(columns={**names, place: "runtime"})
        parts.append(part[[cell.lower() not in MISSING for cell in part["runtime"]]])
    return pd.concat(parts).sort_index(kind="stable"), units


def _without_unit_row(frame: pd.DataFrame, units: dict[str, str]) -> pd.DataFrame:
    """Take the unit from a row of units below the heading, and drop it."""
    first = frame.iloc[0]
    unit = str(first["runtime"]).strip("[]()").lower()
    if not re.search(r"\d", f"{first['nprocs']}{unit}") and not units.get("runtime"):
        units["runtime"] = unit
        return frame.iloc[1:]
    return frame


def _chosen(path: Path, frame: pd.DataFrame, condition: str) -> pd.DataFrame:
    """Return the rows that meet a condition ``column=value``."""
    name, equals, value = condition.partition("=")
    name = name.strip().lower()
    if not equals or name not in frame.columns:
        raise PredictorError(
            f"--where {condition}: expected COLUMN=VALUE with a column of "
            f"{', '.join(frame.columns)}"
        )
    kept = frame[[equal(cell, value.strip()) for cell in frame[name]]]
    if kept.empty:
        known = "; ".join(dict.fromkeys(frame[name]))
        raise PredictorError(f"{path}: no row has {name}={value}; there are: {known}")
    return kept


def _brief(error: PredictorError) -> str:
    """Return what an error says, without the middle of what a stray quote made one cell."""
    said = str(error)
    return said if len(said) <= LONGEST_MESSAGE else f"{said[:100]} … {said[-100:]}"


def _refuse_unsaid(path: Path, frame: pd.DataFrame, units: dict[str, str]) -> None:
    """Refuse times of which only some say their unit, or of which another column does."""
    accepted = "write it in the heading, such as time [min], or in every cell, such as 1.5 min"
    for name, unit in units.items():
        cells = frame[name][~frame[name].str.lower().isin(MISSING)]
        said = cells.map(says_unit).astype(bool)
        if said.any() and not said.all() and not unit:
            line, cell = next(cells[~said].items())
            raise PredictorError(
                f"{path}:{line}: {name} is {cell!r} without a unit, where another is "
                f"{cells[said].iloc[0]!r}; {accepted}"
            )
        beside = [one for one in UNIT_COLUMNS if one in frame and not said.all()]
        others = {UNITS.get(cell.lower()) for one in beside for cell in frame[one]}
        if name == "runtime" and others - {UNITS.get(unit, 0.0)}:
            raise PredictorError(f"{path}: no unit is read from column {beside[0]}; {accepted}")


def _in_numbers(path: Path, frame: pd.DataFrame, units: dict[str, str]) -> pd.DataFrame:
    """Return counts and times as numbers, other columns too where all of their cells are."""
    frame = frame.copy()
    try:
        mark = decimal_mark([*frame["nprocs"], *frame["runtime"]])
    except PredictorError as error:
        raise PredictorError(f"{path}: {_brief(error)}") from None
    for name in frame.columns:
        if name in ("nprocs", *TIMED):
            values = [
                _value(f"{path}:{line}: {name}", name, cell, units.get(name, ""), mark)
                for line, cell in frame[name].items()
            ]
            frame[name] = pd.Series(values, index=frame.index, dtype=float)
            continue
        with suppress(PredictorError):  # then they stay text
            cells = frame[name].tolist()
            values = [np.nan if cell.lower() in MISSING else number(cell, mark) for cell in cells]
            frame[name] = pd.Series(values, index=frame.index, dtype=float)
    return frame


def _value(place: str, name: str, cell: str, unit: str, mark: str) -> float:
    if name not in ("nprocs", "runtime") and cell.lower() in MISSING:
        return float("nan")
    try:
        value = count(cell, mark) if name == "nprocs" else seconds(cell, unit, mark)
    except PredictorError as error:
        raise PredictorError(f"{place} {_brief(error)}") from None
    least = 1.0 if name == "nprocs" else (0.0 if name != "runtime" else np.finfo(float).tiny)
    if not least <= value < np.inf:
        wanted = f"at least {least:g}" if least in (0.0, 1.0) else "above 0"
        raise PredictorError(f"{place} is {value:g}; it must be finite and {wanted}")
    return value
