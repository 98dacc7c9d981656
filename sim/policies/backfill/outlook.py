"""When would a job start? Dry runs of the queue, and jobs that choose anew by them."""

from predictors.base import FloatArray, IntArray
from sim.policies.backfill.reservations import replan
from sim.policies.base import QueueKeeper
from sim.state.availability import Profile


class DryRun:
    """Predicts starts by giving every waiting job a reservation in queue order.

    Used by policies that hold no reservations of their own; a conservative
    policy asks its live profile instead.

    Parameters
    ----------
    keeper : QueueKeeper
        Whose queue to lay out.
    """

    def __init__(self, keeper: QueueKeeper) -> None:
        self._keeper = keeper
        self._profile = Profile(keeper.view.processors)

    def __call__(self, counts: IntArray, runtimes: FloatArray) -> FloatArray:
        """Return the earliest start of each (count, runtime), in seconds."""
        view, queue, profile = self._keeper.view, self._keeper.queue, self._profile
        profile.grow(queue.waiting + view._ends.end.size)
        profile.lay(view.now, view._ends)
        foreseen = queue.table._replace(starts=queue.start.copy())
        replan(profile.holes, view.now, foreseen, queue.first, queue.last)
        return profile.earliest_of(view.now, counts, runtimes)


class ChoiceAnew:
    """Lets all that wait choose again, in queue order, when a belief proves wrong.

    SA's jobs choose once, by the ends that are believed when they arrive. A job that
    asked for most of the machine, behind one that should soon end, may have chosen
    fewer processors had it known better. The rule is ours. While beliefs hold, as an
    oracle's do, nobody chooses twice.

    Parameters
    ----------
    keeper : QueueKeeper
        Whose queue it is.
    factor : float
        A belief is refuted when a job is still running that has outlived its believed end
        and taken so many times its believed runtime; at least 1. Believed ends
        double, so that it happens again at each doubling.
    """

    def __init__(self, keeper: QueueKeeper, factor: float) -> None:
        self._keeper = keeper
        self.factor = factor
        self._profile = Profile(keeper.view.processors)

    @property
    def is_due(self) -> bool:
        """Whether a running job has refuted its belief since the last pass."""
        view = self._keeper.view
        for run, before in view.moved_ends.items():
            outlived = before <= view.now < run.believed_end and run.changed == run.start
            if outlived and view.running.get(run.job) is run:
                believed = view.belief(run.job, run.processors)
                if before - run.start >= self.factor * believed * (1.0 - 1e-9):
                    return True
        return False

    def choose(self) -> bool:
        """Let each waiting job choose given those ahead of it; say whether any choice changed."""
        view, queue, profile = self._keeper.view, self._keeper.queue, self._profile
        profile.grow(queue.waiting + len(view.running))
        profile.lay(view.now, view._ends)
        changed, view._others_wait = False, queue.waiting > 1
        for place in queue.places().tolist():
            job = queue.job.item(place)
            count = self._keeper.allocation.choose(
                job, view, lambda n, r: profile.earliest_of(view.now, n, r)
            )
            seconds = view.belief(job, count)
            profile.place(view.now, count, seconds)
            if (count, seconds) != (queue.processors.item(place), queue.runtime.item(place)):
                queue.processors[place], queue.runtime[place] = count, seconds
                changed = True
        return changed
