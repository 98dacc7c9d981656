"""EASY backfilling: reservations for the first k blocked jobs (Lifka 1995)."""

from typing import Literal

import numpy as np

from predictors.compiling import Direct
from sim.errors import PolicyError
from sim.policies.allocation.sa import has_table
from sim.policies.backfill.outlook import ChoiceAnew, DrainRun, DryRun
from sim.policies.backfill.passes import EASY
from sim.policies.backfill.queue_search import BLOCK, Blocks, Opening, fill, merged, reserve
from sim.policies.base import Allocation, OpenAllocation, Outlook, QueueKeeper, Scheduler
from sim.policies.molding.candidates import HELD, HIGH, Candidates
from sim.policies.molding.choice import Blocking, mold_first
from sim.policies.molding.scheduler import OpenScheduler
from sim.policies.order import Order
from sim.state.availability import Profile
from sim.state.decisions import Decision, Start
from sim.state.view import View

_fill, _merged, _reserve = Direct(fill), Direct(merged), Direct(reserve)


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
    anew : float or None
        With one reservation, and allocation rules that choose at submit: waiting jobs
        choose anew when a running job has taken so many times its belief (at least 1);
        None keeps what was chosen. See `ChoiceAnew`.

    Examples
    --------
    >>> import sim
    >>> policy = sim.Policy(sim.ShortestFirst(), Easy(), sim.Request())
    >>> result = sim.run("workload.jobs=20", policy=policy, predictor="oracle")
    >>> set(result.jobs["status"])
    {'completed'}
    """

    def __init__(
        self,
        reservations: int = 1,
        outlook: Literal["reservations", "drain"] = "reservations",
        anew: float | None = None,
    ) -> None:
        if outlook not in ("reservations", "drain"):
            raise ValueError(f"outlook must be 'reservations' or 'drain', got {outlook!r}")
        if outlook == "drain" and reservations != 1:
            raise ValueError(f"outlook=drain goes with reservations=1 alone, got {reservations}")
        self.outlook = outlook
        if reservations < 1:
            raise ValueError(f"reservations must be at least 1, got {reservations}")
        self.reservations = reservations
        if anew is not None and not anew >= 1:
            raise ValueError(f"anew must be at least 1, or null, got {anew}")
        if anew is not None and (reservations != 1 or outlook != "reservations"):
            raise ValueError(
                f"anew goes with reservations=1 and outlook=reservations alone, got {reservations} "
                f"and {outlook!r}"
            )
        self.anew = anew

    def begin(self, view: View, order: Order, allocation: Allocation | OpenAllocation) -> Scheduler:
        """Begin a run."""
        if isinstance(allocation, OpenAllocation):
            return OpenScheduler(view, order, allocation, self.reservations)
        if self.reservations == 1:
            scheduler = EasyScheduler(view, order, allocation)
            if self.outlook == "drain":
                scheduler.foresee(DrainRun(scheduler))
            if self.anew is not None:
                scheduler.anew = ChoiceAnew(scheduler, self.anew)
            return scheduler
        return ManyReservations(view, order, allocation, self.reservations)


class EasyScheduler(QueueKeeper):
    """EASY with one reservation, for the head of the queue.

    While nothing but arrivals happens, free processors and the reservation stay
    as they are, and whoever could not start before cannot start now: only the
    newcomers are tried.

    Attributes
    ----------
    starts_by_place : bool
        Whether it hangs on more than how many processors are free who may start.
    heads : int
        How many of the last decisions started heads of the queue.
    anew : ChoiceAnew or None
        When waiting jobs choose their counts again; None if never.
    """

    starts_by_place = False

    def __init__(self, view: View, order: Order, allocation: Allocation) -> None:
        super().__init__(view, order, allocation)
        self._outlook: Outlook = DryRun(self)
        self._found = np.zeros(64, np.int64)
        self._blocks = Blocks()
        self._shadow = -1.0
        self._spare = 0
        self.heads = 0
        self.anew: ChoiceAnew | None = None

    @property
    def compiled(self) -> int | None:
        """`EASY` where jobs choose by a table, if at all, and keep the order of arrival."""
        plain = type(self) is EasyScheduler and self.is_plain
        return EASY if plain and has_table(self.allocation, self.view) else None

    @property
    def is_plain(self) -> bool:
        """Whether jobs keep the order of arrival, and starts are foreseen by reservations."""
        return self._keyless and isinstance(self._outlook, DryRun)

    @property
    def put_off(self) -> float:
        """Until when a rule lets the head of the queue wait, seconds; past if it may start."""
        return -np.inf

    def reserved_starts(self) -> dict[int, tuple[float, int, float]]:
        """Return the shadow time, processors and believed runtime of the head, if one waits."""
        queue = self.queue
        if queue.waiting == 0:
            return {}
        place = int(queue.places()[0])
        count, seconds = queue.processors.item(place), queue.runtime.item(place)
        return {queue.job.item(place): (self._shadow, count, seconds)}

    def foresee(self, outlook: Outlook) -> None:
        """Predict starts in another way."""
        self._outlook = outlook

    def decide(self) -> list[Decision]:
        """Start heads while they fit, then fill around the reservation of the next."""
        view, queue = self.view, self.queue
        if queue.last > BLOCK:
            queue.tidy()
        blocked = queue.waiting > 0
        if view.revised:
            self.refresh()
            self._blocks.forget()
        if blocked and self.anew is not None and self.anew.is_due and self.anew.choose():
            self._blocks.forget()
            self.rank(whatever=True)
        for job in view.arrived:
            self.admit(job, self._outlook)
        decisions: list[Decision] = []
        free = view.free
        self.heads = 0
        arrivals_only = (
            blocked
            and self._keyless
            and not self.starts_by_place
            and not (view.ended or view.moved_ends or view.revised or view.disturbed)
        )
        if arrivals_only:
            first = queue.last - len(view.arrived)
        else:
            if not self._keyless:
                self.rank()
            free = self._start_heads(free, decisions)
            self.heads = len(decisions)
            if queue.waiting == 0:
                return decisions
            self._reserve(free, decisions)
            first = queue.first + 1
        if free > 0:
            if queue.last - first == 1:
                self._start_lone(first, free, decisions)
            elif queue.last > first:
                self._start_fillers(first, free, not arrivals_only, decisions)
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
        ends, _, held = view.believed_ends
        if decisions:
            started = [d for d in decisions if type(d) is Start]
            new = [view.now + view.belief(start.job, start.processors) for start in started]
            counts = [start.processors for start in started]
            ends, held = _merged(ends, held, np.array(new), np.array(counts))
        self._shadow, self._spare = _reserve(ends, held, free, wanted)
        if self._spare < 0:
            job = queue.job.item(queue.first)
            raise PolicyError(
                f"job index {job} wants {wanted} processors; only {wanted + self._spare} will be "
                "free"
            )

    def _start_lone(self, place: int, free: int, decisions: list[Decision]) -> None:
        """Start the only job behind the reservation if it does not move it, as `fill` would."""
        queue = self.queue
        processors = queue.processors.item(place)
        if not 0 < processors <= free:
            return
        if self.view.now + queue.runtime.item(place) > self._shadow:
            if processors > self._spare:
                return
            self._spare -= processors
        decisions.append(Start(queue.job.item(place), processors))
        queue.drop(place)

    def _start_fillers(self, first: int, free: int, whole: bool, decisions: list[Decision]) -> None:
        queue = self.queue
        now, shadow = self.view.now, self._shadow
        if self._found.size < queue.job.size:
            self._found = np.zeros(queue.job.size, np.int64)
        number = _fill(
            queue.processors,
            queue.runtime,
            first,
            queue.last,
            Opening(free, self._spare, now, shadow),
            whole,
            self._blocks.follow(queue),
            self._found,
        )
        for place in self._found[:number].tolist():
            processors = queue.processors.item(place)
            if now + queue.runtime.item(place) > shadow:
                self._spare -= processors
            decisions.append(Start(queue.job.item(place), processors))
            queue.drop(place)


class ManyReservations(QueueKeeper):
    """EASY with several reservations, on the availability profile.

    A job whose count is settled is one with a single candidate: itself.
    """

    def __init__(self, view: View, order: Order, allocation: Allocation, reservations: int) -> None:
        super().__init__(view, order, allocation)
        self._outlook = DryRun(self)
        self._reservations = reservations
        self._profile = Profile(view.processors)
        self._found = np.zeros(0, np.int64)
        self._spans = np.zeros((HELD + 1, 0), np.int64)

    def decide(self) -> list[Decision]:
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
        room = queue.job.size
        if self._found.size < room:
            self._found = np.zeros(room, np.int64)
            self._spans = np.stack([np.arange(room) + (row == HIGH) for row in range(HELD)])
            self._spans = np.concatenate([self._spans, np.zeros((1, room), np.int64)])
        number = mold_first(
            profile.holes,
            view.now,
            queue.table,
            Candidates(self._spans, queue.processors, queue.runtime, queue.start),
            queue.first,
            queue.last,
            Blocking(self._reservations, strict=False, slack=-1.0),
            self._found,
        )
        decisions: list[Decision] = []
        for place in self._found[:number].tolist():
            decisions.append(Start(queue.job.item(place), queue.processors.item(place)))
            queue.drop(place)
        return decisions
