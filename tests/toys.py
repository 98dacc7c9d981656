"""Small traces, truths and predictors that tests compose."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

from predictors.base import Explanation, Observation, VisibleJobs
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.policies.allocation.rigid import Request
from sim.policies.backfill.conservative import Conservative
from sim.policies.backfill.easy import Easy
from sim.policies.backfill.none import FirstFit, NoBackfill
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed
from sim.state.records import Records
from workloads.base import Trace

BACKFILLS = {
    "none": NoBackfill(),
    "skip": FirstFit(),
    "easy": Easy(),
    "easy2": Easy(reservations=2),
    "conservative": Conservative(),
    "replan": Conservative(replan=True),
}


def in_python() -> Any:
    """Return a context in which runs are made in Python, pass by pass."""
    return mock.patch("sim.engine.run.compiled_passes", return_value=None)


def rigid(backfill: str, order: object | None = None) -> Policy:
    """Compose a policy that gives every job what it asked for."""
    return Policy(order or FirstComeFirstServed(), BACKFILLS[backfill], Request())


def trace_of(rows: Sequence[tuple[float, ...]], **more: object) -> Trace:
    """Make a trace of (submit, processors, runtime[, estimate]) rows."""
    full = [(*row, row[2]) if len(row) == 3 else row for row in rows]
    jobs = pd.DataFrame(
        {
            "job_id": np.arange(1, len(full) + 1),
            "submit_time": [float(row[0]) for row in full],
            "requested_processors": [int(row[1]) for row in full],
            "reference_runtime": [float(row[2]) for row in full],
            "requested_time": [float(row[3]) for row in full],
            "user": -1,
            "executable": -1,
            "preceding_job": -1,
            "think_time": -1.0,
        }
    )
    return Trace(jobs=jobs, processors=None, source="toy", **more)


@dataclass
class ToyTruth:
    """Ground truth from one function T(job, n) and the counts each job may use."""

    runtime: Callable[[int, int], float]
    reference: np.ndarray
    largest: np.ndarray
    allowed: np.ndarray | None = None
    share: float = np.nan

    def __post_init__(self) -> None:
        number = len(self.reference)
        self.application = np.zeros(number, np.int64)
        self.size_class = np.full(number, -1)
        self.size = np.full(number, np.nan)
        self.moldable = self.largest > 1
        self.malleable = self.moldable
        self.max_processors = self.largest
        self.min_processors = np.where(self.moldable, 1, self.reference)
        self.serial_time = np.array([self.runtime(j, 1) for j in range(number)])
        self.serial_time_assumed = np.zeros(number, bool)

    def runtimes(self, job: int, counts: np.ndarray) -> np.ndarray:
        return np.array([self.runtime(job, int(n)) for n in counts])

    def runtimes_at(self, jobs: np.ndarray, counts: np.ndarray) -> np.ndarray:
        return np.array([self.runtime(int(j), int(n)) for j, n in zip(jobs, counts, strict=True)])

    def communication_shares(self, jobs: np.ndarray, counts: np.ndarray) -> np.ndarray:
        return np.full(len(jobs), self.share)

    def feasible(self, job: int) -> np.ndarray | None:
        return self.allowed


def rigid_truth(trace: Trace) -> ToyTruth:
    """Every job runs on its reference count alone."""
    runtimes = trace.jobs["reference_runtime"].tolist()
    reference = trace.jobs["requested_processors"].to_numpy()
    truth = ToyTruth(lambda job, n: runtimes[job], reference, reference)
    truth.moldable = np.zeros(len(reference), bool)
    truth.malleable = truth.moldable
    truth.min_processors = reference
    return truth


class ToyEstimate:
    """The user's estimate is the belief."""

    learns = False

    def attach(self, jobs: VisibleJobs) -> None:
        pass

    def curve(self, job: int, counts: np.ndarray) -> None:
        return None

    def observe(self, observation: Observation) -> bool:
        return False

    def explain(self, job: int, nprocs: int) -> Explanation:
        return Explanation("user_estimate", 0, "")


class ToyOracle(ToyEstimate):
    """The truth, or a fixed multiple of it."""

    def __init__(self, truth: ToyTruth, factor: float = 1.0) -> None:
        self.truth = truth
        self.factor = factor

    def bind_truth(self, runtimes: object, key: int) -> None:
        """Have it already: so it may be asked of jobs to come."""

    def curve(self, job: int, counts: np.ndarray) -> np.ndarray:
        return self.factor * self.truth.runtimes(job, counts)


def replay(
    rows: Sequence[tuple[float, ...]], processors: int, policy: Policy, **options: object
) -> Records:
    """Replay rigid rows under the users' estimates."""
    trace = trace_of(rows)
    return simulate(
        Setup(trace, rigid_truth(trace), policy, ToyEstimate(), Dedicated(processors), **options)
    )
