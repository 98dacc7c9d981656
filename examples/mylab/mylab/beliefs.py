"""A predictor of one's own."""

import numpy as np

from predictors.base import Explanation, Observation, VisibleJobs


class Proportional:
    """A share of the requested time, shorter in proportion on more processors.

    Parameters
    ----------
    share : float
        Of the requested time, that jobs are believed to take.
    """

    learns = False

    def __init__(self, share: float) -> None:
        self.share = share

    def attach(self, jobs: VisibleJobs) -> None:
        """Begin a run; jobs are shown as they arrive."""
        self._jobs = jobs

    def observe(self, observation: Observation) -> bool:
        """Return False: a finished run changes nothing."""
        return False

    def curve(self, job: int, counts: np.ndarray) -> np.ndarray | None:
        """Return the believed runtimes at each count, seconds."""
        area = self._jobs.requested_time[job] * self._jobs.requested_processors[job]
        return self.share * area / counts

    def explain(self, job: int, nprocs: int) -> Explanation:
        """Say where a belief came from, and on how many runs it rests."""
        return Explanation(method="proportional", observations=0, reliability="")
