"""What a policy sees of the machine: live, read-only, and never a true runtime."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray, RuntimePredictor, VisibleJobs
from sim.errors import PolicyError
from sim.state.availability import BelievedEnds
from sim.state.decisions import Preferences
from sim.state.feasible_counts import FeasibleCounts, one_by_one, sealed
from sim.state.machine_state import MachineState, Request, Run
from sim.state.predicted import LEAST_BELIEF, Beliefs, SeenPredictor
from sim.state.run_state import State
from sim.state.shown import Changes, OfRuns, OfState, ReadAlone, SeenMachine

if TYPE_CHECKING:
    from sim.background.load_forecast import LoadForecast

ONE_BY_ONE = "application", "requested_processors", "requested_time", "malleable", "submit_time"
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


def _kept(name: str) -> Any:
    """Return what shows something that a view keeps under another name."""
    return property(attrgetter(name))


class View(ReadAlone):
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
        columns = {**vars(jobs), **more}
        self._columns = {name: one_by_one(columns[name]) for name in ONE_BY_ONE}
        about = self._columns, feasible, state.left, preferences or Preferences()
        self._beliefs = Beliefs(SeenPredictor(predictor, *about))

    # The state of the machine

    now = OfState[float]()
    """Seconds."""
    processors = OfState[int]()
    """Size of the machine."""
    running = OfRuns[Mapping[int, Run]](MappingProxyType)
    """Who runs, by job index."""
    arrived = OfRuns[Sequence[int]](tuple)
    """Jobs that arrived since the last pass, in queue order."""
    ended = OfRuns[Sequence[Run]](tuple)
    """Runs that ended since the last pass."""
    others_wait = OfState[bool]()
    """Whether any other job waits while one chooses its count."""
    requests = OfState[Mapping[tuple[int, str], Request]](MappingProxyType)
    """What running jobs ask for, by job and kind, in the order of asking."""
    load: "LoadForecast | None" = _kept("_state.load")
    """What is believed of the load, on a shared machine."""
    machine: SeenMachine = _kept("_machine")
    """Its processors and nodes."""
    changes: Changes = _kept("_changes")
    """What happened since the last pass, besides arrivals and ends."""

    @property
    def free(self) -> int:
        """How many processors are idle."""
        return self._state.free

    @property
    def believed_ends(self) -> BelievedEnds:
        """Who holds processors, failed nodes among them, and until when by belief.

        Arrays of one length, by end: ``end`` (seconds), ``job`` (index; below 0 a failed node)
        and ``processors``.
        """
        return BelievedEnds(*map(sealed, self._ends))

    @property
    def _ends(self) -> BelievedEnds:
        """The same for rules of this program, whose compiled code takes arrays of one type."""
        return self._state.believed_ends

    @property
    def _tables(self) -> State:
        """The state for rules of this program."""
        return self._state.tables

    @property
    def _without_ends(self) -> State:
        """The same where nobody asks who holds processors."""
        return self._state.tables

    def measured_efficiency(self, job: int) -> float:
        """Return the efficiency of a running job on what it holds, as measured now.

        Raises
        ------
        PolicyError
            If the job does not run.
        """
        if job not in self.running:
            raise PolicyError(
                f"the efficiency of job index {job} was asked for, which does not run: "
                "only running jobs can be measured"
            )
        self._state.measured.add(job)
        return self._state.efficiency[job]

    def seconds_left(self, run: Run) -> float:
        """Return the believed seconds of progress that a run still needs where it is."""
        left = run.believed_end - max(self.now, run.resumes)
        return left if left > 0.0 else 0.0

    # Jobs, and what is believed of them

    jobs: SeenJobs = _kept("_jobs")
    """What may be known of the jobs that have arrived."""
    predictor: SeenPredictor = _kept("_beliefs.predictor")
    """What the predictor says besides curves, and what its beliefs rest on."""
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
        """Return the predicted runtimes at each count, in seconds; None if there are none.

        Of a job that was interrupted: those of what is left of it.
        """
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
