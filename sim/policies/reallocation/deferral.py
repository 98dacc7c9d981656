"""Jobs that wait because the rule would give them nothing of the machine yet."""

from collections.abc import Callable
from dataclasses import replace

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
        self._found: dict[int, int] = {}
        self.jobs: list[int] = []

    def admit(self, running: Members) -> list[int]:
        """Return the jobs that may queue now: all arrivals but those that are kept back.

        Parameters
        ----------
        running : Members
            The malleable jobs that run.
        """
        view = self._view
        candidates = [*self.jobs, *(job for job in view.arrived if view.malleable[job])]
        self._found = {}
        if not candidates:
            return view.arrived
        self._total = view.free + int(running.held.sum())
        everybody = self._with(running, candidates)
        shares = self._sharing.share(everybody, self._total).tolist()
        self._found = found = dict(zip(everybody.job, shares, strict=True))
        returned = [job for job in self.jobs if found[job]]
        self.jobs = [job for job in candidates if not found[job]]
        return [*returned, *(job for job in view.arrived if found.get(job) != 0)]

    def share(self, members: Members, total: int) -> IntArray:
        """Return the shares of the members, among whom nobody is who is kept back.

        Those who are kept back count among the jobs that are there.
        """
        found = self._found
        if total == self._total and len(found) == len(members) + len(self.jobs):
            known = np.array([found.get(job, -1) for job in members.job])
            if (known >= members.least).all():
                return known
        if self.jobs:
            shares = self._sharing.share(self._with(members, self.jobs), total)
            if not shares[len(members) :].any():
                return shares[: len(members)]
        return self._sharing.share(members, total)

    def _with(self, running: Members, candidates: list[int]) -> Members:
        """Return the runs and the candidates, which may get nothing."""
        nothing: IntArray = np.zeros(len(candidates), np.int64)
        largest = np.array([self._limits(job)[1] for job in candidates], np.int64)
        return replace(
            running,
            job=[*running.job, *candidates],
            run=[*running.run, *(None for _ in candidates)],
            held=np.concatenate([running.held, nothing]),
            least=np.concatenate([running.least, nothing]),
            largest=np.concatenate([running.largest, largest]),
        )
