"""What can be measured of a running job from the outside: instruments, with their noise."""

from collections.abc import Callable
from functools import cached_property
from math import exp
from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray
from predictors.in_loop.oracle import normal_draw, normal_draws
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

    def measure(
        self, job: int, processors: int, runtime: float | None = None, anew: bool = False
    ) -> None:
        """Write down how efficient a run is measured to be on what it holds.

        Parameters
        ----------
        job, processors : int
        runtime : float, optional
            The true runtime there, in seconds, where that is at hand.
        anew : bool
            Whether this is another measurement than the last one of the job.
        """
        number = self._number[job] = self._number.get(job, 0) + anew
        area = processors * (self._runtime(job, processors) if runtime is None else runtime)
        measured = self._serial_time.item(job) / area if area > 0.0 else 1.0
        if self._spread > 0.0:
            draw = normal_draw(self._key, job, number) if number else self._first_draws[job]
            measured *= exp(self._spread * draw)
        self._state.efficiency[job] = measured

    @cached_property
    def _first_draws(self) -> FloatArray:
        """Of each job, the draw of its first measurement."""
        jobs = np.arange(self._serial_time.size, dtype=np.uint64)
        return normal_draws(self._key, jobs, np.zeros(jobs.size, np.int64))

    def begin(self, run: Run) -> None:
        """Measure a run that begins; anew, if a former one of the job was read."""
        self.measure(run.job, run.processors, anew=run.job in self._state.measured)
        self._state.measured.discard(run.job)

    def renew(self) -> None:
        """Measure again what a policy has read at an earlier instant."""
        self._state.name_runs()
        read, running = self._state.measured, self._state.running
        for job in read & running.keys():
            self.measure(job, running[job].processors, anew=True)
        read.difference_update(running)
