"""What every predictor that learns per application does alike in the loop."""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from math import inf, isnan, log, nan
from typing import Generic, Protocol, TypeVar

import numpy as np

from predictors.base import Explanation, FloatArray, IntArray, Observation, VisibleJobs
from predictors.errors import POSITIVE, Bounds
from predictors.remarks import UNLIKE, UNUSABLE

ASKS_FOR_MORE = 30.0
"""A job of hidden size that asks for over so many times its believed runtime is not like the runs.

Chosen on Lublin's model and ALCF Theta, against 10 and against no bound.
"""

CALIBRATION = Bounds("at least 0 and at most 10,000", 0, 10_000)
"""Runs an application before the start; 3 or 4 is what the methods ask for."""

PRIOR_ERRORS, WORST = 2.0, 9.0
"""The mean of e² over all runs weighs as so many of a pool's own; no e² counts as more.

One that is off by e^10 would else close all pools for long. Chosen on seeds from 1000 on.
"""

DOUBT = 5.0
"""Without runs before the start so many with e² = 1 are taken to have been seen in all pools.

Chosen on seeds 1000 to 1010: three early runs of unlike sizes made a curve that nothing refuted.
"""


class RunHistory(Protocol):
    """The finished runs of one pool, and the model fitted to them.

    Attributes
    ----------
    number : int
        Of the runs.
    """

    number: int

    def add(self, run: Observation) -> bool:
        """Add a run; True if what was last predicted no longer stands."""

    def believe(self, counts: IntArray, size: float) -> FloatArray | None:
        """Return the believed runtimes of a job of that size (NaN where hidden) at each count."""

    def grade(self, nprocs: int, size: float) -> tuple[str, str] | None:
        """Return reliability and code of the belief about such a job; None if there is none."""

    def kept_at(self, nprocs: int, size: float) -> tuple[int, float]:
        """Return how many runs are kept at a count, and their mean, as `Explanation` has it."""


History = TypeVar("History", bound=RunHistory)
_NOTHING = np.zeros(0)
_EVERY = "every pool"


def or_unit(size: float) -> float:
    """Return a size, 1 where it is hidden."""
    return 1.0 if isnan(size) else size


class PerApplication(ABC, Generic[History]):
    """Learn from finished runs, with a history for each pool of runs that tell of a job.

    Where sizes are known an application is one pool. Where they are hidden each size
    class is one, or, without classes, all runs of the application are. Where a pool's
    runs do not suffice yet, the request stands. A job of hidden size that asks for far
    longer than the runs of its pool let expect may be another kind of job: what is
    believed of it is graded ``unusable``, code ``unlike``.

    A curve is used where its runs carry it: when a run ends, e = ln(runtime / belief) by
    what was last said of that job, whether it was used or not. With k such runs of a pool,
    S their sum of e² (each at most 9) and m the mean over all pools, beliefs are given while
    (S + 2m) / (k + 2) is at most `most_error`²; else the request stands. Without runs before
    the start m begins at 1, as if five runs had shown it.

    Parameters
    ----------
    method : str
        Its name in ``predictions.parquet``.
    calibration : int or None
        Runs per application before the start; 0 learns online alone; None leaves
        it to the simulator, which takes 3 on models and 0 on files.
    charge : bool
        Whether calibration runs are submitted as jobs.
    most_error : float or None
        Above 0; None gives beliefs whatever their errors. ln 2 is 0.7: within a factor of
        two, as a root mean square.
    """

    learns = True

    def __init__(
        self,
        method: str,
        calibration: int | None,
        charge: bool,
        most_error: float | None = 0.7,
    ) -> None:
        if calibration is not None:
            CALIBRATION.check(calibration=calibration)
        POSITIVE.check_or_null(most_error=most_error)
        self.most_error = inf if most_error is None else most_error
        self.method = method
        self.calibration = calibration
        self.charge = charge
        self._histories: dict[Hashable, History] = {}
        self._telling: dict[Hashable, History] = {}
        self._said: dict[int, tuple[IntArray, FloatArray]] = {}
        self._errors: dict[Hashable, tuple[int, float]] = {}

    @abstractmethod
    def _begin(self, run: Observation) -> History:
        """Return the empty history of the pool that a run belongs to."""

    def _suffices(self, history: History) -> bool:
        """Return whether the runs of a pool are enough, and alike enough, for a belief.

        It hangs on the runs alone.
        """
        return True

    def attach(self, jobs: VisibleJobs) -> None:
        """Begin a run with these jobs; forget all observations."""
        self._histories, self._telling, self._said, self._errors = {}, {}, {}, {}
        self._jobs = jobs

    def observe(self, observation: Observation) -> bool:
        """Take in a finished run; True if beliefs about its application changed."""
        pool = _pool(observation.application, observation.size_class, observation.size)
        self._compare(pool, observation)
        history = self._histories.get(pool)
        if history is None:
            history = self._histories[pool] = self._begin(observation)
        changed = history.add(observation)
        if not self._suffices(history) or not self._carries(pool):
            return self._telling.pop(pool, None) is not None
        sufficed = pool in self._telling
        self._telling[pool] = history
        return changed or not sufficed

    def curve(self, job: int, counts: IntArray) -> FloatArray | None:
        """Return the believed runtimes of a job at each count, None if too little was seen.

        None too where what was believed so far was too far off; it is worked out all the
        same, to be compared with the run.
        """
        pool, size = self._pool_of(job), self._size(job)
        history = self._histories.get(pool)
        if history is None or not self._suffices(history):
            return None
        found = history.believe(counts, size)
        if found is not None:
            self._said[job] = counts, found
        return found if pool in self._telling else None

    def _compare(self, pool: Hashable, run: Observation) -> None:
        """Take in how far off what was last said of a job was, where anything was."""
        counts, seconds = self._said.pop(run.job, (_NOTHING, _NOTHING))
        for believed in seconds[counts == run.nprocs][:1].tolist() if run.runtime > 0.0 else ():
            for one in (pool, _EVERY):
                number, squares = self._errors.get(one, (0, 0.0))
                error = (log(run.runtime) - log(believed)) ** 2
                self._errors[one] = number + 1, squares + min(error, WORST)

    def _carries(self, pool: Hashable) -> bool:
        """Return whether beliefs about a pool were near enough so far, those about all counting."""
        every, total = self._errors.get(_EVERY, (0, 0.0))
        doubt = DOUBT if self.calibration == 0 else 0.0
        usual = (total + doubt) / max(every + doubt, 1.0)
        number, squares = self._errors.get(pool, (0, 0.0))
        mean = (squares + PRIOR_ERRORS * usual) / (number + PRIOR_ERRORS)
        return mean <= self.most_error**2

    def explain(self, job: int, nprocs: int) -> Explanation:
        """Say on how many runs a belief rests, and how the model grades it."""
        history, graded = self._history(job), self._graded(job, nprocs)
        if history is None or graded is None:
            return Explanation("requested_time", 0, "")
        kept = history.kept_at(nprocs, self._size(job))
        return Explanation(self.method, history.number, *graded, *kept)

    def grade_of(self, job: int, nprocs: int) -> tuple[str, str]:
        """Return reliability and code of what `explain` says."""
        return self._graded(job, nprocs) or ("", "")

    def _graded(self, job: int, nprocs: int) -> tuple[str, str] | None:
        """Return reliability and code of a belief, None where there is none."""
        history, size = self._history(job), self._size(job)
        found = None if history is None else history.grade(nprocs, size)
        if history is not None and found and isnan(size) and self._is_unlike(job, history):
            return UNUSABLE, UNLIKE
        return found

    def _is_unlike(self, job: int, history: History) -> bool:
        """Return whether a job asks for far longer than is believed of it at its request."""
        jobs = self._jobs
        request = jobs.requested_processors[job : job + 1].astype(np.int64)
        believed = history.believe(request, nan)
        return believed is not None and jobs.requested_time.item(
            job
        ) > ASKS_FOR_MORE * believed.item(0)

    def _history(self, job: int) -> History | None:
        """Return the history that tells of a job, None if its runs do not suffice."""
        return self._telling.get(self._pool_of(job))

    def _pool_of(self, job: int) -> Hashable:
        jobs = self._jobs
        return _pool(jobs.application.item(job), jobs.size_class.item(job), self._size(job))

    def _size(self, job: int) -> float:
        return self._jobs.size.item(job)


def _pool(application: int, size_class: int, size: float) -> Hashable:
    return application if not isnan(size) else (application, size_class)
