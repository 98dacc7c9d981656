"""Queue-time-aware choice: some processors now or more of them later (Downey, JSSPP'97)."""

from dataclasses import dataclass
from math import inf
from typing import Literal

import numpy as np
from numba import njit

from predictors.base import FloatArray, IntArray
from sim.policies.allocation.equal_share import Cap, CappedMenu, CappedMolder
from sim.policies.molding.base import Molder
from sim.policies.molding.menus import OpenQueue
from sim.view import View

QUEUE_TIMES = ("believed", "median", "mean")


@dataclass(frozen=True, kw_only=True)
class QueueTimeAware(CappedMenu):
    """The head takes the n up to its cap that minimises q(n) + T(n), anew at each event.

    q(n) is the predicted time until n processors are free, 0 for n <= F.
    Downey (JSSPP'97; IPPS'97), from memory. Use with ``backfill=none``.

    Parameters
    ----------
    queue_time : {"believed", "median", "mean"}
        ``believed`` trusts the believed ends of the running jobs. The others
        know ages alone and take lifetimes as log-uniform up to `longest`:
        ``median`` is Downey's predictor A (the first of the jobs that alone
        would free enough processors; the mean where there is none such),
        ``mean`` his predictor B, our reading: the time at which the expected
        number of free processors reaches n.
    longest : float, seconds
        Longest lifetime that the predictors reckon with; a job that is older
        is expected to end now.
    """

    cap: Cap = "average"
    queue_time: Literal["believed", "median", "mean"] = "believed"
    longest: float = 163_000.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.queue_time not in QUEUE_TIMES:
            raise ValueError(
                f"queue_time must be 'believed', 'median' or 'mean', got {self.queue_time!r}"
            )
        if not self.longest > 1:
            raise ValueError(f"longest must be above 1 s, got {self.longest}")

    def open(self, view: View) -> Molder:
        """Begin a run."""
        return QueueTimeMolder(view, self)


@njit(cache=True)
def survival(age: float, longest: float, wait: float) -> float:
    """Return how probably a job of this age runs on for `wait` more seconds.

    Lifetimes L are log-uniform up to `longest`: P(L > t | L > a) =
    (ln longest - ln t) / (ln longest - ln a). Ages below 1 s count as 1 s.

    Examples
    --------
    >>> survival(1.0, 10_000.0, 0.0), round(survival(100.0, 10_000.0, 900.0), 3)
    (1.0, 0.5)
    """
    age = max(age, 1.0)
    if age + wait >= longest:
        return 0.0
    return float(np.log(longest / (age + wait)) / np.log(longest / age))


@njit(cache=True)
def first_end(processors: IntArray, age: FloatArray, needed: int, longest: float) -> float:
    """Return the median time until one of the jobs with enough processors ends, in seconds.

    Infinite where no job alone would free as many as `needed`.
    """
    low, high = 0.0, longest
    if processors.size == 0 or processors.max() < needed:
        return np.inf
    for _ in range(40):
        middle = 0.5 * (low + high)
        still = 1.0
        for k in range(age.size):
            if processors[k] >= needed:
                still *= survival(age[k], longest, middle)
        if still <= 0.5:
            high = middle
        else:
            low = middle
    return high


@njit(cache=True)
def expected_end(processors: IntArray, age: FloatArray, needed: int, longest: float) -> float:
    """Return when the expected number of freed processors reaches `needed`, in seconds."""
    low, high = 0.0, longest
    for _ in range(40):
        middle = 0.5 * (low + high)
        freed = 0.0
        for k in range(age.size):
            freed += processors[k] * (1.0 - survival(age[k], longest, middle))
        if freed >= needed - 1e-9:
            high = middle
        else:
            low = middle
    return high


@njit(cache=True)
def believed_end(processors: IntArray, left: FloatArray, needed: int) -> float:
    """Return when enough processors are free by the believed ends, in seconds from now."""
    freed = 0
    for k in np.argsort(left, kind="mergesort"):
        freed += processors[k]
        if freed >= needed:
            return float(left[k])
    return np.inf


@njit(cache=True)
def best_wait(
    counts: IntArray,
    runtimes: FloatArray,
    free: int,
    processors: IntArray,
    age: FloatArray,
    left: FloatArray,
    queue_time: int,
    longest: float,
) -> int:
    """Return the dish that minimises q(n) + T(n), ties to the smaller count.

    `queue_time` is the place of its name in `QUEUE_TIMES`.
    """
    best, least = 0, np.inf
    for dish in range(counts.size):
        if runtimes[dish] >= least:
            continue
        wait, needed = 0.0, counts[dish] - free
        if needed > 0 and queue_time == 0:
            wait = believed_end(processors, left, needed)
        elif needed > 0:
            wait = first_end(processors, age, needed, longest) if queue_time == 1 else np.inf
            if wait == np.inf:
                wait = expected_end(processors, age, needed, longest)
        if wait + runtimes[dish] < least:
            best, least = dish, wait + runtimes[dish]
    return best


class QueueTimeMolder(CappedMolder):
    """Settles heads one after the other, until one prefers to wait."""

    def __init__(self, view: View, rule: QueueTimeAware) -> None:
        super().__init__(view, rule)
        self._rule = rule

    def mold(self, queue: OpenQueue) -> None:
        """Fix the counts of the heads that start now and of the first that waits."""
        queue.allow_all()
        view = self.view
        runs = [(r.processors, view.now - r.start, r.believed_end - view.now)
                for r in view.running.values()]  # fmt: skip
        which, free = QUEUE_TIMES.index(self._rule.queue_time), view.free
        places = queue.places()
        targets: FloatArray = np.full(queue.waiting, inf)
        for i, place in enumerate(places.tolist()):
            counts, runtimes = queue.menu(place)
            may_wait = counts.item(-1) > free
            table = np.array(runs if may_wait else (), np.float64).reshape(-1, 3)
            held, age, left = np.ascontiguousarray(table.T)
            best = best_wait(
                counts,
                runtimes,
                free,
                held.astype(np.int64),
                age,
                left,
                which,
                self._rule.longest,
            )
            targets[i] = count = int(counts[best])
            if count > free:
                break
            free -= count
            runs.append((count, 0.0, float(runtimes[best])))
        queue.fix(places, targets)
