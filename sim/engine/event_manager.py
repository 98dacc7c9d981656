"""The books of a run: who comes, and what really happens to whom when; the engine's alone.

`CompiledRun` does the same where all passes of a run are compiled, and asks Python for what
they wait for.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors.base import FloatArray, RuntimePredictor
from predictors.compiling import direct, of_types
from sim.engine.loop import INSTANTS, advance, bind
from sim.engine.protocols import CompiledRule
from sim.engine.run_log import explained
from sim.state import run_steps
from sim.state.machine_state import MachineState, Run
from sim.state.processors import held_ranges
from sim.state.records import Allocations, Predictions, Records
from sim.state.run_state import RunState, idle_machine
from sim.state.run_steps import Calendar

_begin_run, _plan_end = direct(run_steps.begin_run), direct(run_steps.set_true_end)
_move_believed_end, _vacate = direct(run_steps.move_believed_end), direct(run_steps.vacate)
_process_ends = direct(run_steps.process_ends)
_next_event_time = direct(run_steps.next_event_time)
_HAPPENED = ["ended_now", "expired_now", "first_arrived", "arrived", "woken_now"]


class EventManager:
    """Lets runs begin and end in a state, and knows when the next of it happens.

    Parameters
    ----------
    state : MachineState
        What may be known of it.
    tables : RunState
        The same for compiled code; where jobs to come stand in it, no rule in Python looks at it.
    calendar : Calendar
        When what really happens.
    """

    def __init__(self, state: MachineState, tables: RunState, calendar: Calendar) -> None:
        self.state, self.tables, self.calendar = state, tables, calendar

    @property
    def next_event_time(self) -> float:
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
        bound = rule, self.calendar
        self._advance = partial(of_types(advance, *bound, 0.0, 0.0), *bound)
        self._pass_due = self.tables.scalars["pass_due"]

    def advance(self, instant: float, until: float) -> float:
        """Go through instants, up to a chance for Python; see `sim.engine.loop.advance`.

        Returns
        -------
        float
            When something happens next, seconds; infinity if nothing does.
        """
        following: float = self._advance(instant, until)
        while self._pass_due.item():
            self._answer(following)
            following = self._advance(-np.inf, until)
        return following

    # One thing at a time, as rules in Python decide it

    def begin(self, run: Run, end: float) -> None:
        """Let a job run on the processors that it was given, until then."""
        self.state.running[run.job] = run
        self.state.tables.belief[run.job] = run.believed_end - run.start
        _begin_run(self.state.tables, self.calendar, run.job, end, run.believed_end)

    def set_true_end(self, job: int, end: float) -> None:
        """Let a running job end at another time."""
        _plan_end(self.state.tables, self.calendar, job, end)

    def set_believed_end(self, run: Run, end: float) -> None:
        """Believe that a run ends at another time."""
        _move_believed_end(self.state.tables, self.calendar, run.job, end)
        self.state.show_moved_end(run)

    def vacate(self, run: Run) -> None:
        """Take a run off the machine before its end."""
        _vacate(self.state.tables, self.calendar, run.job)
        del self.state.running[run.job]
        self.state.ended.append(run)

    def end_runs(self, now: float) -> list[Run]:
        """Take off the runs that end now, in the order in which their ends were planned."""
        return self._ended(_process_ends(self.state.tables, self.calendar, now))

    def _ended(self, number: int) -> list[Run]:
        state = self.state
        over = [state.running.pop(job) for job in state.tables.ended_jobs[:number].tolist()]
        state.ended += over
        return over

    def take_in(self) -> tuple[list[Run], list[Run], range]:
        """Return whose run ended in this instant, whose belief expired, and who is submitted.

        A belief that expires grows, which policies see after `show_moved_end`.
        """
        state = self.state
        ended, outlived, first, last, woken = state.tables.scalars[_HAPPENED].item()
        state.disturbed |= woken > 0
        jobs = state.tables.expired_jobs[:outlived].tolist()
        return self._ended(ended), [state.running[job] for job in jobs], range(first, last)


BATCH = 1 << 19
"""Runtimes that are asked for together."""
STATUSES = np.array(["completed", "killed"], object)


class CompiledRun(EventManager):
    """Manages the events of a run in which compiled functions decide all starts and changes.

    Parameters
    ----------
    engine : sim.engine.engine.Engine
        About to begin; its jobs are taken.
    rule : CompiledRule
    """

    def __init__(self, engine: Any, rule: CompiledRule) -> None:
        self._engine, self._rule = engine, rule
        state, tables = engine.state, engine.state.tables
        if not rule.asks_at_arrivals:  # jobs to come stand in a state of their own
            tables = idle_machine(state.processors, state.jobs, tables.holder_end.size)
            tables.processors[:] = engine.jobs.requested_processors
        rule.begin(tables)
        super().__init__(engine.state, tables, engine.make_calendar(**self._known(tables)))
        self._tells = any(watcher.needs_passes for watcher in engine.watchers)
        if self._tells:  # no rule in Python looks at a state in which jobs to come stand
            engine.state.tables = tables
        else:
            tables.scalars["passes_per_return"] = INSTANTS
        self.bind(self._ask, rule.memory, **rule.functions)
        engine.event_manager = self

    def _known(self, tables: RunState) -> dict[str, Any]:
        """Return how long runs really take on what the rule may let jobs have, and may take."""
        engine, rule, known = self._engine, self._rule, dict[str, Any]()
        jobs = np.arange(len(engine.submit))
        if engine.kills:
            known["limit"] = engine.jobs.requested_time.astype(float)
        if rule.menu is not None:
            chosen, counts = rule.menu
            parts = [slice(k, k + BATCH) for k in range(0, chosen.size, BATCH)]
            runtimes = [engine.work.runtimes_at(chosen[part], counts[part]) for part in parts]
            known["menu_runtimes"] = np.concatenate(runtimes)
        elif not rule.asks_at_arrivals:
            known["runtime"] = engine.work.runtimes_at(jobs, tables.processors)
        if rule.changes_counts:
            more = engine.shown.more
            malleable = jobs[engine.malleable]
            known["by_count"] = engine.work.by_count(malleable, more["least"], more["largest"])
            known["done"], known["since"] = np.zeros((2, jobs.size))
        return known

    @property
    def ended(self) -> int:
        """How many jobs have ended."""
        return int(self.tables.scalars["ended"].item())

    @property
    def over(self) -> NDArray[np.bool_]:
        """Which jobs they are."""
        run = self.tables.scalars[0]
        over = np.zeros(self.tables.belief.size, np.bool_)
        over[self.tables.start_order[: run["started"]]] = True
        over[self.calendar.event_job[: run["running"]]] = False
        return over

    def tell_passed(self) -> None:
        """Tell whoever needs that that a pass was carried out."""
        if self._tells:
            engine = self._engine
            arrivals = self.tables.scalars[["now", "first_arrived", "arrived"]]
            engine.state.now, *arrived = arrivals.item()
            engine.shown.arrive(range(*arrived))
            engine.state.is_stale = True
            engine.tell_passed()

    def _ask(self, now: float) -> None:
        """Ask the rule for what the pass of this instant waits for."""
        self._engine.state.is_stale = self._rule.asks_at_arrivals
        self._engine.advance_to(now)
        self._rule.answer()

    def records(self, predictor: RuntimePredictor, submit: FloatArray) -> Records:
        """Return what happened; runs and their allocations in the order of the starts."""
        self._rule.finish()
        state, engine, submitted = self.tables, self._engine, len(submit)
        order = state.start_order.astype(np.min_scalar_type(-submitted))
        end, start, allocated = self.calendar.end_time, state.start_time, state.processors
        begun, first_run = start[order], np.broadcast_to(np.int64(0), submitted)
        allocations = self._rule.allocations(end)
        if allocations is None:
            nodes, held = held_ranges(state, state.first_range[order]), allocated[order]
            allocations = Allocations(order, first_run, begun, end[order], held, nodes)
        else:
            allocated = allocated.copy()
            allocated[allocations.job[::-1]] = allocations.processors[::-1]
            held = allocated[order]
        said = self._rule.explanations or [predictor.explain(order.item(0), held.item(0))]
        asked = Predictions(
            job=order,
            time=begun,
            nprocs=held,
            predicted=state.belief[order],
            **explained(said, submitted),
            chosen_by_curve=~np.isin(order, list(engine.preferences.kept_requests)),
            final=np.broadcast_to(np.True_, submitted),
        )
        return Records(
            submit_time=submit,
            start_time=start,
            end_time=end,
            run_start=start,
            allocated=allocated,
            believed_runtime=state.belief,
            status=STATUSES[self.calendar.killed.view(np.int8)].tolist(),
            restarts=first_run,
            allocations=allocations,
            predictions=asked,
            counters={"starts": float(submitted)},
            processors=engine.view.processors,
        )
