"""The processor working set (Eager, Zahorjan & Lazowska 1989; Ghosal et al. 1991)."""

from sim.policies.advice import JobCurve
from sim.policies.allocation.curve import CurveRule, knee


class Knee(CurveRule):
    """Processor working set: the least n that maximises S(n)²/n (Ghosal et al. 1991).

    Parameters
    ----------
    advice, counts
        As in `CurveRule`.

    Examples
    --------
    >>> import sim
    >>> policy = sim.Policy(sim.FirstComeFirstServed(), sim.Easy(), Knee())
    >>> result = sim.run("workload.jobs=20", policy=policy, predictor="oracle")
    >>> set(result.jobs["status"])
    {'completed'}
    """

    def pick(self, reading: JobCurve) -> int:
        """Return the place of the knee."""
        return int(knee(reading.counts, reading.runtimes))
