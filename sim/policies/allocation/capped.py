"""What rules share that cap each job's count: at the fastest, the average parallelism, the knee."""

from dataclasses import dataclass
from typing import Literal

from sim.errors import check_choice
from sim.policies.advice import Reading
from sim.policies.allocation.curve import average, knee
from sim.policies.molding.base import Candidates, OpenCounts
from sim.policies.ties import first_least
from sim.state.view import View

Cap = Literal["maximum", "average", "knee"]


def place_of_cap(reading: Reading, cap: Cap) -> int:
    """Return the place of the most processors that a job should ever get.

    The fastest count (``maximum``), the average parallelism A (``average``), or
    the processor working set (``knee``).
    """
    if cap == "knee":
        return int(knee(reading.counts, reading.runtimes))
    if cap == "average":
        return int(average(*reading))
    return int(first_least(reading.runtimes))


@dataclass(frozen=True, kw_only=True)
class CappedCounts(OpenCounts):
    """What rules with a cap on each job's count have in common.

    Parameters
    ----------
    cap : {"maximum", "average", "knee"}
        The most that a job gets: the fastest count, its average parallelism A,
        or its processor working set.
    """

    cap: Cap = "maximum"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(("maximum", "average", "knee"), cap=self.cap)


class CappedCandidates(Candidates):
    """Candidates that end at a cap, every count settled in every pass."""

    settles = True

    def __init__(self, view: View, rule: CappedCounts) -> None:
        super().__init__(view, rule.advice, rule.counts)
        self._cap = rule.cap

    def of(self, job: int) -> Reading:
        """Return the job's candidates up to its cap."""
        reading = super().of(job)
        most = place_of_cap(reading, self._cap) + 1
        return Reading(reading.counts[:most], reading.runtimes[:most], reading.serial)
