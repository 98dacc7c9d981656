"""Compiled passes of a run: what they need of Python is asked, told and made room for here."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray, RuntimePredictor, VisibleJobs
from predictors.compiling import direct
from predictors.in_loop.oracle import foresees
from predictors.in_loop.wrapper import has_curves
from sim.policies.allocation.rigid import Request
from sim.policies.allocation.sa import SmallestTurnaround
from sim.policies.backfill.easy import EasyScheduler
from sim.policies.backfill.queue_search import BLOCK, summaries_of
from sim.policies.base import CONSERVATIVE, EASY, OPEN, SHARING, QueueKeeper
from sim.policies.molding.candidates import single_candidates
from sim.policies.molding.scheduler import OpenScheduler
from sim.policies.passes.equal_passes import has_room
from sim.policies.passes.instants import (
    advance,
    advance_open,
    advance_shares,
    breakpoints,
    no_news,
)
from sim.policies.passes.offers import OfferedCounts
from sim.policies.passes.open_passes import CLOSED, Offered, carried
from sim.policies.passes.queue_passes import Plan, Revision, is_refuted
from sim.policies.passes.sharing import NOBODY, EqualShares, TrueRuntimes
from sim.policies.reallocation.rule import ReallocatingScheduler
from sim.state.calendar import END, RUNTIME, corrections_of
from sim.state.columns import Explanations
from sim.state.decisions import Preferences
from sim.state.feasible_counts import FeasibleCounts
from sim.state.job_pieces import PIECE, JobPieces
from sim.state.machine_state import MachineState
from sim.state.records import Records
from sim.state.run_steps import next_instant
from sim.state.run_tables import (
    ARRIVED,
    BELIEF,
    ENDED,
    EXPIRED_NOW,
    HEAD,
    IN_TURN,
    KILLED,
    LATER,
    NEW,
    PROCESSORS,
    RANGES,
    ROOM,
    START,
    STARTED,
    TAKEN,
    WAITING,
    WAKES,
    Tables,
)
from sim.state.shown import ShownJobs
from sim.state.view import LEAST_BELIEF, View


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


_breakpoints, _has_room = direct(breakpoints), direct(has_room)
_next_instant = direct(next_instant)
NOTHING = Revision(np.zeros(0, np.int64), np.zeros(0))


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
        self._step = direct({OPEN: advance_open, SHARING: advance_shares}.get(rule, advance))
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
        self._pieces = JobPieces(
            engine.submit,
            engine.jobs.requested_processors,
            engine.jobs.requested_time,
            engine.kills,
            PIECE,
            corrections_of(engine.predictor),
        )
        self.tables, self.calendar = self._pieces.begin(processors)
        jobs = self._pieces.jobs.size
        holes = 256 if rule in (CONSERVATIVE, OPEN) or chooses or self._deep else 1
        self.plan = Plan(
            summaries=summaries_of(jobs if rule in (EASY, SHARING) else 0),
            soonest=np.full(jobs // BLOCK + 1, -np.inf),
            times=np.zeros(holes),
            free=np.full(holes, processors),
            span=np.array([0, 1]),
            offers=np.zeros((5 if rule == OPEN else 3, jobs), np.int64),
            counts=np.zeros(0, np.int64),
            choices=np.zeros((3, 0)),
            margin=0.0 if turnaround is None else float(turnaround.margin),
            most_area=(np.inf, np.inf) if turnaround is None else turnaround.most_area,
            anew=float(anew.factor) if anew is not None and chooses else np.inf,
            reservations=1 if easy is None else easy.reservations,
            shortest=easy is not None and easy.shortest,
            single=single_candidates(jobs if self._deep else 0),
            open=scheduler.plan(jobs) if isinstance(scheduler, OpenScheduler) else CLOSED,
            sharing=NOBODY,
        )
        self._offered = OfferedCounts(scheduler, view, engine.work, engine.counts, engine.jobs)
        self._shares = EqualShares(view, engine.predictor, engine.work)
        self._take_beliefs()

    def _take_beliefs(self) -> None:
        """Ask what is believed of the jobs that entered last, and what each may choose from."""
        tables, engine, first = self.tables, self._engine, self._pieces.fresh
        every, jobs = self._pieces.jobs, self._pieces.jobs[first:]
        self._news = no_news(engine.jobs.application[every if self._learns else every[:0]], tables)
        if self._asks:
            return
        if self._rule == SHARING:
            engine.shown.arrive(jobs.tolist())
            sharing = self._shares.enter(tables, self.calendar, self.plan.sharing, self._pieces)
            self.plan = self.plan._replace(sharing=sharing)
        elif isinstance(self._allocation, Request):
            wanted = tables.numbers[PROCESSORS, first:]
            tables.seconds[BELIEF, first:] = self._beliefs(jobs, wanted)
            self.calendar.seconds[RUNTIME, first:] = engine.work.runtimes_at(jobs, wanted)
        else:
            engine.shown.arrive(jobs.tolist())
            self.plan = self._offered.put(self.plan, range(first, first + jobs.size), jobs)

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
        following: float = _next_instant(self.tables, self.calendar)
        return following

    @property
    def ended(self) -> int:
        """How many jobs have ended."""
        return self.tables.counters.item(ENDED)

    @property
    def over(self) -> NDArray[np.bool_]:
        """Which jobs they are."""
        return self._pieces.over(self.tables, self.calendar)

    def advance(self, instant: float) -> None:
        """Go through instants from this one on, each with its pass, up to a chance for Python."""
        self._make_room(instant)
        counters = self.tables.counters
        following = self._go_on(NOTHING)
        while counters[TAKEN]:
            self._state.now = following
            revision = self._tell() if self._learns else NOTHING
            choosing = self._choosing()
            if self._rule == SHARING:
                self.plan = self.plan._replace(sharing=self._shares.answer(self.plan.sharing))
            elif len(choosing) == 1 and self._rule != OPEN:
                job = self._pieces.jobs.item(choosing[0])
                self.plan = self._offered.put_one(self.plan, choosing[0], job)
            elif choosing:
                jobs = self._pieces.jobs[choosing]
                self.plan = self._offered.put(self.plan, choosing, jobs)
            following = self._go_on(revision)
            self._keep_beliefs(choosing)
        if following == np.inf and self._learns:
            self._tell()

    def _go_on(self, revision: Revision) -> float:
        """Go on to the next instant that needs Python; return when it is."""
        step, rule, news = self._step, self._rule, self._news
        if rule in (OPEN, SHARING):
            return float(step(self.tables, self.calendar, self.plan))
        return float(step(self.tables, self.calendar, self.plan, rule, revision, self._asks, news))

    def _tell(self) -> Revision:
        """Tell the predictor who ended; return what it believes differently of who waits.

        Ask it what the beliefs rest on of those who started, before it is told of later ends.
        """
        tables, engine, news = self.tables, self._engine, self._news
        new = int(tables.counters[ENDED] - news.told[0])
        for one, before in news.ended[:, :new].T.tolist():
            self._explain_started(before)
            job, processors = self._pieces.jobs.item(one), tables.numbers.item(PROCESSORS, one)
            start, end = tables.seconds.item(START, one), self.calendar.seconds.item(END, one)
            if end > start and not tables.numbers.item(KILLED, one):
                engine.learn(job, processors, end - start, end, {}, {})
            engine.view.forget([job])
            engine.shown.leave(job)
        news.told[0] += new
        self._explain_started(tables.counters.item(STARTED))
        return self._revised()

    def _revised(self) -> Revision:
        """Return who of those waiting is believed to run for another time than before."""
        tables, view, revised = self.tables, self._engine.view, self._state.revised
        columns, beliefs, counters = [], [], tables.counters
        if not revised or counters[HEAD] == counters[NEW]:
            revised.clear()
            return NOTHING
        for one in self._waiting():
            job = self._pieces.jobs.item(one)
            if view.application[job] in revised:
                view.forget([job])
                belief = view.belief(job, tables.numbers.item(PROCESSORS, one))
                if belief != tables.seconds.item(BELIEF, one):
                    columns.append(one)
                    beliefs.append(belief)
        revised.clear()
        return Revision(np.array(columns, np.int64), np.array(beliefs)) if columns else NOTHING

    def _waiting(self) -> list[int]:
        """Return the columns of those who waited before this instant, in queue order."""
        counters = self.tables.counters
        head = counters.item(HEAD)
        places = self.tables.numbers[WAITING, head : counters.item(NEW)].nonzero()[0]
        waiting: list[int] = (places + head).tolist()
        return waiting

    def _choosing(self) -> list[int]:
        """Return the columns of who chooses now: newcomers, and where a belief is refuted, all.

        Newcomers are seen from now on, where they were not foreseen.
        """
        tables, counters = self.tables, self.tables.counters
        newcomers = list(range(counters.item(NEW), counters.item(ARRIVED)))
        if self._asks and newcomers:
            self._engine.shown.arrive(self._pieces.jobs[newcomers].tolist())
        if counters[EXPIRED_NOW] and is_refuted(tables, self.plan.anew):
            return self._waiting() + newcomers
        return newcomers

    def _keep_beliefs(self, columns: Sequence[int]) -> None:
        """Let the view keep what those who chose believe of their choice."""
        tables, believe, jobs = self.tables, self._engine.view.believe, self._pieces.jobs
        for one in columns:
            processors = tables.numbers.item(PROCESSORS, one)
            believe(jobs.item(one), processors, tables.seconds.item(BELIEF, one))

    def _explain_started(self, until: int) -> None:
        """Ask what the beliefs rest on of those who started, up to this one of them."""
        done = self._explained
        if done < until:
            numbers, explain = self.tables.numbers, self._engine.view.explain
            for one in numbers[IN_TURN, done:until].tolist():
                job = self._pieces.jobs.item(one)
                self._explanations.add(explain(job, numbers.item(PROCESSORS, one)))
            self._explained = until

    def _make_room(self, instant: float) -> None:
        """Let tables grow in which the next instant might not find room."""
        if instant == self.tables.instant[LATER]:
            self._take_in_more()
        self.tables, self.plan = self._with_room(instant)

    def _take_in_more(self) -> None:
        """Let the next jobs enter, and those leave that have ended."""
        if self._learns:
            self._tell()  # nobody waits of whom it could believe otherwise now
        if self._rule == SHARING:
            self._shares.write_down(self.plan.sharing, self.tables, self.calendar, self._pieces)
        self.tables, self.calendar = self._pieces.enter(self.tables, self.calendar)
        plan, jobs, kept = self.plan, self._pieces.jobs, self._pieces.kept
        before, choose = Offered(plan.offers, plan.counts, plan.choices), self._rule == OPEN
        offered, stays_open = carried(before, plan.open, kept if choose else kept[:0], jobs)
        self.plan = plan._replace(
            summaries=summaries_of(jobs.size if self._rule in (EASY, SHARING) else 0),
            soonest=np.full(jobs.size // BLOCK + 1, -np.inf),
            single=single_candidates(jobs.size if self._deep else 0),
            offers=offered.spans,
            counts=offered.counts,
            choices=offered.choices,
            open=stays_open,
        )
        self._explained = self.tables.counters.item(STARTED)
        self._take_beliefs()

    def records(self, predictor: RuntimePredictor, submit: FloatArray) -> Records:
        """Return what happened; runs and their stretches in the order of the starts."""
        found, engine, tables = self._pieces, self._engine, self.tables
        found.note(tables, self.calendar)
        if self._rule == SHARING:
            stretches = self._shares.stretches(self.plan.sharing, tables, self.calendar, found)
        else:
            stretches = found.stretches()
        if not self._explanations:
            first = found.in_turn.item(0)
            self._explanations.add(predictor.explain(first, found.allocated.item(first)))
        grounds = self._explanations.columns(len(found.in_turn))
        asked = found.consultations(grounds, engine.preferences.undecided)
        return found.records(stretches, asked, submit, engine.view.processors)

    def _with_room(self, instant: float) -> tuple[Tables, Plan]:
        """Return tables and plan with room for all that may happen at an instant."""
        tables, plan = self.tables, self.plan
        if tables.ranges.shape[1] - tables.counters[RANGES] < tables.counters[ROOM]:
            tables = tables._replace(ranges=np.tile(tables.ranges, 2))
        if tables.wakes.size == tables.counters[WAKES]:
            tables = tables._replace(wakes=np.tile(tables.wakes, 2))
        if not _has_room(plan.sharing):
            plan = plan._replace(sharing=plan.sharing.doubled())
        more = _breakpoints(tables, self.calendar, instant) if plan.times.size > 1 else 0
        if plan.times.size < more:
            times, free = np.pad(plan.times, (0, 2 * more)), np.pad(plan.free, (0, 2 * more))
            plan = plan._replace(times=times, free=free)
        return tables, plan
