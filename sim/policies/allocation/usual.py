"""SA that goes by the usual load: the blind twin of counts chosen under the load to come."""

from sim.policies.allocation.sa import SmallestTurnaround
from sim.policies.base import Outlook
from sim.view import View


class UsualTurnaround(SmallestTurnaround):
    """The smallest turnaround at the long-run average of load, not the load to come.

    Parameters are those of `SmallestTurnaround`; without background load the
    two are the same.
    """

    def choose(self, job: int, view: View, outlook: Outlook) -> int:
        """Return the count with the least turnaround under the usual load."""
        if view.load is None:
            return super().choose(job, view, outlook)
        with view.load.usual():
            return super().choose(job, view, outlook)
