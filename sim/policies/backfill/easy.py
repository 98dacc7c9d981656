"""EASY backfilling: reservations for the first k blocked jobs (Lifka 1995)."""

from typing import Literal

import numpy as np
from numba import njit

from predictors.base import FloatArray, IntArray
from sim.decisions import Decision, Start
from sim.errors import PolicyError
from sim.policies.backfill.outlook import DrainRun, DryRun
from sim.policies.base import Allocation, OpenAllocation, Outlook, QueueKeeper, Scheduler
from sim.policies.molding.scheduler import OpenScheduler
from sim.policies.order import Order
from sim.profile import Profile, reserve_first
from sim.view import View


class Easy:
    """EASY backfilling.

    Parameters
    ----------
    reservations : int
        How many blocked jobs hold a reservation; 1 is EASY as published.
    outlook : {"reservations", "drain"}
        How rules that choose at submit foresee starts: ``reservations`` gives
        every waiting job one, in queue order; ``drain`` runs EASY on without
        arrivals until nothing waits (one reservation alone), which costs more.
    """

    def __init__(
        self, reservations: int = 1, outlook: Literal["reservations", "drain"] = "reservations"
    ) -> None:
        if outlook not in ("reservations", "drain"):
            raise ValueError(f"outlook must be 'reservations' or 'drain', got {outlook!r}")
        if outlook == "drain" and reservations != 1:
            raise ValueError(f"outlook=drain goes with reservations=1 alone, got {reservations}")
        self.outlook = outlook
        if reservations < 1:
            raise ValueError(f"reservations must be at least 1, got {reservations}")
        self.reservations = reservations

    def begin(self, view: View, order: Order, allocation: Allocation | OpenAllocation) -> Scheduler:
        """Begin a run."""
        if isinstance(allocation, OpenAllocation):
            return OpenScheduler(view, order, allocation, self.reservations)
        if self.reservations == 1:
            scheduler = EasyScheduler(view, order, allocation)
            if self.outlook == "drain":
                scheduler.foresee(DrainRun(scheduler))
            return scheduler
        return ManyReservations(view, order, allocation, self.reservations)


@njit(cache=True)
def _fill(
    processors: IntArray,
    runtime: FloatArray,
    first: int,
    last: int,
    free: int,
    spare: int,
    now: float,
    shadow: float,
    found: IntArray,
) -> int:
    """Find, in queue order, the jobs that may start ahead of the reservation."""
    number = 0
    for k in range(first, last):
        wanted = processors[k]
        if wanted == 0 or wanted > free:
            continue
        if now + runtime[k] > shadow:
            if wanted > spare:
                continue
            spare -= wanted
        free -= wanted
        found[number] = k
        number += 1
        if free == 0:
            break
    return number


class EasyScheduler(QueueKeeper):
    """EASY with one reservation, for the head of the queue.

    While nothing but arrivals happens, free processors and the reservation stay
    as they are, and whoever could not start before cannot start now: only the
    newcomers are tried.

    Attributes
    ----------
    heads : int
        How many of the last decisions started heads of the queue.
    """

    def __init__(self, view: View, order: Order, allocation: Allocation) -> None:
        super().__init__(view, order, allocation)
        self._outlook: Outlook = DryRun(self)
        self._found = np.zeros(64, np.int64)
        self._shadow = -1.0
        self._spare = 0
        self.heads = 0

    def foresee(self, outlook: Outlook) -> None:
        """Predict starts in another way."""
        self._outlook = outlook

    def look(self) -> list[Decision]:
        """Start heads while they fit, then fill around the reservation of the next."""
        view, queue = self.view, self.queue
        blocked = queue.waiting > 0
        if view.revised:
            self.refresh()
        for job in view.arrived:
            self.admit(job, self._outlook)
        decisions: list[Decision] = []
        free = view.free
        self.heads = 0
        arrivals_only = (
            blocked
            and self._keyless
            and not (view.ended or view.moved_ends or view.revised or view.disturbed)
        )
        if arrivals_only:
            first = queue.last - len(view.arrived)
        else:
            self.rank()
            free = self._start_heads(free, decisions)
            self.heads = len(decisions)
            if queue.waiting == 0:
                return decisions
            self._reserve(free, decisions)
            first = queue.first + 1
        if free > 0 and queue.last > first:
            self._start_fillers(first, free, decisions)
        return decisions

    def _start_heads(self, free: int, decisions: list[Decision]) -> int:
        queue = self.queue
        while queue.waiting:
            place = queue.head()
            processors = queue.processors.item(place)
            if processors > free:
                break
            decisions.append(Start(queue.job.item(place), processors))
            free -= processors
            queue.drop(place)
        return free

    def _reserve(self, free: int, decisions: list[Decision]) -> None:
        """Find the shadow time of the head, and what it will leave over."""
        view, queue = self.view, self.queue
        wanted = queue.processors.item(queue.first)
        ends = view.believed_ends
        if decisions:
            new = [
                (view.now + view.belief(d.job, d.processors), d.job, d.processors)
                for d in decisions
                if type(d) is Start
            ]
            ends = sorted(ends + new)
        shadow = -1.0
        for end, _, processors in ends:
            if shadow >= 0.0 and end > shadow:
                break
            free += processors
            if free >= wanted and shadow < 0.0:
                shadow = end
        if free < wanted:
            job = queue.job.item(queue.first)
            raise PolicyError(
                f"job index {job} wants {wanted} processors; only {free} will be free"
            )
        self._shadow = shadow
        self._spare = free - wanted

    def _start_fillers(self, first: int, free: int, decisions: list[Decision]) -> None:
        view, queue = self.view, self.queue
        if self._found.size < queue.job.size:
            self._found = np.zeros(queue.job.size, np.int64)
        now, shadow = view.now, self._shadow
        number = _fill(
            queue.processors,
            queue.runtime,
            first,
            queue.last,
            free,
            self._spare,
            now,
            shadow,
            self._found,
        )
        for place in self._found[:number].tolist():
            processors = queue.processors.item(place)
            if now + queue.runtime.item(place) > shadow:
                self._spare -= processors
            decisions.append(Start(queue.job.item(place), processors))
            queue.drop(place)

    def predict(self, counts: IntArray, runtimes: FloatArray) -> FloatArray:
        """Predict when a job that asked for these counts now would start."""
        return self._outlook(counts, runtimes)


class ManyReservations(QueueKeeper):
    """EASY with several reservations, on the availability profile."""

    def __init__(self, view: View, order: Order, allocation: Allocation, reservations: int) -> None:
        super().__init__(view, order, allocation)
        self._outlook = DryRun(self)
        self._reservations = reservations
        self._profile = Profile(view.processors)
        self._found = np.zeros(64, np.int64)

    def look(self) -> list[Decision]:
        """Reserve for the first blocked jobs and start whoever fits without moving them."""
        view, queue = self.view, self.queue
        self.refresh()
        for job in view.arrived:
            self.admit(job, self._outlook)
        self.rank()
        if queue.waiting == 0 or view.free == 0:
            return []
        profile = self._profile
        profile.grow(queue.waiting + len(view.running))
        profile.lay(view.now, view.believed_ends)
        if self._found.size < queue.job.size:
            self._found = np.zeros(queue.job.size, np.int64)
        number = reserve_first(
            profile.times,
            profile.free,
            profile.span,
            view.now,
            queue.processors,
            queue.runtime,
            queue.start,
            queue.first,
            queue.last,
            self._reservations,
            self._found,
        )
        decisions: list[Decision] = []
        for place in self._found[:number].tolist():
            decisions.append(Start(queue.job.item(place), queue.processors.item(place)))
            queue.drop(place)
        return decisions
