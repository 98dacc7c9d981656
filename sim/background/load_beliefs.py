"""What may be believed of the load: a forecast, the last value, the average, or the truth."""

from dataclasses import InitVar, dataclass
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import direct
from predictors.under_load import forecast
from sim.background.background import LoadedLinks
from sim.background.load_sensors import LoadPast, LoadSensors
from sim.errors import POSITIVE, check_choice

LEAST_MEMORY = 1e-3
DROP_AT_ONCE = 8
"""So many links are forgotten together."""
TOGETHER = 32
"""Samples that are taken in together."""
NOWHERE = 0, 0
"""Of a link that has no series."""


class LinkMixture:
    """The mixture of forecasters for every link that was loaded of late, a series each.

    Its series begins as that of a link that was always free: as the first of all, which
    stays such a link's.

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
        self._unused: list[int] = []
        self._known: dict[int, tuple[int, int]] = {}
        self._samples = 0
        self._drop_after = forget

    def __len__(self) -> int:
        return len(self._known)

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
        for count in counts.tolist():
            for key in islice(read, count):
                _, place = known.pop(key, NOWHERE)
                if not place:
                    place = unused.pop() if unused else self._more()
                    begun.append(place)
                known[key] = sample, place
                places.append(place)
            if sample > self._drop_after:
                dropped += self._dropped(sample)
            sample += 1
        self._samples = sample
        self._series[begun] = self._series[0]
        values = np.ones((len(counts), len(self._series)))
        values[np.arange(len(counts)).repeat(counts), places] = available
        used = np.array([0, *[place for _, place in known.values()]])
        self._take(values, self._series, used, self._rule, values)
        self._unused += dropped

    def _more(self) -> int:
        """Make room for more series; return the place of one."""
        number = len(self._series)
        self._series = np.resize(self._series, number + 16 + number // 8)
        self._unused += range(number, len(self._series))
        return self._unused.pop()

    def _dropped(self, sample: int) -> list[int]:
        """Drop the links that are long free, if they are several; return their places."""
        least = sample - self._forget
        loaded_at, _ = next(islice(self._known.values(), DROP_AT_ONCE - 1, None), (sample, 0))
        if loaded_at >= least:
            self._drop_after = loaded_at + self._forget
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


@dataclass(eq=False)
class LoadBeliefs:
    """Believed availability of every processor and link, from the sensors alone.

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
    >>> beliefs.standing(600.0).cpu.tolist(), beliefs.met(600.0, np.array([0, 2])).bandwidth.present
    ([0.5, 0.5, 0.5], 0.25)
    """

    sensors: LoadSensors
    belief: Belief = "forecast"
    selection: InitVar[forecast.Selection] = "mae_50"
    forget: float = 6000.0

    def __post_init__(self, selection: forecast.Selection) -> None:
        check_choice(("forecast", "last", "oracle", "mean"), belief=self.belief)
        POSITIVE.check(forget=self.forget)
        sensors = self.sensors
        self._cpu = forecast.NwsMixture(sensors.places, selection)
        self._links = LinkMixture(selection, self.forget / sensors.every)
        self._past = LoadPast(sensors.places)
        self._links_loaded = 0
        self._links_lost = 0.0
        self._links_kept = 0
        self._samples = 0
        self._last_links: tuple[IntArray, FloatArray] = (np.zeros(0, np.int64), np.zeros(0))
        self._standing: Standing | None = None

    def _take_in(self, newest: int) -> None:
        """Take in the samples before that number."""
        readings = self.sensors.readings(self._samples, newest)
        if self.belief == "forecast":
            before = self._cpu.follow(readings)
        else:
            before = np.vstack((self._past.last, readings[:-1]))
        self._past.add(readings, before)
        self._take_links(newest)
        self._samples = newest
        self._standing = None

    def _take_links(self, newest: int) -> None:
        """Take in what the samples before that number say of the links."""
        found = self.sensors.links(self._samples, newest)
        self._past.add_links(found)
        nodes, latest = self.sensors.load.nodes, int(found.counts[-1])
        keys = found.keys(nodes)
        at_look = np.append(self._last_links[0], keys + nodes**2 * (found.looks() + 1))
        self._links_kept += len(set(at_look.tolist()).intersection((at_look + nodes**2).tolist()))
        self._links_lost = float(np.append(self._links_lost, 1.0 - found.available).cumsum()[-1])
        self._links_loaded += len(keys)
        self._last_links = keys[len(keys) - latest :], found.available[len(keys) - latest :]
        if self.belief == "forecast":
            self._links.take(found.counts, keys, found.available)

    def standing(self, now: float) -> Standing:
        """Return what is believed until the next sample."""
        newest = self.sensors.sample_index(now) + 1
        if newest > self._samples:
            self._take_in(newest)
        if self._standing is None:
            places, (keys, left) = self._past.last, self._last_links
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
                self._spread(places),
                self._spread(self._past.mean),
                tuple(map(self._spread, (*self._past.ordered, np.sort(places)))),
                LoadedLinks(np.array([len(keys)]), *np.divmod(keys, self.sensors.load.nodes), left),
                self._memory(self._past.correlation()),
                self._memory(kept),
                (loaded / max(self._samples, 1), rest),
                self._past.lost,
            )
        return self._standing

    def _memory(self, kept: float) -> float:
        """Return in how many seconds 1/e is left of what keeps such a share to the next sample."""
        if self.belief == "last":
            return -1.0
        return float(self.sensors.every / -np.log(max(kept, LEAST_MEMORY))) if kept < 1 else np.inf

    def _spread(self, places: FloatArray) -> FloatArray:
        """Return values of the sensors' places as values of the processors."""
        return places[self._places(np.arange(self.sensors.load.processors))]

    def _places(self, processors: IntArray) -> IntArray:
        """Return which of the sensors' places processors are read at."""
        if self.sensors.per == "processor":
            return processors
        return processors // self.sensors.load.processors_per_node

    def met(self, now: float, processors: IntArray) -> Met:
        """Return what is believed of the slowest of these processors, and of their links.

        The least of the forecasts is corrected by how far it was from the least of
        the readings on average.
        """
        standing, places = self.standing(now), self._places(processors)
        read, believed = self._past.least(places)
        usual, present = float(read.mean()), float(standing.places[places].min())
        inside = self.sensors.load.inside(processors)
        links = self._past.lowest_link(inside)
        left = float(links.mean())
        now_left = left if self.belief == "mean" else standing.links.least(inside)
        both = min(len(read), len(links))
        cpu = self._swing(usual, believed, present)
        return Met(cpu, Swing(left, now_left), read[-both:], links[-both:])

    def _swing(self, usual: float, believed: float, present: float) -> Swing:
        if self.belief == "mean":
            return Swing(usual, usual)
        if self.belief == "last":
            return Swing(usual, present)
        return Swing(usual, min(present * usual / believed, 1.0))

    def least_of_first(self, now: float, ranked: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return usual and present for the first processor of a ranking, the first two, ..."""
        standing, places = self.standing(now), self._places(ranked)
        read, believed = self._past.least_of_first(places)
        present = np.minimum.accumulate(standing.places[places])
        if self.belief == "mean":
            return read, read
        gap = read / believed if self.belief == "forecast" else 1.0
        return read, np.minimum(present * gap, 1.0)

    def least_of_random(self, now: float, weights: list[FloatArray]) -> list[Swing]:
        """Return what is believed of the slowest of processors drawn at random.

        Parameters
        ----------
        now : float
        weights : list of numpy.ndarray, shape (processors,)
            Of each number of them: how likely each rank, from the slowest on, is the lowest.
        """
        read, believed, present = self.standing(now).ordered
        return [
            self._swing(float(own @ read), float(own @ believed), float(own @ present))
            for own in weights
        ]
