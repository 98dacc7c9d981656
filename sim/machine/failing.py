"""The machine whose nodes fail and are repaired, and on which foreign processes may run."""

from dataclasses import dataclass, field
from math import ceil, exp, inf, nextafter
from typing import Literal

from sim.errors import Bounds, between, check_choice
from sim.machine.base import Dedicated
from sim.machine.disturbed import Disturbed
from sim.machine.failures import (
    ConstantRepairs,
    ExponentialLifetimes,
    Lifetimes,
    LognormalRepairs,
    NodeFailures,
    Repairs,
    WeibullLifetimes,
)
from sim.machine.interference import NodeInterference
from workloads.streams import Streams

Requeueing = Literal["head", "tail"]
LARGEST, MOST_FACTOR = 1e15, 1e6
"""Seconds, and how many times as long work may take while others disturb it."""
BOUNDS = {
    "mtbf": between(1.0, LARGEST),
    "shape": between(0.05, 20.0),
    "repair": between(0.0, LARGEST),
    "max_restarts": between(0.0, LARGEST),
    "shrink_seconds": between(0.0, LARGEST),
    "interference": between(0.0, 1.0),
    "quiet": between(1.0, LARGEST),
    "disturbed": between(1.0, LARGEST),
    "factor": Bounds(f"above 1 and at most {MOST_FACTOR:,.0f}", nextafter(1.0, inf), MOST_FACTOR),
}
"""The range of each number; of a shorter mean time between failures no job would end."""


@dataclass(frozen=True)
class Failing(Dedicated):
    """A machine whose nodes fail (``cluster=failing``).

    Attributes
    ----------
    mtbf : float or None
        Mean time from a repair to the next failure of one node, seconds; None
        for nodes that never fail.
    lifetimes : str
        ``exponential``, or ``weibull`` with `shape`.
    shape : float
        Below 1 a node is likeliest to fail soon after a repair.
    repair : float
        Mean repair time, seconds; at least 0.
    repair_median : float or None
        Median of log-normal repair times; None for a constant.
    requeue : str
        Where in the queue an interrupted job goes: ``head`` or ``tail``.
    max_restarts : int
        A job that is interrupted more often is given up, with status ``failed``.
    shrink_off_failed : bool
        Whether a malleable job goes on without the processors of a failed node,
        where what is left suffices, instead of dying.
    shrink_seconds : float
        Seconds without progress in which it recovers then, on top of what
        ``policy.reallocation.cost`` says of such a change; at least 0.
    interference : float
        Share of the nodes on which a foreign process ever runs, 0 to 1.
    quiet, disturbed : float
        Mean lengths of phases without and with it, seconds.
    factor : float
        How many times as long work takes while it runs.

    Raises
    ------
    ConfigError
        If a value is out of range.

    Examples
    --------
    >>> machine = Failing(8, 4, mtbf=86400.0).bound(Streams(seed=1), start=0.0)
    >>> machine.failures.nodes, machine.processors_of(1)
    (2, (4, 7))
    """

    mtbf: float | None = 2_592_000.0
    lifetimes: Literal["exponential", "weibull"] = "exponential"
    shape: float = 0.7
    repair: float = 3600.0
    repair_median: float | None = None
    requeue: Requeueing = "head"
    max_restarts: int = 1000
    shrink_off_failed: bool = False
    shrink_seconds: float = 0.0
    interference: float = 0.0
    quiet: float = 86400.0
    disturbed: float = 3600.0
    factor: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(("exponential", "weibull"), lifetimes=self.lifetimes)
        check_choice(("head", "tail"), requeue=self.requeue)
        words = f"above 0 and below the mean, repair={self.repair}"
        median = Bounds(words, nextafter(0.0, 1.0), nextafter(self.repair, 0.0))
        for name, bounds in {**BOUNDS, "repair_median": median}.items():
            if (value := getattr(self, name)) is not None:
                bounds.check(**{f"cluster.{name}": value})

    def bound(self, streams: Streams, start: float) -> "FailingMachine":
        """Return the machine of one run: failures depend on seed, replication and node alone.

        Parameters
        ----------
        streams : Streams
        start : float, seconds
            When the nodes' clocks start.
        """
        nodes = ceil(self.processors / self.processors_per_node)
        phases = None
        if self.interference != 0.0:
            lengths = (self.quiet, self.disturbed, self.factor, self.interference)
            phases = NodeInterference(*lengths, streams.key("interference"), start)
        failures = self._failures(nodes, streams.key("failures"), start)
        return FailingMachine(**vars(self), failures=failures, phases=phases)

    def _failures(self, nodes: int, key: int, start: float) -> NodeFailures | None:
        if self.mtbf is None:
            return None
        lives: Lifetimes = ExponentialLifetimes(self.mtbf)
        if self.lifetimes == "weibull":
            lives = WeibullLifetimes(self.mtbf, self.shape)
        repairs: Repairs = ConstantRepairs(self.repair)
        if self.repair_median is not None:
            repairs = LognormalRepairs(self.repair, self.repair_median)
        return NodeFailures(nodes, lives, repairs, key, start)


@dataclass(frozen=True)
class FailingMachine(Failing, Disturbed):
    """A machine in one run: its nodes' clocks are wound up.

    Attributes
    ----------
    failures : NodeFailures or None
        None where nothing fails.
    """

    failures: NodeFailures | None = field(default=None, kw_only=True)

    def processors_of(self, node: int) -> tuple[int, int]:
        """Return the first and the last processor of a node."""
        first = node * self.processors_per_node
        return first, min(first + self.processors_per_node, self.processors) - 1

    def expected_starts(self, runtime: float, processors: int) -> float:
        """Return how often a job without checkpoints must begin, on average, until it ends.

        Its nodes fail at the rate λ = nodes / mtbf, so that a run of T seconds succeeds with
        probability exp(-λT), and all its runs take (exp(λT) - 1) / λ. Told for exponential
        lifetimes; 1 for others.
        """
        lives = None if self.failures is None else self.failures.lifetimes
        if not isinstance(lives, ExponentialLifetimes):
            return 1.0
        nodes = ceil(processors / self.processors_per_node)
        return exp(min(nodes * runtime / lives.mtbf, 700.0))
