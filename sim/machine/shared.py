"""A machine that is not the jobs' alone: background load slows them down."""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from predictors.under_load.forecast import Selection
from sim.background.background import CPU_ROUNDS, NETWORK_ROUNDS, BackgroundLoad
from sim.background.load_beliefs import Belief, LoadBeliefs, LoadSensors
from sim.background.load_forecast import LoadForecast
from sim.background.models import ConstantLoad, LoadModel
from sim.errors import AT_LEAST_1_AND_FINITE, FINITE, POSITIVE_AND_FINITE, Bounds, check_choice
from sim.machine.base import Machine
from sim.state.processors import as_numbers
from sim.state.records import Ranges
from workloads.streams import Streams

MOST_SHARED = 100_000
"""Processors; each takes about 30 kB of load, samples and forecasts."""
MOST_SAMPLES = 1_000_000
"""Of the monitor before the first submit."""


@dataclass(eq=False)
class Shared(Machine):
    """A machine with background load on its processors and on the links between its nodes.

    A job progresses at the rate that its slowest processor and the most loaded
    link among its nodes allow. Processors serve one job at a time; the load
    comes from elsewhere and does not depend on the jobs.

    Parameters
    ----------
    processors, processors_per_node : int
    cpu, network : LoadModel or None
        Kinds of load; None: always free. By default the paper's.
    sample_every : float
        Seconds between the samples of the monitor.
    sample_per : {"processor", "node"}
        Whether it reads every processor, or an average a node.
    sample_noise : float
        Standard deviation of the logarithm of a reading.
    belief : {"forecast", "last", "oracle", "mean"}
        What predictor and policy take the coming load to be: a forecast from
        the samples, the last of them, the truth, or the average so far.
    selection : {"mae_50", "mse", "mae"}
        How the mixture of forecasters chooses.
    forget : float
        Seconds after which a link that stayed free is believed free again.
    history : float
        Seconds of load, and of samples of it, before `origin`.
    renew : float, optional
        Seconds between two predictions of a running job by a predictor that knows
        what load does to it; by default it is predicted at its start alone.
    streams : Streams, optional
        Random streams of the replication.
    origin : float
        The first submit time, seconds.

    Raises
    ------
    ConfigError
        If a figure is out of range.
    LoadFileError
        If recorded load cannot be played.

    Examples
    --------
    >>> from sim.background.models import ConstantLoad
    >>> machine = Shared(4, cpu=ConstantLoad(0.5), network=ConstantLoad(0.25))
    >>> machine.completion(100.0, 70.0, ((0, 1),), communication=1 / 7)
    260.0
    """

    processors: int
    processors_per_node: int = 1
    cpu: LoadModel | None = CPU_ROUNDS
    network: LoadModel | None = NETWORK_ROUNDS
    sample_every: float = 120.0
    sample_per: Literal["processor", "node"] = "processor"
    sample_noise: float = 0.0
    belief: Belief = "forecast"
    selection: Selection = "mae_50"
    forget: float = 6000.0
    history: float = 86400.0
    renew: float | None = None
    streams: Streams = field(default_factory=lambda: Streams(0))
    origin: float = 0.0
    splits_work = True

    def __post_init__(self) -> None:
        POSITIVE_AND_FINITE.check(sample_every=self.sample_every)
        FINITE.check(sample_noise=self.sample_noise)
        check_choice(("processor", "node"), sample_per=self.sample_per)
        words = f"a number of seconds, at least 0 and at most {MOST_SAMPLES:,} samples"
        longest = MOST_SAMPLES * self.sample_every
        Bounds(f"{words} of {self.sample_every:g} s", 0, longest).check(history=self.history)
        words = f"at most {MOST_SHARED:,} where load is simulated"
        Bounds(words, -np.inf, MOST_SHARED).check(**{"cluster.processors": self.processors})
        AT_LEAST_1_AND_FINITE.check_or_null(renew=self.renew)
        kinds, begin = (self.cpu, self.network), self.origin - self.history
        self._idle = all(kind in (None, ConstantLoad(1.0)) for kind in kinds)
        self.load = BackgroundLoad(
            self.processors, self.streams, *kinds, self.processors_per_node, begin
        )
        monitor = (self.sample_every, self.sample_per, self.sample_noise)
        self.sensors = LoadSensors(self.load, self.streams, *monitor)
        self.forecast()

    def forecast(self) -> LoadForecast:
        """Return what may be believed of the load, from the beginning of the samples on."""
        beliefs = LoadBeliefs(self.sensors, self.belief, self.selection, self.forget)
        return LoadForecast(beliefs, self.renew)

    def elsewhen(self) -> "Shared":
        """Return the same machine under load of the same kind at another time, measured as ever."""
        streams = Streams(self.streams.key("load.elsewhen") >> 1, 0)
        return replace(self, belief="forecast", history=0.0, origin=0.0, streams=streams)

    def completion(
        self, start: float, runtime: float, nodes: Ranges, communication: float = 0.0
    ) -> float:
        """Return when work of `runtime` seconds at full speed ends if it starts at `start`.

        Parameters
        ----------
        start, runtime : float
            Seconds.
        nodes : Ranges
            The processors held.
        communication : float
            Share of the work that is communication.
        """
        if self._idle:
            return start + runtime
        exchange = runtime * communication
        own = as_numbers(nodes)
        return self.load.advance(own, start, np.inf, 1.0, runtime - exchange, exchange)[0]

    def progress(
        self, start: float, end: float, nodes: Ranges, communication: float = 0.0
    ) -> float:
        """Return the work done from `start` to `end`, in seconds at full speed."""
        span = end - start
        if self._idle or span <= 0:
            return span
        own = as_numbers(nodes)
        rate = (1.0 - communication, communication)
        return span - self.load.advance(own, start, end, span, *rate)[1]

    def measured(self, nodes: Ranges, start: float, end: float) -> dict[str, float]:
        """Return what the monitor saw of the load of a run.

        Returns
        -------
        dict of str to float
            ``effective_cpu`` and ``effective_bandwidth``: the average over the run
            of the least among its processors and links, of the load itself for
            an oracle of load; ``available_cpu`` and ``available_bandwidth``: the
            least of their averages; the same with ``_at_start``: the least of
            the first sample; ``load_samples``: how many there were.
        """
        own = as_numbers(nodes)
        samples = self.sensors.during(own, start, end)
        values = {"load_samples": float(len(samples.cpu))}
        cpu = samples.cpu.min(axis=1, initial=1.0), samples.cpu.mean(axis=0)
        links = samples.lowest_link, samples.links
        for name, (least, average) in (("cpu", cpu), ("bandwidth", links)):
            values[f"effective_{name}"] = float(least.mean())
            values[f"available_{name}"] = float(average.min(initial=1.0))
            values[f"available_{name}_at_start"] = float(least[0])
        if self.belief == "oracle":
            true = self.load.effective(own, start, end)
            values["effective_cpu"], values["effective_bandwidth"] = true
        return values
