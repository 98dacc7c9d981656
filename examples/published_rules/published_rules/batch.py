"""Batches: whoever waits when the machine falls idle is planned for the least makespan."""

from typing import Literal

import numpy as np

from predictors.base import IntArray
from published_rules.deadlines import allot
from published_rules.shelves import Curve, Slot, two_shelves
from sim.engine.protocols import Scheduler
from sim.errors import AT_LEAST_1, POSITIVE, PolicyError, check_choice
from sim.policies.advice import JobCurve, raised
from sim.policies.base import Allocation, OpenAllocation
from sim.policies.molding.scheduler import OpenQueueScheduler
from sim.policies.order import Order
from sim.state.decisions import Decision, WakeAt
from sim.state.view import View

Method = Literal["ludwig_tiwari", "mounie_rapine_trystram"]


class Batches:
    """Two-phase makespan scheduling, batch after batch: a yardstick, not an online rule.

    When nothing runs, the first waiting jobs become a batch; the next batch
    waits until it is over. For a batch that is there from the start and whose
    believed runtimes are true, the makespan is bounded:

    - ``ludwig_tiwari``: choose counts that minimise max(longest time, area/P),
      ω; then start anything that fits, in queue order: at most 2ω, and ω is at
      most the least makespan (Turek, Wolf & Yu 1992; Ludwig & Tiwari 1994). Of
      the counts that meet a deadline it takes the leanest, so that area may fall.
    - ``mounie_rapine_trystram``: two shelves, at most 3/2 + ε of the least
      makespan for monotone moldable jobs (Mounié, Rapine & Trystram 2007);
      it plans with times raised until area does not fall; where its plan does
      not exist, as with rigid jobs, the first method.

    Parameters
    ----------
    method : {"ludwig_tiwari", "mounie_rapine_trystram"}
    depth : int
        Most jobs of a batch, at least 1.
    epsilon : float
        How exactly the second method bisects, positive.
    """

    def __init__(
        self, method: Method = "ludwig_tiwari", depth: int = 256, epsilon: float = 0.01
    ) -> None:
        check_choice(("ludwig_tiwari", "mounie_rapine_trystram"), method=method)
        AT_LEAST_1.check(depth=depth)
        POSITIVE.check(epsilon=epsilon)
        self.method = method
        self.depth = depth
        self.epsilon = epsilon

    def begin(self, view: View, order: Order, allocation: Allocation | OpenAllocation) -> Scheduler:
        """Begin a run."""
        if not isinstance(allocation, OpenAllocation):
            raise PolicyError(
                "policy.backfill=batches plans counts itself; choose an allocation that keeps "
                f"them open, such as turnaround, in place of {type(allocation).__name__}"
            )
        return BatchScheduler(view, order, allocation, self)


class BatchScheduler(OpenQueueScheduler):
    """Plans a batch when the machine is idle, and follows the plan."""

    def __init__(self, view: View, order: Order, allocation: OpenAllocation, rule: Batches) -> None:
        super().__init__(view, order, allocation)
        self._rule = rule
        self._batch: set[int] = set()
        self._planned: dict[int, float] = {}
        self._waking = np.inf

    def decide(self) -> list[Decision]:
        """Begin a batch if nothing runs, then start its jobs whose time has come."""
        view, queue = self.view, self.queue
        self.candidates.watch()
        self.revise()
        for job in view.arrived:
            self.admit(job)
        if queue.waiting == 0:
            return []
        if not self._batch and not view.running:
            self._begin_batch()
        if not self._planned:
            return self._start_what_fits()
        return self._follow_plan()

    def reserved_starts(self) -> dict[int, tuple[float, int, float]]:
        """Return what the plan of the batch says, where it has instants."""
        queue, place_of = self.queue, self.queue.place_of()
        return {
            job: (start, queue.processors.item(place), queue.runtime.item(place))
            for job, start in self._planned.items()
            if (place := place_of.get(job)) is not None
        }

    def _begin_batch(self) -> None:
        queue, offers = self.queue, self.memory.menu_spans
        self.rank()
        self.candidates.narrow(self.memory)
        places = queue.places()[: self._rule.depth]
        pick = np.zeros(places.size, np.int64)
        jobs = queue.job[places]
        low, high = offers["low"][jobs], offers["high"][jobs]
        self._batch = set(jobs.tolist())
        slots = None
        if self._rule.method == "mounie_rapine_trystram":
            slots = self._two_shelves(places)
        if slots is None:
            allot(self.view.processors, self.counts, self.runtimes, low, high, pick)
        else:
            for slot in slots:
                pick[slot.job] = low[slot.job] + slot.pick
                self._planned[jobs.item(slot.job)] = self.view.now + slot.start
        queue.processors[places], queue.runtime[places] = self.counts[pick], self.runtimes[pick]

    def _two_shelves(self, places: IntArray) -> list[Slot] | None:
        """Plan the jobs at places on two shelves, with raised times; None if there is no plan."""
        serial_time = self.memory.molding.serial_time[self.queue.job[places]].tolist()
        readings = [
            JobCurve(*self.allowed(k), s) for k, s in zip(places.tolist(), serial_time, strict=True)
        ]
        curves = [Curve(*raised(reading)[:2]) for reading in readings]
        counts = np.concatenate([curve.counts for curve in curves])
        runtimes = np.concatenate([curve.runtimes for curve in curves])
        high = np.cumsum([curve.counts.size for curve in curves])
        low = np.concatenate([[0], high[:-1]])
        processors = self.view.processors
        bound = allot(processors, counts, runtimes, low, high, np.zeros(places.size, np.int64))
        return two_shelves(curves, processors, bound, self._rule.epsilon)

    def _start_what_fits(self) -> list[Decision]:
        queue, free = self.queue, self.view.free
        decisions: list[Decision] = []
        for place in queue.places().tolist():
            if queue.job.item(place) not in self._batch:
                continue
            count = queue.processors.item(place)
            if count <= free:
                free -= count
                self._batch.discard(queue.job.item(place))
                decisions.append(self.start(place))
        return decisions

    def _follow_plan(self) -> list[Decision]:
        """Start what is due and fits, in planned order; an idle machine takes the next at once."""
        queue, view = self.queue, self.view
        place_of = queue.place_of()
        waiting = sorted(self._planned, key=lambda job: (self._planned[job], job))
        free = view.free
        decisions: list[Decision] = []
        for job in waiting:
            idle = free == view.processors
            if self._planned[job] > view.now and not idle:
                self._wake(self._planned[job], decisions)
                break
            count = queue.processors.item(place_of[job])
            if count <= free:
                free -= count
                del self._planned[job]
                self._batch.discard(job)
                decisions.append(self.start(place_of[job]))
        return decisions

    def _wake(self, time: float, decisions: list[Decision]) -> None:
        if time != self._waking:
            self._waking = time
            decisions.append(WakeAt(time))
