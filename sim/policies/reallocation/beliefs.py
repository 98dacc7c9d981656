"""The malleable jobs on the machine, and what a reallocation rule knows of each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.state.machine_state import Run
from sim.state.view import View

Found = TypeVar("Found")

TABLED = 1 << 14
"""Largest count up to which a job's whole believed curve is kept."""


@compiled(forceinline=True)
def seconds_on(seconds: float, before: float, after: float) -> float:
    """Return what is left of a job on another count, by its believed T(n)/T(1) on both."""
    return seconds * after / before


@dataclass(frozen=True)
class Members:
    """The malleable jobs on the machine: those that run, oldest first, then those that start.

    Attributes
    ----------
    job : list of int
    run : list of (Run or None), length n
        None for a job that starts now.
    held : numpy.ndarray of int, shape (n,)
        0 for a job that starts now.
    least, largest : numpy.ndarray of int, shape (n,)
        What each may hold now.
    """

    job: list[int]
    run: list[Run | None]
    held: IntArray
    least: IntArray
    largest: IntArray

    def __len__(self) -> int:
        return len(self.job)

    def joined_by(self, jobs: Mapping[int, int], view: View) -> "Members":
        """Return these, then jobs that hold nothing yet, with the least that each may hold."""
        least = np.array([*jobs.values()], np.int64)
        largest = np.array([view.extremes(job)[1] for job in jobs], np.int64)
        return Members(
            [*self.job, *jobs],
            [*self.run, *(None for _ in jobs)],
            np.concatenate([self.held, np.zeros_like(least)]),
            np.concatenate([self.least, least]),
            np.concatenate([self.largest, np.maximum(largest, least)]),
        )


class BelievedCurves:
    """Believed work and relative runtimes, read off the predictor and kept until it changes.

    Where the predictor has no curve for a job, its work counts in
    processor-seconds: the requested time on the requested processors, at
    perfect speedup.

    Parameters
    ----------
    view : View

    Attributes
    ----------
    notes : dict of int to Any
        What a rule that remembers has noted of a job; forgotten with the job.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        self._known: dict[int, dict[str, Any]] = {}
        self.notes: dict[int, Any] = {}

    def refresh(self) -> None:
        """Forget what the predictor says differently now."""
        if revised := self.view.changes.revised:
            application = self.view.jobs.application
            self._known = {
                job: known for job, known in self._known.items() if application[job] not in revised
            }

    def forget(self, job: int) -> None:
        """Forget a job that has ended."""
        self._known.pop(job, None)
        self.notes.pop(job, None)

    def keep(self, job: int, what: str, read: Callable[[int], Found]) -> Found:
        """Return something of a job, which is read once until beliefs about it change."""
        known = self._known.setdefault(job, {})
        if what not in known:
            known[what] = read(job)
        found: Found = known[what]
        return found

    def serial(self, job: int) -> float:
        """Return the believed T(1) in seconds."""
        return self.keep(job, "serial", self._read_serial)

    def _read_serial(self, job: int) -> float:
        view = self.view
        curve = view.curve(job, np.array([1]))
        if curve is None:
            return view.requested_time[job] * view.requested_processors[job]
        return float(curve[0])

    def table(self, job: int) -> FloatArray:
        """Return the believed T(n)/T(1) by n, from 0 (infinite) to the job's largest count."""
        return self.keep(job, "table", self._read_table)

    def _read_table(self, job: int) -> FloatArray:
        counts = np.arange(1, self.view.extremes(job)[1] + 1)
        return np.append(np.inf, self.view.stretch_factors(job, 1, counts))

    def has_table(self, job: int) -> bool:
        """Say whether a job's whole curve was read."""
        return "table" in self._known.get(job, ())

    def request(self, job: int) -> int:
        """Return the request of a job for which the predictor has no curve, else 0."""
        has_curve = self.keep(job, "has_curve", self.view.predictor.has_curve)
        return 0 if has_curve else self.view.requested_processors[job]

    def read_off(self, job: int, reading: Callable[["BelievedCurves", int], Found]) -> Found:
        """Return what a rule reads off a job's table, kept as long as the table holds.

        Parameters
        ----------
        job : int
        reading : callable
            Believed curves and job to what the rule needs; one for a run.
        """
        return self.keep(job, "reading", partial(reading, self))

    def relative(self, job: int, processors: int) -> float:
        """Return the believed T(n)/T(1)."""
        if self.has_table(job):
            return self.table(job).item(processors)
        if processors == 1:
            return 1.0
        if self.view.extremes(job)[1] <= TABLED:
            return self.table(job).item(processors)
        return self.view.stretch_factors(job, 1, np.array([processors])).item()

    def work_left(self, members: Members) -> FloatArray:
        """Return the believed serial seconds that each member still has to do, shape (n,)."""
        seconds_left, relative = self.view.seconds_left, self.relative
        return np.array(
            [
                self.serial(job)
                if run is None
                else seconds_on(seconds_left(run), relative(job, run.processors), 1.0)
                for job, run in zip(members.job, members.run, strict=True)
            ]
        )

    def seconds_left(self, run: Run, processors: int) -> float:
        """Return the believed seconds of progress left if a run held so many processors."""
        seconds = self.view.seconds_left(run)
        if processors == run.processors:
            return seconds
        job = run.job
        before, after = self.relative(job, run.processors), self.relative(job, processors)
        return seconds_on(seconds, before, after)
