"""Conservative backfilling: every waiting job holds a reservation (Feitelson & Weil 1998)."""

import numpy as np

from predictors.base import FloatArray, IntArray
from sim.policies.allocation.rigid import Request
from sim.policies.allocation.sa import has_table
from sim.policies.backfill.passes import CONSERVATIVE
from sim.policies.backfill.queue_search import BLOCK, Blocks, forget
from sim.policies.backfill.reservations import (
    compress,
    due,
    no_bounds,
    repair,
    replan_soonest,
    reserve_rest,
)
from sim.policies.base import Allocation, OpenAllocation, QueueKeeper, Scheduler
from sim.policies.molding.candidates import HIGH, LOW
from sim.policies.molding.choice import best_candidate, compress_candidates
from sim.policies.molding.scheduler import ALL, OpenKeeper, OpenScheduler
from sim.policies.order import Order
from sim.state.availability import Profile
from sim.state.decisions import Decision, Start, WakeAt
from sim.state.view import View


class Conservative:
    """Conservative backfilling.

    Parameters
    ----------
    replan : bool
        False keeps reservations and compresses them when processors become
        free early; True rebuilds all of them in queue order in every scheduling pass.

    Examples
    --------
    >>> import sim
    >>> policy = sim.Policy(sim.FirstComeFirstServed(), Conservative(), sim.Request())
    >>> result = sim.run("workload.jobs=20", policy=policy, predictor="oracle")
    >>> set(result.jobs["status"])
    {'completed'}
    """

    def __init__(self, replan: bool = False) -> None:
        self.replan = replan

    def begin(self, view: View, order: Order, allocation: Allocation | OpenAllocation) -> Scheduler:
        """Begin a run."""
        if isinstance(allocation, OpenAllocation):
            if self.replan:
                return OpenScheduler(view, order, allocation, ALL)
            return OpenConservativeScheduler(view, order, allocation)
        if self.replan:
            return ReplanningScheduler(view, order, allocation)
        return ConservativeScheduler(view, order, allocation)


class ReservationKeeper(QueueKeeper):
    """What both kinds share: the profile, and starting the jobs whose time has come."""

    def __init__(self, view: View, order: Order, allocation: Allocation) -> None:
        super().__init__(view, order, allocation)
        self.profile = Profile(view.processors)
        self._found = np.zeros(64, np.int64)
        self._next_start = np.inf
        self._waking = np.inf

    def outlook(self, counts: IntArray, runtimes: FloatArray) -> FloatArray:
        """Return the earliest start of each (count, runtime) among all reservations."""
        return self.profile.earliest_of(self.view.now, counts, runtimes)

    def place(self, job: int) -> None:
        """Admit a job and reserve the earliest hole for it."""
        queue = self.queue
        place = self.admit(job, self.outlook)
        start = self.profile.place(
            self.view.now, queue.processors.item(place), queue.runtime.item(place)
        )
        queue.start[place] = start
        self._next_start = min(self._next_start, start)

    def start_due(self) -> list[Decision]:
        """Start the jobs whose reservation begins now, in queue order."""
        queue, now = self.queue, self.view.now
        decisions: list[Decision] = []
        if self._next_start > now:
            self._ask_to_wake(decisions)
            return decisions
        if self._found.size < queue.job.size:
            self._found = np.zeros(queue.job.size, np.int64)
        unknown = np.full(queue.last // BLOCK + 1, -np.inf)
        number, self._next_start = due(
            queue.table, unknown, queue.first, queue.last, now, self._found
        )
        for place in self._found[:number].tolist():
            decisions.append(self.start(place))
        self._ask_to_wake(decisions)
        return decisions

    def start(self, place: int) -> Start:
        """Start the job at a place on its count."""
        queue = self.queue
        start = Start(queue.job.item(place), queue.processors.item(place))
        queue.drop(place)
        return start

    def _ask_to_wake(self, decisions: list[Decision]) -> None:
        """See to it that there is a pass when the next reservation begins.

        Most begin when a running job is believed to end, when there is one anyway.
        """
        view, start = self.view, self._next_start
        if start == np.inf or start == self._waking:
            return
        ends = view.believed_ends.end
        place = ends.searchsorted(start)
        if place < ends.size and ends.item(place) == start:
            return
        self._waking = start
        decisions.append(WakeAt(float(start)))

    def grow(self) -> None:
        """Make room in the profile for all that runs, waits and arrives."""
        view = self.view
        self.profile.grow(self.queue.waiting + len(view.running) + len(view.arrived) + 1)

    def lay_running(self) -> None:
        """Begin the profile anew from the running jobs."""
        self.grow()
        self.profile.lay(self.view.now, self.view.believed_ends)


class ReplanningScheduler(ReservationKeeper):
    """Rebuilds the reservations, in queue order, in every scheduling pass.

    A pass makes those that tell who starts now and when the next one begins; whoever asks for
    more gets the others then.
    """

    def __init__(self, view: View, order: Order, allocation: Allocation) -> None:
        super().__init__(view, order, allocation)
        self._blocks = Blocks()
        self._bounds = no_bounds(0, self._blocks.summaries)

    def decide(self) -> list[Decision]:
        """Reserve as far as it matters now, then start those whose hole begins now."""
        view, queue = self.view, self.queue
        if self.refresh():
            self._blocks.forget()
        self.rank()
        queue.tidy()
        self._begin_anew()
        for job in view.arrived:
            if self._keyless:
                self.admit(job, self.outlook)
            else:
                self._place_last(job)
        if view.arrived and not self._keyless:
            self.rank()
            self._begin_anew()
        summaries, bounds = self._blocks.follow(queue), self._bounds
        if bounds.summaries is not summaries or bounds.matter.size < queue.job.size:
            bounds = self._bounds = no_bounds(queue.job.size, summaries)
        holes = self.profile.holes
        replan_soonest(holes, view.now, queue.table, queue.first, queue.last, bounds)
        self._next_start = view.now if queue.waiting else np.inf
        return self.start_due()

    def outlook(self, counts: IntArray, runtimes: FloatArray) -> FloatArray:
        """Return the earliest start of each (count, runtime) among all reservations."""
        self._reserve_all()
        return super().outlook(counts, runtimes)

    def reserved_starts(self) -> dict[int, tuple[float, int, float]]:
        """Return start, processors and believed runtime of every reservation of this pass."""
        self._reserve_all()
        return super().reserved_starts()

    def start(self, place: int) -> Start:
        """Start the job at a place on its count."""
        forget(self._blocks.summaries, place, place)
        return super().start(place)

    def _begin_anew(self) -> None:
        """Take all reservations back."""
        self.lay_running()
        self.queue.start[self.queue.first : self.queue.last] = np.inf

    def _place_last(self, job: int) -> None:
        """Admit a job wherever its key puts it; if it is to foresee starts, behind all others."""
        if isinstance(self.allocation, Request):
            self.admit(job, self.outlook)
            return
        self._reserve_all()
        self.place(job)

    def _reserve_all(self) -> None:
        """Make the reservations that are not made yet."""
        queue = self.queue
        reserve_rest(self.profile.holes, self.view.now, queue.table, queue.first, queue.last)


class ConservativeScheduler(ReservationKeeper):
    """Holds reservations from arrival on; compression moves them earlier, never later.

    Only when a belief grows can a reservation move later, and only one that no
    longer fits.
    """

    tracks_runs = True

    @property
    def compiled(self) -> int | None:
        """`CONSERVATIVE` where jobs choose by a table, if at all, and keep the order of arrival."""
        plain = type(self) is ConservativeScheduler and self._keyless
        return CONSERVATIVE if plain and has_table(self.allocation, self.view) else None

    def __init__(self, view: View, order: Order, allocation: Allocation) -> None:
        super().__init__(view, order, allocation)
        self._freed = np.array([np.inf, -np.inf])

    def decide(self) -> list[Decision]:
        """Bring the profile up to date, compress, place arrivals, start who is due."""
        view = self.view
        self.queue.tidy()
        self.grow()
        self.profile.advance(view.now)
        released = self._release_early_ends()
        released |= self._take_in_moved_ends()
        if view.outages_changed:
            self._repair()
            released = True
        if view.revised:
            released |= self._take_in_beliefs()
        self.rank()
        self._take_in_arrivals()
        if released and self.queue.waiting:
            self._compress()
        for job in view.arrived:
            self.place(job)
        return self.start_due()

    def _take_in_arrivals(self) -> None:
        """Prepare for the arrivals: nothing where each is placed by itself."""

    def _release_early_ends(self) -> bool:
        now = self.view.now
        early = False
        for run in self.view.ended:
            held_until = self.view.moved_ends.get(run, run.believed_end)
            if held_until > now:
                self.profile.occupy(now, held_until, -run.processors)
                self._note_freed(now, held_until)
                early = True
        return early

    def _take_in_moved_ends(self) -> bool:
        """Follow believed ends of running jobs, in both directions."""
        view, profile = self.view, self.profile
        shrunk = must_repair = False
        for run, before in view.moved_ends.items():
            if view.running.get(run.job) is not run:
                continue
            now_ends, before = run.believed_end, max(before, view.now)
            if run in view.resized:
                shrunk = must_repair = True
                continue
            if now_ends < before:
                profile.occupy(now_ends, before, -run.processors)
                self._note_freed(now_ends, before)
                shrunk = True
            elif not must_repair:
                if profile.least_free(before, now_ends) >= run.processors:
                    profile.occupy(before, now_ends, run.processors)
                else:
                    must_repair = True
        if must_repair:
            self._repair()
        return shrunk

    def _take_in_beliefs(self) -> bool:
        changed = self.refresh()
        if changed:
            self._repair()
        return any(self.queue.runtime[place] < before for place, before in changed)

    def _repair(self) -> None:
        queue, profile = self.queue, self.profile
        self.lay_running()
        repair(profile.holes, self.view.now, queue.table, queue.first, queue.last)
        self._next_start = self.view.now
        self._note_freed(self.view.now, np.inf)

    def _note_freed(self, start: float, end: float) -> None:
        self._freed[0] = min(self._freed[0], start)
        self._freed[1] = max(self._freed[1], end)

    def _compress(self) -> None:
        queue, profile = self.queue, self.profile
        now, jobs = self.view.now, queue.table
        compress(profile.holes, now, jobs, queue.first, queue.last, self._freed)
        self._next_start = self.view.now


class OpenConservativeScheduler(OpenKeeper, ConservativeScheduler):
    """Conservative with open counts: every waiting job holds a count and a reservation.

    A job takes the candidate of earliest end when it arrives; all arrivals of an instant are
    in the queue before the rule says what is allowed. When processors become free early,
    every waiting job in queue order may take another candidate if it then ends earlier; none
    ever ends later than it was promised, unless beliefs grow.
    """

    def decide(self) -> list[Decision]:
        """Bring the profile up to date, compress with open counts, start who is due."""
        self.candidates.watch()
        return super().decide()

    def _take_in_arrivals(self) -> None:
        """Queue all arrivals, then let the rule narrow the candidates, once in this pass."""
        for job in self.view.arrived:
            self.admit(job, self.outlook)
        if self.queue.waiting:
            self.candidates.narrow(self.queue)
        queue = self.queue
        arrived = set(self.view.arrived)
        self._places = {
            queue.job.item(place): place
            for place in (queue.places().tolist() if arrived else ())
            if queue.job.item(place) in arrived
        }

    def place(self, job: int) -> None:
        """Reserve the hole in which a job that was taken in ends earliest."""
        queue, profile, now = self.queue, self.profile, self.view.now
        place = self._places[job]
        pick, start = best_candidate(
            profile.holes,
            now,
            queue.counts,
            queue.runtimes,
            queue.spans.item(LOW, place),
            queue.spans.item(HIGH, place),
            np.inf,
        )
        queue.choose(place, pick)
        queue.start[place] = start
        end = start + queue.runtime.item(place)
        queue.promise[place] = end
        profile.occupy(start, end, queue.processors.item(place))
        self._next_start = min(self._next_start, start)

    def _compress(self) -> None:
        queue, profile = self.queue, self.profile
        compress_candidates(
            profile.holes,
            self.view.now,
            queue.table,
            queue.every_candidate,
            queue.first,
            queue.last,
            self._freed,
        )
        self._next_start = self.view.now
