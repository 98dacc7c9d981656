"""The load to come on every processor and link, and who may get which of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.under_load.load_aware import Parts, runtime_under
from sim.background.ahead import LONGEST
from sim.background.links import LoadedLinks
from sim.background.load_beliefs import LoadBeliefs
from sim.background.swings import share_left


class Prospect:
    """The load to come, averaged over the time that a job would run, place by place.

    A forecast is that of the next sample. Over a longer time a deviation from
    the long-run average dies away as fast as the samples say that it did so
    far; the last value is taken to last.

    Parameters
    ----------
    beliefs : LoadBeliefs

    Attributes
    ----------
    now : float
        Seconds; the engine keeps it.
    every : float
        Seconds between the monitor's samples.
    free_processors : callable
        Returns the numbers of the free processors, ascending; the engine sets it.
    picks_fastest : bool
        Whether the policy names the fastest of the free processors.
    is_usual : bool
        Whether a job without processors is believed to meet the long-run average.
    """

    def __init__(self, beliefs: LoadBeliefs) -> None:
        self._beliefs = beliefs
        self.now = beliefs.sensors.load.origin
        self.processors = beliefs.sensors.load.processors
        self.per_node = beliefs.sensors.load.processors_per_node
        self.every = beliefs.sensors.every
        self.free_processors: Callable[[], IntArray] = partial(np.arange, self.processors)
        self.picks_fastest = False
        self.is_usual = False
        self._weights: dict[int, FloatArray] = {}
        self._chances: dict[int, FloatArray] = {}

    @contextmanager
    def usual(self) -> Iterator[None]:
        """Answer by the long-run average alone, for a while."""
        before, self.is_usual = self.is_usual, True
        try:
            yield
        finally:
            self.is_usual = before

    def cpu(self, horizon: float, delay: float = 0.0) -> FloatArray:
        """Return the believed CPU of every processor, averaged over a time to come.

        Parameters
        ----------
        horizon, delay : float
            How long, and after how long from now, seconds.
        """
        beliefs, now = self._beliefs, self.now
        if beliefs.belief == "oracle":
            load, start = beliefs.sensors.load, now + delay
            every = np.arange(load.processors)
            return load.average_cpu(every, start, start + min(horizon, LONGEST))
        standing = beliefs.standing(now)
        mean = standing.mean
        if beliefs.belief == "mean":
            return mean
        share = share_left(standing.memory, horizon, delay)
        return np.asarray(mean + (standing.cpu - mean) * share)

    def links(self, horizon: float, delay: float = 0.0) -> LoadedLinks:
        """Return the links not believed free, averaged over a time to come."""
        now = self.now
        if self._beliefs.belief == "oracle":
            return self._true_links(now + delay, min(max(horizon, 1.0), LONGEST))
        standing = self._beliefs.standing(now)
        share = share_left(standing.link_memory, horizon, delay)
        left = 1.0 - (1.0 - standing.links.available) * share
        return standing.links._replace(available=left)

    def _true_links(self, start: float, span: float) -> LoadedLinks:
        load = self._beliefs.sensors.load
        rows = load.loaded_links(np.arange(load.processors), start, start + span)
        overlap = np.minimum(rows[:, 1], start + span) - np.maximum(rows[:, 0], start)
        lost = (1.0 - rows[:, 4]) * np.clip(overlap, 0.0, None) / span
        pairs, which = np.unique(rows[:, 2:4].astype(np.int64), axis=0, return_inverse=True)
        total = np.bincount(which.ravel(), lost, len(pairs))
        return LoadedLinks(
            np.array([len(pairs)]), pairs[:, 0], pairs[:, 1], np.asarray(1.0 - total, float)
        )

    def bandwidth(self, processors: IntArray, links: LoadedLinks) -> float:
        """Return the least bandwidth among the links between these processors' nodes."""
        return links.least(self._beliefs.sensors.load.inside(processors))

    # Who may get what

    def least_of(self, count: int) -> FloatArray:
        """Return how likely each rank is the lowest of so many processors drawn at random.

        The lowest of n out of P is that of rank k, from 0, with probability
        C(P - 1 - k, n - 1) / C(P, n).
        """
        weights = self._weights.get(count)
        if weights is None:
            total = self.processors
            weights = np.zeros(total)
            weights[0] = count / total
            rank = np.arange(1, total - count + 1)
            ratios = (total - count - rank + 1) / (total - rank)
            weights[1 : total - count + 1] = weights[0] * np.cumprod(ratios)
            self._weights[count] = weights
        return weights

    def chance_of_a_link(self, count: int) -> float:
        """Return how likely a link is a job's own that is spread over random nodes."""
        nodes = max(self.processors // self.per_node, 2)
        own = min(-(-count // self.per_node), nodes)
        return own * (own - 1) / (nodes * (nodes - 1))

    def worst_of(self, count: int, lost: FloatArray) -> float:
        """Return what the worst link of so many processors drawn at random is expected to lack.

        Parameters
        ----------
        count : int
        lost : numpy.ndarray, shape (links,)
            What links lack of their bandwidth, those that lack most first.
        """
        chances = self._chances.get(count)
        if chances is None or len(chances) < lost.size:
            chance = self.chance_of_a_link(count)
            chances = np.asarray(chance * (1.0 - chance) ** np.arange(2 * lost.size), float)
            self._chances[count] = chances
        return float(chances[: lost.size] @ lost)

    def fastest(self, horizon: float) -> IntArray | None:
        """Return the free processors, the fastest first, where the policy picks those."""
        if not self.picks_fastest:
            return None
        free = self.free_processors()
        if not free.size:
            return free
        return free[np.argsort(-self.cpu(horizon)[free], kind="stable")]


Pair = tuple[float, float]


class SetLoad(ABC):
    """What is believed of the load of several processors: CPU and bandwidth, over a horizon."""

    @abstractmethod
    def of_these(self, processors: IntArray, delay: float, horizon: float) -> Pair:
        """Return what a job meets on these processors that starts after a delay."""

    @abstractmethod
    def of_any(self, count: int, horizon: float) -> Pair:
        """Return what a job meets that has no processors yet."""

    def expected(self, counts: IntArray, horizon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what jobs meet that have no processors yet."""
        pairs = map(self.of_any, counts.tolist(), horizon.tolist())
        cpu, bandwidth = np.array(list(pairs), float).reshape(-1, 2).T
        return cpu, bandwidth

    def runtime(self, processors: IntArray, delay: float, parts: Parts) -> float:
        """Return how long a job takes on these processors that starts after a delay."""

        def conditions(horizon: FloatArray) -> tuple[FloatArray, FloatArray]:
            cpu, bandwidth = self.of_these(processors, delay, horizon.item())
            return np.array([cpu]), np.array([bandwidth])

        return runtime_under(parts, conditions).item()

    def runtimes(self, counts: IntArray, parts: Parts) -> FloatArray:
        """Return how long a job takes that has no processors yet."""
        return runtime_under(parts, partial(self.expected, counts))
