"""The machine whose nodes fail and are repaired, and on which foreign processes may run.

Each node is quiet and disturbed by them in turn; a tightly coupled job runs at the speed of its
slowest node.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil, exp, gamma, inf, log, nextafter
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from predictors.base import FloatArray
from sim.errors import Bounds, between, check_choices
from sim.machine.base import Dedicated
from sim.state.processors import nodes_of
from sim.state.records import Ranges
from workloads.streams import Streams

PHASES_AT_ONCE = 8
"""Quiet and disturbed phases that are drawn together for a node."""
DRAWN_AT_ONCE = 8
"""Lives and repairs that are drawn together for a node."""


class NodeEvent(NamedTuple):
    """A node fails or comes back.

    Attributes
    ----------
    time : float
        Seconds on the clock of the failures' start.
    node : int
    kind : str
        ``failure`` or ``repair``.
    """

    time: float
    node: int
    kind: Literal["failure", "repair"]


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
    >>> machine.processors_of(1)
    (4, 7)
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
        check_choices(self)
        words = f"above 0 and below the mean, repair={self.repair}"
        median = Bounds(words, nextafter(0.0, 1.0), nextafter(self.repair, 0.0))
        for name, bounds in {**BOUNDS, "repair_median": median}.items():
            if (value := getattr(self, name)) is not None:
                bounds.check(**{f"cluster.{name}": value})

    def bound(self, streams: Streams, start: float) -> "FailingMachine":
        """Return the machine of one run, whose nodes' clocks start then, in seconds."""
        keys = streams.key("failures"), streams.key("interference")
        return FailingMachine(**vars(self), keys=keys, start=start)


@dataclass(frozen=True)
class FailingMachine(Failing):
    """A machine in one run: its nodes' clocks are wound up. A job waits for its slowest node.

    When a node fails and when it is disturbed depends on the seed, the replication and the
    node's number alone, whatever is asked first, never on the schedule: policies that are
    compared see the same.

    Attributes
    ----------
    fails : bool
        True: there has to be room for failed nodes.
    keys : tuple of int
        Keys of the random streams of failures and of interference, at least 0.
    start : float
        When the nodes' clocks start, seconds. All are up and quiet then.

    Notes
    -----
    The first failure is that of a clock in its steady state: a life is drawn by its length and
    left at a uniform place.

    Examples
    --------
    >>> machine = FailingMachine(8, 4, mtbf=100.0, quiet=100.0, disturbed=100.0, interference=1.0)
    >>> first = next(machine.events())
    >>> first.kind, first.time < 1000
    ('failure', True)
    >>> end = machine.completion(0.0, 1000.0, ((0, 7),))
    >>> 1000.0 < end < 2000.0, round(machine.progress(0.0, end, ((0, 7),)), 6)
    (True, 1000.0)
    """

    fails = True
    keys: tuple[int, int] = field(default=(0, 0), kw_only=True)
    start: float = field(default=0.0, kw_only=True)
    _draws: dict[int, np.random.Generator | None] = field(
        default_factory=dict, init=False, compare=False
    )
    _changes: dict[int, FloatArray] = field(default_factory=dict, init=False, compare=False)

    def processors_of(self, node: int) -> tuple[int, int]:
        """Return the first and the last processor of a node."""
        first = node * self.processors_per_node
        return first, min(first + self.processors_per_node, self.processors) - 1

    def _stream(self, key: int, node: int) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(key=key, counter=[0, 0, node, 0]))

    # Failures and repairs

    @property
    def scale(self) -> float:
        """Weibull's scale, or the mean of exponential lives, seconds; infinite without failures."""
        mean = inf if self.mtbf is None else self.mtbf
        return mean if self.lifetimes == "exponential" else mean / gamma(1.0 + 1.0 / self.shape)

    def lives(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Return how long nodes live from a repair to their next failure, seconds."""
        if self.lifetimes == "exponential":
            return self.scale * rng.standard_exponential(size)
        return self.scale * rng.weibull(self.shape, size)

    def first_life(self, rng: np.random.Generator) -> float:
        """Return what is left of a life that the clock's start cuts, seconds."""
        if self.lifetimes == "exponential":
            return float(self.scale * rng.standard_exponential())
        # Length-biased: (x/scale)^shape follows a gamma law with 1 + 1/shape.
        whole = rng.standard_gamma(1.0 + 1.0 / self.shape) ** (1.0 / self.shape)
        return float(self.scale * whole * rng.random())

    def repairs(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Return how long repairs take, seconds."""
        if self.repair_median is None:
            return np.full(size, self.repair)
        sigma = (2.0 * log(self.repair / self.repair_median)) ** 0.5
        return np.asarray(self.repair_median * np.exp(sigma * rng.standard_normal(size)))

    def _clock(self, node: int) -> Iterator[tuple[float, int]]:
        """Yield when a node fails (0) and is back (1), in turn, without end."""
        rng = self._stream(self.keys[0], node)
        failures = np.array([self.start + self.first_life(rng)])
        ends = failures + self.repairs(rng, 1)
        while True:
            for times in zip(failures.tolist(), ends.tolist(), strict=True):
                yield from zip(times, (0, 1), strict=True)
            lives = self.lives(rng, DRAWN_AT_ONCE)
            away = self.repairs(rng, DRAWN_AT_ONCE)
            ends = ends[-1] + np.cumsum(lives + away)
            failures = ends - away

    def _first_failures(self) -> list[float]:
        """Return when each node first fails, without clocks of their own.

        One generator is set to the begin of each node's stream in turn: of a large machine
        most nodes never fail in a run, and making a generator takes six times as long.
        """
        bits = np.random.Philox(key=self.keys[0])
        rng, state, first = np.random.Generator(bits), bits.state, []
        for node in range(ceil(self.processors / self.processors_per_node)):
            state["state"]["counter"][:] = [0, 0, node, 0]
            bits.state = state
            first.append(self.start + self.first_life(rng))
        return first

    def events(self) -> Iterator[NodeEvent]:
        """Yield failures and repairs of all nodes in time order; without end where there are any.

        At one instant failures come before repairs, then nodes in their order.
        """
        if self.mtbf is None:
            return
        clocks: dict[int, Iterator[tuple[float, int]]] = {}
        pending = [(time, 0, node) for node, time in enumerate(self._first_failures())]
        heapq.heapify(pending)
        while True:
            time, back, node = heapq.heappop(pending)
            yield NodeEvent(time, node, "repair" if back else "failure")
            if node not in clocks:
                clocks[node] = self._clock(node)
                next(clocks[node])  # its first failure
            heapq.heappush(pending, (*next(clocks[node]), node))

    def expected_starts(self, runtime: float, processors: int) -> float:
        """Return how often a job without checkpoints must begin, on average, until it ends.

        Its nodes fail at the rate λ = nodes / mtbf, so that a run of T seconds succeeds with
        probability exp(-λT), and all its runs take (exp(λT) - 1) / λ. Told for exponential
        lifetimes; 1 for others.
        """
        if self.lifetimes != "exponential":
            return 1.0
        nodes = ceil(processors / self.processors_per_node)
        return exp(min(nodes * runtime / self.scale, 700.0))

    # Quiet and disturbed phases, both exponential

    def changes(self, node: int, until: float) -> FloatArray:
        """Return the times at which a node's phases change, at least up to `until`.

        Disturbed phases begin at even positions.
        """
        if node not in self._draws:
            rng = self._stream(self.keys[1], node)
            self._draws[node] = rng if rng.random() < self.interference else None
            self._changes[node] = np.empty(0)
        draw, known = self._draws[node], self._changes[node]
        while draw is not None and (known.size == 0 or known[-1] <= until):
            means = np.tile([self.quiet, self.disturbed], PHASES_AT_ONCE)
            lengths = means * draw.standard_exponential(means.size)
            base = known[-1] if known.size else self.start
            known = np.concatenate((known, base + np.cumsum(lengths)))
        self._changes[node] = known
        return known

    def slowdown(self, nodes: Ranges, start: float, until: float) -> tuple[FloatArray, FloatArray]:
        """Return how a job on these processors is slowed from `start` to `until`.

        The job waits for its slowest node: it is slowed while any is disturbed.

        Returns
        -------
        times : numpy.ndarray of float, shape (k,), seconds
            Where the factor changes; the first is `start`.
        factors : numpy.ndarray of float, shape (k,)
            From each time on, work takes so many times as long.
        """
        known = [self.changes(node, until) for node in nodes_of(nodes, self.processors_per_node)]
        inside = [row[(row > start) & (row <= until)] for row in known]
        times = np.unique(np.concatenate([[start], *inside]))
        counts = sum(np.searchsorted(row, times, side="right") % 2 for row in known)
        factors = np.where(np.asarray(counts) > 0, self.factor, 1.0)
        kept = np.append(True, np.diff(factors) != 0.0)
        return times[kept], np.broadcast_to(factors, times.shape)[kept]

    def completion(
        self, start: float, runtime: float, nodes: Ranges, communication: float = 0.0
    ) -> float:
        """Return when work of `runtime` seconds at full speed ends if it starts at `start`."""
        return float(self.walls(start, runtime, nodes))

    def walls(self, start: float, work: ArrayLike, nodes: Ranges) -> FloatArray:
        """Return when so many seconds of work at full speed are done, by the clock.

        Parameters
        ----------
        start : float, seconds
        work : array_like of float, seconds
            Such as the ends of a run's cycles.
        nodes : Ranges
            Processors that the job holds.
        """
        seconds = np.asarray(work, dtype=float)
        if self.interference == 0.0:
            return start + seconds
        # No phase beyond this can matter: all of it would be done at the slowest.
        until = start + float(seconds.max(initial=0.0)) * self.factor
        times, factors = self.slowdown(nodes, start, until)
        done = np.concatenate(([0.0], np.cumsum(np.diff(times) / factors[:-1])))
        at = np.searchsorted(done, seconds, side="right") - 1
        return np.asarray(times[at] + (seconds - done[at]) * factors[at])

    def progress(
        self, start: float, end: float, nodes: Ranges, communication: float = 0.0
    ) -> float:
        """Return the work done from `start` to `end`, in seconds at full speed."""
        if self.interference == 0.0:
            return end - start
        times, factors = self.slowdown(nodes, start, end)
        return float(np.sum(np.diff(times, append=end) / factors))
