"""What can be measured of a running job from the outside: instruments, with their noise."""

from collections.abc import Callable
from math import exp
from typing import NamedTuple

from predictors.base import FloatArray
from predictors.in_loop.oracle import normal_draw
from sim.state.machine_state import MachineState, Run


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
    The engine writes down a measurement of each running job on the count that it
    holds; once a policy has read it, there is another one at the next instant.

    Parameters
    ----------
    serial_time : numpy.ndarray of float, shape (n,), seconds
    runtime : callable
        Job index and count to the true runtime in seconds.
    state : MachineState
        Where measurements are written down.
    noise : SensorNoise
    """

    def __init__(
        self,
        serial_time: FloatArray,
        runtime: Callable[[int, int], float],
        state: MachineState,
        noise: SensorNoise,
    ) -> None:
        self._serial_time, self._runtime, self._state = serial_time, runtime, state
        self._key, self._spread = noise
        self._number: dict[int, int] = {}

    def measure(self, run: Run, anew: bool = False) -> None:
        """Write down how efficient a run is measured to be on what it holds.

        Parameters
        ----------
        run : Run
        anew : bool
            Whether this is another measurement than the last one of the job.
        """
        job, processors = run.job, run.processors
        number = self._number[job] = self._number.get(job, 0) + anew
        area = processors * self._runtime(job, processors)
        measured = float(self._serial_time[job]) / area if area > 0.0 else 1.0
        if self._spread > 0.0:
            measured *= exp(self._spread * normal_draw(self._key, job, number))
        self._state.efficiency[job] = measured

    def begin(self, run: Run) -> None:
        """Measure a run that begins; anew, if a former one of the job was read."""
        self.measure(run, anew=run.job in self._state.measured)
        self._state.measured.discard(run.job)

    def renew(self) -> None:
        """Measure again what a policy has read at an earlier instant."""
        read, running = self._state.measured, self._state.running
        for job in read & running.keys():
            self.measure(running[job], anew=True)
        read.difference_update(running)
