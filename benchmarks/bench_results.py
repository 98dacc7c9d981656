"""Time and memory of everything after the simulation.

Run as ``python benchmarks/bench_results.py [JOBS]``; prints a table.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.floor import show
from sim.results.artefacts import RUN, Artefacts, replacing, write_run
from sim.results.durable import checksums
from sim.results.lower_bounds import least_costs
from sim.results.metrics import summarise
from sim.results.outcome import outcome
from sim.results.plots.pictures import schedule_figure
from sim.state.records import Allocations, Predictions, Records
from sim.sweeps.locks import locked
from workloads.base import Trace

LANES, LANE = 32, 8


class LinearTruth:
    """Jobs of 50 applications that keep Amdahl's law, by job index."""

    shared_shape = True

    def __init__(self, application, requested, runtime):
        n = len(application)
        self.application, self.size_class = application, np.full(n, -1)
        self.serial = np.linspace(0.0, 0.2, 50)[application]
        self.requested, self.recorded = requested, runtime
        self.scale = runtime / (self.serial + (1 - self.serial) / requested)
        self.size, self.moldable = self.scale, np.ones(n, np.bool_)
        self.malleable = self.moldable
        self.min_processors = np.ones(n, np.int64)
        self.max_processors = np.full(n, LANES * LANE)
        self.serial_time, self.serial_time_assumed = self.scale, np.zeros(n, np.bool_)

    def runtimes(self, job, counts):
        """Return one job's runtimes."""
        return self.runtimes_at(np.full(len(counts), job), counts)

    def runtimes_at(self, jobs, counts):
        """Return runtimes elementwise."""
        serial = self.serial[jobs]
        return self.scale[jobs] * (serial + (1 - serial) / counts)

    def feasible(self, job):
        """Return None: every count in range can run."""
        return None


def lane_schedule(jobs, seed=1, load=0.9):
    """Jobs of up to 8 processors on 32 lanes of the machine, each first come first served."""
    rng = np.random.default_rng(seed)
    count = rng.integers(1, LANE + 1, jobs)
    runtime = np.maximum(rng.lognormal(4, 2, jobs), 1.0).round()
    lane = rng.integers(LANES, size=jobs)
    submit = np.sort(rng.uniform(0, runtime.sum() / LANES / load, jobs)).round()
    order = np.lexsort((np.arange(jobs), lane))
    start = np.empty(jobs)
    for group in np.split(order, np.flatnonzero(np.diff(lane[order])) + 1):
        before = np.cumsum(runtime[group]) - runtime[group]
        start[group] = np.maximum.accumulate(submit[group] - before) + before
    table = pd.DataFrame(
        {
            "job_id": np.arange(1, jobs + 1),
            "submit_time": submit,
            "requested_processors": count,
            "reference_runtime": runtime,
            "requested_time": 2 * runtime,
            "user": rng.integers(100, size=jobs),
            "executable": np.full(jobs, -1),
            "preceding_job": np.full(jobs, -1),
            "think_time": np.full(jobs, -1.0),
        }
    )
    truth = LinearTruth(rng.integers(50, size=jobs), count, runtime)
    begun = np.argsort(start, kind="stable")
    first = lane * LANE
    nodes = [
        ((a, b),)
        for a, b in zip(first[begun].tolist(), (first + count - 1)[begun].tolist(), strict=True)
    ]
    zero = np.zeros(jobs, np.int64)
    held = Allocations(begun, zero, start[begun], (start + runtime)[begun], count[begun], nodes)
    asked = Predictions(
        begun,
        start[begun],
        count[begun],
        (runtime * rng.lognormal(0, 0.3, jobs))[begun],
        ["adept"] * jobs,
        ["ok"] * jobs,
        rng.integers(0, 9, jobs),
        zero,
        np.full(jobs, np.nan),
        np.ones(jobs, np.bool_),
        np.ones(jobs, np.bool_),
    )
    records = Records(
        submit, start, start + runtime, start, count, 2 * runtime, ["completed"] * jobs,
        zero, held, asked, {"looks": 2.0 * jobs, "starts": float(jobs)}, LANES * LANE,
    )  # fmt: skip
    return Trace(table, None, "lanes"), truth, records


def durability(rounds: int = 20) -> dict:
    """Return the milliseconds that a short run's lock, checksums and waits for the disk cost."""
    spent = []
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:
        for number in range(rounds):
            folder = Path(scratch, str(number))
            folder.mkdir()
            began = time.perf_counter()
            with locked(folder), replacing(folder) as new:
                for name in ("jobs", "allocations", "timeline", "predictions"):
                    (new / f"{name}.parquet").write_bytes(bytes(20_000))
                for name in ("manifest", "summary"):
                    (new / f"{name}.json").write_bytes(bytes(20_000))
                checksums(new)
            spent.append(time.perf_counter() - began)
    spent.sort()
    cost = round(1e3 * spent[rounds // 2], 2)
    return {
        "trace": "a short run",
        "rule": "lock, checksums, fsync",
        "ratio": cost,
        "limit": 10.0,
    }


def memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    trace, truth, records = lane_schedule(jobs)
    least_costs(trace, truth, records.processors)
    base, clock = memory_mb(), time.perf_counter()
    total = clock
    rows = []

    def lap(name):
        nonlocal clock
        now = time.perf_counter()
        rows.append((name, now - clock, memory_mb() - base))
        clock = now

    run = outcome(trace, truth, records)
    lap("tables")
    summary = summarise(run)
    lap("summary and bounds")
    figure = schedule_figure(run.tables, records.processors, "lanes", records.allocations.nodes)
    lap("figure")
    with tempfile.TemporaryDirectory() as folder:
        write_run(Path(folder), {RUN: Artefacts(run.tables, summary, {})})
        figure.savefig(Path(folder) / "schedule.png", metadata={"Software": None})
        sizes = sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e6
        lap("files")
    print(f"{jobs} jobs, {len(summary)} figures, {sizes:.0f} MB of artefacts")
    show("Milliseconds that durability costs", [durability()])
    for name, seconds, extra in [*rows, ("all", clock - total, memory_mb() - base)]:
        print(f"{name:20s} {seconds:7.2f} s {extra:8.0f} MB extra")


if __name__ == "__main__":
    main()
