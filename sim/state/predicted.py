"""What is believed of jobs: what the predictor says, and what is kept of it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from predictors.base import (
    BoolArray,
    Explanation,
    FloatArray,
    Inquisitive,
    IntArray,
    RuntimePredictor,
    Selective,
    provider,
    setting,
)
from predictors.under_load.load_aware import NeedsLoad, Parts
from sim.state.decisions import Preferences
from sim.state.feasible_counts import (
    NO_DOUBT,
    NOTHING_SEEN,
    FeasibleCounts,
    Support,
    sealed,
)
from sim.state.shown import ReadAlone

GradeOf = Callable[[int, int], tuple[str, str]]
LEAST_BELIEF = 1e-3
"""No runtime is believed shorter, in seconds: the clock must tell its end from its start."""


class SeenPredictor(ReadAlone):
    """What the predictor says besides curves, and what its beliefs rest on.

    Parameters
    ----------
    predictor : RuntimePredictor
    columns : mapping of str to sequence
        ``application``, ``requested_processors``, ``requested_time`` and ``malleable`` of each
        job that has arrived.
    feasible : FeasibleCounts
    left : mapping of int to float
        Share of its work that a job that was interrupted still has to do.
    preferences : Preferences of the policy
    """

    def __init__(
        self,
        predictor: RuntimePredictor,
        columns: Mapping[str, Sequence[Any]],
        feasible: FeasibleCounts,
        left: Mapping[int, float],
        preferences: Preferences,
    ) -> None:
        self._predictor, self._feasible, self._left = predictor, feasible, left
        self._preferences, self._columns = preferences, columns
        self._application: Sequence[int] = columns["application"]
        self._grade: GradeOf | None = getattr(predictor, "grade_of", None)
        asking = provider(predictor, NeedsLoad)
        self._parts = None if asking is None else asking.parts
        self._selective = provider(predictor, Selective)
        self._known_counts = setting(predictor, "known_counts", None)
        self._single: dict[int, IntArray] = {}
        self._seen: dict[int, Support] = {}
        self._queries = 0

    @property
    def learns(self) -> bool:
        """Whether beliefs change as runs end."""
        return self._predictor.learns

    def _ask(self, job: int, counts: IntArray) -> FloatArray | None:
        """Return what the predictor says, which may not write into the counts."""
        self._queries += 1
        if counts.flags.writeable:
            counts = sealed(counts)
        return self._predictor.curve(job, counts)

    def runtime(self, job: int, processors: int) -> float:
        """Return the believed runtime of what is left of a job at any count, in seconds.

        It is not stretched by past errors.
        """
        count = self._single.get(processors)
        if count is None:
            count = self._single[processors] = sealed(np.array([processors]))
        curve = self._ask(job, count)
        seconds = self._requested(job, processors) if curve is None else float(curve[0])
        return max(seconds * self._left.get(job, 1.0), LEAST_BELIEF)

    def _requested(self, job: int, processors: int) -> float:
        columns, seconds = self._columns, float(self._columns["requested_time"][job])
        if self._preferences.scales_requests and columns["malleable"][job]:
            return float(seconds * columns["requested_processors"][job] / processors)
        return seconds

    def caution(self, job: int) -> float:
        """Return by what beliefs about a job are stretched to plan with: 1 unless wanted."""
        errors = self._preferences.past_errors
        return 1.0 if errors is None else errors.factor(self._application[job])

    def has_curve(self, job: int) -> bool:
        """Return whether it says anything of the job's largest count."""
        largest = self._feasible.extremes(job)[1]
        curve = self._predictor.curve(job, sealed(np.array([largest])))
        return curve is not None and not np.isnan(curve[0])

    def known_counts(self, job: int, counts: IntArray) -> BoolArray | None:
        """Return at which counts it knows anything; None if at all."""
        return None if self._known_counts is None else self._known_counts(job, counts)

    def offered(self, job: int, counts: IntArray) -> BoolArray | None:
        """Return which counts the job's application is made for, as learned; None if all are."""
        return None if self._selective is None else self._selective.offered(job, counts)

    def wanted(self, job: int, processors: int) -> int | None:
        """Return the count that it would have measured next, if it says so."""
        asked = provider(self._predictor, Inquisitive)
        return None if asked is None else asked.wanted(job, processors)

    def parts(self, job: int, counts: IntArray) -> Parts | None:
        """Return what of a job load slows down, as predicted; None if nobody says."""
        if self._parts is None:
            return None
        self._queries += 1
        return self._parts(job, counts)

    def support(self, job: int) -> Support:
        """Return which counts of the job's application its belief rests on, and how many runs.

        `NO_DOUBT` where the predictor does not go by runs.
        """
        return self._seen.get(self._application[job], NOTHING_SEEN) if self.learns else NO_DOUBT

    def explain(self, job: int, processors: int) -> Explanation:
        """Return what its belief rests on, for what is left of the job."""
        found = self._predictor.explain(job, processors)
        left = self._left.get(job)
        return found if left is None else found._replace(mean_at_count=found.mean_at_count * left)

    def reliability(self, job: int, processors: int) -> tuple[str, str]:
        """Return how it grades its belief, and the code of why."""
        if self._grade is not None:
            return self._grade(job, processors)
        found = self._predictor.explain(job, processors)
        return found.reliability, found.code


class Beliefs:
    """What is planned with in a run, kept until the predictor changes its mind or the job ends.

    Parameters
    ----------
    predictor : SeenPredictor
    """

    def __init__(self, predictor: SeenPredictor) -> None:
        self.predictor = predictor
        self._kept: dict[int, tuple[int, float]] = {}
        self._curve_is_belief = setting(predictor._predictor, "curve_is_belief", True)

    @property
    def queries(self) -> int:
        """How often the predictor was asked."""
        return self.predictor._queries

    def count(self, queries: int) -> None:
        """Count questions that were asked otherwise."""
        self.predictor._queries += queries

    def belief(self, job: int, processors: int) -> float:
        """Return the runtime to plan with, in seconds; see `sim.state.view.View.belief`."""
        known = self._kept.get(job)
        if known is not None and known[0] == processors:
            return known[1]
        predictor = self.predictor
        seconds = predictor.runtime(job, processors) * predictor.caution(job)
        self._kept[job] = (processors, seconds)
        return seconds

    def keep(self, job: int, processors: int, seconds: float) -> None:
        """Keep a belief that was just read off the job's curve."""
        if self._curve_is_belief:
            self._kept[job] = (processors, seconds)

    def forget(self, jobs: Sequence[int]) -> None:
        """Ask the predictor again about these jobs when next needed."""
        for job in jobs:
            self._kept.pop(job, None)

    def note(self, application: int, processors: int) -> None:
        """Note that the predictor was told of a run of an application at a count."""
        seen = self.predictor._seen
        least, most, runs = seen.get(application, (processors, processors, 0))
        seen[application] = Support(min(least, processors), max(most, processors), runs + 1)

    def say(self, job: int, decided: bool) -> None:
        """Say whether a curve decided a job's count, or its request stood for another reason."""
        undecided = self.predictor._preferences.undecided
        (undecided.discard if decided else undecided.add)(job)

    def close(self) -> None:
        """Let go of what was believed: the run is over."""
        self._kept.clear()
