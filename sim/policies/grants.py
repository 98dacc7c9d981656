"""What a policy says to running jobs that ask for processors or a longer walltime."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from sim.engine.protocols import AroundScheduler, Scheduler
from sim.errors import POSITIVE_AND_FINITE
from sim.policies.backfill.conservative import ConservativeScheduler, ReplanningScheduler
from sim.policies.molding.scheduler import OpenScheduler
from sim.policies.passes.queue_rule import QueueScheduler
from sim.policies.reallocation.costs import FREE, CostModel
from sim.state.availability import Reserved, fewest_free, shadow_time
from sim.state.decisions import Decision, Grant, Refuse, Start
from sim.state.machine_state import Run, RunRequest
from sim.state.view import View


@dataclass(frozen=True)
class Grants:
    """Requests are granted as far as what is free allows, after all starts of the pass.

    Parameters
    ----------
    wait : bool
        Whether a request that cannot be granted now stands until it can, or until
        the job ends or needs it no more; if not, it is refused.
    harmless : bool
        Whether a grant must leave every reservation where it is: the running job is
        believed to go on as before, whatever it gains, on the processors it gets.
    longest : float, optional
        Seconds that a run may last, all it was granted included; as long as it asks
        for by default.
    cost : CostModel
        What a change of processors costs; free by default.

    Raises
    ------
    ValueError
        If `longest` is not positive.
    """

    wait: bool = True
    harmless: bool = True
    longest: float | None = None
    cost: CostModel = FREE

    def __post_init__(self) -> None:
        POSITIVE_AND_FINITE.check_or_null(longest=self.longest)

    def begin(self, view: View, scheduler: Scheduler) -> Scheduler:
        """Begin a run."""
        return GrantingScheduler(self, view, scheduler)


class GrantingScheduler(AroundScheduler):
    """Lets another scheduler decide, then answers the requests of running jobs, oldest first.

    Parameters
    ----------
    rule : Grants
    view : View
    inner : Scheduler
        Decides who starts.
    """

    def __init__(self, rule: Grants, view: View, inner: Scheduler) -> None:
        super().__init__(view, inner)
        self.rule = rule
        self.may_move_reservations = not rule.harmless

    def decide(self) -> Sequence[Decision]:
        """Decide who starts, then who gets what it asks for."""
        decisions, view, replies = self.inner.decide(), self.view, list[Decision]()
        if not view.requests:
            return decisions
        starts = [d for d in decisions if isinstance(d, Start)]
        free = view.free - sum(start.processors for start in starts)
        granted = False  # at most one grant a pass: it changes what the next would meet
        for request in list(view.requests.values()):
            run = view.running[request.job]
            if not granted and self._fits(request, run, free, starts):
                cost = self.rule.cost.change(run.processors, request.processors)
                charged = cost if request.kind == "processors" else 0.0
                replies.append(Grant(request.job, request.kind, charged))
                granted = True
            elif not granted and (not self.rule.wait or request.processors < run.processors):
                # What is given back is given at the end of a cycle, or not at all.
                replies.append(Refuse(request.job, request.kind))
        return [*decisions, *replies]

    def _fits(self, request: RunRequest, run: Run, free: int, starts: Sequence[Start]) -> bool:
        """Say whether a request can be granted now."""
        longest = inf if self.rule.longest is None else self.rule.longest
        if request.kind == "walltime" and request.until > run.start + longest:
            return False
        if request.processors - run.processors > free:
            return False
        if not self.rule.harmless:
            return True
        view = self.view
        others = [(end, n) for end, job, n in view._ends.rows() if job != run.job]
        others += [(view.now + view.belief(d.job, d.processors), d.processors) for d in starts]
        after = [*others, (self._end(request, run), request.processors)]
        before = [*others, (run.believed_end, run.processors)]
        reserved = self._reserved(before, free)
        left = free + run.processors - request.processors
        return fewest_free(after, left, reserved, view.now) >= 0

    def _end(self, request: RunRequest, run: Run) -> float:
        """Return when a run is believed to end at the latest that gets what it asks for."""
        view = self.view
        if request.kind == "walltime":
            return max(run.believed_end, request.until)
        before, after = run.processors, request.processors
        longer = max(view.runtime_ratios(run.job, before, np.array([after])).item(), 1.0)
        since = max(view.now, run.resumes) + self.rule.cost.change(before, after)
        return since + longer * view.seconds_left(run)

    def _reserved(self, ends: list[tuple[float, int]], free: int) -> Reserved:
        """Return what the policy has promised to waiting jobs: at least the head's turn."""
        inner = self.inner
        if not isinstance(inner, QueueScheduler) or inner.queue.waiting == 0:
            return []
        plans_all = OpenScheduler | ConservativeScheduler | ReplanningScheduler
        if isinstance(inner, plans_all) and (promises := inner.reserved_starts().values()):
            return promises
        queue, head = inner.queue, inner.queue.head()
        wanted, runtime = queue.processors.item(head), queue.runtime.item(head)
        start, _ = shadow_time(ends, free, wanted, self.view.now)
        return [(start, wanted, runtime)]
