"""Cycle times from a benchmark made before: the offline mode of Mathis & Kerbyson."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple, Self

import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike

from predictors.base import Estimator, FloatArray, IntArray, Remark, numbers, run_table
from predictors.compiling import compiled, direct
from predictors.cycles.messages import Exchange, alike, check_within
from predictors.errors import BETWEEN_0_AND_1, Bounds, PredictorError, check_choice

MOST_CANDIDATES = 40
"""With more distinct inside points than these, breakpoints are sought among so many of them."""

_NOISELESS = 1e-9  # relative residual below which a fit is exact


def _best_subset(design: FloatArray, target: FloatArray, knots: int) -> tuple[float, list[int]]:
    """Return the least residual sum over all choices of so many hinge columns."""
    gram, right = design.T @ design, design.T @ target
    chosen = np.array([(0, 1, *pick) for pick in combinations(range(2, design.shape[1]), knots)])
    systems = gram[chosen[:, :, None], chosen[:, None, :]]
    coefficients = np.linalg.pinv(systems, hermitian=True) @ right[chosen][..., None]
    explained = np.einsum("sk,sk->s", right[chosen], coefficients[..., 0])
    # Normal equations lose digits, so the best few are fitted once more.
    again = []
    for own in chosen[np.argsort(-explained, kind="stable")[:8]]:
        weights = np.linalg.lstsq(design[:, own], target, rcond=None)[0]
        residual = float(np.sum((target - design[:, own] @ weights) ** 2))
        again.append((residual, own.tolist()))
    return min(again)


def choose_knots(x: FloatArray, y: FloatArray, breakpoints: int = 3) -> IntArray:
    """Return which points should be knots: the ends, and breakpoints between.

    For each number of breakpoints every choice among the observed inside points
    is fitted by least squares on relative errors; the number is the one of the
    smallest Bayesian information criterion, each breakpoint counting twice
    (its place and its slope).

    Parameters
    ----------
    x, y : numpy.ndarray of float, shape (n,)
        Points, in any order; y positive.
    breakpoints : int
        Most breakpoints to try.

    Returns
    -------
    numpy.ndarray of int, shape (2 to 2 + breakpoints,)
        Indices into the sorted distinct values of `x`, rising.

    Raises
    ------
    PredictorError
        If there are fewer than two distinct x.
    """
    distinct = np.unique(x)
    if distinct.size < 2:
        raise PredictorError(f"a curve needs 2 distinct points, got {distinct.size}")
    span = distinct[-1] - distinct[0]
    inside = np.arange(1, distinct.size - 1)  # those that can carry a breakpoint
    if breakpoints > 0 and inside.size > MOST_CANDIDATES:
        inside = inside[np.linspace(0, inside.size - 1, MOST_CANDIDATES).round().astype(int)]
    at, knots_at = (x - distinct[0]) / span, (distinct[inside] - distinct[0]) / span
    # Columns 1, x and max(0, x - knot) for each knot.
    design = np.column_stack((np.ones_like(at), at, np.maximum(at[:, None] - knots_at, 0.0)))
    design, target = design / y[:, None], np.ones_like(y)
    best, knots = np.inf, np.empty(0, dtype=np.int64)
    for count in range(max(min(breakpoints, inside.size, x.size - 3), 0) + 1):
        residual, columns = _best_subset(design, target, count)
        mean_square = max(residual / x.size, _NOISELESS**2)
        score = x.size * np.log(mean_square) + (2 + 2 * count) * np.log(x.size)
        if score < best - 1e-9:
            best, knots = score, inside[np.array(columns[2:], dtype=np.int64) - 2]
    return np.concatenate(([0], np.sort(knots), [distinct.size - 1]))


def knot_values(x: FloatArray, y: FloatArray, knots: FloatArray) -> FloatArray:
    """Return y at the knots, by least squares on relative errors.

    Parameters
    ----------
    x, y : numpy.ndarray of float, shape (n,)
        Points; y positive.
    knots : numpy.ndarray of float, shape (k,)
        Rising; points outside them count at the nearest end.

    Raises
    ------
    PredictorError
        If the points leave a value undetermined.
    """
    place = np.clip(x, knots[0], knots[-1])
    hats = np.column_stack([np.interp(place, knots, unit) for unit in np.eye(knots.size)])
    values, _, rank, _ = np.linalg.lstsq(hats / y[:, None], np.ones_like(y), rcond=None)
    if rank < knots.size:
        raise PredictorError(f"{x.size} points do not determine a curve with {knots.size} knots")
    return np.asarray(values)


class Curves(NamedTuple):
    """Benchmarked times of a cell, a curve for each number of processes that share a node.

    Attributes
    ----------
    levels : numpy.ndarray of float, shape (p,)
        Processes per node, ascending.
    starts : numpy.ndarray of int, shape (p + 1,)
        Where the knots of each begin.
    axis : numpy.ndarray of float, shape (k,)
        Knots on the axis in which pieces are straight, rising within a curve.
    values : numpy.ndarray of float, shape (k,), seconds
    """

    levels: FloatArray
    starts: IntArray
    axis: FloatArray
    values: FloatArray


def curves_of(axes: dict[float, FloatArray], values: dict[float, FloatArray]) -> Curves:
    """Return curves by processes per node, ascending: their knots on the axis, and values there."""
    starts = np.cumsum([0, *(axis.size for axis in axes.values())])
    both = np.concatenate([*axes.values()]), np.concatenate([*values.values()])
    return Curves(np.array([*axes]), starts, *both)


@compiled
def interpolated(at: float, x: FloatArray, y: FloatArray) -> float:
    """Return what `numpy.interp` does for one place, which is finite."""
    last = x.size - 1
    if at < x[0]:
        return float(y[0])
    if at >= x[last]:
        return float(y[last])
    k = 0
    while x[k + 1] <= at:
        k += 1
    return float(y[k] if x[k] == at else (y[k + 1] - y[k]) / (x[k + 1] - x[k]) * (at - x[k]) + y[k])


@compiled
def seconds_per_cell(curves: Curves, at: FloatArray, shared: FloatArray) -> FloatArray:
    """Return the time of a cell at each place, linear between numbers of processes.

    Parameters
    ----------
    curves : Curves
    at : numpy.ndarray of float, shape (n,)
        Cells on the curves' axis.
    shared : numpy.ndarray of float, shape (n,)
        Processes that share a node.

    Returns
    -------
    numpy.ndarray of float, shape (n,), seconds
    """
    levels, starts, axis, values = curves
    places, found = np.arange(levels.size).astype(np.float64), np.empty(at.size)
    for i in range(at.size):
        place = interpolated(shared[i], levels, places)
        low = min(int(place), max(levels.size - 2, 0))
        high = min(low + 1, levels.size - 1)
        here = slice(starts[low], starts[low + 1])
        below = interpolated(at[i], axis[here], values[here])
        here = slice(starts[high], starts[high + 1])
        above = interpolated(at[i], axis[here], values[here])
        found[i] = below + (place - low) * (above - below)
    return found


Form = Literal["logarithmic", "linear"]
_seconds_per_cell = direct(seconds_per_cell)


def _benchmark(observations: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of a benchmark as floats, or refuse them."""
    missing = [name for name in ("cells", "runtime") if name not in observations.columns]
    if missing:
        raise PredictorError(f"a cycle benchmark needs the columns {', '.join(missing)}")
    if observations.empty:
        raise PredictorError("a cycle benchmark needs at least one row")
    names = ("cells", "runtime", "processes_per_node")
    given = observations.assign(processes_per_node=observations.get(names[2], 1.0))
    table = pd.DataFrame({name: numbers(given[name], name) for name in names})
    for name, column in table.items():
        good = np.isfinite(column) & (column > 0)
        if not good.all():
            at = int(np.argmin(good))
            raise PredictorError(
                f"row {observations.index[at]}: cells, runtime and processes_per_node must be "
                f"positive and finite, got {name} {column.iloc[at]:g}"
            )
    return table.sort_values(["processes_per_node", "cells", "runtime"], kind="stable")


@dataclass(eq=False, repr=False)
class OfflineCyclePredictor(Estimator):
    """Seconds of a cycle from its cells, by a benchmarked curve of seconds per cell.

    Seconds per cell follow continuous pieces in ln(cells), or in cells, with
    one curve for each number of processes that shared a node in the benchmark;
    between these numbers the curves are interpolated. Beyond the benchmark the
    curve is extended at its end value and the prediction is flagged. To the
    computation comes the communication of the cycle, if its model is given.

    Parameters
    ----------
    form : str
        ``logarithmic`` (a + b·ln(cells), default) or ``linear`` (a + b·cells).
    knots : str or sequence of float
        ``auto``: at most `breakpoints` among the observed cells, by exact least
        squares, fewer by BIC. ``points``: every observed number of cells.
        Otherwise the numbers of cells themselves, rising.
    breakpoints : int
        Most breakpoints that ``auto`` tries.
    communication : Exchange, optional
        Communication of a cycle; none by default.
    processors_per_node : int
        On n processors, min(n, processors_per_node) processes share a node.

    Attributes
    ----------
    knots_ : dict of float to numpy.ndarray
        Cells at the ends of the pieces, by processes per node.
    seconds_per_cell_ : dict of float to numpy.ndarray, seconds
        Values there.
    spread_ : float
        Standard deviation of the log ratio of benchmark to curve.

    Raises
    ------
    PredictorError
        If a parameter is out of range.

    References
    ----------
    M. M. Mathis and D. J. Kerbyson, "Dynamic performance prediction of an
    adaptive mesh application", section 2 and Figure 1.

    Examples
    --------
    >>> import pandas as pd
    >>> runs = pd.DataFrame({"cells": [1e3, 1e4, 1e5], "runtime": [1.0, 15.0, 200.0]})
    >>> model = OfflineCyclePredictor(knots="points").fit(runs)
    >>> model.predict(cells=[1e4, 1e5, 2e5]).tolist()
    [15.0, 200.0, 400.0]
    """

    form: Form = "logarithmic"
    knots: str | Sequence[float] = "auto"
    breakpoints: int = 3
    communication: Exchange | None = None
    processors_per_node: int = 1

    def check_parameters(self) -> None:
        """Refuse arguments out of range; see `Estimator`."""
        knots = self.knots
        check_choice(("logarithmic", "linear"), form=self.form)
        if isinstance(knots, str) and knots not in ("auto", "points"):
            raise PredictorError(f"knots must be auto, points or numbers of cells, got {knots!r}")
        if not isinstance(knots, str):
            given = np.asarray(knots, dtype=float)
            rising = given.size > 1 and given[0] > 0 and bool((np.diff(given) > 0).all())
            if not rising or not np.isfinite(given).all():
                raise PredictorError(f"knots must be 2 or more rising numbers, got {list(knots)}")
        Bounds("0 to 3", 0, 3).check(breakpoints=self.breakpoints)
        Bounds(">= 1", 1).check(processors_per_node=self.processors_per_node)

    def fit(self, observations: pd.DataFrame, runtime: ArrayLike | None = None) -> Self:
        """Learn from benchmark cycles, a row each.

        Parameters
        ----------
        observations : pandas.DataFrame
            ``cells`` per processor, ``runtime`` of the cycle in seconds without
            communication, and ``processes_per_node`` (1 where not given).
            With `runtime` beside it, without that column.

        Raises
        ------
        PredictorError
            If a column is missing, a value is not positive and finite, or the
            points leave the curve undetermined.
        """
        self.check_parameters()
        table = _benchmark(run_table(self, observations, runtime))
        knots: dict[float, FloatArray] = {}
        axes: dict[float, FloatArray] = {}
        values: dict[float, FloatArray] = {}
        residuals = []
        for shared, part in table.groupby("processes_per_node"):
            cells = part["cells"].to_numpy()
            each = part["runtime"].to_numpy() / cells
            key = float(np.asarray(shared))
            knots[key] = self._choose(cells, each)
            axis = axes[key] = self._axis(knots[key])
            values[key] = (
                knot_values(self._axis(cells), each, axis)
                if axis.size > 1
                else np.array([np.exp(np.log(each).mean())])
            )
            if not (values[key] > 0).all():
                raise PredictorError("the fitted curve is not positive; give fewer knots")
            residuals.append(np.log(each / np.interp(self._axis(cells), axis, values[key])))
        self.knots_, self.seconds_per_cell_ = knots, values
        self._curves = curves_of(axes, values)
        degrees_of_freedom = max(len(table) - self._curves.axis.size, 1)
        self.spread_ = float(np.sqrt(np.sum(np.concatenate(residuals) ** 2) / degrees_of_freedom))
        return self

    def _axis(self, cells: FloatArray) -> FloatArray:
        """Return cells on the axis in which the pieces are straight."""
        return np.asarray(np.log(cells) if self.form == "logarithmic" else cells)

    def _choose(self, cells: FloatArray, each: FloatArray) -> FloatArray:
        """Return the numbers of cells between which the pieces lie."""
        distinct = np.unique(cells)
        if not isinstance(self.knots, str):
            return np.asarray(self.knots, dtype=float)
        if self.knots == "points" or distinct.size < 3:
            return distinct
        return np.asarray(distinct[choose_knots(self._axis(cells), each, self.breakpoints)])

    def seconds_per_cell(self, cells: ArrayLike, processes_per_node: ArrayLike = 1) -> FloatArray:
        """Return the benchmarked time of one cell, seconds, shape of `cells`.

        Parameters
        ----------
        cells : array_like of float
            Cells on the fullest processor, positive.
        processes_per_node : array_like of float
            Processes that share a node; between those benchmarked the curves
            are interpolated, beyond them the nearest holds.

        Raises
        ------
        NotFittedError
            Before `fit`.
        PredictorError
            If a number of cells is not positive and finite.
        """
        self.check_fitted("knots_")
        count, shared = alike(cells, processes_per_node)
        check_within("cells", count)
        found = _seconds_per_cell(self._curves, self._axis(count).ravel(), shared.ravel())
        return np.asarray(found.reshape(count.shape))

    def predict(self, nprocs: ArrayLike = 1, *, cells: ArrayLike) -> FloatArray:
        """Return the time of a cycle, seconds, in the broadcast shape of both.

        Parameters
        ----------
        nprocs : array_like of int
            Processors of the run.
        cells : array_like of float
            Cells on the fullest processor in that cycle.

        Raises
        ------
        NotFittedError
            Before `fit`.
        PredictorError
            If a value is not positive.
        """
        count, size = alike(nprocs, cells)
        check_within("nprocs", count, 1.0, "at least 1 and finite")
        shared = np.minimum(count, self.processors_per_node)
        seconds = size * self.seconds_per_cell(size, shared)
        if self.communication is not None:
            seconds = seconds + self.communication.seconds(count, size)
        return np.asarray(seconds)

    def predict_range(
        self, nprocs: ArrayLike = 1, level: float = 0.8, *, cells: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return the low and high ends in which a healthy cycle lies with `level`.

        From the spread of the benchmark around its curve, log-normal.

        Raises
        ------
        PredictorError
            If `level` is not between 0 and 1, or as `predict`.
        """
        BETWEEN_0_AND_1.check(level=level)
        middle = self.predict(nprocs, cells=cells)
        factor = np.exp(scipy.special.ndtri(0.5 + level / 2.0) * self.spread_)
        return middle / factor, middle * factor

    def reliability(self, nprocs: ArrayLike = 1, *, cells: ArrayLike) -> list[Remark]:
        """Say where the benchmark does not reach.

        Raises
        ------
        NotFittedError
            Before `fit`.
        """
        self.check_fitted("knots_")
        size = np.asarray(cells, dtype=float)
        shared = np.minimum(np.asarray(nprocs, dtype=float), self.processors_per_node)
        least = max(float(k[0]) for k in self.knots_.values())
        most = min(float(k[-1]) for k in self.knots_.values())
        remarks = []
        outside = int(((size < least) | (size > most)).sum())
        if outside:
            text = f"{outside} of {size.size} cell counts lie outside {least:g} to {most:g}"
            remarks.append(Remark("warning", "outside_benchmark", f"{text}; the end value is used"))
        unseen = sorted(set(np.unique(shared).tolist()) - set(self.knots_))
        if unseen:
            text = f"no benchmark with {', '.join(f'{k:g}' for k in unseen)} processes per node"
            remarks.append(Remark("note", "contention_not_measured", text))
        return remarks
