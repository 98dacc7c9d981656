"""When would a job start? A dry run of the queue on the availability profile."""

from predictors.base import FloatArray, IntArray
from sim.policies.base import QueueKeeper
from sim.profile import Profile, replan


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
        profile.grow(queue.waiting + len(view.running))
        profile.lay(view.now, view.believed_ends)
        replan(
            profile.times,
            profile.free,
            profile.span,
            view.now,
            queue.processors,
            queue.runtime,
            queue.start.copy(),
            queue.first,
            queue.last,
        )
        return profile.earliest_of(view.now, counts, runtimes)
