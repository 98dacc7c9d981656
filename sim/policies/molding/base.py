"""What decides about open counts: candidate allocations, and which of them are allowed now."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from predictors.base import IntArray
from predictors.compiling import direct
from sim.policies.advice import Advice, Counts, Reading, check_counts, tried
from sim.policies.molding.candidates import CLOSED, OpenMemory
from sim.policies.passes.memory import RuleMemory
from sim.policies.passes.open_counts import allow_all
from sim.state.view import View

_allow_all = direct(allow_all)


class Candidates:
    """A rule for open counts at work in one run.

    Parameters
    ----------
    view : View
    advice : Advice
    counts : {"powers_of_two", "all"}
        Which counts are candidates, besides the request.
    compiled_pass : callable, optional
        A pass that narrows as `narrow` does.
    keeps : OpenMemory
        What it keeps of the run.

    Attributes
    ----------
    looks_ahead : bool
        Whether it must be asked even while no processor is free, because what
        it says then is remembered.
    """

    looks_ahead = False
    compiled_pass: Callable[..., int] | None = None
    keeps = CLOSED

    def __init__(
        self,
        view: View,
        advice: Advice,
        counts: Counts,
        compiled_pass: Callable[..., int] | None = None,
        keeps: OpenMemory = CLOSED,
    ) -> None:
        self.view = view
        self.advice = advice
        self.counts = counts
        self.compiled_pass, self.keeps = compiled_pass, keeps

    def tries(self, job: int, view: View) -> IntArray:
        """Return the counts that a job tries."""
        return tried(job, view, self.counts)

    def of(self, job: int) -> Reading:
        """Return the counts and runtimes that a job may choose from."""
        view = self.view
        request = view.requested_processors[job]
        counts = self.tries(job, view)
        reading = None if counts.size == 1 else self.advice.read(job, view, counts)
        if reading is None:
            least = int(counts[0]) if counts.size == 1 else request
            seconds = view.predictor.runtime(job, least) * view.predictor.caution(job)
            return Reading(np.array([least]), np.array([seconds]), least * seconds)
        return reading

    def watch(self) -> None:
        """Take in what happened since the last pass; called once a pass, before anything else."""

    def narrow(self, memory: RuleMemory) -> int:
        """Say which candidates are allowed in this pass; everything by default.

        Returns one past the last place of the queue that is considered.
        """
        return int(_allow_all(memory))


@dataclass(frozen=True, kw_only=True)
class OpenCounts:
    """What all rules for open counts have in common.

    Parameters
    ----------
    counts : {"powers_of_two", "all"}
        Which counts are candidates: powers of two and the request, or all; of jobs
        with at most two counts, all.
    advice : Advice
        How predicted curves are read.
    """

    counts: Counts = "powers_of_two"
    advice: Advice = field(default_factory=Advice)

    def __post_init__(self) -> None:
        check_counts(self.counts)
