"""SA: the smallest predicted turnaround, chosen at submit (Cirne & Berman); and two variants."""

from typing import Literal

import numpy as np

from predictors.base import FloatArray, IntArray
from sim.policies.advice import Advice, Counts, Reading, check_counts, tried
from sim.policies.allocation.rigid import Request
from sim.policies.base import Allocation, Outlook
from sim.policies.ties import first_least, is_less
from sim.state.view import View


class SmallestTurnaround:
    """SA: each arriving job tries its counts against the queue and takes the best.

    The turnaround of a count is its predicted start, given everything that runs
    and waits, plus the predicted runtime. Then the job is rigid. Cirne & Berman,
    JPDC 2002; TPDS 2003. How starts are predicted is the backfilling rule's
    matter: a conservative one asks its reservations, EASY lays out the queue or
    runs it to the drain.

    Parameters
    ----------
    counts : {"powers_of_two", "all"}
        Which counts to try: powers of two and the request, or all; of jobs with at
        most two counts, all. The largest count is not tried for its own sake.
    adopters : float
        Share of the jobs that choose so; the others keep their request.
    advice : Advice, optional
        How predicted curves are read.
    without_curve : {"request", "fewer"}
        What a job gets for which a learning predictor has no curve to go by: its
        request, or ``fewer`` processors if on them it could start at once, and end
        sooner than on its request though its speedup were linear, which makes most
        of what fewer processors cost. Cirne & Berman's jobs all have curves; that a
        request is molded down to what is free, where that ends sooner, is the rule of
        Huang, Shih & Chung.
    margin : float
        What a learning predictor cannot tell apart: the least count is taken whose
        turnaround is longer than the best by no more than this share of the
        best one's runtime; at least 0. The published rule has 0.

    Examples
    --------
    >>> import sim
    >>> policy = sim.Policy(sim.FirstComeFirstServed(), sim.Conservative(), SmallestTurnaround())
    >>> result = sim.run("workload.jobs=20", policy=policy, predictor="oracle")
    >>> set(result.jobs["status"])
    {'completed'}
    """

    def __init__(
        self,
        counts: Counts = "powers_of_two",
        adopters: float = 1.0,
        advice: Advice | None = None,
        without_curve: Literal["request", "fewer"] = "request",
        margin: float = 0.0,
    ) -> None:
        if not 0 <= adopters <= 1:
            raise ValueError(f"adopters must be in [0, 1], got {adopters}")
        if without_curve not in ("request", "fewer"):
            raise ValueError(f"without_curve must be 'request' or 'fewer', got {without_curve!r}")
        if not margin >= 0:
            raise ValueError(f"margin must be at least 0, got {margin}")
        self.without_curve = without_curve
        self.margin = margin
        self.counts = check_counts(counts)
        self.adopters = adopters
        self.advice = advice or Advice()

    def _tried(self, job: int, view: View) -> IntArray:
        """Return the counts that a job tries: its request alone, if it does not adopt the rule."""
        if view.adopter_draws[job] >= self.adopters:
            view.preferences.undecided.add(job)
            return np.array([view.requested_processors[job]])
        return tried(job, view, self.counts)

    def offers(self, job: int, view: View) -> tuple[IntArray, FloatArray | None]:
        """Return the counts from which a job may choose, and the believed runtimes, seconds.

        One count alone comes without a runtime. Predictors that learn have no such offers:
        what they say hangs on when they are asked.
        """
        counts = self._tried(job, view)
        reading = None if counts.size == 1 else self.advice.read(job, view, counts)
        if reading is not None:
            return reading.counts, reading.runtimes
        return counts[:1] if counts.size == 1 else np.array([view.requested_processors[job]]), None

    def choose(self, job: int, view: View, outlook: Outlook) -> int:
        """Return the count with the least turnaround, ties to the smaller one."""
        request = view.requested_processors[job]
        counts = self._tried(job, view)
        if counts.size == 1:
            return int(counts[0])
        reading = self.advice.read(job, view, counts)
        if reading is None:
            if self.without_curve == "request" or not view.fitted:
                return request
            reading = at_once_or_as_requested(job, view, counts, outlook)
        turnarounds = outlook(reading.counts, reading.runtimes) - view.now + reading.runtimes
        best = int(first_least(turnarounds))
        if view.fitted and job not in view.preferences.undecided:
            enough = turnarounds[best] + self.margin * reading.runtimes[best]
            best = int(first_least(np.maximum(turnarounds, enough)))
        count = int(reading.counts[best])
        view.believe(job, count, float(reading.runtimes[best]))
        return count


def has_table(allocation: Allocation, view: View) -> bool:
    """Say whether counts hang on nothing but starts and on what is believed of a job at submit."""
    known = (Request, SmallestTurnaround, UsualTurnaround)
    return type(allocation) in known and not view.fitted and view.load is None


def at_once_or_as_requested(job: int, view: View, counts: IntArray, outlook: Outlook) -> Reading:
    """Return a curve of linear speedup at the request and at fewer counts that can start now."""
    request = view.requested_processors[job]
    counts = np.union1d(counts[counts <= request], [request])
    work = view.belief(job, request) * request
    starts_now = outlook(counts, work / counts) <= view.now
    counts = counts[starts_now | (counts == request)]
    return Reading(counts, work / counts, work)


class UsualTurnaround(SmallestTurnaround):
    """The smallest turnaround at the long-run average of load, not the load to come.

    Parameters are those of `SmallestTurnaround`; without background load the
    two are the same.
    """

    def choose(self, job: int, view: View, outlook: Outlook) -> int:
        """Return the count with the least turnaround under the usual load."""
        if view.load is None:
            return super().choose(job, view, outlook)
        with view.load.usual():
            return super().choose(job, view, outlook)


class Explore(SmallestTurnaround):
    """Choose by SA, but try the count that the predictor asks for when processors idle.

    ADEPT's reliability judgement names, with its warnings, the count to measure
    next (its paper, section VI). A job is run on that count instead if a share
    `idle` of the machine is free, the count is feasible and could start at
    once, and the job would end no later than `patience` times the turnaround it
    would have had. Our reading; the paper leaves the use of the judgement open.

    Parameters
    ----------
    idle : float
        In [0, 1].
    patience : float
        At least 1.
    counts, adopters
        As in `SmallestTurnaround`.
    """

    def __init__(
        self,
        idle: float = 0.5,
        patience: float = 2.0,
        counts: Literal["powers_of_two", "all"] = "powers_of_two",
        adopters: float = 1.0,
    ) -> None:
        super().__init__(counts, adopters)
        if not 0 <= idle <= 1:
            raise ValueError(f"idle must be in [0, 1], got {idle}")
        if not patience >= 1:
            raise ValueError(f"patience must be at least 1, got {patience}")
        self.idle = idle
        self.patience = patience

    def choose(self, job: int, view: View, outlook: Outlook) -> int:
        """Return SA's count, or the one that the predictor wants measured."""
        best = super().choose(job, view, outlook)
        if view.adopter_draws[job] >= self.adopters or view.free < self.idle * view.processors:
            return best
        wanted = view.wanted(job, best)
        if wanted is None or wanted == best or not self._can_start(job, wanted, view):
            return best
        counts = np.array([best, wanted])
        runtimes = view.curve(job, counts)
        if runtimes is None:
            return best
        runtimes = runtimes * view.caution(job)
        starts = outlook(counts, runtimes)
        ends = starts + runtimes - view.now
        if starts[1] > view.now or is_less(self.patience * ends[0], ends[1]):
            return best
        view.believe(job, wanted, float(runtimes[1]))
        return wanted

    def _can_start(self, job: int, processors: int, view: View) -> bool:
        return processors <= view.free and processors in view.counts(job)
