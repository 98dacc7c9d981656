"""Looks on while a run is replayed: what happens to one job in each scheduling pass."""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.in_loop.wrapper import Wrapper
from sim.engine.protocols import acts_as
from sim.engine.setup import Setup
from sim.engine.watcher import Watched, Watcher
from sim.errors import SimError
from sim.policies.allocation.rigid import Request
from sim.policies.backfill.easy import EasyScheduler
from sim.policies.base import OpenAllocation, Outlook, Policy, QueueKeeper
from sim.policies.molding.scheduler import OpenKeeper
from sim.policies.passes.memory import candidates_of
from sim.state.availability import shadow_time
from sim.state.view import View

PROCESSORS, RESERVATION, ORDER, RULE, KEPT_BACK = (
    "processors", "reservation", "order", "rule", "kept back",
)  # fmt: skip
"""Why a job does not start in a pass.

So many are not free as it waits for; they are, and others are promised them; nobody
passes a blocked job; the rule has it wait for a better start; the rule keeps it out of
the queue.
"""


Beliefs = dict[int, tuple[float, float | None]]
"""Counts to believed runtime and predicted start, seconds; None where none was asked for."""


class Weighed(NamedTuple):
    """What a rule believed of a job's counts when it chose.

    Attributes
    ----------
    time : float
        Seconds.
    chosen : int
        0 where the choice is left open.
    beliefs : Beliefs
    """

    time: float
    chosen: int
    beliefs: Beliefs


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


class _NotedAllocation:
    """An allocation that is asked as ever, and passes on what it weighed for one job."""

    def __init__(self, allocation: Any, recorder: "Recorder") -> None:
        self._allocation, self._recorder = allocation, recorder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._allocation, name)

    def choose(self, job: int, view: View, outlook: Outlook) -> int:
        """Return the count for a job, and note which starts were predicted on the way."""
        foreseen: Beliefs = {}

        def noting(counts: IntArray, runtimes: FloatArray) -> FloatArray:
            starts = outlook(counts, runtimes)
            found = zip(runtimes.tolist(), starts.tolist(), strict=True)
            foreseen.update(zip(counts.tolist(), found, strict=True))
            return starts

        chosen = int(self._allocation.choose(job, view, noting))
        if job == self._recorder.job:
            self._recorder.chose(view.now, chosen, foreseen)
        return chosen


class _NotedPredictor(Wrapper):
    """A predictor that is asked as ever, and passes on what it said of one job."""

    def __init__(self, before: Any, recorder: "Recorder") -> None:
        super().__init__(before)
        self._recorder = recorder

    def curve(self, job: int, counts: IntArray) -> FloatArray | None:
        """Return the believed runtimes, and note those of the job."""
        found = self.before.curve(job, counts)
        if job == self._recorder.job and found is not None:
            for count, runtime in zip(counts.tolist(), found.tolist(), strict=True):
                self._recorder.said[count] = runtime, None
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
    weighed : list of Weighed
        What was believed when it chose, or, where counts stay open, from when on.
    said : Beliefs
        What the predictor has said since.
    resized : list of dict
        When its processors changed while it ran, seconds, and from how many to how many.
    """

    needs_passes = True

    def __init__(self, job_id: int) -> None:
        self._job_id, self.job = job_id, -1
        self.names: list[int] = []
        self.waits: list[Wait] = []
        self.weighed: list[Weighed] = []
        self.resized: list[dict[str, float]] = []
        self.said: Beliefs = {}
        self._open, self._reads, self._held = False, False, 0

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
        rule: Any = policy.reallocation
        self._open = isinstance(policy.allocation, OpenAllocation)
        self._reads = getattr(rule, "decide", None) is None or rule.reads_beliefs
        if not (self._open or acts_as(policy.allocation, Request)):
            policy = replace(policy, allocation=_NotedAllocation(policy.allocation, self))
        predictor: Any = _NotedPredictor(setup.predictor, self)
        return replace(setup, policy=policy, predictor=predictor, watchers=(*setup.watchers, self))

    def chose(self, now: float, chosen: int, foreseen: Beliefs) -> None:
        """Note which count was chosen, by which beliefs and predicted starts."""
        if beliefs := foreseen or self.said:
            self.weighed.append(Weighed(now, chosen, beliefs))
        self.said = {}

    def passed(self, engine: Watched) -> None:
        """Note what a pass did to the job."""
        view, job = engine.view, self.job
        held = {holder: count for _, holder, count in view.believed_ends.rows()}
        before, self._held = self._held, held.get(job, 0)
        if job in view.arrived:
            self.waits.append(Wait(view.now))
        wait = self.waits[-1] if self.waits else None
        if wait is None or wait.start is not None:
            if self._held and before not in (0, self._held):
                self.resized.append({"time": view.now, "before": before, "after": self._held})
            return
        if len(self.said) > 1 and (self._open or (self._reads and view.malleable[job])):
            known = self.weighed[-1].beliefs if self.weighed else {}
            if not self.said.items() <= known.items():
                self.weighed.append(Weighed(view.now, 0, self.said))
            self.said = {}
        keeper = _keeper(engine.scheduler)
        if job not in held:
            wait.refusals.append(_refusal(view, keeper, job))
            return
        wait.start, wait.processors = view.now, self._held
        wait.ended = tuple(run.job for run in view.ended)
        wait.overtook = len(_ahead(keeper, view, job))
        self.said = {}


def _keeper(scheduler: Any) -> QueueKeeper | None:
    """Return who keeps the queue, behind all that add to what it decides."""
    while scheduler is not None and not isinstance(scheduler, QueueKeeper):
        scheduler = getattr(scheduler, "inner", None)
    if scheduler is not None:
        scheduler.queue.see()
    return scheduler


def _ahead(keeper: QueueKeeper | None, view: View, job: int) -> list[int]:
    """Return the waiting jobs that stand before a job, or came before one that is not queued."""
    queued = [] if keeper is None else list(keeper.queue)
    if job in queued:
        return queued[: queued.index(job)]
    submit = view.submit_time
    return [one for one in queued if (submit[one], one) < (submit[job], job)]


def _started_behind(view: View, job: int) -> tuple[int, ...]:
    """Return who started now and was submitted after a job, in the order of the starts."""
    state, submit, holders = view._tables, view.submit_time, view.believed_ends.job
    jobs = holders[holders >= 0]
    started = jobs[state.start_time[jobs] == view.now].tolist()
    behind = [one for one in started if (submit[one], one) > (submit[job], job)]
    return tuple(sorted(behind, key=state.planned.item))


def _refusal(view: View, keeper: QueueKeeper | None, job: int) -> Refusal:
    """Return why a job did not start in this pass."""
    free, ahead = view.free, _ahead(keeper, view, job)
    down = sum(width for _, width in view.machine.outages.values())
    behind = _started_behind(view, job)
    known = Refusal(view.now, KEPT_BACK, 0, free, down, len(ahead), passed_by=behind)
    place_of = {} if keeper is None else keeper.queue.place_of()
    if keeper is None or job not in place_of:
        return known
    queue, place = keeper.queue, place_of[job]
    wanted = least = queue.processors.item(place)
    reserved, is_held = keeper.reserved_starts(), False
    if isinstance(keeper, OpenKeeper):
        _, spans, counts, _ = candidates_of(keeper.memory)
        own, considered = spans[job], keeper.memory.search_end.item()
        least = counts.item(own["low"] if own["high"] else own["begin"])
        reserved, is_held = reserved if considered else {}, place >= considered
    is_strict = isinstance(keeper, EasyScheduler) and keeper.strict
    own, until = reserved.get(job), view.now + queue.runtime.item(place)
    others = set(reserved) - {job} if own is not None else set(ahead) & set(reserved)
    promises = [Promise(one, *reserved[one][:2]) for one in sorted(others)]
    promises = [one for one in promises if one.job in ahead or one.start < until]
    room, taken = shadow_time(view.believed_ends.rows(), free, least, view.now)
    reason = PROCESSORS
    if least <= free:
        reason = RULE if is_held or not promises else RESERVATION
        reason = ORDER if is_strict and ahead else reason
    return replace(
        known,
        reason=reason,
        wanted=wanted,
        first_ahead=ahead[0] if ahead else None,
        first_ahead_wants=queue.processors.item(place_of[ahead[0]]) if ahead else 0,
        must_not_move=min(promises, key=lambda one: one.start, default=None),
        enough_free_at=room if taken and room < np.inf else None,
        once_these_end=tuple(holder[1] for holder in taken),
        own_reservation=None if own is None else own[0],
    )
