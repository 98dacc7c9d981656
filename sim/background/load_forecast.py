"""What is believed of the load to come, over a time, and what it does to a job."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from math import exp, expm1, log2

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled, direct
from predictors.under_load.load_aware import Conditions, LoadForm, Parts, runtime_under
from sim.background.background import LONGEST, LoadAhead, LoadedLinks
from sim.background.load_beliefs import LoadBeliefs, RunSamples

ONE, NOBODY = np.ones(1, np.int64), np.zeros(0, np.int64)
Meets = Callable[[int, float], tuple[float, float]]
"""CPU and bandwidth for a job on so many processors that runs for so many seconds."""
SURE = 100 * 86400.0
"""Seconds of true load that an oracle looks at; a longer run goes on at the pace so far."""
UNKNOWN = -1
"""Instead of a place among rankings: not reckoned yet."""
DOUBLINGS = 1100
"""More than there are of one second."""


@compiled
def share_left(memory: float, horizon: float, delay: float = 0.0) -> float:
    """Return which share of a deviation lasts, averaged over the horizon after a delay.

    Parameters
    ----------
    memory : float
        Seconds after which 1/e of it is left; negative: it lasts.
    horizon, delay : float
        Seconds.
    """
    if memory < 0.0:
        return 1.0
    span = max(horizon / memory, 1e-9)
    return exp(-delay / memory) * -expm1(-span) / span


@compiled
def reverting(horizon, course, counts, usual_and_present, places, rankings):  # type: ignore[no-untyped-def]
    """Return what jobs meet over their horizons, and how many doublings of a second are unknown.

    Parameters
    ----------
    horizon : numpy.ndarray of float, shape (n,)
        Seconds.
    course : tuple of float
        The memory of processors and of links, as `share_left` has it; after how many seconds
        the jobs start; and how many times as long they last as the averages say, where
        nothing is left of the present.
    counts : numpy.ndarray of int, shape (n,)
    usual_and_present : numpy.ndarray, shape (4, n)
        CPU as it usually is and as it is at present, and the same of the bandwidth.
    places : numpy.ndarray of int, shape (DOUBLINGS,)
        Which of the rankings is that over so many doublings of a second; or `UNKNOWN`.
    rankings : numpy.ndarray, shape (rankings, 2, processors + 1)
        What the CPU of the first so many processors of a ranking usually is and is at
        present; NaN where there are fewer, or no ranking.

    Returns
    -------
    numpy.ndarray of float, shape (2, n)
        CPU and bandwidth.
    int
        The doublings of a ranking that is missing, or `UNKNOWN`.
    """
    (memory, link_memory, delay, longer), found = course, np.empty((2, len(counts)))
    for i in range(len(counts)):
        doublings = int(np.rint(log2(max(horizon[i], 1.0))))
        if places[doublings] == UNKNOWN:
            return found, doublings
        usual, present = rankings[places[doublings], :, counts[i]]
        if np.isnan(usual):
            usual, present = usual_and_present[0, i], usual_and_present[1, i]
        own = share_left(memory, horizon[i], delay)
        slower = 1.0 + (longer - 1.0) * (1.0 - own)
        found[0, i] = (usual + (present - usual) * own) / slower
        usual, present = usual_and_present[2, i], usual_and_present[3, i]
        shared = share_left(link_memory, horizon[i], delay)
        found[1, i] = (usual + (present - usual) * shared) / slower
    return found, UNKNOWN


_reverting = direct(reverting)


def _pace(computation: float, communication: float, seen: RunSamples, form: LoadForm) -> float:
    """Return the average share of a job that was done a second, by samples of its load."""
    cpu, left = seen.cpu.min(axis=1, initial=1.0), seen.lowest_link
    if form != "effective":
        cpu, left = (each.min(initial=1.0) for each in (seen.cpu.mean(axis=0), seen.links))
    return float((1.0 / (computation / cpu + communication / left)).mean())


def _longer(parts: Parts, figures: FloatArray, past: FloatArray) -> float:
    """Return how many times as long a job lasts as the averages of its loads say.

    Where processors and links are not slow at the same times, a job that waits for
    either at each instant is slower than by the averages of both.
    """
    computation, communication = parts.computation.item(0), parts.communication.item(0)
    if not (computation > 0.0 and communication > 0.0):
        return 1.0
    at_once = computation / past[0] + communication / past[1]
    usual_cpu, _, usual_link, _ = figures.tolist()
    usual = float(computation / usual_cpu + communication / usual_link)
    return 1.0 / (float((1.0 / at_once).mean()) * usual)


class LoadForecast:
    """The load to come on processors and links, and what it does to a job.

    What samples say is a forecast of the next one. Over a longer time a deviation from
    the long-run average dies away as fast as the samples say that it did so
    far; the last value is taken to last.

    Parameters
    ----------
    beliefs : LoadBeliefs
    renew : float or None
        Seconds between two predictions of a running job; None: only before its start.

    Attributes
    ----------
    now : float
        Seconds; the engine keeps it.
    every : float
        Seconds between the monitor's samples.
    free_processors : callable
        Returns the numbers of the free processors, ascending; the engine sets it.
    picks_processors : bool
        Whether the policy names the fastest of the free processors.
    is_usual : bool
        Whether a job without processors is believed to meet the long-run average.

    Examples
    --------
    >>> import numpy as np
    >>> from sim.background.background import BackgroundLoad
    >>> from sim.background.models import ConstantLoad
    >>> from sim.background.load_beliefs import LoadSensors
    >>> from workloads.streams import Streams
    >>> load = BackgroundLoad(3, Streams(1), ConstantLoad(0.5), ConstantLoad(0.25))
    >>> forecast = LoadForecast(LoadBeliefs(LoadSensors(load, Streams(1))))
    >>> forecast.now = 600.0
    >>> parts = Parts(np.array([5.0]), np.array([60.0]), np.array([10.0]))
    >>> round(forecast.runtime(parts, np.array([0, 2]), "effective"), 6)
    165.0
    """

    def __init__(self, beliefs: LoadBeliefs, renew: float | None = None) -> None:
        self._beliefs = beliefs
        self._load = beliefs.sensors.load
        self._is_true = beliefs.belief == "oracle"
        self.renew = renew
        self.now = self._load.origin
        self.processors = self._load.processors
        self.per_node = self._load.processors_per_node
        self.every = beliefs.sensors.every
        self.free_processors: Callable[[], IntArray] = partial(np.arange, self.processors)
        self.picks_processors = False
        self.is_usual = False
        self.least_of, self._chances = cache(self._least_of), cache(self._worst_links)
        self._ahead = LoadAhead(self._load)
        self._no_ranking = np.full((1, 2, self.processors + 1), np.nan)
        self._none = [np.zeros(DOUBLINGS, np.int64), self._no_ranking]
        self._rankings, self._ranked_at = self._none, -np.inf
        self._any, self._sample = np.zeros((4, 0)), -1
        self._lost = np.zeros(0), np.zeros(0)

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
        if self._is_true:
            load, start = self._load, now + delay
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
        if self._is_true:
            load, start, span = self._load, self.now + delay, min(max(horizon, 1.0), LONGEST)
            rows = load.loaded_links(np.arange(load.processors), start, start + span)
            overlap = np.minimum(rows[:, 1], start + span) - np.maximum(rows[:, 0], start)
            lost = (1.0 - rows[:, 4]) * np.clip(overlap, 0.0, None) / span
            pairs, which = np.unique(rows[:, 2:4].astype(np.int64), axis=0, return_inverse=True)
            left = np.asarray(1.0 - np.bincount(which.ravel(), lost, len(pairs)), float)
            return LoadedLinks(np.array([len(pairs)]), pairs[:, 0], pairs[:, 1], left)
        standing = self._beliefs.standing(self.now)
        share = share_left(standing.link_memory, horizon, delay)
        left = 1.0 - (1.0 - standing.links.available) * share
        return standing.links._replace(available=left)

    def bandwidth(self, processors: IntArray, links: LoadedLinks) -> float:
        """Return the least bandwidth among the links between these processors' nodes."""
        return links.least(self._load.inside(processors))

    # What a job meets on processors that it has

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
        if form == "effective" and self._is_true:
            return self._true_runtime(parts, processors, self.now + delay)
        if form == "effective":
            figures, past = self._beliefs.met(self.now, processors)
            course = (*self._memories(), delay, _longer(parts, figures, past))
            given = course, ONE, figures[:, None], *self._none
            return runtime_under(parts, lambda horizon: _reverting(horizon, *given)[0]).item()

        def met(_: int, horizon: float) -> tuple[float, float]:
            cpu = self.cpu(horizon, delay)[processors].min()
            return cpu, self.bandwidth(processors, self.links(horizon, delay))

        return runtime_under(parts, partial(self._by_count, met, ONE)).item()

    def _true_runtime(self, parts: Parts, processors: IntArray, start: float) -> float:
        """Run a job of these parts on the machine from `start` on; return its seconds."""
        fixed, computation, communication = (part.item(0) for part in parts)
        if computation + communication <= 0.0:
            return fixed
        begin = start + fixed
        end, left = self._load.advance(
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
        if self._is_true and form == "effective":
            work = (start + fixed, self.now, 1.0, computation, communication)
            left = self._load.advance(processors, *work)[1]
        else:
            seen = self._beliefs.sensors.during(processors, start + fixed, self.now)
            left = 1.0 - ran * _pace(computation, communication, seen, form)
        if left <= 0.0:
            return None
        rest = Parts(np.zeros(1), parts.computation * left, parts.communication * left)
        return self.runtime(rest, processors, form)

    # What a job meets that has no processors yet

    def runtimes(self, counts: IntArray, parts: Parts, form: LoadForm = "effective") -> FloatArray:
        """Return how long a job that has no processors yet is believed to run, seconds.

        Parameters
        ----------
        counts : numpy.ndarray of int, shape (n,)
        parts : Parts
            Of each count.
        form : {"effective", "min_avg_avail", "min_avail"}
            What is meant by the load of several processors: the slowest processor and the most
            loaded link at each instant, averaged over a run, or the least of the averages over
            a run: the paper's figure, which jobs do not feel.

        References
        ----------
        Yagnik, Sanjay & Vadhiyar, section 3 (min_avg_avail).
        """
        counts = np.ascontiguousarray(counts, np.int64)
        return runtime_under(parts, self._conditions(counts, form))

    def _conditions(self, counts: IntArray, form: LoadForm) -> Conditions:
        """Return what such a job meets, by how long it runs."""
        if form != "effective":
            return partial(self._by_count, self._least_average, counts)
        if self._is_true and not self.is_usual:
            return partial(self._by_count, self._true, counts)
        both = self._usual_and_present(counts)
        if self.is_usual:
            usual = both[[0, 2]]
            return lambda horizon: usual
        if self.now != self._ranked_at:  # what was at an earlier instant is forgotten
            self._ranked_at, self._rankings = self.now, self._none
            if self.picks_processors:
                self._rankings = [np.full(DOUBLINGS, UNKNOWN), self._no_ranking]
        course, rankings = (*self._memories(), 0.0, 1.0), self._rankings

        def effective(horizon: FloatArray) -> FloatArray:
            while True:
                found, missing = _reverting(horizon, course, counts, both, *rankings)
                if missing == UNKNOWN:
                    return np.asarray(found)
                self._rank(missing, rankings)

        return effective

    def _by_count(self, meets: Meets, counts: IntArray, horizon: FloatArray) -> FloatArray:
        """Return what jobs meet, one after the other."""
        pairs = list(map(meets, counts.tolist(), horizon.tolist()))
        return np.array(pairs, float).reshape(-1, 2).T.copy()

    def _true(self, count: int, horizon: float) -> tuple[float, float]:
        """Return the effective load as it will be."""
        ranked = self.fastest(horizon)
        if count <= ranked.size:
            end = self.now + min(horizon, LONGEST)
            return self._load.effective(ranked[:count], self.now, end)
        cpu, lost = self._ahead.average(self.now, horizon)
        return float(self.least_of(count) @ cpu), 1.0 - self.worst_of(count, lost)

    def _least_average(self, count: int, horizon: float) -> tuple[float, float]:
        """Return the least of the averages."""
        if self.is_usual:
            values, ranked = self._beliefs.standing(self.now).mean, NOBODY
        else:
            values, ranked = self.cpu(horizon), self.fastest(horizon)
        if count <= ranked.size:
            cpu = values.item(ranked[count - 1])
        else:
            cpu = float(self.least_of(count) @ np.sort(values))
        return cpu, self._least_bandwidth(count, horizon)

    def _least_bandwidth(self, count: int, horizon: float) -> float:
        chance = self.chance_of_a_link(count)
        if chance == 0.0:
            return 1.0
        if self.is_usual or self._beliefs.belief == "mean":
            standing = self._beliefs.standing(self.now)
            number, left = standing.mean_links
            share = share_left(standing.link_memory, horizon)
            spared = (1.0 - chance) ** number
            return float(spared + (1.0 - spared) * (1.0 - (1.0 - left) * share))
        return 1.0 - self.worst_of(count, self.links(horizon).lost()[0])

    # The effective load as samples let it be believed: from what it is now it returns to what is
    # usual. They say what that was for any processors, and what the least of forecasts is worth.

    def _memories(self) -> tuple[float, float]:
        standing = self._beliefs.standing(self.now)
        return standing.memory, standing.link_memory

    def _rank(self, doublings: int, rankings: list[np.ndarray]) -> None:
        """Reckon what the fastest processors over so many doublings of a second meet."""
        (places, known), ranked = rankings, self.fastest(2.0**doublings)
        places[doublings] = 0
        if ranked.size:
            places[doublings], new = len(known), self._no_ranking.copy()
            new[0, :, 1 : ranked.size + 1] = self._beliefs.least_of_first(self.now, ranked)
            rankings[1] = np.concatenate((known, new))

    def _usual_and_present(self, counts: IntArray) -> FloatArray:
        """Return CPU and bandwidth for so many processors drawn at random, as usual and now."""
        beliefs = self._beliefs
        sample = beliefs.sensors.sample_index(self.now)
        if sample != self._sample:
            self._sample, self._any = sample, np.full((4, self.processors + 1), np.nan)
            usual = present = beliefs.standing(self.now).mean_lost
            if beliefs.belief in ("forecast", "last"):  # what links are at present matters
                present = self.links(0.0).lost()[0]
            self._lost = usual, present
        asked = counts[np.isnan(self._any[0, counts])].tolist()
        if asked:
            weights = [self.least_of(count) for count in asked]
            self._any[:2, asked] = beliefs.least_of_random(self.now, weights)
            links = [[1.0 - self.worst_of(count, lost) for count in asked] for lost in self._lost]
            self._any[2:, asked] = links
        return self._any.take(counts, axis=1)

    # Who may get what

    def _least_of(self, count: int) -> FloatArray:
        """Return how likely each rank is the lowest of so many processors drawn at random.

        The lowest of n out of P is that of rank k, from 0, with probability
        C(P - 1 - k, n - 1) / C(P, n).
        """
        total = self.processors
        weights = np.zeros(total)
        weights[0] = count / total
        rank = np.arange(1, total - count + 1)
        ratios = (total - count - rank + 1) / (total - rank)
        weights[1 : total - count + 1] = weights[0] * np.cumprod(ratios)
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
        return float(self._chances(count, 2 ** lost.size.bit_length())[: lost.size] @ lost)

    def _worst_links(self, count: int, links: int) -> FloatArray:
        """Return how likely each of so many links is the worst that such a job has."""
        chance = self.chance_of_a_link(count)
        return np.asarray(chance * (1.0 - chance) ** np.arange(links), float)

    def fastest(self, horizon: float) -> IntArray:
        """Return the free processors, the fastest first; none where the policy picks no such."""
        free = self.free_processors() if self.picks_processors else NOBODY
        return free[np.argsort(-self.cpu(horizon)[free], kind="stable")] if free.size else free
