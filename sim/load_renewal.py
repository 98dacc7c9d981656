"""Beliefs about running jobs on a shared machine, renewed by the load that they have met."""

from collections.abc import Callable
from heapq import heappop, heappush

from sim.load_outlook import LoadOutlook
from sim.processors import as_numbers
from sim.renewal import RARER
from sim.view import Run, View

TOLERANCE = 0.05
"""A belief stands while the new remaining time is within this share of it."""


class LoadRenewal:
    """Predicts running jobs again: the rest of their work, under the load now.

    A job is looked at when the policy looks anyway, once it has run for `every`
    seconds since the last time and for a tenth of its time so far, and when the
    belief about it expires. What it has done by then follows from its predicted
    parts and the load that was measured on its processors meanwhile. Jobs whose
    processors were changed are left alone.

    Parameters
    ----------
    view : View
    load : LoadOutlook
    every : float
        Seconds.
    move : callable
        Moves the believed end of a run to a time, seconds.

    Attributes
    ----------
    renewals : int
        How often a belief was moved.
    """

    def __init__(
        self, view: View, load: LoadOutlook, every: float, move: Callable[[Run, float], None]
    ) -> None:
        self.renewals = 0
        self._view = view
        self._load = load
        self._every = every
        self._move = move
        self._due: list[tuple[float, int, Run]] = []
        self._pushed = 0

    def begin(self, run: Run, now: float) -> None:
        """Follow a run that begins."""
        self._expect(run, now + self._every)

    def _expect(self, run: Run, time: float) -> None:
        self._pushed += 1  # ties are settled by the order of the calls
        heappush(self._due, (time, self._pushed, run))

    def look(self, now: float) -> None:
        """Renew the beliefs about the runs whose turn it is."""
        while self._due and self._due[0][0] <= now:
            run = heappop(self._due)[2]
            if self._view.running.get(run.job) is run and run.changed == run.start:
                self.renew(run, now)
                self._expect(run, now + max(self._every, RARER * (now - run.start), 1.0))

    def renew(self, run: Run, now: float, expired: bool = False) -> bool:
        """Predict the rest of a run; say whether there is a belief in it.

        One that has expired needs a rest that is worth the name, or it would expire
        again and again.
        """
        left = self._seconds_left(run, now)
        if left is None or (expired and left < TOLERANCE * (now - run.start)):
            return False
        end = now + max(left * self._view.caution(run.job), 1.0)
        if abs(end - run.believed_end) > TOLERANCE * (run.believed_end - now):
            self.renewals += 1
            self._move(run, end)
        return True

    def _seconds_left(self, run: Run, now: float) -> float | None:
        """Return how long a run will still take, seconds; None if nobody can say."""
        if run.changed != run.start or run.resumes > now:
            return None
        self._load.now = now
        return self._view.seconds_left_on(run.job, as_numbers(run.nodes), run.start)
