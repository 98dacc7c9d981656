"""Beliefs about running jobs on a shared machine, renewed by the load that they have met."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from predictors.base import provider
from predictors.under_load.load_aware import LoadForm, NeedsLoad, Parts
from sim.engine.protocols import Collaborator
from sim.state.machine_state import Run
from sim.state.processors import as_numbers
from sim.state.view import LEAST_BELIEF, View

if TYPE_CHECKING:
    from sim.background.load_forecast import LoadForecast

RENEWAL_SHARE = 0.1
"""A running job whose belief holds is predicted again after this share of the time it has run."""

TOLERANCE = 0.05
"""A belief stands while the new remaining time is within this share of it."""


class PublicNames:
    """What others write to, as it may be handed out: its public names, which are read alone.

    Parameters
    ----------
    of : object
    """

    __slots__ = ("_of",)

    def __init__(self, of: Any) -> None:
        self._of = of

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._of, name)


class BeliefsUnderLoad(Collaborator):
    """What is predicted of jobs under load that run: at their start, and again.

    Policy and predictor see what is believed of the load. At its start a job is predicted
    for the very processors it got, while the policy decided on another belief; it is told in
    its next pass. With a period, a job is predicted again in a pass that happens anyway, once
    it has run for so long since the last time and for a tenth of its time so far, and when the
    belief about it expires. What it has done by then follows from its predicted parts and the load
    that was measured on its processors meanwhile. Jobs whose processors were
    changed are left alone.

    Parameters
    ----------
    engine : Engine
        About to begin.
    load : LoadForecast
    """

    def __init__(self, engine: Any, load: "LoadForecast") -> None:
        self._view: View = engine.view
        self._load = load
        self._move: Callable[[Run, float], None] = engine.move_believed_end
        state, shown = engine.state, cast("LoadForecast", PublicNames(load))
        load.free_processors = lambda: as_numbers(state.idle())
        load.now, load.picks_processors = engine.submit.item(0), engine.preferences.picks_processors
        state.load, asking = shown, provider(engine.predictor, NeedsLoad)
        self._every = None if asking is None else load.renew
        self._form: LoadForm = "effective" if asking is None else asking.load_form
        if asking is not None:
            asking.bind_load(shown)
        self._begun: list[tuple[Run, float, float]] = []
        self._due: list[tuple[float, int, Run]] = []
        self._turns = count()

    def started(self, run: Run, planned: float, predicted: float) -> float:
        """Return the belief for the processors a run got, and the load they have now."""
        if self._every is not None:
            self._expect(run, run.start + self._every)
        if (parts := self._parts(run)) is None:  # nobody knows what load does to the job
            return predicted
        held = as_numbers(run.nodes)
        there = max(self._load.runtime(parts, held, self._form), LEAST_BELIEF)
        if there == predicted:
            return predicted
        stretched = there if planned == predicted else there * (planned / predicted)
        self._begun.append((run, run.believed_end, run.believed_end - planned + stretched))
        return there

    def _parts(self, run: Run) -> Parts | None:
        return self._view.predictor.parts(run.job, np.array([run.processors]))

    def after_pass(self) -> None:
        """Believe what was predicted of runs that have just started, unless they were changed."""
        for run, before, after in self._begun:
            if run.believed_end == before:
                self._move(run, after)
        self._begun.clear()

    def _expect(self, run: Run, time: float) -> None:
        heappush(self._due, (time, next(self._turns), run))  # ties go by the order of the calls

    def before_pass(self, now: float) -> None:
        """Renew the beliefs about the runs whose turn it is."""
        self._load.now = now
        while self._due and self._due[0][0] <= now:
            run = heappop(self._due)[2]
            if self._view.running.get(run.job) is run and run.changed == run.start:
                self._renew(run, now, 0.0)
                again = max(self._every or 0.0, RENEWAL_SHARE * (now - run.start), 1.0)
                self._expect(run, now + again)

    def renews_belief(self, run: Run, now: float) -> bool:
        """Renew a belief that has run out; say whether there is a new one.

        The rest must be worth the name, or the belief would expire again and again.
        """
        return self._every is not None and self._renew(run, now, TOLERANCE * (now - run.start))

    def _renew(self, run: Run, now: float, least: float) -> bool:
        if run.changed != run.start or run.resumes > now:
            return False
        self._load.now = now
        parts, held = self._parts(run), as_numbers(run.nodes)
        left = self._load.remaining(parts, held, self._form, run.start) if parts else None
        if left is None or left < least:
            return False
        end = now + max(left * self._view.predictor.caution(run.job), 1.0)
        if abs(end - run.believed_end) > TOLERANCE * (run.believed_end - now):
            self._move(run, end)
        return True
