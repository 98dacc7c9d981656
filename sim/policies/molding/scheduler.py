"""Backfilling with open counts: the count is settled when a job could start."""

import numpy as np

from predictors.compiling import direct
from predictors.in_loop.oracle import foresees
from sim.engine.engine import Engine
from sim.engine.protocols import Promise, acts_as
from sim.policies.base import OpenAllocation, Outlook, QueueKeeper
from sim.policies.molding.base import Candidates
from sim.policies.molding.candidates import OpenQueue
from sim.policies.molding.choice import Blocking, mold_first
from sim.policies.order import Order
from sim.policies.passes import by_index
from sim.policies.passes.memory import holes_of, lay_running, make_memory
from sim.policies.passes.queue_rule import CompiledQueueRule
from sim.state.decisions import Decision, Start
from sim.state.feasible_counts import place_up_to
from sim.state.view import View

_lay_running = direct(lay_running)
ALL = np.iinfo(np.int64).max
"""As many reservations as there are jobs."""


class OpenKeeper(QueueKeeper):
    """What schedulers of open counts share: arrivals get candidates in place of a count."""

    kind_of_queue = OpenQueue
    queue: OpenQueue

    def __init__(self, view: View, order: Order, allocation: OpenAllocation) -> None:
        self.candidates: Candidates = allocation.open(view)
        super().__init__(view, order, allocation)

    def admit(self, job: int, outlook: Outlook | None = None) -> int:
        """Queue a job that has just arrived, with its candidates, and return its place."""
        view = self.view
        counts, runtimes, serial = self.candidates.of(job)
        pick = place_up_to(counts, view.requested_processors[job])
        count, seconds = counts.item(pick), runtimes.item(pick)
        view._beliefs.keep(job, count, seconds)
        place = self.enqueue(job, count, seconds)
        self.queue.offer(place, counts, runtimes, serial)
        return place

    def believe_anew(self, place: int, job: int) -> float:
        """Write the candidates of the waiting job at a place anew."""
        queue = self.queue
        queue.offer(place, *self.candidates.of(job))
        counts, _ = queue.candidates(place)
        pick = queue.spans["begin"].item(place) + place_up_to(counts, queue.processors.item(place))
        queue.processors[place] = queue.counts[pick]
        return queue.runtimes.item(pick)

    def start(self, place: int) -> Start:
        """Start the job at a place on the count chosen for it."""
        queue = self.queue
        job, count = queue.job.item(place), queue.processors.item(place)
        self.view._beliefs.keep(job, count, queue.runtime.item(place))
        queue.drop(place)
        return Start(job, count)


class OpenScheduler(OpenKeeper):
    """Plans anew in every pass: a number of reservations, and who may overtake a blocked job.

    Parameters
    ----------
    view : View
    order : Order
    allocation : OpenAllocation
    reservations : int
        0 is first fit, 1 is EASY, `ALL` is conservative.
    strict : bool
        Nobody passes a blocked job.
    """

    promise: Promise = "fit"

    def __init__(
        self,
        view: View,
        order: Order,
        allocation: OpenAllocation,
        reservations: int,
        strict: bool = False,
    ) -> None:
        super().__init__(view, order, allocation)
        self.reservations, self.strict = reservations, strict
        self.memory = make_memory(self.queue.tables, view.processors)

    def compiled_rule(self, engine: Engine) -> CompiledQueueRule | None:
        """Return the rule where it narrows without memory, in the order of arrival."""
        candidates, found = self.candidates, self.candidates.compiled_pass
        plain = acts_as(self, OpenScheduler) and self.by_arrival and foresees(engine.predictor)
        plain &= not (self.view.predictor.learns or engine.kills)
        if not plain or candidates.looks_ahead or found is None:
            return None
        decide, memory = found
        jobs = len(engine.submit)
        memory = memory._replace(reservations=self.reservations, strict=self.strict)
        memory = memory._replace(serial=np.zeros(jobs), job=np.arange(jobs))
        functions = {**by_index.FUNCTIONS, "decide": decide}
        return CompiledQueueRule(engine, self, functions, candidates=candidates, open=memory)

    def decide(self) -> list[Decision]:
        """Let the rule narrow the candidates, then start whoever can and should."""
        view, queue = self.view, self.queue
        self.candidates.watch()
        if view.changes.revised:
            self.refresh()
        for job in view.arrived:
            self.admit(job)
        if queue.waiting == 0:
            return []
        self.rank()
        queue.start[queue.first : queue.last] = np.inf
        if view.free == 0 and not self.candidates.looks_ahead:
            return []
        self.candidates.narrow(queue)
        return [self.start(place) for place in queue.found[: self._plan()].tolist()]

    def _plan(self) -> int:
        """Find who starts, and make the reservations."""
        queue, blocking = self.queue, Blocking(self.reservations, self.strict)
        _lay_running(self.view._tables, self.memory)
        holes, places = holes_of(self.memory), (queue.first, queue.last)
        given = holes, self.view.now, queue.table, queue.every_candidate, *places, blocking
        return int(mold_first(*given, queue.found))
