"""Invariants of a run, checked from the outside while it goes on (``sim.check=true``)."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from sim.engine.protocols import AroundScheduler, Promise
from sim.engine.watcher import RunSoFar, Watcher
from sim.errors import InvariantError
from sim.state.availability import fewest_free, shadow_time
from sim.state.decisions import Decision
from sim.state.processors import count_processors
from sim.state.run_state import ranges_of
from sim.state.view import View

_ROUNDING = 1e-9


class Checker(Watcher):
    """Watches an engine and stops it as soon as a rule is broken.

    Checked after every pass: no processor is held twice, none is lost, and those of
    a failed node are held by nobody; jobs
    start after their submit, within what is free; only malleable jobs are
    resized, to feasible counts; beliefs lie ahead; EASY
    backfills nobody who would delay the head's reservation; conservative
    reservations fit together, and move later only when a belief has grown (with
    open counts: their ends; under reallocation: or when a change is paid for, or asked about
    anew of a predictor that learns, a run is believed slower on more than it keeps, or the
    rule lets nobody start); no job with an open count moves a reservation. At the end: held
    areas balance and nothing is held.

    Raises
    ------
    InvariantError
        From the engine's run, with the instant and the job.
    """

    needs_passes = True

    def __init__(self) -> None:
        self._last_pass = self._area = 0.0
        self._busy = 0
        self._runs: dict[int, tuple[float, int]] = {}
        self._reserved: dict[int, list[Any]] = {}
        self._has_changed = self._may_move_reservations = self._is_excused = False

    def decided(self, seen: RunSoFar, decisions: Sequence[Decision]) -> None:
        """Check what Python sees, and note what lets reservations move, before ends do."""
        view, (scheduler, promise) = seen.view, self._promise(seen)
        believed = [(r.believed_end, r.job, r.processors) for r in view.running.values()]
        believed += [(end, -1 - node, width) for node, (end, width) in view.machine.outages.items()]
        in_step = sorted(believed) == view.believed_ends.rows()
        _require(in_step, seen, "expected ends are out of step")
        changes, moved = view.changes, view.changes.moved_ends.items()
        has_grown = any(run.believed_end > before for run, before in moved)
        has_grown |= bool(changes.revised or changes.outages_changed)
        self._is_excused = has_grown or (self._may_move_reservations and bool(changes.granted))
        if promise == "inner":
            rule, learns = scheduler.rule, view.predictor.learns
            excused = self._is_excused or (self._has_changed and (learns or not rule.cost.free))
            excused = excused or rule.shrinks_unasked or _is_slower_on_more(view, scheduler)
            self._is_excused = excused or scheduler.lending_view._keeps_otherwise

    def passed(self, seen: RunSoFar) -> None:
        """Check what a pass leaves, and what started or was resized in it."""
        view, state, before = seen.view, seen.view._tables, self._runs
        jobs = [job for job in view.believed_ends.job.tolist() if job >= 0]
        start, held = state.start_time[jobs].tolist(), state.processors[jobs].tolist()
        self._runs = dict(zip(jobs, zip(start, held, strict=True), strict=True))
        changed = [job for job, run in self._runs.items() if before.get(job) != run]
        started = [job for job in changed if before.get(job, (None, 0))[0] != self._runs[job][0]]
        started.sort(key=state.end_sequence.item)
        self._area += self._busy * (view.now - self._last_pass)
        self._last_pass, self._busy = view.now, sum(held)
        self._check_processors(seen, jobs)
        self._check_beliefs(seen, jobs, changed)
        self._check_counts(seen, changed, started)
        self._has_changed = any(view.malleable[job] for job in changed)
        scheduler, promise = self._promise(seen)
        checks = {"head": self._check_head, "fit": self._check_fit}
        if promise is not None:
            checks.get(promise, self._check_reservations)(seen, scheduler, started)

    def finished(self, seen: RunSoFar) -> None:
        """Check the books when nothing is left to happen."""
        if (seen.view.believed_ends.job >= 0).any():
            raise InvariantError("the run is over but processors are still held")
        self._check_processors(seen, [])
        own = seen.records.allocations
        held = float(((own.end_time - own.start_time) * own.processors).sum())
        if not np.isclose(held, self._area, rtol=1e-9, atol=1e-6):
            raise InvariantError(
                f"allocations hold {held} processor-seconds; the machine was busy for {self._area}"
            )

    def _promise(self, seen: RunSoFar) -> tuple[Any, Promise | None]:
        """Return the scheduler behind those that add to what it decides, and what it promises."""
        scheduler = seen.scheduler
        while isinstance(scheduler, AroundScheduler):
            self._may_move_reservations |= scheduler.may_move_reservations
            scheduler = scheduler.inner
        promise = getattr(scheduler, "promise", None)
        kept = getattr(getattr(scheduler, "inner", None), "promise", None)
        return scheduler, promise if promise != "inner" or kept in ("starts", "ends") else None

    def _check_processors(self, seen: RunSoFar, jobs: list[int]) -> None:
        view, state = seen.view, seen.view._tables
        held, ranges = list(view.machine.idle()), ranges_of(state)
        for job in jobs:
            nodes = ranges[state.first_range[job] : state.last_range[job]].tolist()
            _require(count_processors(nodes) == state.processors[job], seen, "miscounted run")
            held += nodes
        width = view.machine.processors_per_node
        for first in [node * width for node in view.machine.outages]:
            held.append((first, min(first + width, view.processors) - 1))
        following = 0
        for low, high in [*sorted(held), (view.processors, view.processors)]:
            what = "held twice" if low < following else "neither held nor free"
            _require(low == following, seen, f"processor {min(low, following)} is {what}")
            following = high + 1
        _require(count_processors(view.machine.idle()) == view.free, seen, "free count is wrong")

    def _check_beliefs(self, seen: RunSoFar, jobs: list[int], changed: list[int]) -> None:
        """Check who holds processors until when; a run that has just changed may end now."""
        state, rows = seen.view._tables, seen.view.believed_ends.rows()
        ends, held = state.believed_end[jobs].tolist(), state.processors[jobs].tolist()
        in_step = [row for row in rows if row[1] >= 0] == [*zip(ends, jobs, held, strict=True)]
        in_step = in_step and rows == sorted(rows) and state.scalars["running"] == len(jobs)
        _require(in_step, seen, "expected ends are out of step")
        ahead = all(end > seen.view.now for end, job, _ in rows if job not in changed)
        _require(ahead, seen, "an expected end has passed")

    def _check_counts(self, seen: RunSoFar, changed: list[int], started: list[int]) -> None:
        view = seen.view
        for job in changed:
            processors, (least, largest) = self._runs[job][1], view.extremes(job)
            feasible = least <= processors <= largest
            if job in started:
                _require(view.submit_time[job] <= view.now, seen, f"job {job} starts early")
                feasible = feasible or processors == view.requested_processors[job]
                what = f"job {job} starts on {processors}, outside {least} to {largest}"
            else:
                counts = view._feasible.sparse(job)
                _require(view.malleable[job], seen, f"job {job} is resized but not malleable")
                feasible = feasible and (counts is None or processors in counts)
                what = f"job {job} goes on with {processors} processors, not feasible"
            _require(feasible, seen, what)

    def _check_head(self, seen: RunSoFar, scheduler: Any, started: list[int]) -> None:
        view, queue = seen.view, scheduler.queue
        if queue.waiting == 0:
            return
        place, ends = queue.head(), view.believed_ends.rows()
        heads = scheduler.backfilling["heads_started"].item()
        wanted, behind = queue.processors.item(place), started[heads:]
        others = [row for row in ends if row[1] not in behind]
        free = view.free + sum(self._runs[job][1] for job in behind)
        promised, _ = shadow_time(others, free, wanted, view.now)
        kept, _ = shadow_time(ends, view.free, wanted, view.now)
        moves = f"backfilling moves the start of job index {queue.job.item(place)}"
        _require(kept <= promised, seen, f"{moves} from {promised} to {kept}")

    def _check_reservations(self, seen: RunSoFar, scheduler: Any, started: list[int]) -> None:
        """Check that reservations fit together, and move later only with an excuse.

        Under reallocation: those that conservative backfilling makes on what malleable jobs keep.
        """
        is_inner, is_open = scheduler.promise == "inner", scheduler.promise == "ends"
        queue, before = (scheduler.inner if is_inner else scheduler).queue, self._reserved
        at = queue.places()
        columns = queue.job[at], queue.start[at], queue.processors[at], queue.runtime[at]
        rows = [*zip(*(column.tolist() for column in columns), strict=True)]
        self._reserved = {job: reserved for job, *reserved in rows}
        kept = [(row, before[row[0]]) for row in rows if row[0] in before]
        excused = self._is_excused or bool(seen.view._tables.scalars["expired_now"].item())
        excused |= any(n == old[1] and seconds > old[2] for (*_, n, seconds), old in kept)
        for (job, start, _, runtime), old in () if excused else kept:
            last, now = old[0] + is_open * old[2], start + is_open * runtime
            moved = f"from {last} to {now}" if is_inner else "later"
            keeps = now <= last or (is_inner and now <= last + _ROUNDING * (1 + abs(last)))
            _require(keeps, seen, f"the reservation of job index {job} moved {moved}")
        if not is_inner:
            _require_fit(seen, self._reserved.values())

    def _check_fit(self, seen: RunSoFar, scheduler: Any, started: list[int]) -> None:
        """Check that reservations of open counts and all that runs or starts fit together."""
        if seen.view.free + sum(self._runs[job][1] for job in started) == 0:
            return  # and none is made
        reserved = scheduler.reserved_starts()
        for job, (start, _, _) in reserved.items():
            _require(start > seen.view.now, seen, f"job index {job} is reserved in the past")
        _require_fit(seen, reserved.values())


def _is_slower_on_more(view: View, scheduler: Any) -> bool:
    """Say whether a run is believed slower on what it holds than on the less that it keeps."""
    rows, change = scheduler.lending_view.believed_ends.rows(), scheduler.rule.cost.change
    runs = [(view.running.get(job), kept, end) for end, job, kept in rows]
    return any(
        run is not None
        and kept < run.processors
        and end - change(run.processors, kept) < run.believed_end
        for run, kept, end in runs
    )


def _require(holds: bool, seen: RunSoFar, what: str) -> None:
    if not holds:
        raise InvariantError(f"t={seen.view.now}: {what}")


def _require_fit(seen: RunSoFar, reserved: Collection[Any]) -> None:
    """Require that reservations and all that runs fit together at any instant."""
    view, ends = seen.view, seen.view.believed_ends.rows()
    left = fewest_free([(end, count) for end, _, count in ends], view.free, reserved, view.now)
    _require(left >= 0, seen, "reservations do not fit together")
