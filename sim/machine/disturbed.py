"""Foreign processes that run on nodes now and then.

Each node is quiet and disturbed in turn; a tightly coupled job runs at the speed of its slowest
node. `sim.machine.failing.Failing` checks all numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray

PHASES_AT_ONCE = 8
"""Quiet and disturbed phases that are drawn together for a node."""


class Slowdown(NamedTuple):
    """How a set of nodes is slowed from a time on.

    Attributes
    ----------
    times : numpy.ndarray of float, shape (k,), seconds
        Where the factor changes; the first is the time asked for.
    factors : numpy.ndarray of float, shape (k,)
        From each time on, cycles take so many times as long.
    """

    times: FloatArray
    factors: FloatArray

    def work(self, elapsed_until: float) -> float:
        """Return the undisturbed seconds of work done from the start until a time."""
        ends = np.append(self.times[1:], inf)
        spent = np.clip(np.minimum(ends, elapsed_until) - self.times, 0.0, None)
        return float(np.sum(spent / self.factors))

    def wall(self, work: FloatArray) -> FloatArray:
        """Return the times at which so many undisturbed seconds of work are done.

        Work beyond the last change goes on at its factor.
        """
        done = np.concatenate(([0.0], np.cumsum(np.diff(self.times) / self.factors[:-1])))
        at = np.searchsorted(done, work, side="right") - 1
        return np.asarray(self.times[at] + (work - done[at]) * self.factors[at])


@dataclass(eq=False)
class NodeInterference:
    """Quiet and disturbed phases of every node, both exponential.

    They depend on the seed, the replication and the node's number alone, never on the schedule.

    Parameters
    ----------
    quiet, disturbed : float
        Mean lengths of the phases, seconds. A node starts quiet.
    factor : float
        How many times as long work takes while disturbed, above 1; 2 is one
        process that shares the processor (the paper's Figure 5).
    share : float
        Share of the nodes that is ever disturbed, 0 to 1.
    key : int
        Key of the random stream (``Streams.key("interference")``).
    start : float
        When the phases start, seconds.

    Examples
    --------
    >>> phases = NodeInterference(quiet=100.0, disturbed=50.0, key=1)
    >>> slowdown = phases.slowdown([0, 1], 0.0, 1000.0)
    >>> float(slowdown.factors[0]), float(slowdown.factors.max())
    (1.0, 2.0)
    """

    quiet: float = 86400.0
    disturbed: float = 3600.0
    factor: float = 2.0
    share: float = 1.0
    key: int = 0
    start: float = 0.0
    _draws: dict[int, np.random.Generator | None] = field(default_factory=dict, init=False)
    _changes: dict[int, FloatArray] = field(default_factory=dict, init=False)

    def changes(self, node: int, until: float) -> FloatArray:
        """Return the times at which a node's phases change, at least up to `until`.

        Disturbed phases begin at even positions.
        """
        if node not in self._draws:
            rng = np.random.Generator(np.random.Philox(key=self.key, counter=[0, 0, node, 0]))
            ever = rng.random() < self.share
            self._draws[node] = rng if ever else None
            self._changes[node] = np.empty(0)
        draw, known = self._draws[node], self._changes[node]
        while draw is not None and (known.size == 0 or known[-1] <= until):
            means = np.tile([self.quiet, self.disturbed], PHASES_AT_ONCE)
            lengths = means * draw.standard_exponential(means.size)
            base = known[-1] if known.size else self.start
            known = np.concatenate((known, base + np.cumsum(lengths)))
        self._changes[node] = known
        return known

    def slowdown(self, nodes: Sequence[int], start: float, until: float) -> Slowdown:
        """Return how a job on these nodes is slowed from `start` to `until`.

        The job waits for its slowest node: it is slowed while any is disturbed.
        """
        known = [self.changes(node, until) for node in nodes]
        inside = [row[(row > start) & (row <= until)] for row in known]
        times = np.unique(np.concatenate([[start], *inside]))
        counts = sum(np.searchsorted(row, times, side="right") % 2 for row in known)
        factors = np.where(np.asarray(counts) > 0, self.factor, 1.0)
        kept = np.append(True, np.diff(factors) != 0.0)
        return Slowdown(times[kept], np.broadcast_to(factors, times.shape)[kept])
