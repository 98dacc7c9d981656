"""An allocation of new_package."""

from sim import View
from sim.policies.base import Outlook


class NewAllocation:
    """Part of the request.

    Parameters
    ----------
    share : float
        Of the requested processors.
    """

    def __init__(self, share: float) -> None:
        if not 0 < share <= 1:
            raise ValueError(f"share={share}: must lie above 0 and be at most 1")
        self.share = share

    def choose(self, job: int, view: View, outlook: Outlook) -> int:
        """Return the count for a job that has just arrived."""
        counts = view.counts(job)
        most = max(int(view.requested_processors[job] * self.share), counts[0])
        return int(counts[counts <= most][-1])
