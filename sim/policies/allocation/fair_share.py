"""Fair-share molding: nobody takes more than its share of the work (Srinivasan et al. 2002)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from predictors.base import FloatArray
from predictors.compiling import compiled
from sim.errors import AT_LEAST_0, POSITIVE
from sim.policies.advice import JobCurve, last_up_to
from sim.policies.molding.base import Candidates, OpenCounts, find_search_end
from sim.policies.passes.memory import MoldingMemory, RuleMemory
from sim.policies.ties import TIE
from sim.state.run_state import RunState
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

    def open(self, view: View) -> Candidates:
        """Begin a run."""
        return ShareLimit(view, self)


WEIGHT, LIMIT = range(2)
"""Columns of a table of jobs: what their shares are reckoned by, and these; NaN where not yet."""


@compiled
def cut_at_shares(state: RunState, memory: RuleMemory) -> None:
    """Allow each waiting job counts up to its share of the weights, rounded up.

    Of `divided_processors`; of `job_columns`, column `LIMIT` is written. A share that a job
    has stands, where shares are kept.
    """
    last, queue, rule, total = find_search_end(state, memory), memory.queue, memory.molding, 0.0
    first = queue.at[0].first
    for job in state.holder_job[: state.scalars[0].holders if rule.counts_running else 0]:
        if job >= 0:
            total += rule.job_columns[job, WEIGHT]
    for k in range(first, last):
        if queue.processors[k] > 0:
            total += rule.job_columns[queue.job[k], WEIGHT]
    for k in range(first, last):
        if queue.processors[k] == 0:
            continue
        own, offered = rule.job_columns[queue.job[k]], memory.menu_spans[queue.job[k]]
        if not rule.keeps_shares or np.isnan(own[LIMIT]):
            own[LIMIT] = np.ceil(rule.divided_processors * own[WEIGHT] / total * (1 - TIE))
        begin, end = offered.begin, offered.begin + offered.number
        offered.low = begin
        offered.high = last_up_to(memory.menu_counts, begin, end, own[LIMIT]) + 1


class ShareLimit(Candidates):
    """Remembers the weights of all jobs that wait or run."""

    def __init__(self, view: View, rule: FairShare) -> None:
        self._shares: FloatArray = np.full((len(view.submit_time), 2), np.nan)
        keeps = MoldingMemory(
            divided_processors=float(rule.factor * view.processors),
            job_columns=self._shares,
            counts_running=rule.sum == "queued_and_running",
            keeps_shares=rule.when == "submit",
        )
        super().__init__(view, rule, cut_at_shares, keeps)

    def of(self, job: int) -> JobCurve:
        """Return the job's candidates, and remember what its share is reckoned by."""
        reading = super().of(job)
        weight = reading.serial_time
        if self.rule.efficiency > 0:
            pick = np.abs(reading.counts - self.view.requested_processors[job]).argmin()
            used = reading.serial_time / float(reading.counts[pick] * reading.runtimes[pick])
            weight *= used**self.rule.efficiency
        self._shares[job, WEIGHT] = weight
        return reading
