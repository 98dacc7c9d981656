"""The books of a run: who comes, and what really happens to whom when; the engine's alone."""

from collections.abc import Callable
from typing import Any

import numpy as np

from predictors.compiling import direct
from sim.engine.loop import advance, bind
from sim.state import run_steps
from sim.state.calendar import Calendar
from sim.state.machine_state import MachineState, Run
from sim.state.run_state import State

_begin_run, _plan_end = direct(run_steps.begin_run), direct(run_steps.set_true_end)
_move_believed_end, _take_off = direct(run_steps.move_believed_end), direct(run_steps.take_off)
_process_ends = direct(run_steps.process_ends)
_next_event_time = direct(run_steps.next_event_time)
_HAPPENED = ["ended_now", "expired_now", "newcomer", "arrived", "woken_now"]


class EventList:
    """Lets runs begin and end in a state, and knows when the next of it happens.

    Parameters
    ----------
    state : MachineState
        What may be known of it.
    tables : State
        The same for compiled code; where jobs to come stand in it, no view leads there.
    calendar : Calendar
        When what really happens.
    """

    def __init__(self, state: MachineState, tables: State, calendar: Calendar) -> None:
        self.state, self.tables, self.calendar = state, tables, calendar

    @property
    def following(self) -> float:
        """When something happens next, seconds; infinity if nothing does."""
        return float(_next_event_time(self.tables, self.calendar))

    # Instants, each with its pass

    def bind(self, answer: Callable[[float], None], memory: Any, **functions: Any) -> None:
        """Let these functions decide; see `sim.engine.loop.bind`.

        Parameters
        ----------
        answer : callable
            Answers what the pass of an instant waits for.
        memory : object
        **functions : callable
        """
        self._answer = answer
        rule: Any = bind(self.tables, memory, **functions)
        self._bound = self.tables, self.calendar, rule, memory
        self._advance = direct(advance)  # of this kind of memory
        self._pass_due = self.tables.run["pass_due"]

    def advance(self, instant: float, until: float) -> None:
        """Go through instants, up to a chance for Python; see `sim.engine.loop.advance`."""
        following = self._advance(*self._bound, instant, until)
        while self._pass_due.item():
            self._answer(following)
            following = self._advance(*self._bound, -np.inf, until)

    # One thing at a time, as rules in Python decide it

    def begin(self, run: Run, end: float) -> None:
        """Let a job run on the processors that it was given, until then."""
        self.state.running[run.job] = run
        self.state.tables.belief[run.job] = run.believed_end - run.start
        _begin_run(self.state.tables, self.calendar, run.job, end, run.believed_end)

    def set_true_end(self, job: int, end: float) -> None:
        """Let a running job end at another time."""
        _plan_end(self.state.tables, self.calendar, job, end)

    def end_of(self, job: int) -> float:
        """Return when a running job ends."""
        return self.calendar.end_time.item(job)

    def is_killed(self, job: int) -> bool:
        """Say whether a job is, or will be, killed at its limit."""
        return self.calendar.killed.item(job)

    def set_believed_end(self, run: Run, end: float) -> None:
        """Believe that a run ends at another time."""
        _move_believed_end(self.state.tables, self.calendar, run.job, end)
        self.state.see_moved(run)

    def take_off(self, run: Run) -> None:
        """Take a run off the machine before its end."""
        _take_off(self.state.tables, self.calendar, run.job)
        del self.state.running[run.job]
        self.state.ended.append(run)

    def end_runs(self, now: float) -> list[Run]:
        """Take off the runs that end now, in the order in which their ends were planned."""
        return self._ended(_process_ends(self.state.tables, self.calendar, now))

    def _ended(self, number: int) -> list[Run]:
        if not number:
            return []
        state = self.state
        over = [state.running.pop(job) for job in state.tables.ended_jobs[:number].tolist()]
        state.ended += over
        return over

    def take_in(self) -> tuple[list[Run], list[Run], range]:
        """Return whose run ended in this instant, whose belief expired, and who is submitted.

        A belief that expires grows, which policies see after `see_moved`.
        """
        state = self.state
        ended, outlived, first, last, woken = state.tables.run[_HAPPENED].item()
        state.disturbed |= woken > 0
        jobs = state.tables.expired_jobs[:outlived].tolist()
        return self._ended(ended), [state.running[job] for job in jobs], range(first, last)
