"""Fair-share molding: nobody takes more than its share of the work (Srinivasan et al. 2002)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.errors import AT_LEAST_0, POSITIVE, check_choice
from sim.policies.advice import Reading, last_up_to
from sim.policies.molding.base import Candidates, OpenCounts
from sim.policies.molding.candidates import OpenMemory, OpenQueue, Spans
from sim.policies.passes.memory import RuleMemory
from sim.policies.passes.open_counts import begin_pass, start_allowed
from sim.policies.ties import TIE
from sim.state.run_state import State
from sim.state.view import View


@dataclass(frozen=True, kw_only=True)
class FairShare(OpenCounts):
    """Limit each job to its share of the machine, then take the earliest predicted end.

    The limit of job j is L_j = max(n_min, ceil(f·P·W_j / Σ W_i)), W = T(1). Which
    jobs are in the sum is not settled by the sources at hand: those that wait, all
    arrivals of an instant among them before anybody is molded (``queued``), or also
    the running ones, whose whole W then counts however little of it is left
    (``queued_and_running``). Srinivasan, Subramani, Kettimuthu,
    Holenarsipur & Sadayappan (HiPC 2002); formula from memory, our reading.
    Sabin, Lang & Sadayappan (JSSPP 2006) weight the share by efficiency: W_j
    times E_j(n_ref) to a power that must be tuned.

    Parameters
    ----------
    factor : float
        f, above 0.
    efficiency : float
        Power of the efficiency at the requested count, at least 0.
    sum : {"queued", "queued_and_running"}
        Whose work is summed up.
    when : {"schedule", "submit"}
        Whether the limit follows the queue until the job starts, or is fixed
        when it arrives.
    """

    factor: float = 1.0
    efficiency: float = 0.0
    sum: Literal["queued", "queued_and_running"] = "queued"
    when: Literal["schedule", "submit"] = "schedule"

    def __post_init__(self) -> None:
        super().__post_init__()
        POSITIVE.check(factor=self.factor)
        AT_LEAST_0.check(efficiency=self.efficiency)
        check_choice(("queued", "queued_and_running"), sum=self.sum)
        check_choice(("schedule", "submit"), when=self.when)

    def open(self, view: View) -> Candidates:
        """Begin a run."""
        return ShareLimit(view, self)


WEIGHT, LIMIT = range(2)
"""Columns of a table of jobs: what their shares are reckoned by, and these; NaN where not yet."""


@compiled
def cut_at_shares(
    counts: IntArray, spans: Spans, processors: IntArray, job: IntArray,
    shares: FloatArray, running: IntArray, scale: float, keeps: bool,
) -> None:  # fmt: skip
    """Allow each waiting job counts up to its share of the weights, rounded up.

    Parameters
    ----------
    counts : numpy.ndarray of int
    spans, processors, job : numpy.ndarray of int, shape (5, n) and (n,)
        As `OpenQueue` has them, of the places in use.
    shares : numpy.ndarray of float, shape (jobs, 2)
        Columns `WEIGHT` and `LIMIT`, which is written here.
    running : numpy.ndarray of int
        The running jobs whose weights count.
    scale : float
        What is shared out, in processors.
    keeps : bool
        Whether a share that a job has stands.
    """
    total = 0.0
    for runner in running:
        total += shares[runner, WEIGHT]
    for k in range(job.size):
        if processors[k] > 0:
            total += shares[job[k], WEIGHT]
    for k in range(job.size):
        if processors[k] == 0:
            continue
        own = shares[job[k]]
        if not keeps or np.isnan(own[LIMIT]):
            own[LIMIT] = np.ceil(scale * own[WEIGHT] / total * (1 - TIE))
        begin, end = spans[k].begin, spans[k].begin + spans[k].number
        spans[k].low = begin
        spans[k].high = last_up_to(counts, begin, end, own[LIMIT]) + 1


@compiled
def decide(state: State, memory: RuleMemory) -> None:
    """Start who may, on counts up to its share of the work of all who wait."""
    if begin_pass(state, memory):
        first, last, own = state.run[0].head, state.run[0].arrived, memory.open
        cut_at_shares(
            memory.counts, memory.offers[first:last], state.waiting[first:last],
            own.job[first:last], own.shares, own.job[:0], own.scale, False,
        )  # fmt: skip
        start_allowed(state, memory, last)


class ShareLimit(Candidates):
    """Remembers the weights of all jobs that wait or run."""

    def __init__(self, view: View, rule: FairShare) -> None:
        super().__init__(view, rule.advice, rule.counts)
        self._rule = rule
        self.looks_ahead = self._keeps = rule.when == "submit"
        self._scale = float(rule.factor * view.processors)
        self._shares: FloatArray = np.full((len(view.submit_time), 2), np.nan)

    @property
    def compiled_pass(self) -> tuple[Callable[..., None], OpenMemory] | None:
        """The compiled pass, and what it keeps; None if it remembers, or sums up who runs."""
        if self._keeps or self._rule.sum != "queued":
            return None
        return decide, OpenMemory(scale=self._scale, shares=self._shares)

    def of(self, job: int) -> Reading:
        """Return the job's candidates, and remember what its share is reckoned by."""
        reading = super().of(job)
        weight = reading.serial
        if self._rule.efficiency > 0:
            pick = np.abs(reading.counts - self.view.requested_processors[job]).argmin()
            used = reading.serial / float(reading.counts[pick] * reading.runtimes[pick])
            weight *= used**self._rule.efficiency
        self._shares[job, WEIGHT] = weight
        return reading

    def narrow(self, queue: OpenQueue) -> None:
        """Cut everybody's candidates at the job's limit."""
        counted = self.view.running if self._rule.sum == "queued_and_running" else ()
        running = np.fromiter(counted, np.int64, len(counted))
        here = queue.here
        cut_at_shares(
            queue.counts, queue.spans[here], queue.processors[here], queue.job[here],
            self._shares, running, self._scale, self._keeps,
        )  # fmt: skip
