"""What a policy may decide at a look."""

from typing import NamedTuple

from sim.records import Ranges


class Start(NamedTuple):
    """Start a waiting job now.

    Attributes
    ----------
    job : int
        Job index.
    processors : int
    nodes : Ranges or None
        Which processors; None takes the lowest-numbered free ones.
    """

    job: int
    processors: int
    nodes: Ranges | None = None


class WakeAt(NamedTuple):
    """Look again at this time, whatever happens until then (seconds)."""

    time: float


Decision = Start | WakeAt
