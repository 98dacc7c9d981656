"""What can be measured of a running job from the outside: instruments, with their noise."""

from collections.abc import Callable
from math import exp

from predictors.base import FloatArray
from predictors.oracle import normal_draw
from sim.view import Run


class EfficiencySensor:
    """Measures how efficiently a run uses the processors that it holds.

    It stands for a run-time system that times the iterations of the running
    application on few and on the present processors (Corbalan, Martorell &
    Labarta, TPDS 2005). A measurement is the true efficiency times a log-normal
    error, drawn by job and number of the measurement, whatever the schedule.

    Parameters
    ----------
    serial_time : numpy.ndarray of float, shape (n,), seconds
    runtime : callable
        Job index and count to the true runtime in seconds.
    key : int
        64-bit key of the errors.

    Examples
    --------
    >>> import numpy as np
    >>> sensor = EfficiencySensor(np.array([100.0]), lambda job, count: 40.0, key=1)
    >>> sensor(Run(0, 0, ((0, 4),), 5, 0.0, 40.0), 0.0, 0)
    0.5
    """

    def __init__(
        self, serial_time: FloatArray, runtime: Callable[[int, int], float], key: int
    ) -> None:
        self._serial_time = serial_time
        self._runtime = runtime
        self._key = key

    def __call__(self, run: Run, noise: float, number: int) -> float:
        """Return the efficiency as measured now.

        Parameters
        ----------
        run : Run
        noise : float
            Standard deviation of the logarithm of the error, at least 0.
        number : int
            0 for the first measurement of the job, one more each time.
        """
        serial = float(self._serial_time[run.job])
        true = serial / (run.processors * self._runtime(run.job, run.processors))
        if noise == 0.0:
            return true
        return true * exp(noise * normal_draw(self._key, run.job, number))
