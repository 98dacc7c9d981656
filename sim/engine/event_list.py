"""The books of a run: who comes, and what really happens to whom when; the engine's alone."""

from collections.abc import Collection

from predictors.base import FloatArray, RuntimePredictor
from predictors.compiling import direct
from sim.state import run_steps
from sim.state.calendar import blank_calendar, corrections_of
from sim.state.machine_state import MachineState, Run

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
    submit : numpy.ndarray of float, shape (n,), seconds
        When each job is submitted, ascending.
    dependent : collection of int
        Jobs that arrive when others have ended instead.
    requested_time : numpy.ndarray of float, shape (n,), seconds
        Up to which beliefs are corrected.
    predictor : RuntimePredictor, optional
        Whose beliefs these are.

    Attributes
    ----------
    calendar : Calendar
        When what really happens.
    """

    def __init__(
        self,
        state: MachineState,
        submit: FloatArray,
        dependent: Collection[int] = (),
        requested_time: FloatArray | float = 0.0,
        predictor: RuntimePredictor | None = None,
    ) -> None:
        self.state, self.submit, self._dependent = state, submit, dependent
        running = state.tables.holder_end.size
        self.calendar = blank_calendar(len(submit), running, corrections_of(predictor))
        self.calendar.submit_time[:] = submit
        self.calendar.requested_time[:] = requested_time

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

    def take_in(self) -> tuple[list[Run], list[Run], list[int]]:
        """Return whose run ended in this instant, whose belief expired, and who arrived.

        A belief that expires grows, which policies see after `see_moved`.
        """
        state = self.state
        ended, outlived, first, last, woken = state.tables.run[_HAPPENED].item()
        state.disturbed |= woken > 0
        arrived = [job for job in range(first, last) if job not in self._dependent]
        jobs = state.tables.expired_jobs[:outlived].tolist()
        return self._ended(ended), [state.running[job] for job in jobs], arrived

    @property
    def following(self) -> float:
        """When something happens next, seconds; infinity if nothing does."""
        return float(_next_event_time(self.state.tables, self.calendar))
