"""Allocations that consult no prediction: the request, a fixed count."""

from sim.errors import AT_LEAST_1
from sim.policies.base import Outlook
from sim.state.view import View, place_up_to


class Request:
    """Every job gets what it asked for.

    Examples
    --------
    >>> import sim
    >>> policy = sim.Policy(sim.FirstComeFirstServed(), sim.Easy(), Request())
    >>> result = sim.run("workload.jobs=20", policy=policy, predictor="oracle")
    >>> set(result.jobs["status"])
    {'completed'}
    """

    def choose(self, job: int, view: View, outlook: Outlook) -> int:
        """Return the requested count."""
        return view.requested_processors[job]


class Fixed:
    """Every job gets the same count, or the nearest feasible one below it.

    Parameters
    ----------
    processors : int
        At least 1.

    Examples
    --------
    >>> import sim
    >>> policy = sim.Policy(sim.FirstComeFirstServed(), sim.Easy(), Fixed(4))
    >>> result = sim.run("workload.jobs=20", policy=policy, predictor="oracle")
    >>> set(result.jobs["status"])
    {'completed'}
    """

    def __init__(self, processors: int = 16) -> None:
        AT_LEAST_1.check(processors=processors)
        self.processors = processors

    def choose(self, job: int, view: View, outlook: Outlook) -> int:
        """Return the largest feasible count up to `processors`, else the least one."""
        counts = view.counts(job)
        return int(counts[place_up_to(counts, self.processors)])
