"""EASY backfilling: reservations for the first k blocked jobs (Lifka 1995)."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from predictors.compiling import compiled, direct
from sim.engine.protocols import Promise, Scheduler, acts_as
from sim.errors import AT_LEAST_1, PolicyError, check_choice
from sim.policies.allocation.rigid import Request
from sim.policies.backfill.queue_search import BackfillWindow, backfill, fill_window
from sim.policies.base import Allocation, OpenAllocation
from sim.policies.molding.base import may_start, mold_first
from sim.policies.molding.scheduler import OpenScheduler
from sim.policies.order import Order
from sim.policies.passes.memory import (
    RuleMemory,
    foreseen,
    is_refuted,
    lay_running,
    profile_of,
)
from sim.policies.passes.queue_rule import QUEUE_FUNCTIONS, QueueKeeper
from sim.state.availability import BelievedEnds, reserve_earliest
from sim.state.run_state import State
from sim.state.run_steps import holders_in
from sim.state.view import View
from sim.state.waiting_queue import Queue, follow, forget_all


@compiled(forceinline=True)
def find_heads(queue: Queue, free: int, backfilling: NDArray[Any]) -> tuple[int, int, bool]:
    """Find the heads that fit, one after the other: the first half of the rule.

    Parameters
    ----------
    queue : Queue
        Places are written to `found`.
    free : int
        Processors.
    backfilling : numpy.ndarray of BACKFILLING, shape (1,)

    Returns
    -------
    tuple of (int, int, bool)
        How many places were found, how many processors stay free, and whether others may start
        behind a head that is blocked.
    """
    at, own, number = queue.at[0], backfilling[0], 0
    while at.first < at.last and queue.processors[at.first] <= free:
        if queue.processors[at.first] > 0:
            free -= queue.processors[at.first]
            queue.found[number] = at.first
            number += 1
        at.first += 1
    own.heads = number
    return number, free, not own.strict and at.first < at.last


@compiled(inline="always")
def find_backfills(
    queue: Queue, holders: BelievedEnds, free: int, now: float, backfilling: NDArray[Any]
) -> int:
    """Reserve for the head that is blocked, and find who does not delay it: the second half.

    Parameters
    ----------
    queue : Queue
    holders : BelievedEnds
    free : int
        Processors that the heads left.
    now : float
        Seconds.
    backfilling : numpy.ndarray of BACKFILLING, shape (1,)

    Returns
    -------
    int
        How many places `found` holds now, those of heads among them.
    """
    follow(queue)
    at, own = queue.at[0], backfilling[0]
    window = BackfillWindow(free, 0, now, np.inf, own.shortest != 0)
    if own.reservations == 0:
        number, _ = fill_window(queue, at.first + 1, at.last, window, own.heads)
    else:
        number, own.shadow_time, own.extra_nodes = backfill(queue, holders, window, own.heads)
    return number


@compiled(inline="always")
def find_newcomers(
    queue: Queue, free: int, now: float, backfilling: NDArray[Any], newcomers: int
) -> int:
    """Find who has just arrived and does not delay the head.

    While nothing but arrivals happens, free processors and the reservation stay as they are,
    and who could not start before cannot start now.
    """
    at, own = queue.at[0], backfilling[0]
    own.heads = 0
    if own.strict or free == 0:
        return 0
    follow(queue)
    extra_nodes = 0 if own.reservations == 0 else own.extra_nodes
    shadow_time = np.inf if own.reservations == 0 else own.shadow_time
    window = BackfillWindow(free, extra_nodes, now, shadow_time, own.shortest != 0)
    number, own.extra_nodes = fill_window(queue, at.last - newcomers, at.last, window, own.heads)
    return number


@compiled
def decide(state: State, memory: RuleMemory) -> int:
    """Find who starts, with a reservation for the first that is blocked, or without any."""
    run, queue, kept = state.run[0], memory.queue, memory.backfilling
    waiting, newcomers = queue.at[0].waiting, run.arrived - run.newcomer
    if waiting == 0:
        return 0
    only_arrivals = waiting > newcomers and run.ended_now + run.expired_now == 0
    if only_arrivals and kept[0].searches_anew == 0:
        return int(find_newcomers(queue, run.free, run.now, kept, newcomers))
    number, free, is_blocked = find_heads(queue, run.free, kept)
    if is_blocked:
        number = find_backfills(queue, holders_in(state), free, run.now, kept)
    return int(number)


@compiled
def decide_deep(state: State, memory: RuleMemory) -> int:
    """Find who starts without moving the reservations of the first blocked jobs.

    A job whose count is settled is one with a single candidate: itself.
    """
    last = memory.queue.at[0].last if may_start(state, memory) else 0
    return mold_first(state, memory, last)


_lay_running, _is_refuted = direct(lay_running), direct(is_refuted)


@dataclass(frozen=True)
class Easy:
    """EASY backfilling.

    Parameters
    ----------
    reservations : int
        How many blocked jobs hold a reservation; 1 is EASY as published.
    anew : float or None
        With one reservation, and allocation rules that choose at submit: waiting jobs
        choose anew when a running job has taken so many times its belief (at least 1);
        None keeps what was chosen. See `EasyScheduler.choose_anew`.
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

    reservations: int = 1
    anew: float | None = None
    candidates: Literal["queue", "shortest"] = "queue"

    def __post_init__(self) -> None:
        AT_LEAST_1.check(reservations=self.reservations)
        AT_LEAST_1.check_or_null(anew=self.anew)
        check_choice(("queue", "shortest"), candidates=self.candidates)
        alone = {"anew": self.anew is not None, "candidates=shortest": self.candidates != "queue"}
        for name, is_asked in alone.items():
            if is_asked and self.reservations != 1:
                raise ValueError(f"{name} needs reservations=1, got {self.reservations}")

    def begin(self, view: View, order: Order, allocation: Allocation | OpenAllocation) -> Scheduler:
        """Begin a run."""
        if isinstance(allocation, OpenAllocation):
            if self.candidates == "shortest":
                name = f"policy.allocation={type(allocation).__name__}, which keeps counts open"
                raise PolicyError(f"candidates=shortest does not go with {name}; choose queue")
            return OpenScheduler(view, order, allocation, self.reservations)
        scheduler = EasyScheduler(view, order, allocation, self.reservations, anew=self.anew)
        scheduler.backfilling["shortest"] = self.candidates == "shortest"
        return scheduler


class EasyScheduler(QueueKeeper):
    """Starts whoever fits and does not delay the first blocked jobs.

    Parameters
    ----------
    view : View
    order : Order
    allocation : Allocation
    reservations : int
        How many blocked jobs hold one that `decides` makes; 0 is first fit by `decide`: anybody
        may be delayed.
    strict : bool
        Nobody passes the head of the queue.
    decides : callable, optional
        The rule, compiled: a state and its `RuleMemory` to how many places it wrote to the
        ``found`` of the queue, of those who start now; `decide` or `decide_deep` by default.
    anew : float, optional
        Of `Easy`.
    known : object
        What stands in the memory at first.
    """

    compiles_keys = True

    def __init__(
        self,
        view: View,
        order: Order,
        allocation: Allocation,
        reservations: int = 1,
        strict: bool = False,
        decides: Any = None,
        anew: float | None = None,
        **known: Any,
    ) -> None:
        if anew is not None and not acts_as(allocation, Request):
            self.chooses_anew, known["refutation_factor"] = True, float(anew)
        self.decides = decides or (decide_deep if reservations > 1 else decide)
        self.functions = QUEUE_FUNCTIONS | {"decide": self.decides}
        super().__init__(view, order, allocation, reservations, strict, **known)
        self.reservations, self.strict = reservations, strict

    @property
    def promise(self) -> Promise | None:
        """The head's start, with a single reservation."""
        return "head" if self.reservations == 1 else None

    @property
    def is_plain(self) -> bool:
        """Whether it is EASY with one reservation, or none, and jobs keep the order of arrival."""
        return acts_as(self, EasyScheduler) and self.by_arrival and self.decides is decide

    @property
    def shadow_time(self) -> float:
        """When the reservation of the head begins, seconds."""
        return float(self.backfilling["shadow_time"].item())

    def reserved_starts(self) -> dict[int, tuple[float, int, float]]:
        """Return start, processors and believed runtime of every reservation of this pass."""
        queue = self.queue
        if queue.waiting == 0 or self.strict or self.reservations != 1:
            return super().reserved_starts()
        place = queue.head()
        count, seconds = queue.processors.item(place), queue.runtime.item(place)
        return {queue.job.item(place): (self.shadow_time, count, seconds)}

    def prepare(self) -> None:
        """Plan with what is believed now; let those choose again who have to."""
        super().prepare()
        if self.chooses_anew and self.queue.waiting > 0:
            is_refuted = _is_refuted(self.view._tables, self.memory.refutation_factor)
            if is_refuted and self.choose_anew():
                self.rank(force=True)

    def find_starts(self) -> int:
        """Find who starts, in the order as it is now; ends matter if the head may be blocked."""
        self.rank()
        view, queue, free = self.view, self.queue, self.view.free
        wanted = queue.processors[queue.places()].sum()
        is_open = self.strict or self.reservations == 0 or wanted <= free
        return int(self._decide(view._state.tables if is_open else view._tables, self.memory))

    def choose_anew(self) -> list[int]:
        """Let each waiting job choose given those ahead; return the places of other choices.

        SA's jobs choose once, by the ends that are believed when they arrive. A job that
        asked for most of the machine, behind one that should soon end, may have chosen
        fewer processors had it known better. The rule is ours. While beliefs hold, as an
        oracle's do, nobody chooses twice: a belief is refuted when a job is still running that
        has outlived its believed end and taken `refutation_factor` times its believed runtime.
        Believed ends grow, at last by doubling, so that it happens again each time.
        """
        view, queue, memory = self.view, self.queue, self.memory
        _lay_running(view._tables, memory)
        changed, view._state.others_wait = [], queue.waiting > 1
        for place in queue.places().tolist():
            job = queue.job.item(place)
            count = self.allocation.choose(
                job, view, lambda n, r: foreseen(view._tables, memory, n, r)
            )
            seconds = view.belief(job, count)
            reserve_earliest(profile_of(memory), view.now, count, seconds)
            if (count, seconds) != (queue.processors.item(place), queue.runtime.item(place)):
                queue.processors[place], queue.runtime[place] = count, seconds
                changed.append(place)
        if changed:
            forget_all(queue.tables)
        return changed
