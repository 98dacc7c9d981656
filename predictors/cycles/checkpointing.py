"""When to checkpoint, and stopping in time: intervals, and plans in whole cycles.

A checkpoint costs ``cost`` seconds, the nodes of a job fail every ``mtbf`` seconds on average, and
``interval`` seconds of computation lie between two checkpoints. In cycles the rule is that of
Mathis & Kerbyson (section 4): before each cycle, if the time since the last checkpoint plus the
predicted time of the cycle exceeds the interval, checkpoint now. Time since the last checkpoint
leaves out the checkpoint itself, and there are never two checkpoints without a cycle between. A
whole run is laid out at once, so that a simulator needs no event per cycle.

References
----------
.. [1] J. W. Young, "A first order approximation to the optimum checkpoint
   interval", Communications of the ACM 17(9), 1974.
.. [2] J. T. Daly, "A higher order estimate of the optimum checkpoint interval
   for restart dumps", Future Generation Computer Systems 22(3), 2006.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
import scipy
from numpy.typing import ArrayLike

from predictors.base import FloatArray, IntArray
from predictors.errors import POSITIVE, PredictorError


def _positive(name: str, value: ArrayLike, zero: bool = False) -> FloatArray:
    """Return `value` as floats, or refuse what is not positive."""
    array = np.asarray(value, dtype=float)
    bad = ~(array >= 0.0) if zero else ~(array > 0.0)
    if bad.any():
        wanted = "at least 0" if zero else "positive"
        raise PredictorError(f"{name} must be {wanted}, got {float(array[bad].flat[0])}")
    return array


def young_interval(cost: ArrayLike, mtbf: ArrayLike) -> FloatArray:
    """Return τ = sqrt(2δM), the first-order optimum.

    Parameters
    ----------
    cost : array_like of float, seconds
        δ, the time of one checkpoint; at least 0.
    mtbf : array_like of float, seconds
        M, the mean time between failures of the job's nodes together.

    Returns
    -------
    numpy.ndarray of float, seconds of computation between checkpoints

    Raises
    ------
    PredictorError
        If a cost is negative or a time between failures not positive.

    Examples
    --------
    >>> float(young_interval(10.0, 600.0).round(3))
    109.545
    """
    return np.asarray(np.sqrt(2.0 * _positive("cost", cost, zero=True) * _positive("mtbf", mtbf)))


def daly_interval(cost: ArrayLike, mtbf: ArrayLike) -> FloatArray:
    """Return Daly's higher-order interval; M where the cost is 2M or more.

    Parameters and errors are those of `young_interval`.

    Examples
    --------
    >>> float(daly_interval(60.0, 86400.0).round(2))
    3180.06
    """
    delta, mean = np.broadcast_arrays(_positive("cost", cost, zero=True), _positive("mtbf", mtbf))
    ratio = delta / (2.0 * mean)
    series = np.sqrt(2.0 * delta * mean) * (1.0 + np.sqrt(ratio) / 3.0 + ratio / 9.0) - delta
    return np.where(ratio < 1.0, series, mean)


def best_interval(cost: ArrayLike, mtbf: ArrayLike) -> FloatArray:
    """Return the interval of the least expected wall time under exponential failures [2]_, exactly.

    For work W and restarts R that is M·exp(R/M)·(exp((τ + δ)/M) − 1)·W/τ. Setting the
    derivative to zero gives (τ/M − 1)·exp(τ/M − 1) = −exp(−1 − δ/M), so
    τ = M·(1 + W(−exp(−1 − δ/M))) with Lambert's W on its
    principal branch. Parameters and errors are those of `young_interval`.

    Examples
    --------
    >>> float(best_interval(600.0, 3600.0).round(2))
    1699.23
    """
    delta, mean = np.broadcast_arrays(_positive("cost", cost, zero=True), _positive("mtbf", mtbf))
    return np.asarray(mean * (1.0 + np.real(scipy.special.lambertw(-np.exp(-1.0 - delta / mean)))))


class IntervalRule(Protocol):
    """How much computation may lie between two checkpoints."""

    def interval(self, cost: ArrayLike, mtbf: ArrayLike) -> FloatArray:
        """Return seconds between checkpoints; infinite means none."""


@dataclass(frozen=True)
class YoungRule:
    """Young's interval; see `young_interval`."""

    interval = staticmethod(young_interval)


@dataclass(frozen=True)
class DalyRule:
    """Daly's interval; see `daly_interval`."""

    interval = staticmethod(daly_interval)


@dataclass(frozen=True)
class FixedRule:
    """The same interval whatever the cost and the failures.

    Parameters
    ----------
    seconds : float
        Computation between checkpoints, positive.
    """

    seconds: float = 3600.0

    def __post_init__(self) -> None:
        _positive("seconds", self.seconds)

    def interval(self, cost: ArrayLike, mtbf: ArrayLike) -> FloatArray:
        """Return the fixed interval, in the shape of `cost` and `mtbf`."""
        return np.full(np.broadcast_shapes(np.shape(cost), np.shape(mtbf)), self.seconds)


@dataclass(frozen=True)
class NoCheckpoints:
    """Never a checkpoint: a failure costs all the work."""

    def interval(self, cost: ArrayLike, mtbf: ArrayLike) -> FloatArray:
        """Return infinity, in the shape of `cost` and `mtbf`."""
        return np.full(np.broadcast_shapes(np.shape(cost), np.shape(mtbf)), np.inf)


Outcome = Literal["completed", "stopped", "killed"]


def _cycle_ends(ends: ArrayLike) -> FloatArray:
    """Return cycle ends as floats, or refuse what is not a run of cycles."""
    array = np.asarray(ends, dtype=float)
    if array.ndim != 1 or array.size == 0:
        raise PredictorError(f"ends must be one row of cycle ends, got shape {array.shape}")
    if not (np.isfinite(array).all() and array[0] > 0.0 and (np.diff(array) >= 0.0).all()):
        raise PredictorError("ends must be finite, positive and never decrease")
    return array


def _predicted(predicted: ArrayLike | None, ends: FloatArray) -> FloatArray:
    """Return the predicted seconds of each cycle; the true ones where none are given."""
    if predicted is None:
        return np.diff(ends, prepend=0.0)
    array = np.asarray(predicted, dtype=float)
    if array.shape != ends.shape:
        raise PredictorError(
            f"predicted must have a value for each of {ends.size} cycles, got shape {array.shape}"
        )
    return np.where(np.isnan(array), 0.0, array)


def place_checkpoints(
    ends: ArrayLike, interval: ArrayLike, predicted: ArrayLike | None = None
) -> IntArray:
    """Return after how many cycles each checkpoint is taken.

    Parameters
    ----------
    ends : array_like of float, shape (k,), seconds
        Computation done at the end of each cycle, checkpoints left out.
    interval : float or array_like of float, shape (k,), seconds
        Largest computation between checkpoints, as seen before each cycle.
    predicted : array_like of float, shape (k,), seconds, optional
        What was predicted for each cycle before it began; NaN where nothing
        was. Without it each cycle's true time.

    Returns
    -------
    numpy.ndarray of int, shape (c,)
        Counts of finished cycles, increasing, each from 1 to k − 1.

    Raises
    ------
    PredictorError
        If shapes disagree, ends decrease or an interval is not positive.

    Examples
    --------
    >>> place_checkpoints([4, 8, 12, 16, 20, 30], interval=10).tolist()
    [2, 4, 5]
    """
    done = _cycle_ends(ends)
    allowed = np.broadcast_to(np.asarray(interval, dtype=float), done.shape)
    if not (allowed > 0.0).all():
        raise PredictorError(f"interval must be positive, got {float(allowed.min())}")
    before = np.concatenate(([0.0], done[:-1]))
    # A checkpoint is due before cycle k once reach[k] exceeds the last one's time.
    reach = before + _predicted(predicted, done) - allowed
    reach[0] = -np.inf
    highest = np.maximum.accumulate(reach)
    places: list[int] = []
    last = 0
    while True:  # from checkpoint to checkpoint, by bisection where `reach` rises
        base = before[last]
        at = int(highest.searchsorted(base, side="right"))
        if at <= last:  # an earlier cycle was predicted beyond this point
            due = reach[last + 1 :] > base
            at = last + 1 + int(due.argmax()) if due.any() else reach.size
        if at >= reach.size:
            return np.array(places, dtype=np.int64)
        places.append(at)
        last = at


def stop_before(
    ends: ArrayLike, limit: float, predicted: ArrayLike | None = None, final: ArrayLike = 0.0
) -> int:
    """Return after how many cycles to stop so as not to overrun a time limit.

    Stop before a cycle if the time so far, the predicted time of the cycle and
    the final checkpoint together exceed the limit (paper, section 4).

    Parameters
    ----------
    ends : array_like of float, shape (k,), seconds
        Elapsed time at the end of each cycle, checkpoints included.
    limit : float, seconds
    predicted : array_like of float, shape (k,), seconds, optional
        As in `place_checkpoints`.
    final : float or array_like of float, shape (k,), seconds
        Time to set aside for a last checkpoint.

    Returns
    -------
    int
        k if all cycles are predicted to fit.

    Raises
    ------
    PredictorError
        If shapes disagree or ends decrease.

    Examples
    --------
    >>> stop_before([10, 20, 30, 40], limit=35, final=4)
    3
    """
    done = _cycle_ends(ends)
    before = np.concatenate(([0.0], done[:-1]))
    over = before + _predicted(predicted, done) + np.asarray(final, dtype=float) > limit
    return int(over.argmax()) if over.any() else done.size


@dataclass(frozen=True)
class CyclePlan:
    """One attempt at a run of cycles, laid out in wall time from its start.

    Attributes
    ----------
    ends : numpy.ndarray of float, shape (k,), seconds
        Computation done at the end of each cycle.
    places : numpy.ndarray of int, shape (c,)
        Checkpoints, as counts of finished cycles.
    costs : numpy.ndarray of float, shape (c,), seconds
        What each checkpoint costs.
    stopped_after : int
        Cycles after which the attempt ends by its own decision; k if it does not.
    final_cost : float, seconds
        A last checkpoint at that stop; 0 where it completes.
    limit : float, seconds
        Wall time after which the attempt is killed.
    """

    ends: FloatArray
    places: IntArray
    costs: FloatArray
    stopped_after: int
    final_cost: float = 0.0
    limit: float = np.inf

    @cached_property
    def wall_ends(self) -> FloatArray:
        """Wall time at the end of each cycle, earlier checkpoints included, shape (k,)."""
        paid = np.zeros(self.ends.size + 1)
        np.add.at(paid, self.places, self.costs)
        return np.asarray(self.ends + np.cumsum(paid)[:-1])

    @cached_property
    def saved_ends(self) -> FloatArray:
        """Wall time at which each checkpoint is complete, shape (c,)."""
        return np.asarray(self.wall_ends[self.places - 1] + self.costs)

    @cached_property
    def planned_wall(self) -> float:
        """Wall time at which the attempt would end without a limit or a failure."""
        if self.stopped_after == 0:
            return self.final_cost
        return float(self.wall_ends[self.stopped_after - 1]) + self.final_cost

    @property
    def outcome(self) -> Outcome:
        """How the attempt ends if nothing fails."""
        if self.planned_wall > self.limit:
            return "killed"
        return "completed" if self.stopped_after == self.ends.size else "stopped"

    @property
    def wall(self) -> float:
        """Wall time of the attempt if nothing fails, seconds."""
        return min(self.planned_wall, self.limit)

    def finished(self, elapsed: float) -> int:
        """Return how many cycles are done after so much wall time."""
        done = int(self.wall_ends.searchsorted(elapsed, side="right"))
        return min(done, self.stopped_after)

    def saved(self, elapsed: float) -> int:
        """Return how many cycles survive a failure after so much wall time."""
        kept = 0
        if self.places.size:
            complete = int(self.saved_ends.searchsorted(elapsed, side="right"))
            places = self.places[:complete]
            kept = int(places[places <= self.stopped_after].max(initial=0))
        stopped = self.outcome == "stopped" and elapsed >= self.planned_wall
        return self.stopped_after if stopped else kept

    def overhead(self, elapsed: float) -> float:
        """Return the wall time spent on checkpoints until then, seconds.

        A checkpoint that a failure cuts short counts for the part it took.
        """
        last = min(max(elapsed - (self.planned_wall - self.final_cost), 0.0), self.final_cost)
        if not self.places.size:
            return last
        inside = self.places < self.stopped_after
        begun = np.clip(elapsed - (self.saved_ends - self.costs), 0.0, self.costs)
        return float(begun[inside].sum() + last)

    def computed(self, elapsed: float) -> float:
        """Return the seconds of computation done until then, saved or not."""
        return min(elapsed, self.planned_wall) - self.overhead(elapsed)

    def lost(self, elapsed: float) -> float:
        """Return the seconds of computation that a failure then throws away."""
        kept = self.saved(elapsed)
        beyond = self.computed(elapsed) - (float(self.ends[kept - 1]) if kept else 0.0)
        return max(beyond, 0.0)  # where all is saved, sums may differ in the last digit

    def told_to_stop(self, elapsed: float, cost: FloatArray) -> "CyclePlan":
        """Return the plan of an attempt that is told to checkpoint and stop.

        It finishes the cycle under way, or the checkpoint that it is writing.
        Where it ends by itself by then, nothing changes.

        Parameters
        ----------
        elapsed : float, seconds
            Wall time at which it is told.
        cost : numpy.ndarray of float, shape (k,), seconds
            Of a checkpoint taken before each cycle.

        Examples
        --------
        >>> plan = plan_cycles([4, 8, 12, 16, 20])
        >>> early = plan.told_to_stop(9.0, np.ones(5))
        >>> early.stopped_after, early.wall, early.saved(early.wall)
        (3, 13.0, 3)
        """
        done = self.finished(elapsed)
        last = int(np.searchsorted(self.places, done))
        is_writing = (
            last < self.places.size
            and self.places.item(last) == done
            and elapsed < self.saved_ends.item(last)
        )
        stop = done if is_writing else done + 1
        return self if stop >= self.stopped_after else self._stopped(stop, cost)

    def _stopped(self, after: int, cost: FloatArray) -> "CyclePlan":
        """Return the plan that stops after so many cycles; a checkpoint due there is the final."""
        kept = self.places < after
        return replace(
            self,
            places=self.places[kept],
            costs=self.costs[kept],
            stopped_after=after,
            final_cost=cost.item(after) if after else 0.0,
        )


def plan_cycles(
    ends: ArrayLike,
    interval: ArrayLike = np.inf,
    cost: ArrayLike = 0.0,
    predicted: ArrayLike | None = None,
    limit: float = np.inf,
    stop_in_time: bool = True,
    margin: float = 1.0,
) -> CyclePlan:
    """Lay out an attempt: its checkpoints, and where it stops before a limit.

    Parameters
    ----------
    ends, interval, predicted
        As in `place_checkpoints`.
    cost : float or array_like of float, shape (k,), seconds
        Of a checkpoint taken before each cycle.
    limit : float, seconds
        Wall time allowed; infinite by default.
    stop_in_time : bool
        Checkpoint and stop before a cycle that is predicted to end, with a
        checkpoint, beyond the limit; otherwise run into it and be killed.
    margin : float
        How many times its prediction a cycle is given before the limit; above
        1 where cycles may take longer than predicted.

    Raises
    ------
    PredictorError
        If shapes disagree, ends decrease, an interval, the limit or the margin
        is not positive, or a cost is negative.

    Examples
    --------
    >>> plan = plan_cycles([4, 8, 12, 16, 20], interval=9, cost=1, limit=15)
    >>> plan.places.tolist(), plan.stopped_after, plan.wall, plan.outcome
    ([2], 3, 14.0, 'stopped')
    >>> plan.saved(8.5), plan.saved(9.0), plan.lost(12.0)
    (0, 2, 3.0)
    """
    done = _cycle_ends(ends)
    POSITIVE.check(limit=limit, margin=margin)
    each = np.broadcast_to(np.asarray(cost, dtype=float), done.shape)
    if not (each >= 0.0).all():
        raise PredictorError(f"cost must be at least 0, got {float(each.min())}")
    places = place_checkpoints(done, interval, predicted)
    plan = CyclePlan(done, places, each[places], done.size, limit=limit)
    if not stop_in_time or np.isinf(limit):
        return plan
    expected = margin * _predicted(predicted, done)
    return stopped_in_time(plan, each, expected, plan.wall_ends, plan.limit)


def stopped_in_time(
    plan: CyclePlan, cost: FloatArray, expected: FloatArray, ends: FloatArray, limit: float
) -> CyclePlan:
    """Return the plan that checkpoints and stops before a limit, if it must.

    Parameters
    ----------
    plan : CyclePlan
        Without a stop of its own.
    cost : numpy.ndarray of float, shape (k,), seconds
        Of a checkpoint taken before each cycle.
    expected : numpy.ndarray of float, shape (k,), seconds
        What each cycle is given.
    ends : numpy.ndarray of float, shape (k,), seconds
        End of each cycle by the clock that the limit goes by, checkpoints included.
    limit : float, seconds
    """
    done = plan.ends
    # The last cycle needs no checkpoint after it; a cycle's checkpoint follows it.
    final = np.append(cost[1:], 0.0)
    due = np.diff(plan.wall_ends - done, prepend=0.0)
    stop = stop_before(ends, limit, expected + due, final)
    return plan if stop == done.size else plan._stopped(stop, cost)
