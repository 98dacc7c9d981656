"""What evolving jobs ask of the scheduler while they run: processors, and a longer walltime.

A job looks at itself at the end of a cycle, now and then, and before it would
stop for its limit. What it asks for follows from the cycles that it has measured
and, for the efficiency of other counts, from the site's predictor; never from
the truth. Beside the engine's the truth is asked once: for what it cost a job
not to get what it asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Any

import numpy as np

from predictors.cycles.remaining import CellTrend, RemainingTime
from predictors.errors import NotFittedError
from sim.engine.clock import FAILURE, WAKE, Occurrence
from sim.engine.engine import Engine
from sim.engine.runs_under_load import RENEWAL_SHARE
from sim.errors import PolicyError
from sim.evolving.running import Follower
from sim.evolving.settings import EvolvingScene
from sim.evolving.stages import Stages
from sim.state.decisions import Decision, Grant, Refuse
from sim.state.machine_state import Request, Run
from sim.state.records import Asked, Records, Requests
from sim.state.run_state import rounded

WINDOW = 32
"""Latest cycles from which a job takes its speed."""


@dataclass
class _Self:
    """What a running job knows of itself.

    Attributes
    ----------
    run : Run
    trend : CellTrend
        Of the cells of the whole mesh.
    ahead : RemainingTime
        On the processors that it holds.
    key : tuple of int
        Run number and processors to which `ahead` belongs.
    seen : float
        Seconds at full speed of the present attempt up to which cycles were taken in.
    turn : int
        Looks planned so far; a look of an earlier number is out of date.
    mean : float
        Seconds of a cycle lately.
    """

    run: Run
    trend: CellTrend
    ahead: RemainingTime
    key: tuple[int, int]
    seen: float = 0.0
    turn: int = 0
    mean: float = inf


class Asker(Follower):
    """Lets evolving jobs ask, carries out what the policy grants, and keeps the books of it.

    Parameters
    ----------
    scene : EvolvingScene
    work : Stages
    engine : Engine
        Only where it kills jobs at their limits do they ask for time; whatever is asked is
        refused at once where its policy answers nobody.
    expect : callable
        Lets an evolving run end at a time with an outcome, whatever was expected before.
    """

    def __init__(
        self,
        scene: EvolvingScene,
        work: Stages,
        engine: Engine,
        expect: Callable[[Run, float, str], None],
    ) -> None:
        self._engine, self._expect = engine, expect
        self._asked: list[Asked] = []
        self._denied_wait = 0.0
        self._asks, self._scene, self._work = scene.saving.asks, scene, work
        self._clock, self._view, self._requests = engine.clock, engine.view, engine.state.requests
        self._limit = engine.resizer.limit if engine.kills else None
        self._ask_for_pass = engine.ask_for_pass if engine.preferences.answers else None
        self._jobs: dict[int, _Self] = {}
        self._standing: dict[tuple[int, str], Asked] = {}
        self._denied: dict[int, tuple[Asked, float, float]] = {}
        """What is asked and not granted, since when, and what a second without it costs."""
        self._short_of_time: set[int] = set()
        self._cut_short: dict[int, float] = {}

    # Looks

    def begin(self, run: Run, now: float) -> None:
        """Follow a run that begins, or goes on in another way, at `now`."""
        job = run.job
        own, key = self._jobs.get(job), (run.number, run.processors)
        if own is None or own.run is not run:
            self._short_of_time.discard(job)
            self._denied_wait += now - self._cut_short.pop(job, now)
            trend, turn = (CellTrend(), 0) if own is None else (own.trend, own.turn)
            own = self._jobs[job] = _Self(run, trend, self._model(run), key, turn=turn)
        elif own.key != key:
            own.key, own.ahead = key, self._model(run)
        own.seen = 0.0
        self._plan(own, now)

    def _model(self, run: Run) -> RemainingTime:
        offline = self._scene.benchmark(run.job)
        return RemainingTime(self._work.cycles(run.job), offline, run.processors, WINDOW)

    def _plan(self, own: _Self, now: float) -> None:
        """Look next at the end of a cycle: at the latest before the attempt stops for its limit."""
        own.turn += 1
        run = own.run
        pause = max(self._asks.every, RENEWAL_SHARE * (now - run.start))
        found = self._work.next_cycle_end(run, now + pause, own.seen)
        if found is not None:
            time, seconds = found
            Occurrence(self._clock, max(time, now), WAKE, self._look, (own, own.turn, seconds))

    def _look(self, occurrence: Any) -> None:
        """Let a job look at itself, and ask."""
        own: _Self = occurrence.subject[0]
        _, turn, until = occurrence.subject
        run, now = own.run, self._clock._now
        if self._jobs.get(run.job) is not own or own.turn != turn:
            return
        cells, seconds = self._work.measured(run, own.seen, until)
        own.seen = until
        if cells.size:
            own.trend.update(cells * run.processors)
            own.ahead.update(cells, seconds)
            own.mean = float(seconds[-WINDOW:].mean())
        self._ask_processors(own, now)
        self._ask_walltime(own, now)
        self._plan(own, now)

    def end(self, run: Run) -> None:
        """Follow a run no longer; what it asked for it needs no more."""
        own = self._jobs.get(run.job)
        if own is None or own.run is not run:
            return
        own.turn += 1
        for kind in ("processors", "walltime"):
            self._withdraw(run.job, kind)
        self._settle(run.job, self._clock._now)

    def stopped(self, run: Run, now: float) -> None:
        """Note that a run ended for its limit: if it had asked for more, its wait is the price."""
        if run.job in self._short_of_time:
            self._cut_short[run.job] = now

    def ended(self, run: Run, status: str) -> None:
        """Forget a job that will not run again."""
        self.end(run)
        self._jobs.pop(run.job, None)
        self._cut_short.pop(run.job, None)

    def complete(self, records: Records) -> Records:
        """Add all that was asked for."""
        return replace(records, requests=Requests(tuple(self._asked), self._denied_wait))

    # Requests

    def _ask_processors(self, own: _Self, now: float) -> None:
        run, view = own.run, self._view
        if not (self._asks.for_processors and view.malleable[run.job]):
            return
        wanted = self._wanted(own)
        if wanted == run.processors:
            self._withdraw(run.job, "processors")
            self._settle(run.job, now)
            return
        kind = "more" if wanted > run.processors else "fewer"
        asked = self._ask(Request(run.job, "processors", wanted, 0.0, now), kind, run)
        self._settle(run.job, now)
        if asked.outcome != "granted":
            self._denied[run.job] = asked, now, self._price(own, wanted)

    def _wanted(self, own: _Self) -> int:
        """Return the count that a job would have by its own predictions."""
        run, asks = own.run, self._asks
        bound = asks.efficiency
        count = run.processors if bound is None else self._efficient(run, bound)
        memory = self._scene.saving.memory
        if asks.memory and memory is not None and own.trend.count:
            pause = max(asks.every, RENEWAL_SHARE * (self._clock._now - run.start))
            cells = own.trend.ahead(np.array([0.0, pause / own.mean])).max()
            count = max(count, ceil(cells / memory))
        counts = self._view.counts(run.job)
        place = int(np.searchsorted(counts, count, side="left"))
        return int(counts[min(place, counts.size - 1)])

    def _efficient(self, run: Run, bound: float) -> int:
        """Return the most processors that are predicted to keep an efficiency."""
        counts = self._view.counts(run.job)
        curve = self._view.curve(run.job, np.concatenate(([1], counts)))
        if curve is None:
            return run.processors
        good = counts[curve[0] >= bound * counts * curve[1:]]
        return int(good[-1]) if good.size else int(counts[0])

    def _ask_walltime(self, own: _Self, now: float) -> None:
        """Ask for time if the rest is predicted not to fit, checkpoints and load included."""
        run = own.run
        if not self._asks.walltime or self._limit is None:
            return
        left, slower = self._work.ahead_of(run, own.seen, now)
        if left == 0:
            return
        try:
            remaining = own.ahead.predict(left=left)
        except NotFittedError:
            return
        until = now + remaining.seconds * slower * self._scene.saving.margin
        limit = self._limit(run)
        if until <= limit:
            self._withdraw(run.job, "walltime")
            return
        self._short_of_time.add(run.job)
        self._ask(Request(run.job, "walltime", run.processors, until, now), "walltime", run, limit)

    def _ask(self, request: Request, kind: str, run: Run, limit: float = 0.0) -> Asked:
        """Put a request before the policy, or bring a standing one up to date; return its row."""
        key, held, wanted = (request.job, request.kind), run.processors, request.processors
        seconds = request.until - limit if kind == "walltime" else 0.0
        asked = self._standing.get(key)
        if asked is not None and asked.kind == kind:
            self._requests[key] = request._replace(time=self._requests[key].time)
            asked.held, asked.wanted, asked.seconds = held, wanted, seconds
        else:
            self._withdraw(*key)
            asked = Asked(run.job, run.number, request.time, kind, held, wanted, seconds)
            self._asked.append(asked)
            self._standing[key], self._requests[key] = asked, request
        if self._ask_for_pass is not None:
            self._ask_for_pass()
        else:
            self._answer(*key, "refused")
        return asked

    def _withdraw(self, job: int, kind: str) -> None:
        if (job, kind) in self._requests:
            self._answer(job, kind, "withdrawn")

    def _answer(self, job: int, kind: str, outcome: str) -> None:
        """Note what became of a standing request, and take it from the policy's view."""
        now = self._clock._now
        del self._requests[job, kind]
        asked = self._standing.pop((job, kind))
        asked.outcome, asked.answered = outcome, now
        if outcome == "granted":
            if kind == "processors":
                self._settle(job, now)
            else:
                self._short_of_time.discard(job)

    # What a policy says to requests

    def carried_out(self, decision: Decision, now: float) -> bool:
        """Carry out what a policy says to a request; say whether it says that.

        A grant is taken in at once, but after the pass that decided it, which has not
        seen it: there is another at the same instant.

        Raises
        ------
        PolicyError
            If no such request stands, or the cost is below 0.
        """
        if not isinstance(decision, Grant | Refuse):
            return False
        engine = self._engine
        if (decision.job, decision.kind) not in engine.view.requests:
            raise PolicyError(f"{decision!r} answers a request that is not pending")
        if isinstance(decision, Refuse):
            self._answer(decision.job, decision.kind, "refused")
            return True
        if not decision.cost >= 0:
            raise PolicyError(f"{decision!r}: a cost must be at least 0 seconds")
        run = engine.view.running[decision.job]
        Occurrence(engine.clock, now, FAILURE, self._take_in, (run, decision))
        return True

    def _take_in(self, occurrence: Any) -> None:
        """Take in what is granted, if its run still goes on and still wants it."""
        run, grant = occurrence.subject
        view = self._engine.view
        same = view.running.get(run.job) is run
        asked = view.requests.get((run.job, grant.kind)) if same else None
        if asked is not None:
            over = self._lengthen if grant.kind == "walltime" else self._give_processors
            over(run, grant, asked)

    def _give_processors(self, run: Run, grant: Grant, asked: Request) -> None:
        """Let a run go on with the processors that it asked for, from its next cycle on."""
        engine, now = self._engine, self._clock._now
        pending = self._work.until_cycle_end(run, now)
        if pending is None:
            self._reply(grant, "withdrawn")
        elif pending > 0.0 and asked.processors < run.processors:
            # Until then it needs what it gives back.
            Occurrence(engine.clock, now + pending, FAILURE, self._take_in, (run, grant))
        else:
            self._reply(grant, "granted")
            self._work.finish_cycle(run, now)
            engine.resizer.grant(run, asked.processors, grant.cost, pending, now)

    def _lengthen(self, run: Run, grant: Grant, asked: Request) -> None:
        """Let a run go on for as long as it asked for before it is killed."""
        engine, now = self._engine, self._clock._now
        self._reply(grant, "granted")
        engine.resizer.extend(run, asked.until)
        end, outcome = self._work.extend(run, asked.until)
        self._expect(run, end, outcome)
        self._plan(self._jobs[run.job], now)
        later = max(run.believed_end, asked.until)
        engine.move_believed_end(run, rounded(later, end, now))

    def _reply(self, grant: Grant, outcome: str) -> None:
        self._answer(grant.job, grant.kind, outcome)
        engine = self._engine
        engine.happened()
        engine.state.disturbed = True

    # What it costs not to get what one asked for

    def _price(self, own: _Self, wanted: int) -> float:
        """Return the true share of its time that a job would be spared on the count it wants."""
        saving, cells = self._scene.saving, own.trend.last

        def pace(count: int) -> float:
            pages = saving.memory is not None and cells / count > saving.memory
            return (saving.paging if pages else 1.0) * self._work.runtime(own.run.job, count)

        return max(1.0 - pace(wanted) / pace(own.run.processors), 0.0)

    def _settle(self, job: int, now: float) -> None:
        if job in self._denied:
            asked, since, rate = self._denied.pop(job)
            asked.denied_time += rate * (now - since)
