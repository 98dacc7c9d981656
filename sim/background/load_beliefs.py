"""What may be believed of the load: a forecast, the last value, the average, or the truth."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from predictors.under_load.forecast import NwsMixture, Selection
from sim.background.kernels import FloatArray, IntArray
from sim.background.load_sensors import LinkReadings, LoadPast, LoadSensors
from sim.errors import ConfigError

LEAST_MEMORY = 1e-3


class LoadMoments:
    """Running mean of every place, and the autocorrelation of all from sample to sample.

    Parameters
    ----------
    places : int

    Examples
    --------
    >>> moments = LoadMoments(1)
    >>> moments.update(np.array([[1.0], [1.0], [0.0], [0.0]]))
    >>> moments.mean.tolist(), round(moments.correlation(), 3)
    ([0.5], 0.333)
    """

    def __init__(self, places: int) -> None:
        self._number = 0
        self._sums = np.zeros(places)
        self._last: FloatArray | None = None
        self._squares = 0.0
        self._products = 0.0

    def update(self, readings: FloatArray) -> None:
        """Take in samples, shape (samples, places), the oldest first."""
        self._number += len(readings)
        self._sums += readings.sum(axis=0)
        series = readings if self._last is None else np.vstack((self._last, readings))
        self._last = readings[-1]
        before, after = series[:-1] - self.mean, series[1:] - self.mean
        self._squares += 0.5 * float((before**2).sum() + (after**2).sum())
        self._products += float((before * after).sum())

    @property
    def mean(self) -> FloatArray:
        """Average of each place so far; 1 before any sample."""
        if self._number == 0:
            return np.ones(len(self._sums))
        return np.asarray(self._sums / self._number, float)

    def correlation(self) -> float:
        """Return the correlation from one sample to the next, in [0, 1)."""
        if self._squares <= 0.0:
            return 0.0
        return float(np.clip(self._products / self._squares, 0.0, 0.9999))

    def memory(self, every: float) -> float:
        """Return the time after which a deviation from the mean has fallen to 1/e, seconds."""
        return float(every / -np.log(max(self.correlation(), LEAST_MEMORY)))


Belief = Literal["forecast", "last", "oracle", "mean"]
DROP_AT_ONCE = 8


class Swing(NamedTuple):
    """A figure that returns to what is usual from what it is at present."""

    usual: float
    present: float


class Met(NamedTuple):
    """What is believed of the slowest processor and the most loaded link of a job.

    Attributes
    ----------
    cpu, bandwidth : Swing
    past_cpu, past_bandwidth : numpy.ndarray, shape (samples,)
        What both were at past samples.
    """

    cpu: Swing
    bandwidth: Swing
    past_cpu: FloatArray
    past_bandwidth: FloatArray


class LoadBeliefs:
    """Believed availability of every processor and link, from the sensors alone.

    Taken further to the present whenever it is asked; between two samples nothing
    changes. Links that no sample ever found loaded are believed free. ``oracle``
    alone looks at the load itself: its average over the time asked about.

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
    >>> beliefs.cpu(600.0).tolist(), float(beliefs.bandwidth(600.0, [0, 2]))
    ([0.5, 0.5, 0.5], 0.25)
    """

    def __init__(
        self,
        sensors: LoadSensors,
        belief: Belief = "forecast",
        selection: Selection = "mae_50",
        forget: float = 6000.0,
    ) -> None:
        if belief not in ("forecast", "last", "oracle", "mean"):
            raise ConfigError(
                f"belief must be 'forecast', 'last', 'oracle' or 'mean', got {belief!r}"
            )
        if not forget > 0:
            raise ConfigError(f"forget must be a positive number of seconds, got {forget}")
        self.sensors = sensors
        self.belief = belief
        self.forget = forget
        self._cpu = NwsMixture(sensors.places, selection)
        self._links = NwsMixture(1, selection)  # series 0: a link that was always free
        self._series: dict[tuple[int, int], int] = {}
        self._loaded_at: dict[tuple[int, int], int] = {}
        self._moments = LoadMoments(sensors.places)
        self._past = LoadPast(sensors.places)
        self._links_loaded = 0
        self._links_lost = 0.0
        self._links_kept = 0
        self._samples = 0
        self._last = np.ones(sensors.places)
        self._last_links: dict[tuple[int, int], float] = {}

    def _catch_up(self, now: float) -> None:
        """Take in the samples up to `now`."""
        newest = self.sensors.sample_index(now) + 1
        if newest <= self._samples:
            return
        readings = self.sensors.readings(self._samples, newest)
        self._moments.update(readings)
        for seen_cpu in readings:
            self._take_cpu(seen_cpu)
        for sample in range(self._samples, newest):
            seen = self.sensors.links(sample)
            self._past.add_links(*seen)
            loaded = _as_dict(seen)
            self._links_loaded += len(loaded)
            self._links_lost += float((1.0 - seen.available).sum())
            self._links_kept += len(loaded.keys() & self._last_links.keys())
            self._last_links = loaded
            if self.belief == "forecast":
                self._take_links(loaded, sample)
        self._samples = newest

    def _take_cpu(self, readings: FloatArray) -> None:
        """Take in a sample of the processors, beside what was believed of it."""
        self._past.add(readings, self._places())
        self._last = readings
        if self.belief == "forecast":
            self._cpu.update(readings)

    def _places(self) -> FloatArray:
        """Return what is believed of the sensors' places at the next sample."""
        return self._cpu.forecast() if self.belief == "forecast" else self._last

    def _take_links(self, loaded: dict[tuple[int, int], float], sample: int) -> None:
        """Update the series of every known link; begin those now first loaded."""
        fresh = [link for link in loaded if link not in self._series]
        for link in fresh:
            self._series[link] = len(self._series) + 1
        if fresh:
            self._links.extend(len(fresh), like=0)
        values = np.ones(len(self._links))
        for link, value in loaded.items():
            values[self._series[link]] = value
            self._loaded_at[link] = sample
        self._links.update(values)
        self._drop_stale(sample)

    def _drop_stale(self, sample: int) -> None:
        """Forget links that have been free for long, several at a time."""
        oldest = sample - self.forget / self.sensors.every
        kept = [link for link in self._series if self._loaded_at[link] >= oldest]
        if len(self._series) - len(kept) < DROP_AT_ONCE:
            return
        self._links.keep([0, *(self._series[link] for link in kept)])
        self._series = {link: at for at, link in enumerate(kept, 1)}
        self._loaded_at = {link: self._loaded_at[link] for link in kept}

    def cpu(self, now: float, horizon: float = 0.0) -> FloatArray:
        """Return the believed available CPU of every processor, shape (processors,).

        Parameters
        ----------
        now : float
            Seconds.
        horizon : float
            Seconds ahead that the oracle averages over.
        """
        load = self.sensors.load
        if self.belief == "oracle":
            return load.average_cpu(np.arange(load.processors), now, now + horizon)
        self._catch_up(now)
        if self.belief == "mean":
            return self.mean_cpu(now)
        return self._spread(self._places())

    def _spread(self, places: FloatArray) -> FloatArray:
        """Return values of the sensors' places as values of the processors."""
        load = self.sensors.load
        if self.sensors.per == "processor":
            return places
        return np.repeat(places, load.processors_per_node)[: load.processors]

    def met(self, now: float, processors: IntArray) -> Met:
        """Return what is believed of the slowest of these processors, and of their links.

        The least of the forecasts is corrected by how far it was from the least of
        the readings on average.
        """
        self._catch_up(now)
        load, places = self.sensors.load, processors
        if self.sensors.per == "node":
            places = np.unique(processors // load.processors_per_node)
        past = self._past.least(places)
        usual, present = float(past.read.mean()), float(self._places()[places].min())
        inside = np.zeros(load.nodes, bool)
        inside[processors // load.processors_per_node] = True
        links = self._past.lowest_link(inside)
        left = float(links.mean())
        link = Swing(left, left if self.belief == "mean" else self.bandwidth(now, processors))
        both = min(len(past.read), len(links))
        cpu = self._swing(usual, past.believed, present)
        return Met(cpu, link, past.read[-both:], links[-both:])

    def _swing(self, usual: float, believed: float, present: float) -> Swing:
        if self.belief == "mean":
            return Swing(usual, usual)
        if self.belief == "last":
            return Swing(usual, present)
        return Swing(usual, min(present * usual / believed, 1.0))

    def least_of_first(self, now: float, ranked: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return usual and present for the first processor of a ranking, the first two, ..."""
        self._catch_up(now)
        places = ranked
        if self.sensors.per == "node":
            places = ranked // self.sensors.load.processors_per_node
        read, believed = self._past.least_of_first(places)
        present = np.minimum.accumulate(self._places()[places])
        if self.belief == "mean":
            return read, read
        gap = read / believed if self.belief == "forecast" else 1.0
        return read, np.minimum(present * gap, 1.0)

    def least_of_random(self, now: float, weights: FloatArray) -> Swing:
        """Return what is believed of the slowest of processors drawn at random.

        Parameters
        ----------
        now : float
        weights : numpy.ndarray, shape (processors,)
            How likely each rank, from the slowest on, is the lowest drawn.
        """
        self._catch_up(now)
        read, believed, present = (
            float(weights @ self._spread(values))
            for values in (self._past.read, self._past.believed, np.sort(self._places()))
        )
        return self._swing(read, believed, present)

    def mean_lost(self, now: float) -> FloatArray:
        """Return what links lacked on average: the most loaded one, the next, and so on."""
        self._catch_up(now)
        return self._past.lost

    def mean_cpu(self, now: float) -> FloatArray:
        """Return the average of all samples of every processor, shape (processors,)."""
        self._catch_up(now)
        return self._spread(self._moments.mean)

    def mean_links(self, now: float) -> tuple[float, float]:
        """Return how many links samples found loaded on average, and what was left of them."""
        self._catch_up(now)
        if self._links_loaded == 0:
            return 0.0, 1.0
        return self._links_loaded / self._samples, 1.0 - self._links_lost / self._links_loaded

    def memory(self, now: float) -> float:
        """Return after how many seconds a deviation from the average has fallen to 1/e."""
        self._catch_up(now)
        return self._moments.memory(self.sensors.every)

    def link_memory(self, now: float) -> float:
        """Return after how many seconds 1/e of the loaded links is still loaded."""
        self._catch_up(now)
        before = self._links_loaded - len(self._last_links)
        kept = self._links_kept / before if before else 0.0
        return float(self.sensors.every / -np.log(max(kept, LEAST_MEMORY))) if kept < 1 else np.inf

    def links(self, now: float) -> dict[tuple[int, int], float]:
        """Return the believed bandwidth of links that are not believed free (not the oracle's)."""
        if self.belief == "oracle":
            processors = np.arange(self.sensors.load.processors)
            rows = self.sensors.load.loaded_links(processors, now, now)
            return {(int(row[2]), int(row[3])): float(row[4]) for row in rows}
        self._catch_up(now)
        if self.belief == "mean":
            return {}
        if self.belief == "last":
            return dict(self._last_links)
        oldest = self._samples - 1 - self.forget / self.sensors.every
        values = self._links.forecast()
        return {
            link: float(values[series])
            for link, series in self._series.items()
            if self._loaded_at[link] >= oldest
        }

    def bandwidth(self, now: float, processors: ArrayLike, horizon: float = 0.0) -> float:
        """Return the believed bandwidth of the most loaded link among those of `processors`."""
        load = self.sensors.load
        if self.belief == "oracle":
            return load.average_bandwidth(processors, now, now + horizon)
        nodes = set((np.asarray(processors, np.int64) // load.processors_per_node).tolist())
        own = [
            value
            for (source, destination), value in self.links(now).items()
            if source in nodes and destination in nodes
        ]
        return min(own, default=1.0)


def _as_dict(readings: LinkReadings) -> dict[tuple[int, int], float]:
    pairs = zip(readings.source.tolist(), readings.destination.tolist(), strict=True)
    return dict(zip(pairs, readings.available.tolist(), strict=True))
