"""A lone job through failures and walltime limits, without a queue.

The reference against which closed forms and the engine are checked: the job's
nodes are replaced at once, and each attempt is one plan of whole cycles.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predictors.cycles.checkpointing import CyclePlan, plan_cycles
from sim.errors import SimError

FloatArray = NDArray[np.float64]

MOST_ATTEMPTS = 10_000
"""An attempt beyond these means that the job cannot get ahead."""


@dataclass(frozen=True)
class Recovery:
    """What became of a job.

    Attributes
    ----------
    completed : bool
        False if it can never finish: no cycle fits the limit, or every attempt
        is lost.
    wall : float, seconds
        Time that it held its nodes, in all attempts.
    work : float, seconds
        Computation that counts; the whole of it where completed.
    lost : float, seconds
        Computation thrown away.
    overhead : float, seconds
        Checkpoints, complete or cut short.
    restarting : float, seconds
        Restarts, complete or cut short.
    failures, stops, kills : int
        Attempts that ended by a failure, by their own decision, by the limit.
    """

    completed: bool
    wall: float
    work: float
    lost: float
    overhead: float
    restarting: float
    failures: int
    stops: int
    kills: int


class _Tally:
    """Sums over the attempts of one job."""

    def __init__(self) -> None:
        self.wall = self.lost = self.overhead = self.restarting = 0.0
        self.failures = self.stops = self.kills = 0

    def attempt(self, plan: CyclePlan, restarting: float, inside: float) -> int:
        """Count an attempt, its restart and what followed; return cycles kept."""
        self.wall += restarting + inside
        self.restarting += restarting
        self.overhead += plan.overhead(inside)
        if plan.outcome == "completed" and inside >= plan.wall:
            return plan.ends.size
        self.lost += plan.lost(inside)
        return plan.saved(inside)


def recover(
    ends: ArrayLike,
    failures: Iterable[float] = (),
    interval: ArrayLike = inf,
    cost: ArrayLike = 0.0,
    restart: float = 0.0,
    predicted: ArrayLike | None = None,
    limit: float = inf,
    stop_in_time: bool = True,
    margin: float = 1.0,
) -> Recovery:
    """Run a job to its end through failures and limits.

    Parameters
    ----------
    ends : array_like of float, shape (k,), seconds
        Computation done at the end of each cycle.
    failures : iterable of float, seconds
        Times of failures since the first start, rising; may have no end.
    interval, cost, predicted, margin
        As in `predictors.cycles.checkpointing.plan_cycles`, for each cycle of the run.
    restart : float, seconds
        Reading the last checkpoint at the start of every attempt but the first;
        part of the attempt's limit.
    limit : float, seconds
        Wall time of an attempt; then the job is resubmitted.
    stop_in_time : bool
        Checkpoint and stop before the limit, or be killed by it.

    Raises
    ------
    SimError
        If `restart` is negative or not below the limit, or the failures do not rise.

    Examples
    --------
    >>> result = recover([10, 20, 30, 40], failures=[25], interval=20, cost=1, restart=2)
    >>> result.wall, result.lost, result.overhead
    (47.0, 4.0, 1.0)
    """
    done = np.asarray(ends, dtype=float)
    if not 0.0 <= restart < limit:
        raise SimError(f"restart must be at least 0 and below the limit {limit}, got {restart}")
    given = (interval, cost, np.diff(done, prepend=0.0) if predicted is None else predicted)
    columns = [np.broadcast_to(np.asarray(value, dtype=float), done.shape) for value in given]
    return _attempts(done, columns, iter(failures), restart, limit, (stop_in_time, margin))


def _attempts(
    done: FloatArray,
    columns: list[FloatArray],
    failures: Iterator[float],
    restart: float,
    limit: float,
    stopping: tuple[bool, float],
) -> Recovery:
    """Make attempts until the work is done, or none of it can be."""
    tally, first, idle = _Tally(), 0, 0
    failure = next(failures, inf)
    plan: CyclePlan | None = None
    for number in range(MOST_ATTEMPTS):
        again = restart if number else 0.0
        base = float(done[first - 1]) if first else 0.0
        if plan is None:
            between, cost, guess = (column[first:] for column in columns)
            plan = plan_cycles(done[first:] - base, between, cost, guess, limit - again, *stopping)
        until = failure - tally.wall
        failed = until < again + plan.wall
        inside = max(until - again, 0.0) if failed else plan.wall
        kept = tally.attempt(plan, min(again, until), inside)
        if failed:
            tally.failures += 1
            before, failure = failure, next(failures, inf)
            if not failure >= before:
                raise SimError(f"times of failures must rise, got {failure:g} after {before:g}")
        elif plan.outcome == "completed":
            return _result(tally, done, done.size)
        else:
            tally.stops += plan.outcome == "stopped"
            tally.kills += plan.outcome == "killed"
            # Without a failure the same attempt would end the same way again.
            idle = 0 if kept else idle + 1
            if idle > 1:
                return _result(tally, done, first)
        first += kept
        # A repeated attempt has the same plan, but for the limit of the second.
        if kept or (number == 0 and np.isfinite(limit)):
            plan = None
    return _result(tally, done, first)


def _result(tally: _Tally, done: FloatArray, kept: int) -> Recovery:
    """Close the account of a job that keeps so many cycles."""
    return Recovery(
        completed=kept == done.size,
        wall=tally.wall,
        work=float(done[kept - 1]) if kept else 0.0,
        lost=tally.lost,
        overhead=tally.overhead,
        restarting=tally.restarting,
        failures=tally.failures,
        stops=tally.stops,
        kills=tally.kills,
    )
