"""The state of the machine at an instant, which the engine alone writes."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from predictors.base import FloatArray
from sim.state.records import Ranges

if TYPE_CHECKING:
    from sim.background.load_outlook import LoadOutlook


class Request(NamedTuple):
    """What a running job asks for, by its own predictions.

    Attributes
    ----------
    job : int
        Job index.
    kind : str
        ``processors`` or ``walltime``.
    processors : int
        The count that it wants; for walltime the one that it holds.
    until : float
        For walltime: when it wants to be killed, instead of at its limit, seconds.
    time : float
        When it first asked, seconds.
    """

    job: int
    kind: str
    processors: int
    until: float
    time: float


class Run:
    """A running job, as far as a policy may know it.

    Attributes
    ----------
    job : int
        Job index.
    number : int
        0 for the first run, one more after each restart.
    processors : int
    nodes : Ranges
    start, believed_end : float
        Seconds.
    changed : float
        When it got the processors that it holds now, seconds.
    resumes : float
        When it makes progress again after its last change, seconds; past if it does.
    """

    __slots__ = (
        "believed_end",
        "changed",
        "job",
        "nodes",
        "number",
        "processors",
        "resumes",
        "start",
        "stretch",
    )

    def __init__(
        self, job: int, number: int, nodes: Ranges, processors: int, start: float, end: float
    ) -> None:
        self.job = job
        self.number = number
        self.nodes = nodes
        self.processors = processors
        self.start = start
        self.believed_end = end
        self.changed = start
        self.resumes = start
        self.stretch = -1


def _nothing() -> Ranges:
    return ()


class MachineState:
    """Who runs and waits, what is believed of it, and what is new since the last pass.

    Policies see it by a `View`, which does not let them assign to it.

    Parameters
    ----------
    processors : int
    submit : numpy.ndarray of float, shape (n,), seconds
        When each job is submitted; that of one with feedback is known once it arrives.

    Attributes
    ----------
    now : float
        Seconds.
    processors, free : int
        Size of the machine, and how many are idle.
    running : dict of int to Run
    believed_ends : list of (float, int, int)
        Believed end, job index and processors of each running job, ascending; a
        failed node k is among them until its believed repair, as job −1 − k.
    arrived : list of int
        Jobs that arrived since the last pass, in queue order.
    ended : list of Run
        Since the last pass.
    moved_ends : dict of Run to float
        Runs whose believed end changed since the last pass, with the former one.
    disturbed : bool
        Whether anything else happened since the last pass (a wake-up, a failure).
    resized : set of Run
        Runs whose processors a policy has changed behind a scheduler's back.
    outages : dict of int to (float, int)
        Failed nodes: when each is believed to be repaired, and its processors.
    outages_changed : bool
        Whether a node failed or came back, or is believed to come back at
        another time, since the last pass.
    ahead : set of int
        Jobs that go to the head of the queue when they arrive again.
    left : dict of int to float
        Share of its work that a job that was interrupted still has to do.
    processors_per_node : int
    idle : callable
        Returns the free processors.
    health : callable or None
        What a running evolving job measures of itself: job index and an instant to
        the ratios of measured to benchmarked time of its cycles since then.
    revised : set of int
        Applications about which the predictor changed its mind since the last pass.
    requests : dict of (int, str) to Request
        What running jobs ask for, by job and kind, in the order of asking; a request
        that is neither granted nor refused stands.
    measured_efficiency : callable or None
        Job index of a running job to its efficiency on the processors it holds, as
        measured now; see `sim.state.sensors.EfficiencySensor`.
    load : LoadOutlook or None
        What is believed of the load, on a shared machine.
    """

    def __init__(self, processors: int, submit: FloatArray) -> None:
        self.now = 0.0
        self.processors = processors
        self.free = processors
        self._submit = submit
        self.running: dict[int, Run] = {}
        self.believed_ends: list[tuple[float, int, int]] = []
        self.arrived: list[int] = []
        self.ended: list[Run] = []
        self.moved_ends: dict[Run, float] = {}
        self.disturbed = False
        self.resized: set[Run] = set()
        self.outages: dict[int, tuple[float, int]] = {}
        self.outages_changed = False
        self.ahead: set[int] = set()
        self.left: dict[int, float] = {}
        self.processors_per_node = 1
        self.idle: Callable[[], Ranges] = _nothing
        self.health: Callable[[int, float], FloatArray] | None = None
        self.revised: set[int] = set()
        self.requests: dict[tuple[int, str], Request] = {}
        self.measured_efficiency: Callable[[int], float] | None = None
        self.load: LoadOutlook | None = None

    @cached_property
    def submit_time(self) -> list[float]:
        """Of each job, seconds."""
        return [*self._submit.tolist()]

    def settle(self) -> None:
        """Forget what was new: the policy has seen it."""
        if self.arrived:
            self.arrived.clear()
        if self.ended:
            self.ended.clear()
        if self.moved_ends:
            self.moved_ends.clear()
        if self.revised:
            self.revised.clear()
        self.disturbed = False
        self.outages_changed = False
