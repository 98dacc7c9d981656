"""What a reallocation rule is asked, and about whom."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from predictors.base import FloatArray, IntArray
from sim.policies.reallocation.beliefs import Beliefs
from sim.view import Run


@dataclass(frozen=True)
class Members:
    """The malleable jobs on the machine: those that run, oldest first, then those that start.

    Attributes
    ----------
    job : list of int
    run : list of (Run or None), length n
        None for a job that starts now.
    held : numpy.ndarray of int, shape (n,)
        0 for a job that starts now.
    least, largest : numpy.ndarray of int, shape (n,)
        What each may hold now.
    waiting : int
        How many jobs wait.
    """

    job: list[int]
    run: list[Run | None]
    held: IntArray
    least: IntArray
    largest: IntArray
    waiting: int

    def __len__(self) -> int:
        return len(self.job)


class Sharing(Protocol):
    """A reallocation rule at work in one run, with whatever it remembers."""

    def queue_count(self, job: int) -> int:
        """Return with how many processors a job starts, and below which it never falls."""
        ...

    def share(self, members: Members, total: int) -> IntArray:
        """Return the processors of each member.

        Parameters
        ----------
        members : Members
        total : int
            What they may hold together; at least the sum of ``members.least``.
        """
        ...

    def hold_back(self) -> float | None:
        """Return until when nobody may start, None if jobs may."""
        ...

    def wake(self) -> float | None:
        """Return when the rule wants to look again, None if only when something happens."""
        ...


class PlainSharing:
    """What most rules have in common: they remember nothing and start jobs on their least count.

    Parameters
    ----------
    beliefs : Beliefs
    """

    def __init__(self, beliefs: Beliefs) -> None:
        self.beliefs = beliefs
        self.view = beliefs.view

    def queue_count(self, job: int) -> int:
        """Return the job's least count."""
        return self.view.extremes(job)[0]

    def hold_back(self) -> float | None:
        """Return None: jobs may start."""
        return None

    def wake(self) -> float | None:
        """Return None: shares change when something happens."""
        return None

    def work_left(self, members: Members) -> FloatArray:
        """Return the believed serial seconds that each member has to do, shape (n,)."""
        beliefs = self.beliefs
        return np.array(
            [
                beliefs.serial(job) if run is None else beliefs.work_left(run)
                for job, run in zip(members.job, members.run, strict=True)
            ]
        )
