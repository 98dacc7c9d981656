"""Whole-queue molding: iteration on the mean turnaround, and utilisation-based molding."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.errors import AT_LEAST_1
from sim.policies.molding.base import Candidates, OpenCounts, allow_all, may_start
from sim.policies.passes.memory import MoldingMemory, RuleMemory
from sim.policies.ties import is_less, is_less_on
from sim.state.availability import FIRST, LAST, Profile, lay, reserve_earliest
from sim.state.run_state import RunState, shift
from sim.state.run_steps import holders_in
from sim.state.view import View


class Planned(NamedTuple):
    """Jobs of a plan.

    Attributes
    ----------
    counts : numpy.ndarray of int, shape (n,)
    runtimes, starts : numpy.ndarray of float, shape (n,), seconds
        Believed runtimes on those counts, and starts from now on.
    """

    counts: IntArray
    runtimes: FloatArray
    starts: FloatArray


@compiled(forceinline=True)
def copy_into(copy: Profile, profile: Profile) -> None:
    """Write a profile over another one, from its begin on."""
    times, free, span = profile
    first, number = span[FIRST], span[LAST] - span[FIRST]
    for k in range(number):
        copy.times[k], copy.free[k] = times[first + k], free[first + k]
    copy.span[FIRST], copy.span[LAST] = 0, number


@compiled(forceinline=True)
def plan_in(plans: Profile, row: int) -> Profile:
    """Return one of several plans, which share tables."""
    return Profile(plans.times[row], plans.free[row], plans.span[row])


@compiled(forceinline=True)
def add_job(plan: Profile, before: Profile, processors: int, runtime: float) -> float:
    """Write a plan with one more job, in its earliest hole, over another; return its start.

    Faster than `reserve_earliest`: a plan begins at 0, and the hole is found on the way.
    """
    copy_into(plan, before)
    times, free, span = plan
    number, first, i, end = span[LAST], 0, 0, runtime
    while i < number and times[i] < end:
        if free[i] < processors:
            first = i + 1
            end = times[first] + runtime if first < number else np.inf
        i += 1
    if first == number:
        return np.inf
    for k in range(first, i):
        free[k] -= processors
    if i == number or times[i] > end:
        shift(times, i, number, 1)
        shift(free, i, number, 1)
        times[i], free[i] = end, free[i - 1] + processors
        span[LAST] += 1
    return float(times[first])


@compiled
def weigh_step(
    counts: IntArray, runtimes: FloatArray, serial_time: float, pick: int, high: int, by_time: bool
) -> tuple[float, float]:
    """Return what a job loses by its next step, and of what: of its efficiency, or its time.

    Below 0 it gains; the loss is infinite where there is no next step.
    """
    now = runtimes[pick] if by_time else serial_time / (counts[pick] * runtimes[pick])
    if pick + 1 >= high:
        return np.inf, now
    if by_time:
        return runtimes[pick + 1] - now, now
    return now - serial_time / (counts[pick + 1] * runtimes[pick + 1]), now


@compiled
def next_step(losses: FloatArray, scales: FloatArray, counts: IntArray, pick: IntArray) -> int:
    """Return whose step loses least; of equals the one to the smaller count, then the first.

    Parameters
    ----------
    losses, scales : numpy.ndarray of float, shape (n,)
        See `weigh_step`.
    counts : numpy.ndarray of int
        All candidates.
    candidate : numpy.ndarray of int, shape (n,)

    Returns
    -------
    int
        -1 if nobody has a next step.
    """
    place = -1
    for k in range(losses.size):
        if losses[k] == np.inf:
            continue
        if place >= 0:
            scale = max(scales[k], scales[place])
            if not is_less_on(losses[k], losses[place], scale) and (
                is_less_on(losses[place], losses[k], scale)
                or counts[pick[k] + 1] >= counts[pick[place] + 1]
            ):
                continue
        place = k
    return place


@compiled(forceinline=True)
def try_from(
    plans: Profile, half: IntArray, first: int, jobs: Planned, total: float, best: float
) -> float:
    """Place the jobs from `first` on anew, in the rows that are not in force.

    Parameters
    ----------
    plans : Profile
        With a row a plan; row i, or i + n + 1, is that of the first i jobs.
    half : numpy.ndarray of int, shape (n + 1,)
        0 or 1: in which half of the rows each plan in force is.
    first : int
    jobs : Planned
        Starts are written from `first` on.
    total : float
        Sum of the ends of the jobs before `first`, seconds from now.
    best : float
        The sum of all ends to beat, by more than rounding.

    Returns
    -------
    float
        The sum of all ends, seconds from now; infinite where it is not below `best`.
    """
    counts, runtimes, starts = jobs
    left, before = 0.0, plan_in(plans, first + half[first] * half.size)
    for runtime in runtimes[first:]:
        left += runtime
    for i in range(first, counts.size):
        if not is_less(total + left, best):
            return np.inf
        plan = plan_in(plans, i + 1 + (1 - half[i + 1]) * half.size)
        starts[i] = add_job(plan, before, counts[i], runtimes[i])
        total += starts[i] + runtimes[i]
        left -= runtimes[i]
        before = plan
    return total if is_less(total, best) else np.inf


@compiled
def iterate(
    profile: Profile, counts: IntArray, runtimes: FloatArray, spans: NDArray[Any],
    serial_time: FloatArray, by_time: bool,
) -> IntArray:  # fmt: skip
    """Grow counts step by step while the mean turnaround of a conservative plan falls.

    Parameters
    ----------
    profile : Profile
        Of the running jobs from now on.
    counts, runtimes : numpy.ndarray
        All candidates.
    spans : numpy.ndarray of SPAN, shape (n,)
        Of each job, in queue order.
    serial_time : numpy.ndarray of float, shape (n,)
        Believed T(1) of each job.
    by_time : bool
        Next is the job whose step gains most time, else the one whose step
        loses least efficiency; of equals the one to the smaller count, then the first.

    Returns
    -------
    numpy.ndarray of int, shape (n,)
        The chosen candidate of each job.
    """
    pick: IntArray = spans["low"].copy()
    high, rows, span = spans["high"], 2 * (pick.size + 1), profile.span
    size = rows, span[LAST] - span[FIRST] + pick.size + 2
    plans = Profile(np.empty(size), np.empty(size, np.int64), np.empty((rows, 2), np.int64))
    copy_into(plan_in(plans, 0), profile)
    plans.times[0] -= profile.times[span[FIRST]]
    half, done = np.zeros(pick.size + 1, np.int64), np.zeros(pick.size + 1)
    jobs = Planned(counts[pick], runtimes[pick], np.empty(pick.size))
    losses, scales = np.empty(pick.size), np.empty(pick.size)
    for i in range(pick.size):
        weighed = weigh_step(counts, runtimes, serial_time[i], pick[i], high[i], by_time)
        losses[i], scales[i] = weighed
    grown, total = 0, np.inf
    try_from(plans, half, 0, jobs, 0.0, total)
    while True:
        for i in range(grown, pick.size):
            half[i + 1] = 1 - half[i + 1]
            done[i + 1] = done[i] + jobs.starts[i] + jobs.runtimes[i]
        while True:
            grown = next_step(losses, scales, counts, pick)
            if grown < 0:
                return pick
            at = pick[grown] + 1
            jobs.counts[grown], jobs.runtimes[grown] = counts[at], runtimes[at]
            total = try_from(plans, half, grown, jobs, done[grown], done[-1])
            if total < np.inf:
                break
            jobs.counts[grown], jobs.runtimes[grown] = counts[at - 1], runtimes[at - 1]
            losses[grown] = np.inf
        pick[grown] = at
        weighed = weigh_step(counts, runtimes, serial_time[grown], at, high[grown], by_time)
        losses[grown], scales[grown] = weighed


@compiled
def fill_idle(
    profile: Profile, counts: IntArray, runtimes: FloatArray, spans: NDArray[Any],
    serial_time: FloatArray,
) -> IntArray:  # fmt: skip
    """Hand out planned idle processors while the planned utilisation rises (UMS).

    Parameters and what is returned as of `iterate`;
    Σ T(n)·n·E(n) is Σ T(1), so that utilisation rises where the latest planned end falls.
    """
    pick: IntArray = spans["low"].copy()
    high, jobs, now = spans["high"], pick.size, profile.times[profile.span[FIRST]]
    room = profile.span[LAST] - profile.span[FIRST] + 2 * jobs + 4
    work = Profile(np.empty(room), np.empty(room, np.int64), np.empty(2, np.int64))
    starts, best = np.empty(jobs), pick.copy()
    latest = np.inf
    while True:
        copy_into(work, profile)
        end, last = 0.0, 0
        for i in range(jobs):
            seconds = runtimes[pick[i]]
            starts[i] = reserve_earliest(work, now, counts[pick[i]], seconds)
            if is_less(end, starts[i] - now + seconds):
                end, last = starts[i] - now + seconds, i
        if not is_less(end, latest):
            return best
        latest = end
        best[:] = pick
        handed = False
        for k in range(work.span[FIRST], work.span[LAST]):
            idle = work.free[k]
            while idle > 0:
                chosen, most = -1, 0.0
                for i in range(jobs):
                    at = pick[i]
                    if starts[i] != work.times[k] or at + 1 >= high[i]:
                        continue
                    if counts[at + 1] - counts[at] > idle:
                        continue
                    efficiency = serial_time[i] / (counts[at] * runtimes[at])
                    if is_less(most, efficiency) or (
                        not is_less(efficiency, most) and counts[at + 1] < counts[pick[chosen] + 1]
                    ):
                        chosen, most = i, efficiency
                if chosen < 0:
                    break
                idle -= counts[pick[chosen] + 1] - counts[pick[chosen]]
                pick[chosen] += 1
                handed = True
            if handed:
                break
        if not handed:
            if pick[last] + 1 >= high[last]:
                return pick
            pick[last] += 1


@compiled
def plan_first(state: RunState, memory: RuleMemory) -> None:
    """Fix the counts of the first jobs by a plan that follows the running ones.

    Nobody else is considered. Nothing is planned while nobody can start.
    """
    run, queue, at, own = state.scalars[0], memory.queue, memory.queue.at[0], memory.molding
    allow_all(state, memory)
    if not may_start(state, memory):
        return
    jobs, number, place = np.empty(own.planned_jobs, np.int64), 0, at.first
    while place < at.last and number < own.planned_jobs:
        if queue.processors[place] > 0:
            jobs[number] = queue.job[place]
            number += 1
        place += 1
    jobs = jobs[:number]
    spans = memory.menu_spans[jobs]
    ends = holders_in(state)
    size = ends.end.size + 1
    profile = Profile(np.empty(size), np.empty(size, np.int64), np.empty(2, np.int64))
    lay(profile, run.now, run.free, ends.end, ends.processors)
    given = profile, memory.menu_counts, memory.menu_runtimes, spans, own.serial_time[jobs]
    pick = fill_idle(*given) if own.by_utilization else iterate(*given, own.by_time)
    for i in range(number):
        offered = memory.menu_spans[jobs[i]]
        offered.low, offered.high = pick[i], pick[i] + 1
    memory.kept[0].search_end = place


@dataclass(frozen=True, kw_only=True)
class WholeQueue(OpenCounts):
    """What rules that plan the whole queue in every scheduling pass have in common.

    Parameters
    ----------
    depth : int
        How many of the first waiting jobs are planned; the others are not
        considered until they come within. At least 1.
    """

    depth: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        AT_LEAST_1.check(depth=self.depth)


@dataclass(frozen=True, kw_only=True)
class Iterative(WholeQueue):
    """Parameter-free iterative molding (Sabin, Lang & Sadayappan, JSSPP 2006).

    All waiting jobs begin at their least counts in a conservative schedule.
    Then, again and again, the job whose next step loses least efficiency takes
    it; where the mean turnaround does not fall, the step is undone and the job
    drops out. Structure from the abstract, steps from memory: our reading. Use
    with ``backfill=conservative`` and ``replan=true``.

    Parameters
    ----------
    step : {"efficiency", "time"}
        Whose step is tried next: least loss of efficiency, or largest gain of time.
    """

    step: Literal["efficiency", "time"] = "efficiency"

    def open(self, view: View) -> Candidates:
        """Begin a run."""
        keeps = MoldingMemory(self.depth, by_time=self.step == "time")
        return Candidates(view, self, plan_first, keeps)


@dataclass(frozen=True, kw_only=True)
class UtilizationBased(WholeQueue):
    """UMS, utilisation-based molding (Huang, Shih & Chung 2013).

    All waiting jobs begin at their least counts, listed after the running ones.
    At the earliest planned instant that leaves processors idle while waiting
    jobs start there, these are handed out, each to the job of highest
    efficiency; without such an instant the job that ends last takes a step.
    That goes on while the planned utilisation of the waiting jobs rises. Rule
    from a public implementation; steps follow the candidates. Use with
    ``backfill=conservative`` and ``replan=true``.
    """

    def open(self, view: View) -> Candidates:
        """Begin a run."""
        keeps = MoldingMemory(self.depth, by_utilization=True)
        return Candidates(view, self, plan_first, keeps)
