"""A compiled rule of a queue: what it needs of Python is asked, told and made room for here."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import direct
from predictors.in_loop.oracle import foresees
from predictors.in_loop.wrapper import has_curves
from sim.engine.engine import Engine
from sim.engine.loop import ask, keep_request, never_ask
from sim.engine.protocols import acts_as
from sim.policies.allocation.rigid import Request
from sim.policies.allocation.sa import chooses_by_offers
from sim.policies.base import QueueKeeper
from sim.policies.molding.base import Candidates
from sim.policies.molding.candidates import SPAN
from sim.policies.passes.memory import (
    ENDED,
    admit,
    believe,
    choose,
    choose_by_reservations,
    is_refuted,
    make_memory,
    must_ask,
    revise,
    set_menu,
)
from sim.state.columns import Explanations
from sim.state.predicted import LEAST_BELIEF
from sim.state.run_state import State
from sim.state.waiting_queue import jobs_in

JOBS_AT_ONCE = 65_536
"""Jobs whose counts to choose from are put down together."""
_believe = direct(believe)


def is_compiled(keeper: QueueKeeper, kind: type, engine: Engine) -> bool:
    """Say whether compiled passes do what a scheduler does, which is of a kind.

    They keep a queue by arrival alone, with limits that are known at submit.
    """
    settled = acts_as(keeper.allocation, Request) or not (engine.kills and engine.predictor.learns)
    return acts_as(keeper, kind) and keeper.by_arrival and settled


class CompiledQueueRule:
    """A compiled rule under which jobs settle their counts as they arrive, or keep them open.

    Jobs that get what they request, and those that choose by offers (SA), do so in compiled
    code; any other allocation is asked as each job arrives. A predictor that learns is told of
    each run as it ends, and asked as jobs choose; one that does not is asked for all beliefs at
    once, if no job chooses twice and no allocation is asked.

    Parameters
    ----------
    engine : Engine
    keeper : QueueKeeper
        Whose queue and allocation these are.
    functions : mapping of str to callable
        ``prepare`` and ``decide``, and others that are not those of `sim.policies.passes.memory`.
    keeps_reservations : bool
        Whether all that wait hold a reservation, by which a job that chooses knows its starts.
    anew : ChoiceAnew, optional
        Lets jobs that wait choose anew when a running one has refuted its belief.
    candidates : Candidates, optional
        Of counts that stay open.
    known : object
        What stands in the memory at first.
    """

    functions: Mapping[str, Any]
    memory: Any
    offered: tuple[IntArray, IntArray] | None = None
    changes_counts = False

    def __init__(
        self,
        engine: Engine,
        keeper: QueueKeeper,
        functions: Mapping[str, Any],
        keeps_reservations: bool = False,
        anew: Any = None,
        candidates: Candidates | None = None,
        **known: Any,
    ) -> None:
        self._engine, self._keeper = engine, keeper
        self._allocation = allocation = keeper.allocation
        self._learns = engine.predictor.learns
        self._candidates, self._known = candidates, known
        self._keeps_reservations = keeps_reservations
        by_offers = chooses_by_offers(allocation) and not engine.kills
        self._rule: Any = candidates or (allocation if by_offers else None)
        is_rigid = candidates is not None or acts_as(allocation, Request)
        self._anew: Any = None if is_rigid else anew
        self._refutation_factor = np.inf if self._anew is None else float(self._anew.factor)
        foresees_all = not self._learns and foresees(engine.predictor)
        is_settled = (by_offers or is_rigid) and self._anew is None
        self.asks_at_arrivals = not (foresees_all and is_settled)
        settles = keep_request
        if self.asks_at_arrivals:
            settles = ask
        elif by_offers:
            settles = choose if keeps_reservations else choose_by_reservations
        asks = never_ask if self._anew is None and not self._learns else must_ask
        self.functions = {"must_ask": asks, "choose": settles, "admit": admit, **functions}
        self.explanations, self._explained = Explanations(), 0

    def begin(self, state: State) -> None:
        """Begin a run whose jobs stand here; ask for all beliefs, if none is asked for later."""
        self._state, engine = state, self._engine
        counters = (state.run[name] for name in ("awaits_count", "admitted", "newcomer", "arrived"))
        self._is_asked, self._asking, self._newcomer, self._arrived = counters
        jobs = state.processors.size
        if self._rule is not None and self._candidates is None:
            rule = self._rule
            self._known |= {"margin": float(rule.margin), "most_area": rule.most_area}
        if self._learns:
            applications = engine.jobs.application
            self._known |= {"ended": np.zeros(jobs, ENDED), "application": applications}
        self.memory = self._keeper.memory = make_memory(
            self._keeper.queue.tables,
            engine.view.processors,
            menu_spans=np.zeros(jobs, SPAN),
            requested=np.array(engine.jobs.requested_processors, np.int64),
            refutation_factor=self._refutation_factor,
            **self._known | {"user": np.array(engine.jobs.user, np.int64)},
        )
        if not self.asks_at_arrivals:
            self._take_beliefs(np.arange(jobs))

    def _take_beliefs(self, jobs: IntArray) -> None:
        """Ask what is believed of all jobs, and what each may choose from."""
        state, engine = self._state, self._engine
        if self._rule is None:
            state.belief[:] = self._beliefs(jobs, state.processors)
        else:
            engine.shown.arrive(jobs.tolist())
            self._offer(jobs)

    def _offer(self, jobs: IntArray) -> None:
        """Put down what jobs choose from."""
        is_known = self._engine.work.is_known_to(self._engine.predictor)
        is_plain = getattr(type(self._rule), "of", Candidates.of) is Candidates.of
        takes_all = is_known and is_plain and self._rule.advice.repair != "always"
        asked = self._asked_together if takes_all else self._asked_singly
        parts = [asked(jobs[k : k + JOBS_AT_ONCE]) for k in range(0, jobs.size, JOBS_AT_ONCE)]
        number, at_once, *menu = map(np.concatenate, zip(*parts, strict=True))
        spans = self.memory.menu_spans
        spans["begin"][jobs] = np.cumsum(number) - number
        spans["number"][jobs], spans["at_once"][jobs] = number, at_once
        set_menu(self.memory, *menu)
        self.offered = np.repeat(jobs, number), menu[0]

    def _asked_singly(self, jobs: IntArray) -> tuple[Any, ...]:
        """Return how many counts each job chooses from, whether at once; these, and beliefs."""
        view, offered = self._engine.view, []
        for job in jobs.tolist():
            if self._candidates is None:
                counts, believed, at_once = self._allocation.offers(job, view)
                if believed is None:
                    believed = np.array([view.belief(job, counts.item(0))])
            else:
                counts, believed, self.memory.open.serial[job] = self._candidates.of(job)
                at_once = False
            offered.append((counts.size, at_once, counts, believed))
        number, at_once, *menu = zip(*offered, strict=True)
        return number, at_once, *map(np.concatenate, menu)

    def _asked_together(self, jobs: IntArray) -> tuple[Any, ...]:
        """Return the same where an oracle believes what is true, and all that jobs try counts."""
        view, work = self._engine.view, self._engine.work
        listed = [self._rule.tries(job, view) for job in jobs.tolist()]
        number, counts = np.array([one.size for one in listed]), np.concatenate(listed)
        runtimes = work.runtimes_at(np.repeat(jobs, number), counts)
        believed = np.maximum(runtimes, LEAST_BELIEF)
        view._beliefs.count(jobs.size)
        if self._candidates is not None:
            serial = np.maximum(work.runtimes_at(jobs, np.ones_like(jobs)), LEAST_BELIEF)
            last = np.cumsum(number) - 1
            serial = np.where(number > 1, serial, counts[last] * believed[last])
            self.memory.open.serial[jobs] = serial
        return number, np.zeros_like(jobs), counts, believed

    def _beliefs(self, jobs: IntArray, processors: IntArray) -> FloatArray:
        """Return what is believed of jobs that run on what they request."""
        view, engine = self._engine.view, self._engine
        if not has_curves(engine.predictor):
            view._beliefs.count(len(jobs))
            return np.maximum(engine.jobs.requested_time[jobs], LEAST_BELIEF)
        engine.shown.arrive(jobs.tolist())
        pairs = zip(jobs.tolist(), processors.tolist(), strict=True)
        return np.array([view.belief(job, count) for job, count in pairs])

    def answer(self) -> None:
        """Tell the predictor who ended, and let who arrives, or has to choose again, do so."""
        if self._learns:
            self._tell()
        if self._is_asked.item():
            self._choose(self._asking.item())
        elif is_refuted(self._state, self._refutation_factor):
            self._choose_anew()

    def _choose(self, job: int) -> None:
        """Let the allocation say how many processors a job gets that has just arrived."""
        engine, view = self._engine, self._engine.view
        if job == self._newcomer.item():
            engine.shown.arrive(range(job, self._arrived.item()))
        engine.state.others_wait = self._keeper.queue.waiting > 0
        count = self._allocation.choose(job, view, self._keeper.outlook)
        self._settle(job, count, engine.beliefs.belief(job, count))

    def _settle(self, job: int, processors: int, belief: float) -> None:
        """Put down which count a job has chosen."""
        self._state.processors[job], self._state.belief[job] = processors, belief
        self._engine.set_true_runtime(job, processors)

    def _choose_anew(self) -> None:
        """Let all that wait choose again, by what is believed now."""
        queue = self._keeper.queue
        queue.see()
        for place in self._anew.choose():
            job, processors = queue.job.item(place), queue.processors.item(place)
            self._settle(job, processors, queue.runtime.item(place))

    def finish(self) -> None:
        """Tell the predictor who ended last."""
        if self._learns:
            self._tell()

    def _tell(self) -> None:
        """Tell the predictor who ended; plan with what it believes differently of who waits.

        Ask it what the beliefs rest on of those who started, before it is told of later ends.
        """
        state, engine, memory = self._state, self._engine, self.memory
        new = int(state.run["ended"].item() - memory.ends_told[0])
        for job, before in memory.ended[:new].tolist():
            self._explain_started(before)
            processors = state.processors.item(job)
            start, end = state.start_time.item(job), engine.event_list.end_of(job)
            if end > start and not engine.event_list.is_killed(job):
                engine.learn(job, processors, end - start, end, {}, {})
            engine.beliefs.forget([job])
            engine.shown.leave(job)
        memory.ends_told[0] += new
        self._explain_started(state.run["started"].item())
        self._revise()

    def _revise(self) -> None:
        """Plan anew with who of those waiting is believed to run for another time than before."""
        if not (revised := self._engine.state.revised):
            return
        self._keeper.queue.see()
        changed = self._keeper.believed_anew()
        revised.clear()
        if changed:
            places, beliefs = zip(*changed, strict=True)
            revise(self.memory, np.array(places, np.int64), np.array(beliefs))
            if not self._keeps_reservations:  # else the next pass does so in its turn
                _believe(self._state, self.memory)

    def _explain_started(self, until: int) -> None:
        """Ask what the beliefs rest on of those who started, up to this one of them."""
        done = self._explained
        if done < until:
            state, explain = self._state, self._engine.view.predictor.explain
            for job in state.start_order[done:until].tolist():
                self.explanations.add(explain(job, state.processors.item(job)))
            self._explained = until

    def queued(self) -> IntArray:
        """Return who waits."""
        return jobs_in(self.memory.queue)

    def stretches(self, end_time: FloatArray) -> None:
        """Return None: runs keep what they start on."""
