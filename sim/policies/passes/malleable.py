"""The pass of malleable jobs: some start, then a rule shares out what all of them hold.

Jobs start as if each run kept no more than its least, where the rule reclaims what runs hold
beyond it. A pass is what `pass_of` returns; where a job may get nothing, it begins with who gets
something. Here are its compiled steps over a state and a `SharingMemory`, in which stands what is
kept between passes. Where all of them are compiled, under EASY, what may be asked of jobs is asked
before the run, by `CompiledSharingRule`. Where Python has a say, as a rule in Python or a guard of
changes has, it puts into the same tables what is believed by now, and carries out what the steps
find: `sim.policies.reallocation.rule`.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np
from numba import typeof, types
from numba.experimental import structref
from numba.extending import register_jitable
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray, has_curves
from predictors.compiling import compiled, record
from sim.engine.engine import Engine
from sim.engine.protocols import CompiledRule
from sim.policies.backfill.easy import starts_beside
from sim.policies.passes.memory import BACKFILLING
from sim.policies.passes.queue_rule import believed_on
from sim.policies.reallocation.beliefs import SEARCH, TABLED, BelievedCurves, Step, readings_of
from sim.state.availability import BelievedEnds
from sim.state.processors import held_ranges
from sim.state.records import Allocations
from sim.state.run_state import RunState, grow_ranges, longer, struct_type, structure
from sim.state.run_steps import ask_to_wake, by_job, padded, resize, runtime_on, seconds_on, start
from sim.state.view import LEAST_BELIEF
from sim.state.waiting_queue import Queue, WaitingQueue, pop, push, tidy
from workloads.base import Tabled

_types: Any = types
_typeof: Any = typeof
JOB = record(
    least=int, most=int, keeps=int, allocation=int, read=int, request=int,
    requested_time=float, serial_time=float, resumes=float, key=float,
)  # fmt: skip
"""Of a job: the counts between which it may be if it is malleable, else 0; if it runs, the count
that it keeps while the rest is lent to it, 0 if nothing is; its present allocation; whether its
curve was read; its request, 0 if it is believed to have a curve, and requested time; its believed
runtime on one processor if the rule weighs work; when its last pause is over; its key in the
queue."""
ALLOCATION = record(job=int, processors=int, first_range=int, start_time=float, end_time=float)
"""Whose, on how many processors, where they begin in `RunState.ranges`, and from when until when;
the last of a job ends with it."""
TALLY = record(
    running=int, deferred=int, allocations=int, queries=int, held_back=int,
    no_start_before=float, wake_time=float,
)  # fmt: skip
"""How much of the tables of their names is in use, how often a predictor would have been asked,
how many processors count as free on which nobody may start yet, and in seconds until when nobody
may, unless that is over, and for when a pass was last asked for to share anew."""
MOST_RUNTIMES = 1 << 25
"""So many runtimes of all jobs, believed and true each, are kept in tables, and no more."""


class Claims(NamedTuple):
    """Among whom a rule shares out how many processors.

    Attributes
    ----------
    curve_values : numpy.ndarray of float, shape (n, r)
        What it reads off each job's believed curve.
    held, least, largest : numpy.ndarray of int, shape (n,)
        What each holds, 0 if it starts now, and between which counts it may be; those that run
        come first, oldest first.
    total : int
        What they may hold together; at least the sum of `least`.
    work, relative_time : numpy.ndarray of float, shape (n,)
        If the rule weighs work: each job's believed work left in seconds on one processor, and
        its believed T(n)/T(1) on an equal share n of the total; else empty.
    parameters : numpy.ndarray of float, shape (p,)
        Those of the rule.
    searches : numpy.ndarray of SEARCH, shape (n,)
        If the rule goes by measurements: its searches, which move on; else empty.
    now : float
        Seconds.
    """

    curve_values: FloatArray
    held: IntArray
    least: IntArray
    largest: IntArray
    total: int
    work: FloatArray
    relative_time: FloatArray
    parameters: FloatArray
    searches: NDArray[Any] = np.zeros(0, SEARCH)
    now: float = 0.0


NOBODY, NOTHING = np.zeros(0, np.int64), np.zeros(0)
CLAIMS = _typeof(Claims(np.zeros((0, 0)), NOBODY, NOBODY, NOBODY, 0, NOTHING, NOTHING, NOTHING))
"""The type of claims in compiled code, of which a rule's `shares` is a function."""


@compiled
def unchanged(claims: Claims) -> IntArray:
    """Return what each holds, and for those that start the least that they can use."""
    return np.maximum(claims.held, claims.least)


class SharingMemory(structref.StructRefProxy):
    """What a rule that shares out processors keeps of a run.

    Attributes
    ----------
    jobs : numpy.ndarray of JOB, shape (n,)
    shares : callable
        Of the rule: what each gets, of `Claims`.
    queue : Queue
        Who waits, for the least that it can use.
    backfilling : numpy.ndarray of BACKFILLING, shape (k,)
        Of EASY.
    running : numpy.ndarray of int, shape (r,)
        Malleable jobs that run, in the order of their starts.
    deferred : numpy.ndarray of int, shape (n,)
        Malleable jobs that have arrived and may not queue yet, in the order of arrival.
    allocations : numpy.ndarray of ALLOCATION, shape (s,)
    tally : numpy.ndarray of TALLY, shape (1,)
    believed : Tabled
        Runtimes of jobs with a curve.
    curve_values : numpy.ndarray of float, shape (n, r)
        Of all jobs, for `Claims`.
    defers, weighs_work, reclaims : bool
        As the rule says.
    strict : bool
        Whether nobody passes the head of the queue.
    parameters : numpy.ndarray of float, shape (p,)
        All of the rule.
    searches : numpy.ndarray of SEARCH, shape (n,)
        Empty if the rule does not go by measurements.
    """

    jobs: NDArray[Any]
    shares: Callable[[Claims], IntArray]
    queue: Queue
    backfilling: NDArray[Any]
    running: IntArray
    deferred: IntArray
    allocations: NDArray[Any]
    tally: NDArray[Any]
    believed: Tabled
    curve_values: FloatArray
    defers: bool
    weighs_work: bool
    reclaims: bool
    strict: bool
    parameters: FloatArray
    searches: NDArray[Any]


SharingMemoryType = struct_type(SharingMemory)
Tables = tuple[RunState, SharingMemory]


def _made(jobs: NDArray[Any], shares: Any, more: tuple[Any, ...]) -> SharingMemory:
    return SharingMemory(jobs, shares, *more)  # type: ignore[no-untyped-call]


@cache
def _maker(jobs: types.Type, more: types.Type) -> Callable[..., Any]:
    """Return what makes memories of such fields; whatever the rule, they are of one type.

    The function is not the first of them: Numba would warn.
    """
    kinds = jobs, _types.FunctionType(_typeof(NOBODY)(CLAIMS)), more
    return compiled(signature_or_function=kinds)(_made)


def _make(fields: tuple[Any, ...]) -> Any:
    jobs, shares, *more = fields
    return _maker(_typeof(jobs), _typeof(tuple(more)))(jobs, shares, tuple(more))


def make_sharing(rule: Any, state: RunState, strict: bool, **known: Any) -> SharingMemory:
    """Return what a rule keeps of a run that begins in a state.

    Parameters
    ----------
    rule : Reallocation
    state : RunState
    strict : bool
        Whether nobody passes the head of the queue.
    **known
        Fields of `SharingMemory`; what compiled passes alone read is empty otherwise.
    """
    jobs = state.processors.size
    fields = {
        "jobs": np.zeros(jobs, JOB),
        "shares": unchanged,
        "queue": WaitingQueue(jobs, state.holder_end.size + 3).tables,
        "backfilling": np.zeros(1, BACKFILLING),
        "running": np.zeros(state.holder_end.size, np.int64),
        "deferred": np.zeros(jobs, np.int64),
        "allocations": np.zeros(0, ALLOCATION),
        "tally": np.zeros(1, TALLY),
        "believed": by_job({}, 0),
        "curve_values": padded([]),
        "defers": rule.defers and rule.reclaim,
        "weighs_work": rule.weighs_work,
        "reclaims": rule.reclaim,
        "strict": strict,
        "parameters": np.array(rule.parameters, float),
        "searches": np.zeros(jobs if rule.measures else 0, SEARCH),
    }
    return cast(SharingMemory, structure(_make, fields | known, grows=("allocations",)))


@compiled
def must_measure(state: RunState, sharing: SharingMemory) -> bool:
    """Say whether the rule asked for this pass, before which Python measures runs."""
    return bool(state.scalars[0].woken_now > 0)


@compiled
def prepare(state: RunState, sharing: SharingMemory) -> None:
    """Take from the members who ended, and note what the others keep; make room for allocations."""
    tally, members, number = sharing.tally[0], sharing.running, 0
    tally.no_start_before = -np.inf
    if sharing.allocations.size - tally.allocations < members.size:
        sharing.allocations = longer(sharing.allocations, 2 * sharing.allocations.size)
    for job in state.ended_jobs[: state.scalars[0].ended_now]:
        state.processors[job], sharing.jobs[job].most = 0, 0
    for job in members[: tally.running]:
        if state.processors[job] > 0:
            own, members[number] = sharing.jobs[job], job
            own.keeps = own.least if sharing.reclaims else 0
            number += 1
    tally.running = number


@compiled
def _allocations_of(sharing: SharingMemory) -> NDArray[Any]:
    return sharing.allocations


@compiled(forceinline=True)
def _runtime_ratio(sharing: SharingMemory, job: int, before: int, after: int) -> float:
    """Return the believed runtime on a count over that on another; no curve: perfect speedup."""
    if sharing.jobs[job].request > 0:
        return before / after
    return runtime_on(sharing.believed, job, after) / runtime_on(sharing.believed, job, before)


@compiled
def _relative_time(at: Tables, job: int, count: int) -> float:
    """Return the believed T(n)/T(1), as `BelievedCurves` does."""
    own, tally = at[1].jobs[job], at[1].tally[0]
    if own.read == 0 and count != 1:
        own.read = own.most <= TABLED
        tally.queries += 1
    return _runtime_ratio(at[1], job, 1, count)


# Who gets how many


class SharedOut(NamedTuple):
    """What was shared out before anybody started, among those who got something.

    Attributes
    ----------
    jobs, largest, shares : numpy.ndarray of int, shape (n,)
        Who, what each might hold at most, and what it got.
    total : int
        What they might hold together.
    """

    jobs: IntArray
    largest: IntArray
    shares: IntArray
    total: int


@compiled
def still_valid(
    before: SharedOut, jobs: IntArray, least: IntArray, largest: IntArray, total: int
) -> bool:
    """Say whether the shares stand after the starts: among the same jobs with the same limits."""
    is_same = total == before.total and np.array_equal(jobs, before.jobs)
    return is_same and np.array_equal(largest, before.largest) and not (before.shares < least).any()


# The pass


def pass_of(
    take_in: Step,
    claim: Step,
    share: Step,
    find_starts: Step,
    approve: Step,
    resize: Step,
    start: Step,
) -> Callable[[Tables], None]:
    """Return the pass in which malleable jobs shrink, start and grow, whatever the rule.

    It goes over tables, compiled where all its steps are, else in Python; each step takes first
    what the pass is given, a state and its `SharingMemory`.

    Parameters
    ----------
    take_in : callable
        Returns the jobs that arrive now, all that is asked of them below and of who runs being
        in the tables.
    claim : callable
        Returns what jobs claim of a total, of whom those that run come first, and those from a
        place on may get nothing; room is left if others wait.
    share : callable
        Returns how much of the total each of them gets.
    find_starts : callable
        Lets those of the arrived queue who may. Returns who starts, where runs hold the
        least that they can: first in its own words for `start`, then as jobs, for the counts that
        stand in the state by now; and how many go on to wait.
    approve : callable
        Returns what is carried out of the shares, and from when on more may be, seconds.
    resize : callable
        Lets a run go on with another count.
    start : callable
        Starts who starts, the malleable jobs on what they get.
    """

    def make_pass(at: Tables) -> None:
        state, sharing = at
        held, run, tally = state.processors, state.scalars[0], sharing.tally[0]
        arrived = np.concatenate((sharing.deferred[: tally["deferred"]], take_in(at)))
        running, total = sharing.running[: tally["running"]], run["free"]
        for job in running:
            total += held[job]
        queueing, deferred = arrived, arrived[:0]
        before = SharedOut(deferred, deferred, deferred, -1)
        # Where jobs may get nothing, those are deferred who do, all others may queue.
        may_wait = sharing.jobs["most"][arrived if sharing.defers else deferred] > 0
        if may_wait.any():
            everybody = np.concatenate((running, arrived[may_wait]))
            claims = claim(at, everybody, running.size, total, True)
            shares = share(at, claims, total)
            got = shares > 0
            before = SharedOut(everybody[got], claims.largest[got], shares[got], total)
            is_deferred = may_wait.copy()
            is_deferred[may_wait] = ~got[running.size :]
            deferred, queueing = arrived[is_deferred], arrived[~is_deferred]
        tally["deferred"] = deferred.size
        sharing.deferred[: deferred.size] = deferred
        starts, starting, waiting = find_starts(at, arrived, queueing)
        jobs, number = np.concatenate((running, starting)), running.size
        for job in starting:
            if sharing.jobs["most"][job] > 0:
                jobs[number] = job
                number += 1
            else:
                total -= held[job]
        jobs = jobs[:number]
        # What was shared out stands if all start that it counted with. Else it is shared out
        # anew, among deferred jobs, too, as long as they get nothing of it.
        claims = claim(at, jobs, jobs.size, total, waiting + deferred.size > 0)
        shares = before.shares
        if jobs.size > 0 and not still_valid(before, jobs, claims.least, claims.largest, total):
            if deferred.size > 0:
                everybody = np.concatenate((jobs, deferred))
                shares = share(at, claim(at, everybody, jobs.size, total, True), total)
            if deferred.size == 0 or shares[jobs.size :].any():
                shares = share(at, claims, total)
        counts, later = approve(at, jobs, claims, shares[: jobs.size], total)
        if claims.searches.size > 0:
            sharing.searches[jobs] = claims.searches
            later = min(later, claims.searches["due"].min())
        if run["now"] < later < np.inf and later != tally["wake_time"]:
            tally["wake_time"] = later
            ask_to_wake(state, later)
        for k in range(running.size):
            if counts[k] < claims.held[k]:
                resize(at, jobs[k], counts[k])
        start(at, starts, jobs[running.size :], counts[running.size :])
        for k in range(running.size):
            if counts[k] > claims.held[k]:
                resize(at, jobs[k], counts[k])

    return make_pass


@compiled
def limits_of(
    at: Tables, jobs: IntArray, guaranteed: int, others_wait: bool
) -> tuple[IntArray, IntArray, IntArray]:
    """Return what jobs hold, 0 if they start now, and between which counts they may be.

    While others wait, none grows beyond its request without a curve, and none at all where nobody
    could be asked to give that up again. Behind a strict head, though, jobs start on more than
    they wait for.
    """
    state, sharing = at
    tally, held = sharing.tally[0], np.empty_like(jobs)
    least, largest = np.empty_like(jobs), np.empty_like(jobs)
    cannot_reclaim = not (sharing.reclaims or tally.no_start_before > state.scalars[0].now)
    for k, job in enumerate(jobs):
        own = sharing.jobs[job]
        held[k] = state.processors[job] if k < tally.running else 0
        least[k], largest[k] = own.least if k < guaranteed else 0, own.most
        if others_wait and own.request > 0:
            largest[k] = min(largest[k], own.request)
        if others_wait and cannot_reclaim and (held[k] > 0 or not sharing.strict):
            largest[k] = 0
        largest[k] = max(largest[k], held[k], least[k])
    return held, least, largest


@compiled
def lendable(at: Tables, jobs: IntArray) -> IntArray:
    """Return what each run holds beyond what it keeps, which is lent to it."""
    (state, sharing), lent = at, np.zeros_like(jobs)
    for k, job in enumerate(jobs):
        keeps = sharing.jobs[job].keeps if job >= 0 else 0
        lent[k] = state.processors[job] - keeps if keeps > 0 else 0
    return lent


@compiled(forceinline=True)
def free_for_starts(at: Tables) -> int:
    """Return on how many processors jobs may start, what is lent among them."""
    (state, sharing), tally = at, at[1].tally[0]
    free = state.scalars[0].free + lendable(at, sharing.running[: tally.running]).sum()
    tally.held_back = free if tally.no_start_before > state.scalars[0].now else 0
    return int(free - tally.held_back)


def lent_ends_of(relative_time: Step, change_cost: Step) -> Callable[[Tables], BelievedEnds]:
    """Return what says who holds processors until when, as if runs gave up now what is lent.

    Parameters
    ----------
    relative_time : callable
        Tables, job and count to its believed T(n)/T(1).
    change_cost : callable
        From and to which count to what that costs, seconds.

    Returns
    -------
    callable
        Tables to who holds how many, ascending; those on which nobody may start yet, nobody holds:
        job -1.
    """

    def lent_ends(at: Tables) -> BelievedEnds:
        (state, sharing), tally = at, at[1].tally[0]
        now, number = state.scalars[0]["now"], state.scalars[0]["holders"]
        jobs, held = np.append(state.holder_job[:number], -1), state.holder_processors
        ends = np.append(state.holder_end[:number], tally["no_start_before"])
        kept = np.append(held[:number], tally["held_back"]) - lendable(at, jobs)
        for k, job in enumerate(jobs[:number]):
            if kept[k] < held[k]:
                since = max(now, sharing.jobs[job]["resumes"])
                before, after = relative_time(at, job, held[k]), relative_time(at, job, kept[k])
                left = seconds_on(max(ends[k] - since, 0.0), before, after)
                ends[k] = since + change_cost(held[k], kept[k]) + left
        order = np.argsort(ends[: number + (kept[number] > 0)], kind="mergesort")
        return BelievedEnds(ends[order], jobs[order], kept[order])

    return lent_ends


# Its steps where all are compiled


@compiled
def _take_in(at: Tables) -> IntArray:
    run = at[0].scalars[0]
    return np.arange(run.first_arrived, run.arrived)


@compiled(forceinline=True)
def _claim(at: Tables, jobs: IntArray, guaranteed: int, total: int, others_wait: bool) -> Claims:
    state, sharing = at
    held, least, largest = limits_of(at, jobs, guaranteed, others_wait)
    work, relative = np.empty(0), np.empty(0)
    if sharing.weighs_work and jobs.size > 0:
        work = np.array([_work_left(at, jobs[k], held[k]) for k in range(jobs.size)])
        relative = _relative_times(at, jobs, largest, total)
    values, searches = sharing.curve_values[jobs], sharing.searches
    if searches.size > 0:
        searches = searches[jobs]
    known = held, least, largest, total, work, relative, sharing.parameters, searches
    return Claims(values, *known, state.scalars[0].now)


@compiled
def _share(at: Tables, claims: Claims, total: int) -> IntArray:
    return at[1].shares(claims)


@compiled(forceinline=True)
def _serial_time(at: Tables, job: int) -> float:
    return float(at[1].jobs[job].serial_time)


@compiled(forceinline=True)
def _seconds_left(at: Tables, job: int) -> float:
    return float(max(at[0].believed_end[job] - at[0].scalars[0].now, 0.0))


@compiled(forceinline=True)
def _no_cost(before: int, after: int) -> float:
    return 0.0


_work_left, _relative_times = map(
    register_jitable, readings_of(_relative_time, _serial_time, _seconds_left)
)
_lent_ends = register_jitable(lent_ends_of(_relative_time, _no_cost))
_starts_beside = register_jitable(starts_beside(_lent_ends))


@compiled(forceinline=True)
def _find_starts(at: Tables, arrived: IntArray, queueing: IntArray) -> tuple[int, IntArray, int]:
    """Find them as EASY does; of who starts, say how many places were written to `found`."""
    state, sharing = at
    queue, run = sharing.queue, state.scalars[0]
    for job in queueing:
        push(queue, job, state.processors[job], state.belief[job], sharing.jobs[job].key)
    begun = _starts_beside(at, queue, free_for_starts(at), run.now, sharing.backfilling)
    return begun, queue.job[queue.found[:begun]], queue.at[0].waiting - begun


@compiled(forceinline=True)
def _begin_allocation(state: RunState, sharing: SharingMemory, job: int) -> None:
    """Note what a job holds from now on."""
    place = sharing.jobs[job].allocation = sharing.tally[0].allocations
    own = sharing.allocations[place]
    own.job, own.processors, own.first_range = job, state.processors[job], state.first_range[job]
    own.start_time = state.scalars[0].now
    sharing.tally[0].allocations += 1


@compiled(forceinline=True)
def _resize(at: Tables, job: int, count: int) -> None:
    state, sharing = at
    own, now, before = sharing.jobs[job], state.scalars[0].now, state.processors[job]
    left = _seconds_left(at, job) * _runtime_ratio(sharing, job, before, count)
    sharing.tally[0].queries += 1
    sharing.allocations[own.allocation].end_time = now
    grow_ranges(state, count)
    resize(state, job, count, left)
    _begin_allocation(state, sharing, job)


@compiled
def _give(state: RunState, sharing: SharingMemory, job: int, count: int) -> None:
    """Let a malleable job that starts have a count, and be believed to take what it takes there."""
    if count != state.processors[job]:
        sharing.tally[0].queries += 1
        believed = sharing.jobs[job].requested_time * sharing.jobs[job].request / count
        if sharing.jobs[job].request == 0:
            believed = runtime_on(sharing.believed, job, count)
        state.belief[job], state.processors[job] = max(believed, LEAST_BELIEF), count


@compiled
def _approve(
    at: Tables, jobs: IntArray, claims: Claims, shares: IntArray, total: int
) -> tuple[IntArray, float]:
    return shares, np.inf


@compiled(forceinline=True)
def _start(at: Tables, begun: int, jobs: IntArray, counts: IntArray) -> None:
    state, sharing = at
    queue, tally = sharing.queue, sharing.tally[0]
    for k in range(jobs.size):
        _give(state, sharing, jobs[k], counts[k])
    for place in queue.found[:begun]:
        job = queue.job[place]
        start(state, job)
        _begin_allocation(state, sharing, job)
        pop(queue, place)
    tidy(queue)
    sharing.running[tally.running : tally.running + jobs.size] = jobs
    tally.running += jobs.size


_make_pass = register_jitable(
    pass_of(_take_in, _claim, _share, _find_starts, _approve, _resize, _start)
)


@compiled
def decide(state: RunState, sharing: SharingMemory) -> int:
    """Make a pass over tables, in which all is done at once: nobody is left to start."""
    _make_pass((state, sharing))
    return 0


# What is asked before the run


class CompiledSharingRule(CompiledRule):
    """A compiled rule that shares out processors; all that it may ask of jobs is asked before.

    Parameters
    ----------
    engine : Engine
    rule : Reallocation
    beliefs : BelievedCurves
    easy : EasyScheduler
        Whose queue it is.
    """

    changes_counts = True

    def __init__(self, engine: Engine, rule: Any, beliefs: BelievedCurves, easy: Any) -> None:
        self._engine, self._rule, self._beliefs, self._easy = engine, rule, beliefs, easy
        self._curved, self._tabled = has_curves(engine.predictor), engine.work.tabled()
        self._is_known = engine.work.is_known_to(engine.predictor)
        self.functions = {"must_ask": must_measure, "prepare": rule.prepare, "decide": decide}
        self.explanations = []

    @property
    def is_supported(self) -> bool:
        """Whether malleable jobs may have every count up to their largest, and tables room."""
        engine, rule, processors = self._engine, self._rule, self._engine.view.processors
        is_tabled = self._tabled is not None and (self._is_known or not self._curved)
        runtimes = len(engine.submit) * (1 if is_tabled and not rule.reads_curves else processors)
        has_room = runtimes <= MOST_RUNTIMES and (processors <= TABLED or not rule.weighs_work)
        is_read = self._curved or not rule.reads_beliefs
        malleable = np.flatnonzero(engine.malleable).tolist()
        return has_room and is_read and all(engine.shown.sparse(job) is None for job in malleable)

    def begin(self, state: RunState) -> None:
        """Begin a run whose jobs stand here, and wait for the least that they can use."""
        self._state, engine, rule, beliefs = state, self._engine, self._rule, self._beliefs
        wanted, jobs = state.processors, state.processors.size
        engine.shown.arrive(range(jobs))
        own, rows = np.zeros(jobs, JOB), [np.zeros(0)] * jobs
        least, read, serial_time = own["least"], own["read"], own["serial_time"]
        np.copyto(least, engine.shown.more["least"], where=engine.malleable)
        for job in np.flatnonzero(engine.malleable).tolist() if rule.reads_each_job else ():
            least[job] = rule.start_count(beliefs, job)
            rows[job] = beliefs.read_off(job, rule.read_off)
            read[job] = beliefs.has_table(job)
            serial_time[job] = beliefs.serial_time(job) if rule.weighs_work else 0.0
            if rule.weighs_work and job == engine.view.predictor._asked.explained:
                beliefs.table(job)  # which writes down what the pass reads of it in `believed`
            beliefs.forget(job)
        np.copyto(own["most"], engine.shown.more["largest"], where=engine.malleable)
        own["request"] = engine.jobs.requested_processors
        own["requested_time"] = engine.jobs.requested_time
        np.copyto(wanted, own["least"], where=own["least"] > 0)
        believed = self._believed(own)
        state.belief[:] = believed_on(engine, wanted)
        if not self._easy.by_arrival:
            own["key"] = self._easy.keys_of(np.arange(jobs), wanted, state.belief)
        self.memory = make_sharing(
            *(rule, state, self._easy.strict),
            jobs=own,
            shares=rule.shares,
            queue=self._easy.queue.tables,
            backfilling=self._easy.backfilling,
            allocations=np.zeros(jobs + 2 * state.holder_end.size, ALLOCATION),
            believed=believed,
            curve_values=padded(rows),
        )

    def _believed(self, own: NDArray[Any]) -> Tabled:
        """Return what is believed of jobs by count, and note who has a curve."""
        if self._is_known and self._tabled is not None:
            own["request"] = 0
            return self._tabled
        curves, asked = {}, self._engine.predictor.curve
        for job in np.flatnonzero(own["most"]).tolist() if self._curved else ():
            curve = asked(job, np.arange(1, own["most"].item(job) + 1))
            if curve is not None:
                own["request"][job], curves[job] = 0, np.append(np.inf, curve)
        return by_job(curves, len(own))

    def answer(self) -> None:
        """Measure the runs whose measurement is due, each anew."""
        state, searches, engine = self._state, self.memory.searches, self._engine
        members = self.memory.running[: self.memory.tally["running"].item()]
        for job in members[searches["due"][members] <= state.scalars["now"]].tolist():
            anew = searches["measured_on"].item(job) > 0
            engine.sensor.measure(job, state.processors.item(job), anew=anew)
            searches["new_efficiency"][job] = engine.state.efficiency.pop(job)

    def allocations(self, end_time: FloatArray) -> Allocations:
        """Return the allocations of all runs, in the order of their begins, when all have ended."""
        sharing, state, tally = self.memory, self._state, self.memory.tally[0]
        self._engine.view.predictor._asked.queries += int(tally["queries"])
        made = _allocations_of(sharing)[: tally["allocations"]]
        made["end_time"][sharing.jobs["allocation"]] = end_time
        nodes = held_ranges(state, made["first_range"])
        kept = {name: made[name].copy() for name in ("job", "start_time", "end_time", "processors")}
        return Allocations(run=np.zeros_like(made["job"]), nodes=nodes, **kept)
