"""As greedy, with the least count that keeps what was promised (Srinivasan et al. 2002)."""

import numpy as np

from sim.engine.protocols import Scheduler
from sim.errors import AT_LEAST_0, PolicyError
from sim.policies.base import Allocation, OpenAllocation
from sim.policies.molding.scheduler import OpenScheduler
from sim.policies.order import Order
from sim.policies.passes.memory import first_starts, lay_running, profile_of
from sim.policies.ties import first_least, is_less
from sim.state.availability import FIRST, occupy
from sim.state.view import View


class LazyEasy:
    """EASY whose jobs take the least count that keeps the end that was first predicted for them.

    The lazy scheme of Srinivasan, Subramani, Kettimuthu, Holenarsipur & Sadayappan
    (HiPC 2002), our reading: the end that is first predicted for a job is its promise, and
    as soon as a count can start now and keep the promise, the least such count is taken.

    Parameters
    ----------
    slack : float
        How much longer than first predicted a job may take to end, as a share of the
        time until then; at least 0.
    """

    def __init__(self, slack: float = 0.0) -> None:
        AT_LEAST_0.check(slack=slack)
        self.slack = slack

    def begin(self, view: View, order: Order, allocation: Allocation | OpenAllocation) -> Scheduler:
        """Begin a run."""
        if not isinstance(allocation, OpenAllocation):
            raise PolicyError(
                "policy.backfill=lazy_easy chooses counts when jobs could start; choose an "
                "allocation that keeps them open, such as turnaround, in place of "
                f"{type(allocation).__name__}"
            )
        return LazyScheduler(view, order, allocation, self.slack)


class LazyScheduler(OpenScheduler):
    """Remembers what waiting jobs were promised."""

    always_narrows = True

    def __init__(self, view: View, order: Order, allocation: OpenAllocation, slack: float) -> None:
        super().__init__(view, order, allocation, reservations=1)
        self._slack = slack
        self._promised: dict[int, float] = {}

    def find_starts(self) -> int:
        """Find who starts, in queue order; the first who does not reserves."""
        view, queue, memory = self.view, self.queue, self.memory
        self.rank()
        queue.start[queue.places()] = np.inf
        self.candidates.narrow(memory)
        lay_running(view._tables, memory)
        profile, number, is_reserved = profile_of(memory), 0, False
        for place in queue.places().tolist():
            if is_reserved and profile.free.item(profile.span.item(FIRST)) == 0:
                break
            picked = self._pick(place, is_reserved)
            if picked is None:
                continue
            count, seconds, start = picked
            queue.processors[place], queue.runtime[place], queue.start[place] = picked
            occupy(profile, start, start + seconds, count)
            if start <= view.now:
                queue.found[number] = place
                number += 1
                self._promised.pop(queue.job.item(place), None)
            else:
                is_reserved = True
        return number

    def _pick(self, place: int, is_reserved: bool) -> tuple[int, float, float] | None:
        """Return the count that the job at a place takes, its time there, and when; else None."""
        now, job = self.view.now, self.queue.job.item(place)
        counts, runtimes = self.allowed(place)
        starts = first_starts(self.view._tables, self.memory, counts, runtimes)
        may_start = starts <= now
        if is_reserved and not may_start.any():
            return None
        lengths = np.where(may_start | (not is_reserved), starts - now + runtimes, np.inf)
        best = int(first_least(lengths))
        stretched = now + (1.0 + self._slack) * lengths.item(best)
        if not is_reserved:
            self._promised.setdefault(job, stretched)
        end = max(starts.item(best) + runtimes.item(best), self._promised.get(job, stretched))
        for pick in np.flatnonzero(may_start).tolist():
            if not is_less(end - now, runtimes.item(pick)):
                return counts.item(pick), runtimes.item(pick), now
        return counts.item(best), runtimes.item(best), starts.item(best)
