"""Measurements from a CSV as people write them."""

import csv
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from predictors.errors import PredictorError

SPELLINGS: dict[str, tuple[str, ...]] = {
    "nprocs": (
        *("nprocs", "procs", "processors", "processes", "ranks", "cores", "threads", "nodes"),
        *("cpus", "n", "p"),
    ),
    "runtime": (
        *("runtime", "runtime_s", "runtime_seconds", "time", "time_s", "seconds", "sec"),
        *("walltime", "wall_time", "elapsed", "elapsed_s"),
    ),
    "computation": ("computation", "comp_s", "computation_s"),
    "communication": ("communication", "comm_s", "communication_s"),
}
"""Column of the contract and how it may be spelt, in any case, blanks as underscores."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")


def read(path: Path, where: Sequence[str] = (), inputs: Sequence[str] = ()) -> pd.DataFrame:
    """Read a CSV of runs, a row a run.

    Parameters
    ----------
    path : pathlib.Path
        Separated by commas, semicolons or tabs; with semicolons or tabs decimal
        commas are read too, unless they could be thousands.
    where : sequence of str
        Conditions ``column=value`` that choose rows.
    inputs : sequence of str
        Columns, such as a size, that tell several problems of one application
        apart; with all of them in the file it may hold several problems.

    Returns
    -------
    pandas.DataFrame
        Columns ``nprocs`` and ``runtime``, ``computation`` and ``communication``
        where there; others under their own names, in small letters. Columns
        other than ``nprocs`` and ``runtime`` that hold text stay text.

    Raises
    ------
    PredictorError
        With file, line and field, for anything that cannot be read; if the file
        holds several curves and `where` does not choose one.
    """
    lines = _lines(path)
    header, rows = _split(path, lines)
    names = _names(path, header)
    frame = pd.DataFrame([cells for _, cells in rows], columns=names, dtype=object)
    frame.index = pd.Index([line for line, _ in rows], name="line")
    for condition in where:
        frame = _chosen(path, frame, condition)
    told_apart = bool(inputs) and all(name in frame.columns for name in inputs)
    _check_single(path, frame, ("application",) if told_apart else ("problem", "application"))
    comma = _decimal_comma(path, frame)
    for name in frame.columns:
        required = name in ("nprocs", "runtime")
        frame[name] = _parsed(path, frame[name], comma, required)
    for name, least in (("nprocs", 1.0), ("runtime", np.finfo(float).tiny)):
        _check_least(path, frame[name], least)
    return frame.reset_index(drop=True)


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise PredictorError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise PredictorError(f"{path}: cannot be read as text ({error})") from None
    lines = text.splitlines()
    if not any(line.strip() for line in lines):
        raise PredictorError(f"{path}: the file is empty; a header and rows are needed")
    return lines


def _split(path: Path, lines: list[str]) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return the header's cells and each row's line number and cells."""
    first = next(line for line in lines if line.strip())
    delimiter = max("\t;,", key=first.count)
    found: list[tuple[int, list[str]]] = []
    reader = csv.reader(lines, delimiter=delimiter)
    for cells in reader:
        cells = [cell.strip() for cell in cells]
        if not any(cells) or cells[0].startswith("#"):
            continue
        if found and len(cells) != len(found[0][1]):
            raise PredictorError(
                f"{path}:{reader.line_num}: {len(cells)} fields where the header has "
                f"{len(found[0][1])}"
            )
        found.append((reader.line_num, cells))
    if len(found) < 2:
        raise PredictorError(f"{path}: there is no row below the header")
    return found[0][1], found[1:]


def _names(path: Path, header: list[str]) -> list[str]:
    """Return canonical column names; refuse a header without the two that are needed."""
    plain = [re.sub(r"[\s\-]+", "_", cell.strip().lower()) for cell in header]
    plain = [re.sub(r"[_\s]*[\(\[](s|sec|seconds)[\)\]]$", "", name) for name in plain]
    doubled = [name for name in plain if plain.count(name) > 1]
    if doubled:
        raise PredictorError(f"{path}: column {doubled[0]} stands in the header twice")
    names = list(plain)
    for canonical, spellings in SPELLINGS.items():
        present = [name for name in spellings if name in plain]
        if canonical in present:
            present = [canonical]
        if len(present) > 1:
            raise PredictorError(
                f"{path}: columns {' and '.join(present)} could all be {canonical}; "
                f"name one of them {canonical}"
            )
        if present:
            names[plain.index(present[0])] = canonical
        elif canonical in ("nprocs", "runtime"):
            raise PredictorError(
                f"{path}: no column for {canonical}; accepted are {', '.join(spellings)}; "
                f"the columns are {', '.join(header)}"
            )
    return names


def _chosen(path: Path, frame: pd.DataFrame, condition: str) -> pd.DataFrame:
    """Return the rows that meet a condition ``column=value``."""
    name, equals, value = condition.partition("=")
    name = name.strip().lower()
    if not equals or name not in frame.columns:
        raise PredictorError(
            f"--where {condition}: expected COLUMN=VALUE with a column of "
            f"{', '.join(frame.columns)}"
        )
    kept = frame[[_equal(cell, value.strip()) for cell in frame[name]]]
    if kept.empty:
        known = "; ".join(dict.fromkeys(frame[name]))
        raise PredictorError(f"{path}: no row has {name}={value}; there are: {known}")
    return kept


def _equal(cell: str, value: str) -> bool:
    if _NUMBER.fullmatch(cell) and _NUMBER.fullmatch(value):
        return float(cell) == float(value)
    return cell == value


def _check_single(path: Path, frame: pd.DataFrame, columns: Sequence[str]) -> None:
    """Refuse rows of several problems or applications, which are several curves."""
    for name in columns:
        if name in frame.columns and frame[name].nunique() > 1:
            known = list(dict.fromkeys(frame[name]))
            listed = "; ".join(known[:5]) + ("; ..." if len(known) > 5 else "")
            raise PredictorError(
                f"{path}: {len(known)} curves in column {name}; choose one with "
                f"--where {name}=VALUE, where VALUE is one of: {listed}"
            )


def _decimal_comma(path: Path, frame: pd.DataFrame) -> bool:
    """Say whether numbers have decimal commas; refuse where that is not certain."""
    cells = [cell for name in ("nprocs", "runtime") for cell in frame[name]]
    commas = [cell for cell in cells if "," in cell]
    if not commas:
        return False
    if all(_COMMA_NUMBER.fullmatch(cell) for cell in commas) and not any("." in c for c in cells):
        if any(not _THOUSANDS.fullmatch(cell) for cell in commas):
            return True
        raise PredictorError(
            f"{path}: {commas[0]} can be a decimal comma or thousands; write a decimal point"
        )
    return False


def _parsed(path: Path, column: pd.Series, comma: bool, required: bool) -> pd.Series:
    """Return a column as numbers; text stays unless numbers are required."""
    cells = [cell.replace(",", ".") if comma else cell for cell in column]
    missing = [cell.lower() in ("", "nan", "na", "null", "-") for cell in cells]
    bad = [
        place
        for place, (cell, gone) in enumerate(zip(cells, missing, strict=True))
        if not _NUMBER.fullmatch(cell) and (required or not gone)
    ]
    if not bad:
        numbers = [np.nan if gone else float(c) for c, gone in zip(cells, missing, strict=True)]
        return pd.Series(numbers, index=column.index, dtype=float)
    if not required:
        return column
    place = bad[0]
    raise PredictorError(
        f"{path}:{column.index[place]}: {column.name} is {column.iloc[place]!r}; a number is needed"
    )


def _check_least(path: Path, column: pd.Series, least: float) -> None:
    """Refuse a number below the least that makes sense, or without bound; name its line."""
    bad = ~((column >= least) & (column < np.inf))
    if bad.any():
        wanted = "at least 1" if least == 1.0 else "above 0"
        line = column.index[bad][0]
        raise PredictorError(
            f"{path}:{line}: {column.name} is {column[line]:g}; it must be finite and {wanted}"
        )
