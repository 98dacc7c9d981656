"""Local allocation with a guarantee: LPA and FAIR (Benoit, Perotin, Sun et al.).

The count depends on the job's own curve alone; then anything that fits starts,
in queue order (``backfill=skip``). With t_min and a_min the least time and area,
α(p) = a(p)/a_min, β(p) = T(p)/t_min. LPA: ICPP'22 and TOPC'24. FAIR is
1/μ(R)-competitive for makespan, by the authors' code and tables. Both count with
curves whose area is raised where it falls, an oracle's too.
"""

from dataclasses import dataclass
from math import ceil, sqrt
from typing import Literal

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.errors import check_choice
from sim.policies.advice import Advice, Counts, JobCurve, raised
from sim.policies.allocation.curve import CurveRule
from sim.policies.base import Outlook
from sim.policies.molding.base import Candidates, OpenCounts, find_search_end, settle
from sim.policies.passes.memory import MoldingMemory, RuleMemory
from sim.policies.ties import TIE, first_least, is_less
from sim.state.run_state import RunState
from sim.state.view import View, place_up_to

Model = Literal["roofline", "communication", "amdahl", "general"]

ICPP22: dict[str, float] = {
    "roofline": (3 - sqrt(5)) / 2,
    "communication": (3 - sqrt(5)) / 2,
    "amdahl": 0.271,
    "general": 0.211,
}
"""μ of LPA as published at ICPP'22, by model."""

TOPC24: dict[str, tuple[float, float]] = {
    "roofline": (1.0, (3 - sqrt(5)) / 2),
    "communication": (4 / 3, (23 - sqrt(313)) / 18),
    "amdahl": ((sqrt(2) + 1 + sqrt(2 * sqrt(2) - 1)) / 2, (1 - sqrt(8 * sqrt(2) - 11)) / 2),
    "general": (2.0, (33 - sqrt(738)) / 27),
}
"""α_M and μ of LPA as published in TOPC'24, by model."""


def delta(mu: float) -> float:
    """Return δ(μ) = (1 - 2μ) / (μ(1 - μ)), how much longer than the fastest a job may run.

    Examples
    --------
    >>> round(delta(0.211), 3)
    3.472
    """
    return (1 - 2 * mu) / (mu * (1 - mu))


@compiled
def fair_mu(ratio: float) -> float:
    """Return μ(R) = (2R + 1 - sqrt(4R² + 1)) / (2R).

    Examples
    --------
    >>> [round(1 / fair_mu(r), 2) for r in (1, sqrt(2), 2)]
    [2.62, 3.41, 4.56]
    """
    return (2 * ratio + 1 - sqrt(4 * ratio * ratio + 1)) / (2 * ratio)


class LocalAllocation(CurveRule):
    """LPA, with the constants of a class of curves.

    Parameters
    ----------
    model : {"general", "roofline", "communication", "amdahl"}
        Class of curves that the guarantee holds for.
    version : {"topc24", "icpp22"}
        ``icpp22``: the least p with β(p) <= δ(μ). ``topc24``: the largest p up
        to the fastest with α(p) <= α_M. Both are cut at ceil(μP).
    advice, counts
        As in `sim.policies.allocation.curve.CurveRule`.
    """

    def __init__(
        self,
        model: Model = "general",
        version: Literal["topc24", "icpp22"] = "topc24",
        advice: Advice | None = None,
        counts: Counts = "all",
    ) -> None:
        super().__init__(advice, counts)
        check_choice(TOPC24, model=model)
        check_choice(("topc24", "icpp22"), version=version)
        self.model = model
        self.version = version

    @property
    def mu(self) -> float:
        """The share of the machine that no job exceeds."""
        return ICPP22[self.model] if self.version == "icpp22" else TOPC24[self.model][1]

    def choose(self, job: int, view: View, outlook: Outlook) -> int:
        """Return the rule's count for a job."""
        self._limit = ceil(self.mu * view.processors * (1 - TIE))
        return super().choose(job, view, outlook)

    def pick(self, reading: JobCurve) -> int:
        """Return the place of min(p, ceil(μP)), rounded down to a feasible count."""
        return min(self._unlimited(reading), place_up_to(reading.counts, self._limit))

    def _unlimited(self, reading: JobCurve) -> int:
        counts, runtimes, serial_time = raised(reading)
        if self.version == "icpp22":
            return int(np.argmax(runtimes <= delta(self.mu) * runtimes.min() * (1 + TIE)))
        areas = counts * runtimes
        least = min(float(areas.min()), serial_time)
        fastest = int(first_least(runtimes))
        lean = np.flatnonzero(areas[: fastest + 1] <= TOPC24[self.model][0] * least * (1 + TIE))
        return int(lean[-1]) if lean.size else 0


@compiled
def balanced(counts: IntArray, runtimes: FloatArray) -> tuple[int, float]:
    """Return the place with the least max(α, β) up to the fastest count, and that ratio."""
    last = first_least(runtimes)
    areas = counts[: last + 1] * runtimes[: last + 1]
    least, best, ratio = areas.min(), 0, np.inf
    for k in range(last + 1):
        worse = max(areas[k] / least, runtimes[k] / runtimes[last])
        if is_less(worse, ratio):
            best, ratio = k, worse
    return best, ratio


BALANCED, RATIO = range(2)
"""Columns of a table of jobs: p, and the largest ratio max(α(p), β(p)) that it ever had."""


@compiled
def cap_balanced(state: RunState, memory: RuleMemory) -> None:
    """Allow each waiting job p, but no more than the worst balance of all jobs seen allows."""
    last, queue, rule = find_search_end(state, memory), memory.queue, memory.molding
    worst = rule.worst_ratio
    for k in range(queue.at[0].first, last):
        if queue.processors[k] > 0:
            worst[0] = max(worst[0], rule.job_columns[queue.job[k], RATIO])
    limit = ceil(fair_mu(worst[0]) * rule.divided_processors * (1 - TIE))
    if last > 0:
        settle(memory, rule.job_columns[:, BALANCED], float(limit))


@dataclass(frozen=True, kw_only=True)
class Fair(OpenCounts):
    """FAIR: balance area against time, and cap by the worst balance seen so far.

    p minimises max(α(p), β(p)); R is the largest such ratio of all jobs seen;
    n = min(p, ceil(μ(R)·P)), also for jobs that wait when R grows. It needs no
    class of curves. Benoit, Perotin, Sun et al.
    """

    counts: Counts = "all"

    def open(self, view: View) -> Candidates:
        """Begin a run."""
        return FairCandidates(view, self)


class FairCandidates(Candidates):
    """Remembers p of each job, and its ratio."""

    def __init__(self, view: View, rule: Fair) -> None:
        keeps = MoldingMemory(
            divided_processors=float(view.processors),
            job_columns=np.ones((len(view.submit_time), 2)),
            worst_ratio=np.ones(1),
        )
        super().__init__(view, rule, cap_balanced, keeps)

    def of(self, job: int) -> JobCurve:
        """Return the candidates of a job, and remember p and its ratio, the worst it ever had."""
        reading, own = super().of(job), self.keeps.job_columns[job]
        place, ratio = balanced(*raised(reading)[:2])
        own[:] = reading.counts[place], max(own[RATIO], ratio)
        return reading
