"""How long a running adaptive application will still take, with an interval."""

from typing import NamedTuple, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from predictors.base import FloatArray
from predictors.cycles.messages import check_within
from predictors.cycles.offline import OfflineCyclePredictor
from predictors.cycles.online import OnlineCyclePredictor
from predictors.errors import AT_LEAST_1, BETWEEN_0_AND_1, NotFittedError, PredictorError

QUADRATURE = 32
"""Places along the remaining cycles at which the cells are followed."""
_PLACES = np.arange(QUADRATURE) + 0.5

PRIOR_STEP = 0.1
"""A step of the cells by this share is held possible before any was seen."""


class Remaining(NamedTuple):
    """Seconds that a run will still take.

    Attributes
    ----------
    seconds, low, high : float
        Median of the belief and the ends of its interval, seconds.
    online, offline : float
        What either mode says alone, along the same trend of cells, seconds;
        `offline` is NaN without an offline model.
    """

    seconds: float
    low: float
    high: float
    online: float
    offline: float


class CellTrend:
    """Where the cells are heading: a random walk with drift, one step a cycle.

    The drift is the mean change per cycle so far, the variance that of the changes
    around it and one more change by `PRIOR_STEP`, so that a run which has not
    adapted yet is not believed to stay as it is.

    Examples
    --------
    >>> trend = CellTrend().update([100.0, 110.0, 120.0])
    >>> trend.ahead(np.array([1.0, 10.0])).tolist()
    [130.0, 220.0]
    """

    def __init__(self) -> None:
        self.count = 0
        self.last = np.nan
        self._sums = np.zeros(3)  # changes, their sum, their squares: all cycles so far

    def update(self, cells: ArrayLike) -> Self:
        """Take in the cells of finished cycles, in their order.

        Raises
        ------
        PredictorError
            If a number is not positive and finite.
        """
        row = np.atleast_1d(np.asarray(cells, dtype=float)).ravel()
        check_within("cells", row)
        known = row if self.count == 0 else np.concatenate(([self.last], row))
        changes = known[1:] - known[:-1]
        self._sums = self._sums + np.array([changes.size, changes.sum(), (changes**2).sum()])
        self.count += row.size
        self.last = float(row[-1]) if row.size else self.last
        return self

    @property
    def drift(self) -> float:
        """Mean change of the cells per cycle."""
        steps, total, _ = self._sums
        return float(total / steps) if steps else 0.0

    @property
    def variance(self) -> float:
        """Variance of the change per cycle, the prior step included."""
        steps, total, squares = self._sums
        around = max(squares - total**2 / steps, 0.0) if steps else 0.0
        return float((around + (PRIOR_STEP * self.last) ** 2) / (steps + 1.0))

    def ahead(self, cycles: FloatArray) -> FloatArray:
        """Return the expected cells so many cycles ahead, at least a quarter of now."""
        return np.maximum(self.last + self.drift * cycles, 0.25 * self.last)

    def variance_of_sum(self, cycles: float) -> float:
        """Return the variance of the sum of cells over so many coming cycles."""
        walk = cycles**3 / 3.0 + cycles**2 / 2.0 + cycles / 6.0
        drift = (cycles * (cycles + 1.0) / 2.0) ** 2 / (self._sums[0] + 1.0)
        return float(self.variance * (walk + drift))


class RemainingTime:
    """Remaining time of a run from both modes and the trend of its cells.

    The present speed is the online time per cell; how it changes as the cells
    change comes from the shape of the offline curve, whose level does not
    matter. The interval covers the walk of the cells, the spread of the cycles
    and half the distance between the online mode with and without the shape.

    Parameters
    ----------
    cycles : int
        Cycles that the run will have in all.
    offline : OfflineCyclePredictor, optional
        Fitted benchmark of the application.
    nprocs : int
        Processors of the run.
    window : int
        Latest cycles from which the speed is taken, at least 1.

    Raises
    ------
    PredictorError
        If a count is below 1.

    Examples
    --------
    >>> run = RemainingTime(cycles=100).update(np.full(50, 1000.0), np.full(50, 2.0))
    >>> run.predict().seconds
    100.0
    """

    def __init__(
        self,
        cycles: int,
        offline: OfflineCyclePredictor | None = None,
        nprocs: int = 1,
        window: int = 32,
    ) -> None:
        AT_LEAST_1.check(cycles=cycles)
        if window is None:
            raise PredictorError("window must be at least 1 cycle, whole, got None")
        self.cycles = cycles
        self.offline = offline
        self.nprocs = nprocs
        self.online = OnlineCyclePredictor(window, fallback=offline, nprocs=nprocs)
        self.online.check_parameters()
        self.trend = CellTrend()
        self._shape = np.nan

    def update(self, cells: ArrayLike, seconds: ArrayLike) -> Self:
        """Take in finished cycles, one or many, in their order.

        Raises
        ------
        PredictorError
            If a value is not positive and finite.
        """
        row = np.atleast_1d(np.asarray(cells, dtype=float))
        self.online.update(row, seconds)
        self.trend.update(row)
        recent = self.online.recent_cells
        if self.offline is not None and recent.size:
            mean = self.offline.predict(self.nprocs, cells=recent).sum() / recent.sum()
            self._shape = float(mean)
        return self

    def predict(self, level: float = 0.8, left: int | None = None) -> Remaining:
        """Return the remaining time and the interval that holds it with `level`.

        Parameters
        ----------
        level : float
            Between 0 and 1.
        left : int, optional
            Cycles that remain, where some were measured more than once (after a
            restart from a checkpoint); by default those not measured yet.

        Raises
        ------
        NotFittedError
            Before the first cycle.
        PredictorError
            If `level` is not between 0 and 1.
        """
        BETWEEN_0_AND_1.check(level=level)
        if self.online.cycles_ == 0:
            raise NotFittedError("RemainingTime has seen no cycle yet")
        left = self.cycles - self.online.cycles_ if left is None else left
        if left <= 0:
            return Remaining(0.0, 0.0, 0.0, 0.0, np.nan if self.offline is None else 0.0)
        cells = self.trend.ahead(_PLACES * left / QUADRATURE + 0.5)
        speed, mean = self.online.seconds_per_cell(), float(cells.mean())
        online = speed * mean * left
        shaped, offline = online, np.nan
        if self.offline is not None:
            seconds = self.offline.predict(self.nprocs, cells=cells)
            offline = float(seconds.mean()) * left
            shaped = offline * speed / self._shape
        spread = self._spread(left, speed, mean, online, shaped)
        factor = float(np.exp(scipy.special.ndtri(0.5 + level / 2.0) * spread / shaped))
        return Remaining(shaped, shaped / factor, shaped * factor, online, offline)

    def _spread(self, left: int, speed: float, mean: float, online: float, shaped: float) -> float:
        """Return the standard deviation of the remaining time, seconds."""
        noise = max(self.online.spread, 0.01)
        seen = self.online.recent_cells.size
        walk = speed**2 * self.trend.variance_of_sum(float(left))
        cycle = (noise * speed * mean) ** 2 * left
        level = (noise * online) ** 2 / seen
        return float(np.sqrt(walk + cycle + level + 0.25 * (online - shaped) ** 2))
