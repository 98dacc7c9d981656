"""EASY backfilling: reservations for the first k blocked jobs (Lifka 1995)."""

from typing import Literal

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import direct
from sim.errors import AT_LEAST_1, PolicyError, check_choice
from sim.policies.allocation.sa import has_table
from sim.policies.backfill.queue_search import BLOCK, Blocks, Opening, backfill, fill, find_heads
from sim.policies.backfill.reservations import replan
from sim.policies.base import (
    EASY,
    STRICT,
    Allocation,
    OpenAllocation,
    Outlook,
    QueueKeeper,
    Scheduler,
)
from sim.policies.molding.candidates import Candidates, single_candidates
from sim.policies.molding.choice import Blocking, mold_first
from sim.policies.molding.scheduler import OpenScheduler
from sim.policies.order import Order
from sim.state.availability import Profile
from sim.state.decisions import Decision
from sim.state.view import View

_find_heads, _fill, _backfill = direct(find_heads), direct(fill), direct(backfill)


class Easy:
    """EASY backfilling.

    Parameters
    ----------
    reservations : int
        How many blocked jobs hold a reservation; 1 is EASY as published.
    anew : float or None
        With one reservation, and allocation rules that choose at submit: waiting jobs
        choose anew when a running job has taken so many times its belief (at least 1);
        None keeps what was chosen. See `ChoiceAnew`.
    candidates : {"queue", "shortest"}
        In which order jobs are tried that may start ahead of the reservation: that of the
        queue, or the shortest by belief first, as in EASY++ (Tsafrir, Etsion &
        Feitelson, TPDS 2007), with one reservation.

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
        anew: float | None = None,
        candidates: Literal["queue", "shortest"] = "queue",
    ) -> None:
        AT_LEAST_1.check(reservations=reservations)
        self.reservations = reservations
        AT_LEAST_1.check_or_null(anew=anew)
        if anew is not None and reservations != 1:
            raise ValueError(f"anew needs reservations=1, got {reservations}")
        self.anew = anew
        check_choice(("queue", "shortest"), candidates=candidates)
        if candidates == "shortest" and reservations != 1:
            raise ValueError(f"candidates=shortest needs reservations=1, got {reservations}")
        self.candidates = candidates

    def begin(self, view: View, order: Order, allocation: Allocation | OpenAllocation) -> Scheduler:
        """Begin a run."""
        if isinstance(allocation, OpenAllocation):
            if self.candidates == "shortest":
                name = f"policy.allocation={type(allocation).__name__}, which keeps counts open"
                raise PolicyError(f"candidates=shortest does not go with {name}; choose queue")
            return OpenScheduler(view, order, allocation, self.reservations)
        scheduler = EasyScheduler(view, order, allocation, self.reservations)
        scheduler.shortest = self.candidates == "shortest"
        if self.anew is not None:
            scheduler.anew = ChoiceAnew(scheduler, self.anew)
        return scheduler


class EasyScheduler(QueueKeeper):
    """Starts whoever fits and does not delay the first blocked jobs.

    While nothing but arrivals happens, free processors and a single reservation stay
    as they are, and whoever could not start before cannot start now: only the
    newcomers are tried.

    Parameters
    ----------
    view : View
    order : Order
    allocation : Allocation
    reservations : int
        How many blocked jobs hold one; 0 is first fit: anybody may be delayed.
    strict : bool
        Nobody passes the head of the queue.

    Attributes
    ----------
    outlook : callable
        Predicts starts for allocation rules.
    heads : int
        How many of the last decisions started heads of the queue.
    anew : ChoiceAnew or None
        When waiting jobs choose their counts again; None if never.
    shortest : bool
        Whether the shortest jobs are tried first ahead of the reservation.
    """

    shortest = False

    def __init__(
        self,
        view: View,
        order: Order,
        allocation: Allocation,
        reservations: int = 1,
        strict: bool = False,
    ) -> None:
        super().__init__(view, order, allocation)
        self.reservations, self.strict = reservations, strict
        self.outlook: Outlook = DryRun(self)
        self._blocks = Blocks()
        self._shadow, self._spare = -1.0 if reservations else np.inf, 0
        self._profile, self._spans = Profile(view.processors), np.zeros((0, 0), np.int64)
        self.heads = 0
        self.anew: ChoiceAnew | None = None

    @property
    def compiled(self) -> int | None:
        """`EASY` or `STRICT` where jobs choose by a table, if at all, and none is passed over."""
        plain = self.is_plain and self.reservations > 0 and has_table(self.allocation, self.view)
        return (STRICT if self.strict else EASY) if plain else None

    @property
    def is_plain(self) -> bool:
        """Whether jobs keep the order of arrival, and starts are foreseen by reservations."""
        plain = type(self) is EasyScheduler and self._keyless
        return plain and isinstance(self.outlook, DryRun)

    def reserved_starts(self) -> dict[int, tuple[float, int, float]]:
        """Return start, processors and believed runtime of every reservation of this pass."""
        queue = self.queue
        if queue.waiting == 0 or self.strict or self.reservations != 1:
            return super().reserved_starts()
        place = queue.head()
        count, seconds = queue.processors.item(place), queue.runtime.item(place)
        return {queue.job.item(place): (self._shadow, count, seconds)}

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
            self.admit(job, self.outlook)
        if queue.waiting == 0:
            return []
        arrivals_only = (
            blocked
            and self._keyless
            and self.reservations <= 1
            and not (view.ended or view.moved_ends or view.revised or view.disturbed)
        )
        if not arrivals_only:
            self.rank()
            number = self._find()
        else:
            self.heads, first = 0, queue.last - len(view.arrived)
            number = 0 if self.strict else self._find_fillers(first, view.free, whole=False)
        return [self.start(place) for place in queue.found[:number].tolist()] if number else []

    def _find(self) -> int:
        """Find who starts, and reserve for the next; return how many places were found."""
        if self.reservations > 1:
            return self._reserve_many()
        queue = self.queue
        self.heads, queue.first, free = self._find_heads()
        if self.strict or queue.first == queue.last:
            return self.heads
        if not self.reservations:
            return self._find_fillers(queue.first + 1, free)
        return self._reserve_and_fill(free)

    def _reserve_and_fill(self, free: int) -> int:
        """Reserve for the head that does not fit, and find who may start around it."""
        queue = self.queue
        number, self._shadow, self._spare = _backfill(
            self.view._ends,
            queue.table,
            queue.first,
            queue.last,
            Opening(free, 0, self.view.now, 0.0, self.shortest),
            self._blocks.follow(queue),
            self.heads,
            queue.found,
        )
        if self._spare < 0:
            job, wanted = queue.job.item(queue.first), queue.processors.item(queue.first)
            raise PolicyError(
                f"job index {job} wants {wanted} processors; only {wanted + self._spare} will be "
                "free"
            )
        return int(number)

    def _find_heads(self) -> tuple[int, int, int]:
        """Return how many heads start, the place of the next, and what stays free."""
        queue = self.queue
        heads: tuple[int, int, int] = _find_heads(
            queue.processors, queue.first, queue.last, self.view.free, queue.found
        )
        return heads

    def _find_fillers(self, first: int, free: int, whole: bool = True) -> int:
        """Find who starts from a place on around the reservation as it is, behind the heads."""
        queue = self.queue
        if free == 0 or first == queue.last:
            return self.heads
        number, self._spare = _fill(
            queue.processors,
            queue.runtime,
            first,
            queue.last,
            Opening(free, self._spare, self.view.now, self._shadow, self.shortest),
            whole,
            self._blocks.follow(queue),
            queue.found[self.heads :],
        )
        return self.heads + int(number)

    def _reserve_many(self) -> int:
        """Reserve for the first blocked jobs, and find who starts without moving them.

        A job whose count is settled is one with a single candidate: itself.
        """
        view, queue, profile = self.view, self.queue, self._profile
        if view.free == 0:
            return 0
        profile.grow(queue.waiting + view._ends.end.size)
        profile.lay(view.now, view._ends)
        room = queue.job.size
        if self._spans.shape[1] < room:
            self._spans = single_candidates(room)
        number = mold_first(
            profile.holes,
            view.now,
            queue.table,
            Candidates(self._spans, queue.processors, queue.runtime, queue.start),
            queue.first,
            queue.last,
            Blocking(self.reservations, strict=False, slack=-1.0),
            queue.found,
        )
        return int(number)


class DryRun:
    """Predicts starts by giving every waiting job a reservation in queue order.

    Used by policies that hold no reservations of their own; a conservative
    policy asks its live profile instead.

    Parameters
    ----------
    keeper : QueueKeeper
        Whose queue to lay out.
    """

    def __init__(self, keeper: QueueKeeper) -> None:
        self._keeper = keeper
        self._profile = Profile(keeper.view.processors)

    def __call__(self, counts: IntArray, runtimes: FloatArray) -> FloatArray:
        """Return the earliest start of each (count, runtime), in seconds."""
        view, queue, profile = self._keeper.view, self._keeper.queue, self._profile
        profile.grow(queue.waiting + view._ends.end.size)
        profile.lay(view.now, view._ends)
        foreseen = queue.table._replace(starts=queue.start.copy())
        replan(profile.holes, view.now, foreseen, queue.first, queue.last)
        return profile.earliest_of(view.now, counts, runtimes)


class ChoiceAnew:
    """Lets all that wait choose again, in queue order, when a belief proves wrong.

    SA's jobs choose once, by the ends that are believed when they arrive. A job that
    asked for most of the machine, behind one that should soon end, may have chosen
    fewer processors had it known better. The rule is ours. While beliefs hold, as an
    oracle's do, nobody chooses twice.

    Parameters
    ----------
    keeper : QueueKeeper
        Whose queue it is.
    factor : float
        A belief is refuted when a job is still running that has outlived its believed end
        and taken so many times its believed runtime; at least 1. Believed ends
        double, so that it happens again at each doubling.
    """

    def __init__(self, keeper: QueueKeeper, factor: float) -> None:
        self._keeper = keeper
        self.factor = factor
        self._profile = Profile(keeper.view.processors)

    @property
    def is_due(self) -> bool:
        """Whether a running job has refuted its belief since the last pass."""
        view = self._keeper.view
        for run, before in view.moved_ends.items():
            outlived = before <= view.now < run.believed_end and run.changed == run.start
            if outlived and view.running.get(run.job) is run:
                believed = view.belief(run.job, run.processors)
                if before - run.start >= self.factor * believed * (1.0 - 1e-9):
                    return True
        return False

    def choose(self) -> bool:
        """Let each waiting job choose given those ahead of it; say whether any choice changed."""
        view, queue, profile = self._keeper.view, self._keeper.queue, self._profile
        profile.grow(queue.waiting + len(view.running))
        profile.lay(view.now, view._ends)
        changed, view._others_wait = False, queue.waiting > 1
        for place in queue.places().tolist():
            job = queue.job.item(place)
            count = self._keeper.allocation.choose(
                job, view, lambda n, r: profile.earliest_of(view.now, n, r)
            )
            seconds = view.belief(job, count)
            profile.place(view.now, count, seconds)
            if (count, seconds) != (queue.processors.item(place), queue.runtime.item(place)):
                queue.processors[place], queue.runtime[place] = count, seconds
                changed = True
        return changed
