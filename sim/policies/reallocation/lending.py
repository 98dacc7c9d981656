"""The machine as backfilling sees it under reallocation: what malleable jobs keep, and no more."""

from bisect import insort
from collections.abc import Callable

from sim.policies.reallocation.beliefs import Beliefs
from sim.view import Run, View

Ends = list[tuple[float, int, int]]


class LendingView(View):
    """A view in which malleable runs hold what they keep at least; the rest is only lent.

    What a run could give up counts as free, and its believed end is that of a
    run that does give it up now: holding more, it ends no later. So whatever a
    backfilling rule promises on this view, it can keep.

    Parameters
    ----------
    view : View
        The real one; everything but runs and free processors is shared with it.
    beliefs : Beliefs
    kept : callable
        Run to the processors that it keeps.
    """

    def __init__(self, view: View, beliefs: Beliefs, kept: Callable[[Run], int]) -> None:
        shared = {k: v for k, v in vars(view).items() if k != "believed_ends"}
        self.__dict__.update(shared)
        self._real = view
        self._beliefs = beliefs
        self._kept = kept
        self._ends: Ends | None = None
        self._held_back: tuple[float, int] | None = None
        self._shadows: dict[int, Run] = {}

    @property
    def believed_ends(self) -> Ends:
        """Believed end, job index and processors of each running job, ascending."""
        if self._ends is None:
            self._ends = self._all_ends()
        return self._ends

    @believed_ends.setter
    def believed_ends(self, ends: Ends) -> None:
        self._ends = ends

    def look(self, lent: int, held_back: float | None) -> None:
        """Take in what has happened.

        Parameters
        ----------
        lent : int
            How many processors malleable runs hold beyond what they keep.
        held_back : float or None
            Until when nothing counts as free.
        """
        self.now = self._real.now
        self.free = self._real.free + lent
        self._held_back = None if held_back is None else (held_back, self.free)
        if held_back is not None:
            self.free = 0
        self.disturbed = True
        self.outages_changed = self._real.outages_changed
        self._ends = None

    def settle(self) -> None:
        """Report the questions that were asked through this view."""
        self._real.queries += self.queries
        self.queries = 0

    def end_of(self, run: Run) -> float:
        """Return when a run would end that held what it keeps from now on."""
        kept = self._kept(run)
        if kept == run.processors:
            return run.believed_end
        since = max(self.now, run.resumes)
        return since + self._beliefs.seconds_left(run, kept)

    def _all_ends(self) -> Ends:
        ends = [(self.end_of(run), run.job, self._kept(run)) for run in self._real.running.values()]
        ends += [(end, -1 - node, width) for node, (end, width) in self._real.outages.items()]
        ends.sort()
        if self._held_back is not None and self._held_back[1] > 0:
            insort(ends, (self._held_back[0], -1, self._held_back[1]))
        return ends

    # For schedulers that remember runs between looks

    def follow(self) -> None:
        """Bring the runs that such a scheduler sees up to date, and say what moved."""
        self.moved_ends = {}
        self.resized = set()
        shadows = self._shadows
        self.ended = []
        for run in self._real.ended:
            shadow = shadows.pop(run.job, None)
            if shadow is not None:
                self.ended.append(shadow)
        for run in self._real.running.values():
            self._follow(run)
        self._follow_held_back()
        self.running = shadows

    def _follow(self, run: Run) -> None:
        kept, end = self._kept(run), self.end_of(run)
        self._update(run.job, kept, end)

    def _update(self, job: int, processors: int, end: float) -> None:
        shadow = self._shadows.get(job)
        if shadow is None:
            self.expect(job, processors, end)
            shadow = self._shadows[job]
            self.resized.add(shadow)
            self.moved_ends[shadow] = end
        if shadow.processors != processors:
            self.resized.add(shadow)
            shadow.processors = processors
        if shadow.believed_end != end or shadow in self.resized:
            self.moved_ends.setdefault(shadow, shadow.believed_end)
            shadow.believed_end = end

    def _follow_held_back(self) -> None:
        block = self._held_back
        if block is None or block[1] == 0:
            gone = self._shadows.pop(-1, None)
            if gone is not None:
                self.ended.append(gone)
        else:
            self._update(-1, block[1], block[0])

    def expect(self, job: int, processors: int, end: float) -> None:
        """Note a start as the scheduler that decided it sees it."""
        self._shadows[job] = Run(job, 0, (), processors, self.now, end)
