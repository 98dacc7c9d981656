"""What is believed of the load that a job will meet, on given processors or before it has any."""

import numpy as np

from predictors.under_load.load_aware import Parts
from predictors.under_load.observed_load import LoadForm
from sim.background.kernels import FloatArray, IntArray
from sim.background.load_beliefs import LoadBeliefs
from sim.background.load_sensors import RunSamples
from sim.background.prospect import Prospect
from sim.background.set_loads import EffectiveLoad, LeastAverage, SetLoad, TrueLoad

SURE = 100 * 86400.0
"""Seconds of true load that an oracle looks at; a longer run goes on at the pace so far."""


def _pace(computation: float, communication: float, seen: RunSamples, form: LoadForm) -> float:
    """Return the average share of a job that was done a second, by samples of its load."""
    if form == "effective":
        cpu, left = (each.min(axis=1, initial=1.0) for each in seen)
        return float((1.0 / (computation / cpu + communication / left)).mean())
    cpu, left = (each.mean(axis=0).min(initial=1.0) for each in seen)
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

    def _of(self, form: LoadForm) -> SetLoad:
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
        rest = Parts(
            *(np.array([seconds]) for seconds in (0.0, computation * left, communication * left))
        )
        return self.runtime(rest, processors, form)

    def expected(
        self, counts: IntArray, horizon: FloatArray, form: LoadForm = "effective"
    ) -> tuple[FloatArray, FloatArray]:
        """Return CPU and bandwidth that a job will meet that has no processors yet.

        Parameters
        ----------
        counts : numpy.ndarray of int, shape (n,)
        horizon : numpy.ndarray of float, shape (n,)
            How long it would run at each count, seconds.
        form : {"effective", "min_avg_avail", "min_avail"}
            What is meant by the load of several processors.
        """
        return self._of(form).expected(counts, horizon)

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
