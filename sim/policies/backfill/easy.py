"""EASY backfilling: reservations for the first k blocked jobs (Lifka 1995), or for none.

A queue is searched for jobs that may start before a reservation by summaries of its blocks.
"""

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
from sim.policies.molding.base import may_start, mold_queue
from sim.policies.molding.scheduler import OpenScheduler
from sim.policies.order import Order
from sim.policies.passes.memory import RuleMemory, first_starts, is_refuted, lay_running, profile_of
from sim.policies.passes.queue_rule import QUEUE_FUNCTIONS, QueueScheduler
from sim.state.availability import BelievedEnds, reserve_earliest
from sim.state.run_state import RunState, longer
from sim.state.run_steps import holders_in
from sim.state.view import View
from sim.state.waiting_queue import BLOCK, SIZES, Queue, drop_stale, forget_all


@compiled(inline="always")
def shadow_and_extra(holders: BelievedEnds, free: int, wanted: int) -> tuple[float, int]:
    """Return the shadow time of the head of the queue, and what it will leave over.

    Parameters
    ----------
    holders : BelievedEnds
    free, wanted : int
        Processors that are free now, and those that the head wants.

    Returns
    -------
    shadow : float
        Seconds; below 0 if there are never enough.
    spare : int
        Below 0 if there are never enough.
    """
    shadow = -1.0
    for k in range(holders.end.size):
        if shadow >= 0.0 and holders.end[k] > shadow:
            break
        free += holders.processors[k]
        if free >= wanted and shadow < 0.0:
            shadow = holders.end[k]
    return shadow, free - wanted


@compiled(inline="always")
def extra_taken(wanted: int, seconds: float, now: float, shadow: float) -> int:
    """Return how many extra nodes a job takes: none if it is over by the shadow time.

    Who takes no more than there are does not delay the head.
    """
    return wanted if now + seconds > shadow else 0


@compiled(inline="always")
def _promising(queue: Queue, block: int, free: int, spare: int, now: float, shadow: float) -> bool:
    """Say whether a block may hold a job that may start, going by its shortest."""
    for size in range(SIZES):
        least, shortest = 1 << size, queue.shortest[block, size]
        if least > free:
            return False
        if shortest < np.inf and extra_taken(least, shortest, now, shadow) <= spare:
            return True
    return False


@compiled
def _summarise(
    processors: IntArray, runtime: FloatArray, first: int, last: int, shortest: FloatArray
) -> None:
    """Note the shortest runtime of each size of job: 1, 2 to 3, 4 to 7 processors, …."""
    shortest[:] = np.inf
    for k in range(first, last):
        if processors[k] > 0:
            size = frexp(processors[k])[1] - 1
            shortest[size] = min(shortest[size], runtime[k])


@compiled
def summarise(queue: Queue) -> None:
    """Give all blocks a summary that have none."""
    first, last = queue.at[0].first, queue.at[0].last
    for block in range(first // BLOCK, (last - 1) // BLOCK + 1):
        if not queue.summarised[block]:
            begin, end = max(first, block * BLOCK), min(last, (block + 1) * BLOCK)
            _summarise(queue.processors, queue.runtime, begin, end, queue.shortest[block])
            queue.summarised[block] = True


@compiled(inline="always")
def is_hopeless(queue: Queue, block: int, too_long: FloatArray) -> bool:
    """Say whether no job of a block is shorter than what is too long for its size."""
    for size in range(SIZES):  # noqa: SIM110 (compiled)
        if queue.shortest[block, size] < too_long[size]:
            return False
    return True


@compiled(inline="always")
def _fill_shortest(
    queue: Queue, first: int, free: int, now: float, backfilling: NDArray[Any]
) -> int:
    """Do what `fill_window` does, the shortest first by belief, of equal ones the first in line."""
    counts, runtime, own = queue.processors, queue.runtime, backfilling[0]
    number, best, shortest = own.heads_started, -1, -np.inf
    while True:
        before, longest, best = best, shortest, -1
        for k in range(first, queue.at[0].last):
            wanted, seconds = counts[k], runtime[k]
            is_new = seconds > longest or (seconds == longest and k > before)
            may = extra_taken(wanted, seconds, now, own.shadow_time) <= own.extra_nodes and is_new
            if 0 < wanted <= free and may and (best < 0 or runtime[k] < shortest):
                best, shortest = k, runtime[k]
        if best < 0:
            return int(number)
        own.extra_nodes -= extra_taken(counts[best], shortest, now, own.shadow_time)
        free -= counts[best]
        queue.found[number] = best
        number += 1


@compiled
def fill_window(queue: Queue, first: int, free: int, now: float, backfilling: NDArray[Any]) -> int:
    """Find the jobs that may start ahead of the reservation, in queue order or the shortest first.

    Blocks of the queue are passed over whose summary shows that none of their jobs may; one
    in which nobody was found is summarised, if the search began behind the head of a queue
    longer than a block.

    Parameters
    ----------
    queue : Queue
    first : int
        The place from which on is searched.
    free : int
        Processors.
    now : float
        Seconds.
    backfilling : numpy.ndarray of BACKFILLING, shape (1,)
        So many places stand in `found` already as there are heads; of extra nodes it says what
        is left over.

    Returns
    -------
    int
        How many places stand in `found`.
    """
    drop_stale(queue)
    rule, last = backfilling[0], queue.at[0].last
    if rule.shortest_first:
        return _fill_shortest(queue, first, free, now, backfilling)
    spare, shadow, number = rule.extra_nodes, rule.shadow_time, rule.heads_started
    processors, runtime = queue.processors, queue.runtime
    k, whole = first, first == queue.at[0].first + 1 and last - first > BLOCK
    while k < last and free > 0:
        block = k // BLOCK
        end = min(last, (block + 1) * BLOCK)
        if queue.summarised[block] and not _promising(queue, block, free, spare, now, shadow):
            k = end
            continue
        begin, before = k, number
        while k < end and free > 0:
            wanted = processors[k]
            if 0 < wanted <= free and extra_taken(wanted, runtime[k], now, shadow) <= spare:
                spare -= extra_taken(wanted, runtime[k], now, shadow)
                free -= wanted
                queue.found[number] = k
                number += 1
            k += 1
        if whole and k == end and number == before:
            _summarise(processors, runtime, begin, end, queue.shortest[block])
            queue.summarised[block] = True
    rule.extra_nodes = spare
    return int(number)


@compiled(inline="always")
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
    own.heads_started = number
    return number, free, not own.strict and at.first < at.last


@compiled(inline="always")
def _with_heads(queue: Queue, holders: BelievedEnds, heads: int, now: float) -> BelievedEnds:
    """Return who holds processors once heads have started, whose places are in `found`."""
    size = holders.end.size
    ends, held = longer(holders.end, size + heads), longer(holders.processors, size + heads)
    for k in range(heads):
        head, place = queue.found[k], size + k
        end = now + queue.runtime[head]
        while place > 0 and ends[place - 1] > end:
            ends[place], held[place] = ends[place - 1], held[place - 1]
            place -= 1
        ends[place], held[place] = end, queue.processors[head]
    return BelievedEnds(ends, holders.job, held)


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
    at, own = queue.at[0], backfilling[0]
    own.shadow_time, own.extra_nodes = np.inf, 0
    if own.reservations > 0:
        if own.heads_started > 0:
            holders = _with_heads(queue, holders, own.heads_started, now)
        found = shadow_and_extra(holders, free, queue.processors[at.first])
        own.shadow_time, own.extra_nodes = found
    return fill_window(queue, at.first + 1, free, now, backfilling)


@compiled
def decide(state: RunState, memory: RuleMemory) -> int:
    """Find who starts, with a reservation for the first that is blocked, or without any.

    While nothing but arrivals happens, free processors and the reservation stay as they are, and
    who could not start before cannot start now.
    """
    run, queue, kept = state.scalars[0], memory.queue, memory.backfilling
    at, own, newcomers = queue.at[0], kept[0], run.arrived - run.first_arrived
    only_arrivals = at.waiting > newcomers and run.ended_now + run.expired_now == 0
    if only_arrivals and own.tries_all_waiting == 0:
        own.heads_started = 0
        if own.strict or run.free == 0:
            return 0
        return fill_window(queue, at.last - newcomers, run.free, run.now, kept)
    number, free, is_blocked = find_heads(queue, run.free, kept)
    if is_blocked:
        number = find_backfills(queue, holders_in(state), free, run.now, kept)
    return int(number)


@compiled
def decide_deep(state: RunState, memory: RuleMemory) -> int:
    """Find who starts without moving the reservations of the first blocked jobs.

    A job whose count is settled is one with a single candidate: itself.
    """
    last = memory.queue.at[0].last if may_start(state, memory) else 0
    return mold_queue(state, memory, last)


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

    is_compiled_kind = compiles_static_keys = True

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
        if anew is not None and not is_exactly(allocation, Request):
            self.chooses_anew, known["refutation_factor"] = True, float(anew)
        self.decides = decides or (decide_deep if reservations > 1 else decide)
        self.functions = QUEUE_FUNCTIONS | {"decide": self.decides}
        super().__init__(view, order, allocation, reservations, strict, **known)
        self.reservations, self.strict = reservations, strict
        self.promise: Promise | None = "head" if reservations == 1 else None

    @property
    def is_plain(self) -> bool:
        """Whether it is EASY with one reservation, jobs keep their order, and none chooses anew."""
        chooses_once = self.reservations == 1 and not self.chooses_anew
        is_easy = is_exactly(self, EasyScheduler) and self.decides is decide
        return is_easy and chooses_once and self.has_static_keys

    def reserved_starts(self) -> dict[int, tuple[float, int, float]]:
        """Return start, processors and believed runtime of every reservation of this pass."""
        queue = self.queue
        if queue.waiting == 0 or self.strict or self.reservations != 1:
            return super().reserved_starts()
        place, start = queue.head(), self.backfilling["shadow_time"].item()
        count, seconds = queue.processors.item(place), queue.runtime.item(place)
        return {queue.job.item(place): (start, count, seconds)}

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
