"""Moldable jobs that tests compose, and the rules for open counts by name."""

from collections.abc import Callable, Sequence

import numpy as np
from toys import BACKFILLS, ToyEstimate, ToyOracle, ToyTruth, trace_of

from sim.engine.invariants import Checker
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.policies.allocation.fair_share import FairShare
from sim.policies.allocation.iterative import Iterative, UtilizationBased
from sim.policies.allocation.local import Fair, LocalAllocation
from sim.policies.allocation.queue_time import QueueTimeAware
from sim.policies.allocation.sa import SmallestTurnaround
from sim.policies.allocation.turnaround import BestTurnaround
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed
from sim.state.records import Records

ALL_BACKFILLS = dict(BACKFILLS)

POLICIES = {
    "sa": ("conservative", SmallestTurnaround()),
    "greedy": ("conservative", BestTurnaround()),
    "greedy_replan": ("replan", BestTurnaround(counts="all")),
    "aggressive": ("easy", BestTurnaround()),
    "two_reserved": ("easy2", BestTurnaround()),
    "strict": ("none", BestTurnaround()),
    "first_fit": ("skip", BestTurnaround()),
    "fair_share": ("conservative", FairShare()),
    "fair_share_submit": ("easy", FairShare(when="submit", efficiency=1.0)),
    "queue_time": ("none", QueueTimeAware(counts="all")),
    "queue_time_median": ("none", QueueTimeAware(counts="all", queue_time="median")),
    "queue_time_mean": ("none", QueueTimeAware(counts="all", queue_time="mean")),
    "lpa": ("skip", LocalAllocation()),
    "fair": ("skip", Fair()),
    "iterative": ("replan", Iterative()),
    "iterative_time": ("replan", Iterative(step="time", depth=2)),
    "utilization": ("replan", UtilizationBased()),
}

IN_SECONDS = {"queue_time_median", "queue_time_mean"}
"""Rules with parameters in seconds: a longest lifetime."""


def policy(backfill: str, allocation: object, error_quantile: float | None = None) -> Policy:
    """First come first served, with a backfilling rule by name."""
    order = FirstComeFirstServed()
    return Policy(order, ALL_BACKFILLS[backfill], allocation, error_quantile=error_quantile)


def named(name: str) -> Policy:
    """Return one of `POLICIES`."""
    return policy(*POLICIES[name])


def truth_of(
    rows: Sequence[tuple[float, ...]],
    curves: Sequence[Callable[[int], float] | None],
    largest: int,
) -> tuple[object, ToyTruth]:
    """Make a trace of rows and a truth: a curve each, None for a rigid job."""
    trace = trace_of(rows)
    reference = trace.jobs["requested_processors"].to_numpy()
    recorded = trace.jobs["reference_runtime"].tolist()
    stiff = np.array([curve is None for curve in curves])

    def runtime(job: int, n: int) -> float:
        curve = curves[job]
        return recorded[job] if curve is None else curve(n)

    truth = ToyTruth(runtime, reference, np.where(stiff, reference, largest))
    truth.moldable = ~stiff
    truth.min_processors = np.where(stiff, reference, 1)
    return trace, truth


def mold(
    backfill: str,
    allocation: object,
    rows: Sequence[tuple[float, ...]],
    curves: Sequence[Callable[[int], float] | None],
    processors: int = 8,
    factor: float = 1.0,
    error_quantile: float | None = None,
    **options: object,
) -> Records:
    """Replay jobs with curves of their own under a rule that knows them, or a multiple."""
    trace, truth = truth_of(rows, curves, processors)
    oracle = ToyOracle(truth, factor)
    return simulate(
        Setup(
            trace,
            truth,
            policy(backfill, allocation, error_quantile),
            oracle,
            Dedicated(processors),
            watchers=(Checker(),),
            **options,
        )
    )


class Believer(ToyEstimate):
    """Believes the requested time at the request, and 1/n of the work elsewhere."""

    def attach(self, jobs: object) -> None:
        self._jobs = jobs

    def curve(self, job: int, counts: np.ndarray) -> np.ndarray:
        area = self._jobs.requested_time[job] * self._jobs.requested_processors[job]
        return area / counts
