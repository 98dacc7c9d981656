"""Which processors a job gets, lowest-numbered or fastest for it, and whether it waits for such."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from predictors.base import IntArray
from sim.errors import POSITIVE_AND_FINITE
from sim.policies.backfill.easy import Easy, EasyScheduler
from sim.policies.base import Allocation, AroundScheduler, OpenAllocation, Scheduler
from sim.policies.order import Order
from sim.policies.ties import is_less
from sim.state.decisions import Decision, Start, WakeAt
from sim.state.processors import as_numbers, as_ranges
from sim.state.view import View

if TYPE_CHECKING:
    from sim.background.links import LoadedLinks
    from sim.background.load_outlook import LoadOutlook


class Lowest:
    """The lowest-numbered free processors, whatever their load."""

    def begin(self, view: View, scheduler: Scheduler) -> Scheduler:
        """Leave it to the engine, which takes the lowest."""
        return scheduler


class Fastest:
    """The free processors on which the job is predicted to end first.

    Candidates are the processors of most believed CPU whose links among each
    other have at least a bound, for every bound that matters; of these the
    fastest for the job's own shares of computation and communication is taken.
    Without background load the lowest-numbered are taken.
    """

    picks_fastest = True

    def begin(self, view: View, scheduler: Scheduler) -> Scheduler:
        """Begin a run."""
        if view.load is None:
            return scheduler
        return PlacingScheduler(view, view.load, scheduler)


class PlacingScheduler(AroundScheduler):
    """Names the processors in another scheduler's starts.

    Parameters
    ----------
    view : View
    load : LoadOutlook
    inner : Scheduler
        Decides who starts on how many processors.
    """

    def __init__(self, view: View, load: "LoadOutlook", inner: Scheduler) -> None:
        super().__init__(view, inner)
        self.load = load

    def decide(self) -> Sequence[Decision]:
        """Decide as the inner scheduler does, and place the starts in its order."""
        decisions = self.inner.decide()
        if not any(type(decision) is Start and decision.nodes is None for decision in decisions):
            return decisions
        free = self.load.free_processors()
        placed: list[Decision] = []
        for decision in decisions:
            if type(decision) is Start and decision.nodes is None:
                decision, free = named(self.view, self.load, decision, free)
            placed.append(decision)
        return placed


def named(
    view: View, load: "LoadOutlook", start: Start, free: IntArray, best: IntArray | None = None
) -> tuple[Start, IntArray]:
    """Return a start with its processors named, and those that are free after it.

    A start on processors that others are only about to give up is left to the
    engine, and with it all that follow: nobody knows which it will take.

    Parameters
    ----------
    view : View
    load : LoadOutlook
    start : Start
    free : numpy.ndarray of int, ascending
    best : numpy.ndarray of int, optional
        Those of `free` among which to choose; all by default.
    """
    if start.processors > free.size:
        return start, free[:0]
    own = fastest(view, load, start.job, start.processors, free if best is None else best)
    return start._replace(nodes=as_ranges(own)), np.setdiff1d(free, own, assume_unique=True)


def fastest(
    view: View, load: "LoadOutlook", job: int, count: int, free: IntArray, delay: float = 0.0
) -> IntArray:
    """Return the free processors on which a job is predicted to end first, ascending.

    Parameters
    ----------
    view : View
    load : LoadOutlook
    job, count : int
    free : numpy.ndarray of int, ascending
    delay : float
        After how many seconds from now it would start.
    """
    if count == free.size:
        return free
    horizon = view.belief(job, count)
    cpu, links = load.cpu(horizon, delay), load.links(horizon, delay)
    ranked = free[np.argsort(-cpu[free], kind="stable")]
    parts = view.parts(job, np.array([count]))
    if parts is None or count == 1 or not parts.communication[0] > 0:
        return np.sort(ranked[:count])
    best, least = ranked[:count], np.inf
    for bound in np.unique(np.append(0.0, links.available)).tolist():
        own = apart(ranked, count, links, bound, load.per_node)
        if own is None:
            break
        slowest, left = cpu[own].min(), load.bandwidth(own, links)
        seconds = float(parts.under(slowest, np.array([left]))[0])
        if is_less(seconds, least):
            best, least = own, seconds
    return np.sort(best)


def apart(
    ranked: IntArray, count: int, links: "LoadedLinks", bound: float, per_node: int
) -> IntArray | None:
    """Return the first processors in rank order that share no link at or below a bound.

    None if there are not enough of them.
    """
    poor = links.available <= bound
    partners: dict[int, set[int]] = {}
    for source, destination in zip(
        links.source[poor].tolist(), links.destination[poor].tolist(), strict=True
    ):
        partners.setdefault(source, set()).add(destination)
        partners.setdefault(destination, set()).add(source)
    if not partners:
        return ranked[:count]
    banned: set[int] = set()
    chosen = []
    for processor in ranked.tolist():
        node = processor // per_node
        if node not in banned:
            chosen.append(processor)
            banned |= partners.get(node, set())
            if len(chosen) == count:
                return np.array(chosen)
    return None


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
    The head is reconsidered in every scheduling pass, and when the next sample of load is due;
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
        POSITIVE_AND_FINITE.check(longest=longest)
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
        What the head of the queue is put off for in this pass.
    """

    starts_by_place = True

    def __init__(
        self, view: View, load: "LoadOutlook", order: Order, allocation: Allocation, rule: Patient
    ) -> None:
        super().__init__(view, order, allocation)
        self._load = load
        self._rule = rule
        self._fitted_since: dict[int, float] = {}
        self._woken_at = -np.inf
        self._pool = np.zeros(0, np.int64)
        self._placed_heads: dict[int, Start] = {}
        self.waiting: Waiting | None = None

    @property
    def put_off(self) -> float:
        """Until when the head of the queue waits for faster processors, seconds."""
        return -np.inf if self.waiting is None else self.waiting.until

    def decide(self) -> list[Decision]:
        """Decide as EASY does, but put the head off where that pays."""
        self.waiting = None
        self._pool = self._load.free_processors()
        decisions = super().decide()
        heads = self._placed_heads
        placed: list[Decision] = [
            heads.get(one.job) or self._placed(one) if type(one) is Start else one
            for one in decisions
        ]
        if self.waiting is not None and self.waiting.until > self._woken_at:
            soon = self.view.now + self._load.every
            self._woken_at = min(self.waiting.until, soon)
            placed.append(WakeAt(self._woken_at))
        return placed

    def _find_heads(self) -> tuple[int, int, int]:
        """Place heads as long as they fit and had better start now."""
        queue, free, number = self.queue, self.view.free, 0
        self._placed_heads = {}
        for place in queue.places().tolist():
            job, processors = queue.job.item(place), queue.processors.item(place)
            if processors <= free:
                self.waiting = self._better_start(job, processors)
            if processors > free or self.waiting is not None:
                return number, place, free
            self._fitted_since.pop(job, None)
            self._placed_heads[job] = self._placed(Start(job, processors))
            free -= processors
            queue.found[number] = place
            number += 1
        return number, queue.last, free

    def _reserve_and_fill(self, free: int) -> int:
        if self.waiting is None:
            return super()._reserve_and_fill(free)
        self._shadow = self.waiting.until
        self._spare = free - int(np.isin(self.waiting.own, self._pool).sum())
        return self._find_fillers(self.queue.first + 1, free)

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
        for end, running, _ in view._ends.rows():
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
