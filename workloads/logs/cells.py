"""What cells of accounting say: instants, durations, names; and the fields of a log from them."""

import datetime
import re
import zoneinfo
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from workloads.base import FloatArray
from workloads.errors import WorkloadError
from workloads.limits import LARGEST
from workloads.logs.swf_text import FIELDS

UNKNOWN = ("", "Unknown", "None", "N/A", "INVALID", "-", "NA", "NaN", "nan", "null", "NULL")
"""Texts that say nothing."""
_DURATION = re.compile(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+)(?:\.\d+)?")


def zone_of(timezone: str) -> datetime.tzinfo:
    """Return a time zone by its name.

    Raises
    ------
    WorkloadError
        Naming ``workload.timezone``.

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
    """Return seconds since 1970.

    Parameters
    ----------
    text : str
        ISO 8601, or whole seconds since 1970.
    zone : datetime.tzinfo
        Of times without an offset.

    Raises
    ------
    ValueError
        If the text is neither.
    """
    if text.isdecimal():
        return float(text)
    when = datetime.datetime.fromisoformat(text)
    return (when if when.tzinfo else when.replace(tzinfo=zone)).timestamp()


def duration(text: str) -> float:
    """Return the seconds of ``[[days-]hours:]minutes:seconds``.

    Raises
    ------
    ValueError
        If the text is no duration.

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


def fields_of(known: Mapping[str, np.ndarray], number: int) -> pd.DataFrame:
    """Return the 18 fields of so many jobs, whole numbers as integers, -1 for what is unknown."""
    absent = np.full(number, -1.0)
    columns = {name: known.get(name, absent) for name in FIELDS}
    whole = {name: np.int64 for name, values in columns.items() if (values % 1 == 0).all()}
    return pd.DataFrame(columns).astype(whole)
