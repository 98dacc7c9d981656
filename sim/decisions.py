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
    cost : float
        Seconds before the job makes progress, on the processors it holds.
    """

    job: int
    processors: int
    nodes: Ranges | None = None
    cost: float = 0.0


class Resize(NamedTuple):
    """Change the processors of a running job now.

    Attributes
    ----------
    job : int
        Job index.
    processors : int
        The new count.
    nodes : Ranges or None
        Which processors; None keeps the lowest-numbered of its own and adds the
        lowest-numbered free ones.
    cost : float
        Seconds without progress, on all processors held from now on.
    """

    job: int
    processors: int
    nodes: Ranges | None = None
    cost: float = 0.0


class Requeue(NamedTuple):
    """Interrupt a running job and queue it again.

    A job that evolves finishes its cycle, writes a checkpoint and goes on from
    it later; any other ends at once and begins again from zero.

    Attributes
    ----------
    job : int
        Job index.
    """

    job: int


class WakeAt(NamedTuple):
    """Look again at this time, whatever happens until then (seconds)."""

    time: float


Decision = Start | Resize | Requeue | WakeAt
