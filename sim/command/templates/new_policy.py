"""A policy of new_package."""

from sim import Conservative, FirstComeFirstServed, Request, View
from sim.engine.protocols import Scheduler
from sim.policies.base import Policy


class NewPolicy:
    """Requests as they are, first come first served, conservative backfilling; change it.

    Anything with `begin(view)` will do that returns an object whose `decide()` returns
    decisions (`sim.state.decisions`) at every scheduling pass.
    """

    def begin(self, view: View) -> Scheduler:
        """Begin a run."""
        return Policy(FirstComeFirstServed(), Conservative(), Request()).begin(view)
