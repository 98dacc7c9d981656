"""What a policy believes of the work that malleable jobs have left, and of their curves."""

import numpy as np

from predictors.base import FloatArray
from sim.view import Run, View

_TABLED = 1 << 14
"""Largest count up to which a job's whole believed curve is kept."""


class Beliefs:
    """Believed work and relative runtimes, read off the predictor and kept until it changes.

    Where the predictor has no curve for a job, its work counts in
    processor-seconds: the requested time on the requested processors, at
    perfect speedup.

    Parameters
    ----------
    view : View

    Attributes
    ----------
    tables : dict of int to numpy.ndarray
        What `table` returned, as long as it holds.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        self._serial: dict[int, float] = {}
        self.tables: dict[int, FloatArray] = {}

    def refresh(self) -> None:
        """Forget what the predictor says differently now."""
        view = self.view
        if view.revised:
            application = view.application
            for kept in (self._serial, self.tables):
                for job in [job for job in kept if application[job] in view.revised]:
                    del kept[job]

    def forget(self, job: int) -> None:
        """Forget a job that has ended."""
        self._serial.pop(job, None)
        self.tables.pop(job, None)

    def serial(self, job: int) -> float:
        """Return the believed T(1) in seconds."""
        known = self._serial.get(job)
        if known is None:
            view = self.view
            curve = view.curve(job, np.array([1]))
            if curve is None:
                known = view.requested_time[job] * view.requested_processors[job]
            else:
                known = float(curve[0])
            self._serial[job] = known
        return known

    def table(self, job: int) -> FloatArray:
        """Return the believed T(n)/T(1) by n, from 0 (infinite) to the job's largest count."""
        table = self.tables.get(job)
        if table is None:
            counts = np.arange(1, self.view.extremes(job)[1] + 1)
            table = np.empty(counts.size + 1)
            table[0] = np.inf
            table[1:] = self.view.stretch_factors(job, 1, counts)
            self.tables[job] = table
        return table

    def relative(self, job: int, processors: int) -> float:
        """Return the believed T(n)/T(1)."""
        table = self.tables.get(job)
        if table is not None:
            return table.item(processors)
        if processors == 1:
            return 1.0
        if self.view.extremes(job)[1] <= _TABLED:
            return self.table(job).item(processors)
        return self.view.stretch_factor(job, 1, processors)

    def work_left(self, run: Run) -> float:
        """Return the believed serial seconds that a run still has to do."""
        return self.view.seconds_left(run) / self.relative(run.job, run.processors)

    def seconds_left(self, run: Run, processors: int) -> float:
        """Return the believed seconds of progress left if a run held so many processors."""
        seconds = self.view.seconds_left(run)
        if processors == run.processors:
            return seconds
        job = run.job
        return seconds * self.relative(job, processors) / self.relative(job, run.processors)
