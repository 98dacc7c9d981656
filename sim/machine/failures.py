"""When nodes fail and are repaired: a renewal clock for each node.

A node's failures depend on the seed, the replication and the node's number
alone, never on the schedule: policies that are compared see the same failures.
Nothing of the engine is imported here.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import gamma, inf, log
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sim.errors import AT_LEAST_0, AT_LEAST_1, FINITE, POSITIVE_AND_FINITE, ConfigError

FloatArray = NDArray[np.float64]

DRAWN_AT_ONCE = 8
"""Lives and repairs that are drawn together for a node."""


class Lifetimes(Protocol):
    """How long a node works before it fails."""

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Return times from a repair to the next failure, seconds."""
        ...

    def draw_first(self, rng: np.random.Generator) -> float:
        """Return the time to the first failure of a node long in use, seconds."""
        ...


@dataclass(frozen=True)
class ExponentialLifetimes:
    """Failures without memory: a node's age does not matter.

    Parameters
    ----------
    mtbf : float, seconds
        Mean time from a repair to the next failure of one node.

    Raises
    ------
    ConfigError
        If it is not positive and finite.
    """

    mtbf: float

    def __post_init__(self) -> None:
        POSITIVE_AND_FINITE.check(mtbf=self.mtbf)

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Return exponential lives, seconds."""
        return self.mtbf * rng.standard_exponential(size)

    def draw_first(self, rng: np.random.Generator) -> float:
        """Return an exponential life, seconds."""
        return float(self.mtbf * rng.standard_exponential())


@dataclass(frozen=True)
class WeibullLifetimes:
    """Failures whose rate changes with the time since the last repair.

    Parameters
    ----------
    mtbf : float, seconds
        Mean time from a repair to the next failure of one node.
    shape : float
        Below 1 a node is likeliest to fail soon after a repair (0.7 to 0.8 is
        usual for HPC nodes); 1 is exponential.

    Notes
    -----
    The scale is mtbf/Γ(1 + 1/shape). The first failure is that of a clock in
    its steady state: a life is drawn by its length and left at a uniform place.

    Raises
    ------
    ConfigError
        If a parameter is not positive and finite.
    """

    mtbf: float
    shape: float = 0.7

    def __post_init__(self) -> None:
        POSITIVE_AND_FINITE.check(mtbf=self.mtbf)
        POSITIVE_AND_FINITE.check(shape=self.shape)

    @property
    def scale(self) -> float:
        """Weibull scale, seconds."""
        return self.mtbf / gamma(1.0 + 1.0 / self.shape)

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Return Weibull lives, seconds."""
        return self.scale * rng.weibull(self.shape, size)

    def draw_first(self, rng: np.random.Generator) -> float:
        """Return what is left of a life that the clock's start cuts, seconds."""
        # Length-biased: (x/scale)^shape follows a gamma law with 1 + 1/shape.
        whole = rng.standard_gamma(1.0 + 1.0 / self.shape) ** (1.0 / self.shape)
        return float(self.scale * whole * rng.random())


class Repairs(Protocol):
    """How long a failed node is away."""

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Return repair times, seconds."""
        ...


@dataclass(frozen=True)
class ConstantRepairs:
    """Every repair takes the same time.

    Parameters
    ----------
    seconds : float
        At least 0.
    """

    seconds: float = 3600.0

    def __post_init__(self) -> None:
        FINITE.check(seconds=self.seconds)

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Return the constant, seconds."""
        return np.full(size, self.seconds)


@dataclass(frozen=True)
class LognormalRepairs:
    """Repairs of which a few take very long.

    Parameters
    ----------
    mean : float, seconds
    median : float, seconds
        Below the mean.
    """

    mean: float = 21600.0
    median: float = 3600.0

    def __post_init__(self) -> None:
        POSITIVE_AND_FINITE.check(median=self.median)
        if not self.median < self.mean < inf:
            raise ConfigError(f"mean must be above the median {self.median}, got {self.mean}")

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Return log-normal repair times, seconds."""
        sigma = (2.0 * log(self.mean / self.median)) ** 0.5
        return np.asarray(self.median * np.exp(sigma * rng.standard_normal(size)))


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


class _NodeClock:
    """Failures and repairs of one node, drawn as far as anyone has looked."""

    def __init__(
        self, rng: np.random.Generator, lifetimes: Lifetimes, repairs: Repairs, start: float
    ) -> None:
        self._rng, self._lifetimes, self._repairs = rng, lifetimes, repairs
        self.failures = np.array([start + lifetimes.draw_first(rng)])
        self.repairs = self.failures + repairs.draw(rng, 1)

    def extend(self) -> None:
        """Draw some more lives and repairs."""
        lives = self._lifetimes.draw(self._rng, DRAWN_AT_ONCE)
        away = self._repairs.draw(self._rng, DRAWN_AT_ONCE)
        ends = self.repairs[-1] + np.cumsum(lives + away)
        self.repairs = np.concatenate((self.repairs, ends))
        self.failures = np.concatenate((self.failures, ends - away))

    def reach(self, time: float) -> None:
        """Draw until a failure lies beyond a time."""
        while self.failures[-1] <= time:
            self.extend()

    def at(self, index: int) -> tuple[float, float]:
        """Return the failure of that index and the repair that ends it."""
        while index >= self.failures.size:
            self.extend()
        return float(self.failures[index]), float(self.repairs[index])


def _counter(node: int) -> list[int]:
    """Return where a node's part of the random stream begins."""
    return [0, 0, node, 0]


class NodeFailures:
    """Failures and repairs of all nodes, the same whatever is asked first.

    Parameters
    ----------
    nodes : int
        Nodes, numbered from 0.
    lifetimes : Lifetimes
    repairs : Repairs
    key : int
        Key of the random stream (``Streams.key("failures")``), at least 0.
    start : float
        When the clocks start, seconds.

    Raises
    ------
    ConfigError
        If `nodes` is below 1 or `key` below 0.

    Examples
    --------
    >>> failures = NodeFailures(2, ExponentialLifetimes(100.0), ConstantRepairs(10.0), key=1)
    >>> first = next(failures.events())
    >>> first.kind, failures.is_down(first.node, first.time), first.time < 1000
    ('failure', True, True)
    """

    def __init__(
        self, nodes: int, lifetimes: Lifetimes, repairs: Repairs, key: int, start: float = 0.0
    ) -> None:
        AT_LEAST_1.check(nodes=nodes)
        AT_LEAST_0.check(key=key)
        self.nodes = nodes
        self.lifetimes = lifetimes
        self.repairs = repairs
        self.key = key
        self.start = start
        self._clocks: dict[int, _NodeClock] = {}

    def _clock(self, node: int) -> _NodeClock:
        clock = self._clocks.get(node)
        if clock is None:
            if not 0 <= node < self.nodes:
                raise ConfigError(f"node must be 0 to {self.nodes - 1}, got {node}")
            rng = np.random.Generator(np.random.Philox(key=self.key, counter=_counter(node)))
            clock = _NodeClock(rng, self.lifetimes, self.repairs, self.start)
            self._clocks[node] = clock
        return clock

    def _first_failures(self) -> list[float]:
        """Return when each node first fails, without clocks of their own.

        One generator is set to the begin of each node's stream in turn: of a large machine
        most nodes never fail in a run, and making a generator takes six times as long.
        """
        bits = np.random.Philox(key=self.key)
        rng, state, first = np.random.Generator(bits), bits.state, []
        for node in range(self.nodes):
            state["state"]["counter"][:] = _counter(node)
            bits.state = state
            first.append(self.start + self.lifetimes.draw_first(rng))
        return first

    def events(self) -> Iterator[NodeEvent]:
        """Yield failures and repairs of all nodes in time order, without end.

        At one instant failures come before repairs, then nodes in their order.
        """
        pending = [(time, 0, node, 0) for node, time in enumerate(self._first_failures())]
        heapq.heapify(pending)
        while True:
            time, back, node, index = heapq.heappop(pending)
            yield NodeEvent(time, node, "repair" if back else "failure")
            clock = self._clock(node)
            if back:
                heapq.heappush(pending, (clock.at(index + 1)[0], 0, node, index + 1))
            else:
                heapq.heappush(pending, (clock.at(index)[1], 1, node, index))

    def between(self, nodes: Iterable[int], after: float, until: float) -> list[tuple[float, int]]:
        """Return (time, node) of these nodes' failures in (after, until], in time order."""
        found = []
        for node in nodes:
            clock = self._clock(node)
            clock.reach(until)
            low, high = np.searchsorted(clock.failures, [after, until], side="right")
            found += [(float(time), node) for time in clock.failures[low:high]]
        return sorted(found)

    def next_failure(self, nodes: Iterable[int], after: float) -> tuple[float, int]:
        """Return time and node of the first failure of these nodes after a time.

        Raises
        ------
        ConfigError
            If no node is given, or one that does not exist.
        """
        found = []
        for node in nodes:
            clock = self._clock(node)
            clock.reach(after)
            at = int(np.searchsorted(clock.failures, after, side="right"))
            found.append((float(clock.failures[at]), node))
        if not found:
            raise ConfigError("next_failure needs at least one node")
        return min(found)

    def is_down(self, node: int, time: float) -> bool:
        """Say whether a node is failed at a time: from its failure until its repair."""
        clock = self._clock(node)
        clock.reach(time)
        at = int(np.searchsorted(clock.failures, time, side="right")) - 1
        return at >= 0 and bool(time < clock.repairs[at])
