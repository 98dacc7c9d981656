"""Invariants of a run, checked from the outside while it goes on (``sim.check=true``)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sim.engine.protocols import AroundScheduler
from sim.engine.watcher import Watched, Watcher
from sim.errors import InvariantError
from sim.state.availability import shadow_time
from sim.state.decisions import Decision, Grant, Resize, Start
from sim.state.processors import count_processors, join_ranges
from sim.state.view import View

_ROUNDING = 1e-9


class Checker(Watcher):
    """Watches an engine and stops it as soon as a rule is broken.

    Checked in every pass: no processor is held twice, none is lost, and those of
    a failed node are held by nobody; jobs
    start after their submit, once, within what is free; only malleable jobs are
    resized, to feasible counts; beliefs lie ahead; EASY
    backfills nobody who would delay the head's reservation; conservative
    reservations fit together, and move later only when a belief has grown (with
    open counts: their ends; under reallocation: or when a change is paid for, a run is
    believed slower on more than it keeps, or the rule lets nobody start); no job with
    an open count moves a reservation. At the end: held areas balance and every job is
    accounted for.

    Raises
    ------
    InvariantError
        From the engine's run, with the instant and the job.
    """

    def __init__(self) -> None:
        self._last_pass = 0.0
        self._busy = 0
        self._area = 0.0
        self._reserved: dict[int, float] = {}
        self._was_paid = False
        self._may_delay = False

    def decided(self, engine: Watched, decisions: Sequence[Decision]) -> None:
        """Check the machine before the decisions of a pass, and the decisions."""
        now = engine.view.now
        self._area += self._busy * (now - self._last_pass)
        self._check_processors(engine)
        self._check_beliefs(engine)
        self._check_starts(engine, decisions)
        scheduler = engine.scheduler
        while isinstance(scheduler, AroundScheduler):
            self._may_delay |= scheduler.may_delay
            scheduler = scheduler.inner
        checks = {
            "head": self._check_head,
            "starts": self._check_reservations,
            "ends": self._check_reservations,
            "fit": self._check_fit,
            "lent": self._check_lent,
        }
        promise = getattr(scheduler, "promise", None)
        if promise is not None:
            checks[promise](engine, scheduler, decisions)
        self._last_pass = now
        self._busy = sum(run.processors for run in engine.view.running.values())
        for decision in decisions:
            if isinstance(decision, Start):
                self._busy += decision.processors
            elif isinstance(decision, Resize):
                self._busy += decision.processors - engine.view.running[decision.job].processors

    def finished(self, engine: Watched) -> None:
        """Check the books when nothing is left to happen."""
        view, idle = engine.view, engine.view.machine.idle()
        for ranges in engine.down.values():
            idle = join_ranges(idle, ranges)
        if view.running or view.free + _out_of_service(engine) != view.processors:
            raise InvariantError("the run is over but processors are still held")
        _require(idle == ((0, view.processors - 1),), engine, "lost processors")
        held = engine.log.held_area()
        if not np.isclose(held, self._area, rtol=1e-9, atol=1e-6):
            raise InvariantError(
                f"stretches hold {held} processor-seconds; the machine was busy for {self._area}"
            )

    def _check_processors(self, engine: Watched) -> None:
        view = engine.view
        held = list(view.machine.idle())
        for run in view.running.values():
            _require(count_processors(run.nodes) == run.processors, engine, "miscounted run")
            held += run.nodes
        for ranges in engine.down.values():
            held += ranges
        following = 0
        for low, high in [*sorted(held), (view.processors, view.processors)]:
            if low != following:
                state = "held twice" if low < following else "neither held nor free"
                raise InvariantError(f"t={view.now}: processor {min(low, following)} is {state}")
            following = high + 1
        _require(count_processors(view.machine.idle()) == view.free, engine, "free count is wrong")

    def _check_beliefs(self, engine: Watched) -> None:
        view = engine.view
        believed = [(r.believed_end, r.job, r.processors) for r in view.running.values()]
        believed += [(end, -1 - node, width) for node, (end, width) in view.machine.outages.items()]
        believed.sort()
        _require(believed == view.believed_ends.rows(), engine, "expected ends are out of step")
        _require(not believed or believed[0][0] > view.now, engine, "an expected end has passed")

    def _check_starts(self, engine: Watched, decisions: Sequence[Decision]) -> None:
        view = engine.view
        for decision in decisions:
            if isinstance(decision, Start):
                job, processors = decision.job, decision.processors
                _require(view.submit_time[job] <= view.now, engine, f"job {job} starts early")
                least, largest = view.extremes(job)
                _require(
                    least <= processors <= largest or processors == view.requested_processors[job],
                    engine,
                    f"job {job} starts on {processors}, outside {least} to {largest}",
                )
            elif isinstance(decision, Resize):
                self._check_resize(engine, decision.job, decision.processors)
            elif isinstance(decision, Grant) and decision.kind == "processors":
                asked = view.requests[decision.job, decision.kind]
                self._check_resize(engine, decision.job, asked.processors)

    def _check_resize(self, engine: Watched, job: int, processors: int) -> None:
        view = engine.view
        counts = view._feasible.special(job)
        least, largest = view.extremes(job)
        feasible = least <= processors <= largest and (counts is None or processors in counts)
        _require(view.malleable[job], engine, f"job {job} is resized but not malleable")
        _require(feasible, engine, f"job {job} goes on with {processors} processors, not feasible")

    def _check_head(self, engine: Watched, scheduler: Any, decisions: Sequence[Decision]) -> None:
        view, queue = engine.view, scheduler.queue
        if queue.waiting == 0:
            return
        starts = [d for d in decisions if isinstance(d, Start)]
        ends = [(end, n) for end, _, n in view.believed_ends.rows()]
        started = [(view.now + view.belief(d.job, d.processors), d.processors) for d in starts]
        place = queue.head()
        wanted = queue.processors.item(place)
        heads = scheduler.heads
        free = view.free - sum(n for _, n in started[:heads])
        promised, _ = shadow_time(ends + started[:heads], free, wanted, view.now)
        free -= sum(n for _, n in started[heads:])
        kept, _ = shadow_time(ends + started, free, wanted, view.now)
        moves = f"backfilling moves the start of job index {queue.job.item(place)}"
        _require(kept <= promised, engine, f"{moves} from {promised} to {kept}")

    def _check_reservations(
        self, engine: Watched, scheduler: Any, decisions: Sequence[Decision]
    ) -> None:
        view, queue = engine.view, scheduler.queue
        grown = _has_grown(view) or (self._may_delay and bool(view.changes.resized))
        reserved = {}
        is_open = scheduler.promise == "ends"
        changes = _held(view, decisions)
        for place in queue.places().tolist():
            job, start = queue.job.item(place), queue.start.item(place)
            promised = start + queue.runtime.item(place) if is_open else start
            reserved[job] = promised
            keeps = grown or promised <= self._reserved.get(job, np.inf)
            _require(keeps, engine, f"the reservation of job index {job} moved later")
            count = queue.processors.item(place)
            changes += [(start, count), (start + queue.runtime.item(place), -count)]
        _require(_peak(changes) <= 0, engine, "reservations do not fit together")
        self._reserved = reserved

    def _check_lent(self, engine: Watched, scheduler: Any, decisions: Sequence[Decision]) -> None:
        """Check what conservative backfilling promises on what malleable jobs keep."""
        inner, rule = scheduler.inner, scheduler.rule
        if getattr(inner, "promise", None) not in ("starts", "ends"):
            return
        view, queue = engine.view, inner.queue
        places = queue.places()
        reserved = dict(zip(queue.job[places].tolist(), queue.start[places].tolist(), strict=True))
        excused = _has_grown(view) or self._was_paid or rule.shrinks_unasked
        excused = excused or scheduler.lends_otherwise or scheduler.lending.keeps_otherwise
        excused = excused or _is_slowed(view, scheduler)
        for job, start in reserved.items():
            before = self._reserved.get(job, np.inf)
            keeps = excused or start <= before + _ROUNDING * (1 + abs(before))
            moved = f"the reservation of job index {job} moved from {before} to {start}"
            _require(keeps, engine, moved)
        self._reserved = reserved
        changes = [d for d in decisions if isinstance(d, Start | Resize) and view.malleable[d.job]]
        self._was_paid = bool(changes) and not rule.cost.free

    def _check_fit(self, engine: Watched, scheduler: Any, decisions: Sequence[Decision]) -> None:
        """Check that reservations of open counts and all that runs or starts fit together."""
        view = engine.view
        changes = _held(view, decisions)
        for job, count in scheduler.reserved_starts().items():
            start, processors, runtime = count
            _require(start > view.now, engine, f"job index {job} is reserved in the past")
            changes += [(start, processors), (start + runtime, -processors)]
        _require(_peak(changes) <= 0, engine, "reservations do not fit together")


def _has_grown(view: View) -> bool:
    """Say whether anybody may believe that something takes longer than was thought."""
    return bool(view.changes.revised or view.changes.outages_changed) or any(
        run.believed_end > before for run, before in view.changes.moved_ends.items()
    )


def _is_slowed(view: View, scheduler: Any) -> bool:
    """Say whether a run is believed slower on what it holds than on the less that it keeps."""
    lending, change = scheduler.lending, scheduler.rule.cost.change
    runs = [(view.running.get(job), kept, end) for end, job, kept in lending.believed_ends.rows()]
    return any(
        run is not None
        and kept < run.processors
        and end - change(run.processors, kept) < run.believed_end
        for run, kept, end in runs
    )


def _out_of_service(engine: Watched) -> int:
    return sum(count_processors(ranges) for ranges in engine.down.values())


def _require(holds: bool, engine: Watched, what: str) -> None:
    if not holds:
        raise InvariantError(f"t={engine.view.now}: {what}")


def _held(view: View, decisions: Sequence[Decision]) -> list[tuple[float, int]]:
    """Return changes of what runs and what starts hold beyond what is free, and when."""
    changes = [(view.now, -view.free), *((end, -n) for end, _, n in view.believed_ends.rows())]
    for decision in decisions:
        if isinstance(decision, Start):
            end = view.now + view.belief(decision.job, decision.processors)
            changes += [(view.now, decision.processors), (end, -decision.processors)]
    return changes


def _peak(changes: list[tuple[float, int]]) -> int:
    """Return the largest total of changes that happen by any instant."""
    totals: dict[float, int] = {}
    for instant, change in changes:
        totals[instant] = totals.get(instant, 0) + change
    return int(np.cumsum([totals[t] for t in sorted(totals)]).max())
