"""What a rule keeps from pass to pass, and the steps that rules of queues have in common."""

from typing import Any, NamedTuple, cast

import numpy as np
from numba.experimental import structref
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled, direct, record
from sim.state import availability
from sim.state.availability import Profile
from sim.state.run_state import RunState, longer, maker, struct_type, structure
from sim.state.run_steps import holders_in
from sim.state.waiting_queue import Queue, push

ENDED = record(job=int, started=int)
"""Who ended, and how many had started before that."""
SPAN = record(begin=int, low=int, high=int, number="i4", only_immediate="i1")
"""What a job may choose from: where its counts begin, from where to before where a rule allows them
in this pass, and how many they are (0 where that is settled already); 1 where only those count on
which it can start at once."""
BACKFILLING = record(
    reservations=int,
    strict=int,
    shortest_first=int,
    tries_all_waiting=int,
    heads_started=int,
    reserved=int,
    shadow_time=float,
    extra_nodes=int,
)
"""A row a reservation. What EASY is told stands in the first: how many blocked jobs hold one,
whether nobody passes the head, whether the shortest are tried first, and whether every pass tries
all who wait, as more than ends and arrivals may have happened; and what it keeps from pass to pass:
how many heads it started, and how many hold a reservation. Of each reservation: when it begins, and
how many processors will be left then."""

KEPT = record(
    is_revised=int,
    is_shorter=int,
    compression_due=int,
    reservations_version=int,
    ends_told=int,
    search_end=int,
    explained=int,
    next_start=float,
    wake_time=float,
    freed_from=float,
    freed_until=float,
)
"""What is kept from pass to pass: whether beliefs about who waits have changed since the profile
was laid, and whether any became shorter; whether reservations may move up in this pass; how much
had happened when all that wait were given reservations in it, -1 if they were not; how many had
ended when the predictor was told last; one past the last place that a pass considers, 0 if it
plans nothing; the job that is explained, -1 for none; and in seconds when the next reservation
begins, for when a pass was asked for last, and from when until when processors became free since
the last compression."""


class MoldingMemory(NamedTuple):
    """What a rule for open counts keeps of a run.

    Attributes
    ----------
    planned_jobs : int
    by_time, by_utilization : bool
        As of `sim.policies.allocation.iterative`.
    wait_estimator : int
    longest : float, seconds
        As of `sim.policies.allocation.queue_time`.
    divided_processors : float
        What shares or caps are parts of.
    job_columns : numpy.ndarray of float, shape (n, 2)
        What the rule knows of each job, in columns that it says itself.
    counts_running, keeps_shares : bool
        As of `sim.policies.allocation.fair_share`.
    always_narrows : bool
        Whether counts are narrowed even while nobody can start.
    worst_ratio : numpy.ndarray of float, shape (1,)
        As of `sim.policies.allocation.local`: R.
    serial_time : numpy.ndarray of float, shape (n,), seconds
        Believed T(1) of each job.
    """

    planned_jobs: int = 0
    by_time: bool = False
    by_utilization: bool = False
    wait_estimator: int = 0
    longest: float = 0.0
    divided_processors: float = 0.0
    job_columns: FloatArray = np.zeros((0, 2))
    counts_running: bool = False
    keeps_shares: bool = False
    always_narrows: bool = False
    worst_ratio: FloatArray = np.zeros(0)
    serial_time: FloatArray = np.zeros(0)


NO_MOLDING = MoldingMemory()
"""Of a run in which no count is open."""


class RuleMemory(structref.StructRefProxy):
    """What a rule keeps from pass to pass beside the state.

    Attributes
    ----------
    queue : Queue
        Who waits, by key.
    backfilling : numpy.ndarray of BACKFILLING, shape (k,)
    kept : numpy.ndarray of KEPT, shape (1,)
    start_bounds : numpy.ndarray of float
        Of `sim.state.availability.reserve_next`, at this instant.
    profile : Profile
    menu_spans : numpy.ndarray of SPAN, shape (n,)
        What each job may choose from when it settles its count, or while that is open.
    menu_counts : numpy.ndarray of int, shape (c,)
    menu_runtimes : numpy.ndarray of float, shape (c,), seconds
        Believed on each of these counts.
    requested : numpy.ndarray of int, shape (n,)
        Processors that each job requests.
    margin : float
        Of `sim.policies.allocation.sa.least_turnaround`.
    area_limits : tuple of (float, float)
        Likewise, while nobody else waits and while others do.
    refutation_factor : float
        Waiting jobs choose anew when a running one has taken so many times its belief.
    molding : MoldingMemory
        Of a rule for open counts.
    ended : numpy.ndarray of ENDED, shape (n,)
        In turn.
    application : numpy.ndarray of int, shape (n,)
        Of each job. These are empty where no predictor learns.
    user : numpy.ndarray of int, shape (n,)
        Of each job, at the latest when it arrives; -1 if that is not known.
    key : numpy.ndarray of float, shape (n,)
        By which each job that has arrived ranks in the queue, the least first.
    weighed : numpy.ndarray of float, shape (3, c)
        Of the job that is explained, as it chose last: counts, believed runtimes and predicted
        starts, seconds.
    plugin_data : numpy.ndarray of float, shape (k, m)
        What a rule of another package keeps.
    """

    queue: Queue
    backfilling: NDArray[Any]
    kept: NDArray[Any]
    start_bounds: FloatArray
    profile: Profile
    menu_spans: NDArray[Any]
    menu_counts: IntArray
    menu_runtimes: FloatArray
    requested: IntArray
    margin: float
    area_limits: tuple[float, float]
    refutation_factor: float
    molding: MoldingMemory
    ended: NDArray[Any]
    application: IntArray
    user: IntArray
    key: FloatArray
    weighed: FloatArray
    plugin_data: FloatArray


FIRST_BREAKPOINTS = 256
"""Breakpoints that a profile has room for at first."""
GROWING = "profile", "menu_counts", "menu_runtimes", "start_bounds", "weighed"
RuleMemoryType = struct_type(RuleMemory)


def make_memory(
    queue: Queue, processors: int, jobs: int = 0, learning: int = 0, **known: Any
) -> RuleMemory:
    """Return the memory of a rule of which this is known, and in which nothing else stands yet.

    Parameters
    ----------
    queue : Queue
    processors, jobs : int
    learning : int
        How many of the jobs a predictor may learn from.
    known : object
        Other fields.
    """
    room = FIRST_BREAKPOINTS
    fields: dict[str, Any] = {
        "queue": queue,
        "backfilling": np.zeros(1, BACKFILLING),
        "kept": np.array([(0, 0, 0, -1, 0, 2**63 - 1, -1, *(np.inf,) * 3, -np.inf)], KEPT),
        "start_bounds": np.zeros((0, 0)),
        "profile": Profile(np.zeros(room), np.full(room, processors), np.array([0, 1])),
        "menu_spans": np.zeros(jobs, SPAN),
        "menu_counts": np.zeros(0, np.int64),
        "menu_runtimes": np.zeros(0),
        "requested": np.zeros(jobs, np.int64),
        "margin": 0.0,
        "area_limits": (np.inf, np.inf),
        "refutation_factor": np.inf,
        "molding": NO_MOLDING,
        "ended": np.zeros(learning, ENDED),
        "application": np.zeros(learning, np.int64),
        "user": np.full(jobs, -1),
        "key": np.zeros(jobs),
        "weighed": np.zeros((3, 0)),
        "plugin_data": np.zeros((0, 0)),
    }
    if unknown := known.keys() - fields.keys():
        raise TypeError(f"{min(unknown)} is no field of RuleMemory; see plugin_data")
    fields |= known
    fields["plugin_data"] = np.ascontiguousarray(np.atleast_2d(fields["plugin_data"]), float)
    return cast(RuleMemory, structure(maker(RuleMemory), fields, grows=GROWING))


@compiled
def profile_of(memory: RuleMemory) -> Profile:
    """Return the availability profile as it is now."""
    return memory.profile


@compiled
def choices_in(memory: RuleMemory) -> tuple[IntArray, FloatArray]:
    """Return all counts that jobs may choose from, and what the job that is explained weighed."""
    return memory.menu_counts, memory.weighed


@compiled
def set_menu(memory: RuleMemory, counts: IntArray, runtimes: FloatArray) -> None:
    """Put down what jobs may choose from."""
    memory.menu_counts, memory.menu_runtimes = counts, runtimes


# What rules do with it


@compiled(forceinline=True)
def note_freed(memory: RuleMemory, begin: float, end: float) -> None:
    """Note that processors became free in this time."""
    kept = memory.kept[0]
    kept.freed_from, kept.freed_until = min(kept.freed_from, begin), max(kept.freed_until, end)


@compiled(forceinline=True)
def take_freed(memory: RuleMemory, now: float) -> tuple[float, float, int]:
    """Return from when until when processors became free, and the most that are; forget it.

    The last is below 0 if none did.
    """
    kept = memory.kept[0]
    begin, end = max(kept.freed_from, now), kept.freed_until
    kept.freed_from, kept.freed_until = np.inf, -np.inf
    return begin, end, availability.free_between(memory.profile, begin, end)[1] if end > now else -1


@compiled
def make_room_for_all(state: RunState, memory: RuleMemory) -> None:
    """Let the profile hold all who wait and run; none of its reservations count as laid then."""
    run, memory.kept[0].reservations_version = state.scalars[0], -1
    breakpoints = 4 * (run.arrived - run.started + run.holders + run.ended_now + 1) + 64
    if memory.profile.times.size < breakpoints:
        times, free, span = memory.profile
        times, free = longer(times, 2 * breakpoints), longer(free, 2 * breakpoints)
        memory.profile = Profile(times, free, span)


@compiled
def lay_running(state: RunState, memory: RuleMemory) -> None:
    """Begin the profile anew from the believed ends of running jobs, with room for all."""
    make_room_for_all(state, memory)
    run, ends = state.scalars[0], holders_in(state)
    availability.lay(memory.profile, run.now, run.free, ends.end, ends.processors)


@compiled
def admit(state: RunState, memory: RuleMemory, job: int) -> None:
    """Let a job that has just arrived wait."""
    push(memory.queue, job, state.processors[job], state.belief[job], memory.key[job])


# Counts that are chosen at submit


@compiled
def predicted_starts(
    memory: RuleMemory, now: float, counts: IntArray, runtimes: FloatArray, noted: bool
) -> FloatArray:
    """Return them on the profile as it is; write them down of the job that is explained."""
    starts = availability.earliest_of(memory.profile, now, counts, runtimes)
    if noted:
        weighed = np.empty((3, counts.size))
        weighed[0], weighed[1], weighed[2] = counts, runtimes, starts
        memory.weighed = weighed
    return starts


@compiled(inline="always")
def reserve_rest(queue: Queue, profile: Profile, now: float) -> None:
    """Reserve, in queue order, for every waiting job whose start is infinite."""
    counts, runtimes, starts, at = queue.processors, queue.runtime, queue.start, queue.at[0]
    found = availability.no_start_bounds(at.last - at.first)
    for k in range(at.first, at.last):
        if counts[k] > 0 and starts[k] == np.inf:
            starts[k] = availability.reserve_next(profile, now, counts[k], runtimes[k], found)


@compiled
def lay_reservations(state: RunState, memory: RuleMemory) -> None:
    """Give all that wait a reservation beside the running jobs, in queue order.

    While nothing but arrivals happens, those that should not have begun yet stay as they are.
    """
    run, queue, at = state.scalars[0], memory.queue, memory.queue.at[0]
    stays = memory.kept[0].reservations_version == run.sequence + run.ended
    for k in range(at.first, at.last if stays else at.first):
        stays &= queue.processors[k] == 0 or queue.start[k] >= run.now
    if stays:
        make_room_for_all(state, memory)
        availability.advance(memory.profile, run.now)
    else:
        lay_running(state, memory)
        queue.start[at.first : at.last] = np.inf
    reserve_rest(queue, memory.profile, run.now)
    memory.kept[0].reservations_version = run.sequence + run.ended


@compiled
def _earliest_starts(
    state: RunState, memory: RuleMemory, menu: tuple[IntArray, FloatArray], anew: bool, noted: bool
) -> FloatArray:
    if anew:
        known = memory.queue.start[: memory.queue.at[0].last]
        starts, memory.kept[0].reservations_version = known.copy(), -1
        lay_reservations(state, memory)
        memory.kept[0].reservations_version, known[:] = -1, starts
    return predicted_starts(memory, state.scalars[0].now, menu[0], menu[1], noted)


_find_earliest = direct(_earliest_starts)


def first_starts(
    state: RunState,
    memory: RuleMemory,
    counts: IntArray,
    runtimes: FloatArray,
    anew: bool = False,
    noted: bool = False,
) -> FloatArray:
    """Return the earliest start of each (count, runtime), on the profile as it is or laid anew.

    Anew it is laid in queue order with a reservation for all that wait; the queue stays as it is.
    They are written down if this is of the job that is explained.
    """
    menu = np.array(counts, np.int64), np.array(runtimes, float)
    return np.asarray(_find_earliest(state, memory, menu, anew, noted))


@compiled
def is_refuted(state: RunState, factor: float) -> bool:
    """Say whether a job outlived its belief now and has taken so many times what it was."""
    now = state.scalars[0].now
    for k in range(state.scalars[0].expired_now):
        job = state.expired_jobs[k]
        believed = state.belief[job]
        if now - state.start_time[job] >= factor * believed * (1.0 - 1e-9):
            return True
    return False


# When a pass has to wait for what Python says


@compiled(forceinline=True)
def _note_ended(state: RunState, memory: RuleMemory) -> bool:
    """Write down who ended at this instant; say whether a job of the same application waits."""
    run, queue, at, concerns = state.scalars[0], memory.queue, memory.queue.at[0], False
    for i in range(run.ended_now):
        job, place = state.ended_jobs[i], run.ended - run.ended_now + i - memory.kept[0].ends_told
        memory.ended[place].job, memory.ended[place].started = job, run.started
        for k in range(at.first, at.last):
            if concerns:
                break
            same = memory.application[queue.job[k]] == memory.application[job]
            concerns = queue.processors[k] > 0 and same
    return concerns


@compiled
def must_ask(state: RunState, memory: RuleMemory) -> bool:
    """Say whether who waits may be believed otherwise at this instant, or has to choose again."""
    changes_its_mind = memory.application.size > 0 and _note_ended(state, memory)
    return changes_its_mind or is_refuted(state, memory.refutation_factor)
