"""Queue-time-aware choice: some processors now or more of them later (Downey, JSSPP'97)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.errors import Bounds
from sim.policies.advice import JobCurve
from sim.policies.allocation.curve import average, knee
from sim.policies.molding.base import Candidates, OpenCounts, find_search_end
from sim.policies.passes.memory import MoldingMemory, RuleMemory
from sim.policies.ties import first_least, is_less
from sim.state.run_state import RunState
from sim.state.view import View

Cap = Literal["maximum", "average", "knee"]


@dataclass(frozen=True, kw_only=True)
class CappedCounts(OpenCounts):
    """What rules with a cap on each job's count have in common.

    Parameters
    ----------
    cap : {"maximum", "average", "knee"}
        The most that a job gets: the fastest count, its average parallelism A,
        or its processor working set.
    """

    cap: Cap = "maximum"


class CappedCandidates(Candidates):
    """Candidates that end at a cap, every count settled in every pass."""

    def of(self, job: int) -> JobCurve:
        """Return the job's candidates up to its cap."""
        counts, runtimes, serial_time = super().of(job)
        if self.rule.cap == "knee":
            last = knee(counts, runtimes)
        elif self.rule.cap == "average":
            last = average(counts, runtimes, serial_time)
        else:
            last = first_least(runtimes)
        return JobCurve(counts[: last + 1], runtimes[: last + 1], serial_time)


Lifetimes = tuple[FloatArray, FloatArray, FloatArray, float]
"""Processors of running jobs; their ages in seconds, 1 at least; ln(longest / age); the longest."""


@compiled
def _is_over(runs: Lifetimes, needed: int, wait: float, alone: bool) -> bool:
    """Say whether a predicted wait is over after so many seconds.

    With `alone`, whether one of the jobs that would free enough processors has
    more probably ended than not; else whether the expected number of freed
    processors reaches `needed`. Both sums go one way only, so that they may be
    left as soon as the answer is known.
    """
    held, age, whole, longest = runs
    still, freed, enough = 1.0, 0.0, needed - 1e-9
    for k in range(age.size):
        if alone and held[k] < needed:
            continue
        instant = age[k] + wait
        lasts = 0.0 if instant >= longest else np.log(longest / instant) / whole[k]
        if alone:
            still *= lasts
        else:
            freed += held[k] * (1.0 - lasts)
        if still <= 0.5 or freed >= enough:
            return True
    return False


@compiled
def predicted_end(
    runs: Lifetimes, needed: int, alone: bool, too_short: float, runtime: float, least: float
) -> tuple[float, float]:
    """Return when enough processors are predicted to be free, in seconds from now.

    Parameters
    ----------
    runs : Lifetimes
    needed : int
    alone : bool
        See `_is_over`.
    too_short : float
        A wait that is known to be too short.
    runtime, least : float
        The search is given up once wait and runtime together reach `least`.

    Returns
    -------
    low, wait : float
        A wait that is too short, and the answer; a lower bound of it where the
        search was given up.
    """
    low, high = 0.0, runs[3]
    for _ in range(40):
        if low + runtime >= least:
            return low, low
        middle = 0.5 * (low + high)
        if middle > too_short and _is_over(runs, needed, middle, alone):
            high = middle
        else:
            low = middle
    return low, high


@compiled
def preferred(
    counts: IntArray, runtimes: FloatArray, free: int, held: FloatArray, clock: FloatArray,
    wait_estimator: int, longest: float,
) -> int:  # fmt: skip
    """Return the place that minimises q(n) + T(n), ties to the smaller count.

    More processors are never there sooner, as long as they are predicted the
    same way: what is too short a wait for one candidate is so for the next.

    Parameters
    ----------
    counts, runtimes : numpy.ndarray, shape (c,)
    free : int
    held, clock : numpy.ndarray, shape (n,)
        Processors of the running jobs; the seconds that they still take by belief, ascending,
        else their ages.
    wait_estimator : int
        Which of `QUEUE_TIMES`.
    longest : float, seconds
    """
    by_belief, freed = wait_estimator == 0, held.cumsum()
    old = clock if by_belief else np.maximum(clock, 1.0)
    runs = held, old, old if by_belief else np.log(longest / old), longest
    widest = held.max() if wait_estimator == 1 and held.size else 0
    best, least, low, bound, alone = 0, np.inf, 0.0, 0.0, True
    for pick in range(counts.size):
        runtime, needed, wait = runtimes[pick], counts[pick] - free, 0.0
        if not is_less(runtime, least):
            continue
        if needed > 0 and by_belief:
            place = np.searchsorted(freed, needed)
            wait = clock[place] if place < clock.size else np.inf
        elif needed > 0:
            if alone and needed > widest:
                alone, low, bound = False, 0.0, 0.0
            if not is_less(bound + runtime, least):
                continue
            low, bound = predicted_end(runs, needed, alone, low, runtime, least)
            wait = bound
        if is_less(wait + runtime, least):
            best, least = pick, wait + runtime
    return best


QUEUE_TIMES = ("believed", "median", "mean")


@compiled
def settle_heads(state: RunState, memory: RuleMemory) -> None:
    """Settle heads on the count they prefer, until one prefers to wait; others get their cap."""
    last, run, free = find_search_end(state, memory), state.scalars[0], state.scalars[0].free
    queue, at = memory.queue, memory.queue.at[0]
    wait_estimator, longest = memory.molding.wait_estimator, memory.molding.longest
    by_belief, waits, number = wait_estimator == 0, False, 0
    room = run.holders + at.last - at.first
    held, clock = np.empty(room), np.empty(room)  # what is still to come by belief, else the age
    for k in range(run.holders):
        job = state.holder_job[k]
        if job >= 0:
            left, age = state.holder_end[k] - run.now, run.now - state.start_time[job]
            held[number], clock[number] = state.holder_processors[k], left if by_belief else age
            number += 1
    for k in range(at.first, last):
        if queue.processors[k] == 0:
            continue
        own = memory.menu_spans[queue.job[k]]
        begin, end = own.begin, own.begin + own.number
        own.low, own.high = end - 1, end
        if waits:
            continue
        counts, runtimes = memory.menu_counts[begin:end], memory.menu_runtimes[begin:end]
        runs = held[:number], clock[:number]
        pick = preferred(counts, runtimes, free, *runs, wait_estimator, longest)
        own.low, own.high = begin + pick, begin + pick + 1
        waits = counts[pick] > free
        free -= counts[pick]
        place, instant = number, runtimes[pick] if by_belief else 0.0
        while by_belief and place > 0 and clock[place - 1] > instant:
            held[place], clock[place] = held[place - 1], clock[place - 1]
            place -= 1
        held[place], clock[place] = counts[pick], instant
        number += 1


@dataclass(frozen=True, kw_only=True)
class QueueTimeAware(CappedCounts):
    """The head takes the n up to its cap that minimises q(n) + T(n), anew at each event.

    q(n) is the predicted time until n processors are free, 0 for n <= F.
    Downey (JSSPP'97; IPPS'97), from memory. Use with ``backfill=none``.

    Parameters
    ----------
    queue_time : {"believed", "median", "mean"}
        ``believed`` trusts the believed ends of the running jobs. The others
        know ages alone and take lifetimes as log-uniform up to `longest`:
        ``median`` is Downey's predictor A (the first of the jobs that alone
        would free enough processors; the mean where there is none such),
        ``mean`` his predictor B, our reading: the time at which the expected
        number of free processors reaches n.
    longest : float, seconds
        Longest lifetime that the predictors reckon with; a job that is older
        is expected to end now.
    """

    cap: Cap = "average"
    queue_time: Literal["believed", "median", "mean"] = "believed"
    longest: float = 163_000.0

    def __post_init__(self) -> None:
        super().__post_init__()
        Bounds("above 1 s", np.nextafter(1.0, 2.0)).check(longest=self.longest)

    def open(self, view: View) -> Candidates:
        """Begin a run."""
        wait_estimator = QUEUE_TIMES.index(self.queue_time)
        keeps = MoldingMemory(wait_estimator=wait_estimator, longest=float(self.longest))
        return CappedCandidates(view, self, settle_heads, keeps)
