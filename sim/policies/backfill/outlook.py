"""When would a job start? Dry runs of the queue, and jobs that choose anew by them."""

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.policies.backfill.queue_search import (
    Opening,
    Summaries,
    backfill,
    find_heads,
    summaries_of,
)
from sim.policies.backfill.reservations import replan
from sim.policies.base import QueueKeeper
from sim.state.availability import BelievedEnds, Profile
from sim.state.waiting_queue import Waiting


@compiled(makes_arrays=True)
def run_easy(
    now: float,
    free: int,
    end: FloatArray,
    held: IntArray,
    counts: IntArray,
    runtimes: FloatArray,
    summaries: Summaries,
) -> float:
    """Run EASY on from now, without arrivals, until the last waiting job starts.

    Parameters
    ----------
    now : float, seconds
    free : int
    end, held : numpy.ndarray of shape (r + n,)
        Believed ends and processors of the r running jobs, and room for the
        waiting ones; 0 processors mark room. Changed.
    counts, runtimes : numpy.ndarray of shape (n,)
        Waiting jobs in queue order. `counts` is changed.
    summaries : Summaries
        Room for those of the waiting jobs.

    Returns
    -------
    float
        When the last of them starts, seconds.
    """
    waiting = Waiting(counts, runtimes, runtimes)
    last, found = counts.size, np.empty(counts.size, np.int64)
    slot, head = held.size - last, 0
    summaries.summarised[:] = False
    while True:
        number, head, free = find_heads(counts, head, last, free, found)
        if head < last:
            order = np.argsort(end[:slot], kind="mergesort")
            ends = BelievedEnds(end[order], order, held[order])
            opening = Opening(free, 0, now, 0.0)
            number, _, _ = backfill(ends, waiting, head, last, opening, summaries, number, found)
        for place in found[:number]:
            if place == last - 1:
                return now
            end[slot], held[slot] = now + runtimes[place], counts[place]
            free -= counts[place] if place > head else 0
            counts[place] = 0
            slot += 1
        following = np.inf
        for k in range(slot):
            if held[k] > 0:
                following = min(following, end[k])
        now = following
        for k in range(slot):
            if held[k] > 0 and end[k] <= now:
                free += held[k]
                held[k] = 0


class DrainRun:
    """Predicts starts by running EASY on until the queue has drained, once for each count.

    Parameters
    ----------
    keeper : QueueKeeper
        Whose queue to run.
    """

    def __init__(self, keeper: QueueKeeper) -> None:
        self._keeper = keeper

    def __call__(self, counts: IntArray, runtimes: FloatArray) -> FloatArray:
        """Return the start of each (count, runtime) behind all that waits, in seconds."""
        view, queue = self._keeper.view, self._keeper.queue
        places = queue.places()
        wanted = np.append(queue.processors[places], 0)
        seconds = np.append(queue.runtime[places], 0.0)
        ends = view._ends
        end = np.concatenate([ends.end, np.zeros(wanted.size)])
        held = np.concatenate([ends.processors, np.zeros(wanted.size, np.int64)])
        starts, summaries = np.empty(counts.size), summaries_of(wanted.size)
        for i, (count, runtime) in enumerate(zip(counts.tolist(), runtimes.tolist(), strict=True)):
            wanted[-1], seconds[-1] = count, runtime
            changed = end.copy(), held.copy(), wanted.copy()
            starts[i] = run_easy(view.now, view.free, *changed, seconds, summaries)
        return starts


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
        changed = False
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
