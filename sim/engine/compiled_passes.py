"""The passes of a run: the loop, and what is asked of Python where it stops."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors.base import FloatArray, RuntimePredictor
from predictors.compiling import direct
from sim.engine.loop import INSTANTS, NoRule, advance, always_ask, bind
from sim.engine.protocols import CompiledRule
from sim.state.calendar import let_counts_change, offer, set_limits
from sim.state.processors import held_ranges
from sim.state.records import Consultations, Records, Stretches
from sim.state.run_state import idle_state
from sim.state.run_steps import next_event_time
from sim.state.waiting_queue import WaitingQueue

_next_event_time = direct(next_event_time)
AT_ONCE = 1 << 19
"""Runtimes that are asked for together."""
STATUSES = np.array(["completed", "killed"], object)


class Passes:
    """The passes of an engine's run, as they are where a scheduler in Python makes them.

    Parameters
    ----------
    engine : sim.engine.engine.Engine
        About to begin.
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.state, self.calendar = engine.state.tables, engine.event_list.calendar
        self.state.run["passes_per_return"] = 1
        self._bind(NoRule(WaitingQueue().tables), must_ask=always_ask)

    def _bind(self, memory: Any, **functions: Any) -> None:
        """Let these functions decide."""
        rule: Any = bind(self.state, memory, **functions)
        self._tables = self.state, self.calendar, rule, memory
        self._advance = direct(advance)  # of this kind of memory
        self._pass_due = self.state.run["pass_due"]

    def advance(self, instant: float) -> None:
        """Go through instants from this one on, each with its pass, up to a chance for Python."""
        until = self._engine.clock.peek()
        following = self._advance(*self._tables, instant, until)
        while self._pass_due.item():
            self._answer(following)
            following = self._advance(*self._tables, -np.inf, until)

    def _answer(self, now: float) -> None:
        """Answer what the pass of this instant waits for: here it is made."""
        self._engine.take_in(now)


class CompiledPasses(Passes):
    """The passes of a run in which every decision and event is compiled.

    Parameters
    ----------
    engine : sim.engine.engine.Engine
        About to begin; its jobs are taken.
    rule : CompiledRule
    """

    def __init__(self, engine: Any, rule: CompiledRule) -> None:
        self._engine, self._rule = engine, rule
        self.state, self.calendar = engine.state.tables, engine.event_list.calendar
        if not rule.asks_at_arrivals:  # jobs to come stand in a state that no view leads to
            self.state = idle_state(
                engine.view.processors, len(engine.submit), self.state.found.size
            )
            self.state.processors[:] = engine.jobs.requested_processors
        if engine.kills:
            set_limits(self.calendar, engine.jobs.requested_time.astype(float))
        rule.begin(self.state)
        self._know_runtimes()
        self._tells = any(watcher.needs_passes for watcher in engine.watchers)
        self.state.run["passes_per_return"] = 1 if self._tells else INSTANTS
        if self._tells:  # no rule in Python looks at a state in which jobs to come stand
            engine.state.tables = self.state
        self._bind(rule.memory, **rule.functions)

    def _know_runtimes(self) -> None:
        """Put down how long runs really take on what the rule may let jobs have."""
        engine, rule, calendar = self._engine, self._rule, self.calendar
        jobs = np.arange(len(engine.submit))
        if rule.offered is not None:
            chosen, counts = rule.offered
            parts = [slice(k, k + AT_ONCE) for k in range(0, chosen.size, AT_ONCE)]
            runtimes = [engine.work.runtimes_at(chosen[part], counts[part]) for part in parts]
            offer(calendar, np.concatenate(runtimes))
        elif not rule.asks_at_arrivals:
            calendar.runtime[:] = engine.work.runtimes_at(jobs, self.state.processors)
        if rule.changes_counts:
            more = engine.shown.more
            malleable = jobs[engine.malleable]
            by_count = engine.work.by_count(malleable, more["least"], more["largest"])
            let_counts_change(calendar, by_count)

    @property
    def following(self) -> float:
        """When something happens next, seconds; infinity if nothing does."""
        return float(_next_event_time(self.state, self.calendar))

    @property
    def ended(self) -> int:
        """How many jobs have ended."""
        return int(self.state.run["ended"].item())

    @property
    def over(self) -> NDArray[np.bool_]:
        """Which jobs they are."""
        run = self.state.run[0]
        over = np.ones(self.state.belief.size, np.bool_)
        over[run["arrived"] :] = False
        over[self._rule.queued()] = False
        over[self.calendar.event_job[: run["running"]]] = False
        return over

    def advance(self, instant: float) -> None:
        """Do the same, and tell whoever needs that of each pass."""
        super().advance(instant)
        engine = self._engine
        if self.following == np.inf:
            self._rule.finish()
        if self._tells:
            engine.state.now, *arrived = self.state.run[["now", "newcomer", "arrived"]].item()
            engine.shown.arrive(range(*arrived))
            engine.state.is_stale = True
            engine.tell_passed()

    def _answer(self, now: float) -> None:
        """Answer what the pass of this instant waits for."""
        self._engine.state.is_stale = self._rule.asks_at_arrivals
        self._engine.advance_to(now)
        self._rule.answer()

    def records(self, predictor: RuntimePredictor, submit: FloatArray) -> Records:
        """Return what happened; runs and their stretches in the order of the starts."""
        state, engine, submitted = self.state, self._engine, len(submit)
        order = state.start_order.astype(np.min_scalar_type(-submitted))
        end, start, allocated = self.calendar.end_time, state.start_time, state.processors
        begun, first_run = start[order], np.broadcast_to(np.int64(0), submitted)
        stretches = self._rule.stretches(end)
        if stretches is None:
            nodes, held = held_ranges(state, state.first_range[order]), allocated[order]
            stretches = Stretches(order, first_run, begun, end[order], held, nodes)
        else:
            allocated = allocated.copy()
            allocated[stretches.job[::-1]] = stretches.processors[::-1]
            held = allocated[order]
        explanations = self._rule.explanations
        if not explanations:
            first = order.item(0)
            explanations.add(predictor.explain(first, allocated.item(first)))
        asked = Consultations(
            job=order,
            time=begun,
            nprocs=held,
            predicted=state.belief[order],
            **explanations.columns(submitted),
            decided=~np.isin(order, list(engine.preferences.undecided)),
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
            stretches=stretches,
            consultations=asked,
            counters={"starts": float(submitted)},
            processors=engine.view.processors,
        )
