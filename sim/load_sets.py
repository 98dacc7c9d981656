"""The load of several processors: the slowest at each instant, or the least of the averages.

A job that has no processors yet is taken to get the fastest of the free ones where
the policy picks those and enough are free, else any.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from predictors.load_aware import Conditions, Parts
from sim.load import BackgroundLoad
from sim.load_ahead import LONGEST, LoadAhead
from sim.load_beliefs import LoadBeliefs, Met, Swing
from sim.load_kernels import FloatArray, IntArray
from sim.load_prospect import Prospect

Pair = tuple[float, float]


class SetLoad(Protocol):
    """What is believed of the load of several processors."""

    def on(self, processors: IntArray, delay: float, parts: Parts) -> Conditions:
        """Return what a job meets on these processors that starts after a delay."""
        ...

    def expected(self, counts: IntArray, horizon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what jobs meet that have no processors yet."""
        ...


def _alone(pair: Callable[[float], Pair]) -> Conditions:
    """Return conditions of one job from what it meets over a horizon."""

    def conditions(horizon: FloatArray) -> tuple[FloatArray, FloatArray]:
        cpu, bandwidth = pair(float(horizon[0]))
        return np.array([cpu]), np.array([bandwidth])

    return conditions


def _columns(pairs: list[Pair]) -> tuple[FloatArray, FloatArray]:
    found = np.array(pairs, float).reshape(-1, 2)
    return found[:, 0], found[:, 1]


class LeastAverage:
    """The least of the averages over a run: the paper's figure.

    Jobs do not feel it: at each instant another processor may be the slowest.

    Parameters
    ----------
    prospect : Prospect
    beliefs : LoadBeliefs

    References
    ----------
    Yagnik, Sanjay & Vadhiyar, section 3 (min_avg_avail).
    """

    def __init__(self, prospect: Prospect, beliefs: LoadBeliefs) -> None:
        self._prospect = prospect
        self._beliefs = beliefs

    def on(self, processors: IntArray, delay: float, parts: Parts) -> Conditions:
        """Return what a job meets on these processors that starts after a delay."""
        ahead = self._prospect
        return _alone(
            lambda horizon: (
                float(ahead.cpu(horizon, delay)[processors].min()),
                ahead.bandwidth(processors, ahead.links(horizon, delay)),
            )
        )

    def expected(self, counts: IntArray, horizon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what jobs meet that have no processors yet."""
        pairs = zip(counts.tolist(), horizon.tolist(), strict=True)
        return _columns([(self._cpu(*pair), self._bandwidth(*pair)) for pair in pairs])

    def _cpu(self, count: int, horizon: float) -> float:
        ahead = self._prospect
        if ahead.is_usual:
            values = self._beliefs.mean_cpu(ahead.now)
        else:
            values, ranked = ahead.cpu(horizon), ahead.fastest(horizon)
            if ranked is not None and count <= ranked.size:
                return float(values[ranked[count - 1]])
        return float(ahead.least_of(count) @ np.sort(values))

    def _bandwidth(self, count: int, horizon: float) -> float:
        ahead = self._prospect
        chance = ahead.chance_of_a_link(count)
        if chance == 0.0:
            return 1.0
        if ahead.is_usual or self._beliefs.belief == "mean":
            number, left = self._beliefs.mean_links(ahead.now)
            share = ahead.share_left(self._beliefs.link_memory(ahead.now), horizon)
            spared = (1.0 - chance) ** number
            return float(spared + (1.0 - spared) * (1.0 - (1.0 - left) * share))
        return 1.0 - _worst(chance, np.sort(1.0 - ahead.links(horizon).available)[::-1])


def _worst(chance: float, lost: FloatArray) -> float:
    """Return what the worst own link is expected to lack, of those that lack most first."""
    return float(chance * (1.0 - chance) ** np.arange(lost.size) @ lost)


def _longer(parts: Parts, met: Met) -> float:
    """Return how many times as long a job lasts as the averages of its loads say.

    Where processors and links are not slow at the same times, a job that waits for
    either at each instant is slower than by the averages of both.
    """
    computation, communication = parts.computation.item(0), parts.communication.item(0)
    if not (computation > 0.0 and communication > 0.0):
        return 1.0
    at_once = computation / met.past_cpu + communication / met.past_bandwidth
    usual = computation / met.cpu.usual + communication / met.bandwidth.usual
    return 1.0 / (float((1.0 / at_once).mean()) * usual)


class EffectiveLoad:
    """The slowest processor and the most loaded link at each instant, averaged over a run.

    Past samples say what that usually was for these very processors, and what the
    least of the forecasts is worth; from what it is now it returns to what is usual.

    Parameters
    ----------
    prospect : Prospect
    beliefs : LoadBeliefs
        Not the oracle's.
    """

    def __init__(self, prospect: Prospect, beliefs: LoadBeliefs) -> None:
        self._prospect = prospect
        self._beliefs = beliefs
        self._ranks: dict[int, tuple[FloatArray, FloatArray] | None] = {}
        self._ranked_at = -np.inf
        self._any: dict[int, tuple[Swing, Swing]] = {}
        self._sample = -1

    def on(self, processors: IntArray, delay: float, parts: Parts) -> Conditions:
        """Return what a job meets on these processors that starts after a delay."""
        met = self._beliefs.met(self._prospect.now, processors)
        longer = _longer(parts, met)

        def over(horizon: float) -> Pair:
            ahead = self._prospect
            cpu, bandwidth = self._over(met.cpu, met.bandwidth, horizon, delay)
            share = ahead.share_left(self._beliefs.memory(ahead.now), horizon, delay)
            slower = 1.0 + (longer - 1.0) * (1.0 - share)
            return cpu / slower, bandwidth / slower

        return _alone(over)

    def _over(self, cpu: Swing, link: Swing, horizon: float, delay: float = 0.0) -> Pair:
        """Return both figures averaged over a time to come."""
        ahead, beliefs = self._prospect, self._beliefs
        own = ahead.share_left(beliefs.memory(ahead.now), horizon, delay)
        shared = ahead.share_left(beliefs.link_memory(ahead.now), horizon, delay)
        return (
            cpu.usual + (cpu.present - cpu.usual) * own,
            link.usual + (link.present - link.usual) * shared,
        )

    def expected(self, counts: IntArray, horizon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what jobs meet that have no processors yet."""
        self._begin()
        found = []
        for count, seconds in zip(counts.tolist(), horizon.tolist(), strict=True):
            cpu, link = self._of_any(count)
            if self._prospect.is_usual:
                found.append((cpu.usual, link.usual))
            else:
                found.append(self._over(self._of_fastest(count, seconds) or cpu, link, seconds))
        return _columns(found)

    def _begin(self) -> None:
        """Forget what was reckoned at an earlier sample, or an earlier instant."""
        now = self._prospect.now
        sample = self._beliefs.sensors.sample_index(now)
        if sample != self._sample:
            self._sample, self._any = sample, {}
        if now != self._ranked_at:
            self._ranked_at, self._ranks = now, {}

    def _of_any(self, count: int) -> tuple[Swing, Swing]:
        """Return CPU and bandwidth for that many processors drawn at random."""
        known = self._any.get(count)
        if known is None:
            ahead, beliefs = self._prospect, self._beliefs
            chance = ahead.chance_of_a_link(count)
            usual = 1.0 - _worst(chance, beliefs.mean_lost(ahead.now))
            present = usual
            if beliefs.belief in ("forecast", "last"):
                lost = np.sort(1.0 - ahead.links(0.0).available)[::-1]
                present = 1.0 - _worst(chance, lost)
            cpu = beliefs.least_of_random(ahead.now, ahead.least_of(count))
            known = self._any[count] = (cpu, Swing(usual, present))
        return known

    def _of_fastest(self, count: int, horizon: float) -> Swing | None:
        """Return the CPU of the fastest free processors; None where those are not picked."""
        if not self._prospect.picks_fastest:
            return None
        doublings = round(float(np.log2(max(horizon, 1.0))))
        if doublings not in self._ranks:
            ranked = self._prospect.fastest(2.0**doublings)
            self._ranks[doublings] = None
            if ranked is not None and ranked.size:
                self._ranks[doublings] = self._beliefs.least_of_first(self._prospect.now, ranked)
        found = self._ranks[doublings]
        if found is None or count > found[0].size:
            return None
        return Swing(float(found[0][count - 1]), float(found[1][count - 1]))


class TrueLoad:
    """The load of several processors as it will be.

    Parameters
    ----------
    prospect : Prospect
    load : BackgroundLoad
    """

    def __init__(self, prospect: Prospect, load: BackgroundLoad) -> None:
        self._prospect = prospect
        self._load = load
        self._ahead = LoadAhead(load)

    def on(self, processors: IntArray, delay: float, parts: Parts) -> Conditions:
        """Return what a job meets on these processors that starts after a delay."""
        start = self._prospect.now + delay
        return _alone(
            lambda horizon: self._load.effective(processors, start, start + min(horizon, LONGEST))
        )

    def expected(self, counts: IntArray, horizon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what jobs meet that have no processors yet."""
        pairs = zip(counts.tolist(), horizon.tolist(), strict=True)
        return _columns([self._of(*pair) for pair in pairs])

    def _of(self, count: int, horizon: float) -> Pair:
        ahead = self._prospect
        ranked = ahead.fastest(horizon)
        if ranked is not None and count <= ranked.size:
            return self._load.effective(
                ranked[:count], ahead.now, ahead.now + min(horizon, LONGEST)
            )
        cpu, lost = self._ahead.average(ahead.now, horizon)
        return float(ahead.least_of(count) @ cpu), 1.0 - _worst(ahead.chance_of_a_link(count), lost)
