"""What backfilling sees under reallocation: what malleable jobs keep."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy

import numpy as np

from predictors.compiling import direct
from sim.policies.passes.malleable import lent_end
from sim.policies.reallocation.beliefs import BelievedCurves
from sim.policies.reallocation.costs import CostModel
from sim.state.availability import BelievedEnds
from sim.state.decisions import Decision, Start
from sim.state.machine_state import Run
from sim.state.run_state import State, idle_state
from sim.state.run_steps import hand_over_wakes
from sim.state.view import Changes, View

_hand_over_wakes = direct(hand_over_wakes)
_ROUNDING, _CLOCK_ROUNDING = 1e-9, 1e-13


def _margin(instant: float) -> float:
    """Return seconds that no rounding errors on the way to an instant add up to."""
    return _ROUNDING + _CLOCK_ROUNDING * abs(instant)


class LendingView(View):
    """A view in which malleable runs hold what they keep at least; the rest is only lent.

    What a run could give up counts as free, and its believed end is that of a
    run that does give it up now, at what that costs. A run that holds more and is
    believed to be no slower there ends no later. So what a backfilling rule
    promises on this view holds until

    - a belief grows: a run outlives its own, the predictor changes its mind, or a
      node fails. A run that holds n processors and outlives its belief by t is
      later by t times T(kept)/T(n), since its work is done on what it keeps;
    - a run pays for a change, or starts on more than it keeps and would pay for
      giving that up: nobody foresees what the rule will want;
    - a job starts that would keep less by now than it waits for, since the predictor
      changed its mind while it waited;
    - a run holds more than it keeps and is believed to be slower there, as its work
      on what it keeps gets less by less than the time that passes;
    - the rule shrinks jobs unasked or lets nobody start for a while (PDPA).

    In such a pass conservative backfilling places anew what no longer fits, and
    that alone may move later.

    Parameters
    ----------
    view : View
        The real one; everything but runs and free processors is shared with it.
    beliefs : BelievedCurves
    cost : CostModel
        Of starts and changes.
    """

    def __init__(self, view: View, beliefs: BelievedCurves, cost: CostModel) -> None:
        self._state = state = copy(view._state)
        vars(self).update(vars(view) | {"_state": state, "changes": Changes(state)})
        self._real = view
        state.tables = idle_state(state.processors, state.jobs, state.tables.holder_end.size)
        self._runs = beliefs
        self._kept: Mapping[int, int] = {}
        self._cost = cost
        self._is_laid = False
        self._held_back = np.inf, 0
        self._shown: dict[int, tuple[float, int]] | None = None
        self._keeps_otherwise = False

    @property
    def _ends(self) -> BelievedEnds:
        """Who holds processors, with what it keeps, and until when by belief."""
        self._lay()
        return super()._ends

    @property
    def _tables(self) -> State:
        """The state in which runs hold what they keep."""
        self._lay()
        return super()._tables

    def _lay(self) -> None:
        """Put down what runs keep, where nobody has asked for it in this pass."""
        if self._is_laid:
            return
        self._is_laid, tables, run = True, self._state.tables, self._state.tables.run
        running = self._real.running.values()
        rows = [(self._shown_end(one), one.job, self._kept_by(one)) for one in running]
        if self._held_back[1] > 0:
            rows.append((self._held_back[0], -1, self._held_back[1]))
        outages = self._real.machine.outages.items()
        rows += [(end, -1 - node, width) for node, (end, width) in outages]
        ends, run["arrived"] = BelievedEnds.of(rows), self._real._tables.run["arrived"]
        run["holders"] = ends.end.size
        tables.holder_end[: ends.end.size] = ends.end
        tables.holder_job[: ends.end.size] = ends.job
        tables.holder_processors[: ends.end.size] = ends.processors

    def take_in(self, arrived: Sequence[int], kept: Mapping[int, int], held_back: float) -> None:
        """Take in what has happened.

        Parameters
        ----------
        arrived : list of int
            Who may queue now, in queue order.
        kept : mapping of int to int
            How many processors runs keep that keep fewer than they hold, by job.
        held_back : float
            Until when nothing counts as free, seconds; infinity if all does.
        """
        state, running, self._kept = self._state, self._real.running, kept
        state.now, state.arrived = self._real.now, [*arrived]
        free = self._real.free + sum(running[job].processors - kept[job] for job in kept)
        self._held_back = held_back, free if held_back < np.inf else 0
        state.tables.run["now"], state.tables.run["free"] = state.now, free - self._held_back[1]
        state.disturbed = True
        state.moved_ends, state.ended = {}, []
        state.outages_changed = self._shown is not None or self._real.changes.outages_changed
        self._is_laid = self._keeps_otherwise = False
        _hand_over_wakes(self._real._tables, state.tables)
        for run in self._real.ended:
            (self._shown or {}).pop(run.job, None)

    def belief(self, job: int, processors: int) -> float:
        """Return the believed runtime in seconds, with what a malleable job's start costs."""
        seconds = self._real.belief(job, processors)
        if not self.malleable[job]:
            return seconds
        seconds += self._cost.start(processors)
        return seconds if self._shown is None else seconds + _margin(self.submit_time[job])

    def _kept_by(self, run: Run) -> int:
        return self._kept.get(run.job, run.processors)

    def end_of(self, run: Run) -> float:
        """Return when a run would end that held what it keeps from now on."""
        held, kept, relative = run.processors, self._kept_by(run), self._runs.relative
        if kept == held:
            return run.believed_end
        since, pause = max(self.now, run.resumes), self._cost.change(held, kept)
        before, after = relative(run.job, held), relative(run.job, kept)
        return lent_end(run.believed_end, since, pause, before, after)

    # For schedulers that remember reservations between passes

    def track(self) -> None:
        """Show ends to a scheduler that remembers reservations from one pass to the next.

        One that begins at the end of a malleable run would be lost if changes on the way there
        moved that end by a rounding error. So such a scheduler sees it late by a hair, and
        unmoved as long as the run is in time; and keeps in each pass what still fits.
        """
        self._shown = {}

    def expect(self, starts: Iterable[Decision]) -> None:
        """Take over for when it wants passes; note when those end that it starts, as it sees it."""
        _hand_over_wakes(self._state.tables, self._real._tables)
        for start in starts:
            if self._shown is not None and type(start) is Start:
                seconds = self.belief(start.job, start.processors)
                self._shown[start.job] = self.now + seconds, start.processors

    @property
    def keeps_otherwise(self) -> bool:
        """Whether a run keeps other processors than before, where ends are tracked."""
        return self._keeps_otherwise

    def _shown_end(self, run: Run) -> float:
        end, kept = self.end_of(run), self._kept_by(run)
        if self._shown is None or not self.malleable[run.job]:
            return end
        shown, before = self._shown.get(run.job, (-np.inf, run.processors))
        self._keeps_otherwise |= kept != before
        margin = _margin(end)
        if not end <= shown <= end + 2.0 * margin:
            shown = end + margin
        self._shown[run.job] = shown, kept
        return shown
