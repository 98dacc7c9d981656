"""A reallocation rule, and how it shares out what order and backfilling leave."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import direct
from predictors.in_loop.oracle import may_ask_ahead
from sim.engine.engine import Engine
from sim.engine.protocols import CompiledRule, Promise, Scheduler, is_exactly
from sim.errors import AT_LEAST_0, FINITE, PolicyError, check_choices
from sim.policies.allocation.rigid import Request
from sim.policies.backfill.easy import EasyScheduler
from sim.policies.base import Allocation, Backfill, Outlook
from sim.policies.order import Order
from sim.policies.passes.malleable import (
    Claims,
    CompiledSharingRule,
    Tables,
    free_for_starts,
    lent_ends_of,
    limits_of,
    make_sharing,
    pass_of,
    prepare,
    unchanged,
)
from sim.policies.passes.queue_rule import QueueScheduler
from sim.policies.reallocation.beliefs import BelievedCurves, LendingView, Members
from sim.policies.reallocation.costs import FREE, CostModel
from sim.policies.reallocation.shares import snap
from sim.policies.ties import is_less
from sim.state.availability import shadow_time
from sim.state.decisions import Decision, Resize, Start
from sim.state.machine_state import Run
from sim.state.run_steps import padded
from sim.state.view import View

_limits_of, _free_for_starts = direct(limits_of), direct(free_for_starts)
HOOKS = "share", "no_start_before", "wake"
"""What a rule says in a pass if it says so in Python."""


@dataclass(frozen=True)
class Reallocation:
    """A reallocation rule, and how it may act.

    Malleable jobs wait in the same queue as all others, for the count with which
    the rule lets them start; the allocation rule chooses for rigid and moldable
    jobs alone. Whoever may start is up to order and backfilling. A rule is a
    subclass that says in `share` who holds how many, and adds its own parameters.

    Parameters
    ----------
    cost : CostModel
        What changes cost; free by default.
    gain_factor : float
        κ: where changes cost something, they must be believed to save more than so
        many times what they cost. A job that grows must itself save more than that of its
        pause. Whoever shrinks loses his pause and the time that the job then takes longer:
        room is made for a waiting job only if it would have to wait longer otherwise, by
        the believed ends; and what a rule shares out beyond that is taken only if those who
        get more save more. 0 weighs no shrinks.
    distance : float
        Seconds that must pass between two changes of a job, unless it must make
        room for a start.
    reclaim : bool
        Whether what running malleable jobs could give up counts for starts and
        reservations. If not, malleable jobs wait for what the allocation rule
        gives them, as all others do, never shrink, and grow only while nobody waits.

    Attributes
    ----------
    shrinks_unasked : bool
        Whether the rule shrinks jobs on its own account, `reclaim` or not.
    defers : bool
        Whether jobs wait whose share rounds to nothing; without `reclaim` they do not.
    measures : bool
        Whether it goes by measured efficiencies.
    shares, prepare : callable
        Compiled: the processors of each who shares, of `Claims`, by default what it holds; and
        what comes before a pass, of a state and its `SharingMemory`, where all decisions of a run
        are compiled.
    reads_beliefs, reads_curves : bool
        Whether it reads anything off believed curves, and as much as they are long.
    """

    shrinks_unasked = defers = measures = reads_beliefs = reads_curves = False
    shares: ClassVar[Any] = staticmethod(unchanged)
    prepare: ClassVar[Any] = staticmethod(prepare)

    cost: CostModel = FREE
    gain_factor: float = 1.0
    distance: float = 0.0
    reclaim: bool = True

    def __post_init__(self) -> None:
        for former, hook in (("hold_back", "no_start_before"), ("queue_count", "start_count")):
            if hasattr(self, former):
                raise PolicyError(f"{type(self).__name__}.{former} is not asked: it is {hook} now")
        AT_LEAST_0.check(gain_factor=self.gain_factor)
        FINITE.check(distance=self.distance)
        check_choices(self)

    def share(self, beliefs: BelievedCurves, members: Members, total: int) -> IntArray:
        """Return the processors of each member: by default what `shares` gives.

        Parameters
        ----------
        beliefs : BelievedCurves
        members : Members
        total : int
            What they may hold together; at least the sum of ``members.least``.
        """
        limits = members.held, members.least, members.largest
        values = padded([beliefs.read_off(job, self.read_off) for job in members.job])
        work = relative = np.zeros(0)
        if self.weighs_work:
            work = beliefs.work_left(members)
            relative = beliefs.relative_times(members.job, members.largest, total)
        known = work, relative, np.array(self.parameters, float), members.searches
        claims = Claims(values, *limits, total, *known, beliefs.view.now)
        return np.asarray(self.shares(claims))

    def read_off(self, beliefs: BelievedCurves, job: int) -> FloatArray:
        """Return what `shares` needs of a job's believed curve, shape (r,)."""
        return np.zeros(0)

    @property
    def reads_each_job(self) -> bool:
        """Whether anything but its least count has to be known of each job before it runs."""
        asked = type(self).read_off, type(self).start_count
        return self.weighs_work or asked != (Reallocation.read_off, Reallocation.start_count)

    @property
    def weighs_work(self) -> bool:
        """Whether `shares` needs the work that is left."""
        return False

    @property
    def parameters(self) -> tuple[float, ...]:
        """By which `shares` tells how the rule is set."""
        return ()

    def start_count(self, beliefs: BelievedCurves, job: int) -> int:
        """Return with how many processors a job starts, and below which it never falls."""
        return beliefs.view.extremes(job)[0]

    def no_start_before(self, beliefs: BelievedCurves) -> float:
        """Return until when nobody may start, in seconds; -infinity if jobs may."""
        return -np.inf

    def wake(self, beliefs: BelievedCurves) -> float:
        """Return when the rule wants to share anew, infinity if only when something happens."""
        return np.inf

    @property
    def weighs_shrinks(self) -> bool:
        """Whether room is made only where that is worth what the victims lose."""
        return self.reclaim and not self.cost.free and self.gain_factor > 0

    @property
    def grows_only(self) -> bool:
        """Whether no job ever shrinks."""
        return not (self.reclaim or self.shrinks_unasked)

    def begin(
        self, view: View, order: Order, backfill: Backfill, allocation: Allocation
    ) -> Scheduler:
        """Begin a run."""
        return ReallocatingScheduler(self, view, order, backfill, allocation)


class ReallocatingScheduler:
    """Lets backfilling start jobs, then shares out processors among the malleable ones.

    Parameters
    ----------
    rule : Reallocation
    view : View
    order : Order
    backfill : Backfill
    allocation : Allocation
        Of rigid and moldable jobs.

    Attributes
    ----------
    inner : Scheduler
        Who decides about starts, on the view of what malleable jobs keep.
    """

    promise: Promise = "inner"

    def __init__(
        self,
        rule: Reallocation,
        view: View,
        order: Order,
        backfill: Backfill,
        allocation: Allocation,
    ) -> None:
        self.view = view
        self.rule, self.allocation = rule, allocation
        self.beliefs = BelievedCurves(view)
        relative_time = self.beliefs.relative_time
        lent_ends = lent_ends_of(lambda _, job, n: relative_time(int(job), n), rule.cost.change)
        self.lending_view = LendingView(view, lambda: lent_ends(self.tables), rule.cost)
        self.inner = backfill.begin(self.lending_view, order, self)
        if getattr(self.inner, "keeps_reservations", False):
            self.lending_view.track()
        state, strict = view._state.tables, getattr(self.inner, "strict", False)
        self.tables = state, make_sharing(rule, state, strict and not rule.grows_only)
        self._prepare = direct(rule.prepare)

    def compiled_rule(self, engine: Engine) -> CompiledRule | None:
        """Return the compiled rule where nothing in Python has a say in a pass.

        That is so under EASY in an order that stays, where changes are free, every count
        between the least and the largest of a malleable job is feasible, the predictor
        does not learn, and nobody is kept to the request.
        """
        inner, rule = self.inner, self.rule
        if (
            any(getattr(type(rule), name) is not getattr(Reallocation, name) for name in HOOKS)
            or not (rule.cost.free and rule.cost.start(1) == rule.distance == 0)
            or not (rule.reclaim or (rule.shrinks_unasked and not rule.defers))
            or self.view.predictor.learns
            or engine.kills
            or not may_ask_ahead(engine.predictor)
            or not (isinstance(inner, EasyScheduler) and inner.is_plain)
            or not is_exactly(self.allocation, Request)
        ):
            return None
        compiled = CompiledSharingRule(engine, rule, self.beliefs, inner)
        return compiled if compiled.is_supported else None

    def choose(self, job: int, view: View, outlook: Outlook) -> int:
        """Return the count with which a job waits: the rule's if malleable, else the allocation's.

        `inner` asks it, as the allocation that it is given.
        """
        if view.malleable[job] and not self.rule.grows_only:
            return self._start_count(job)
        return self.allocation.choose(job, view, outlook)

    def _start_count(self, job: int) -> int:
        """Return the count with which a job starts, below which it need not fall."""
        return self.beliefs.cached(job, "start count", partial(self.rule.start_count, self.beliefs))

    def decide(self) -> list[Decision]:
        """Decide who starts, and who grows and shrinks."""
        self.beliefs.refresh()
        make_pass = pass_of(
            self._take_in,
            self._claim,
            lambda at, members, total: self.rule.share(self.beliefs, members, total),
            self._find_starts,
            self._approve,
            self._resize,
            self._start,
        )
        make_pass(self.tables)
        return self._decisions

    # The steps of a pass, which `pass_of` says, over tables that are filled here

    def _take_in(self, at: Tables) -> IntArray:
        """Put down who runs, on no fewer than what, and who has come; measure runs if it is due."""
        (state, sharing), view, rule = at, self.view, self.rule
        own, searches, tally = sharing.jobs, sharing.searches, sharing.tally
        for run in view.ended:
            self.beliefs.forget(run.job)
            searches[run.job : run.job + 1] = 0  # if any are kept
        running = [job for job in view.running if view.malleable[job]]
        tally["running"] = len(running)
        sharing.running[: len(running)] = running
        least = np.inf if rule.grows_only else [*map(self._start_count, running)]
        own["least"][running] = np.minimum(state.processors[running], least)
        own["resumes"][running] = [view.running[job].resumes for job in running]
        for job in running if rule.measures else ():
            if searches["due"][job] <= view.now:
                searches["new_efficiency"][job] = view.measured_efficiency(job)
        self._prepare(state, sharing)
        not_before = rule.no_start_before(self.beliefs)
        tally["no_start_before"] = max(tally["no_start_before"].item(), not_before)
        for job in view.arrived:
            own["most"][job] = view.extremes(job)[1] if view.malleable[job] else 0
        return np.array(view.arrived, np.int64)

    def _claim(
        self, at: Tables, jobs: IntArray, guaranteed: int, total: int, others_wait: bool
    ) -> Members:
        """Return the members that jobs are; of their curves, a rule reads what it needs."""
        asked, sharing = jobs.tolist(), at[1]
        if others_wait:
            sharing.jobs["request"][jobs] = [*map(self.beliefs.fallback_request, asked)]
        limits = _limits_of(at, jobs, guaranteed, others_wait)
        searches = sharing.searches[jobs] if self.rule.measures else sharing.searches
        return Members(asked, [*map(self.view.running.get, asked)], *limits, searches)

    def _find_starts(
        self, at: Tables, arrived: IntArray, queueing: IntArray
    ) -> tuple[list[Start], IntArray, int]:
        """Find them as backfilling does; of who starts, return all that it decides."""
        state, sharing = at
        if self.rule.weighs_shrinks:
            running = sharing.running[: sharing.tally["running"].item()]
            sharing.jobs["keeps"][running] = self._worth_keeping(at, running, arrived.tolist())
        self.lending_view.take_in(queueing.tolist(), _free_for_starts(at))
        decisions = self.inner.decide()
        self.lending_view.expect(decisions)
        starts = [d for d in decisions if type(d) is Start]
        self._decisions = [d for d in decisions if type(d) is not Start]
        starting = np.array([start.job for start in starts], np.int64)
        state.processors[starting] = [start.processors for start in starts]
        sharing.jobs["least"][starting] = state.processors[starting]
        waiting = self.inner.queue.waiting if isinstance(self.inner, QueueScheduler) else 0
        return starts, starting, waiting

    def _approve(
        self, at: Tables, jobs: IntArray, members: Members, shares: IntArray, total: int
    ) -> tuple[IntArray, float]:
        """Return what pays and is feasible of the shares, and from when on more may be."""
        shares, later = self._guarded(members, self._snapped(members, shares, total), total)
        return shares, min(later, self.rule.wake(self.beliefs))

    def _resize(self, at: Tables, job: int, count: int) -> None:
        cost = self.rule.cost.change(self.view.running[job].processors, int(count))
        self._decisions.append(Resize(int(job), int(count), None, cost))

    def _start(self, at: Tables, starts: Sequence[Start], jobs: IntArray, counts: IntArray) -> None:
        shares = dict(zip(jobs.tolist(), counts.tolist(), strict=True))
        for start in starts:
            share = shares.get(start.job, 0)
            whole = Start(start.job, share, None, self.rule.cost.start(share)) if share else start
            self._decisions.append(whole._replace(nodes=None) if shares else whole)

    def _wanted(self, arrived: list[int]) -> Iterator[int]:
        """Yield the counts for which jobs wait, in queue order, then those of the arrivals."""
        view = self.view
        if isinstance(self.inner, QueueScheduler):
            queue = self.inner.queue
            yield from queue.processors[queue.places()].tolist()
        for job in arrived:
            yield self._start_count(job) if view.malleable[job] else view.requested_processors[job]

    def _snapped(self, members: Members, shares: IntArray, total: int) -> IntArray:
        """Lower the shares to feasible counts."""
        limits = map(self.view._feasible.sparse, members.job), members.least, members.largest
        usable = [
            None if counts is None else counts[(counts >= low) & (counts <= high)]
            for counts, low, high in zip(*limits, strict=True)
        ]
        return snap(shares, total, usable)

    # The guard

    def _guarded(self, members: Members, shares: IntArray, total: int) -> tuple[IntArray, float]:
        """Undo the changes that do not pay or come too soon, as far as starts leave room.

        Returns
        -------
        tuple of (numpy.ndarray of int, float)
            The shares, and when the first change that came too soon may be tried again.
        """
        rule, now, later = self.rule, self.view.now, np.inf
        if rule.cost.free and rule.distance == 0:
            return shares, later
        shares = shares.copy()
        if rule.weighs_shrinks and not rule.shrinks_unasked:
            shares = self._worth_sharing(members, shares, total)
        unneeded: list[tuple[bool, int, int]] = []
        for place, run in enumerate(members.run):
            if run is None or shares[place] == run.processors:
                continue
            soon = now < run.changed + rule.distance
            if soon:
                later = min(later, run.changed + rule.distance)
            if shares[place] < run.processors:
                unneeded.append((not soon, run.processors - int(shares[place]), place))
            elif soon or not self._pays(run, int(shares[place])):
                shares[place] = run.processors
        slack = total - int(shares.sum())
        for _, given_up, place in sorted(unneeded):
            if given_up <= slack:
                shares[place] += given_up
                slack -= given_up
        return shares, later

    # What changes are worth: seconds saved against κ times those that they cost

    def _pays(self, run: Run, processors: int) -> bool:
        """Say whether a growth is believed to save more than κ times its pause."""
        saved = self.view.seconds_left(run) - self.beliefs.seconds_left(run, processors)
        pause = self.rule.cost.change(run.processors, processors)
        return bool(is_less(self.rule.gain_factor * pause, saved))

    def _seconds(self, job: int, run: Run | None, processors: int) -> float:
        """Return the believed seconds until a job ends that holds so many from now on."""
        cost = self.rule.cost
        if run is None:
            seconds = self.beliefs.serial_time(job) * self.beliefs.relative_time(job, processors)
            return seconds + cost.start(processors)
        seconds = self.beliefs.seconds_left(run, processors)
        if processors != run.processors:
            seconds += cost.change(run.processors, processors)
        return seconds

    def _loss(self, job: int, run: Run | None, have: int, left: int) -> float:
        """Return the seconds that a job loses that gets a count in place of another."""
        return self._seconds(job, run, left) - self._seconds(job, run, have)

    def _losses(self, members: Members, have: IntArray, left: IntArray) -> list[float]:
        return [*map(self._loss, members.job, members.run, have.tolist(), left.tolist())]

    def _down_to(self, members: Members, place: int, wanted: int) -> int:
        """Return the largest count up to `wanted` to which a job may fall, else its least."""
        least = members.least.item(place)
        if wanted <= least:
            return least
        return max(self.view._feasible.up_to(members.job[place], wanted), least)

    def _lowered(self, members: Members, counts: IntArray, needed: int) -> IntArray | None:
        """Return counts of members where runs give up processors; None if too few can.

        Those who lose least come first, each giving what is needed of what it can.
        """
        options = []
        for place, run in enumerate(members.run):
            have = counts.item(place)
            left = have if run is None else self._down_to(members, place, have - needed)
            if left < have:
                options.append((self._loss(members.job[place], run, have, left), place))
        lowered = counts.copy()
        for _, place in sorted(options):
            lowered[place] = self._down_to(members, place, counts.item(place) - needed)
            needed -= int(counts[place] - lowered[place])
            if needed <= 0:
                return lowered
        return None

    def _worth_keeping(self, at: Tables, jobs: IntArray, arrived: list[int]) -> IntArray:
        """Return what runs keep that may give up processors for waiting jobs, in their order."""
        view, free = self.view, self.view.free
        running = self._claim(at, jobs, jobs.size, 0, False)
        kept = running.held
        for count in self._wanted(arrived):
            if count > free:
                left = self._lowered(running, kept, count - free)
                if left is None:
                    break
                start, _ = shadow_time(view._ends.rows(), free, count, view.now)
                losses = self._losses(running, kept, left)
                if not is_less(self.rule.gain_factor * sum(losses), max(start - view.now, 0.0)):
                    break
                free, kept = free + int((kept - left).sum()), left
            free -= count
        return kept

    def _worth_sharing(self, members: Members, shares: IntArray, total: int) -> IntArray:
        """Return the rule's shares if what they save is worth it, else the least change there is.

        In that only those shrink who must: for the starts, the cheapest. What is free goes to
        those who would get more.
        """
        if not (shares < members.held).any():
            return shares
        needed: IntArray = np.maximum(members.held, members.least)
        over = int(needed.sum()) - total
        least = self._lowered(members, needed, over) if over > 0 else needed
        if least is None:
            return shares
        left_over = total - int(least.sum())
        for k, job in enumerate(members.job):
            if shares[k] > least[k] and left_over > 0:
                most = min(int(shares[k]), int(least[k]) + left_over)
                most = max(self.view._feasible.up_to(job, most), int(least[k]))
                left_over -= most - int(least[k])
                least[k] = most
        saved = self._losses(members, shares, least)
        gain, loss = sum(max(one, 0.0) for one in saved), sum(max(-one, 0.0) for one in saved)
        return shares if is_less(self.rule.gain_factor * loss, gain) else least
