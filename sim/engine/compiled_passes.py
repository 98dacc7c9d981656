"""Compiled passes of a run: what they need of Python is asked, told and made room for here."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray, RuntimePredictor, VisibleJobs
from predictors.compiling import direct
from predictors.in_loop.oracle import foresees
from predictors.in_loop.wrapper import has_curves
from sim.engine.loop import advance, bind
from sim.policies.allocation.rigid import Request
from sim.policies.allocation.sa import SmallestTurnaround
from sim.policies.backfill import conservative
from sim.policies.backfill import easy as backfill_easy
from sim.policies.backfill.conservative import nothing_kept
from sim.policies.backfill.easy import RULE, EasyScheduler
from sim.policies.base import CONSERVATIVE, OPEN, SHARING, QueueKeeper
from sim.policies.molding.scheduler import OpenScheduler
from sim.policies.passes import by_job
from sim.policies.passes.offers import OfferedCounts
from sim.policies.passes.open_passes import CLOSED
from sim.policies.passes.plan import (
    admit,
    choose,
    choose_by_reservations,
    choose_nothing,
    is_refuted,
    make_plan,
    must_ask,
    revise,
)
from sim.policies.passes.sharing import EqualShares, TrueRuntimes, sharing_of
from sim.policies.reallocation.rule import ReallocatingScheduler
from sim.state.calendar import Calendar, set_limits
from sim.state.columns import Explanations
from sim.state.decisions import Preferences
from sim.state.feasible_counts import FeasibleCounts
from sim.state.machine_state import MachineState
from sim.state.processors import held_ranges
from sim.state.records import AskedOnce, FewWords, Records, Stretches, WholeRuns
from sim.state.run_state import idle_state
from sim.state.run_steps import next_event_time
from sim.state.shown import ShownJobs
from sim.state.view import LEAST_BELIEF, View
from sim.state.waiting_queue import WaitingQueue, places_in, tables_of


class Books(Protocol):
    """When what really happens."""

    calendar: Calendar


class Replay(Protocol):
    """What is asked of the engine.

    Attributes
    ----------
    state : MachineState
    view : View
    predictor : RuntimePredictor
    preferences : Preferences
    jobs : VisibleJobs
        All jobs.
    counts : FeasibleCounts
        Of all jobs.
    shown : ShownJobs
        What policy and predictor see of them.
    books : Books
    submit : numpy.ndarray of float, shape (n,), seconds
    kills : bool
        Whether runs end at the limits of their jobs.
    work : TrueRuntimes
    """

    state: MachineState
    view: View
    predictor: RuntimePredictor
    preferences: Preferences
    jobs: VisibleJobs
    counts: FeasibleCounts
    shown: ShownJobs
    submit: FloatArray
    kills: bool

    @property
    def work(self) -> TrueRuntimes: ...  # noqa: D102

    @property
    def books(self) -> Books: ...  # noqa: D102

    def learn(
        self,
        job: int,
        processors: int,
        runtime: float,
        now: float,
        more: Mapping[str, Any],
        measured: Mapping[str, float],
    ) -> None:
        """Tell the predictor of a run."""


_advance, _next_event_time = direct(advance), direct(next_event_time)
TOGETHER = 65_536
"""Jobs whose counts to choose from are put down together."""
STATES = "completed", "killed"


class CompiledPasses:
    """The passes of an engine's run in which every decision and event is compiled.

    A predictor that learns is told of each run as it ends, and asked as jobs choose; one that
    does not is asked for all beliefs at once, if no job chooses twice.

    Parameters
    ----------
    engine : Replay
        About to begin; its jobs are taken.
    scheduler : QueueKeeper or ReallocatingScheduler
        The engine's, of compiled passes.
    """

    def __init__(self, engine: Replay, scheduler: QueueKeeper | ReallocatingScheduler) -> None:
        rule = scheduler.compiled
        assert rule is not None
        self._engine, self._rule, self._allocation = engine, rule, scheduler.allocation
        self._state = engine.state
        self._learns, self._explained = engine.predictor.learns, 0
        self._explanations = Explanations()
        easy = scheduler if isinstance(scheduler, EasyScheduler) else None
        anew = None if easy is None else easy.anew
        self._deep = easy is not None and easy.reservations > 1
        view, processors = engine.view, engine.view.processors
        rigid = isinstance(self._allocation, Request)
        turnaround = self._allocation if isinstance(self._allocation, SmallestTurnaround) else None
        chooses = turnaround is not None or (not rigid and bool(anew))
        self._asks = self._learns or not foresees(engine.predictor)
        self._asks |= anew is not None and chooses
        # Jobs to come stand here, so it is not the state that a view leads to.
        self.state = idle_state(view.processors, len(engine.submit), engine.state.tables.found.size)
        self.calendar = engine.books.calendar
        self.state.processors[:] = engine.jobs.requested_processors
        if engine.kills:
            set_limits(self.calendar, engine.jobs.requested_time.astype(float))
        jobs = len(engine.submit)
        holes = 256 if rule in (CONSERVATIVE, OPEN) or chooses or self._deep else 1
        self._shares = EqualShares(view, engine.predictor, engine.work)
        queue = scheduler.queue if isinstance(scheduler, QueueKeeper) else WaitingQueue()
        if rule == SHARING:
            engine.shown.arrive(range(jobs))
            sharing = self._shares.enter(self.state, self.calendar)
        else:
            sharing = sharing_of(self.calendar, 0, 0, 0)
        self.plan = make_plan(
            queue=queue.tables,
            easy=np.zeros(1, RULE) if easy is None else easy.rule,
            revised=np.zeros(0, np.int64),
            beliefs=np.zeros(0),
            instants=nothing_kept().instants,
            placed=np.zeros((0, 0)),
            times=np.zeros(holes),
            free=np.full(holes, processors),
            span=np.array([0, 1]),
            offers=np.zeros((5 if rule == OPEN else 3, jobs), np.int64),
            counts=np.zeros(0, np.int64),
            choices=np.zeros((2, 0)),
            margin=0.0 if turnaround is None else float(turnaround.margin),
            most_area=(np.inf, np.inf) if turnaround is None else turnaround.most_area,
            anew=float(anew.factor) if anew is not None and chooses else np.inf,
            open=scheduler.plan(jobs) if isinstance(scheduler, OpenScheduler) else CLOSED,
            sharing=sharing,
            asks=self._asks,
            ended=np.zeros((2, jobs if self._learns else 0), np.int64),
            application=engine.jobs.application[: jobs if self._learns else 0],
            told=np.zeros(1, np.int64),
        )
        self.rule = bind(self.state, self.plan, **self._functions(rule, chooses, anew is not None))
        self._offered = OfferedCounts(
            scheduler, view, engine.work, engine.counts, self.calendar, engine.jobs
        )
        if not self._asks:
            self._take_beliefs(np.arange(jobs))

    def _functions(self, rule: int, chooses: bool, anew: bool) -> dict[str, Callable[..., Any]]:
        """Return the functions of a rule, which are those of `sim.engine.loop.Rule`."""
        if rule in (OPEN, SHARING):
            return {
                "must_ask": by_job.never_ask,
                "prepare": by_job.prepare,
                "choose": choose_nothing,
                "admit": by_job.admit,
                "decide": by_job.decide_counts if rule == OPEN else by_job.decide_shares,
            }
        is_rigid = isinstance(self._allocation, Request)
        settles = choose_nothing if is_rigid and not self._asks else choose
        if rule == CONSERVATIVE:
            return {
                "must_ask": must_ask,
                "prepare": conservative.prepare,
                "choose": settles,
                "admit": conservative.admit,
                "decide": conservative.decide,
            }
        return {
            "must_ask": must_ask,
            "prepare": backfill_easy.prepare_anew if anew else backfill_easy.prepare,
            "choose": choose_by_reservations if chooses else settles,
            "admit": admit,
            "decide": backfill_easy.decide_deep if self._deep else backfill_easy.decide,
        }

    def _take_beliefs(self, jobs: IntArray) -> None:
        """Ask what is believed of all jobs, and what each may choose from."""
        state, engine = self.state, self._engine
        if self._rule == SHARING:
            return
        if isinstance(self._allocation, Request):
            state.belief[:] = self._beliefs(jobs, state.processors)
            self.calendar.runtime[:] = engine.work.runtimes_at(jobs, state.processors)
        else:
            engine.shown.arrive(jobs.tolist())
            for first in range(0, jobs.size, TOGETHER):
                self._offered.put(self.plan, jobs[first : first + TOGETHER], keep=True)

    def _beliefs(self, jobs: IntArray, processors: IntArray) -> FloatArray:
        """Return what is believed of jobs that run on what they request."""
        view, engine = self._engine.view, self._engine
        if not has_curves(engine.predictor):
            view._queries += len(jobs)
            return np.maximum(engine.jobs.requested_time[jobs], LEAST_BELIEF)
        engine.shown.arrive(jobs.tolist())
        pairs = zip(jobs.tolist(), processors.tolist(), strict=True)
        return np.array([view.belief(job, count) for job, count in pairs])

    @property
    def following(self) -> float:
        """When something happens next, seconds; infinity if nothing does."""
        following: float = _next_event_time(self.state, self.calendar)
        return following

    @property
    def ended(self) -> int:
        """How many jobs have ended."""
        return int(self.state.run["ended"].item())

    @property
    def over(self) -> NDArray[np.bool_]:
        """Which jobs they are."""
        run = self.state.run[0]
        over: NDArray[np.bool_] = self.state.waiting == 0
        over[run["arrived"] :] = False
        jobs, processors, *_ = tables_of(self.plan.queue)
        over[jobs[processors > 0]] = False
        over[self.calendar.event_job[: run["running"]]] = False
        return over

    def advance(self, instant: float) -> None:
        """Go through instants from this one on, each with its pass, up to a chance for Python."""
        pass_due = self.state.run["pass_due"]
        following = self._go_on()
        while pass_due[0]:
            self._state.now = following
            if self._learns:
                self._tell()
            choosing = self._choosing()
            if self._rule == SHARING:
                self._shares.answer(self.plan.sharing)
            elif len(choosing) == 1 and self._rule != OPEN:
                self._offered.put_one(self.plan, choosing[0])
            elif choosing:
                self._offered.put(self.plan, np.array(choosing))
            following = self._go_on()
            self._keep_beliefs(choosing)
        if following == np.inf and self._learns:
            self._tell()

    def _go_on(self) -> float:
        """Go on to the next instant that needs Python; return when it is."""
        return float(_advance(self.state, self.calendar, self.rule, self.plan))

    def _tell(self) -> None:
        """Tell the predictor who ended; plan with what it believes differently of who waits.

        Ask it what the beliefs rest on of those who started, before it is told of later ends.
        """
        state, engine, plan = self.state, self._engine, self.plan
        new = int(state.run["ended"].item() - plan.told[0])
        for job, before in plan.ended[:, :new].T.tolist():
            self._explain_started(before)
            processors = state.processors.item(job)
            start, end = state.start_time.item(job), self.calendar.end_time.item(job)
            if end > start and not state.killed.item(job):
                engine.learn(job, processors, end - start, end, {}, {})
            engine.view.forget([job])
            engine.shown.leave(job)
        plan.told[0] += new
        self._explain_started(state.run["started"].item())
        self._revise()

    def _revise(self) -> None:
        """Plan anew with who of those waiting is believed to run for another time than before."""
        state, view, revised = self.state, self._engine.view, self._engine.state.revised
        places, beliefs = [], []
        for place in places_in(self.plan.queue).tolist() if revised else ():
            job = tables_of(self.plan.queue)[0].item(place)
            if view.application[job] in revised:
                view.forget([job])
                belief = view.belief(job, state.processors.item(job))
                if belief != state.belief.item(job):
                    places.append(place)
                    beliefs.append(belief)
        revised.clear()
        if places:
            revise(self.plan, np.array(places, np.int64), np.array(beliefs))

    def _choosing(self) -> list[int]:
        """Return who chooses now: newcomers, and where a belief is refuted, all.

        Newcomers are seen from now on, where they were not foreseen.
        """
        run = self.state.run
        newcomers = list(range(run["newcomer"].item(), run["arrived"].item()))
        if self._asks and newcomers:
            self._engine.shown.arrive(newcomers)
        if run["expired_now"] and is_refuted(self.state, self.plan.anew):
            queue = self.plan.queue
            waiting: list[int] = tables_of(queue)[0][places_in(queue)].tolist()
            return waiting + newcomers
        return newcomers

    def _keep_beliefs(self, jobs: Sequence[int]) -> None:
        """Let the view keep what those who chose believe of their choice."""
        state, believe = self.state, self._engine.view.believe
        for job in jobs:
            believe(job, state.processors.item(job), state.belief.item(job))

    def _explain_started(self, until: int) -> None:
        """Ask what the beliefs rest on of those who started, up to this one of them."""
        done = self._explained
        if done < until:
            state, explain = self.state, self._engine.view.explain
            for job in state.start_order[done:until].tolist():
                self._explanations.add(explain(job, state.processors.item(job)))
            self._explained = until

    def records(self, predictor: RuntimePredictor, submit: FloatArray) -> Records:
        """Return what happened; runs and their stretches in the order of the starts."""
        state, engine, submitted = self.state, self._engine, len(submit)
        order = state.start_order.astype(np.min_scalar_type(-submitted))
        end, start, allocated = self.calendar.end_time, state.start_time, state.processors
        stretches: Stretches | WholeRuns
        if self._rule == SHARING:
            stretches = self._shares.stretches(self.plan.sharing, state, self.calendar)
            allocated = allocated.copy()
            allocated[stretches.job[::-1]] = stretches.processors[::-1]
        else:
            nodes = held_ranges(state, state.first_range[order])
            columns = {"start_time": start, "end_time": end, "processors": allocated}
            never = np.broadcast_to(np.int64(0), submitted)
            stretches = WholeRuns(columns, job=order, run=never, nodes=nodes)
        if not self._explanations:
            first = order.item(0)
            self._explanations.add(predictor.explain(first, allocated.item(first)))
        every, undecided = np.broadcast_to(np.True_, submitted), engine.preferences.undecided
        asked = AskedOnce(
            {"time": start, "nprocs": allocated, "predicted": state.belief},
            job=order,
            **self._explanations.columns(submitted),
            decided=~np.isin(order, list(undecided)) if undecided else every,
            final=every,
        )
        return Records(
            submit_time=submit,
            start_time=start,
            end_time=end,
            run_start=start,
            allocated=allocated,
            believed_runtime=state.belief,
            status=FewWords(STATES, state.killed),
            restarts=np.broadcast_to(np.int64(0), submitted),
            stretches=stretches,
            consultations=asked,
            counters={"starts": float(submitted)},
            processors=engine.view.processors,
        )
