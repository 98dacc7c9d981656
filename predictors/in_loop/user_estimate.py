"""The predictor of today's schedulers: what the user wrote down, nothing else."""

from predictors.base import Explanation, FloatArray, IntArray, Observation, VisibleJobs


class UserEstimate:
    """Believe the requested time, and know nothing of other counts.

    It has no curve for any job, so the request stands and the requested time is
    the belief.

    Examples
    --------
    >>> import numpy as np
    >>> UserEstimate().curve(0, np.array([1, 2, 4])) is None
    True
    """

    learns = False
    has_curves = False

    def attach(self, jobs: VisibleJobs) -> None:
        """Take the jobs in; nothing of them is kept."""

    def curve(self, job: int, counts: IntArray) -> FloatArray | None:
        """Return None: there is nothing beyond the request."""
        return None

    def observe(self, observation: Observation) -> bool:
        """Return False: a finished run changes no estimate."""
        return False

    def explain(self, job: int, nprocs: int) -> Explanation:
        """Say that the belief is the user's."""
        return Explanation(method="user_estimate", observations=0, reliability="stated")
