"""What is believed of the load that a job will meet, on given processors or before it has any."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import exp, expm1
from typing import NamedTuple

import numpy as np

from predictors.load_aware import Parts, runtime_under
from predictors.load_observations import LoadForm
from sim.load_ahead import LONGEST, LoadAhead
from sim.load_beliefs import LoadBeliefs
from sim.load_kernels import FloatArray, IntArray
from sim.processors import FreeProcessors, as_numbers

SURE = 100 * 86400.0
"""Seconds of true load that an oracle looks at; a longer run goes on at the pace so far."""


class BelievedLinks(NamedTuple):
    """Links that are not believed free; arrays of shape (links,)."""

    source: IntArray
    destination: IntArray
    available: FloatArray


class LoadOutlook:
    """The load to come, averaged over the time that a job would run.

    A forecast is that of the next sample. Over a longer time a deviation from
    the long-run average dies away as fast as the samples say that it did so
    far; the last value is taken to last. Before a job has processors it is
    taken to get the fastest of the free ones where the policy picks those
    (`picks_fastest`) and enough are free, else any.

    Parameters
    ----------
    beliefs : LoadBeliefs

    Attributes
    ----------
    now : float
        Seconds; the engine keeps it.
    every : float
        Seconds between the monitor's samples.
    free : FreeProcessors
        The engine's own.
    picks_fastest : bool

    Examples
    --------
    >>> from sim.load import BackgroundLoad
    >>> from sim.load_models import ConstantLoad
    >>> from sim.load_sensors import LoadSensors
    >>> from workloads.streams import Streams
    >>> load = BackgroundLoad(3, Streams(1), ConstantLoad(0.5), ConstantLoad(0.25))
    >>> outlook = LoadOutlook(LoadBeliefs(LoadSensors(load, Streams(1))))
    >>> outlook.now = 600.0
    >>> tuple(round(share, 6) for share in outlook.on(np.array([0, 2]), 60.0))
    (0.5, 0.25)
    """

    def __init__(self, beliefs: LoadBeliefs) -> None:
        self._beliefs = beliefs
        self.now = beliefs.sensors.load.origin
        self.processors = beliefs.sensors.load.processors
        self.per_node = beliefs.sensors.load.processors_per_node
        self.every = beliefs.sensors.every
        self.free = FreeProcessors(self.processors)
        self.picks_fastest = False
        self._usual = False
        self._weights: dict[int, FloatArray] = {}
        self._ahead = LoadAhead(beliefs.sensors.load) if beliefs.belief == "oracle" else None

    @contextmanager
    def usual(self) -> Iterator[None]:
        """Answer `expected` by the long-run average alone, for a while."""
        before, self._usual = self._usual, True
        try:
            yield
        finally:
            self._usual = before

    def free_processors(self) -> IntArray:
        """Return the numbers of the free processors, ascending."""
        return as_numbers(self.free.ranges())

    # Over time

    def _share_left(self, memory: float, horizon: float, delay: float = 0.0) -> float:
        """Return which share of a deviation lasts, averaged over the horizon after a delay."""
        if self._beliefs.belief == "last":
            return 1.0
        span = max(horizon / memory, 1e-9)
        return exp(-delay / memory) * -expm1(-span) / span

    def cpu(self, horizon: float, delay: float = 0.0) -> FloatArray:
        """Return the believed CPU of every processor, averaged over a time to come.

        Parameters
        ----------
        horizon, delay : float
            How long, and after how long from now, seconds.
        """
        beliefs, now = self._beliefs, self.now
        if beliefs.belief == "oracle":
            return beliefs.cpu(now + delay, min(horizon, LONGEST))
        mean = beliefs.mean_cpu(now)
        if beliefs.belief == "mean":
            return mean
        share = self._share_left(beliefs.memory(now), horizon, delay)
        return np.asarray(mean + (beliefs.cpu(now) - mean) * share)

    def links(self, horizon: float, delay: float = 0.0) -> BelievedLinks:
        """Return the links not believed free, averaged over a time to come."""
        now = self.now
        if self._beliefs.belief == "oracle":
            return self._true_links(now + delay, min(max(horizon, 1.0), LONGEST))
        found = self._beliefs.links(now)
        ends = np.array(list(found), np.int64).reshape(-1, 2)
        lost = 1.0 - np.fromiter(found.values(), np.float64, len(found))
        share = self._share_left(self._beliefs.link_memory(now), horizon, delay)
        left: FloatArray = np.asarray(1.0 - lost * share, float)
        return BelievedLinks(ends[:, 0], ends[:, 1], left)

    def _true_links(self, start: float, span: float) -> BelievedLinks:
        load = self._beliefs.sensors.load
        rows = load.loaded_links(np.arange(load.processors), start, start + span)
        overlap = np.minimum(rows[:, 1], start + span) - np.maximum(rows[:, 0], start)
        lost = (1.0 - rows[:, 4]) * np.clip(overlap, 0.0, None) / span
        pairs, which = np.unique(rows[:, 2:4].astype(np.int64), axis=0, return_inverse=True)
        total = np.bincount(which.ravel(), lost, len(pairs))
        return BelievedLinks(pairs[:, 0], pairs[:, 1], np.asarray(1.0 - total, float))

    # On processors

    def runtime(
        self, parts: Parts, processors: IntArray, form: LoadForm, delay: float = 0.0
    ) -> float:
        """Return how long a job of these parts is believed to run on these processors, seconds.

        Under `belief` ``oracle`` and the effective load this is what the machine
        will take for such a job: exact, if the parts are, for `SURE` seconds ahead.

        Parameters
        ----------
        parts : Parts
            Of one count.
        processors : numpy.ndarray of int
        form : {"effective", "min_avg_avail", "min_avail"}
            Which figure of the load of several processors the parts go with.
        delay : float
            After how many seconds from now the job would start.
        """
        if self._beliefs.belief == "oracle" and form == "effective":
            return self._true_runtime(parts, processors, self.now + delay)

        def conditions(horizon: FloatArray) -> tuple[FloatArray, FloatArray]:
            cpu, bandwidth = self.on(processors, float(horizon[0]), delay)
            return np.array([cpu]), np.array([bandwidth])

        return float(runtime_under(parts, conditions)[0])

    def _true_runtime(self, parts: Parts, processors: IntArray, start: float) -> float:
        """Run a job of these parts on the machine from `start` on; return its seconds."""
        fixed, computation, communication = (part.item(0) for part in parts)
        if computation + communication <= 0.0:
            return fixed
        begin = start + fixed
        end, left = self._beliefs.sensors.load.advance(
            processors, begin, begin + SURE, 1.0, computation, communication
        )
        return fixed + (end - begin if left <= 0.0 else SURE / (1.0 - left))

    def on(self, processors: IntArray, horizon: float, delay: float = 0.0) -> tuple[float, float]:
        """Return CPU and bandwidth that a job would meet on these processors."""
        return (
            float(self.cpu(horizon, delay)[processors].min()),
            self.bandwidth(processors, self.links(horizon, delay)),
        )

    def bandwidth(self, processors: IntArray, links: BelievedLinks) -> float:
        """Return the least bandwidth among the links between these processors' nodes."""
        if not links.available.size:
            return 1.0
        inside = np.zeros(self.processors // self.per_node + 1, bool)
        inside[processors // self.per_node] = True
        own = inside[links.source] & inside[links.destination]
        return float(links.available[own].min(initial=1.0))

    def expected(
        self, counts: IntArray, horizon: FloatArray, form: LoadForm = "effective"
    ) -> tuple[FloatArray, FloatArray]:
        """Return CPU and bandwidth that a job will meet that has no processors yet.

        Parameters
        ----------
        counts : numpy.ndarray of int, shape (n,)
        horizon : numpy.ndarray of float, shape (n,)
            How long it would run at each count, seconds.
        form : {"effective", "min_avg_avail", "min_avail"}
            What is meant by the load of several processors.
        """
        pairs = list(zip(counts.tolist(), horizon.tolist(), strict=True))
        if form == "effective" and self._ahead is not None and not self._usual:
            found = np.array([self._ahead_of(self._ahead, *pair) for pair in pairs])
            return found[:, 0], found[:, 1]
        cpu = np.array([self._expected_cpu(count, seconds) for count, seconds in pairs])
        return cpu, np.array([self._expected_bandwidth(*pair) for pair in pairs])

    def _ahead_of(self, ahead: LoadAhead, count: int, horizon: float) -> tuple[float, float]:
        """Return the true effective CPU and bandwidth of the count's likely processors."""
        own = self._fastest(count, horizon)
        if own is not None:
            end = self.now + min(horizon, LONGEST)
            return self._beliefs.sensors.load.effective(own, self.now, end)
        sorted_cpu, lost = ahead.average(self.now, horizon)
        chance = self._chance_of_a_link(count)
        worst = chance * (1.0 - chance) ** np.arange(lost.size)
        return float(self._least_of(count) @ sorted_cpu), 1.0 - float(worst @ lost)

    def _fastest(self, count: int, horizon: float) -> IntArray | None:
        """Return the fastest free processors, where the policy picks those and has enough."""
        if not self.picks_fastest:
            return None
        free = self.free_processors()
        if count > free.size:
            return None
        return free[np.argsort(-self.cpu(horizon)[free], kind="stable")[:count]]

    def _expected_cpu(self, count: int, horizon: float) -> float:
        if self._usual:
            values = self._beliefs.mean_cpu(self.now)
        else:
            values = self.cpu(horizon)
            own = self._fastest(count, horizon)
            if own is not None:
                return float(values[own].min())
        return float(self._least_of(count) @ np.sort(values))

    def _least_of(self, count: int) -> FloatArray:
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

    def _expected_bandwidth(self, count: int, horizon: float) -> float:
        """Return the least bandwidth that a job on random nodes meets, as expected."""
        chance = self._chance_of_a_link(count)
        if chance == 0.0:
            return 1.0
        if self._usual or self._beliefs.belief == "mean":
            number, left = self._beliefs.mean_links(self.now)
            share = self._share_left(self._beliefs.link_memory(self.now), horizon)
            spared = (1.0 - chance) ** number
            return float(spared + (1.0 - spared) * (1.0 - (1.0 - left) * share))
        values = np.sort(self.links(horizon).available)
        spared = (1.0 - chance) ** np.arange(values.size)
        return float(chance * spared @ values + (1.0 - chance) ** values.size)

    def _chance_of_a_link(self, count: int) -> float:
        """Return how likely a link is a job's own that is spread over random nodes."""
        nodes = max(self.processors // self.per_node, 2)
        own = min(-(-count // self.per_node), nodes)
        return own * (own - 1) / (nodes * (nodes - 1))
