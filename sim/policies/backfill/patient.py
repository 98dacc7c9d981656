"""EASY backfilling that waits for load to pass when that ends a job sooner."""

from typing import NamedTuple

import numpy as np

from predictors.base import IntArray
from sim.decisions import Decision, Start, WakeAt
from sim.load_outlook import LoadOutlook
from sim.policies.backfill.easy import Easy, EasyScheduler
from sim.policies.base import Allocation, OpenAllocation, Scheduler
from sim.policies.order import Order
from sim.policies.placement import fastest, named
from sim.processors import as_numbers
from sim.view import View


class Waiting(NamedTuple):
    """Until when the head of the queue is put off, in seconds, and for which processors."""

    until: float
    own: IntArray


class Patient:
    """EASY whose head of the queue is held back while waiting is predicted to pay.

    On the same processors a later start never ends sooner, however load changes; on
    others it may: a head that fits is put off if it is predicted to end sooner on
    processors some of which running jobs will have left by then, by more than `margin`
    of the time to its end. Instants tried are the believed ends of running jobs.
    The head is reconsidered at every look, and when the next sample of load is due;
    it is put off for `longest` in all since it first fitted. Others start around its
    reservation as EASY has it, and on other processors than the head wants if they
    run for longer. Starts are placed as ``placement=fastest`` places them. Without
    background load, or without a prediction of what load does to the job, this is EASY.

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
        return PatientScheduler(view, view.load, order, allocation, self)


class PatientScheduler(EasyScheduler):
    """Puts heads off while faster processors are predicted to come free.

    Attributes
    ----------
    waiting : Waiting or None
        What the head of the queue is put off for at this look.
    """

    def __init__(
        self, view: View, load: LoadOutlook, order: Order, allocation: Allocation, rule: Patient
    ) -> None:
        super().__init__(view, order, allocation)
        self._load = load
        self._rule = rule
        self._fitted_since: dict[int, float] = {}
        self._woken_at = -np.inf
        self._pool = np.zeros(0, np.int64)
        self.waiting: Waiting | None = None

    def look(self) -> list[Decision]:
        """Decide as EASY does, but put the head off where that pays."""
        self.waiting = None
        self.view.disturbed = True  # free processors alone do not say who may start
        self._pool = self._load.free_processors()
        decisions = super().look()
        placed: list[Decision] = [
            self._placed(one) if type(one) is Start and one.nodes is None else one
            for one in decisions
        ]
        if self.waiting is not None and self.waiting.until > self._woken_at:
            soon = self.view.now + self._load.every
            self._woken_at = min(self.waiting.until, soon)
            placed.append(WakeAt(self._woken_at))
        return placed

    def _start_heads(self, free: int, decisions: list[Decision]) -> int:
        queue = self.queue
        while queue.waiting:
            place = queue.head()
            job, processors = queue.job.item(place), queue.processors.item(place)
            if processors > free:
                break
            self.waiting = self._better_start(job, processors)
            if self.waiting is not None:
                break
            self._fitted_since.pop(job, None)
            decisions.append(self._placed(Start(job, processors)))
            free -= processors
            queue.drop(place)
        return free

    def _reserve(self, free: int, decisions: list[Decision]) -> None:
        if self.waiting is None:
            super()._reserve(free, decisions)
            return
        self._shadow = self.waiting.until
        self._spare = free - int(np.isin(self.waiting.own, self._pool).sum())

    def _placed(self, start: Start) -> Start:
        """Name the processors of a start; who outlasts the wait leaves those that are wanted."""
        view, best = self.view, self._pool
        if self.waiting is not None:
            job, count = start.job, start.processors
            others = np.setdiff1d(best, self.waiting.own, assume_unique=True)
            if count <= others.size and view.now + view.belief(job, count) > self.waiting.until:
                best = others
        start, self._pool = named(view, self._load, start, self._pool, best)
        return start

    def _better_start(self, job: int, processors: int) -> Waiting | None:
        """Return when, and on what, the job had better start; None for now.

        None too where it is to start on processors that others are yet to give up.
        """
        view, load, pool = self.view, self._load, self._pool
        if processors > pool.size:
            return None
        last = self._fitted_since.setdefault(job, view.now) + self._rule.longest
        at_once = view.runtime_on(job, fastest(view, load, job, processors, pool))
        if at_once is None:
            return None
        best, least = None, at_once * (1.0 - self._rule.margin)
        for end, running, _ in view.believed_ends:
            if end > last or end - view.now >= least:
                break
            pool = np.union1d(pool, as_numbers(view.running[running].nodes))
            if end > view.now:
                delay = end - view.now
                own = fastest(view, load, job, processors, pool, delay)
                runtime = view.runtime_on(job, own, delay)
                if runtime is not None and delay + runtime < least:
                    best, least = Waiting(end, own), delay + runtime
        return best
