"""SA: the smallest predicted turnaround, chosen at submit (Cirne & Berman); its load-blind twin."""

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from sim.engine.protocols import is_exactly
from sim.errors import AT_LEAST_0, AT_LEAST_1, SHARE, check_choices
from sim.policies.advice import Advice, Counts, last_up_to, tried
from sim.policies.base import Allocation, Outlook
from sim.policies.passes.memory import RuleMemory, lay_reservations, predicted_starts
from sim.policies.ties import first_least, is_less
from sim.state.run_state import RunState
from sim.state.run_steps import give_count
from sim.state.view import View


@compiled
def areas(counts: IntArray, runtimes: FloatArray, request: int) -> FloatArray:
    """Return the believed processor time on each count over that of the request.

    Where the request is not among the counts, as a repaired curve is no faster there or the
    application is made for others, it is believed as fast as the next lower one. That one,
    or the least count, is never dear.

    Examples
    --------
    >>> areas(np.array([1, 2, 4]), np.array([8.0, 5.0, 4.0]), 2).tolist()
    [0.8, 1.0, 1.6]
    """
    place = last_up_to(counts, 0, counts.size, request)
    found: FloatArray = counts * runtimes / (request * runtimes[place])
    found[place] = min(found[place], 1.0)
    return found


@compiled
def least_turnaround(
    counts: IntArray,
    waits: FloatArray,
    runtimes: FloatArray,
    request: int,
    only_immediate: bool,
    margin: float,
    most_area: float,
) -> int:
    """Return the place of the least wait plus runtime, ties to the smaller count.

    Parameters
    ----------
    counts : numpy.ndarray of int, shape (c,), ascending
    waits, runtimes : numpy.ndarray of float, shape (c,), seconds
    request : int
    only_immediate : bool
        Whether only counts that need not wait, and the last, are considered, whatever they take.
    margin : float
        Turnarounds longer than the least by up to this share of its runtime are
        as good.
    most_area : float
        Of counts that take more than the request's processor time, those count that take up
        to so many times it and need not wait; endless: all, whether they wait or not.
    """
    turnarounds, weighs = waits + runtimes, most_area < np.inf and not only_immediate
    taken = areas(counts, runtimes, request) if weighs else turnarounds
    for k in range(waits.size):
        is_dear = weighs and is_less(1.0, taken[k])
        must_start = is_dear or (only_immediate and k < waits.size - 1)
        if (must_start and waits[k] > 0.0) or (is_dear and is_less(most_area, taken[k])):
            turnarounds[k] = np.inf
    best = first_least(turnarounds)
    if not only_immediate:
        best = first_least(np.maximum(turnarounds, turnarounds[best] + margin * runtimes[best]))
    return best


@compiled
def choose(state: RunState, memory: RuleMemory, job: int) -> bool:
    """Let an arriving job choose the smallest believed turnaround on the profile as it is (SA)."""
    own, now = memory.menu_spans[job], state.scalars[0].now
    best = own.begin
    if own.number > 1:
        offered = slice(best, best + own.number)
        counts, beliefs = memory.menu_counts[offered], memory.menu_runtimes[offered]
        noted = job == memory.kept[0].explained
        waits = predicted_starts(memory, now, counts, beliefs, noted) - now
        most = memory.area_limits[int(memory.queue.at[0].waiting > 0)]
        immediate, request = own.only_immediate != 0, memory.requested[job]
        best += least_turnaround(counts, waits, beliefs, request, immediate, memory.margin, most)
    give_count(state, job, memory.menu_counts[best], memory.menu_runtimes[best], best)
    return True


@compiled
def choose_by_reservations(state: RunState, memory: RuleMemory, job: int) -> bool:
    """Let an arriving job choose where all that wait hold a reservation, in queue order."""
    if memory.menu_spans[job].number > 1:
        lay_reservations(state, memory)
    return choose(state, memory, job)


@dataclass(eq=False)
class SmallestTurnaround:
    """SA: each arriving job tries its counts against the queue and takes the best.

    The turnaround of a count is its predicted start, given everything that runs
    and waits, plus the predicted runtime. Then the job is rigid. Cirne & Berman,
    JPDC 2002; TPDS 2003. How starts are predicted is the backfilling rule's
    matter: a conservative one asks its reservations, EASY lays out the queue.

    Parameters
    ----------
    counts : {"powers_of_two", "all"}
        Which counts to try: powers of two and the request, or all; of jobs with at
        most two counts, all. The largest count is not tried for its own sake.
    adopters : float
        Share of the jobs that choose so; the others keep their request.
    advice : Advice
        How predicted curves are read.
    without_curve : {"request", "fewer"}
        What a job gets that has no curve to go by: its request, or ``fewer``
        processors if on them it could start at once, and end sooner than on its
        request though its speedup were linear, which makes most of what fewer
        processors cost. Cirne & Berman's jobs all have curves; that a
        request is molded down to what is free, where that ends sooner, is the rule of
        Huang, Shih & Chung.
    margin : float
        What is no difference: the least count is taken whose turnaround is longer
        than the best by no more than this share of the best one's runtime; at least
        0. The published rule has 0.
    extra_area : {"idle", "never", "always"}
        When a job may take more processor time n·T(n), as believed, than its request
        would, for which others wait: on processors that are free now while nobody else
        waits, never, or always; the published rule has always.
    most_extra_area : float
        With ``idle``, up to so many times the processor time of the request; at least 1.

    Examples
    --------
    >>> import sim
    >>> policy = sim.Policy(sim.FirstComeFirstServed(), sim.Conservative(), SmallestTurnaround())
    >>> result = sim.run("workload.jobs=20", policy=policy, predictor="oracle")
    >>> set(result.jobs["status"])
    {'completed'}
    """

    counts: Counts = "powers_of_two"
    adopters: float = 1.0
    advice: Advice = field(default_factory=Advice)
    without_curve: Literal["request", "fewer"] = "request"
    margin: float = 0.0
    extra_area: Literal["idle", "never", "always"] = "always"
    most_extra_area: float = 1.5

    def __post_init__(self) -> None:
        check_choices(self)
        SHARE.check(adopters=self.adopters)
        AT_LEAST_0.check(margin=self.margin)
        AT_LEAST_1.check(most_extra_area=self.most_extra_area)

    @property
    def area_limits(self) -> tuple[float, float]:
        """How many times the request's processor time jobs take while nobody waits, and else."""
        idle = float(self.most_extra_area) if self.extra_area == "idle" else 1.0
        return (np.inf, np.inf) if self.extra_area == "always" else (idle, 1.0)

    def tries(self, job: int, view: View) -> IntArray:
        """Return the counts that a job tries: its request alone, if it does not adopt the rule."""
        if view.jobs.adopter_draws[job] >= self.adopters:
            view._beliefs.mark(job, chosen_by_curve=False)
            return np.array([view.requested_processors[job]])
        return tried(job, view, self.counts)

    def offers(self, job: int, view: View) -> tuple[IntArray, FloatArray | None, bool]:
        """Return what a job may choose from now.

        Returns
        -------
        tuple of (array of int, array of float or None, bool)
            Counts, ascending; believed runtimes there in seconds, None where there is but one
            count, whose belief is asked for; and whether only counts on which it could start at
            once, and the last one, count: all take the same processor time then.
        """
        tries, request = self.tries(job, view), view.requested_processors[job]
        counts, reading = self.advice.offer(job, view, tries)
        if reading is not None:
            return counts, reading.runtimes, False
        if self.without_curve == "request" or tries.size == 1:
            return counts, None, False
        counts = np.union1d(tries[tries <= request], [request])
        return counts, view.belief(job, request) * request / counts, True

    def choose(self, job: int, view: View, outlook: Outlook) -> int:
        """Return the count with the least turnaround, ties to the smaller one."""
        counts, runtimes, only_immediate = self.offers(job, view)
        if runtimes is None:
            return int(counts[0])
        waits = outlook(counts, runtimes) - view.now
        most, request = self.area_limits[view.others_wait], view.requested_processors[job]
        best = least_turnaround(counts, waits, runtimes, request, only_immediate, self.margin, most)
        view._beliefs.keep(job, int(counts[best]), float(runtimes[best]))
        return int(counts[best])


class UsualTurnaround(SmallestTurnaround):
    """The smallest turnaround at the long-run average of load, not the load to come.

    Parameters are those of `SmallestTurnaround`; without background load the
    two are the same.
    """

    def choose(self, job: int, view: View, outlook: Outlook) -> int:
        """Return the count with the least turnaround under the usual load."""
        with nullcontext() if view.load is None else view.load.usual():
            return super().choose(job, view, outlook)


def chooses_by_offers(allocation: Allocation) -> bool:
    """Say whether counts hang on what jobs are offered and on when they could start, alone."""
    return any(is_exactly(allocation, kind) for kind in (SmallestTurnaround, UsualTurnaround))
