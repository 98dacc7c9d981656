"""What a policy sees of the machine: live, read-only, and never a true runtime."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray, RuntimePredictor, VisibleJobs
from sim.state.decisions import Preferences
from sim.state.feasible_counts import FeasibleCounts, one_by_one
from sim.state.machine_state import MachineState, Run
from sim.state.predicted import LEAST_BELIEF, Beliefs, SeenPredictor
from sim.state.shown import Changes, SeenMachine, SeenState

ONE_BY_ONE = "requested_processors", "requested_time", "malleable", "submit_time"
"""What is shown of each job as Python's own numbers."""


@dataclass(frozen=True)
class SeenJobs(VisibleJobs):
    """What a policy may know of the jobs that have arrived, by job index.

    Attributes
    ----------
    adopter_draws : numpy.ndarray of float, shape (n,)
        One uniform draw a job, for shares such as that of adopters.
    """

    adopter_draws: FloatArray


def _column(name: str) -> Any:
    """Return what looks up a column of a view once."""
    return cached_property(lambda view: view._columns[name])


class View(SeenState):
    """The system at a scheduling pass.

    Nothing of it can be written to. A job that has not arrived is not there: all of its
    numbers are 0.

    Parameters
    ----------
    state : MachineState
    jobs : VisibleJobs
    predictor : RuntimePredictor
    feasible : FeasibleCounts
    more : mapping of str to numpy.ndarray, shape (n,)
        ``submit_time``, ``malleable`` and ``adopter_draws`` of the jobs.
    preferences : Preferences of the policy
    """

    def __init__(
        self,
        state: MachineState,
        jobs: VisibleJobs,
        predictor: RuntimePredictor,
        feasible: FeasibleCounts,
        more: Mapping[str, NDArray[Any]],
        preferences: Preferences | None = None,
    ) -> None:
        self._state, self._feasible = state, feasible
        self._changes, self._machine = Changes(state), SeenMachine(state)
        self._jobs = SeenJobs(**vars(jobs), adopter_draws=more["adopter_draws"])
        about = jobs, feasible, more["malleable"], state.left, preferences or Preferences()
        self._beliefs = Beliefs(SeenPredictor(predictor, *about))
        columns = {**vars(jobs), **more}
        self._columns = {name: one_by_one(columns[name]) for name in ONE_BY_ONE}

    @property
    def changes(self) -> Changes:
        """What happened since the last pass, besides arrivals and ends."""
        return self._changes

    @property
    def machine(self) -> SeenMachine:
        """Its processors and nodes."""
        return self._machine

    @property
    def jobs(self) -> SeenJobs:
        """What may be known of the jobs that have arrived."""
        return self._jobs

    @property
    def predictor(self) -> SeenPredictor:
        """What the predictor says besides curves, and what its beliefs rest on."""
        return self._beliefs.predictor

    requested_processors: Sequence[int] = _column("requested_processors")
    """Of each job."""
    malleable: Sequence[bool] = _column("malleable")
    """Whether the processors of each job may change while it runs."""
    requested_time: Sequence[float] = _column("requested_time")
    """Of each job, seconds."""
    submit_time: Sequence[float] = _column("submit_time")
    """Of each job, seconds."""

    def counts(self, job: int) -> IntArray:
        """Return every count the job could run on, ascending, within the machine."""
        return self._feasible.counts(job)

    def extremes(self, job: int) -> tuple[int, int]:
        """Return the least and the largest count the job could run on."""
        return self._feasible.extremes(job)

    def curve(self, job: int, counts: IntArray) -> FloatArray | None:
        """Return the predicted runtimes at each count, in seconds; None if there are none."""
        if (curve := self.predictor._ask(job, counts)) is None:
            return None
        left = self._state.left
        return np.maximum(curve * left[job] if job in left else curve, LEAST_BELIEF)

    def belief(self, job: int, processors: int) -> float:
        """Return the runtime to plan with, in seconds: predicted, else as requested.

        Stretched by past errors, where the policy wants that.
        """
        return self._beliefs.belief(job, processors)

    def stretch_factors(self, job: int, processors: int, counts: IntArray) -> FloatArray:
        """Return the believed runtime at each count over that at `processors`.

        Without a curve a job's work counts in processor-seconds, as if it sped
        up perfectly: nothing else is known of it.
        """
        asked = np.empty(counts.size + 1, np.int64)
        asked[0], asked[1:] = processors, counts
        curve = self.predictor._ask(job, asked)
        return processors / counts if curve is None else np.asarray(curve[1:] / curve[0])

    def seconds_left(self, run: Run) -> float:
        """Return the believed seconds of progress that a run still needs where it is."""
        left = run.believed_end - max(self.now, run.resumes)
        return left if left > 0.0 else 0.0
