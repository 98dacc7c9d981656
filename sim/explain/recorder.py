"""Looks on while a run is replayed: what happens to one job in each scheduling pass."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.in_loop.wrapper import Wrapper
from sim.engine.setup import Setup
from sim.engine.watcher import Watched, Watcher
from sim.errors import SimError
from sim.policies.backfill.easy import EasyScheduler
from sim.policies.base import OpenAllocation, Outlook, Policy, QueueKeeper
from sim.policies.molding.scheduler import OpenKeeper
from sim.state.availability import shadow_time
from sim.state.decisions import Decision, Resize, Start
from sim.state.view import View

PROCESSORS, RESERVATION, ORDER, RULE, KEPT_BACK = (
    "processors", "reservation", "order", "rule", "kept back",
)  # fmt: skip
"""Why a job does not start in a pass.

So many are not free as it waits for; they are, and others are promised them; nobody
passes a blocked job; the rule has it wait for a better start; the rule keeps it out of
the queue.
"""


class Weighed(NamedTuple):
    """What a rule believed of a job's counts when it chose.

    Attributes
    ----------
    counts : numpy.ndarray of int, shape (n,)
    runtimes, starts : numpy.ndarray of float, shape (n,)
        Believed, seconds; starts are NaN where the rule asked for none.
    chosen : int
        0 where the choice is left open.
    """

    counts: IntArray
    runtimes: FloatArray
    starts: FloatArray
    chosen: int = 0


class Promise(NamedTuple):
    """A reservation: whose, when it begins (seconds), and of how many processors."""

    job: int
    start: float
    processors: int


@dataclass(frozen=True)
class Refusal:
    """A scheduling pass that leaves the job waiting; jobs by index, times in seconds.

    Attributes
    ----------
    time : float
    reason : str
        `PROCESSORS`, `RESERVATION`, `ORDER`, `RULE` or `KEPT_BACK`.
    wanted : int
        Processors that it waits for; 0 where nothing is settled.
    free : int
        Left by all that starts or is resized in this pass.
    out_of_service : int
        Processors.
    jobs_ahead : int
        Jobs that wait ahead of it.
    first_ahead : int or None
        The first of them.
    first_ahead_wants : int
    own_reservation : float or None
        Its own reservation, where the rule gives it one.
    must_not_move : Promise or None
        The first reservation that it must not move, where there is one.
    enough_free_at : float or None
        When enough processors are believed to be free, nobody else asking; None: they are.
    once_these_end : tuple of int
        Running jobs that are believed to end until then; node k as −1 − k.
    passed_by : tuple of int
        Jobs behind it that start in this pass.
    """

    time: float
    reason: str
    wanted: int
    free: int
    out_of_service: int = 0
    jobs_ahead: int = 0
    first_ahead: int | None = None
    first_ahead_wants: int = 0
    own_reservation: float | None = None
    must_not_move: Promise | None = None
    enough_free_at: float | None = None
    once_these_end: tuple[int, ...] = ()
    passed_by: tuple[int, ...] = ()


@dataclass
class Wait:
    """From an arrival in the queue to the start.

    Attributes
    ----------
    begin : float
        Seconds.
    refusals : list of Refusal
    start : float or None
        Seconds; None where it never started.
    processors : int
    overtook : int
        Jobs ahead of it in the queue that did not start in its pass.
    ended : tuple of int
        Jobs whose ends were taken in when it started.
    """

    begin: float
    refusals: list[Refusal] = field(default_factory=list)
    start: float | None = None
    processors: int = 0
    overtook: int = 0
    ended: tuple[int, ...] = ()


def _together(foreseen: Sequence[Weighed]) -> Weighed:
    """Return all that was foreseen for a choice, the last word on each count, ascending."""
    counts, runtimes, starts = (np.concatenate([one[k] for one in foreseen]) for k in range(3))
    last = {count: place for place, count in enumerate(counts.tolist())}
    order = [last[count] for count in sorted(last)]
    return Weighed(counts[order], runtimes[order], starts[order])


class _NotedAllocation:
    """An allocation that is asked as ever, and passes on what it weighed for one job."""

    def __init__(self, allocation: Any, recorder: "Recorder") -> None:
        self._allocation = allocation
        self._recorder = recorder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._allocation, name)

    def choose(self, job: int, view: View, outlook: Outlook) -> int:
        """Return the count for a job, and note which starts were predicted on the way."""
        if job != self._recorder.job:
            return int(self._allocation.choose(job, view, outlook))
        foreseen: list[Weighed] = []

        def noting(counts: IntArray, runtimes: FloatArray) -> FloatArray:
            starts = outlook(counts, runtimes)
            foreseen.append(Weighed(counts.copy(), runtimes.copy(), starts.copy()))
            return starts

        chosen = int(self._allocation.choose(job, view, noting))
        self._recorder.chose(view, chosen, foreseen)
        return chosen


class _NotedPredictor(Wrapper):
    """A predictor that is asked as ever, and passes on what it said of one job."""

    def __init__(self, before: Any, recorder: "Recorder") -> None:
        super().__init__(before)
        self._recorder = recorder

    def curve(self, job: int, counts: IntArray) -> FloatArray | None:
        """Return the believed runtimes, and note those of the job."""
        found = self.before.curve(job, counts)
        if job == self._recorder.job:
            self._recorder.heard(counts, found)
        return found


class Recorder(Watcher):
    """Notes what becomes of one job. It asks nobody anything that was not asked without it.

    Parameters
    ----------
    job_id : int

    Attributes
    ----------
    job : int
        Its index among `names`, the numbers of all jobs.
    waits : list of Wait
        One for each time that it queued.
    weighed : list of (float, Weighed)
        What was believed when it chose, or, where counts stay open, since when, seconds.
    resized : list of dict
        When its processors changed while it ran, seconds, and from how many to how many.
    """

    def __init__(self, job_id: int) -> None:
        self._job_id, self.job = job_id, -1
        self.names: list[int] = []
        self.waits: list[Wait] = []
        self.weighed: list[tuple[float, Weighed]] = []
        self.resized: list[dict[str, float]] = []
        self._said: dict[int, float] = {}
        self._open = False

    def around(self, setup: Setup) -> Setup:
        """Return a setup of which this is told.

        Raises
        ------
        SimError
            If there is no such job, or the policy is not made of the usual parts.
        """
        self.names = setup.trace.jobs["job_id"].tolist()
        if self._job_id not in self.names:
            said = f"job {self._job_id}: the replay has no such job"
            raise SimError(f"{said}; the run is of another version")
        self.job = self.names.index(self._job_id)
        policy = setup.policy
        if not isinstance(policy, Policy):
            raise SimError(
                f"policy={type(policy).__name__}: only policies of order, backfill and allocation "
                "(sim.policies.base.Policy) can be explained"
            )
        self._open = isinstance(policy.allocation, OpenAllocation)
        if not self._open:
            policy = replace(policy, allocation=_NotedAllocation(policy.allocation, self))
        predictor: Any = _NotedPredictor(setup.predictor, self)
        return replace(setup, policy=policy, predictor=predictor, watchers=(*setup.watchers, self))

    def heard(self, counts: IntArray, runtimes: FloatArray | None) -> None:
        """Note what the predictor said."""
        if runtimes is not None:
            self._said.update(zip(counts.tolist(), runtimes.tolist(), strict=True))

    def chose(self, view: View, chosen: int, foreseen: Sequence[Weighed]) -> None:
        """Note which count was chosen, by which beliefs and predicted starts."""
        found = _together(foreseen) if foreseen else self._beliefs()
        if found is not None:
            self.weighed.append((view.now, found._replace(chosen=chosen)))
        self._said.clear()

    def _beliefs(self) -> Weighed | None:
        """Return what was said since the last time, ascending; None if nothing was."""
        if not self._said:
            return None
        counts = np.array(sorted(self._said), np.int64)
        runtimes = np.array([self._said[n] for n in counts.tolist()])
        return Weighed(counts, runtimes, np.full(counts.size, np.nan))

    def decided(self, engine: Watched, decisions: Sequence[Decision]) -> None:
        """Note what a pass does to the job."""
        view, job = engine.view, self.job
        if job in view.arrived:
            self.waits.append(Wait(view.now))
        wait = self.waits[-1] if self.waits else None
        if wait is None or wait.start is not None:
            self._note_resize(view, decisions)
            return
        self._note_beliefs(view)
        keeper = _keeper(engine.scheduler)
        starts = [one for one in decisions if type(one) is Start]
        own = next((one for one in starts if one.job == job), None)
        if own is None:
            grown = sum(
                one.processors - view.running[one.job].processors
                for one in decisions
                if type(one) is Resize and one.job in view.running
            )
            wait.refusals.append(_refusal(engine, keeper, job, starts, grown))
            return
        wait.start, wait.processors = view.now, own.processors
        wait.ended = tuple(run.job for run in view.ended)
        wait.overtook = len(_ahead(keeper, view, job))
        self._said.clear()

    def _note_beliefs(self, view: View) -> None:
        """Note what is believed of a job whose count is not settled, as often as it changes."""
        found = self._beliefs() if self._open or view.malleable[self.job] else None
        if found is None or found.counts.size < 2:
            return
        before = self.weighed[-1][1] if self.weighed else None
        if before is None or before.runtimes.tolist() != found.runtimes.tolist():
            self.weighed.append((view.now, found))
        self._said.clear()

    def _note_resize(self, view: View, decisions: Sequence[Decision]) -> None:
        for one in decisions:
            if type(one) is Resize and one.job == self.job and self.job in view.running:
                before = view.running[self.job].processors
                change = {"time": view.now, "before": before, "after": one.processors}
                self.resized.append(change)


def _keeper(scheduler: Any) -> QueueKeeper | None:
    """Return who keeps the queue, behind all that add to what it decides."""
    while scheduler is not None and not isinstance(scheduler, QueueKeeper):
        scheduler = getattr(scheduler, "inner", None)
    return scheduler


def _ahead(keeper: QueueKeeper | None, view: View, job: int) -> list[int]:
    """Return the waiting jobs that stand before a job, or came before one that is not queued."""
    queued = [] if keeper is None else list(keeper.queue)
    if job in queued:
        return queued[: queued.index(job)]
    submit = view.submit_time
    return [one for one in queued if (submit[one], one) < (submit[job], job)]


def _refusal(
    engine: Watched, keeper: QueueKeeper | None, job: int, starts: Sequence[Start], grown: int
) -> Refusal:
    """Return why a job does not start in this pass, in which running ones grow by so much."""
    view = engine.view
    free = view.free - grown - sum(one.processors for one in starts)
    down = sum(width for _, width in view.machine.outages.values())
    ahead = _ahead(keeper, view, job)
    submit = view.submit_time
    behind = tuple(s.job for s in starts if (submit[s.job], s.job) > (submit[job], job))
    known = Refusal(view.now, KEPT_BACK, 0, free, down, len(ahead), passed_by=behind)
    if keeper is None or job not in set(keeper.queue):
        return known
    queue = keeper.queue
    place_of = queue.place_of()
    place = place_of[job]
    wanted = least = queue.processors.item(place)
    if isinstance(keeper, OpenKeeper):
        allowed, _ = keeper.allowed(place)
        least = int(allowed[0]) if allowed.size else wanted
    if ahead:
        head_wants = queue.processors.item(place_of[ahead[0]])
        known = replace(known, first_ahead=ahead[0], first_ahead_wants=head_wants)
    reserved = keeper.reserved_starts()
    own = reserved.get(job)
    others = set(reserved) - {job} if own is not None else set(ahead) & set(reserved)
    until = view.now + queue.runtime.item(place)
    promises = [Promise(one, *reserved[one][:2]) for one in sorted(others)]
    promises = [one for one in promises if one.job in ahead or one.start < until]
    first = min(promises, key=lambda one: one.start, default=None)
    ends = [(view.now + view.belief(s.job, s.processors), s.job, s.processors) for s in starts]
    room, taken = shadow_time(view.believed_ends.rows() + ends, free, least, view.now)
    if own is not None and isinstance(keeper, OpenKeeper):
        wanted = own[1]
    reason = PROCESSORS
    if least <= free:
        is_held = isinstance(keeper, OpenKeeper) and place >= keeper.considered
        strict = isinstance(keeper, EasyScheduler) and keeper.strict
        reason = ORDER if strict and ahead else RESERVATION
        if is_held or (reason == RESERVATION and not promises):
            reason = RULE
    return replace(
        known,
        reason=reason,
        wanted=wanted,
        must_not_move=first,
        enough_free_at=room if taken and room < np.inf else None,
        once_these_end=tuple(holder[1] for holder in taken),
        own_reservation=None if own is None else own[0],
    )
