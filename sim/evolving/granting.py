"""How running jobs get what they asked for: processors, or a longer walltime."""

from typing import Any, Protocol

from sim.engine.clock import FAILURE, Clock, Occurrence
from sim.engine.resizing import Resizer
from sim.errors import PolicyError
from sim.evolving.asking import Asker
from sim.evolving.stages import Stages
from sim.state.decisions import Grant, Refuse
from sim.state.machine_state import MachineState, Request, Run
from sim.state.view import View


class Grants(Protocol):
    """What a grant needs of an engine."""

    state: MachineState
    view: View
    clock: Clock
    work: Stages
    resizer: Resizer
    events: int

    def expect_end(self, run: Run, end: float, outcome: str) -> None:
        """Wait for an evolving run to end with this outcome, whatever was waited for before."""

    def move_believed_end(self, run: Run, end: float) -> None:
        """Believe that a running job ends at another time."""

    def ask_for_pass(self) -> None:
        """Let the policy decide at this instant."""


class Granting:
    """Carries out what a policy says to requests.

    A grant is taken in at once, but after the pass that decided it, which has not
    seen it: there is another at the same instant.

    Parameters
    ----------
    engine : Grants
    asker : Asker
    """

    def __init__(self, engine: Grants, asker: Asker) -> None:
        self._engine = engine
        self._asker = asker

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
        pending = engine.work.until_cycle_end(run, now)
        if pending is None:
            self._answer(grant, "withdrawn")
        elif pending > 0.0 and asked.processors < run.processors:
            # Until then it needs what it gives back.
            Occurrence(engine.clock, now + pending, FAILURE, self._give_processors, (run, grant))
        else:
            self._answer(grant, "granted")
            engine.work.finish_cycle(run, now)
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
        end, outcome = engine.work.extend(run, asked.until)
        engine.expect_end(run, end, outcome)
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
        engine.events += 1
        engine.state.disturbed = True
        engine.ask_for_pass()
