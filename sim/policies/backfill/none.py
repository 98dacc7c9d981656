"""No backfilling: a strict head, or first fit."""

from sim.engine.protocols import Scheduler
from sim.policies.backfill.easy import EasyScheduler
from sim.policies.base import Allocation, OpenAllocation
from sim.policies.molding.scheduler import OpenScheduler
from sim.policies.order import Order
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
        return EasyScheduler(view, order, allocation, strict=True)


class FirstFit:
    """First fit: blocked jobs are passed over and hold no reservation; wide ones may starve."""

    def begin(self, view: View, order: Order, allocation: Allocation | OpenAllocation) -> Scheduler:
        """Begin a run."""
        if isinstance(allocation, OpenAllocation):
            return OpenScheduler(view, order, allocation, 0)
        return EasyScheduler(view, order, allocation, reservations=0)
