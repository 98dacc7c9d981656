"""How far a running simulation is; and a guard that gives up where no job ends any more."""

import contextlib
import datetime
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console

from predictors.cli.terminal import Display
from sim.engine.watcher import RunSoFar, Watcher
from sim.errors import SimError
from sim.results.sentences import NOBODY
from sim.results.steady_state import Figures
from sim.state.decisions import Decision
from workloads.base import BoolArray, GroundTruth, Trace


def simulated_date(
    seconds: float, start: datetime.datetime | None, *, to_the_second: bool = False
) -> str:
    """Return an instant of the simulation as a date, or as day and time without a start.

    Examples
    --------
    >>> simulated_date(90061.0, None), simulated_date(90061.0, None, to_the_second=True)
    ('day 2 01:01', 'day 2 01:01:01')
    """
    more = ":%S" if to_the_second else ""
    if start is not None:
        with contextlib.suppress(OverflowError):  # beyond the calendar: days must do
            return (start + datetime.timedelta(seconds=seconds)).strftime(f"%Y-%m-%d %H:%M{more}")
    days, rest = divmod(int(max(seconds, 0.0)), 86400)
    shown = f"day {days + 1} {rest // 3600:02d}:{rest % 3600 // 60:02d}"
    return f"{shown}:{rest % 60:02d}" if to_the_second else shown


@dataclass(frozen=True)
class Names:
    """What parts of a run are called: presets, or classes of objects."""

    policy: str
    predictor: str
    workload: str

    @property
    def asked(self) -> str:
        """The predictor, if the policy asks one."""
        return "" if self.policy == NOBODY else self.predictor

    def title(self, summary: Figures) -> str:
        """Return policy, predictor if one is asked, workload, jobs and processors of a picture."""
        by = f" by {self.asked}" if self.asked else ""
        of = f"{summary['jobs']:,} jobs on {summary['processors']:,} processors"
        return f"{self.policy}{by}, {self.workload}: {of}"


def is_seen(messages: Console) -> bool:
    """Return whether messages come to a terminal or a notebook."""
    return messages.is_terminal or messages.is_jupyter


def beginning(trace: Trace) -> tuple[float, datetime.datetime | None]:
    """Return a trace's first submit, in seconds on its clock and as a date (UTC) if known."""
    origin = float(trace.jobs["submit_time"].iloc[0])
    if trace.epoch is None:
        return origin, None
    try:
        return origin, datetime.datetime.fromtimestamp(trace.epoch + origin, datetime.UTC)
    except (OverflowError, ValueError):
        return origin, None


class ProgressWatcher(Watcher):
    """Shows how far a simulation is, now and then, once it has lasted for a second.

    Parameters
    ----------
    display : Display
    trace : Trace
        Whose jobs' work is processors times runtime, as requested and recorded: how much of it
        has ended says what time is left.
    """

    def __init__(self, display: Display, trace: Trace) -> None:
        self._display = display
        self._origin, self._start = beginning(trace)
        work = trace.jobs["requested_processors"] * trace.jobs["reference_runtime"]
        self._work = work.to_numpy(np.float64)

    def is_due(self) -> bool:
        """Return whether it is time to show something."""
        return self._display.is_due()

    def progressed(self, now: float, queued: int, over: BoolArray) -> None:
        """Show date, jobs and queue, and what time is left."""
        ended, to_come = float(self._work[over].sum()), float(self._work[~over].sum())
        date = simulated_date(now - self._origin, self._start)
        text = f"{date} · {over.sum():,} of {over.size:,} jobs · {queued:,} waiting"
        self._display.show(text, ended / max(ended + to_come, 1.0))


TIMES_LONGEST = 100.0
"""By default a run is given up after so many times the longest job's runtime on one processor."""
DAY = 86400.0
INTERRUPTIONS_A_JOB, EVENTS_AN_INTERRUPTION = 100, 100
"""How often jobs may be interrupted for each that ends; what any interruption beyond weighs."""
CHANGE = (
    "change what keeps it from ending (overrun, cluster.mtbf, cluster.max_restarts, "
    "evolving.resubmit, the policy), or raise"
)


class ProgressGuard(Watcher):
    """Ends a run in which for too long no job was completed although some run or wait.

    A run in which jobs end now and then, but are interrupted far more often, is ended too.

    Parameters
    ----------
    events : int
        Events without a completed job before the run is given up; or a hundredth as many
        interruptions of jobs, beyond a hundred for each that has ended.
    seconds : float or None
        Simulated time without a completed job; None: `TIMES_LONGEST` the longest runtime.
    trace : Trace
    truth : GroundTruth
    """

    def __init__(
        self, events: int, seconds: float | None, trace: Trace, truth: GroundTruth
    ) -> None:
        longest = np.nanmax(truth.serial_time, initial=DAY)
        longest = max(longest, trace.jobs["reference_runtime"].max())
        self._most, self._longest = events, seconds or TIMES_LONGEST * float(longest)
        self._job_id = trace.jobs["job_id"].array
        self._ended, self._events, self._since = -1, 0, 0.0

    def decided(self, seen: RunSoFar, decisions: Sequence[Decision]) -> None:
        """Look at how long ago the last job ended, and end a run where that is too long."""
        view, ended = seen.view, seen.log.not_failed
        now, happened = view.now, int(view._tables.scalars["events"].item())
        in_vain = seen.log.interruptions - INTERRUPTIONS_A_JOB * ended
        vain = in_vain * EVENTS_AN_INTERRUPTION > self._most
        events, spent = happened - self._events, now - self._since
        many = vain or events > self._most
        if ended == self._ended and not many and spent <= self._longest:
            return
        left: list[int] = []
        if vain or ended == self._ended:  # all jobs at every end would be quadratic
            came = (view.jobs.requested_processors > 0) & (np.asarray(view.submit_time) < now)
            left = np.flatnonzero(came & ~seen.log.over).tolist()
        if left:
            job = max(left, key=lambda one: seen.log.restarts[one])
            key, value = ("events", self._most) if many else ("time", self._longest)
            known = f"no job was completed for {events:,} events and {spent:.6g} simulated seconds"
            if vain:
                times = seen.log.interruptions
                known = f"jobs were interrupted {times:,} times and {ended:,} were completed"
            runs, again = job in view.running, seen.log.restarts[job]
            count = view.running[job].processors if runs else view.requested_processors[job]
            state = f"{'runs on' if runs else 'waits for'} {count} processor{'s' * (count != 1)}"
            state += f" and was restarted {again:,} time{'s' * (again != 1)}"
            state = f"job {self._job_id[job]} {state}"
            raise SimError(f"{known}: {state}; {CHANGE} sim.stall_{key}={value:.15g}")
        self._ended, self._events, self._since = ended, happened, now
