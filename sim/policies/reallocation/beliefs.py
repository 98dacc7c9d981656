"""What is believed of malleable jobs: by reallocation rules, and by backfilling, as they lend."""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled, direct, record
from sim.policies.reallocation.costs import CostModel
from sim.state.availability import BelievedEnds
from sim.state.decisions import Decision, Start
from sim.state.machine_state import Run
from sim.state.run_state import RunState, idle_machine
from sim.state.run_steps import hand_over_wakes, seconds_on
from sim.state.view import Changes, View

Found = TypeVar("Found")
Step = Callable[..., Any]
_hand_over_wakes = direct(hand_over_wakes)
_ROUNDING, _CLOCK_ROUNDING = 1e-9, 1e-13

TABLED = 1 << 14
"""Largest count up to which a job's whole believed curve is kept."""
SEARCH = record(
    phase=int, due=float, new_efficiency=float, last_efficiency=float, measured_on=int, wanted=int
)  # fmt: skip
"""Of a job whose count is searched by its efficiency: how far that has come; when to measure
next, seconds, and what is measured then; the last measurement that was taken in, and the count it
was made on, 0 before; the count that it would go on with if there were room, 0 if that is no
matter."""


@compiled
def equal_counts(largest: IntArray, total: int) -> IntArray:
    """Return equal shares of a total, at least 2 if a job may have as many."""
    return np.minimum(largest, max(total // largest.size, 2))


def readings_of(relative_time: Step, serial_time: Step, seconds_left: Step) -> tuple[Step, Step]:
    """Return what reads off beliefs how long a job has to run, and jobs' T(n)/T(1) to share by.

    Parameters
    ----------
    relative_time : callable
        What is known, job and count to its believed T(n)/T(1).
    serial_time, seconds_left : callable
        What is known and job to its believed T(1), and to what is left of it where it runs,
        seconds.

    Returns
    -------
    work_left : callable
        What is known, job, and what it holds, 0 if it starts now, to seconds on one processor.
    relative_times : callable
        What is known, jobs, the most that each may hold and what all may together to T(n)/T(1)
        of each on an equal share n.
    """

    def work_left(known: Any, job: int, held: int) -> float:
        if held == 0:
            return float(serial_time(known, job))
        return seconds_on(seconds_left(known, job), relative_time(known, job, held), 1.0)

    def relative_times(known: Any, jobs: IntArray, largest: IntArray, total: int) -> FloatArray:
        counts = equal_counts(largest, total)
        return np.array([relative_time(known, jobs[k], counts[k]) for k in range(len(jobs))])

    return work_left, relative_times


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
    searches : numpy.ndarray of SEARCH, shape (n,)
        If the rule goes by measurements: its searches, which move on; else empty.
    """

    job: list[int]
    run: list[Run | None]
    held: IntArray
    least: IntArray
    largest: IntArray
    searches: NDArray[Any] = field(default_factory=partial(np.zeros, 0, SEARCH))

    def __len__(self) -> int:
        return len(self.job)


class BelievedCurves:
    """Believed work and relative runtimes, read off the predictor and kept until it changes.

    Where the predictor has no curve for a job, its work counts in
    processor-seconds: the requested time on the requested processors, at
    perfect speedup.

    Parameters
    ----------
    view : View
    """

    def __init__(self, view: View) -> None:
        self.view = view
        self._known: dict[int, dict[str, Any]] = {}

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

    def cached(self, job: int, what: str, read: Callable[[int], Found]) -> Found:
        """Return something of a job, which is read once until beliefs about it change."""
        known = self._known.setdefault(job, {})
        if what not in known:
            known[what] = read(job)
        found: Found = known[what]
        return found

    def serial_time(self, job: int) -> float:
        """Return the believed T(1) in seconds."""
        return self.cached(job, "serial_time", self._read_serial_time)

    def _read_serial_time(self, job: int) -> float:
        view = self.view
        curve = view.curve(job, np.array([1]))
        if curve is None:
            return view.requested_time[job] * view.requested_processors[job]
        return float(curve[0])

    def table(self, job: int) -> FloatArray:
        """Return the believed T(n)/T(1) by n, from 0 (infinite) to the job's largest count."""
        return self.cached(job, "table", self._read_table)

    def _read_table(self, job: int) -> FloatArray:
        counts = np.arange(1, self.view.extremes(job)[1] + 1)
        return np.append(np.inf, self.view.runtime_ratios(job, 1, counts))

    def has_table(self, job: int) -> bool:
        """Say whether a job's whole curve was read."""
        return "table" in self._known.get(job, ())

    def fallback_request(self, job: int) -> int:
        """Return the request of a job for which the predictor has no curve, else 0."""
        has_curve = self.cached(job, "has_curve", self.view.predictor.has_curve)
        return 0 if has_curve else self.view.requested_processors[job]

    def read_off(self, job: int, reading: Callable[["BelievedCurves", int], Found]) -> Found:
        """Return what a rule reads off a job's table, kept as long as the table holds.

        Parameters
        ----------
        job : int
        reading : callable
            Believed curves and job to what the rule needs; one for a run.
        """
        return self.cached(job, "reading", partial(reading, self))

    def relative_time(self, job: int, processors: int) -> float:
        """Return the believed T(n)/T(1)."""
        if processors == 1:
            return 1.0
        if self.has_table(job) or self.view.extremes(job)[1] <= TABLED:
            return self.table(job).item(processors)
        return self.view.runtime_ratios(job, 1, np.array([processors])).item()

    def work_left(self, members: Members) -> FloatArray:
        """Return the believed serial seconds that each member still has to do, shape (n,)."""
        return np.array([*map(self._work_left, members.job, members.held.tolist())])

    def _left_of(self, job: int) -> float:
        return self.view.seconds_left(self.view.running[job])

    _work_left, relative_times = readings_of(relative_time, serial_time, _left_of)

    def seconds_left(self, run: Run, processors: int) -> float:
        """Return the believed seconds of progress left if a run held so many processors."""
        seconds = self.view.seconds_left(run)
        if processors == run.processors:
            return seconds
        job = run.job
        before, after = self.relative_time(job, run.processors), self.relative_time(job, processors)
        return seconds_on(seconds, before, after)


# What malleable jobs lend


def _margin(instant: float) -> float:
    """Return seconds that no rounding errors on the way to an instant add up to."""
    return _ROUNDING + _CLOCK_ROUNDING * abs(instant)


class LendingView(View):
    """A view in which malleable runs hold what they keep at least; the rest is only lent.

    What a run could give up counts as free, and its believed end is that of a
    run that does give it up now, at what that costs. A run that holds more and is
    believed to be no slower there ends no later. So what a backfilling rule
    promises on this view holds until

    - a belief grows: a run outlives its own, the predictor changes its mind, or a
      node fails. A run that holds n processors and outlives its belief by t is
      later by t times T(kept)/T(n), since its work is done on what it keeps;
    - a run pays for a change, or starts on more than it keeps and would pay for
      giving that up: nobody foresees what the rule will want;
    - a job starts that would keep less by now than it waits for, since the predictor
      changed its mind while it waited;
    - a run holds more than it keeps and is believed to be slower there, as its work
      on what it keeps gets less by less than the time that passes;
    - the rule shrinks jobs unasked or lets nobody start for a while (PDPA).

    In such a pass conservative backfilling places anew what no longer fits, and
    that alone may move later.

    Parameters
    ----------
    view : View
        The real one; everything but runs and free processors is shared with it.
    lent_ends : callable
        Says who holds processors until when.
    cost : CostModel
        Of starts.
    """

    def __init__(self, view: View, lent_ends: Step, cost: CostModel) -> None:
        self._state = state = copy(view._state)
        vars(self).update(vars(view) | {"_state": state, "changes": Changes(state)})
        self._real = view
        state.tables = idle_machine(state.processors, state.jobs, state.tables.holder_end.size + 1)
        self._lent_ends, self._cost, self._is_laid = lent_ends, cost, False
        self._shown: dict[int, tuple[float, int]] = {}
        self._tracks = self._keeps_otherwise = False

    @property
    def _ends(self) -> BelievedEnds:
        """Who holds processors, with what it keeps, and until when by belief."""
        self._lay()
        return super()._ends

    @property
    def _tables(self) -> RunState:
        """The state in which runs hold what they keep."""
        self._lay()
        return super()._tables

    def _lay(self) -> None:
        """Put down what runs keep, where nobody has asked for it in this pass."""
        if self._is_laid:
            return
        self._is_laid, tables, run = True, self._state.tables, self._state.tables.scalars
        ends = self._lent_ends()
        if self._tracks:
            ends = BelievedEnds.of([(self._shown_end(*row), *row[1:]) for row in ends.rows()])
        run["holders"], run["arrived"] = ends.end.size, self._real._tables.scalars["arrived"]
        tables.holder_end[: ends.end.size] = ends.end
        tables.holder_job[: ends.end.size] = ends.job
        tables.holder_processors[: ends.end.size] = ends.processors

    def take_in(self, arrived: Sequence[int], free: int) -> None:
        """Take in what has happened.

        Parameters
        ----------
        arrived : list of int
            Who may queue now, in queue order.
        free : int
            On how many processors they may start.
        """
        state = self._state
        state.now, state.arrived = self._real.now, [*arrived]
        state.tables.scalars[["now", "free"]] = state.now, free
        state.disturbed = True
        state.moved_ends, state.ended = {}, []
        state.outages_changed = self._tracks or self._real.changes.outages_changed
        self._is_laid = self._keeps_otherwise = False
        _hand_over_wakes(self._real._tables, state.tables)
        for run in self._real.ended:
            self._shown.pop(run.job, None)

    def belief(self, job: int, processors: int) -> float:
        """Return the believed runtime in seconds, with what a malleable job's start costs."""
        seconds = self._real.belief(job, processors)
        if not self.malleable[job]:
            return seconds
        seconds += self._cost.start(processors)
        return seconds + _margin(self.submit_time[job]) if self._tracks else seconds

    # For schedulers that remember reservations between passes

    def track(self) -> None:
        """Show ends to a scheduler that remembers reservations from one pass to the next.

        One that begins at the end of a malleable run would be lost if changes on the way there
        moved that end by a rounding error. So such a scheduler sees it late by a hair, and
        unmoved as long as the run is in time; and keeps in each pass what still fits.
        """
        self._tracks = True

    def expect(self, starts: Iterable[Decision]) -> None:
        """Take over for when it wants passes; note when those end that it starts, as it sees it."""
        _hand_over_wakes(self._state.tables, self._real._tables)
        for start in starts:
            if self._tracks and type(start) is Start:
                seconds = self.belief(start.job, start.processors)
                self._shown[start.job] = self.now + seconds, start.processors

    def _shown_end(self, end: float, job: int, kept: int) -> float:
        if job < 0 or not self.malleable[job]:
            return end
        shown, before = self._shown.get(job, (-np.inf, self._real.running[job].processors))
        self._keeps_otherwise |= kept != before
        margin = _margin(end)
        if not end <= shown <= end + 2.0 * margin:
            shown = end + margin
        self._shown[job] = shown, kept
        return shown
