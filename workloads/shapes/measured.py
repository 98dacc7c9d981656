"""Shapes that are measured curves, so that predictors meet what obeys no model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from workloads.base import FloatArray, IntArray
from workloads.errors import WorkloadError
from workloads.shapes.family import Shapes, assemble, check_draw, draw_uniforms, parse_counts

_NEEDED = ("application", "problem", "nprocs", "runtime_s")


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
    """Return the CSV files that `path` (a file, a folder or a glob pattern) names, sorted."""
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
    parts = table.reindex(columns=["comp_s", "comm_s"]).apply(pd.to_numeric, errors="coerce")
    spent = parts["comm_s"].fillna(table["runtime_s"] - parts["comp_s"])
    table["share"] = (spent / table["runtime_s"]).clip(0.0, 1.0)
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


_KEY_BASE = 1 << 40
"""Above every processor count: keys of (application, count) sort by application first."""


@dataclass(frozen=True)
class PiecewiseCurve:
    """Measured points joined by straight lines in log-log, one curve an application.

    All curves lie in one flat array. A curve's points are (1, 1), unless n = 1
    was measured, then its measured counts; the line after the last is flat.

    Attributes
    ----------
    keys : numpy.ndarray of int, shape (points,)
        Application times a large constant plus count, rising.
    count, g, slope : numpy.ndarray of float, shape (points,)
        At each point its count, its time relative to T(1), and d ln g / d ln n
        up to the next point.
    share, share_slope : numpy.ndarray of float, shape (points,)
        Share of communication and its change with ln n up to the next point.
    last : numpy.ndarray of int, shape (applications,)
        Largest measured count.
    """

    keys: IntArray
    count: FloatArray
    g: FloatArray
    slope: FloatArray
    share: FloatArray
    share_slope: FloatArray
    last: IntArray
    fixed_end: bool = True

    def _points(self, application: IntArray, n: FloatArray) -> IntArray:
        wanted = application * _KEY_BASE + np.floor(n).astype(np.int64)
        return np.asarray(np.searchsorted(self.keys, wanted, side="right") - 1, np.int64)

    def relative_time(self, application: IntArray, n: ArrayLike) -> FloatArray:
        """Return T(n)/T(1), elementwise."""
        n = np.asarray(n, float)
        point = self._points(application, n)
        return np.asarray(self.g[point] * (n / self.count[point]) ** self.slope[point], float)

    def largest_useful(self, application: IntArray, processors: int) -> IntArray:
        """Return the largest measured count, at most `processors`."""
        return np.minimum(self.last[application], processors)

    def communication(self, application: IntArray, n: ArrayLike) -> FloatArray:
        """Return the recorded share, linear in ln n between counts; NaN where not recorded."""
        n = np.asarray(n, float)
        point = self._points(application, n)
        steps = np.log(n / self.count[point])
        return np.asarray(self.share[point] + self.share_slope[point] * steps, float)


def join_curves(curves: Sequence[MeasuredCurve]) -> PiecewiseCurve:
    """Return the piecewise curve whose application i is ``curves[i]``."""
    parts = [_points_of(curve) for curve in curves]
    lengths = [len(part[0]) for part in parts]
    application = np.repeat(np.arange(len(parts), dtype=np.int64), lengths)
    count, g, slope, share, share_slope = map(np.concatenate, zip(*parts, strict=True))
    keys = application * _KEY_BASE + count.astype(np.int64)
    last = np.array([curve.nprocs[-1] for curve in curves], np.int64)
    return PiecewiseCurve(keys, count, g, slope, share, share_slope, last)


def _points_of(curve: MeasuredCurve) -> tuple[FloatArray, ...]:
    """Return counts, g, slopes, shares and their slopes of one curve, from n = 1 on."""
    count, work = curve.nprocs.astype(float), curve.runtime * curve.nprocs
    g, share = curve.runtime / work[0], curve.communication
    if count[0] > 1:
        count, g = np.append(1.0, count), np.append(1.0, g)
        share = np.append(share[0], share)
    distance = np.diff(np.log(count))
    slope = np.append(np.diff(np.log(g)) / distance, 0.0)
    share_slope = np.append(np.diff(share) / distance, 0.0)
    return count, g, slope, share, share_slope


@dataclass(eq=False)
class Measured:
    r"""Shapes from files of measurements; applications are drawn among the curves.

    Repeats are reduced to their median and joined by straight lines in
    log-log. Below the smallest measured count n0 the work is constant,
    T(n) = T(n0) n0/n, an assumption; beyond the largest the curve is flat and
    that count is the maximum. Every curve is drawn once before one comes again.

    Parameters
    ----------
    path : str
        A CSV file, a folder of them, or a glob pattern; columns application,
        problem, nprocs, runtime_s, and where known comp_s and comm_s.
    first_count_max : int or None
        Use only curves whose smallest measured count is at most this.
    counts : str or sequence of str
        Feasible counts, see `Downey`.

    Raises
    ------
    WorkloadError
        If the files cannot be used; the message names file and line.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> rows = ["application,problem,nprocs,runtime_s", "CG,B,2,60", "CG,B,8,20", "CG,B,8,24"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "cg.csv")
    ...     _ = file.write_text("\n".join(rows))
    ...     shapes = Measured(path=str(file)).draw(np.random.default_rng(1), 1, processors=64)
    >>> shapes.g(np.zeros(4, int), np.array([1, 2, 8, 64])).round(6).tolist()
    [1.0, 0.5, 0.183333, 0.183333]
    >>> shapes.largest_useful(0), bool(shapes.serial_assumed[0])
    (8, True)
    """

    path: str | None = None
    first_count_max: int | None = None
    counts: str | Sequence[str] = "any"

    def __post_init__(self) -> None:
        least = self.first_count_max
        if not self.path:
            raise WorkloadError(
                "moldability=measured needs moldability.path: a CSV file of measurements, "
                "a folder of them, or a glob pattern"
            )
        if least is not None and least < 1:
            raise WorkloadError(
                f"moldability.first_count_max must be null or at least 1, got {least}"
            )
        parse_counts(self.counts)
        curves = read_curves(self.path)
        self.curves = [one for one in curves if least is None or one.nprocs[0] <= least]
        if not self.curves:
            raise WorkloadError(
                f"moldability.first_count_max={least} leaves no curve of {self.path}"
            )

    def draw(self, rng: np.random.Generator, applications: int, processors: int) -> Shapes:
        """Draw the curve of each application, without repeats until all have been drawn."""
        check_draw(applications, processors)
        chosen: list[int] = []
        order, rules = rng.spawn(2)
        while len(chosen) < applications:
            chosen.extend(order.permutation(len(self.curves)).tolist())
        drawn = [self.curves[index] for index in chosen[:applications]]
        uniforms = draw_uniforms(rules, applications)
        shapes = assemble(join_curves(drawn), processors, parse_counts(self.counts), uniforms)
        assumed = np.array([curve.nprocs[0] > 1 for curve in drawn])
        return replace(shapes, serial_assumed=assumed)
