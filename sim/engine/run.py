"""A run, by the engine in Python or in compiled steps of which Python sees what it needs."""

from collections.abc import Sequence

import numpy as np

from predictors.base import RuntimePredictor
from predictors.compiling import Direct
from sim.engine.clock import collect_after, collection_deferred
from sim.engine.engine import Engine
from sim.engine.instants import (
    advance,
    advance_open,
    advance_shares,
    breakpoints,
    no_news,
    put_offer,
)
from sim.engine.logbook import Explanations
from sim.engine.setup import Setup
from sim.engine.work import RuntimesAhead
from sim.machine.base import Dedicated
from sim.policies.allocation.rigid import Request
from sim.policies.allocation.sa import NO_MARGIN, SmallestTurnaround, offers_of
from sim.policies.backfill.easy import EasyScheduler
from sim.policies.backfill.outlook import is_refuted
from sim.policies.backfill.passes import (
    CONSERVATIVE,
    EASY,
    OPEN,
    SHARING,
    SIZE,
    Plan,
    Revision,
)
from sim.policies.backfill.queue_search import BLOCK, summaries_of
from sim.policies.base import QueueKeeper
from sim.policies.molding.open_passes import CLOSED, Offered, carried
from sim.policies.molding.scheduler import OpenScheduler
from sim.policies.reallocation.equal_passes import has_room
from sim.policies.reallocation.rule import ReallocatingScheduler
from sim.policies.reallocation.sharing import NOBODY, EqualShares
from sim.state.job_pieces import PIECE, JobPieces
from sim.state.records import Records
from sim.state.run_tables import (
    ARRIVED,
    BELIEF,
    END,
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
    RUNTIME,
    START,
    STARTED,
    TAKEN,
    WAITING,
    WAKES,
    Tables,
)


def simulate(setup: Setup) -> Records:
    """Replay a trace and return what happened.

    Raises
    ------
    SimError
        If a job can never run on the machine.
    PolicyError
        If the policy decides what cannot be done, or leaves jobs waiting for ever.

    Examples
    --------
    >>> import sim, workloads
    >>> from predictors.in_loop.user_estimate import UserEstimate
    >>> from workloads.shapes.family import NoMoldability
    >>> streams = workloads.Streams(seed=1, replication=0)
    >>> trace = workloads.Lublin(jobs=20).trace(streams, 64)
    >>> truth = workloads.build_truth(trace, NoMoldability(), streams, 64)
    >>> policy = sim.Policy(sim.FirstComeFirstServed(), sim.Easy(), sim.Request())
    >>> setup = sim.Setup(trace, truth, policy, UserEstimate(), sim.Dedicated(64))
    >>> records = sim.simulate(setup)
    >>> bool((records.start_time >= trace.jobs["submit_time"]).all())
    True
    """
    with collection_deferred():
        engine = Engine(setup)
        engine.compiled = compiled_passes(engine)
        records = engine.run()
        del engine
    collect_after(len(setup.trace.jobs))
    return records


def compiled_passes(engine: Engine) -> "CompiledPasses | None":
    """Return the compiled passes of an engine that is about to begin.

    None if its scheduler's passes are not compiled, or something in the run needs Python.
    """
    scheduler = engine.scheduler
    if not isinstance(scheduler, QueueKeeper | ReallocatingScheduler) or scheduler.compiled is None:
        return None
    needs_python = (
        type(engine.machine) is not Dedicated
        or engine.trace.feedback
        or engine.view.preferences.past_errors is not None
        or not engine.view.curve_is_belief
        or any(watcher.checks for watcher in engine.watchers)
    )
    may_kill = type(scheduler.allocation) is Request and scheduler.compiled != SHARING
    if needs_python or (engine.kills and not may_kill):
        return None
    return CompiledPasses(engine, scheduler)


_put_offer = Direct(put_offer)
_breakpoints, _has_room = Direct(breakpoints), Direct(has_room)
NOTHING = Revision(np.zeros(0, np.int64), np.zeros(0))


class CompiledPasses:
    """The passes of an engine's run in which every decision and event is compiled.

    A predictor that learns is told of each run as it ends, and asked as jobs choose; one that
    does not is asked for all beliefs at once, if no job chooses twice.

    Parameters
    ----------
    engine : Engine
        About to begin; its jobs are taken.
    scheduler : QueueKeeper or ReallocatingScheduler
        The engine's, of compiled passes.
    """

    def __init__(self, engine: Engine, scheduler: QueueKeeper | ReallocatingScheduler) -> None:
        rule = scheduler.compiled
        assert rule is not None
        self._engine, self._rule, self._allocation = engine, rule, scheduler.allocation
        self._state = engine.state
        self._learns, self._explained = engine.predictor.learns, 0
        self._step = Direct({OPEN: advance_open, SHARING: advance_shares}.get(rule, advance))
        self._explanations = Explanations()
        if isinstance(scheduler, OpenScheduler):
            self._candidates = scheduler.candidates.of
        anew = scheduler.anew if isinstance(scheduler, EasyScheduler) else None
        view, processors = engine.view, engine.machine.processors
        rigid = isinstance(self._allocation, Request)
        chooses = isinstance(self._allocation, SmallestTurnaround) or (not rigid and bool(anew))
        self._asks = self._learns or (anew is not None and chooses)
        submit = engine.trace.jobs["submit_time"].to_numpy()
        self._pieces = JobPieces(
            submit,
            view.jobs.requested_processors,
            view.jobs.requested_time,
            engine.kills,
            PIECE,
        )
        self._state.tables = self._pieces.begin(processors)
        jobs = self._pieces.jobs.size
        holes = 256 if rule in (CONSERVATIVE, OPEN) or chooses else 1
        fitted = chooses and view.fitted
        self.plan = Plan(
            summaries=summaries_of(jobs if rule in (EASY, SHARING) else 0),
            soonest=np.full(jobs // BLOCK + 1, -np.inf),
            times=np.zeros(holes),
            free=np.full(holes, processors),
            span=np.array([0, 1]),
            offers=np.zeros((5 if rule == OPEN else 3, jobs), np.int64),
            counts=np.zeros(0, np.int64),
            choices=np.zeros((2, 0)),
            margin=float(getattr(self._allocation, "margin", NO_MARGIN)) if fitted else NO_MARGIN,
            anew=float(anew.factor) if anew is not None and chooses else np.inf,
            open=scheduler.plan(jobs) if isinstance(scheduler, OpenScheduler) else CLOSED,
            sharing=NOBODY,
        )
        tries_all = getattr(self._allocation, "counts", None) == "all"
        menu = view.counts if tries_all else view.powers_of_two
        self._ahead = RuntimesAhead(engine.work, menu, len(submit))
        self._shares = EqualShares(view, engine.predictor, engine.work)
        self._take_beliefs()

    def _take_beliefs(self) -> None:
        """Ask what is believed of the jobs that entered last, and what each may choose from."""
        tables, view, first = self._state.tables, self._engine.view, self._pieces.fresh
        every, jobs = self._pieces.jobs, self._pieces.jobs[first:]
        self._news = no_news(view.jobs.application[every if self._learns else every[:0]], tables)
        if self._asks:
            return
        if self._rule == SHARING:
            sharing = self._shares.enter(tables, self.plan.sharing, self._pieces)
            self.plan = self.plan._replace(sharing=sharing)
        elif isinstance(self._allocation, Request):
            wanted = tables.numbers[PROCESSORS, first:]
            tables.seconds[BELIEF, first:] = view.beliefs(jobs, wanted)
            tables.seconds[RUNTIME, first:] = self._engine.work.runtimes_at(jobs, wanted)
        else:
            self._offer(range(first, first + jobs.size))

    def _offer(self, columns: Sequence[int]) -> None:
        """Put down what jobs of some columns may choose from; others may where counts stay open."""
        view, work, rows = self._engine.view, self._engine.work, self.plan.offers
        first = end = self.plan.counts.size if self._rule == OPEN else 0
        offered, jobs = [], self._pieces.jobs[columns]
        for place, job in zip(columns, jobs.tolist(), strict=True):
            if self._rule != OPEN:
                counts, believed, at_once, _ = offers_of(self._allocation, job, view)
            else:
                counts, believed, self.plan.open.serial[place] = self._candidates(job)
                at_once = False
            if believed is None:
                believed = np.array([view.belief(job, int(counts[0]))])
            rows[:3, place] = end, counts.size, at_once
            end += counts.size
            offered.append((counts, believed))
        every = np.concatenate([self.plan.counts[:first], *(counts for counts, _ in offered)])
        choices = np.concatenate([self.plan.choices[:, :first], np.zeros((2, end - first))], axis=1)
        np.concatenate([believed for _, believed in offered], out=choices[0, first:])
        choices[1, first:] = work.runtimes_at(np.repeat(jobs, rows[SIZE, columns]), every[first:])
        self.plan = self.plan._replace(counts=every, choices=choices)

    def _offer_one(self, column: int) -> None:
        """Put down what the job of a column may choose from where one is asked after the other."""
        job = self._pieces.jobs.item(column)
        counts, believed, at_once, _ = offers_of(self._allocation, job, self._engine.view)
        if believed is None:
            believed = np.array([self._engine.view.belief(job, counts.item(0))])
        if self.plan.counts.size < counts.size:
            room = np.zeros(2 * counts.size, np.int64), np.zeros((2, 2 * counts.size))
            self.plan = self.plan._replace(counts=room[0], choices=room[1])
        plan, ahead = self.plan, self._ahead.of(job)
        into = plan.offers, plan.counts, plan.choices
        if not _put_offer(into, column, (counts, believed, at_once), ahead):
            jobs = np.full(counts.size, job)
            self.plan.choices[1, : counts.size] = self._engine.work.runtimes_at(jobs, counts)

    @property
    def ended(self) -> int:
        """How many jobs have ended."""
        return self._state.tables.counters.item(ENDED)

    def advance(self, instant: float) -> None:
        """Go through instants from this one on, each with its pass, up to a chance for Python."""
        self._make_room(instant)
        counters = self._state.tables.counters
        following = self._go_on(NOTHING)
        while counters[TAKEN]:
            self._state.now = following
            revision = self._tell() if self._learns else NOTHING
            choosing = self._choosing()
            if self._rule == SHARING:
                self.plan = self.plan._replace(sharing=self._shares.answer(self.plan.sharing))
            elif len(choosing) == 1 and self._rule != OPEN:
                self._offer_one(choosing[0])
            elif choosing:
                self._offer(choosing)
            following = self._go_on(revision)
            self._keep_beliefs(choosing)
        if following == np.inf and self._learns:
            self._tell()

    def _go_on(self, revision: Revision) -> float:
        """Go on to the next instant that needs Python; return when it is."""
        step, rule, news = self._step, self._rule, self._news
        if rule in (OPEN, SHARING):
            return float(step(self._state.tables, self.plan))
        return float(step(self._state.tables, self.plan, rule, revision, self._asks, news))

    def _tell(self) -> Revision:
        """Tell the predictor who ended; return what it believes differently of who waits.

        Ask it what the beliefs rest on of those who started, before it is told of later ends.
        """
        tables, engine, news = self._state.tables, self._engine, self._news
        new = int(tables.counters[ENDED] - news.told[0])
        for one, before in news.ended[:, :new].T.tolist():
            self._explain_started(before)
            job, processors = self._pieces.jobs.item(one), tables.numbers.item(PROCESSORS, one)
            start, end = tables.seconds.item(START, one), tables.seconds.item(END, one)
            if end > start and not tables.numbers.item(KILLED, one):
                engine.learn(job, processors, end - start, end, {}, {})
            engine.view.forget([job])
        news.told[0] += new
        self._explain_started(tables.counters.item(STARTED))
        return self._revised()

    def _revised(self) -> Revision:
        """Return who of those waiting is believed to run for another time than before."""
        tables, view, revised = self._state.tables, self._engine.view, self._state.revised
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
        counters = self._state.tables.counters
        head = counters.item(HEAD)
        places = self._state.tables.numbers[WAITING, head : counters.item(NEW)].nonzero()[0]
        waiting: list[int] = (places + head).tolist()
        return waiting

    def _choosing(self) -> list[int]:
        """Return the columns of who chooses now: newcomers, and where a belief is refuted, all."""
        tables, counters = self._state.tables, self._state.tables.counters
        newcomers = list(range(counters.item(NEW), counters.item(ARRIVED)))
        if counters[EXPIRED_NOW] and is_refuted(tables, self.plan.anew):
            return self._waiting() + newcomers
        return newcomers

    def _keep_beliefs(self, columns: Sequence[int]) -> None:
        """Let the view keep what those who chose believe of their choice."""
        tables, believe, jobs = self._state.tables, self._engine.view.believe, self._pieces.jobs
        for one in columns:
            processors = tables.numbers.item(PROCESSORS, one)
            believe(jobs.item(one), processors, tables.seconds.item(BELIEF, one))

    def _explain_started(self, until: int) -> None:
        """Ask what the beliefs rest on of those who started, up to this one of them."""
        done = self._explained
        if done < until:
            numbers, explain = self._state.tables.numbers, self._engine.view.explain
            for one in numbers[IN_TURN, done:until].tolist():
                job = self._pieces.jobs.item(one)
                self._explanations.add(explain(job, numbers.item(PROCESSORS, one)))
            self._explained = until

    def _make_room(self, instant: float) -> None:
        """Let tables grow in which the next instant might not find room."""
        if instant == self._state.tables.instant[LATER]:
            self._take_in_more()
        self._state.tables, self.plan = _with_room(self._state.tables, self.plan, instant)

    def _take_in_more(self) -> None:
        """Let the next jobs enter, and those leave that have ended."""
        if self._learns:
            self._tell()  # nobody waits of whom it could believe otherwise now
        if self._rule == SHARING:
            self._shares.write_down(self.plan.sharing, self._state.tables, self._pieces)
        self._state.tables = self._pieces.enter(self._state.tables)
        plan, jobs, kept = self.plan, self._pieces.jobs, self._pieces.kept
        before, choose = Offered(plan.offers, plan.counts, plan.choices), self._rule == OPEN
        offered, stays_open = carried(before, plan.open, kept if choose else kept[:0], jobs)
        self.plan = plan._replace(
            summaries=summaries_of(jobs.size if self._rule in (EASY, SHARING) else 0),
            soonest=np.full(jobs.size // BLOCK + 1, -np.inf),
            offers=offered.spans,
            counts=offered.counts,
            choices=offered.choices,
            open=stays_open,
        )
        self._explained = self._state.tables.counters.item(STARTED)
        self._take_beliefs()

    def records(self, predictor: RuntimePredictor) -> Records:
        """Return what happened; runs and their stretches in the order of the starts."""
        found, engine, tables = self._pieces, self._engine, self._state.tables
        found.note(tables)
        if self._rule == SHARING:
            stretches = self._shares.stretches(self.plan.sharing, tables, found)
        else:
            stretches = found.stretches()
        if not self._explanations:
            first = found.in_turn.item(0)
            self._explanations.add(predictor.explain(first, found.allocated.item(first)))
        grounds = self._explanations.columns(len(found.in_turn))
        asked = found.consultations(grounds, engine.view.preferences.undecided)
        return found.records(stretches, asked, engine.machine.processors)


def _with_room(tables: Tables, plan: Plan, instant: float) -> tuple[Tables, Plan]:
    """Return the same with room for all that may happen at an instant."""
    if tables.ranges.shape[1] - tables.counters[RANGES] < tables.counters[ROOM]:
        tables = tables._replace(ranges=np.tile(tables.ranges, 2))
    if tables.wakes.size == tables.counters[WAKES]:
        tables = tables._replace(wakes=np.tile(tables.wakes, 2))
    if not _has_room(plan.sharing):
        plan = plan._replace(sharing=plan.sharing.doubled())
    more = _breakpoints(tables, instant) if plan.times.size > 1 else 0
    if plan.times.size < more:
        times, free = np.pad(plan.times, (0, 2 * more)), np.pad(plan.free, (0, 2 * more))
        plan = plan._replace(times=times, free=free)
    return tables, plan
