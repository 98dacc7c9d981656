"""Beliefs by users alone: what they wrote down, or the mean of their last two runtimes."""

from collections.abc import Sequence

import numpy as np

from predictors.base import Explanation, FloatArray, IntArray, Observation, VisibleJobs
from predictors.errors import PredictorError


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


CORRECTIONS = (60, 300, 900, 1800, 3600, 7200, 18_000, 36_000, 72_000, 180_000, 360_000)
"""Those of EASY++ as predictsim (Gaussier et al., SC 2015) has them, seconds."""


class LastTwo:
    """Believe the mean of the runtimes of the user's last two jobs, at most the requested time.

    Tsafrir, Etsion & Feitelson, TPDS 2007; with fewer than two jobs that have ended, and on
    other counts than the request, nothing is predicted. A job keeps what was predicted when
    it was submitted. Where nobody knows users, jobs of an application are those of one user.

    Parameters
    ----------
    corrections : sequence of float
        A running job that outlives its prediction is believed to run for the first of these
        seconds longer than predicted that it has not outlived, and at most for the
        requested time. Ascending, above 0; without them beliefs double, as all others do.

    Examples
    --------
    >>> predictor, zero, unknown = LastTwo(), np.zeros(3, int), np.full(3, np.nan)
    >>> predictor.attach(VisibleJobs(zero, zero - 1, unknown, zero, zero + 4, unknown + np.inf))
    >>> for job, runtime in ((0, 100.0), (1, 50.0)):
    ...     changed = predictor.observe(Observation(0, -1, np.nan, 4, runtime, 0.0, job))
    >>> predictor.curve(2, np.array([4]))
    array([75.])
    """

    learns = True

    def __init__(self, corrections: Sequence[float] = CORRECTIONS) -> None:
        steps = np.array([0.0, *corrections])
        if not (np.isfinite(steps).all() and (np.diff(steps) > 0).all()):
            raise PredictorError(f"corrections must ascend from above 0, got {list(corrections)}")
        self.corrections: FloatArray = steps[1:]

    def attach(self, jobs: VisibleJobs) -> None:
        """Begin a run with these jobs; forget all runtimes."""
        self._jobs = jobs
        self._last: dict[int, tuple[float, ...]] = {}
        self._said: dict[int, float | None] = {}

    def curve(self, job: int, counts: IntArray) -> FloatArray | None:
        """Return what is predicted at the request, None elsewhere and without two runs."""
        if job not in self._said:
            last, limit = self._last.get(self._who(job), ()), self._jobs.requested_time.item(job)
            self._said[job] = min(sum(last) / 2, limit) if len(last) == 2 else None
        seconds = self._said[job]
        if seconds is None or (counts != self._jobs.requested_processors[job]).any():
            return None
        return np.full(counts.size, seconds)

    def observe(self, observation: Observation) -> bool:
        """Take in a finished run; False, as predictions stand that were made."""
        if observation.job >= 0:
            who, _ = self._who(observation.job), self._said.pop(observation.job, None)
            self._last[who] = (*self._last.get(who, ())[-1:], observation.runtime)
        return False

    def _who(self, job: int) -> int:
        user = self._jobs.user.item(job)
        return user if user >= 0 else -1 - self._jobs.application.item(job)

    def explain(self, job: int, nprocs: int) -> Explanation:
        """Say whether a belief is the mean of two runtimes or the user's."""
        is_own = self._said.get(job) is not None and nprocs == self._jobs.requested_processors[job]
        return Explanation("last_two", 2, "") if is_own else Explanation("requested_time", 0, "")
