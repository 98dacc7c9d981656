"""EASY backfilling that waits for load to pass when that ends a job sooner."""

import numpy as np

from sim.decisions import Decision, Start, WakeAt
from sim.policies.backfill.easy import Easy, EasyScheduler
from sim.policies.base import Allocation, OpenAllocation, Scheduler
from sim.policies.order import Order
from sim.policies.placement import fastest
from sim.view import View


class Patient:
    """EASY whose head of the queue is held back while waiting is predicted to pay.

    A head that fits is put off if it is predicted to end sooner when it starts
    after one of several delays, by more than `margin` of what is left. It is
    reconsidered when the next sample of load is due, `longest` at most after it
    first fitted. Meanwhile others start around its reservation, at the end of
    the delay, as EASY has it. Without background load, or without a prediction
    of what load does to the job, this is EASY.

    Parameters
    ----------
    longest : float
        Seconds that a job is put off at most, in all.
    margin : float
        Share of the time to its end that waiting must save.
    """

    def __init__(self, longest: float = 1800.0, margin: float = 0.1) -> None:
        if not (longest > 0 and np.isfinite(longest)):
            raise ValueError(f"longest must be a positive number of seconds, got {longest}")
        if not 0 <= margin < 1:
            raise ValueError(f"margin must be in [0, 1), got {margin}")
        self.longest = longest
        self.margin = margin

    def begin(self, view: View, order: Order, allocation: Allocation | OpenAllocation) -> Scheduler:
        """Begin a run; allocations that keep counts open are played as EASY plays them."""
        if view.load is None or isinstance(allocation, OpenAllocation):
            return Easy().begin(view, order, allocation)
        return PatientScheduler(view, order, allocation, self.longest, self.margin)


class PatientScheduler(EasyScheduler):
    """Puts heads off while load is predicted to pass.

    Attributes
    ----------
    put_off : float or None
        Until when the head of the queue is put off at this look, seconds.
    """

    def __init__(
        self, view: View, order: Order, allocation: Allocation, longest: float, margin: float
    ) -> None:
        super().__init__(view, order, allocation)
        self._longest = longest
        self._margin = margin
        self._fitted_since: dict[int, float] = {}
        self._woken_at = -np.inf
        self.put_off: float | None = None

    def look(self) -> list[Decision]:
        """Decide as EASY does, but put the head off where that pays."""
        self.put_off = None
        self.view.disturbed = True  # free processors alone do not say who may start
        decisions = super().look()
        if self.put_off is not None and self.put_off > self._woken_at:
            load = self.view.load
            assert load is not None
            soon = self.view.now + load.beliefs.sensors.every
            self._woken_at = min(self.put_off, soon)
            decisions.append(WakeAt(self._woken_at))
        return decisions

    def _start_heads(self, free: int, decisions: list[Decision]) -> int:
        queue = self.queue
        while queue.waiting:
            place = queue.head()
            job, processors = queue.job.item(place), queue.processors.item(place)
            if processors > free:
                break
            self.put_off = self._better_start(job, processors, free)
            if self.put_off is not None:
                break
            self._fitted_since.pop(job, None)
            decisions.append(Start(job, processors))
            free -= processors
            queue.drop(place)
        return free

    def _reserve(self, free: int, decisions: list[Decision]) -> None:
        if self.put_off is None:
            super()._reserve(free, decisions)
            return
        self._shadow = self.put_off
        self._spare = free - self.queue.processors.item(self.queue.first)

    def _better_start(self, job: int, processors: int, free: int) -> float | None:
        """Return when the job had better start; None for now."""
        view, load = self.view, self.view.load
        assert load is not None
        since = self._fitted_since.setdefault(job, view.now)
        left = since + self._longest - view.now
        every = load.beliefs.sensors.every
        if left < every:
            return None
        own = fastest(view, load, job, processors, load.free_processors())
        at_once = view.runtime_on(job, own)
        if at_once is None:
            return None
        best, least = None, at_once * (1.0 - self._margin)
        delay = every
        while delay <= left and delay < least:
            runtime = view.runtime_on(job, own, delay)
            if runtime is not None and delay + runtime < least:
                best, least = view.now + delay, delay + runtime
            delay *= 2.0
        return best
