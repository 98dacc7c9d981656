"""Studies of a queue whose waits are known: do 95 % intervals cover them in 95 % of studies?

Jobs of one processor come to one processor at random and are served first come first
served. The number that arrival n finds is a Markov chain whose distribution follows from
that of arrival n - 1, so the expected wait of each of the first N jobs is known, warm-up
and all. Every repetition is a whole study: replications by the simulator, or by Lindley's
recursion, which it equals, then the intervals that users get.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from predictors.in_loop.user_estimate import UserEstimate
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.policies.allocation.rigid import Request
from sim.policies.backfill.none import NoBackfill
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed
from sim.results.steady_state import batch_means
from sim.statistics import Interval, compare, ratio_of_means, t_interval
from tests.former import build_truth
from workloads.base import Trace
from workloads.shapes.family import NoMoldability
from workloads.streams import Streams

SERVICE = 100.0
"""Mean seconds of a job."""
LOADS = (0.5, 0.4, 0.3)
"""Offered loads of the same jobs that arrive ever more slowly."""


def expected_waits(load: float, jobs: int, states: int = 400) -> np.ndarray:
    """Return the expected wait of the n-th of an M/M/1 queue's arrivals, from empty, seconds.

    Parameters
    ----------
    load : float
        Arrival rate times mean service time.
    jobs : int
    states : int
        The chain is cut off at so many jobs.
    """
    end = load / (1 + load)  # that the next arrival comes before the job in service ends
    found = np.arange(states)
    left = found[:, None] + 1 - found[None, :]  # departures from i + 1 jobs to j
    some = np.where(left >= 0, end * (1 - end) ** np.maximum(left, 0), 0.0)
    some[:, 0] = (1 - end) ** (found + 1)  # all depart
    here = np.zeros(states)
    here[0] = 1.0
    waits = np.empty(jobs)
    for job in range(jobs):
        waits[job] = found @ here
        here = here @ some
    return SERVICE * waits


@dataclass(frozen=True)
class Draw:
    """Interarrival and service times of one replication, in mean service times at load 1."""

    gaps: np.ndarray
    services: np.ndarray


def draw(seed: int, replication: int, jobs: int) -> Draw:
    rng = Streams(seed, replication)("coverage")
    return Draw(rng.exponential(size=jobs), rng.exponential(size=jobs))


def waits_by_recursion(drawn: Draw, load: float) -> np.ndarray:
    """Return the waits of all jobs (Lindley's recursion), seconds."""
    steps = np.concatenate([[0.0], drawn.services[:-1] - drawn.gaps[1:] / load])
    walk = np.cumsum(steps)
    return SERVICE * (walk - np.minimum.accumulate(walk))


def waits_by_simulation(drawn: Draw, load: float) -> np.ndarray:
    """Return the waits of all jobs as the simulator has them, seconds."""
    number = len(drawn.gaps)
    runtime = SERVICE * drawn.services
    jobs = pd.DataFrame(
        {
            "job_id": np.arange(1, number + 1),
            "submit_time": SERVICE * np.cumsum(drawn.gaps) / load,
            "requested_processors": 1,
            "reference_runtime": runtime,
            "requested_time": runtime,
            "user": -1,
            "executable": -1,
            "preceding_job": -1,
            "think_time": -1.0,
        }
    )
    trace = Trace(jobs=jobs, processors=1, source="coverage")
    truth = build_truth(trace, NoMoldability(), Streams(1, 0), 1)
    rigid = Policy(FirstComeFirstServed(), NoBackfill(), Request())
    records = simulate(Setup(trace, truth, rigid, UserEstimate(), Dedicated(1)))
    return records.start_time - records.submit_time


Waits = Callable[[Draw, float], np.ndarray]


@dataclass(frozen=True)
class Study:
    """A small study, to be repeated: three loads, replications with common random numbers."""

    replications: int = 20
    jobs: int = 300
    loads: tuple[float, float, float] = LOADS
    waits: Waits = waits_by_simulation

    def means(self, seed: int) -> list[list[float]]:
        """Return the mean wait of each replication under each load."""
        drawn = [draw(seed, replication, self.jobs) for replication in range(self.replications)]
        return [[float(self.waits(one, load).mean()) for one in drawn] for load in self.loads]

    def truths(self) -> dict[str, float]:
        """Return what the intervals of `intervals` should cover."""
        slow, middle, fast = (float(expected_waits(load, self.jobs).mean()) for load in self.loads)
        return {
            "mean": slow,
            "paired difference": fast - slow,
            "share of the gain kept": (slow - middle) / (slow - fast),
        }


def intervals(found: list[list[float]]) -> dict[str, Interval]:
    """Return the intervals that a study yields, by kind."""
    slow, middle, fast = found
    apart = compare([np.subtract(fast, slow)], shares=[True]).comparisons[0]
    return {
        "mean, t": t_interval(slow),
        "paired difference, symmetric bootstrap-t": apart.change,
        "share of the gain kept, Fieller": ratio_of_means(
            np.subtract(slow, middle), np.subtract(slow, fast)
        ),
    }


@dataclass
class Count:
    """How often intervals of a kind covered the truth, and how wide they were."""

    covered: int = 0
    studies: int = 0
    width: float = 0.0

    def add(self, interval: Interval, truth: float) -> None:
        """Count an interval."""
        self.covered += interval.contains(truth)
        self.studies += 1
        self.width += interval.relative


def replicated(repetitions: int, study: Study) -> dict[str, Count]:
    """Return the coverage of intervals over replications."""
    truth = study.truths()
    counts: dict[str, Count] = {}
    for seed in range(1, repetitions + 1):
        for name, interval in intervals(study.means(seed)).items():
            kind = name.partition(",")[0]
            counts.setdefault(name, Count()).add(interval, truth[kind])
    return counts


def batched(repetitions: int, jobs: int, warmup: int, load: float) -> tuple[Count, int]:
    """Return the coverage of batch means of one long trace, and how many were graded too short."""
    truth = float(expected_waits(load, jobs)[warmup:].mean())
    count, short = Count(), 0
    for seed in range(1, repetitions + 1):
        waits = waits_by_recursion(draw(seed, 0, jobs), load)
        found = batch_means(waits[warmup:])
        count.add(found.interval, truth)
        short += found.correlated
    return count, short
