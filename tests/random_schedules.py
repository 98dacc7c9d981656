"""Feasible schedules of random jobs, made without any engine."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from sim.state.records import Allocations, Predictions, Ranges, Records
from workloads.base import Trace


@dataclass(frozen=True)
class PowerTruth:
    """T(n) = w (serial + (1 - serial) / n**power) by application; power > 1 is superlinear."""

    application: np.ndarray
    size_class: np.ndarray
    size: np.ndarray
    moldable: np.ndarray
    min_processors: np.ndarray
    max_processors: np.ndarray
    serial_time: np.ndarray
    serial_time_assumed: np.ndarray
    scale: np.ndarray
    serial: np.ndarray
    power: np.ndarray
    allowed: tuple[int, ...] | None = None
    shared_shape: bool = True
    requested: np.ndarray | None = None
    recorded: np.ndarray | None = None

    @property
    def malleable(self) -> np.ndarray:
        return self.moldable

    def runtimes(self, job, counts):
        return self.runtimes_at(np.full(len(counts), job), counts)

    def runtimes_at(self, jobs, counts):
        app = self.application[jobs]
        shape = self.serial[app] + (1 - self.serial[app]) / counts ** self.power[app]
        times = self.scale[jobs] * shape
        return np.where(counts == self.requested[jobs], self.recorded[jobs], times)

    def feasible(self, job):
        if self.allowed is None:
            return None
        reference = int(self.requested[job])
        return np.array(sorted({*self.allowed, reference}))


def make_trace(submit, requested, runtime, *, user=None, ids=None, **more) -> Trace:
    """A trace of these jobs on the given counts."""
    n = len(submit)
    jobs = pd.DataFrame(
        {
            "job_id": np.arange(1, n + 1) if ids is None else np.asarray(ids),
            "submit_time": np.asarray(submit, float),
            "requested_processors": np.asarray(requested, np.int64),
            "reference_runtime": np.asarray(runtime, float),
            "requested_time": 2 * np.asarray(runtime, float),
            "user": np.zeros(n, np.int64) if user is None else np.asarray(user),
            "executable": np.full(n, -1),
            "preceding_job": np.full(n, -1),
            "think_time": np.full(n, -1.0),
        }
    )
    return Trace(jobs, None, "made.swf", **more)


def rigid_truth(trace: Trace, serial_time=None) -> PowerTruth:
    """Rigid jobs, each an application of its own."""
    jobs = trace.jobs
    n, count = len(jobs), jobs["requested_processors"].to_numpy()
    runtime = jobs["reference_runtime"].to_numpy()
    return PowerTruth(
        np.arange(n),
        np.full(n, -1),
        np.full(n, np.nan),
        np.zeros(n, bool),
        count,
        count,
        np.full(n, np.nan) if serial_time is None else np.asarray(serial_time, float),
        np.zeros(n, bool),
        runtime,
        np.ones(n),
        np.ones(n),
        requested=count,
        recorded=runtime,
    )


def moldable_truth(trace: Trace, rng, processors, *, apps=3, superlinear=True, allowed=None):
    """Moldable jobs of a few applications."""
    jobs = trace.jobs
    n, count = len(jobs), jobs["requested_processors"].to_numpy()
    runtime = jobs["reference_runtime"].to_numpy()
    app = rng.integers(apps, size=n)
    serial = rng.uniform(0, 0.5, apps)
    power = rng.uniform(0.5, 1.4 if superlinear else 1.0, apps)
    shape = serial[app] + (1 - serial[app]) / count ** power[app]
    scale = runtime / shape
    moldable = rng.random(n) < 0.8
    largest = np.maximum(count, rng.integers(1, processors + 1, apps)[app])
    return PowerTruth(
        app,
        np.full(n, -1),
        scale * 1.05,
        moldable,
        np.where(moldable, 1, count),
        np.where(moldable, largest, count),
        scale,
        rng.random(n) < 0.3,
        scale,
        serial,
        power,
        allowed,
        True,
        count,
        runtime,
    )


def ranges_of(processors) -> Ranges:
    """Processor numbers as closed intervals."""
    numbers = sorted(int(p) for p in processors)
    out = [[numbers[0], numbers[0]]]
    for p in numbers[1:]:
        if p == out[-1][1] + 1:
            out[-1][1] = p
        else:
            out.append([p, p])
    return tuple((a, b) for a, b in out)


def feasible_counts(truth, job, processors):
    """Counts that a job can run on."""
    allowed = truth.feasible(job)
    low, high = truth.min_processors[job], min(truth.max_processors[job], processors)
    return [n for n in range(low, high + 1) if allowed is None or n in allowed]


def random_records(trace, truth, rng, processors, *, plain=False) -> Records:
    """A schedule on identified processors: with restarts and resizes unless plain."""
    n = len(trace.jobs)
    submit = trace.jobs["submit_time"].to_numpy()
    free = np.full(processors, submit[0] if n else 0.0)
    rows, asked = [], []
    start, end, run_start = np.zeros(n), np.zeros(n), np.zeros(n)
    allocated, restarts = np.zeros(n, np.int64), np.zeros(n, np.int64)
    status = ["completed"] * n
    for job in range(n):
        count = int(rng.choice(feasible_counts(truth, job, processors)))
        chosen = rng.choice(processors, count, replace=False)
        now = max(submit[job], free[chosen].max()) + rng.choice([0.0, rng.uniform(0, 20)])
        start[job] = now
        if not plain and rng.random() < 0.2:  # a first run that fails
            died = now + rng.uniform(0.1, 5)
            rows.append((job, 0, now, died, count, ranges_of(chosen)))
            asked.append((job, now, count, False))
            restarts[job] = 1
            now = died + rng.choice([0.0, 3.0])
        runtime = float(truth.runtimes(job, np.array([count]))[0])
        ends = now + runtime
        run_start[job], allocated[job] = now, count
        asked.append((job, now, count, True))
        if not plain and count > 1 and rng.random() < 0.3:
            half = now + runtime / 2
            fewer = chosen[: count - 1]
            rows.append((job, restarts[job], now, half, count, ranges_of(chosen)))
            rows.append((job, restarts[job], half, ends, count - 1, ranges_of(fewer)))
        else:
            rows.append((job, restarts[job], now, ends, count, ranges_of(chosen)))
        if not plain and rng.random() < 0.1:
            status[job] = "killed"
        end[job] = ends
        free[chosen] = ends
    rows.sort(key=lambda row: row[2])
    columns = list(zip(*rows, strict=True)) if rows else [()] * 6
    allocations = Allocations(
        np.array(columns[0], np.int64),
        np.array(columns[1], np.int64),
        np.array(columns[2], float),
        np.array(columns[3], float),
        np.array(columns[4], np.int64),
        list(columns[5]),
    )
    return Records(
        submit,
        start,
        end,
        run_start,
        allocated,
        end - run_start,
        status,
        restarts,
        allocations,
        _predictions(asked, truth, rng),
        {"looks": 2.0 * n, "starts": len(asked), "predictor_queries": 3.0 * n, "events": 4.0 * n},
        processors,
    )


def _predictions(asked, truth, rng) -> Predictions:
    job = np.array([a[0] for a in asked], np.int64)
    nprocs = np.array([a[2] for a in asked], np.int64)
    factor = np.exp(rng.normal(0, 0.3, len(asked)))
    return Predictions(
        job,
        np.array([a[1] for a in asked], float),
        nprocs,
        truth.runtimes_at(job, nprocs) * factor,
        ["adept" if rng.random() < 0.7 else "user_estimate" for _ in asked],
        ["ok" for _ in asked],
        rng.integers(0, 6, len(asked)),
        rng.integers(0, 6, len(asked)),
        truth.runtimes_at(job, nprocs) * np.exp(rng.normal(0, 0.3, len(asked))),
        rng.random(len(asked)) < 0.8,
        np.array([a[3] for a in asked], bool),
    )


def random_run(seed, jobs, processors, *, plain=False, **truth_options):
    """A trace, its ground truth and a schedule."""
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.integers(0, 60, jobs) + rng.choice([0, 0.25, 0.5], jobs)) + 100.0
    trace = make_trace(
        submit,
        rng.integers(1, processors + 1, jobs),
        rng.choice([1.0, 5.0, 30.0, 4000.0], jobs) * rng.uniform(1, 2, jobs),
        user=rng.integers(-1, 3, jobs),
        dropped={"wider than the machine": 2},
        repaired={"requested time": 1},
    )
    truth = moldable_truth(trace, rng, processors, **truth_options)
    return trace, truth, random_records(trace, truth, rng, processors, plain=plain)
