"""EASY backfilling: reservations for the first k blocked jobs (Lifka 1995), or for none.

A queue is searched for jobs that may start before a reservation by summaries of its blocks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import frexp
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled, direct
from sim.engine.protocols import Promise, Scheduler, is_exactly
from sim.errors import AT_LEAST_1, PolicyError, check_choices
from sim.policies.allocation.rigid import Request
from sim.policies.base import Allocation, OpenAllocation
from sim.policies.molding.scheduler import OpenScheduler
from sim.policies.order import Order
from sim.policies.passes.memory import RuleMemory, first_starts, is_refuted, lay_running, profile_of
from sim.policies.passes.queue_rule import QUEUE_FUNCTIONS, QueueScheduler
from sim.state.availability import BelievedEnds, reserve_earliest
from sim.state.run_state import RunState
from sim.state.run_steps import holders_in
from sim.state.view import View
from sim.state.waiting_queue import BLOCK, WHOLE, Queue, drop_stale, forget_all


@compiled(forceinline=True)
def shadow_and_extra(
    ends: FloatArray, held: IntArray, number: int, free: int, wanted: int, seconds: float
) -> tuple[float, int]:
    """Return the shadow time of a job that is blocked, and what it will leave over then.

    Parameters
    ----------
    ends, held : numpy.ndarray
        When processors are given back, ascending, and how many; below 0 are taken then.
    number : int
        How many entries of these count.
    free, wanted : int
        Processors that are free now, and those that the job wants.
    seconds : float
        How long it wants them.

    Returns
    -------
    shadow : float
        Seconds; below 0 if there are never enough.
    extra : int
        Below 0 if there are never enough.
    """
    k, shadow, extra = 0, -1.0, -1
    while k < number and (shadow < 0.0 or ends[k] < shadow + seconds):
        free += held[k]
        if k + 1 == number or ends[k] < ends[k + 1]:
            if free < wanted:
                shadow, extra = -1.0, -1
            elif shadow < 0.0:
                shadow, extra = ends[k], free - wanted
        k += 1
    return shadow, extra


@compiled(inline="always")
def extra_taken(wanted: int, seconds: float, now: float, shadow: float) -> int:
    """Return how many extra nodes a job takes: none if it is over by the shadow time."""
    return wanted if now + seconds > shadow else 0


@compiled(forceinline=True)
def delays(reserved: NDArray[Any], number: int, wanted: int, seconds: float, now: float) -> bool:
    """Say whether a job that starts now delays one of the first so many reservations."""
    for k in range(number):
        if extra_taken(wanted, seconds, now, reserved[k].shadow_time) > reserved[k].extra_nodes:
            return True
    return False


@compiled(forceinline=True)
def take_extra(
    reserved: NDArray[Any], number: int, wanted: int, seconds: float, now: float
) -> None:
    """Let a job that starts now take extra nodes of the first so many reservations."""
    for k in range(number):
        reserved[k].extra_nodes -= extra_taken(wanted, seconds, now, reserved[k].shadow_time)


@compiled(forceinline=True)
def _note_too_long(
    queue: Queue, reserved: NDArray[Any], number: int, sizes: int, now: float
) -> None:
    """Note for so many sizes of job what is too long to start now, or a second more, to be safe."""
    for size in range(sizes):
        least, too_long = 1 << size, np.inf
        for k in range(number):
            if least > reserved[k].extra_nodes:
                too_long = min(too_long, reserved[k].shadow_time - now + 1.0)
        queue.too_long[WHOLE, size] = too_long


@compiled(forceinline=True)
def summarise(queue: Queue, block: int) -> None:
    """Note the shortest runtime of each size of job in a block: 1, 2 to 3, 4 to 7 processors, …."""
    at, shortest = queue.at[0], queue.shortest[block]
    shortest[:] = np.inf
    for k in range(max(at.first, block * BLOCK), min(at.last, (block + 1) * BLOCK)):
        if queue.processors[k] > 0:
            size = frexp(queue.processors[k])[1] - 1
            shortest[size] = min(shortest[size], queue.runtime[k])
    queue.summarised[block] = True


@compiled(forceinline=True)
def is_hopeless(queue: Queue, block: int, row: int, sizes: int) -> bool:
    """Say whether no job of a block is shorter than what is too long, in a row of that."""
    for size in range(sizes):  # noqa: SIM110 (compiled)
        if queue.shortest[block, size] < queue.too_long[row, size]:
            return False
    return True


@compiled(forceinline=True)
def _fill_shortest(
    queue: Queue, first: int, number: int, free: int, now: float, backfilling: NDArray[Any]
) -> int:
    """Do what `fill_window` does, the shortest first by belief, of equal ones the first in line."""
    counts, runtime, given = queue.processors, queue.runtime, backfilling[0].reserved
    best, shortest = -1, -np.inf
    while True:
        before, longest, best = best, shortest, -1
        for k in range(first, queue.at[0].last):
            wanted, seconds = counts[k], runtime[k]
            is_new = seconds > longest or (seconds == longest and k > before)
            may = is_new and not delays(backfilling, given, wanted, seconds, now)
            if 0 < wanted <= free and may and (best < 0 or runtime[k] < shortest):
                best, shortest = k, runtime[k]
        if best < 0:
            return number
        take_extra(backfilling, given, counts[best], shortest, now)
        free -= counts[best]
        queue.found[number] = best
        number += 1


@compiled(forceinline=True)
def fill_window(
    queue: Queue, first: int, number: int, free: int, now: float, backfilling: NDArray[Any]
) -> int:
    """Find the jobs that delay no reservation, in queue order or the shortest first.

    Blocks of the queue are passed over whose summary shows that none of their jobs may; one
    in which nobody was found is summarised, if more than one is searched.

    Parameters
    ----------
    queue : Queue
    first : int
        The place from which on is searched.
    number : int
        How many places stand in `found` already.
    free : int
        Processors.
    now : float
        Seconds.
    backfilling : numpy.ndarray of BACKFILLING, shape (k,)

    Returns
    -------
    int
        How many places stand in `found`.
    """
    drop_stale(queue)
    at, given = queue.at[0], backfilling[0].reserved
    if backfilling[0].shortest_first:
        return _fill_shortest(queue, first, number, free, now, backfilling)
    processors, runtime = queue.processors, queue.runtime
    k, noted, sizes = first, -1, 0
    while k < at.last and free > 0:
        block = k // BLOCK
        end = min(at.last, (block + 1) * BLOCK)
        if queue.summarised[block]:
            if noted != number:
                noted, sizes = number, frexp(free)[1]  # of which there is room
                _note_too_long(queue, backfilling, given, sizes, now)
            if is_hopeless(queue, block, WHOLE, sizes):
                k = end
                continue
        before = number
        while k < end and free > 0:
            wanted = processors[k]
            if 0 < wanted <= free and not delays(backfilling, given, wanted, runtime[k], now):
                take_extra(backfilling, given, wanted, runtime[k], now)
                free -= wanted
                queue.found[number] = k
                number += 1
            k += 1
        if number == before and at.last - first > BLOCK:
            summarise(queue, block)
    return number


@compiled(forceinline=True)
def find_heads(queue: Queue, free: int, backfilling: NDArray[Any]) -> tuple[int, int, bool]:
    """Find the heads that fit, one after the other: the first half of the rule.

    Parameters
    ----------
    queue : Queue
        Places are written to `found`.
    free : int
        Processors.
    backfilling : numpy.ndarray of BACKFILLING, shape (k,)

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
    own.heads_started, own.reserved = number, 0
    return number, free, not own.strict and at.first < at.last


@compiled(forceinline=True)
def _insert_end(ends: FloatArray, held: IntArray, number: int, end: float, processors: int) -> int:
    """Note that so many are given back then, below 0 taken; return how many entries count now."""
    place = number
    while place > 0 and ends[place - 1] > end:
        ends[place], held[place] = ends[place - 1], held[place - 1]
        place -= 1
    ends[place], held[place] = end, processors
    return number + 1


@compiled(forceinline=True)
def find_backfills(
    queue: Queue, holders: BelievedEnds, free: int, now: float, backfilling: NDArray[Any]
) -> int:
    """Reserve for the first that are blocked, and find who delays none: the second half.

    Parameters
    ----------
    queue : Queue
    holders : BelievedEnds
    free : int
        Processors that the heads left.
    now : float
        Seconds.
    backfilling : numpy.ndarray of BACKFILLING, shape (k,)

    Returns
    -------
    int
        How many places `found` holds now, those of heads among them.
    """
    at, own, number = queue.at[0], backfilling[0], backfilling[0].heads_started
    processors, runtime, found = queue.processors, queue.runtime, queue.found
    ends, held, size, k = queue.hold_end, queue.hold_processors, holders.end.size, at.first
    for i in range(size):
        ends[i], held[i] = holders.end[i], holders.processors[i]
    for i in range(number):
        size = _insert_end(ends, held, size, now + runtime[found[i]], processors[found[i]])
    while k < at.last and own.reserved < min(own.reservations, backfilling.size):
        wanted, seconds, given = processors[k], runtime[k], own.reserved
        if 0 < wanted <= free and not delays(backfilling, given, wanted, seconds, now):
            take_extra(backfilling, given, wanted, seconds, now)
            size = _insert_end(ends, held, size, now + seconds, wanted)
            free -= wanted
            found[number] = k
            number += 1
        elif wanted > 0:
            shadow, extra = shadow_and_extra(ends, held, size, free, wanted, seconds)
            for i in range(given):
                if shadow <= backfilling[i].shadow_time < shadow + seconds:
                    backfilling[i].extra_nodes -= wanted
            backfilling[given].shadow_time, backfilling[given].extra_nodes = shadow, extra
            own.reserved = given + 1
            size = _insert_end(ends, held, size, shadow, -wanted)
            size = _insert_end(ends, held, size, shadow + seconds, wanted)
        k += 1
    return fill_window(queue, k, number, free, now, backfilling)


def starts_beside(holders: Callable[..., BelievedEnds]) -> Callable[..., int]:
    """Return what finds who starts beside those that hold processors.

    Parameters
    ----------
    holders : callable
        What is known to who holds how many until when; asked where a head is blocked.

    Returns
    -------
    callable
        What is known, the queue, free processors, now in seconds, and the rows of
        BACKFILLING to how many places were written to the queue's `found`.
    """

    def find_starts(known: Any, queue: Queue, free: int, now: float, backfilling: Any) -> int:
        number, free, is_blocked = find_heads(queue, free, backfilling)
        if is_blocked:
            number = find_backfills(queue, holders(known), free, now, backfilling)
        return number

    return find_starts


find_starts = compiled(inline="always")(starts_beside(holders_in))


@compiled
def decide(state: RunState, memory: RuleMemory) -> int:
    """Find who starts, with reservations for the first that are blocked, or without any.

    While nothing but arrivals happens, free processors and all reservations stay as they are, and
    who could not start before cannot start now.
    """
    run, queue, kept = state.scalars[0], memory.queue, memory.backfilling
    at, own, newcomers = queue.at[0], kept[0], run.arrived - run.first_arrived
    only_arrivals = at.waiting > newcomers and run.ended_now + run.expired_now == 0
    if only_arrivals and own.tries_all_waiting == 0:
        own.heads_started, first = 0, at.last - newcomers
        if own.strict or run.free == 0:
            return 0
        if own.reserved == own.reservations:
            return fill_window(queue, first, own.heads_started, run.free, run.now, kept)
    return find_starts(state, queue, run.free, run.now, kept)


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
        check_choices(self)
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
        scheduler.backfilling["shortest_first"] = self.candidates == "shortest"
        return scheduler


class EasyScheduler(QueueScheduler):
    """Starts whoever fits and does not delay the first blocked jobs.

    Parameters
    ----------
    view : View
    order : Order
    allocation : Allocation
    reservations : int
        How many blocked jobs hold one; 0 is first fit: anybody may be delayed.
    strict : bool
        Nobody passes the head of the queue.
    decides : callable, optional
        The rule, compiled: a state and its `RuleMemory` to how many places it wrote to the
        ``found`` of the queue, of those who start now; `decide` by default.
    anew : float, optional
        Of `Easy`.
    known : object
        What stands in the memory at first.
    """

    is_compiled_kind = compiles_static_keys = True

    def __init__(
        self,
        view: View,
        order: Order,
        allocation: Allocation,
        reservations: int = 1,
        strict: bool = False,
        decides: Any = decide,
        anew: float | None = None,
        **known: Any,
    ) -> None:
        if anew is not None and not is_exactly(allocation, Request):
            self.chooses_anew, known["refutation_factor"] = True, float(anew)
        self.decides, self.functions = decides, QUEUE_FUNCTIONS | {"decide": decides}
        super().__init__(view, order, allocation, reservations, strict, **known)
        self.reservations, self.strict = reservations, strict
        self.promise: Promise | None = {0: None, 1: "head"}.get(reservations, "fit")

    @property
    def is_plain(self) -> bool:
        """Whether it is EASY with one reservation, jobs keep their order, and none chooses anew."""
        chooses_once = self.reservations == 1 and not self.chooses_anew
        is_easy = is_exactly(self, EasyScheduler) and self.decides is decide
        return is_easy and chooses_once and self.has_static_keys

    def reserved_starts(self) -> dict[int, tuple[float, int, float]]:
        """Return start, processors and believed runtime of every reservation of this pass."""
        queue, own = self.queue, self.backfilling
        places = queue.places()[: own["reserved"].item(0)].tolist()
        return {
            queue.job.item(place): (start, queue.processors.item(place), queue.runtime.item(place))
            for place, start in zip(places, own["shadow_time"].tolist(), strict=False)
        }

    def prepare(self) -> None:
        """Let those choose again who have to."""
        if self.chooses_anew and _is_refuted(self.view._tables, self.memory.refutation_factor):
            self.choose_anew()

    def find_starts(self) -> int:
        """Find who starts, in the order as it is now; ends matter if the head may be blocked."""
        self.rank()
        view, queue, free = self.view, self.queue, self.view.free
        wanted = queue.processors[queue.places()].sum()
        is_open = self.strict or self.reservations == 0 or wanted <= free
        return int(self._decide(view._state.tables if is_open else view._tables, self.memory))

    def choose_anew(self) -> list[int]:
        """Let each waiting job choose given those ahead; return who chose otherwise.

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
            noted = job == view.predictor._asked.explained
            outlook = partial(first_starts, view._tables, memory, noted=noted)
            count = self.allocation.choose(job, view, outlook)
            seconds = view.belief(job, count)
            reserve_earliest(profile_of(memory), view.now, count, seconds)
            if (count, seconds) != (queue.processors.item(place), queue.runtime.item(place)):
                queue.processors[place], queue.runtime[place] = count, seconds
                self.settle(job, count, seconds)
                changed.append(job)
        if changed:
            forget_all(queue.tables)
            self.rank(force=True)
        return changed
