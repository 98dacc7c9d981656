"""What a monitor sees of the load, and what may be believed by that.

Samples, and what past ones show; a forecast, the last value, the average, or the truth.
"""

from dataclasses import InitVar, dataclass
from itertools import count, islice
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from predictors.base import BoolArray, FloatArray, IntArray
from predictors.compiling import compiled, direct
from predictors.under_load import forecast
from sim.background.background import BackgroundLoad, LoadedLinks
from sim.errors import POSITIVE, check_choices
from workloads.streams import Streams
from workloads.truth.ground_truth import uniform

FLOOR = 1e-3
MOST_SAMPLES = 720
"""Samples that are kept, a day of those of two minutes."""
FEWEST_SAMPLES = 32
MOST_READINGS = 2**20
"""Readings that are kept, while they are no fewer samples than `FEWEST_SAMPLES`."""
MOST_LINKS = 2**15
"""Readings of loaded links that are kept."""


@compiled
def add_noise(values, places, times, key, spread):  # type: ignore[no-untyped-def]
    """Give readings log-normal noise, which is addressed by place and time, bit by bit."""
    golden, other = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
    for i in range(len(values)):
        state = key ^ np.multiply(np.uint64(places[i]), golden) ^ np.multiply(times[i], other)
        state = np.add(state, golden)
        first, second = uniform(state), uniform(np.add(state, golden))
        normal = np.sqrt(-2 * np.log(first)) * np.cos(2 * np.pi * second)
        values[i] = min(1.0, max(FLOOR, values[i] * np.exp(spread * normal)))


@compiled
def _least_of_first(latest, kept, places):  # type: ignore[no-untyped-def]
    """Return the least of the first place, the first two, ..., in each of so many samples."""
    least = np.full((2, len(places), kept), np.inf)
    for which in range(2):
        for k in range(len(places)):
            own, so_far, rest = latest[which, places[k]], least[which, k], least[which, k - 1]
            for at in range(kept):
                before = rest[at] if k > 0 else np.inf
                so_far[at] = own[at] if own[at] < before else before
    return least


class RunSamples(NamedTuple):
    """What was measured during one run.

    Attributes
    ----------
    cpu : numpy.ndarray, shape (samples, places)
        Available CPU of the job's processors, or of its nodes.
    lowest_link : numpy.ndarray, shape (samples,)
        What each found of the bandwidth of the run's most loaded link; 1 where all were free.
    links : numpy.ndarray, shape (links,)
        The average over the samples, of each link that any of them found loaded.
    """

    cpu: FloatArray
    lowest_link: FloatArray
    links: FloatArray


@dataclass(eq=False)
class LoadSensors:
    """Samples of a background load: at fixed times for the machine, and along each run.

    Parameters
    ----------
    load : BackgroundLoad
    streams : Streams
        Gives the key of the noise, ``load.noise``.
    every : float
        Seconds between samples; 120 in the paper.
    per : {"processor", "node"}
        Whether the CPU of each processor is read, or one average a node.
    noise : float
        Standard deviation of the logarithm of a reading; readings stay in
        (0, 1]. A reading has the same noise whoever asks for it. Free links
        read 1.

    Attributes
    ----------
    place_of : numpy.ndarray of int, shape (processors,)
        The place at which each processor is read: itself, or its node.

    Examples
    --------
    >>> from sim.background.models import ConstantLoad
    >>> load = BackgroundLoad(2, Streams(1), cpu=ConstantLoad(0.5), network=None)
    >>> sensors = LoadSensors(load, Streams(1))
    >>> sensors.readings(0, 3).tolist()
    [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]
    >>> sensors.during([0, 1], 10.0, 200.0).cpu.shape
    (2, 2)
    """

    load: BackgroundLoad
    streams: InitVar[Streams]
    every: float = 120.0
    per: Literal["processor", "node"] = "processor"
    noise: float = 0.0

    def __post_init__(self, streams: Streams) -> None:
        width = 1 if self.per == "processor" else self.load.processors_per_node
        self.place_of = np.arange(self.load.processors) // width
        self._key = streams.key("load.noise")

    def sample_index(self, time: float) -> int:
        """Return the number of the machine's latest sample at `time`, from 0 at the origin."""
        return int((time - self.load.origin) // self.every)

    def readings(self, first: int, last: int) -> FloatArray:
        """Return the machine's samples number first..last − 1, shape (samples, places)."""
        return self._cpu(self._times(first, last), np.arange(self.load.processors))

    def _times(self, first: int, last: int) -> FloatArray:
        return self.load.origin + self.every * np.arange(first, last, dtype=np.float64)

    def links(self, first: int, last: int) -> LoadedLinks:
        """Return the links that the machine's samples number first..last − 1 find loaded."""
        return self._links(self._times(first, last), np.ones(self.load.nodes, bool))

    def _links(self, times: FloatArray, inside: BoolArray) -> LoadedLinks:
        """Return the links between nodes that are inside which each look finds loaded."""
        found = self.load.links_at(times, inside)
        if self.noise > 0:
            places = found.keys(self.load.nodes) + self.load.nodes + self.load.processors
            self._disturb(found.available, places, times[found.looks()])
        return found

    def during(self, processors: ArrayLike, start: float, end: float) -> RunSamples:
        """Return the samples of one run: at its start and every so often until its end."""
        own = np.asarray(processors, np.int64)
        times = start + self.every * np.arange(max(1, -(-(end - start) // self.every)), dtype=float)
        found = self._links(times, self.load.inside(own))
        least = np.ones(len(times))
        np.minimum.at(least, found.looks(), found.available)
        _, link = np.unique(found.keys(self.load.nodes), return_inverse=True)
        average = 1.0 - np.bincount(link, 1.0 - found.available) / len(times)
        return RunSamples(self._cpu(times, own), least, average)

    def _cpu(self, times: FloatArray, own: IntArray) -> FloatArray:
        if self.per == "processor":
            values, keys = self.load.cpu_at(times, own), own
        else:
            width = self.load.processors_per_node
            keys = np.unique(own // width)
            last = self.load.processors
            nodes = [np.arange(k * width, min((k + 1) * width, last)) for k in keys.tolist()]
            values = np.column_stack([self.load.cpu_at(times, one).mean(axis=1) for one in nodes])
        if self.noise > 0:
            self._disturb(values.reshape(-1), np.tile(keys, len(times)), times.repeat(len(keys)))
        return values

    def _disturb(self, values: FloatArray, places: IntArray, times: FloatArray) -> None:
        add_noise(values, places, times.view(np.uint64), np.uint64(self._key), self.noise)


class LoadPast:
    """The latest samples, to ask what any set of places met; and all of them, in order.

    The least of several forecasts is above the least of what is forecast: forecasts
    pull towards averages. What both were on average shows by how much.

    Parameters
    ----------
    places : int

    Attributes
    ----------
    number : int
        Of samples so far.
    last : numpy.ndarray, shape (places,)
        The latest sample; 1 before any.
    mean : numpy.ndarray, shape (places,)
        Average of each place so far; 1 before any sample.
    ordered : numpy.ndarray, shape (2, places)
        Averages over all samples of the lowest reading and forecast, of the next, ...
    lost : numpy.ndarray, shape (links,)
        The same of what the most loaded link lacked of its bandwidth, of the next, ...

    Examples
    --------
    >>> past = LoadPast(2)
    >>> for readings in ([1.0, 0.5], [0.5, 1.0]):
    ...     past.add(np.array([readings]), np.array([[0.75, 0.75]]))
    >>> past.least(np.array([0, 1]))
    (array([0.5, 0.5]), 0.625)
    >>> past, readings = LoadPast(1), np.array([[1.0], [1.0], [0.0], [0.0]])
    >>> past.add(readings, readings)
    >>> past.mean.tolist(), round(past.correlation(), 3)
    ([0.5], 0.333)
    """

    def __init__(self, places: int) -> None:
        self._room = min(MOST_SAMPLES, max(MOST_READINGS // places, FEWEST_SAMPLES))
        self._latest = np.zeros((2, places, self._room))
        self._latest[:, :, 0] = 1.0  # until there is a sample
        self.number = 0
        self.last = np.ones(places)
        self._totals, self._sums = np.zeros(places), np.zeros((2, places))
        self._squares = self._products = 0.0
        self._links = np.zeros((3, 0), np.int64)
        self._left, self._lost = np.zeros((2, 0))
        self._looks = self._first_look = 0

    def add(self, readings: FloatArray, forecasts: FloatArray) -> None:
        """Take in samples, and what was forecast for each, both of shape (samples, places).

        Nothing was known of the first of all, so its forecast does not count.
        """
        series = np.vstack((self.last, readings)) if self.number else readings
        both, self.last = np.stack((readings, forecasts)), readings[-1]
        if self.number == 0:
            both[1, 0] = readings[0]
        at = np.arange(self.number, self.number + len(readings))[-self._room :] % self._room
        self._latest[:, :, at] = both[:, -self._room :].swapaxes(1, 2)
        self.number += len(readings)
        self._totals += readings.sum(axis=0)
        deviation = series - self.mean
        early, late = deviation[:-1], deviation[1:]
        self._squares += 0.5 * float((early * early).sum() + (late * late).sum())
        self._products += float((early * late).sum())
        both.sort(axis=2)
        both[:, 0] += self._sums
        self._sums = both.cumsum(axis=1)[:, -1]

    def add_links(self, found: LoadedLinks) -> None:
        """Take in the links that samples found loaded."""
        lost = found.lost(len(self._lost))
        lost[0, : len(self._lost)] += self._lost
        self._lost = lost.cumsum(axis=0)[-1]
        new = found.looks() + self._looks, found.source, found.destination
        links = np.concatenate((self._links, new), axis=1)
        self._looks += len(found.counts)
        first = max(self._looks - self._room, self._first_look)
        if links.shape[1] > MOST_LINKS:
            first = max(first, min(links.item(0, -MOST_LINKS - 1) + 1, self._looks - 1))
        self._first_look = first
        old = links[0].searchsorted(self._first_look)
        self._links, self._left = links[:, old:], np.append(self._left, found.available)[old:]

    @property
    def mean(self) -> FloatArray:
        """Average of each place so far; 1 before any sample."""
        return self._totals / self.number if self.number else np.ones(len(self._totals))

    def correlation(self) -> float:
        """Return the correlation of all places from one sample to the next, in [0, 1)."""
        if self._squares <= 0.0:
            return 0.0
        return float(min(max(self._products / self._squares, 0.0), 0.9999))

    @property
    def ordered(self) -> FloatArray:
        """Averages of the readings and of the forecasts in order; 1 before any sample."""
        return self._sums / self.number if self.number else np.ones(self._sums.shape)

    @property
    def lost(self) -> FloatArray:
        """Averages of what links lacked, in order."""
        return self._lost / max(self._looks, 1)

    def least(self, places: IntArray) -> tuple[FloatArray, float]:
        """Return what the least of these places was; 1 before any sample.

        Returns
        -------
        read : numpy.ndarray, shape (samples,)
            The least reading of past samples, the oldest first.
        believed : float
            The average of the least of the forecasts of those readings.
        """
        read, believed = self._least_of_first(places)[:, -1]
        oldest = self.number % len(read) if self.number > len(read) else 0
        return np.append(read[oldest:], read[:oldest]), float(believed.mean())

    def least_of_first(self, ranked: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the same for the first place of a ranking, the first two, and so on."""
        read, believed = self._least_of_first(ranked).mean(axis=2)
        return read, believed

    def _least_of_first(self, places: IntArray) -> FloatArray:
        kept = min(max(self.number, 1), self._room)
        return np.asarray(_least_of_first(self._latest, kept, places))

    def lowest_link(self, inside: BoolArray) -> FloatArray:
        """Return what was left of the most loaded link among some nodes, the oldest first.

        Parameters
        ----------
        inside : numpy.ndarray of bool, shape (nodes,)
        """
        look, source, destination = self._links
        own = inside[source] & inside[destination]
        least = np.ones(max(self._looks - self._first_look, 1))
        np.minimum.at(least, look[own] - self._first_look, self._left[own])
        return least


LEAST_MEMORY = 1e-3
DROP_AT_ONCE = 8
"""So many links are forgotten together."""
TOGETHER = 32
"""Samples that are taken in together."""
NOWHERE = 0, 0
"""Of a link that has no series."""


class LinkMixture:
    """The mixture of forecasters for every link that was loaded of late, a series each.

    A series begins as that of a link that was always free: as the first of all, which stays such.

    Parameters
    ----------
    selection : {"mae_50", "mse", "mae"}
        How the mixture chooses.
    forget : float
        Samples after which a link that stayed free is believed free again, and its
        history dropped.

    Examples
    --------
    >>> links = LinkMixture("mae_50", 50.0)
    >>> links.take(np.array([0, 1]), np.array([7]), np.array([0.25]))
    >>> links.believed()
    (array([7]), array([0.25]))
    """

    def __init__(self, selection: forecast.Selection, forget: float) -> None:
        self._rule = forecast.rule_of(selection)
        self._forget = forget
        self._series = forecast.series_without_values(1, self._rule)
        self._take = direct(forecast.take)
        self._unused, self._new = list[int](), count(1)
        """Places of links that were dropped, and those that had none yet."""
        self._known: dict[int, tuple[int, int]] = {}
        """When each link that has a series was last loaded, and its place."""
        self._samples = 0

    def take(self, counts: IntArray, keys: IntArray, available: FloatArray) -> None:
        """Take in what samples found loaded.

        Parameters
        ----------
        counts : numpy.ndarray of int, shape (samples,)
            How many links each found, the oldest first.
        keys : numpy.ndarray of int, shape (readings,)
            Their numbers, sample after sample.
        available : numpy.ndarray of float, shape (readings,)
        """
        for first in range(0, len(counts), TOGETHER):
            some = counts[first : first + TOGETHER]
            read = some.sum()
            self._take_some(some, keys[:read].tolist(), available[:read])
            keys, available = keys[read:], available[read:]

    def _take_some(self, counts: IntArray, keys: list[int], available: FloatArray) -> None:
        """Take in a few samples at once; places of links that are dropped are used after them."""
        places, begun, dropped, read = [], [], [], iter(keys)
        known, unused, sample = self._known, self._unused, self._samples
        for number in counts.tolist():
            for key in islice(read, number):
                _, place = known.pop(key, NOWHERE)
                if not place:
                    place = unused.pop() if unused else next(self._new)
                    begun.append(place)
                known[key] = sample, place
                places.append(place)
            dropped += self._dropped(sample)
            sample += 1
        self._samples, last = sample, max(begun, default=0)
        if last >= len(self._series):
            self._series = np.resize(self._series, last + 16 + last // 8)
        self._series[begun] = self._series[0]
        values = np.ones((len(counts), len(self._series)))
        values[np.arange(len(counts)).repeat(counts), places] = available
        used = np.array([0, *[place for _, place in known.values()]])
        self._take(values, self._series, used, self._rule, values)
        self._unused += dropped

    def _dropped(self, sample: int) -> list[int]:
        """Drop the links that are long free, if they are several; return their places."""
        least = sample - self._forget
        loaded_at, _ = next(islice(self._known.values(), DROP_AT_ONCE - 1, None), (sample, 0))
        if loaded_at >= least:
            return []
        stale = [key for key, (loaded_at, _) in self._known.items() if loaded_at < least]
        return [self._known.pop(key)[1] for key in stale]

    def believed(self) -> tuple[IntArray, FloatArray]:
        """Return the links that are not believed free, and the forecast bandwidth of each."""
        least = self._samples - 1 - self._forget
        fresh = [(key, place) for key, (at, place) in self._known.items() if at >= least]
        keys, places = np.array(fresh, np.int64).reshape(-1, 2).T
        return keys, self._series["answer"][places]


Belief = Literal["forecast", "last", "oracle", "mean"]


class Standing(NamedTuple):
    """What is believed from one sample to the next.

    Attributes
    ----------
    places, cpu, mean : numpy.ndarray
        Of the sensors' places and of the processors at the next sample; averages so far.
    ordered : tuple of numpy.ndarray, shape (processors,)
        Readings, forecasts of them, both on average, and `places`, each the lowest first.
    links : LoadedLinks
    memory, link_memory : float
        After how many seconds a deviation has fallen to 1/e, and 1/e of the loaded
        links is still loaded; negative where what was last seen is believed to last.
    mean_links : tuple of float
        How many links samples found loaded on average, and what was left of them.
    mean_lost : numpy.ndarray, shape (links,)
        What links lacked on average: the most loaded one, the next, and so on.
    """

    places: FloatArray
    cpu: FloatArray
    mean: FloatArray
    ordered: tuple[FloatArray, ...]
    links: LoadedLinks
    memory: float
    link_memory: float
    mean_links: tuple[float, float]
    mean_lost: FloatArray


@dataclass(eq=False)
class LoadBeliefs:
    """Believed availability of every processor and link, from the sensors unless it is the truth.

    Taken further to the present whenever it is asked; between two samples nothing
    changes. Links that no sample ever found loaded are believed free.

    Parameters
    ----------
    sensors : LoadSensors
    belief : {"forecast", "last", "oracle", "mean"}
        By the mixture of forecasters, the last sample, the truth, or the
        average of all samples so far.
    selection : {"mae_50", "mse", "mae"}
        How the mixture chooses.
    forget : float
        Seconds after which a link that stayed free is believed free again, and its
        history dropped: 50 samples of two minutes by default.

    Examples
    --------
    >>> from sim.background.background import BackgroundLoad
    >>> from sim.background.models import ConstantLoad
    >>> from workloads.streams import Streams
    >>> load = BackgroundLoad(3, Streams(1), ConstantLoad(0.5), ConstantLoad(0.25))
    >>> beliefs = LoadBeliefs(LoadSensors(load, Streams(1)))
    >>> beliefs.standing(600.0).cpu.tolist(), beliefs.met(600.0, np.array([0, 2]))[0].tolist()
    ([0.5, 0.5, 0.5], [0.5, 0.5, 0.25, 0.25])
    """

    sensors: LoadSensors
    belief: Belief = "forecast"
    selection: InitVar[forecast.Selection] = "mae_50"
    forget: float = 6000.0

    def __post_init__(self, selection: forecast.Selection) -> None:
        check_choices(self)
        POSITIVE.check(forget=self.forget)
        places = int(self.sensors.place_of[-1]) + 1
        self._cpu = forecast.NwsMixture(places, selection)
        self._links = LinkMixture(selection, self.forget / self.sensors.every)
        self._past = LoadPast(places)
        self._links_loaded = self._links_kept = 0
        self._links_lost = 0.0
        self._last_links: tuple[IntArray, FloatArray] = (np.zeros(0, np.int64), np.zeros(0))

    def _take_in(self, newest: int) -> None:
        """Take in the samples before that number."""
        past, nodes = self._past, self.sensors.load.nodes
        readings = self.sensors.readings(past.number, newest)
        found = self.sensors.links(past.number, newest)
        before, keys = np.vstack((past.last, readings[:-1])), found.keys(nodes)
        if self.belief == "forecast":
            before = self._cpu.follow(readings)
            self._links.take(found.counts, keys, found.available)
        past.add(readings, before)
        past.add_links(found)
        at_look = np.append(self._last_links[0], keys + nodes**2 * (found.looks() + 1))
        self._links_kept += len(set(at_look.tolist()).intersection((at_look + nodes**2).tolist()))
        self._links_lost = float(np.append(self._links_lost, 1.0 - found.available).cumsum()[-1])
        self._links_loaded += len(keys)
        first = len(keys) - int(found.counts[-1])
        self._last_links = keys[first:], found.available[first:]

    def standing(self, now: float) -> Standing:
        """Return what is believed until the next sample."""
        newest = self.sensors.sample_index(now) + 1
        if newest > self._past.number:
            self._take_in(newest)
            past, place_of = self._past, self.sensors.place_of
            places, (keys, left) = past.last, self._last_links
            if self.belief == "forecast":
                places, (keys, left) = self._cpu.forecast(), self._links.believed()
            elif self.belief == "mean":
                keys, left = keys[:0], left[:0]
            before = self._links_loaded - len(self._last_links[0])
            kept = self._links_kept / before if before else 0.0
            loaded = self._links_loaded
            rest = 1.0 - self._links_lost / loaded if loaded else 1.0
            self._standing = Standing(
                places,
                places[place_of],
                past.mean[place_of],
                tuple(each[place_of] for each in (*past.ordered, np.sort(places))),
                LoadedLinks(np.array([len(keys)]), *np.divmod(keys, self.sensors.load.nodes), left),
                self._memory(past.correlation()),
                self._memory(kept),
                (loaded / past.number, rest),
                past.lost,
            )
        return self._standing

    def _memory(self, kept: float) -> float:
        """Return in how many seconds 1/e is left of what keeps such a share to the next sample."""
        if self.belief == "last":
            return -1.0
        return float(self.sensors.every / -np.log(max(kept, LEAST_MEMORY))) if kept < 1 else np.inf

    def met(self, now: float, processors: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return what is believed of the slowest of these processors, and of their links.

        The least of the forecasts is corrected by how far it was from the least of
        the readings on average.

        Returns
        -------
        figures : numpy.ndarray, shape (4,)
            CPU of the slowest processor as it usually is and as it is at present, and the
            same of the bandwidth of the most loaded link.
        past : numpy.ndarray, shape (2, samples)
            What both were at past samples.
        """
        standing, places = self.standing(now), self.sensors.place_of[processors]
        read, believed = self._past.least(places)
        usual = read.mean()
        present = self._at_present(usual, believed, standing.places[places].min())
        inside = self.sensors.load.inside(processors)
        links = self._past.lowest_link(inside)
        left = links.mean()
        now_left = left if self.belief == "mean" else standing.links.least(inside)
        both = min(len(read), len(links))
        past = np.stack((read[-both:], links[-both:]))
        return np.array([usual, present, left, now_left]), past

    def _at_present(self, usual: Any, believed: Any, present: Any) -> Any:
        """Return what is believed of the least of some, which usually is so and was so believed."""
        if self.belief in ("mean", "last"):
            return usual if self.belief == "mean" else present
        return np.minimum(present * usual / believed, 1.0)

    def least_of_first(self, now: float, ranked: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return usual and present for the first processor of a ranking, the first two, ..."""
        standing, places = self.standing(now), self.sensors.place_of[ranked]
        read, believed = self._past.least_of_first(places)
        present = np.minimum.accumulate(standing.places[places])
        if self.belief == "mean":
            return read, read
        gap = read / believed if self.belief == "forecast" else 1.0
        return read, np.minimum(present * gap, 1.0)

    def least_of_random(
        self, now: float, weights: list[FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Return usual and present for the slowest of processors drawn at random.

        Parameters
        ----------
        now : float
        weights : list of numpy.ndarray, shape (processors,)
            Of each number of them: how likely each rank, from the slowest on, is the lowest.
        """
        ordered = self.standing(now).ordered
        read, *more = (np.array([own @ each for own in weights]) for each in ordered)
        return read, self._at_present(read, *more)
