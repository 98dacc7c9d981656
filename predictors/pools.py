"""Which finished runs tell of a job: pools by application, and by size class where sizes hide."""

from collections.abc import Callable, Hashable
from math import isnan
from typing import Generic, TypeVar

from predictors.base import Observation, VisibleJobs

History = TypeVar("History")


class Pools(Generic[History]):
    """What was learned of each pool of runs.

    Where sizes are known an application is one pool. Where they are hidden each
    size class is one, or, without classes, all runs of the application are.

    Parameters
    ----------
    begin : callable
        Makes the history of a new pool.

    Attributes
    ----------
    size : list of float
        Size of each job; NaN where it is hidden.

    Examples
    --------
    >>> import numpy as np
    >>> zero, hidden = np.zeros(2, int), np.full(2, np.nan)
    >>> pools = Pools(list)
    >>> pools.attach(VisibleJobs(zero, np.array([3, 4]), hidden, zero, zero + 4, hidden))
    >>> pools.observed(Observation(0, 3, np.nan, 1, 60.0, 0.0)).append("a run")
    >>> pools.of(0), pools.of(1)
    (['a run'], None)
    """

    def __init__(self, begin: Callable[[], History]) -> None:
        self._begin = begin
        self._histories: dict[Hashable, History] = {}

    def attach(self, jobs: VisibleJobs) -> None:
        """Begin a run with these jobs; forget everything."""
        self._histories = {}
        self.size: list[float] = jobs.size.tolist()
        self._application: list[int] = jobs.application.tolist()
        self._size_class: list[int] = jobs.size_class.tolist()

    def observed(self, run: Observation) -> History:
        """Return the history that a finished run belongs to, a new one if it is the first."""
        pool = self._pool(run.application, run.size_class, run.size)
        history = self._histories.get(pool)
        if history is None:
            history = self._histories[pool] = self._begin()
        return history

    def of(self, job: int) -> History | None:
        """Return the history that tells of a job, None if no run of its pool has finished."""
        pool = self._pool(self._application[job], self._size_class[job], self.size[job])
        return self._histories.get(pool)

    @staticmethod
    def _pool(application: int, size_class: int, size: float) -> Hashable:
        return application if not isnan(size) else (application, size_class)
