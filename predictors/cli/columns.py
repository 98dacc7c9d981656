"""What a column of measurements holds: its name and unit by the heading, and its numbers.

What can be read in two ways, or in none, is a `PredictorError`, to which whoever reads the file
adds where that stands.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from predictors.errors import PredictorError

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
