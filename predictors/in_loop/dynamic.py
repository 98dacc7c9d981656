"""Beliefs about running adaptive jobs, renewed cycle by cycle, in the loop of the simulator."""

from dataclasses import dataclass
from typing import Literal

from numpy.typing import ArrayLike

from predictors.base import Observation, VisibleJobs, Wrapper
from predictors.cycles.offline import OfflineCyclePredictor
from predictors.cycles.online import Remaining, RemainingTime
from predictors.errors import AT_LEAST_0, AT_LEAST_1, BETWEEN_0_AND_1, check_choice

Believe = Literal["median", "high"]


@dataclass(eq=False, repr=False)
class Dynamic(Wrapper):
    """Another predictor until a job runs; then its own measured cycles.

    Before an adaptive job starts nothing better is known than what `before`
    says. While it runs, `progress` takes in its finished cycles and says how
    long it will still take, from which reservations are updated.

    Parameters
    ----------
    before : RuntimePredictor
        Asked for all jobs before they start.
    believe : str
        ``median``, or the ``high`` end of the interval: late believed ends move
        reservations less often, early ones start them sooner.
    level : float
        Of the interval, between 0 and 1.
    window : int
        Latest cycles from which the speed is taken.
    min_cycles : int
        Cycles to have been measured before there is a belief.
    renew_every : float
        Seconds between two readings of the cycles of a running job, at least 0.
    tolerance : float
        A belief stands while the new remaining time is within this share of it.

    Raises
    ------
    PredictorError
        If a parameter is out of range.
    """

    believe: Believe = "median"
    level: float = 0.8
    window: int = 32
    min_cycles: int = 3
    renew_every: float = 600.0
    tolerance: float = 0.05

    def __post_init__(self) -> None:
        check_choice(("median", "high"), believe=self.believe)
        BETWEEN_0_AND_1.check(level=self.level)
        AT_LEAST_1.check(window=self.window, min_cycles=self.min_cycles)
        AT_LEAST_0.check(renew_every=self.renew_every, tolerance=self.tolerance)
        self._running: dict[int, tuple[tuple[int, int], RemainingTime]] = {}

    def attach(self, jobs: VisibleJobs) -> None:
        """Begin a run with these jobs; forget all observations and running jobs."""
        super().attach(jobs)
        self._running = {}

    def observe(self, observation: Observation) -> bool:
        """Pass on a finished run."""
        self.forget(observation.job)
        return super().observe(observation)

    def progress(
        self,
        job: int,
        run: int,
        nprocs: int,
        cells: ArrayLike,
        seconds: ArrayLike,
        left: int,
        offline: OfflineCyclePredictor | None = None,
    ) -> Remaining | None:
        """Take in cycles of a running job and say how long it will still take.

        Parameters
        ----------
        job, run, nprocs : int
            A new run, or another count, begins with a fresh history.
        cells, seconds : array_like of float, shape (m,)
            Cells per processor and measured time of the cycles finished since
            the last call; may be empty.
        left : int
            Cycles that remain.
        offline : OfflineCyclePredictor, optional
            Benchmark of the application.

        Returns
        -------
        Remaining or None
            None while fewer than `min_cycles` were measured.
        """
        key, model = self._running.get(job, (None, None))
        if model is None or key != (run, nprocs):
            model = RemainingTime(max(left, 1), offline, nprocs, self.window)
            self._running[job] = ((run, nprocs), model)
        model.update(cells, seconds)
        if model.online.cycles_ < self.min_cycles:
            return None
        return model.predict(self.level, left)

    def believed_seconds(self, remaining: Remaining) -> float:
        """Return the remaining time to believe in, seconds."""
        return remaining.seconds if self.believe == "median" else remaining.high

    def forget(self, job: int) -> None:
        """Drop the cycles of a job that runs no more."""
        self._running.pop(job, None)
