"""What running evolving jobs do besides: renew what is believed of them, and ask the scheduler.

A job looks at itself at the end of a cycle, now and then, and before it would stop for its limit.
It asks for processors, or a longer walltime. What it asks for follows from the cycles that it has
measured and, for the efficiency of other counts, from the site's predictor; never from the truth.
Beside the engine's the truth is asked once: for what it cost a job not to get what it asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Any

import numpy as np

from predictors.cycles.online import CellTrend, RemainingTime
from predictors.in_loop.dynamic import Dynamic
from sim.engine.clock import FAILURE, WAKE, EventNotice
from sim.engine.engine import Engine
from sim.engine.protocols import Collaborator
from sim.engine.runs_under_load import RENEWAL_SHARE
from sim.errors import PolicyError
from sim.evolving.settings import EvolvingScene
from sim.evolving.stages import Stages
from sim.state.decisions import Decision, Grant, Refuse, Resize
from sim.state.machine_state import Run, RunRequest
from sim.state.records import Records, RequestRecord, Requests
from sim.state.run_state import snapped

WINDOW = 32
"""Latest cycles from which a job takes its speed."""
Expect = Callable[[Run, float, str], None]
"""Lets a run end at a time with an outcome."""


class Follower(Collaborator):
    """Follows the runs of evolving jobs until they are over, or told to stop."""

    def begin(self, run: Run, now: float) -> None:
        """Follow a run that begins, or goes on with other processors, at `now`."""

    def end(self, run: Run) -> None:
        """Follow a run no longer."""

    def stopped(self, run: Run, now: float) -> None:
        """Be told that a run ended for its limit, before its job."""

    def ended(self, run: Run, status: str) -> None:
        """Follow no longer what is over."""
        self.end(run)


class Renewal(Follower):
    """Keeps the beliefs about running evolving jobs fresh.

    A job is predicted again, in a pass that happens anyway, once it has run for
    `renew_every` seconds since the last time, and for a tenth of its time so
    far: never once a cycle.

    Parameters
    ----------
    predictor : Dynamic
    work : Stages
    scene : EvolvingScene
    engine : Engine
    """

    def __init__(
        self, predictor: Dynamic, work: Stages, scene: EvolvingScene, engine: Engine
    ) -> None:
        self._renewals = 0
        self._predictor, self._work, self._scene = predictor, work, scene
        self._move = engine.move_believed_end
        self._due: dict[int, float] = {}
        self._running: dict[int, tuple[Run, float]] = {}

    def begin(self, run: Run, now: float) -> None:
        """Follow a run that begins, or goes on with other processors, at `now`."""
        self._due.setdefault(run.job, now + self._predictor.renew_every)
        self._running[run.job] = (run, 0.0)

    def end(self, run: Run) -> None:
        """Follow a run no longer."""
        self._running.pop(run.job, None)
        self._due.pop(run.job, None)
        self._predictor.forget(run.job)

    def renews_belief(self, run: Run, now: float) -> bool:
        """Ask a job that outlives its belief for its cycles."""
        return self.renew(run.job, now) and run.believed_end > now

    def complete(self, records: Records) -> Records:
        """Add how many beliefs were renewed."""
        counters = {**records.counters, "renewed_beliefs": float(self._renewals)}
        return replace(records, counters=counters)

    def before_pass(self, now: float) -> None:
        """Renew the beliefs about the runs whose turn it is."""
        for _, job in sorted((due, job) for job, due in self._due.items() if due <= now):
            # Long runs change slowly.
            ran = now - self._running[job][0].start
            self._due[job] = now + max(self._predictor.renew_every, RENEWAL_SHARE * ran, 1.0)
            self.renew(job, now)

    def renew(self, job: int, now: float) -> bool:
        """Renew the belief about a run from its fresh cycles; say whether there is one."""
        if job not in self._running:
            return False
        run, seen = self._running[job]
        work = self._work
        elapsed = work.elapsed(run, now)
        if work.attempt(job) is None or elapsed <= seen:
            return False
        cells, seconds = work.measured(run, seen, elapsed)
        self._running[job] = (run, elapsed)
        # Checkpoints will take the share of time that they have taken so far.
        left, slower = work.ahead_of(run, elapsed)
        offline = self._scene.benchmark(job)
        remaining = self._predictor.progress(
            job, run.number, run.processors, cells, seconds, left, offline
        )
        self._renewals += 1
        if remaining is None or left == 0:
            return False
        end = now + max(self._predictor.believed_seconds(remaining) * slower, 1.0)
        if abs(end - run.believed_end) > self._predictor.tolerance * (run.believed_end - now):
            self._move(run, end)
        return True


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
    seen : float
        Seconds at full speed of the present attempt up to which cycles were taken in.
    mean : float
        Seconds of a cycle lately.
    look : EventNotice or None
        When it looks at itself next; any other that was planned is out of date.
    """

    run: Run
    trend: CellTrend
    ahead: RemainingTime
    seen: float = 0.0
    mean: float = inf
    look: EventNotice | None = None


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

    def __init__(self, scene: EvolvingScene, work: Stages, engine: Engine, expect: Expect) -> None:
        self._engine, self._expect = engine, expect
        self._asked: list[RequestRecord] = []
        self._denied_wait = 0.0
        self._asks, self._scene, self._work = scene.saving.asks, scene, work
        self._clock, self._view, self._requests = engine.clock, engine.view, engine.state.requests
        self._jobs: dict[int, _Self] = {}
        self._standing: dict[tuple[int, str], RequestRecord] = {}
        self._denied: dict[int, tuple[RequestRecord, float, float]] = {}
        """What is asked and not granted, since when, and what a second without it costs."""
        self._cut_short: dict[int, float] = {}
        """Of jobs that asked for time in vain, when they were stopped for it; infinite before."""

    # Looks

    def begin(self, run: Run, now: float) -> None:
        """Follow a run that begins, or goes on in another way, at `now`."""
        job, own = run.job, self._jobs.get(run.job)
        if own is None or own.run is not run:
            self._denied_wait += max(now - self._cut_short.pop(job, inf), 0.0)
            trend = CellTrend() if own is None else own.trend
            own = self._jobs[job] = _Self(run, trend, self._model(run))
        elif own.ahead.nprocs != run.processors:
            own.ahead = self._model(run)
        own.seen = 0.0
        self._plan(own, now)

    def _model(self, run: Run) -> RemainingTime:
        offline = self._scene.benchmark(run.job)
        return RemainingTime(self._work.cycles(run.job), offline, run.processors, WINDOW)

    def _pause(self, run: Run, now: float) -> float:
        """Return the least time between two looks of a job at itself, seconds."""
        return max(self._asks.every, RENEWAL_SHARE * (now - run.start))

    def _plan(self, own: _Self, now: float) -> None:
        """Look next at the end of a cycle: at the latest before the attempt stops for its limit."""
        own.look = None
        found = self._work.next_cycle_end(own.run, now + self._pause(own.run, now), own.seen)
        if found is not None:
            time, seconds = found
            own.look = EventNotice(self._clock, max(time, now), WAKE, self._look, (own, seconds))

    def _look(self, occurrence: Any) -> None:
        """Let a job look at itself, and ask."""
        own: _Self = occurrence.subject[0]
        run, now, until = own.run, self._clock._now, occurrence.subject[1]
        if own.look is not occurrence:
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
        own.look = None
        for kind in ("processors", "walltime"):
            self._answer(run.job, kind, "withdrawn")
        self._settle(run.job, self._clock._now)

    def stopped(self, run: Run, now: float) -> None:
        """Note that a run ended for its limit: if it had asked for more, its wait is the price."""
        if run.job in self._cut_short:
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
        self._settle(run.job, now)
        if wanted == run.processors:
            self._answer(run.job, "processors", "withdrawn")
            return
        asked = self._ask(run, "more" if wanted > run.processors else "fewer", wanted)
        self._denied[run.job] = asked, now, self._price(own, wanted)

    def _wanted(self, own: _Self) -> int:
        """Return the count that a job would have by its own predictions."""
        run, asks = own.run, self._asks
        counts, count = self._view.counts(run.job), run.processors
        if asks.efficiency is not None:
            curve = self._view.curve(run.job, np.concatenate(([1], counts)))
            if curve is not None:
                good = counts[curve[0] >= asks.efficiency * counts * curve[1:]]
                count = int(good[-1] if good.size else counts[0])
        memory = self._scene.saving.memory
        if asks.memory and memory is not None and own.trend.count:
            reach = self._pause(run, self._clock._now) / own.mean
            cells = own.trend.ahead(np.array([0.0, reach])).max()
            count = max(count, ceil(cells / memory))
        place = int(np.searchsorted(counts, count, side="left"))
        return int(counts[min(place, counts.size - 1)])

    def _ask_walltime(self, own: _Self, now: float) -> None:
        """Ask for time if the rest is predicted not to fit, checkpoints and load included."""
        run, engine = own.run, self._engine
        if not (self._asks.walltime and engine.kills):
            return
        left, slower = self._work.ahead_of(run, own.seen, now)
        if left == 0 or own.ahead.online.cycles_ == 0:
            return
        remaining = own.ahead.predict(left=left)
        until = now + remaining.seconds * slower * self._scene.saving.margin
        limit = engine.resizer.kill_time(run)
        if until <= limit:
            self._answer(run.job, "walltime", "withdrawn")
            return
        self._cut_short[run.job] = inf
        self._ask(run, "walltime", run.processors, until, until - limit)

    def _ask(
        self, run: Run, kind: str, wanted: int, until: float = 0.0, seconds: float = 0.0
    ) -> RequestRecord:
        """Put a request before the policy, or bring a standing one up to date; return its row."""
        key = run.job, kind if kind == "walltime" else "processors"
        asked = self._standing.get(key)
        if asked is None or asked.kind != kind:
            self._answer(*key, "withdrawn")
            now, held = self._clock._now, run.processors
            asked = RequestRecord(run.job, run.number, now, kind, held, wanted, seconds)
            self._asked.append(asked)
            self._standing[key] = asked
        asked.held, asked.wanted, asked.wanted_seconds = run.processors, wanted, seconds
        self._requests[key] = RunRequest(*key, wanted, until)
        if self._engine.preferences.may_grant:
            self._engine.ask_for_pass()
        else:
            self._answer(*key, "refused")
        return asked

    def _answer(self, job: int, kind: str, outcome: str) -> None:
        """Note what became of a request, if one stands, and take it from the policy's view."""
        asked, now = self._standing.pop((job, kind), None), self._clock._now
        if asked is None:
            return
        del self._requests[job, kind]
        asked.outcome, asked.answered = outcome, now
        if outcome == "granted":
            if kind == "processors":
                self._settle(job, now)
            else:
                self._cut_short.pop(job, None)

    # What a policy says to requests

    def carry_out(self, decision: Decision, now: float) -> bool:
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
        if (decision.job, decision.kind) not in self._requests:
            raise PolicyError(f"{decision!r} answers a request that is not pending")
        if isinstance(decision, Refuse):
            self._answer(decision.job, decision.kind, "refused")
            return True
        if not decision.cost >= 0:
            raise PolicyError(f"{decision!r}: a cost must be at least 0 seconds")
        run = engine.view.running[decision.job]
        EventNotice(engine.clock, now, FAILURE, self._take_in, (run, decision))
        return True

    def _take_in(self, occurrence: Any) -> None:
        """Take in what is granted, if its run still goes on and still wants it."""
        run: Run = occurrence.subject[0]
        grant: Grant = occurrence.subject[1]
        asked = self._requests.get((run.job, grant.kind))
        if asked is not None and self._view.running.get(run.job) is run:
            over = self._lengthen if grant.kind == "walltime" else self._give_processors
            over(run, grant, asked)

    def _give_processors(self, run: Run, grant: Grant, asked: RunRequest) -> None:
        """Let a run go on with the processors that it asked for, from its next cycle on."""
        engine, now = self._engine, self._clock._now
        found = self._work.cycle_end(run, now)
        cycle_left = 0.0 if found is None else found[0] - now
        if found is None:
            self._reply(grant, "withdrawn")
        elif cycle_left > 0.0 and asked.processors < run.processors:
            # Until then it needs what it gives back.
            EventNotice(engine.clock, now + cycle_left, FAILURE, self._take_in, (run, grant))
        else:
            self._reply(grant, "granted")
            if found[1] > 0.0:
                self._work.go_on_from(run, *found)
            wanted = Resize(run.job, asked.processors, None, grant.cost)
            engine.resizer.resize(wanted, now, cycle_left)
            engine.state.granted.add(run)

    def _lengthen(self, run: Run, grant: Grant, asked: RunRequest) -> None:
        """Let a run go on for as long as it asked for before it is killed."""
        engine, now = self._engine, self._clock._now
        self._reply(grant, "granted")
        engine.resizer.extend(run, asked.until)
        end, outcome = self._work.extend(run, asked.until)
        self._expect(run, end, outcome)
        self._plan(self._jobs[run.job], now)
        later = max(run.believed_end, asked.until)
        engine.move_believed_end(run, snapped(later, end, now))

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
