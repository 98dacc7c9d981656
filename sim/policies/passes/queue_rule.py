"""A rule of a queue: its passes in Python, and what it needs of Python where they are compiled."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from predictors.base import FloatArray, IntArray, has_curves
from predictors.compiling import direct
from predictors.in_loop.oracle import may_ask_ahead
from sim.engine.engine import Engine
from sim.engine.loop import keep_count, leave_choice_to_python, never_ask, start_nobody
from sim.engine.protocols import CompiledRule, is_exactly
from sim.policies.allocation.rigid import Request
from sim.policies.allocation.sa import choose, choose_by_reservations, chooses_by_offers
from sim.policies.molding.base import Candidates
from sim.policies.order import Order
from sim.policies.passes.memory import (
    BACKFILLING,
    admit,
    first_starts,
    is_refuted,
    make_memory,
    must_ask,
    set_menu,
)
from sim.state.decisions import Decision, Start
from sim.state.run_state import RunState
from sim.state.view import LEAST_BELIEF, View
from sim.state.waiting_queue import WaitingQueue, forget_all, pop

QUEUE_FUNCTIONS: dict[str, Any] = {"admit": admit, "decide": start_nobody}
"""What rules of queues do that say nothing else."""
JOBS_A_BATCH = 65_536
"""Jobs whose counts to choose from are put down together."""


class QueueScheduler:
    """What all schedulers of queues share: they admit arrivals and keep the queue in order.

    Parameters
    ----------
    view : View
    order : Order
    allocation : Allocation or OpenAllocation
    reservations : int
        How many blocked jobs hold one.
    strict : bool
        Nobody passes a blocked job.
    known : object
        What stands in the memory at first.

    Attributes
    ----------
    by_arrival : bool
        Whether the order is that of arrival, without keys.
    backfilling : numpy.ndarray of BACKFILLING, shape (k,)
    memory : RuleMemory
        What compiled code keeps of the run.
    functions : mapping of str to callable
        Those of `sim.engine.loop.BoundRule` that are the rule's own.
    is_compiled_kind : bool
        Whether a class has a compiled rule of its own; what overrides a part of it has none.
    compiles_static_keys : bool
        Whether that rule may rank jobs by keys that stay.
    keeps_reservations : bool
        Whether all that wait hold a reservation beside the running jobs, from pass to pass.
    candidates : Candidates or None
        Of counts that stay open.
    chooses_anew : bool
        Whether jobs that wait choose again when a running one has refuted its belief.
    choose_anew : callable
        Lets them; returns who chose otherwise.
    """

    is_compiled_kind = compiles_static_keys = keeps_reservations = False
    candidates: Candidates | None = None
    chooses_anew = False
    choose_anew: Callable[[], list[int]]
    functions: dict[str, Any] = QUEUE_FUNCTIONS

    def __init__(
        self,
        view: View,
        order: Order,
        allocation: Any,
        reservations: int = 0,
        strict: bool = False,
        **known: Any,
    ) -> None:
        self.view, self.order, self.allocation = view, order, allocation
        nothing, jobs = np.zeros(0), len(view.submit_time)
        rows = min(reservations, jobs)
        self.queue, self._choosing = WaitingQueue(jobs, 2 * (view.processors + rows)), -1
        self.by_arrival = order.keys(0.0, nothing, np.zeros(0, np.int64), nothing) is None
        if chooses_by_offers(allocation):
            known |= {"margin": float(allocation.margin), "area_limits": allocation.area_limits}
        known["backfilling"] = np.zeros(max(1, rows), BACKFILLING)
        learning = jobs if view.predictor.learns else 0
        self.memory = make_memory(self.queue.tables, view.processors, jobs, learning, **known)
        self.backfilling = self.memory.backfilling
        own = self.backfilling[:1]
        own["reservations"], own["strict"], own["tries_all_waiting"] = reservations, strict, True
        self._admit, self._decide = (direct(self.functions[name]) for name in ("admit", "decide"))

    def reserved_starts(self) -> dict[int, tuple[float, int, float]]:
        """Return start, processors and believed runtime of every reservation of this pass."""
        queue, at = self.queue, self.queue.places()
        at = at[queue.start[at] < np.inf]
        columns = queue.job[at], queue.start[at], queue.processors[at], queue.runtime[at]
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return {job: (start, processors, runtime) for job, start, processors, runtime in rows}

    def compiled_rule(self, engine: Engine) -> "CompiledQueueRule | None":
        """Return the compiled rule, if this does what its kind of schedulers does.

        Jobs queue by arrival, or by keys that stay where the rule allows that, with limits that
        are known at submit; open counts stay as they were offered.
        """
        kind = next(one for one in type(self).__mro__ if "is_compiled_kind" in vars(one))
        learns, is_limited = self.view.predictor.learns, engine.kills
        if self.candidates is None:
            known_at_submit = is_exactly(self.allocation, Request) or not is_limited
            known_at_submit = known_at_submit or not (learns or self.chooses_anew)
        else:
            known_at_submit = may_ask_ahead(engine.predictor) and not (learns or is_limited)
            known_at_submit = known_at_submit and self.candidates.is_compiled
        is_compiled = is_exactly(self, kind) and self.has_static_keys and known_at_submit
        return CompiledQueueRule(engine, self) if is_compiled else None

    @property
    def has_static_keys(self) -> bool:
        """Whether jobs queue by arrival, or by keys that stay where the rule allows that."""
        return self.by_arrival or (self.compiles_static_keys and not self.order.recomputed)

    def decide(self) -> list[Decision]:
        """Make a pass, as `sim.engine.loop.advance` does where no Python is needed."""
        queue = self.queue
        if self.candidates is not None:
            self.candidates.watch()
        self.revise()
        self.prepare()
        for job in self.newcomers():
            self.admit(job)
        if queue.waiting == 0:
            return []
        number = self.find_starts()
        starts: list[Decision] = [self.start(place) for place in queue.found[:number].tolist()]
        queue.tidy()
        return starts

    def prepare(self) -> None:
        """Bring up to date what the rule keeps beside the queue: nothing by default."""

    def find_starts(self) -> int:
        """Find who starts; return how many places were written to the queue's ``found``."""
        return int(self._decide(self.view._tables, self.memory))

    def newcomers(self) -> Sequence[int]:
        """Return the jobs that have just arrived, in the order in which they are admitted."""
        return self.view.arrived

    def outlook(self, counts: IntArray, runtimes: FloatArray) -> FloatArray:
        """Return the earliest start of each (count, runtime) behind reservations for all."""
        told, asked = (self.view._tables, self.memory), self.view.predictor._asked
        noted = self._choosing == asked.explained
        return first_starts(*told, counts, runtimes, not self.keeps_reservations, noted)

    def admit(self, job: int) -> None:
        """Choose the count of a job that has just arrived, and queue it."""
        self.enqueue(job, *self.choice_of(job))

    def choice_of(self, job: int) -> tuple[int, float]:
        """Return the count for a job that has just arrived, and its belief in seconds."""
        view, self._choosing = self.view, job
        view._state.others_wait = self.queue.waiting > 0
        processors = self.allocation.choose(job, view, self.outlook)
        return processors, view.belief(job, processors)

    def enqueue(self, job: int, processors: int, runtime: float) -> None:
        """Let a job wait on a count, with a belief in seconds."""
        self.settle(job, processors, runtime)
        if self.by_arrival:
            self.memory.key[job] = -np.inf if job in self.view.changes.ahead else 0.0
        self.memory.user[job] = self.view.jobs.user[job]
        self._admit(self.view._state.tables, self.memory, job)

    def settle(self, job: int, processors: int, runtime: float) -> None:
        """Put down which count a job has chosen, and its belief in seconds."""
        state = self.view._state.tables
        state.processors[job], state.belief[job] = processors, runtime
        if not self.by_arrival:
            key = self.keys_of(np.array([job]), np.array([processors]), np.array([runtime]))
            self.memory.key[job] = key.item()

    def keys_of(self, jobs: IntArray, processors: IntArray, runtimes: FloatArray) -> FloatArray:
        """Return the keys of jobs by the order, which is not that of arrival."""
        given = np.asarray(self.view.submit_time)[jobs], processors.copy(), runtimes.copy()
        return np.asarray(self.order.keys(self.view.now, *given))

    def start(self, place: int) -> Start:
        """Start the job at a place on its count."""
        queue = self.queue
        start = Start(queue.job.item(place), queue.processors.item(place))
        pop(queue.tables, place)
        return start

    def rank(self, force: bool = False) -> None:
        """Recompute the order if it may have changed since the last pass, or by force."""
        if self.by_arrival or not (force or self.order.recomputed or self.view.changes.revised):
            return
        queue, places = self.queue, self.queue.places()
        told = queue.job[places], queue.processors[places], queue.runtime[places]
        queue.rank(self.keys_of(*told), np.asarray(self.view.submit_time)[told[0]])

    def revise(self) -> None:
        """Ask again about waiting jobs whose application is seen differently now."""
        view, queue, kept = self.view, self.queue, self.memory.kept
        revised, is_changed = view.changes.revised, False
        for place in queue.places().tolist() if revised else ():
            job, before = queue.job.item(place), queue.runtime.item(place)
            if view.jobs.application[job] not in revised:
                continue
            if (belief := self.believe_anew(place, job)) != before:
                queue.runtime[place] = view._state.tables.belief[job] = belief
                kept["is_shorter"] |= belief < before
                is_changed = True
        if is_changed:
            kept["is_revised"], kept["reservations_version"] = 1, -1
            forget_all(queue.tables)

    def believe_anew(self, place: int, job: int) -> float:
        """Ask again about the waiting job at a place."""
        self.view._beliefs.forget(job)
        return self.view.belief(job, self.queue.processors.item(place))


def believed_on(engine: Engine, counts: IntArray) -> FloatArray:
    """Return what is believed of all jobs on these counts, in seconds; an oracle knows of all."""
    view, predictor = engine.view, engine.predictor
    if engine.work.is_known_to(predictor):
        runtimes = engine.work.runtimes_at(np.arange(counts.size), counts)
    elif has_curves(predictor) or engine.preferences.scales_requests:
        return np.array([view.belief(*one) for one in enumerate(counts.tolist())])
    else:
        runtimes = engine.jobs.requested_time
    view.predictor._asked.queries += counts.size
    return np.maximum(runtimes, LEAST_BELIEF)


class CompiledQueueRule(CompiledRule):
    """A compiled rule under which jobs settle their counts as they arrive, or keep them open.

    Where jobs queue by arrival and choose once, and all beliefs can be asked for at once, jobs
    that get what they request, choose by offers (SA) or keep their counts open do so in compiled
    code; else Python is asked as each arrives. A predictor that learns is told of runs that have
    ended before it is asked.

    Parameters
    ----------
    engine : Engine
    scheduler : QueueScheduler
        Whose queue, memory and allocation these are.
    """

    def __init__(self, engine: Engine, scheduler: QueueScheduler) -> None:
        self._engine, self._scheduler, self._candidates = engine, scheduler, scheduler.candidates
        self._learns, self.memory = engine.predictor.learns, scheduler.memory
        allocation = scheduler.allocation
        by_offers = chooses_by_offers(allocation) and scheduler.by_arrival and not engine.kills
        self._rule: Any = scheduler.candidates or (allocation if by_offers else None)
        choice_is_compiled = self._rule is not None or is_exactly(allocation, Request)
        asks_ahead = not self._learns and may_ask_ahead(engine.predictor)
        is_known = scheduler.by_arrival and not scheduler.chooses_anew
        self.asks_at_arrivals = not (asks_ahead and choice_is_compiled and is_known)
        settles = keep_count
        if self.asks_at_arrivals:
            settles = leave_choice_to_python
        elif by_offers:
            settles = choose if scheduler.keeps_reservations else choose_by_reservations
        asks = must_ask if scheduler.chooses_anew or self._learns else never_ask
        self.functions = {"must_ask": asks, "choose": settles, **scheduler.functions}
        self.explanations = []

    def begin(self, state: RunState) -> None:
        """Begin a run whose jobs stand here; ask for all beliefs, if none is asked for later."""
        self._state, engine, memory = state, self._engine, self.memory
        jobs, all_jobs = engine.jobs, np.arange(state.processors.size)
        self._arriving = state.scalars[["choice_due", "admitted", "first_arrived", "arrived"]]
        memory.requested[:], memory.user[:] = jobs.requested_processors, jobs.user
        if self._learns:
            memory.application[:] = jobs.application
        memory.backfilling["tries_all_waiting"] = not self._scheduler.by_arrival
        memory.kept["explained"] = engine.view.predictor._asked.explained
        if self.asks_at_arrivals:
            return
        if self._rule is not None or has_curves(engine.predictor):
            engine.shown.arrive(all_jobs.tolist())
        if self._rule is None:
            state.belief[:] = believed_on(engine, state.processors)
        else:
            self._offer(all_jobs)

    def _offer(self, jobs: IntArray) -> None:
        """Put down what jobs choose from."""
        is_known = self._engine.work.is_known_to(self._engine.predictor)
        is_plain = getattr(type(self._rule), "of", Candidates.of) is Candidates.of
        takes_all = is_known and is_plain and self._rule.advice.repair != "always"
        asked = self._asked_together if takes_all else self._asked_singly
        parts = [asked(jobs[k : k + JOBS_A_BATCH]) for k in range(0, jobs.size, JOBS_A_BATCH)]
        number, only_immediate, *menu = map(np.concatenate, zip(*parts, strict=True))
        spans = self.memory.menu_spans
        spans["begin"], spans["number"] = np.cumsum(number) - number, number
        spans["only_immediate"] = only_immediate
        set_menu(self.memory, *menu)
        self.menu, notes = (np.repeat(jobs, number), menu[0]), self._engine.view.predictor._asked
        notes.note(*(column[self.menu[0] == notes.explained] for column in menu))

    def _asked_singly(self, jobs: IntArray) -> tuple[Any, ...]:
        """Return how many counts each job chooses from, whether at once; these, and beliefs."""
        view, offered = self._engine.view, []
        for job in jobs.tolist():
            if self._candidates is None:
                counts, believed, only_immediate = self._rule.offers(job, view)
                if believed is None:
                    believed = np.array([view.belief(job, counts.item(0))])
            else:
                counts, believed, self.memory.molding.serial_time[job] = self._candidates.of(job)
                only_immediate = False
            offered.append((counts.size, only_immediate, counts, believed))
        number, only_immediate, *menu = zip(*offered, strict=True)
        return number, only_immediate, *map(np.concatenate, menu)

    def _asked_together(self, jobs: IntArray) -> tuple[Any, ...]:
        """Return the same where an oracle believes what is true, and all that jobs try counts."""
        view, work = self._engine.view, self._engine.work
        listed = [self._rule.tries(job, view) for job in jobs.tolist()]
        number, counts = np.array([one.size for one in listed]), np.concatenate(listed)
        runtimes = work.runtimes_at(np.repeat(jobs, number), counts)
        believed = np.maximum(runtimes, LEAST_BELIEF)
        view.predictor._asked.queries += jobs.size
        if self._candidates is not None:
            serial_time = np.maximum(work.runtimes_at(jobs, np.ones_like(jobs)), LEAST_BELIEF)
            last = np.cumsum(number) - 1
            serial_time = np.where(number > 1, serial_time, counts[last] * believed[last])
            self.memory.molding.serial_time[jobs] = serial_time
        return number, np.zeros_like(jobs), counts, believed

    def answer(self) -> None:
        """Tell the predictor who ended, and let who arrives, or has to choose again, do so."""
        self.finish()
        engine, scheduler, state = self._engine, self._scheduler, self._state
        is_asked, job, first_arrived, arrived = self._arriving.item()
        if is_asked:
            if job == first_arrived:
                engine.shown.arrive(range(job, arrived))
            processors, belief = scheduler.choice_of(job)
            scheduler.settle(job, processors, belief)
            engine.set_true_runtime(job, processors)
        elif is_refuted(state, self.memory.refutation_factor):
            for job in scheduler.choose_anew():
                engine.set_true_runtime(job, state.processors.item(job))

    def finish(self) -> None:
        """Tell the predictor who ended; plan with what it believes differently of who waits.

        Ask it what the beliefs rest on of those who started, before it is told of later ends.
        """
        if not self._learns:
            return
        state, engine, scheduler = self._state, self._engine, self._scheduler
        kept, calendar = self.memory.kept, engine.event_manager.calendar
        new = int(state.scalars["ended"].item() - kept["ends_told"].item())
        for job, before in self.memory.ended[:new].tolist():
            self._explain_started(before)
            processors = state.processors.item(job)
            start, end = state.start_time.item(job), calendar.end_time.item(job)
            if engine.tells_runtime(start, end, not calendar.killed.item(job)):
                engine.learn(job, processors, end - start, end, {})
            engine.beliefs.forget(job)
            engine.shown.leave(job)
        kept["ends_told"] += new
        self._explain_started(state.scalars["started"].item())
        if engine.state.revised:
            scheduler.revise()
            scheduler.rank()
            engine.state.revised.clear()

    def _explain_started(self, until: int) -> None:
        """Ask what the beliefs rest on of those who started, up to this one of them."""
        state, explain = self._state, self._engine.view.predictor.explain
        for job in state.start_order[len(self.explanations) : until].tolist():
            self.explanations.append(explain(job, state.processors.item(job)))
