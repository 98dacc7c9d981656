"""Focused regression and time-constrained scaling (Garren 2010)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from predictors.base import FloatArray, Remark
from predictors.errors import POSITIVE_AND_FINITE, NotFittedError, PredictorError, check_choice
from predictors.least_squares import cooks_distance
from predictors.regression.barnes import LogLogPredictor
from predictors.regression.inputs import OPTIONAL_INPUT, TrainingRuns, without_constants
from predictors.regression.loglog import Chosen, model_of, note_on_parts, refusal
from predictors.regression.loglog_kernels import DETERMINED, ROUNDING, linear_parts, region
from predictors.regression.validation import choice_remarks, fit_remarks, focal_tolerance

Influence = Literal["flag", "drop"]
Focus = Literal["region", "weights"]


@dataclass(frozen=True)
class FocalRegion:
    """The rows in focus.

    Attributes
    ----------
    rows : numpy.ndarray of bool, shape (n,)
    half_width : float
        In log2 units of time, after widening; infinite without a focal time.
    widened : int
        How many times it was widened by 0.1 to hold enough rows.
    """

    rows: np.ndarray
    half_width: float
    widened: int = 0


def within_time(log_time: FloatArray, focal_time: float, half_width: float) -> np.ndarray:
    """Return which log2 times lie within the half-width of the focal time (GARREN 3.2)."""
    return np.asarray(np.abs(log_time - np.log2(focal_time)) <= half_width + ROUNDING)


def within_bands(
    columns: Mapping[str, FloatArray] | pd.DataFrame,
    condition: Mapping[str, float],
    band: float | Mapping[str, float],
) -> np.ndarray:
    """Return the rows with every conditioned column within ± band of its value, in log2.

    A mapping gives each column a band of its own; one without is to be equal.

    With the ratio of two processor dimensions as the column and band 1 this is
    the thesis's region k ± 1 (GARREN section 3.4.3); with band 0, equality. A column that is
    missing or not positive is refused.
    """
    inside: np.ndarray | None = None
    for name, value in condition.items():
        if name not in columns:
            raise PredictorError(f"condition on {name!r}: the observations have no such column")
        column = np.asarray(columns[name], dtype=np.float64)
        if not (column > 0.0).all():
            raise PredictorError(f"condition on {name!r}: its values must be positive")
        width = band.get(name, 0.0) if isinstance(band, Mapping) else band
        meets = np.abs(np.log2(column) - np.log2(value)) <= width + 1e-9
        inside = meets if inside is None else inside & meets
    if inside is None:
        raise PredictorError("a condition needs at least one column")
    return inside


def distance_weights(log_time: FloatArray, focal_time: float, half_width: float) -> FloatArray:
    """Return weights that fall with the distance from the focal time, 1 at it.

    w = 1 / (1 + (|LT − LT0| / h)²): one half at the edge of the region h. The thesis
    describes such weights on the complete training set without a formula (section 3.2).
    """
    distance = (log_time - np.log2(focal_time)) / half_width
    return np.asarray(1.0 / (1.0 + distance * distance))


def fit_linear(runs: TrainingRuns, weights: FloatArray | None) -> Chosen:
    """Fit LT = b0 + b1·LP + Σ b·LX to the total, or to both parts of a split.

    Apart where communication is more than half of the time at the largest count.
    """
    failed, way, done, gap, uppers = linear_parts(
        runs.known, runs.runtime, runs.splits, np.empty(0) if weights is None else weights
    )
    if failed != DETERMINED:
        raise refusal(runs, failed, "linear")
    model = model_of(runs, uppers, np.full(2, len(runs.inputs) + 2), way)
    if way < 0:
        return Chosen(model, "total")
    why = "communication is more than half of the time at the largest count"
    return Chosen(model, runs.ways[way], why, note_on_parts(done, gap))


def influential_rows(
    runs: TrainingRuns, weights: FloatArray | None = None
) -> tuple[np.ndarray, FloatArray]:
    """Return which rows exceed Cook's D of 2p/n in the linear fit to total time, and all D.

    p counts the intercept (GARREN section 4.2). D is NaN, and no row flagged, where no
    degree of freedom is left.
    """
    total = fit_linear(replace(runs, splits=runs.splits[:0]), weights).model.parts[0]
    design = total.design(runs.known)
    distance = cooks_distance(total.fit, design, np.log2(runs.runtime), weights)
    flagged: np.ndarray = distance > 2.0 * design.shape[1] / runs.rows
    return flagged, distance


class FocusedRegression(LogLogPredictor):
    """Regress log2 time on log2 processors and inputs, near the time of interest.

    LT = b0 + b1·LP + b2·LSZ on runs whose time lies near a focal time T0, on runs
    that meet a condition, or on all runs (GARREN sections 3.1, 3.2 and 3.4.3). Its
    main use is time-constrained scaling: `solve_size` gives the size that takes a
    wanted time on a larger machine.

    Parameters
    ----------
    inputs : sequence of str
        Names of the input columns; ``size`` is used where the observations have it.
    focal_time : float or None
        T0 in seconds; None for the complete training set.
    tolerance : float
        Half-width h of the focal region in log2 units: 0.3 is 23 %.
    influence : {"flag", "drop"}
        Whether runs with Cook's D above 2p/n are only reported, or dropped once.
    focus : {"region", "weights"}
        Runs within the tolerance alone, or all runs with weights that fall with
        the distance of their log time from T0.
    condition : mapping of str to float, optional
        Columns and the values they must be near, such as ``{"pd_ratio": 1.0}``.
    band : float or mapping of str to float
        How near, in log2 units: 1 is the thesis's k ± 1; 0 is equality. By column, 0
        for those not named: one condition fixed, another within a band.
    smallest : float or "auto"
        Runs on fewer processors are left out. Automatic: the count from which the largest
        training count is foretold best (`fit` and `fit_arrays`).

    Attributes
    ----------
    coefficients_ : numpy.ndarray
        b0, b1 and the inputs' in order.
    region_ : FocalRegion
        Which runs were in focus, and whether it had to be widened.
    cooks_distance_, influential_ : numpy.ndarray
        Cook's D of the runs in focus, and which exceed 2p/n.

    Examples
    --------
    >>> import pandas as pd
    >>> runs = pd.DataFrame({"nprocs": [16, 16, 64, 64, 256, 256],
    ...                      "size": [1e6, 2e6, 4e6, 8e6, 1.6e7, 3.2e7]})
    >>> runs["runtime"] = 1e-3 * runs["size"] / runs["nprocs"]
    >>> model = FocusedRegression(focal_time=100.0).fit(runs)
    >>> model.solve_size(100.0, [512]).round().tolist()
    [51200000.0]
    """

    region_: FocalRegion
    _in_focus: tuple[TrainingRuns, FloatArray | None]
    _influence: tuple[np.ndarray, FloatArray] | None

    def __init__(
        self,
        inputs: Sequence[str] = OPTIONAL_INPUT,
        focal_time: float | None = None,
        tolerance: float = 0.3,
        influence: Influence = "flag",
        focus: Focus = "region",
        condition: Mapping[str, float] | None = None,
        band: float | Mapping[str, float] = 1.0,
        smallest: float | Literal["auto"] = 1.0,
    ) -> None:
        super().__init__(inputs, smallest)
        self.focal_time, self.tolerance = focal_time, tolerance
        self.influence, self.focus = influence, focus
        self.condition, self.band = condition, band

    def check_parameters(self) -> None:
        """Refuse arguments out of range; see `Estimator`."""
        super().check_parameters()
        POSITIVE_AND_FINITE.check_or_null(focal_time=self.focal_time)
        POSITIVE_AND_FINITE.check(tolerance=self.tolerance)
        bands = self.band.values() if isinstance(self.band, Mapping) else [self.band]
        if not all(band >= 0.0 for band in bands):
            raise PredictorError(f"band must not be negative (log2 units), got {self.band}")
        unknown = set(self.band if isinstance(self.band, Mapping) else ()) - set(
            self.condition or {}
        )
        if unknown:
            raise PredictorError(
                f"band of {', '.join(sorted(unknown))}: there is no such condition"
            )
        for name, value in (self.condition or {}).items():
            if not 0.0 < value < np.inf:
                raise PredictorError(f"condition {name}={value}: the value must be positive")
        check_choice(("flag", "drop"), influence=self.influence)
        check_choice(("region", "weights"), focus=self.focus)

    def _fit_table(self, table: pd.DataFrame) -> Self:
        """Fit to the rows that meet the condition, of which there must be one."""
        if self.condition:
            table = table[within_bands(table, self.condition, self.band)]
            if table.empty:
                raise PredictorError(f"no run meets the condition {self.condition} ± {self.band}")
        return super()._fit_table(table)

    def fit_runs(self, runs: TrainingRuns) -> Self:
        """Fit to runs that are already checked."""
        self._given = runs
        focus, weights = self._region(runs)
        if not focus.rows.all():
            runs = without_constants(runs.take(focus.rows))
        self._in_focus, self._influence = (runs, weights), None
        if self.influence == "drop" and self.influential_.any():
            keep = ~self.influential_
            runs = without_constants(runs.take(keep))
            weights = None if weights is None else weights[keep]
        self.choice_ = fit_linear(runs, weights)
        self.runs_, self.region_ = runs, focus
        return self

    def _fit_single(self, runs: TrainingRuns) -> None:
        super()._fit_single(runs)
        self.region_ = FocalRegion(np.ones(runs.rows, dtype=bool), np.inf)
        self._in_focus, none = (runs, None), np.zeros(runs.rows, dtype=bool)
        self._influence = none, np.full(runs.rows, np.nan)

    @property
    def influential_(self) -> np.ndarray:
        """Which runs in focus have a Cook's D above 2p/n."""
        return self._judged()[0]

    @property
    def cooks_distance_(self) -> FloatArray:
        """Cook's D of the runs in focus."""
        return self._judged()[1]

    def _judged(self) -> tuple[np.ndarray, FloatArray]:
        """Return influence, computed when first asked for."""
        if not hasattr(self, "_in_focus"):
            raise NotFittedError("FocusedRegression was asked before it was fitted")
        if self._influence is None:
            self._influence = influential_rows(*self._in_focus)
        return self._influence

    def _region(self, runs: TrainingRuns) -> tuple[FocalRegion, FloatArray | None]:
        """Return the rows in focus and their weights."""
        everything = np.ones(runs.rows, dtype=bool)
        if self.focal_time is None:
            return FocalRegion(everything, np.inf), None
        log_time = np.log2(runs.runtime)
        if self.focus == "weights":
            weights = distance_weights(log_time, self.focal_time, self.tolerance)
            return FocalRegion(everything, self.tolerance), weights
        centre, width = float(np.log2(self.focal_time)), float(self.tolerance)
        return FocalRegion(*region(runs.known, log_time, centre, width)), None

    def reliability(self, nprocs: ArrayLike | pd.DataFrame, **inputs: ArrayLike) -> list[Remark]:
        """Say how far to trust predictions at these counts and inputs."""
        rows, _ = self._rows(nprocs, inputs)
        remarks = super().reliability(nprocs, **inputs)
        return remarks + self._out_of_focus(self.model_.seconds(rows))

    def remarks_on_fit(self) -> list[Remark]:
        """Say of the fit what holds for any target."""
        remarks = fit_remarks(self.runs_, self.model_) + choice_remarks(self.choice_)
        remarks += self._widening_remark() + self._superlinear()
        return remarks + self._influence_remarks()

    def _out_of_focus(self, predicted: FloatArray) -> list[Remark]:
        """Say which predictions the model was not made for."""
        if self.focal_time is None:
            return []
        width = min(max(self.region_.half_width, self.tolerance), 900.0)
        out = ~within_time(np.log2(predicted), self.focal_time, width)
        if not out.any():
            return []
        text = (
            "predictions outside the focal region around "
            f"{self.focal_time:g} s ({int(out.sum())}): the model was not made for them"
        )
        return [Remark("warning", "out_of_focus", text)]

    def _widening_remark(self) -> list[Remark]:
        """Say whether the region had to be widened."""
        if not self.region_.widened:
            return []
        text = (
            f"too few runs within {focal_tolerance(self.tolerance):.0%} of the focal time: "
            f"the region was widened to {focal_tolerance(self.region_.half_width):.0%}"
        )
        return [Remark("warning", "focus_widened", text)]

    def _influence_remarks(self) -> list[Remark]:
        """Say which runs are influential."""
        if not self.influential_.any():
            return []
        done = "dropped" if self.influence == "drop" else "kept"
        rows = np.flatnonzero(self.influential_).tolist()
        values = ", ".join(f"{self.cooks_distance_[row]:.3f}" for row in rows)
        text = f"influential runs {done}: rows {rows} of those in focus, Cook's D {values}"
        return [Remark("note", "influential", text)]
