"""What rules that share out processors keep of a run, and answers to what their passes ask."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np
from numba import typeof, types
from numba.experimental import structref
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled, record
from predictors.in_loop.wrapper import has_curves
from sim.engine.engine import Engine
from sim.engine.loop import queue_nobody
from sim.engine.protocols import CompiledRule
from sim.engine.run_log import Explanations
from sim.policies.reallocation.beliefs import TABLED, Beliefs
from sim.state.processors import held_ranges
from sim.state.records import Stretches
from sim.state.run_state import State, longer, struct_type, structure
from sim.state.run_steps import by_job, padded
from sim.state.view import LEAST_BELIEF, one_by_one
from sim.state.waiting_queue import Queue, push
from workloads.base import Tabled

_types: Any = types
_typeof: Any = typeof
JOB = record(
    [
        ("least", "i8"),
        ("most", "i8"),
        ("stretch", "i8"),
        ("read", "i8"),
        ("request", "i8"),
        ("requested_time", "f8"),
        ("serial", "f8"),
    ]
)
"""Of a job: the counts between which it may be if it is malleable, else 0; its present stretch;
whether its curve was read; its request, 0 if it is believed to have a curve, and requested time;
its believed runtime on one processor if the rule weighs work."""
STRETCH = record(
    [("job", "i8"), ("processors", "i8"), ("first_range", "i8"), ("begun", "f8"), ("over", "f8")]
)
"""Whose, on how many processors, where they begin in `State.ranges`, and from when until when; the
last of a job ends with it."""
SEARCH = record(
    [
        ("phase", "i8"),
        ("due", "f8"),
        ("measured", "f8"),
        ("efficiency", "f8"),
        ("processors", "i8"),
        ("blocked", "i8"),
    ]
)
"""Of a job whose count is searched by its efficiency: how far that has come; when to measure
next, seconds, and what is measured then; the last measurement that was taken in, and the count it
was made on, 0 before; the count that it would go on with if there were room, 0 if that is no
matter."""
TALLY = record(
    [
        ("members", "i8"),
        ("deferred", "i8"),
        ("stretches", "i8"),
        ("begun", "i8"),
        ("held_back", "i8"),
        ("queries", "i8"),
    ]
)
"""How much of the tables of their names is in use, how many begin in a pass, whether nobody may,
and how often a predictor would have been asked."""
MOST_RUNTIMES = 1 << 25
"""So many runtimes of all jobs, believed and true each, are kept in tables, and no more."""


class Claims(NamedTuple):
    """Among whom a rule shares out how many processors.

    Attributes
    ----------
    readings : numpy.ndarray of float, shape (n, r)
        What it reads off each job's believed curve.
    held, least, largest : numpy.ndarray of int, shape (n,)
        What each holds, 0 if it starts now, and between which counts it may be; those that run
        come first, oldest first.
    total : int
        What they may hold together; at least the sum of `least`.
    work, relative : numpy.ndarray of float, shape (n,)
        If the rule weighs work: each job's believed work left in seconds on one processor, and
        its believed T(n)/T(1) on an equal share n of the total; else empty.
    parameters : numpy.ndarray of float, shape (p,)
        Those of the rule.
    searches : numpy.ndarray of SEARCH, shape (n,)
        If the rule goes by measurements: its searches, which move on; else empty.
    now : float
        Seconds.
    """

    readings: FloatArray
    held: IntArray
    least: IntArray
    largest: IntArray
    total: int
    work: FloatArray
    relative: FloatArray
    parameters: FloatArray
    searches: NDArray[Any] = np.zeros(0, SEARCH)
    now: float = 0.0


_INTEGERS, _NUMBERS = _types.int64[::1], _types.float64[::1]
_OF_JOBS = _types.float64[:, ::1], _INTEGERS, _INTEGERS, _INTEGERS
_SEARCHES = _typeof(np.zeros(0, SEARCH))
_OF_RULES = _types.int64, _NUMBERS, _NUMBERS, _NUMBERS, _SEARCHES, _types.float64
CLAIMS = _types.NamedTuple((*_OF_JOBS, *_OF_RULES), Claims)
"""The type of claims in compiled code, of which a rule's `shares` is a function."""


@compiled
def equal_counts(largest: IntArray, total: int) -> IntArray:
    """Return equal shares of a total, at least 2 if a job may have as many."""
    return np.minimum(largest, max(total // largest.size, 2))


class SharingMemory(structref.StructRefProxy):
    """What a rule that shares out processors keeps of a run.

    Attributes
    ----------
    jobs : numpy.ndarray of JOB, shape (n,)
    shares : callable
        Of the rule: what each gets, of `Claims`.
    queue : Queue
        Who waits, for the least that it can use.
    backfilling : numpy.ndarray of BACKFILLING, shape (1,)
        Of EASY.
    members : numpy.ndarray of int, shape (r,)
        Malleable jobs that run, in the order of their starts.
    deferred : numpy.ndarray of int, shape (n,)
        Malleable jobs that have arrived and may not queue yet, in the order of arrival.
    stretches : numpy.ndarray of STRETCH, shape (s,)
    tally : numpy.ndarray of TALLY, shape (1,)
    believed : Tabled
        Runtimes of jobs with a curve.
    readings : numpy.ndarray of float, shape (n, r)
        Of all jobs, for `Claims`.
    weighs_work, reclaims : bool
    parameters : numpy.ndarray of float, shape (p,)
        All of the rule.
    searches : numpy.ndarray of SEARCH, shape (n,)
        Empty if the rule does not go by measurements.
    wake_time : float
        For when a pass was last asked for to measure, seconds.
    """

    jobs: NDArray[Any]
    shares: Callable[[Claims], IntArray]
    queue: Queue
    backfilling: NDArray[Any]
    members: IntArray
    deferred: IntArray
    stretches: NDArray[Any]
    tally: NDArray[Any]
    believed: Tabled
    readings: FloatArray
    weighs_work: bool
    reclaims: bool
    parameters: FloatArray
    searches: NDArray[Any]
    wake_time: float


SharingMemoryType = struct_type(SharingMemory)


def _made(jobs: NDArray[Any], shares: Any, more: tuple[Any, ...]) -> SharingMemory:
    return SharingMemory(jobs, shares, *more)  # type: ignore[no-untyped-call]


@cache
def _maker(jobs: types.Type, more: types.Type) -> Callable[..., SharingMemory]:
    """Return what makes memories of such fields; whatever the rule, they are of one type."""
    kinds = jobs, _types.FunctionType(_INTEGERS(CLAIMS)), more
    made: Any = compiled(signature_or_function=kinds)(_made)
    return cast(Callable[..., SharingMemory], made)


def _make(fields: tuple[Any, ...]) -> SharingMemory:
    jobs, shares, *more = fields
    return _maker(_typeof(jobs), _typeof(tuple(more)))(jobs, shares, tuple(more))


@compiled
def must_measure(state: State, sharing: SharingMemory) -> bool:
    """Say whether the rule asked for this pass, before which Python measures runs."""
    return bool(state.run[0].woken_now > 0)


@compiled
def prepare(state: State, sharing: SharingMemory) -> None:
    """Take from the members who ended, and what was known of them; make room for stretches."""
    size, tally, members = sharing.stretches.size, sharing.tally[0], sharing.members
    if size - tally.stretches < members.size:
        sharing.stretches = longer(sharing.stretches, 2 * size)
    for job in state.ended_jobs[: state.run[0].ended_now]:
        state.processors[job], sharing.jobs[job].most = 0, 0
    left = 0
    for job in members[: tally.members]:
        if state.processors[job] > 0:
            members[left] = job
            left += 1
    tally.members = left


@compiled
def _stretches_of(sharing: SharingMemory) -> NDArray[Any]:
    return sharing.stretches


@compiled
def admit(state: State, sharing: SharingMemory, job: int) -> None:
    """Let a job that has just arrived wait."""
    push(sharing.queue, job, state.processors[job], state.belief[job], 0.0)


class CompiledSharingRule(CompiledRule):
    """A compiled rule that shares out processors; all that it may ask of jobs is asked before.

    Parameters
    ----------
    engine : Engine
    rule : Reallocation
    beliefs : Beliefs
    easy : EasyScheduler
        Whose queue it is.
    decide : callable
        The pass, of a state and a `SharingMemory`.
    """

    changes_counts = True

    def __init__(
        self, engine: Engine, rule: Any, beliefs: Beliefs, easy: Any, decide: Callable[..., int]
    ) -> None:
        self._engine, self._view, self._predictor = engine, engine.view, engine.predictor
        self._queue, self._backfilling = easy.queue.tables, easy.backfilling
        self._rule, self._beliefs = rule, beliefs
        self._curved = has_curves(engine.predictor)
        tabled, is_known = engine.work.tabled(), engine.work.is_known_to(engine.predictor)
        self._is_tabled = tabled is not None and (is_known or not self._curved)
        self._tabled = tabled if is_known else None
        decides = {"admit": queue_nobody if rule.defers else admit, "decide": decide}
        self.functions = {"must_ask": must_measure, "prepare": rule.prepare, **decides}
        self.explanations = Explanations()

    @property
    def is_supported(self) -> bool:
        """Whether malleable jobs may have every count up to their largest, and tables room."""
        rule, processors, special = self._rule, self._view.processors, self._engine.shown.special
        malleable = np.flatnonzero(self._engine.malleable).tolist()
        jobs = len(self._engine.submit)
        wide = processors if rule.reads_curves or not self._is_tabled else 1
        has_room = jobs * wide <= MOST_RUNTIMES and (processors <= TABLED or not rule.weighs_work)
        is_read = self._curved or not rule.reads_beliefs
        return has_room and is_read and all(special(job) is None for job in malleable)

    def begin(self, state: State) -> None:
        """Begin a run whose jobs stand here, and wait for the least that they can use."""
        self._state = state
        view, wanted, jobs = self._view, state.processors, len(self._engine.submit)
        self._engine.shown.arrive(range(jobs))
        own, rows = np.zeros(jobs, JOB), [np.zeros(0)] * jobs
        columns: Any = [one_by_one(own[name]) for name in ("least", "read", "serial")]
        least, read, serial = columns
        for job in np.flatnonzero(self._engine.malleable).tolist():
            least[job] = self._rule.queue_count(self._beliefs, job)
            rows[job] = self._beliefs.read_off(job, self._rule.read_off)
            read[job] = self._beliefs.has_table(job)
            if self._rule.weighs_work:
                serial[job] = self._beliefs.serial(job)
            self._beliefs.forget(job)
        np.copyto(own["most"], self._engine.shown.more["largest"], where=self._engine.malleable)
        own["request"] = view.jobs.requested_processors
        own["requested_time"] = view.jobs.requested_time
        np.copyto(wanted, own["least"], where=own["least"] > 0)
        believed = self._believed(own)
        state.belief[:] = self._believed_on(wanted)
        running = state.found.size
        fields = {
            "jobs": own,
            "shares": self._rule.shares,
            "queue": self._queue,
            "backfilling": self._backfilling,
            "members": np.zeros(running, np.int64),
            "deferred": np.zeros(jobs, np.int64),
            "stretches": np.zeros(jobs + 2 * running, STRETCH),
            "tally": np.zeros(1, TALLY),
            "believed": believed,
            "readings": padded(rows),
            "weighs_work": self._rule.weighs_work,
            "reclaims": self._rule.reclaim,
            "parameters": np.array(self._rule.parameters, float),
            "searches": np.zeros(jobs if self._rule.measures else 0, SEARCH),
            "wake_time": 0.0,
        }
        self.memory = cast(
            SharingMemory, structure(_make, fields, grows=("stretches", "wake_time"))
        )

    def _believed_on(self, counts: IntArray) -> FloatArray:
        """Return what is believed of all jobs on these counts, by an oracle what is true."""
        if self._tabled is not None:
            self._view.predictor._queries += counts.size
            runtimes = self._engine.work.runtimes_at(np.arange(counts.size), counts)
            return np.maximum(runtimes, LEAST_BELIEF)
        pairs = enumerate(counts.tolist())
        return np.array([self._view.belief(job, count) for job, count in pairs])

    def _believed(self, own: NDArray[Any]) -> Tabled:
        """Return what is believed of jobs by count, and note who has a curve."""
        if self._tabled is not None:
            own["request"] = 0
            return self._tabled
        curves = {}
        for job in np.flatnonzero(own["most"]).tolist() if self._curved else ():
            curve = self._predictor.curve(job, np.arange(1, own["most"].item(job) + 1))
            if curve is not None:
                own["request"][job], curves[job] = 0, np.append(np.inf, curve)
        return by_job(curves, len(own))

    def answer(self) -> None:
        """Measure the runs whose measurement is due, each anew."""
        state, searches, engine = self._state, self.memory.searches, self._engine
        members = self.memory.members[: self.memory.tally["members"].item()]
        for job in members[searches["due"][members] <= state.run["now"]].tolist():
            anew = searches["processors"].item(job) > 0
            engine.sensor.measure(job, state.processors.item(job), anew=anew)
            searches["measured"][job] = engine.state.efficiency.pop(job)

    def stretches(self, end_time: FloatArray) -> Stretches:
        """Return the stretches of all runs, in the order of their begins, when all have ended."""
        sharing, state, tally = self.memory, self._state, self.memory.tally[0]
        self._view.predictor._queries += int(tally["queries"])
        made = _stretches_of(sharing)[: tally["stretches"]]
        made["over"][sharing.jobs["stretch"]] = end_time
        nodes = held_ranges(state, made["first_range"])
        job, begun, over, processors = (
            made[name].copy() for name in ("job", "begun", "over", "processors")
        )
        return Stretches(job, np.zeros_like(job), begun, over, processors, nodes)
