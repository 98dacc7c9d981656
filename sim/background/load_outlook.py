"""What is believed of the load that a job will meet, on given processors or before it has any."""

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.under_load.load_aware import Parts
from predictors.under_load.observed_load import LoadForm
from sim.background.ahead import LONGEST, LoadAhead
from sim.background.background import BackgroundLoad
from sim.background.load_beliefs import LoadBeliefs, Met
from sim.background.load_sensors import RunSamples
from sim.background.prospect import Pair, Prospect, SetLoad
from sim.background.swings import (
    NONE,
    UNKNOWN,
    Course,
    Ranks,
    no_ranks,
    runtimes_under,
    share_left,
    with_rank,
)

ONE = np.ones(1, np.int64)
NO_RANKS = no_ranks(NONE)


class LeastAverage(SetLoad):
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

    def of_these(self, processors: IntArray, delay: float, horizon: float) -> Pair:
        """Return what a job meets on these processors that starts after a delay."""
        ahead = self._prospect
        bandwidth = ahead.bandwidth(processors, ahead.links(horizon, delay))
        return float(ahead.cpu(horizon, delay)[processors].min()), bandwidth

    def of_any(self, count: int, horizon: float) -> Pair:
        """Return what a job meets that has no processors yet."""
        return self._cpu(count, horizon), self._bandwidth(count, horizon)

    def _cpu(self, count: int, horizon: float) -> float:
        ahead = self._prospect
        if ahead.is_usual:
            values = self._beliefs.standing(ahead.now).mean
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
            standing = self._beliefs.standing(ahead.now)
            number, left = standing.mean_links
            share = share_left(standing.link_memory, horizon)
            spared = (1.0 - chance) ** number
            return float(spared + (1.0 - spared) * (1.0 - (1.0 - left) * share))
        return 1.0 - ahead.worst_of(count, np.sort(1.0 - ahead.links(horizon).available)[::-1])


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
        self._ranks = NO_RANKS
        self._ranked_at = -np.inf
        self._any = np.zeros((4, 0))
        self._lost = np.zeros(0), np.zeros(0)
        self._sample = -1

    def runtime(self, processors: IntArray, delay: float, parts: Parts) -> float:
        """Return how long a job takes on these processors that starts after a delay."""
        met = self._beliefs.met(self._prospect.now, processors)
        course = self._course()._replace(delay=delay, longer=_longer(parts, met))
        swings = np.array([[*met.cpu, *met.bandwidth]]).T
        found = runtimes_under(ONE, parts, swings, course, NO_RANKS, self._ranked)
        return float(found[0])

    def _course(self) -> Course:
        standing = self._beliefs.standing(self._prospect.now)
        return Course(standing.memory, standing.link_memory)

    def runtimes(self, counts: IntArray, parts: Parts) -> FloatArray:
        """Return how long a job takes that has no processors yet."""
        swings, ranks = self._of_any(counts), self._begun()
        if self._prospect.is_usual:
            return parts.under(swings[0], swings[2])
        return runtimes_under(counts, parts, swings, self._course(), ranks, self._ranked)

    def _of_any(self, counts: IntArray) -> FloatArray:
        """Return CPU and bandwidth for so many processors drawn at random, as usual and now."""
        ahead, beliefs = self._prospect, self._beliefs
        sample = beliefs.sensors.sample_index(ahead.now)
        if sample != self._sample:
            self._sample, self._any = sample, np.full((4, ahead.processors + 1), np.nan)
            lost = np.zeros(0)
            if beliefs.belief in ("forecast", "last"):
                lost = np.sort(1.0 - ahead.links(0.0).available)[::-1]
            self._lost = beliefs.standing(ahead.now).mean_lost, lost
        found = self._any[:, counts]
        new = np.isnan(found[0])
        if not new.any():
            return found
        asked = counts[new].tolist()
        cpu = beliefs.least_of_random(ahead.now, [ahead.least_of(count) for count in asked])
        mean, lost = self._lost
        usual = present = [1.0 - ahead.worst_of(count, mean) for count in asked]
        if beliefs.belief in ("forecast", "last"):
            present = [1.0 - ahead.worst_of(count, lost) for count in asked]
        self._any[:, asked] = (*zip(*cpu, strict=True), usual, present)
        return self._any[:, counts]

    def _begun(self) -> Ranks:
        """Return what is known of the fastest; what was at an earlier instant is forgotten."""
        now = self._prospect.now
        if now != self._ranked_at:
            self._ranked_at = now
            self._ranks = no_ranks(UNKNOWN) if self._prospect.picks_fastest else NO_RANKS
        return self._ranks

    def _ranked(self, doubled: int) -> Ranks:
        """Return what is known of the fastest over so many doublings of a second, too."""
        if self._ranks.places[doubled] == UNKNOWN:
            ranked = self._prospect.fastest(2.0**doubled)
            if ranked is None or not ranked.size:
                self._ranks.places[doubled] = NONE
            else:
                first = self._beliefs.least_of_first(self._prospect.now, ranked)
                self._ranks = with_rank(self._ranks, doubled, np.array(first))
        return self._ranks


class TrueLoad(SetLoad):
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

    def of_these(self, processors: IntArray, delay: float, horizon: float) -> Pair:
        """Return what a job meets on these processors that starts after a delay."""
        start = self._prospect.now + delay
        return self._load.effective(processors, start, start + min(horizon, LONGEST))

    def of_any(self, count: int, horizon: float) -> Pair:
        """Return what a job meets that has no processors yet."""
        ahead = self._prospect
        ranked = ahead.fastest(horizon)
        if ranked is not None and count <= ranked.size:
            return self.of_these(ranked[:count], 0.0, horizon)
        cpu, lost = self._ahead.average(ahead.now, horizon)
        return float(ahead.least_of(count) @ cpu), 1.0 - ahead.worst_of(count, lost)


SURE = 100 * 86400.0
"""Seconds of true load that an oracle looks at; a longer run goes on at the pace so far."""


def _pace(computation: float, communication: float, seen: RunSamples, form: LoadForm) -> float:
    """Return the average share of a job that was done a second, by samples of its load."""
    if form == "effective":
        cpu, left = seen.cpu.min(axis=1, initial=1.0), seen.bandwidth.least
        return float((1.0 / (computation / cpu + communication / left)).mean())
    averages = seen.cpu.mean(axis=0), seen.bandwidth.average
    cpu, left = (each.min(initial=1.0) for each in averages)
    return float(1.0 / (computation / cpu + communication / left))


class LoadOutlook(Prospect):
    """The load to come, on every place and on several at once, and what it does to a job.

    Parameters
    ----------
    beliefs : LoadBeliefs
    renew : float or None
        Seconds between two predictions of a running job; None: only before its start.

    Examples
    --------
    >>> import numpy as np
    >>> from sim.background.background import BackgroundLoad
    >>> from sim.background.models import ConstantLoad
    >>> from sim.background.load_sensors import LoadSensors
    >>> from workloads.streams import Streams
    >>> load = BackgroundLoad(3, Streams(1), ConstantLoad(0.5), ConstantLoad(0.25))
    >>> outlook = LoadOutlook(LoadBeliefs(LoadSensors(load, Streams(1))))
    >>> outlook.now = 600.0
    >>> parts = Parts(np.array([5.0]), np.array([60.0]), np.array([10.0]))
    >>> round(outlook.runtime(parts, np.array([0, 2]), "effective"), 6)
    165.0
    """

    def __init__(self, beliefs: LoadBeliefs, renew: float | None = None) -> None:
        super().__init__(beliefs)
        self.renew = renew
        self._average = LeastAverage(self, beliefs)
        self._effective = EffectiveLoad(self, beliefs)
        self._true = TrueLoad(self, beliefs.sensors.load) if beliefs.belief == "oracle" else None

    def _of(self, form: LoadForm) -> SetLoad | EffectiveLoad:
        """Return who knows the load of several processors in the sense of `form`."""
        if form != "effective":
            return self._average
        return self._effective if self._true is None or self.is_usual else self._true

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
        if self._true is not None and form == "effective":
            return self._true_runtime(parts, processors, self.now + delay)
        return self._of(form).runtime(processors, delay, parts)

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

    def remaining(
        self, parts: Parts, processors: IntArray, form: LoadForm, start: float
    ) -> float | None:
        """Return how long a job of these parts that runs since `start` will still take, seconds.

        What it has done by now is reckoned from the load that was sampled meanwhile
        (met, for an oracle of load) on its processors.

        Returns
        -------
        float or None
            None if by its parts it should be over.
        """
        fixed, computation, communication = (part.item(0) for part in parts)
        ran = self.now - start - fixed
        if computation + communication <= 0.0:
            return -ran if ran < 0.0 else None
        if ran <= 0.0:
            busy = Parts(np.zeros(1), parts.computation, parts.communication)
            return self.runtime(busy, processors, form, -ran) - ran
        if self._true is not None and form == "effective":
            load = self._beliefs.sensors.load
            work = (start + fixed, self.now, 1.0, computation, communication)
            left = load.advance(processors, *work)[1]
        else:
            seen = self._beliefs.sensors.during(processors, start + fixed, self.now)
            left = 1.0 - ran * _pace(computation, communication, seen, form)
        if left <= 0.0:
            return None
        rest = Parts(np.zeros(1), parts.computation * left, parts.communication * left)
        return self.runtime(rest, processors, form)

    def runtimes(self, counts: IntArray, parts: Parts, form: LoadForm = "effective") -> FloatArray:
        """Return how long a job that has no processors yet is believed to run, seconds.

        Parameters
        ----------
        counts : numpy.ndarray of int, shape (n,)
        parts : Parts
            Of each count.
        form : {"effective", "min_avg_avail", "min_avail"}
            What is meant by the load of several processors.
        """
        return self._of(form).runtimes(counts, parts)
