"""What passes between running evolving jobs and the scheduler: renewed beliefs, and grants."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Protocol, runtime_checkable

from numpy.typing import ArrayLike

from predictors.cycles.offline import OfflineCyclePredictor
from predictors.cycles.remaining import Remaining
from sim.engine.clock import FAILURE, Occurrence
from sim.engine.engine import Engine
from sim.engine.runs_under_load import RARER
from sim.errors import PolicyError
from sim.evolving.asking import Asker
from sim.evolving.settings import EvolvingScene
from sim.evolving.stages import Stages
from sim.state.decisions import Grant, Refuse
from sim.state.machine_state import Request, Run

Mover = Callable[[Run, float], None]


@runtime_checkable
class Renews(Protocol):
    """A runtime predictor that takes in the cycles of running jobs.

    Attributes
    ----------
    renew_every : float
        Seconds between two predictions of a running job.
    tolerance : float
        A belief stands while the new remaining time is within this share of it.
    """

    renew_every: float
    tolerance: float

    def progress(
        self,
        job: int,
        run: int,
        nprocs: int,
        cells: ArrayLike,
        seconds: ArrayLike,
        left: int,
        offline: OfflineCyclePredictor | None = None,
    ) -> Remaining | None:
        """Take in cycles of a running job and say how long it will still take."""
        ...

    def believed_seconds(self, remaining: Remaining) -> float:
        """Return the remaining time to believe in, seconds."""
        ...

    def forget(self, job: int) -> None:
        """Drop the cycles of a job that runs no more."""
        ...


class Renewal:
    """Keeps the beliefs about running evolving jobs fresh.

    A job is predicted again, in a pass that happens anyway, once it has run for
    `renew_every` seconds since the last time, and for a tenth of its time so
    far: never once a cycle.

    Parameters
    ----------
    predictor : Renews
    work : Stages
    scene : EvolvingScene
    move : callable
        Moves the believed end of a run to a time, seconds.
    """

    def __init__(self, predictor: Renews, work: Stages, scene: EvolvingScene, move: Mover) -> None:
        self.renewals = 0
        self._predictor = predictor
        self._work = work
        self._scene = scene
        self._move = move
        self._due: list[tuple[float, int, int]] = []
        self._running: dict[int, tuple[Run, float]] = {}

    def begin(self, run: Run, now: float) -> None:
        """Follow a run that begins, or goes on with other processors, at `now`."""
        job = run.job
        if job not in self._running:
            heappush(self._due, (now + self._predictor.renew_every, job, run.number))
        self._running[job] = (run, 0.0)

    def end(self, run: Run) -> None:
        """Follow a run no longer."""
        self._running.pop(run.job, None)
        self._predictor.forget(run.job)

    def renew_due(self, now: float) -> None:
        """Renew the beliefs about the runs whose turn it is."""
        due = self._due
        while due and due[0][0] <= now:
            _, job, number = heappop(due)
            if job in self._running and self._running[job][0].number == number:
                # Long runs change slowly; at least a moment later, or this would not end.
                ran = now - self._running[job][0].start
                again = max(self._predictor.renew_every, RARER * ran, 1.0)
                heappush(due, (now + again, job, number))
                self.renew(job, now)

    def renew(self, job: int, now: float) -> bool:
        """Renew the belief about a run from its fresh cycles; say whether there is one."""
        if job not in self._running:
            return False
        run, seen = self._running[job]
        work = self._work
        attempt = work.attempt(job)
        elapsed = work.elapsed(run, now)
        if attempt is None or elapsed <= seen:
            return False
        cells, seconds, _ = work.measured(run, seen, elapsed)
        self._running[job] = (run, elapsed)
        account = attempt.account(elapsed)
        left = attempt.first + attempt.left - account.finished
        offline = self._scene.benchmark(job)
        remaining = self._predictor.progress(
            job, run.number, run.processors, cells, seconds, left, offline
        )
        self.renewals += 1
        if remaining is None or left == 0:
            return False
        # Checkpoints will take the share of time that they have taken so far.
        slower = 1.0 + account.overhead / account.computed
        end = now + max(self._predictor.believed_seconds(remaining) * slower, 1.0)
        if abs(end - run.believed_end) > self._predictor.tolerance * (run.believed_end - now):
            self._move(run, end)
        return True


class Granting:
    """Carries out what a policy says to requests.

    A grant is taken in at once, but after the pass that decided it, which has not
    seen it: there is another at the same instant.

    Parameters
    ----------
    engine : Engine
    work : Stages
    asker : Asker
    expect : callable
        Lets an evolving run end at a time with an outcome, whatever was expected before.
    """

    def __init__(
        self, engine: Engine, work: Stages, asker: Asker, expect: Callable[[Run, float, str], None]
    ) -> None:
        self._engine, self._work = engine, work
        self._asker, self._expect = asker, expect

    def reply(self, decision: Grant | Refuse, now: float) -> None:
        """Carry out what a policy says to a request.

        Raises
        ------
        PolicyError
            If no such request stands, or the cost is below 0.
        """
        engine = self._engine
        if (decision.job, decision.kind) not in engine.view.requests:
            raise PolicyError(f"{decision!r} answers no request that stands")
        if isinstance(decision, Refuse):
            self._asker.answer(decision.job, decision.kind, "refused")
            return
        if not decision.cost >= 0:
            raise PolicyError(f"{decision!r}: a cost must be at least 0 seconds")
        run = engine.view.running[decision.job]
        over = self._lengthen if decision.kind == "walltime" else self._give_processors
        Occurrence(engine.clock, now, FAILURE, over, (run, decision))

    def _give_processors(self, occurrence: Any) -> None:
        """Let a run go on with the processors that it asked for, from its next cycle on."""
        run, grant = occurrence.subject
        engine, asked = self._engine, self._standing(run, grant)
        if asked is None:
            return
        now = engine.clock._now
        pending = self._work.until_cycle_end(run, now)
        if pending is None:
            self._answer(grant, "withdrawn")
        elif pending > 0.0 and asked.processors < run.processors:
            # Until then it needs what it gives back.
            Occurrence(engine.clock, now + pending, FAILURE, self._give_processors, (run, grant))
        else:
            self._answer(grant, "granted")
            self._work.finish_cycle(run, now)
            engine.resizer.grant(run, asked.processors, grant.cost, pending, now)

    def _lengthen(self, occurrence: Any) -> None:
        """Let a run go on for as long as it asked for before it is killed."""
        run, grant = occurrence.subject
        engine, asked = self._engine, self._standing(run, grant)
        if asked is None:
            return
        self._answer(grant, "granted")
        now = engine.clock._now
        engine.resizer.extend(run, asked.until)
        end, outcome = self._work.extend(run, asked.until)
        self._expect(run, end, outcome)
        self._asker.go_on(run, now)
        later = max(run.believed_end, asked.until)
        engine.move_believed_end(run, engine.resizer.rounded(later, end, now))

    def _standing(self, run: Run, grant: Grant) -> Request | None:
        """Return the request that is granted, if its run still goes on and still wants it."""
        view = self._engine.view
        same = view.running.get(run.job) is run
        return view.requests.get((run.job, grant.kind)) if same else None

    def _answer(self, grant: Grant, outcome: str) -> None:
        self._asker.answer(grant.job, grant.kind, outcome)
        engine = self._engine
        engine.happened()
        engine.state.disturbed = True
