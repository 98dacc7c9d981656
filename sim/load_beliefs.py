"""What a policy may believe of the load to come: a forecast, the last value, or the truth."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from predictors.forecast import NwsMixture, Selection
from sim.errors import ConfigError
from sim.load_kernels import FloatArray
from sim.load_sensors import LinkReadings, LoadSensors

Belief = Literal["forecast", "last", "oracle"]
DROP_AT_ONCE = 8


class LoadBeliefs:
    """Believed availability of every processor and link, from the sensors alone.

    Taken further to the present whenever it is asked; between two samples nothing
    changes. Links that no sample ever found loaded are believed free. ``oracle``
    alone looks at the load itself: its average over the time asked about.

    Parameters
    ----------
    sensors : LoadSensors
    belief : {"forecast", "last", "oracle"}
        By the mixture of forecasters, the last sample, or the truth.
    selection : {"mae_50", "mse", "mae"}
        How the mixture chooses.
    forget : float
        Seconds after which a link that stayed free is believed free again, and its
        history dropped: 50 samples of two minutes by default.

    Examples
    --------
    >>> from sim.load import BackgroundLoad
    >>> from sim.load_models import ConstantLoad
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
        if belief not in ("forecast", "last", "oracle"):
            raise ConfigError(f"belief must be 'forecast', 'last' or 'oracle', got {belief!r}")
        if not forget > 0:
            raise ConfigError(f"forget must be a positive number of seconds, got {forget}")
        self.sensors = sensors
        self.belief = belief
        self.forget = forget
        self._cpu = NwsMixture(sensors.places, selection)
        self._links = NwsMixture(1, selection)  # series 0: a link that was always free
        self._series: dict[tuple[int, int], int] = {}
        self._loaded_at: dict[tuple[int, int], int] = {}
        self._samples = 0
        self._last = np.ones(sensors.places)
        self._last_links: dict[tuple[int, int], float] = {}

    def _catch_up(self, now: float) -> None:
        """Take in the samples up to `now`."""
        newest = self.sensors.sample_index(now) + 1
        if newest <= self._samples:
            return
        readings = self.sensors.readings(self._samples, newest)
        self._last = readings[-1]
        if self.belief == "forecast":
            self._cpu.update(readings)
            for sample in range(self._samples, newest):
                self._take_links(self.sensors.links(sample), sample)
        else:
            self._last_links = _as_dict(self.sensors.links(newest - 1))
        self._samples = newest

    def _take_links(self, readings: LinkReadings, sample: int) -> None:
        """Update the series of every known link; begin those now first loaded."""
        loaded = _as_dict(readings)
        fresh = [link for link in loaded if link not in self._series]
        for link in fresh:
            self._series[link] = len(self._series) + 1
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
        places = self._cpu.forecast() if self.belief == "forecast" else self._last
        if self.sensors.per == "processor":
            return places
        return np.repeat(places, load.processors_per_node)[: load.processors]

    def links(self, now: float) -> dict[tuple[int, int], float]:
        """Return the believed bandwidth of links that are not believed free (not the oracle's)."""
        if self.belief == "oracle":
            processors = np.arange(self.sensors.load.processors)
            rows = self.sensors.load.loaded_links(processors, now, now)
            return {(int(row[2]), int(row[3])): float(row[4]) for row in rows}
        self._catch_up(now)
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
