"""What can be measured of a running job from the outside: instruments, with their noise."""

from collections.abc import Callable
from math import exp
from typing import NamedTuple

from predictors.base import FloatArray
from predictors.in_loop.oracle import normal_draw
from sim.errors import PolicyError


class SensorNoise(NamedTuple):
    """Errors of measurements: no policy has a say in them.

    Attributes
    ----------
    key : int
        64-bit key of the draws.
    spread : float
        Standard deviation of the logarithm of an error, at least 0.
    """

    key: int = 0
    spread: float = 0.05


USUAL_NOISE = SensorNoise()


class EfficiencySensor:
    """Measures how efficiently the running jobs use the processors that they hold.

    It stands for a run-time system that times the iterations of the running
    application on few and on the present processors (Corbalan, Martorell &
    Labarta, TPDS 2005). A measurement is the true efficiency times a log-normal
    error, drawn by job and number of the measurement, whatever the schedule.
    Nothing can be learnt of a job that does not run, nor of another count than
    the one it holds, and at one instant there is one measurement: who asks
    again gets the same answer.

    Parameters
    ----------
    serial_time : numpy.ndarray of float, shape (n,), seconds
    runtime : callable
        Job index and count to the true runtime in seconds.
    held : callable
        Job index to the processors that it holds by the engine's own books, 0 while it
        does not run: what a policy writes into its view has no say.
    now : callable
        Returns the present instant, seconds.
    noise : SensorNoise

    Examples
    --------
    >>> import numpy as np
    >>> truth = (np.array([100.0]), lambda job, count: 40.0)
    >>> EfficiencySensor(*truth, lambda job: 5, lambda: 10.0, SensorNoise(1, 0.0))(0)
    0.5
    """

    def __init__(
        self,
        serial_time: FloatArray,
        runtime: Callable[[int, int], float],
        held: Callable[[int], int],
        now: Callable[[], float],
        noise: SensorNoise,
    ) -> None:
        self._serial_time = serial_time
        self._runtime = runtime
        self._held = held
        self._now = now
        self._key, self._spread = noise
        self._last: dict[int, tuple[float, int, float]] = {}

    def __call__(self, job: int) -> float:
        """Return the efficiency of a running job as measured now.

        Raises
        ------
        PolicyError
            If the job does not run.
        """
        processors, now = self._held(job), self._now()
        if not processors:
            raise PolicyError(
                f"the efficiency of job index {job} was asked for, which does not run: "
                "only running jobs can be measured"
            )
        instant, number, measured = self._last.get(job, (-1.0, -1, 0.0))
        if number < 0 or instant != now:
            number += 1
            measured = float(self._serial_time[job])
            measured /= processors * self._runtime(job, processors)
            if self._spread > 0.0:
                measured *= exp(self._spread * normal_draw(self._key, job, number))
            self._last[job] = now, number, measured
        return measured
