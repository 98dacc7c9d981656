"""When nodes fail and are repaired: a renewal clock for each node.

A node's failures depend on the seed, the replication and the node's number
alone, never on the schedule: policies that are compared see the same failures.
Nothing of the engine is imported here; `sim.machine.failing.Failing` checks all numbers.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import gamma, log
from typing import Literal, NamedTuple

import numpy as np

from predictors.base import FloatArray

DRAWN_AT_ONCE = 8
"""Lives and repairs that are drawn together for a node."""


@dataclass(frozen=True)
class ExponentialLifetimes:
    """Failures without memory: a node's age does not matter.

    Parameters
    ----------
    mtbf : float, seconds
        Mean time from a repair to the next failure of one node.
    """

    mtbf: float

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
    """

    mtbf: float
    shape: float = 0.7

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


@dataclass(frozen=True)
class ConstantRepairs:
    """Every repair takes the same time.

    Parameters
    ----------
    seconds : float
        At least 0.
    """

    seconds: float = 3600.0

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

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Return log-normal repair times, seconds."""
        sigma = (2.0 * log(self.mean / self.median)) ** 0.5
        return np.asarray(self.median * np.exp(sigma * rng.standard_normal(size)))


Lifetimes = ExponentialLifetimes | WeibullLifetimes
Repairs = ConstantRepairs | LognormalRepairs


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

    def at(self, index: int) -> tuple[float, float]:
        """Return the failure of that index and the repair that ends it."""
        while index >= self.failures.size:
            lives = self._lifetimes.draw(self._rng, DRAWN_AT_ONCE)
            away = self._repairs.draw(self._rng, DRAWN_AT_ONCE)
            ends = self.repairs[-1] + np.cumsum(lives + away)
            self.repairs = np.concatenate((self.repairs, ends))
            self.failures = np.concatenate((self.failures, ends - away))
        return float(self.failures[index]), float(self.repairs[index])


@dataclass(eq=False)
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

    Examples
    --------
    >>> failures = NodeFailures(2, ExponentialLifetimes(100.0), ConstantRepairs(10.0), key=1)
    >>> first = next(failures.events())
    >>> first.kind, first.time < 1000
    ('failure', True)
    """

    nodes: int
    lifetimes: Lifetimes
    repairs: Repairs
    key: int
    start: float = 0.0
    _clocks: dict[int, _NodeClock] = field(default_factory=dict, init=False)

    def _clock(self, node: int) -> _NodeClock:
        if node not in self._clocks:
            rng = np.random.Generator(np.random.Philox(key=self.key, counter=[0, 0, node, 0]))
            self._clocks[node] = _NodeClock(rng, self.lifetimes, self.repairs, self.start)
        return self._clocks[node]

    def _first_failures(self) -> list[float]:
        """Return when each node first fails, without clocks of their own.

        One generator is set to the begin of each node's stream in turn: of a large machine
        most nodes never fail in a run, and making a generator takes six times as long.
        """
        bits = np.random.Philox(key=self.key)
        rng, state, first = np.random.Generator(bits), bits.state, []
        for node in range(self.nodes):
            state["state"]["counter"][:] = [0, 0, node, 0]
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
            index += back  # after a repair comes the next failure, after that its repair
            heapq.heappush(pending, (self._clock(node).at(index)[1 - back], 1 - back, node, index))
