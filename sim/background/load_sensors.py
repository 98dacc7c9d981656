"""What a monitor sees of the background load: samples; and what past ones show."""

from dataclasses import InitVar, dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from predictors.base import BoolArray, FloatArray, IntArray
from predictors.compiling import compiled
from sim.background.background import BackgroundLoad, LoadedLinks
from workloads.streams import Streams
from workloads.truth.ground_truth import mixed

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
        state = key ^ (np.uint64(places[i]) * golden) ^ (times[i] * other)
        first = (np.float64(mixed(state + golden) >> np.uint64(11)) + 0.5) * 2.0**-53
        second = (np.float64(mixed(state + golden + golden) >> np.uint64(11)) + 0.5) * 2.0**-53
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
        self.places = self.load.processors if self.per == "processor" else self.load.nodes
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
        kept = min(MOST_SAMPLES, max(MOST_READINGS // places, FEWEST_SAMPLES))
        self._room = kept
        self._latest = np.zeros((2, places, kept))
        self._latest[:, :, 0] = 1.0  # until there is a sample
        self._number = 0
        self.last = np.ones(places)
        self._totals, self._sums = np.zeros(places), np.zeros((2, places))
        self._squares = self._products = 0.0
        self._links = np.zeros((3, 0), np.int64)
        self._left = np.zeros(0)
        self._lost = np.zeros(0)
        self._looks = 0
        self._first_look = 0

    def add(self, readings: FloatArray, forecasts: FloatArray) -> None:
        """Take in samples, and what was forecast for each, both of shape (samples, places).

        Nothing was known of the first of all, so its forecast does not count.
        """
        series = np.vstack((self.last, readings)) if self._number else readings
        both, self.last = np.stack((readings, forecasts)), readings[-1]
        if self._number == 0:
            both[1, 0] = readings[0]
        at = np.arange(self._number, self._number + len(readings))[-self._room :] % self._room
        self._latest[:, :, at] = both[:, -self._room :].swapaxes(1, 2)
        self._number += len(readings)
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
        most = max(int(found.counts.max(initial=0)), len(self._lost))
        lacking = np.zeros((len(found.counts), most))
        lacking[np.arange(most) < found.counts[:, None]] = found.available - 1.0
        lacking.sort(axis=1)
        lacking[0, : len(self._lost)] -= self._lost
        self._lost = -lacking.cumsum(axis=0)[-1]
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
        return self._totals / self._number if self._number else np.ones(len(self._totals))

    def correlation(self) -> float:
        """Return the correlation of all places from one sample to the next, in [0, 1)."""
        if self._squares <= 0.0:
            return 0.0
        return float(min(max(self._products / self._squares, 0.0), 0.9999))

    @property
    def ordered(self) -> FloatArray:
        """Averages of the readings and of the forecasts in order; 1 before any sample."""
        return self._sums / self._number if self._number else np.ones(self._sums.shape)

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
        oldest = self._number % len(read) if self._number > len(read) else 0
        return np.append(read[oldest:], read[:oldest]), float(believed.mean())

    def least_of_first(self, ranked: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the same for the first place of a ranking, the first two, and so on."""
        read, believed = self._least_of_first(ranked).mean(axis=2)
        return read, believed

    def _least_of_first(self, places: IntArray) -> FloatArray:
        kept = min(max(self._number, 1), self._room)
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
