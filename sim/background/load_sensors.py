"""What a monitor sees of the background load: samples; and what past ones show."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from predictors.base import BoolArray, FloatArray, IntArray
from sim.background.background import BackgroundLoad
from sim.background.links import LoadedLinks
from sim.background.sample_kernels import (
    add_lost,
    add_noise,
    add_rows,
    least_of,
    least_of_first,
    lowest_own_link,
    sample_links,
)
from workloads.streams import Streams

FLOOR = 1e-3
MOST_SAMPLES = 720
"""Samples that are kept, a day of those of two minutes."""
FEWEST_SAMPLES = 32
MOST_READINGS = 2**20
"""Readings that are kept, while they are no fewer samples than `FEWEST_SAMPLES`."""
MOST_LINKS = 2**15
"""Readings of loaded links that are kept."""


class LinkSamples(NamedTuple):
    """What samples say of the bandwidth of a run's own links.

    Attributes
    ----------
    least : numpy.ndarray, shape (samples,)
        What each found of the most loaded link; 1 where all were free.
    average : numpy.ndarray, shape (links,)
        Over the samples, of each link that any of them found loaded.
    """

    least: FloatArray
    average: FloatArray


class RunSamples(NamedTuple):
    """What was measured during one run.

    Attributes
    ----------
    cpu : numpy.ndarray, shape (samples, places)
        Available CPU of the job's processors, or of its nodes.
    bandwidth : LinkSamples
    """

    cpu: FloatArray
    bandwidth: LinkSamples


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

    def __init__(
        self,
        load: BackgroundLoad,
        streams: Streams,
        every: float = 120.0,
        per: Literal["processor", "node"] = "processor",
        noise: float = 0.0,
    ) -> None:
        self.load = load
        self.every = every
        self.per = per
        self.noise = noise
        self.places = load.processors if per == "processor" else load.nodes
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
        times = self._times(first, last)
        found = self.load.links_at(times)
        if self.noise > 0:
            keys, ends = self._link_keys(found.source, found.destination), found.counts.cumsum()
            for at, own in enumerate(map(slice, ends - found.counts, ends)):
                self._disturb(found.available[None, own], keys[own], times[at : at + 1])
        return found

    def during(self, processors: ArrayLike, start: float, end: float) -> RunSamples:
        """Return the samples of one run: at its start and every so often until its end."""
        own = np.asarray(processors, np.int64)
        times = start + self.every * np.arange(max(1, -(-(end - start) // self.every)), dtype=float)
        return RunSamples(self._cpu(times, own), self._own_links(times, own))

    def _cpu(self, times: FloatArray, own: IntArray) -> FloatArray:
        if self.per == "processor":
            values, keys = self.load.cpu_at(times, own), own
        else:
            width = self.load.processors_per_node
            keys = np.unique(own // width)
            values = np.column_stack([self._node(times, node) for node in keys.tolist()])
        self._disturb(values, keys, times)
        return values

    def _node(self, times: FloatArray, node: int) -> FloatArray:
        """Return the average over a node's processors at each time."""
        width = self.load.processors_per_node
        members = np.arange(node * width, min((node + 1) * width, self.load.processors))
        return np.asarray(self.load.cpu_at(times, members).mean(axis=1), float)

    def _own_links(self, times: FloatArray, own: IntArray) -> LinkSamples:
        rows = self.load.loaded_links(own, float(times[0]), float(times[-1]))
        noise = np.uint64(self._key), self.noise, FLOOR
        size = self.load.nodes, self.load.processors
        return LinkSamples(*sample_links(rows, times, size, noise))

    def _link_keys(self, source: IntArray, destination: IntArray) -> IntArray:
        return (source + 1) * self.load.nodes + destination + self.load.processors

    def _disturb(self, values: FloatArray, keys: IntArray, times: FloatArray) -> None:
        if self.noise > 0 and values.size:
            moments = np.asarray(times, float).view(np.uint64)
            add_noise(values, keys, moments, (np.uint64(self._key), self.noise, FLOOR))


class Least(NamedTuple):
    """What some places were at past samples, the oldest first.

    Attributes
    ----------
    read : numpy.ndarray, shape (samples,)
        The least reading.
    believed : float
        The average of the least of the forecasts of those readings.
    """

    read: FloatArray
    believed: float


class LoadPast:
    """The latest samples, to ask what any set of places met; and all of them, in order.

    The least of several forecasts is above the least of what is forecast: forecasts
    pull towards averages. What both were on average shows by how much.

    Parameters
    ----------
    places : int

    Attributes
    ----------
    read, believed : numpy.ndarray, shape (places,)
        Averages over all samples of the lowest reading or forecast, of the next, ...
    lost : numpy.ndarray, shape (links,)
        The same of what the most loaded link lacked of its bandwidth, of the next, ...

    Examples
    --------
    >>> past = LoadPast(2)
    >>> for readings in ([1.0, 0.5], [0.5, 1.0]):
    ...     past.add(np.array([readings]), np.array([[0.75, 0.75]]))
    >>> past.least(np.array([0, 1]))
    Least(read=array([0.5, 0.5]), believed=0.625)
    """

    def __init__(self, places: int) -> None:
        kept = min(MOST_SAMPLES, max(MOST_READINGS // places, FEWEST_SAMPLES))
        self._room = kept
        self._readings = np.zeros((places, kept))
        self._forecasts = np.zeros((places, kept))
        self._number = 0
        self._read = np.zeros(places)
        self._believed = np.zeros(places)
        none = np.zeros(0, np.int64)
        self._links = LoadedLinks(none, none, none, np.zeros(0))
        self._lost = np.zeros(0)
        self._looks = 0

    def add(self, readings: FloatArray, forecasts: FloatArray) -> None:
        """Take in samples, and what was forecast for each, both of shape (samples, places).

        Nothing was known of the first of all, so its forecast does not count.
        """
        if self._number == 0:
            forecasts = forecasts.copy()
            forecasts[0] = readings[0]
        add_rows(self._read, np.sort(readings, axis=1))
        add_rows(self._believed, np.sort(forecasts, axis=1))
        kept = self._room
        at = np.arange(self._number, self._number + len(readings))[-kept:] % kept
        self._readings[:, at], self._forecasts[:, at] = readings[-kept:].T, forecasts[-kept:].T
        self._number += len(readings)

    def add_links(self, found: LoadedLinks) -> None:
        """Take in the links that samples found loaded."""
        missing = int(found.counts.max(initial=0)) - len(self._lost)
        if missing > 0:
            self._lost = np.append(self._lost, np.zeros(missing))
        add_lost(found.counts, found.available, self._lost)
        self._looks += len(found.counts)
        before = self._links
        counts = np.append(before.counts, found.counts)
        source = np.append(before.source, found.source)
        destination = np.append(before.destination, found.destination)
        available = np.append(before.available, found.available)
        first, low, last, high = 0, 0, len(counts), len(source)
        while last - first > self._room or (high - low > MOST_LINKS and last - first > 1):
            low += counts.item(first)
            first += 1
        self._links = LoadedLinks(counts[first:], source[low:], destination[low:], available[low:])

    @property
    def read(self) -> FloatArray:
        """Averages of the readings in order; 1 before any sample."""
        return self._read / self._number if self._number else np.ones(len(self._read))

    @property
    def believed(self) -> FloatArray:
        """Averages of the forecasts in order; 1 before any sample."""
        return self._believed / self._number if self._number else np.ones(len(self._believed))

    @property
    def lost(self) -> FloatArray:
        """Averages of what links lacked, in order."""
        return self._lost / max(self._looks, 1)

    def least(self, places: IntArray) -> Least:
        """Return what the least of these places was, read and forecast."""
        if self._number == 0:
            return Least(np.ones(1), 1.0)
        kept = min(self._number, self._room)
        oldest = self._number % kept if self._number > kept else 0
        return Least(*least_of(self._readings, self._forecasts, kept, oldest, places))

    def least_of_first(self, ranked: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the same for the first place of a ranking, the first two, and so on."""
        if self._number == 0:
            return np.ones(len(ranked)), np.ones(len(ranked))
        kept = min(self._number, self._room)
        read = least_of_first(self._readings, kept, ranked)
        return read, least_of_first(self._forecasts, kept, ranked)

    def lowest_link(self, inside: BoolArray) -> FloatArray:
        """Return what was left of the most loaded link among some nodes, the oldest first.

        Parameters
        ----------
        inside : numpy.ndarray of bool, shape (nodes,)
        """
        if not len(self._links.counts):
            return np.ones(1)
        return np.asarray(lowest_own_link(*self._links, inside))
