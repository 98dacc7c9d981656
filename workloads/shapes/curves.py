"""Measured scaling curves: read from CSV files, medians of repeats by processor count."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from workloads.errors import WorkloadError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_NEEDED = ("application", "problem", "nprocs", "runtime_s")
_PARTS = ("comp_s", "comm_s")


@dataclass(frozen=True)
class MeasuredCurve:
    """One measured curve: a runtime for each measured count.

    Attributes
    ----------
    application, problem, file : str
        Names as in the file, and the file's name without folder.
    nprocs : numpy.ndarray of int, shape (k,)
        Measured counts, rising, at least two.
    runtime : numpy.ndarray of float, shape (k,), seconds
        Medians of repeats.
    communication : numpy.ndarray of float, shape (k,)
        Share of the runtime spent communicating; NaN where not recorded.
    """

    application: str
    problem: str
    file: str
    nprocs: IntArray
    runtime: FloatArray
    communication: FloatArray


def find_files(path: str) -> list[Path]:
    """Return the CSV files that `path` (a file, a folder or a glob pattern) names, sorted.

    Raises
    ------
    WorkloadError
        If there is none.
    """
    whole = Path(path).expanduser()
    if whole.is_file():
        return [whole]
    pattern = whole / "*.csv" if whole.is_dir() else whole
    start = Path(pattern.anchor)
    files = sorted(file for file in start.glob(str(pattern.relative_to(start))) if file.is_file())
    if not files:
        raise WorkloadError(
            f"moldability.path={path}: no such file, and no CSV file in a folder or by a "
            f"pattern of that name"
        )
    return files


def read_curves(path: str) -> list[MeasuredCurve]:
    """Read all curves with at least two counts, in order of file and first row.

    Parameters
    ----------
    path : str
        A CSV file, a folder of them, or a glob pattern, with columns
        application, problem, nprocs, runtime_s, and optionally comp_s and
        comm_s. One curve is one problem of one application in one file.

    Raises
    ------
    WorkloadError
        If there is no file, a column or value is missing or not positive (the
        message names file, line and column), or no curve has two counts.
    """
    curves = [curve for file in find_files(path) for curve in _read_file(file)]
    if not curves:
        raise WorkloadError(f"moldability.path={path}: no curve has two processor counts or more")
    return curves


def _read_file(file: Path) -> list[MeasuredCurve]:
    table = _checked_table(file)
    table["share"] = _communication_share(table)
    groups = table.groupby(["application", "problem"], sort=False, dropna=False)
    curves = []
    for (application, problem), rows in groups:
        medians = rows.groupby("nprocs")[["runtime_s", "share"]].median()
        if len(medians) < 2:
            continue
        curves.append(
            MeasuredCurve(
                application=str(application),
                problem=str(problem),
                file=file.name,
                nprocs=medians.index.to_numpy(np.int64),
                runtime=medians["runtime_s"].to_numpy(float),
                communication=medians["share"].to_numpy(float),
            )
        )
    return curves


def _checked_table(file: Path) -> pd.DataFrame:
    try:
        table = pd.read_csv(file, skipinitialspace=True)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise WorkloadError(f"{file}: not a CSV file that can be read: {error}") from error
    missing = [name for name in _NEEDED if name not in table.columns]
    if missing:
        raise WorkloadError(f"{file}: lacks the column {', '.join(missing)}")
    for name in ("nprocs", "runtime_s"):
        numbers = pd.to_numeric(table[name], errors="coerce")
        right = np.isfinite(numbers) & (numbers > 0)
        if name == "nprocs":
            right &= numbers == np.floor(numbers)
        if not right.all():
            row = int(np.flatnonzero(~right)[0])
            kind = "a whole number of at least 1" if name == "nprocs" else "a number above 0"
            raise WorkloadError(
                f"{file}, line {row + 2}: {name} must be {kind}, got {table[name].iloc[row]}"
            )
        table[name] = numbers
    return table


def _communication_share(table: pd.DataFrame) -> FloatArray:
    """Return comm_s / runtime_s, from comp_s where comm_s is missing, clipped to [0, 1]."""
    total = table["runtime_s"].to_numpy(float)
    parts = {name: np.full(len(table), np.nan) for name in _PARTS}
    for name in _PARTS:
        if name in table.columns:
            parts[name] = np.asarray(pd.to_numeric(table[name], errors="coerce"), float)
    spent = np.where(np.isnan(parts["comm_s"]), total - parts["comp_s"], parts["comm_s"])
    return np.asarray(np.clip(spent / total, 0.0, 1.0), float)
