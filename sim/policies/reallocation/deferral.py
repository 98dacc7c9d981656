"""Jobs that wait because the rule would give them nothing of the machine yet."""

from collections.abc import Callable

import numpy as np

from predictors.base import IntArray
from sim.policies.reallocation.sharing import Members, Sharing
from sim.view import View


class Deferral:
    """Keeps malleable jobs back whose share of the machine rounds to nothing.

    A job that runs cannot be taken off its least count, so this must be settled
    before a job starts: the rule shares out all that malleable jobs hold and all
    that is free among those that run and those that would start, and who gets
    nothing waits in front of the queue until the next look.

    Parameters
    ----------
    view : View
    sharing : Sharing
    limits : callable
        Job to the count below which it never falls and its largest.

    Attributes
    ----------
    jobs : list of int
        Who is kept back, in order of arrival.
    """

    def __init__(
        self, view: View, sharing: Sharing, limits: Callable[[int], tuple[int, int]]
    ) -> None:
        self._view = view
        self._sharing = sharing
        self._limits = limits
        self._total = -1
        self._asked: list[int] = []
        self._found: IntArray = np.zeros(0, np.int64)
        self.jobs: list[int] = []

    def admit(self, running: Members) -> list[int]:
        """Return the jobs that may queue now: all arrivals but those that are kept back.

        Parameters
        ----------
        running : Members
            The malleable jobs that run.
        """
        view = self._view
        arrived = view.arrived
        self._asked = []
        if not (self.jobs or arrived):
            return arrived
        malleable = view.malleable
        candidates = [*self.jobs, *(job for job in arrived if malleable[job])]
        if not candidates:
            return arrived
        self._total = view.free + int(running.held.sum())
        everybody = self._with(running, candidates)
        self._asked = everybody.job
        self._found = found = self._sharing.share(everybody, self._total)
        if found.all():
            returned, self.jobs = self.jobs, []
            return [*returned, *arrived] if returned else arrived
        shares = dict(zip(everybody.job, found.tolist(), strict=True))
        self._asked, self._found = [job for job in everybody.job if shares[job]], found[found > 0]
        returned = [job for job in self.jobs if shares[job]]
        self.jobs = [job for job in candidates if not shares[job]]
        return [*returned, *(job for job in arrived if shares.get(job) != 0)]

    def share(self, members: Members, total: int) -> IntArray:
        """Return the shares of the members, among whom nobody is who is kept back.

        Those who are kept back count among the jobs that are there.
        """
        same = total == self._total and members.job == self._asked
        if same and not (self._found < members.least).any():
            return self._found
        if self.jobs:
            shares = self._sharing.share(self._with(members, self.jobs), total)
            if not shares[len(members) :].any():
                return shares[: len(members)]
        return self._sharing.share(members, total)

    def _with(self, running: Members, candidates: list[int]) -> Members:
        """Return the runs and the candidates, which may get nothing."""
        count = len(candidates)
        nothing: IntArray = np.zeros(count, np.int64)
        largest = np.array([self._limits(job)[1] for job in candidates], np.int64)
        return Members(
            running.job + candidates,
            running.run + [None] * count,
            np.concatenate([running.held, nothing]),
            np.concatenate([running.least, nothing]),
            np.concatenate([running.largest, largest]),
            running.waiting,
        )
