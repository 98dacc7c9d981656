"""Counts that stay open until a job could start: which are allowed now, and who starts on which.

The rule says which candidates are allowed, and how far in the queue jobs are considered; then
who can and should starts.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled, direct
from sim.errors import check_choices
from sim.policies.advice import Advice, Counts, JobCurve, last_up_to, tried
from sim.policies.passes.memory import NO_MOLDING, MoldingMemory, RuleMemory, lay_running
from sim.policies.ties import is_less
from sim.state.availability import FIRST, Profile, earliest, occupy
from sim.state.run_state import RunState
from sim.state.run_steps import give_count
from sim.state.view import View

# Which candidates are allowed, up to `search_end`. Places of jobs that have started may be written
# to, too: nobody reads what is allowed there.


@compiled
def may_start(state: RunState, memory: RuleMemory) -> bool:
    """Say whether anybody waits while processors are free; the queue begins with who waits then."""
    queue, at = memory.queue, memory.queue.at[0]
    while at.first < at.last and queue.processors[at.first] == 0:
        at.first += 1
    return bool(state.scalars[0].free > 0 and at.first < at.last)


@compiled
def find_search_end(state: RunState, memory: RuleMemory) -> int:
    """Return one past the last place of the queue, the end of what is considered; 0 if nothing is.

    It does not matter what is allowed while nobody may start, unless reservations hang on it.
    """
    is_due = may_start(state, memory) or memory.molding.always_narrows
    memory.kept[0].search_end = memory.queue.at[0].last if is_due else 0
    return int(memory.kept[0].search_end)


@compiled
def allow_all(state: RunState, memory: RuleMemory) -> None:
    """Allow everybody all candidates."""
    last, queue = find_search_end(state, memory), memory.queue
    for k in range(queue.at[0].first, last):
        own = memory.menu_spans[queue.job[k]]
        own.low, own.high = own.begin, own.begin + own.number


@compiled
def settle(memory: RuleMemory, target: FloatArray, most: float) -> int:
    """Allow everybody one count: the largest up to a target, else the least one.

    Parameters
    ----------
    memory : RuleMemory
    target : numpy.ndarray of float, shape (n,)
        Of each job.
    most : float
        The most that anybody gets.

    Returns
    -------
    int
        One past the last place that is considered.
    """
    queue, at = memory.queue, memory.queue.at[0]
    for k in range(at.first, at.last):
        job = queue.job[k]
        own = memory.menu_spans[job]
        end = own.begin + own.number
        own.low = last_up_to(memory.menu_counts, own.begin, end, min(target[job], most))
        own.high = own.low + 1
    return int(at.last)


# Who starts


@compiled
def best_candidate(
    profile: Profile,
    now: float,
    counts: IntArray,
    runtimes: FloatArray,
    low: int,
    high: int,
    limit: float,
) -> tuple[int, float]:
    """Return the candidate with the earliest end, ties to the smaller count, and its start.

    The candidate is -1 where none can start before `limit`.
    """
    best, best_start, least = -1, np.inf, np.inf
    for pick in range(low, high):
        runtime = runtimes[pick]
        if not is_less(runtime, least):
            continue
        latest = min(limit, now + least - runtime)
        start = earliest(profile, counts[pick], runtime, now, latest, np.inf)
        if is_less(start - now + runtime, least):
            best, best_start, least = pick, start, start - now + runtime
    return best, best_start


@compiled
def mold_queue(state: RunState, memory: RuleMemory) -> int:
    """Find, in queue order, who starts on which count; the first blocked ones reserve.

    Every job up to `search_end` takes the allowed candidate with the earliest end; once all
    reservations are given away, the earliest end among candidates that can start
    now without moving any of them. With ``strict`` nobody passes a blocked job. Returns how many
    places were written to `found`.
    """
    last = memory.kept[0].search_end if may_start(state, memory) else 0
    memory.kept[0].search_end = last
    if last == 0:
        return 0
    lay_running(state, memory)
    queue, profile, now = memory.queue, memory.profile, state.scalars[0].now
    processors, runtime, starts = queue.processors, queue.runtime, queue.start
    jobs, spans = queue.job, memory.menu_spans
    counts, runtimes = memory.menu_counts, memory.menu_runtimes
    free, span, rule = profile.free, profile.span, memory.backfilling[0]
    soon, number, reserved = np.nextafter(now, np.inf), 0, 0
    for k in range(queue.at[0].first, last):
        if processors[k] == 0:
            continue
        own, may_reserve = spans[jobs[k]], reserved < rule.reservations
        if not may_reserve:
            starts[k] = np.inf
            if free[span[FIRST]] == 0:
                break
            if counts[own.low] > free[span[FIRST]]:
                continue
        low, high, limit = own.low, own.high, np.inf if may_reserve else soon
        pick, start = best_candidate(profile, now, counts, runtimes, low, high, limit)
        if pick < 0:
            continue
        processors[k], runtime[k], starts[k] = counts[pick], runtimes[pick], start
        occupy(profile, start, start + runtime[k], processors[k])
        if start <= now:
            queue.found[number] = k
            number += 1
            continue
        reserved += 1
        if rule.strict:
            break
    return number


@compiled
def settle_found(state: RunState, memory: RuleMemory, number: int) -> int:
    """Give those who are found the counts that they take; return how many they are."""
    queue, counts = memory.queue, memory.menu_counts
    for place in queue.found[:number]:
        job, chosen = queue.job[place], queue.processors[place]
        pick = memory.menu_spans[job].begin
        while counts[pick] != chosen:
            pick += 1
        give_count(state, job, chosen, queue.runtime[place], pick)
    return number


@compiled
def decide(state: RunState, memory: RuleMemory) -> int:
    """Find who starts on which of the allowed counts, and give them these."""
    return settle_found(state, memory, mold_queue(state, memory))


# The rule


class Candidates:
    """A rule for open counts at work in one run.

    Parameters
    ----------
    view : View
    rule : OpenCounts
    allows : callable
        Compiled: lets a `RuleMemory` say what is allowed in a state, as `allow_all` does.
    keeps : MoldingMemory
        What it keeps of the run.
    """

    allows: Callable[..., None] = staticmethod(allow_all)
    keeps = NO_MOLDING

    def __init__(
        self,
        view: View,
        rule: Any,
        allows: Callable[..., None] = allow_all,
        keeps: MoldingMemory = NO_MOLDING,
    ) -> None:
        self.view, self.rule = view, rule
        self.advice: Advice = rule.advice
        self.allows, self.keeps, self._allows = allows, keeps, direct(allows)

    @property
    def is_compiled(self) -> bool:
        """Whether nothing in Python has a say but which candidates there are."""
        return (type(self).watch, type(self).narrow) == (Candidates.watch, Candidates.narrow)

    def tries(self, job: int, view: View) -> IntArray:
        """Return the counts that a job tries."""
        return tried(job, view, self.rule.counts)

    def of(self, job: int) -> JobCurve:
        """Return the counts and runtimes that a job may choose from."""
        view = self.view
        counts, reading = self.advice.offer(job, view, self.tries(job, view))
        if reading is None:
            count = int(counts[0])
            seconds = view.predictor.runtime(job, count) * view.predictor.caution(job)
            return JobCurve(np.array([count]), np.array([seconds]), count * seconds)
        return reading

    def watch(self) -> None:
        """Take in what happened since the last pass; called once a pass, before anything else."""

    def narrow(self, memory: RuleMemory) -> int:
        """Say which candidates are allowed in this pass.

        Returns one past the last place of the queue that is considered.
        """
        self._allows(self.view._tables, memory)
        return int(memory.kept["search_end"].item())


@dataclass(frozen=True, kw_only=True)
class OpenCounts:
    """What all rules for open counts have in common.

    Parameters
    ----------
    counts : {"powers_of_two", "all"}
        Which counts are candidates: powers of two and the request, or all; of jobs
        with at most two counts, all.
    advice : Advice
        How predicted curves are read.
    """

    counts: Counts = "powers_of_two"
    advice: Advice = field(default_factory=Advice)

    def __post_init__(self) -> None:
        check_choices(self)
