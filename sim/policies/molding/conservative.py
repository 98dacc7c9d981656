"""Conservative backfilling with open counts: a reservation and a count for every waiting job."""

import numpy as np

from sim.decisions import Decision
from sim.policies.backfill.conservative import ConservativeScheduler
from sim.policies.molding.choice import best_dish, compress_menus
from sim.policies.molding.scheduler import OpenKeeper


class OpenConservativeScheduler(OpenKeeper, ConservativeScheduler):
    """Conservative with open counts: every waiting job holds a count and a reservation.

    A job takes the dish of earliest end when it arrives; all arrivals of an instant are
    in the queue before the rule says what is allowed. When processors become free early,
    every waiting job in queue order may take another dish if it then ends earlier; none
    ever ends later than it was promised, unless beliefs grow.
    """

    def look(self) -> list[Decision]:
        """Bring the profile up to date, compress with open counts, start who is due."""
        self.molder.watch()
        return super().look()

    def _take_in_arrivals(self) -> None:
        """Queue all arrivals, then let the rule narrow the menus, once for this look."""
        for job in self.view.arrived:
            self.admit(job, self.outlook)
        if self.queue.waiting:
            self.molder.mold(self.queue)
        queue = self.queue
        arrived = set(self.view.arrived)
        self._places = {
            queue.job.item(place): place
            for place in (queue.places().tolist() if arrived else ())
            if queue.job.item(place) in arrived
        }

    def place(self, job: int) -> None:
        """Reserve the hole in which a job that was taken in ends earliest."""
        queue, profile, now = self.queue, self.profile, self.view.now
        place = self._places[job]
        dish, start = best_dish(
            profile.times,
            profile.free,
            profile.span,
            now,
            queue.counts,
            queue.runtimes,
            queue.low.item(place),
            queue.high.item(place),
            np.inf,
        )
        queue.choose(place, dish)
        queue.start[place] = start
        end = start + queue.runtime.item(place)
        queue.promise[place] = end
        profile.occupy(start, end, queue.processors.item(place))
        self._next_start = min(self._next_start, start)

    def _compress(self) -> None:
        queue, profile = self.queue, self.profile
        compress_menus(
            profile.times,
            profile.free,
            profile.span,
            self.view.now,
            queue.processors,
            queue.runtime,
            queue.start,
            queue.low,
            queue.high,
            queue.counts,
            queue.runtimes,
            queue.first,
            queue.last,
            self._freed,
        )
        self._next_start = self.view.now
