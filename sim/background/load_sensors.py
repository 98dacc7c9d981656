"""What a monitor sees of the background load: samples."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from predictors.compiling import njit
from sim.background.background import BackgroundLoad, LoadedLinks
from sim.background.kernels import FloatArray, IntArray
from sim.errors import ConfigError
from workloads.streams import Streams

FLOOR = 1e-3


class RunSamples(NamedTuple):
    """What was measured during one run.

    Attributes
    ----------
    cpu : numpy.ndarray, shape (samples, places)
        Available CPU of the job's processors, or of its nodes.
    bandwidth : numpy.ndarray, shape (samples, links)
        Available bandwidth of those own links that any sample found loaded;
        without columns if there is none.
    """

    cpu: FloatArray
    bandwidth: FloatArray


@njit(cache=True)
def _noisy(values, keys, times, key, spread, floor):  # type: ignore[no-untyped-def]
    """Multiply values[time, place] by log-normal noise addressed by place and time."""
    mask = np.uint64(0xFFFFFFFFFFFFFFFF)
    for j in range(values.shape[0]):
        for i in range(values.shape[1]):
            state = np.uint64(key) ^ (np.uint64(keys[i]) * np.uint64(0x9E3779B97F4A7C15))
            state ^= np.uint64(times[j]) * np.uint64(0xD1B54A32D192ED03)
            draws = np.empty(2)
            for part in range(2):
                state = (state + np.uint64(0x9E3779B97F4A7C15)) & mask
                z = state
                z = ((z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)) & mask
                z = ((z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)) & mask
                z ^= z >> np.uint64(31)
                draws[part] = (np.float64(z >> np.uint64(11)) + 0.5) / 9007199254740992.0
            normal = np.sqrt(-2 * np.log(draws[0])) * np.cos(2 * np.pi * draws[1])
            values[j, i] = min(1.0, max(floor, values[j, i] * np.exp(spread * normal)))


def check_monitor(every: float, per: str, noise: float, name: str = "") -> None:
    """Refuse the figures of a monitor that are out of range; names in messages begin with `name`.

    Raises
    ------
    ConfigError
        Unless seconds are positive, places known, and noise is at least 0 and finite.
    """
    if not 0 < every < np.inf:
        raise ConfigError(f"{name}every must be a positive number of seconds, got {every}")
    if per not in ("processor", "node"):
        raise ConfigError(f"{name}per must be 'processor' or 'node', got {per!r}")
    if not 0 <= noise < np.inf:
        raise ConfigError(f"{name}noise must be at least 0 and finite, got {noise}")


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
        check_monitor(every, per, noise)
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

    def _own_links(self, times: FloatArray, own: IntArray) -> FloatArray:
        rows = self.load.loaded_links(own, float(times[0]), float(times[-1]))
        first, last = (times.searchsorted(rows[:, column]) for column in (0, 1))
        seen = last > first
        rows, first, last = rows[seen], first[seen], last[seen]
        links = (rows[:, 2] * self.load.nodes + rows[:, 3]).astype(np.int64)
        distinct, which = np.unique(links, return_inverse=True)
        pairs = np.column_stack(np.divmod(distinct, self.load.nodes))
        values = np.ones((len(times), len(pairs)))
        for row, begin, end, link in zip(rows[:, 4], first, last, which, strict=True):
            values[begin:end, link] = row
        loaded = values < 1
        noisy = values.copy()
        self._disturb(noisy, self._link_keys(pairs[:, 0], pairs[:, 1]), times)
        values[loaded] = noisy[loaded]
        return values

    def _link_keys(self, source: IntArray, destination: IntArray) -> IntArray:
        return (source + 1) * self.load.nodes + destination + self.load.processors

    def _disturb(self, values: FloatArray, keys: IntArray, times: FloatArray) -> None:
        if self.noise > 0 and values.size:
            moments = np.asarray(times, float).view(np.uint64)
            _noisy(values, keys, moments, np.uint64(self._key), self.noise, FLOOR)
