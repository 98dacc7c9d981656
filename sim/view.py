"""What a policy sees of the machine: live, read-only, and never a true runtime."""

from collections.abc import Callable, Sequence

import numpy as np

from predictors.base import FloatArray, Inquisitive, IntArray, RuntimePredictor, VisibleJobs
from sim.records import Ranges


def _nothing() -> Ranges:
    return ()


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
    """

    __slots__ = ("believed_end", "job", "nodes", "number", "processors", "start", "stretch")

    def __init__(
        self, job: int, number: int, nodes: Ranges, processors: int, start: float, end: float
    ) -> None:
        self.job = job
        self.number = number
        self.nodes = nodes
        self.processors = processors
        self.start = start
        self.believed_end = end
        self.stretch = -1


class View:
    """The system at a look.

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
        Jobs that arrived since the last look, in queue order.
    ended : list of Run
    moved_ends : dict of Run to float
        Runs whose believed end changed since the last look, with the former one.
    disturbed : bool
        Whether anything else happened since the last look (a wake-up, a failure).
    outages : dict of int to (float, int)
        Failed nodes: when each is believed to be repaired, and its processors.
    outages_changed : bool
        Whether a node failed or came back, or is believed to come back at
        another time, since the last look.
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
        Applications about which the predictor changed its mind since the last look.
    submit_time, requested_time : list of float
    requested_processors : list of int
    luck : numpy.ndarray of float, shape (n,)
        One uniform draw a job, for shares such as that of adopters.
    """

    def __init__(
        self,
        processors: int,
        jobs: VisibleJobs,
        submit_time: list[float],
        predictor: RuntimePredictor,
        feasible: "FeasibleCounts",
        luck: FloatArray,
    ) -> None:
        self.now = 0.0
        self.processors = processors
        self.free = processors
        self.running: dict[int, Run] = {}
        self.believed_ends: list[tuple[float, int, int]] = []
        self.arrived: list[int] = []
        self.ended: list[Run] = []
        self.moved_ends: dict[Run, float] = {}
        self.disturbed = False
        self.outages: dict[int, tuple[float, int]] = {}
        self.outages_changed = False
        self.ahead: set[int] = set()
        self.left: dict[int, float] = {}
        self.processors_per_node = 1
        self.idle: Callable[[], Ranges] = _nothing
        self.health: Callable[[int, float], FloatArray] | None = None
        self.revised: set[int] = set()
        self.submit_time = submit_time
        self.requested_processors: list[int] = jobs.requested_processors.tolist()
        self.requested_time: list[float] = jobs.requested_time.tolist()
        self.application: list[int] = jobs.application.tolist()
        self.luck = luck
        self.queries = 0
        self._predictor = predictor
        self._feasible = feasible
        self._single: dict[int, IntArray] = {}
        self._believed: list[tuple[int, float] | None] = [None] * len(submit_time)

    def counts(self, job: int) -> IntArray:
        """Return every count the job could run on, ascending, within the machine."""
        return self._feasible.counts(job)

    def extremes(self, job: int) -> tuple[int, int]:
        """Return the least and the largest count the job could run on."""
        return self._feasible.extremes(job)

    def curve(self, job: int, counts: IntArray) -> FloatArray | None:
        """Return the predicted runtimes at each count, in seconds; None if there are none."""
        self.queries += 1
        curve = self._predictor.curve(job, counts)
        if job in self.left and curve is not None:
            return curve * self.left[job]
        return curve

    def belief(self, job: int, processors: int) -> float:
        """Return the believed runtime in seconds: predicted, else as requested."""
        known = self._believed[job]
        if known is not None and known[0] == processors:
            return known[1]
        self.queries += 1
        count = self._single.get(processors)
        if count is None:
            count = self._single[processors] = np.array([processors])
        curve = self._predictor.curve(job, count)
        seconds = self.requested_time[job] if curve is None else float(curve[0])
        if job in self.left:
            seconds *= self.left[job]
        self._believed[job] = (processors, seconds)
        return seconds

    def wanted(self, job: int, processors: int) -> int | None:
        """Return the count that the predictor would have measured next, if it says so."""
        predictor = self._predictor
        return predictor.wanted(job, processors) if isinstance(predictor, Inquisitive) else None

    def believe(self, job: int, processors: int, seconds: float) -> None:
        """Keep a belief that was just read off the job's curve."""
        self._believed[job] = (processors, seconds)

    def revise(self, application: int) -> None:
        """Note that the predictor sees an application differently now."""
        self.revised.add(application)

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

    def arrival_rank(self, jobs: IntArray) -> FloatArray:
        """Return a number a job that grows with the order of arrival, ties by index."""
        return np.array([self.submit_time[job] for job in jobs.tolist()])

    def forget(self, jobs: Sequence[int]) -> None:
        """Ask the predictor again about these jobs when next needed."""
        for job in jobs:
            self._believed[job] = None


class FeasibleCounts:
    """Which counts each job can run on; known to policies, unlike how long it takes there.

    Parameters
    ----------
    least, largest : numpy.ndarray of int, shape (n,)
    special : callable
        Job index to its allowed counts, None where every count in between is.
    """

    def __init__(
        self,
        least: IntArray,
        largest: IntArray,
        special: Callable[[int], IntArray | None],
    ) -> None:
        self._least: list[int] = least.tolist()
        self._largest: list[int] = largest.tolist()
        self._special = special
        self._all = np.arange(1, int(largest.max(initial=1)) + 1)

    def counts(self, job: int) -> IntArray:
        """Return every feasible count of the job, ascending."""
        least, largest = self._least[job], self._largest[job]
        if least != largest:
            special = self._special(job)
            if special is not None:
                return special[(special >= least) & (special <= largest)]
        return self._all[least - 1 : largest]

    def extremes(self, job: int) -> tuple[int, int]:
        """Return the least and the largest feasible count of the job."""
        least, largest = self._least[job], self._largest[job]
        if least != largest and self._special(job) is not None:
            counts = self.counts(job)
            return int(counts[0]), int(counts[-1])
        return least, largest
