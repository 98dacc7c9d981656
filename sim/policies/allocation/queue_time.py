"""Queue-time-aware choice: some processors now or more of them later (Downey, JSSPP'97)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from predictors.base import FloatArray, IntArray
from sim.policies.allocation.equal_share import Cap, CappedMenu, CappedMolder
from sim.policies.allocation.queue_time_kernels import settle_heads
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


class QueueTimeMolder(CappedMolder):
    """Settles heads one after the other, until one prefers to wait."""

    def __init__(self, view: View, rule: QueueTimeAware) -> None:
        super().__init__(view, rule)
        self._queue_time = QUEUE_TIMES.index(rule.queue_time)
        self._longest = float(rule.longest)
        self._held: IntArray = np.zeros(64, np.int64)
        self._clock: FloatArray = np.zeros(64)

    def mold(self, queue: OpenQueue) -> None:
        """Fix the counts of the heads that start now and of the first that waits."""
        view = self.view
        number, now = len(view.running), view.now
        if self._held.size < number + queue.waiting:
            self._held = np.zeros(2 * (number + queue.waiting), np.int64)
            self._clock = np.zeros(self._held.size)
        if self._queue_time == 0:
            runs = [(end - now, count) for end, job, count in view.believed_ends if job >= 0]
        else:
            runs = [(now - run.start, run.processors) for run in view.running.values()]
        self._clock[:number] = [instant for instant, _ in runs]
        self._held[:number] = [count for _, count in runs]
        settle_heads(
            queue.counts, queue.runtimes, queue.offer, queue.size, queue.processors,
            queue.first, queue.last, view.free, number, self._held, self._clock,
            self._queue_time, self._longest, queue.low, queue.high,
        )  # fmt: skip
