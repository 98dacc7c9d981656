"""A predictor of new_package."""

import numpy as np

from predictors.base import Explanation, Observation, VisibleJobs


class NewPredictor:
    """The requested time, shorter in proportion on more processors."""

    learns = False

    def attach(self, jobs: VisibleJobs) -> None:
        """Begin a run; jobs are shown as they arrive. Forget all observations."""
        self._jobs = jobs

    def observe(self, observation: Observation) -> bool:
        """Take in a finished run, if `learns`; True if beliefs changed."""
        return False

    def curve(self, job: int, counts: np.ndarray) -> np.ndarray | None:
        """Return the believed runtimes at each count, seconds; None: the requested time."""
        area = self._jobs.requested_time[job] * self._jobs.requested_processors[job]
        return np.asarray(area / counts)

    def explain(self, job: int, nprocs: int) -> Explanation:
        """Say where a belief came from, and on how many runs it rests."""
        return Explanation(method="new_predictor", observations=0, reliability="")
