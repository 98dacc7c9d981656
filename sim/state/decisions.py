"""What a policy may decide at a look."""

from typing import NamedTuple

from sim.state.records import Ranges


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


class Grant(NamedTuple):
    """Give a running job what it asks for: other processors, or a longer walltime.

    The change begins at the end of the job's cycle under way, so that none is done
    twice; processors that it gains are its own from now on.

    Attributes
    ----------
    job : int
        Job index.
    kind : str
        Of the request: ``processors`` or ``walltime``.
    cost : float
        Seconds without progress, on all processors held from then on.
    """

    job: int
    kind: str
    cost: float = 0.0


class Refuse(NamedTuple):
    """Refuse what a running job asks for; it may ask again.

    Attributes
    ----------
    job : int
        Job index.
    kind : str
        Of the request.
    """

    job: int
    kind: str


class WakeAt(NamedTuple):
    """Look again at this time, whatever happens until then (seconds)."""

    time: float


Decision = Start | Resize | Requeue | Grant | Refuse | WakeAt
