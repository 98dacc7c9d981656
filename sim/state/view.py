"""What a policy sees of the machine: live, read-only, and never a true runtime."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors.base import (
    BoolArray,
    Explanation,
    FloatArray,
    Inquisitive,
    IntArray,
    RuntimePredictor,
    Selective,
    VisibleJobs,
)
from predictors.in_loop.wrapper import provider, setting
from predictors.under_load.load_aware import NeedsLoad, Parts
from predictors.under_load.observed_load import LoadForm
from sim.state.decisions import Preferences
from sim.state.feasible_counts import (
    NO_DOUBT,
    NOTHING_SEEN,
    FeasibleCounts,
    Support,
    one_by_one,
    sealed,
)
from sim.state.machine_state import MachineState, Run
from sim.state.shown import SeenState

GradeOf = Callable[[int, int], tuple[str, str]]
LEAST_BELIEF = 1e-3
"""No runtime is believed shorter, in seconds: the clock must tell its end from its start."""
ONE_BY_ONE = "requested_processors", "application", "requested_time", "malleable", "submit_time"
"""What is shown of each job as Python's own numbers."""


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
        self._state = state
        self._jobs, self._more = jobs, more
        self._preferences = preferences or Preferences()
        self._queries, self._others_wait = 0, False
        self._predictor = predictor
        self._grade: GradeOf | None = getattr(predictor, "grade_of", None)
        asking = provider(predictor, NeedsLoad)
        self._parts = None if asking is None else asking.parts
        self._load_form: LoadForm = "effective" if asking is None else asking.load_form
        self._selective = provider(predictor, Selective)
        self._known_counts = setting(predictor, "known_counts", None)
        self._feasible = feasible
        self._single: dict[int, IntArray] = {}
        self._believed: dict[int, tuple[int, float]] = {}
        self._curve_is_belief = setting(predictor, "curve_is_belief", True)
        self._seen: dict[int, Support] = {}
        columns = {**vars(jobs), **more}
        self._columns = {name: one_by_one(columns[name]) for name in ONE_BY_ONE}

    @property
    def jobs(self) -> VisibleJobs:
        """What may be known of the jobs that have arrived."""
        return self._jobs

    @property
    def learns(self) -> bool:
        """Whether beliefs change as runs end."""
        return self._predictor.learns

    @property
    def others_wait(self) -> bool:
        """Whether any other job waits while one chooses its count."""
        return self._others_wait

    @property
    def adopter_draws(self) -> FloatArray:
        """One uniform draw a job, for shares such as that of adopters."""
        return self._more["adopter_draws"]

    requested_processors: Sequence[int] = _column("requested_processors")
    """Of each job."""
    application: Sequence[int] = _column("application")
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

    def powers_of_two(self, job: int) -> IntArray:
        """Return the job's counts that are powers of two, or its request; all if at most two."""
        return self._feasible.powers_of_two(job, self.requested_processors[job])

    def extremes(self, job: int) -> tuple[int, int]:
        """Return the least and the largest count the job could run on."""
        return self._feasible.extremes(job)

    def special(self, job: int) -> IntArray | None:
        """Return the job's counts, None where every count between its extremes is feasible."""
        return self._feasible.special(job)

    def curve(self, job: int, counts: IntArray) -> FloatArray | None:
        """Return the predicted runtimes at each count, in seconds; None if there are none."""
        if (curve := self._asked(job, counts)) is None:
            return None
        left = self._state.left
        return np.maximum(curve * left[job] if job in left else curve, LEAST_BELIEF)

    def _asked(self, job: int, counts: IntArray) -> FloatArray | None:
        """Return what the predictor says, which may not write into the counts."""
        self._queries += 1
        if counts.flags.writeable:
            counts = sealed(counts)
        return self._predictor.curve(job, counts)

    def has_curve(self, job: int) -> bool:
        """Return whether the predictor says anything of the job's largest count."""
        curve = self._predictor.curve(job, sealed(np.array([self.extremes(job)[1]])))
        return curve is not None and not np.isnan(curve[0])

    def known_counts(self, job: int, counts: IntArray) -> BoolArray | None:
        """Return at which counts the predictor knows anything; None if at all."""
        return None if self._known_counts is None else self._known_counts(job, counts)

    def belief(self, job: int, processors: int) -> float:
        """Return the runtime to plan with, in seconds: predicted, else as requested.

        Stretched by past errors, where the policy wants that.
        """
        known = self._believed.get(job)
        if known is not None and known[0] == processors:
            return known[1]
        seconds = self.belief_at(job, processors) * self.caution(job)
        self._believed[job] = (processors, seconds)
        return seconds

    def caution(self, job: int) -> float:
        """Return by what beliefs about a job are stretched to plan with: 1 unless wanted."""
        errors = self._preferences.past_errors
        return 1.0 if errors is None else errors.factor(self.application[job])

    def belief_at(self, job: int, processors: int) -> float:
        """Return the believed runtime at any count, in seconds, and keep nothing of it."""
        count = self._single.get(processors)
        if count is None:
            count = self._single[processors] = sealed(np.array([processors]))
        curve = self._asked(job, count)
        seconds = self._requested(job, processors) if curve is None else float(curve[0])
        return max(seconds * self._state.left.get(job, 1.0), LEAST_BELIEF)

    def _requested(self, job: int, processors: int) -> float:
        seconds = self.requested_time[job]
        if self._preferences.scales_requests and self.malleable[job]:
            return seconds * self.requested_processors[job] / processors
        return seconds

    def offered(self, job: int, counts: IntArray) -> BoolArray | None:
        """Return which counts the job's application is made for, as learned; None if all are."""
        return None if self._selective is None else self._selective.offered(job, counts)

    def wanted(self, job: int, processors: int) -> int | None:
        """Return the count that the predictor would have measured next, if it says so."""
        asked = provider(self._predictor, Inquisitive)
        return None if asked is None else asked.wanted(job, processors)

    def stretch_factors(self, job: int, processors: int, counts: IntArray) -> FloatArray:
        """Return the believed runtime at each count over that at `processors`.

        Without a curve a job's work counts in processor-seconds, as if it sped
        up perfectly: nothing else is known of it.
        """
        curve = self._asked(job, np.append(processors, counts))
        return processors / counts if curve is None else np.asarray(curve[1:] / curve[0])

    def stretch_factor(self, job: int, before: int, after: int) -> float:
        """Return the believed runtime at one count over that at another."""
        curve = self._asked(job, np.array([before, after]))
        return before / after if curve is None else curve.item(1) / curve.item(0)

    def seconds_left(self, run: Run) -> float:
        """Return the believed seconds of progress that a run still needs where it is."""
        left = run.believed_end - max(self.now, run.resumes)
        return left if left > 0.0 else 0.0

    def parts(self, job: int, counts: IntArray) -> Parts | None:
        """Return what of a job load slows down, as predicted; None if nobody says."""
        if self.load is None or self._parts is None:
            return None
        self._queries += 1
        return self._parts(job, counts)

    def runtime_on(self, job: int, processors: IntArray) -> float | None:
        """Return the predicted runtime on these processors under the load to come, seconds.

        Parameters
        ----------
        job : int
        processors : numpy.ndarray of int

        Returns
        -------
        float or None
            None if the predictor does not know what load does to the job.
        """
        load, parts = self.load, self.parts(job, np.array([len(processors)]))
        if parts is None or load is None:
            return None
        return max(load.runtime(parts, processors, self._load_form), LEAST_BELIEF)

    def seconds_left_on(self, job: int, processors: IntArray, start: float) -> float | None:
        """Return how long a job that runs there since `start` will still take, seconds.

        Predicted anew from its parts, the load that it met, and the load to come; None
        if nobody can say, or if it should be over.
        """
        load, parts = self.load, self.parts(job, np.array([len(processors)]))
        if parts is None or load is None:
            return None
        return load.remaining(parts, processors, self._load_form, start)

    def believe(self, job: int, processors: int, seconds: float) -> None:
        """Keep a belief that was just read off the job's curve."""
        if self._curve_is_belief:
            self._believed[job] = (processors, seconds)

    def note(self, application: int, processors: int) -> None:
        """Note that the predictor was told of a run of an application at a count."""
        least, most, runs = self._seen.get(application, (processors, processors, 0))
        self._seen[application] = Support(min(least, processors), max(most, processors), runs + 1)

    def support(self, job: int) -> Support:
        """Return which counts of the job's application its belief rests on, and how many runs.

        `NO_DOUBT` where the predictor does not go by runs.
        """
        known = self._seen.get(self.application[job], NOTHING_SEEN)
        return known if self.learns else NO_DOUBT

    def explain(self, job: int, processors: int) -> Explanation:
        """Return what the predictor's belief rests on, for what is left of the job."""
        found = self._predictor.explain(job, processors)
        left = self._state.left.get(job)
        return found if left is None else found._replace(mean_at_count=found.mean_at_count * left)

    def reliability(self, job: int, processors: int) -> tuple[str, str]:
        """Return how the predictor grades its belief, and the code of why."""
        if self._grade is not None:
            return self._grade(job, processors)
        found = self._predictor.explain(job, processors)
        return found.reliability, found.code

    def say(self, job: int, decided: bool) -> None:
        """Say whether a curve decided a job's count, or its request stood for another reason."""
        undecided = self._preferences.undecided
        (undecided.discard if decided else undecided.add)(job)

    def close(self) -> None:
        """Let go of what was believed: the run is over."""
        self._believed.clear()

    def arrival_rank(self, jobs: IntArray) -> FloatArray:
        """Return a number a job that grows with the order of arrival, ties by index."""
        return np.array([self.submit_time[job] for job in jobs.tolist()])

    def forget(self, jobs: Sequence[int]) -> None:
        """Ask the predictor again about these jobs when next needed."""
        for job in jobs:
            self._believed.pop(job, None)
