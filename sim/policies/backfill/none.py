"""No backfilling: a strict head, or first fit."""

from sim.policies.allocation.sa import has_table
from sim.policies.backfill.outlook import DryRun
from sim.policies.backfill.passes import STRICT
from sim.policies.base import Allocation, OpenAllocation, QueueKeeper, Scheduler
from sim.policies.molding.scheduler import OpenScheduler
from sim.policies.order import Order
from sim.state.decisions import Decision, Start
from sim.state.view import View


class NoBackfill:
    """Strict: nobody passes the head of the queue, not even when it is blocked.

    Examples
    --------
    >>> import sim
    >>> policy = sim.Policy(sim.FirstComeFirstServed(), NoBackfill(), sim.Request())
    >>> result = sim.run("workload.jobs=20", policy=policy, predictor="oracle")
    >>> set(result.jobs["status"])
    {'completed'}
    """

    def begin(self, view: View, order: Order, allocation: Allocation | OpenAllocation) -> Scheduler:
        """Begin a run."""
        if isinstance(allocation, OpenAllocation):
            return OpenScheduler(view, order, allocation, 1, strict=True)
        return StrictScheduler(view, order, allocation)


class Skip:
    """First fit: blocked jobs are passed over and hold no reservation; wide ones may starve."""

    def begin(self, view: View, order: Order, allocation: Allocation | OpenAllocation) -> Scheduler:
        """Begin a run."""
        if isinstance(allocation, OpenAllocation):
            return OpenScheduler(view, order, allocation, 0)
        return SkipScheduler(view, order, allocation)


class StrictScheduler(QueueKeeper):
    """Starts heads while they fit.

    While nothing but arrivals happens, the head that did not fit still does not.
    """

    def __init__(self, view: View, order: Order, allocation: Allocation) -> None:
        super().__init__(view, order, allocation)
        self._outlook = DryRun(self)

    @property
    def compiled(self) -> int | None:
        """`STRICT` where jobs choose by a table, if at all, and keep the order of arrival."""
        plain = type(self) is StrictScheduler and self._keyless
        return STRICT if plain and has_table(self.allocation, self.view) else None

    def decide(self) -> list[Decision]:
        """Start heads while they fit; stop at the first that does not."""
        view, queue = self.view, self.queue
        blocked = queue.waiting > 0
        if view.revised:
            self.refresh()
        for job in view.arrived:
            self.admit(job, self._outlook)
        decisions: list[Decision] = []
        if self._keyless:
            if blocked and not (view.ended or view.moved_ends or view.disturbed):
                return decisions
        else:
            self.rank()
        free = view.free
        while queue.waiting:
            place = queue.head()
            processors = queue.processors.item(place)
            if processors > free:
                break
            decisions.append(Start(queue.job.item(place), processors))
            free -= processors
            queue.drop(place)
        return decisions


class SkipScheduler(QueueKeeper):
    """Starts whatever fits, in queue order."""

    def __init__(self, view: View, order: Order, allocation: Allocation) -> None:
        super().__init__(view, order, allocation)
        self._outlook = DryRun(self)

    def decide(self) -> list[Decision]:
        """Start every waiting job that fits, in queue order."""
        view, queue = self.view, self.queue
        if view.revised:
            self.refresh()
        for job in view.arrived:
            self.admit(job, self._outlook)
        self.rank()
        free = view.free
        decisions: list[Decision] = []
        if free > 0:
            places = queue.places()
            for place in places[queue.processors[places] <= free].tolist():
                processors = queue.processors.item(place)
                if processors <= free:
                    decisions.append(Start(queue.job.item(place), processors))
                    free -= processors
                    queue.drop(place)
        return decisions
