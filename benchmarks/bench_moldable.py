"""Time moldable rules on 10,000 Lublin jobs at load 0.8, and their operations on long queues.

Usage: python -m benchmarks.bench_moldable [--rounds 3] [--json FILE]

Ratios are against bare SimPy within one process, best of so many rounds.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.floor import best_of, replay_bare, show
from predictors.in_loop.oracle import Oracle
from predictors.in_loop.user_estimate import UserEstimate
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.policies.allocation.fair_share import FairShare
from sim.policies.allocation.iterative import Iterative, UtilizationBased
from sim.policies.allocation.local import Fair, LocalAllocation
from sim.policies.allocation.queue_time import QueueTimeAware
from sim.policies.allocation.rigid import Request
from sim.policies.allocation.turnaround import BestTurnaround
from sim.policies.backfill.conservative import Conservative
from sim.policies.backfill.easy import Easy
from sim.policies.backfill.none import FirstFit, NoBackfill
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed
from workloads.base import Trace
from workloads.models.lublin import Lublin
from workloads.shapes.analytic import Downey
from workloads.streams import Streams
from workloads.truth.build import build_truth

SEED, MACHINE = 1, 256
REPLAN = Conservative(replan=True)
PLAIN = {
    "greedy": (Conservative(), BestTurnaround()),
    "aggressive": (Easy(), BestTurnaround()),
    "fair_share": (REPLAN, FairShare()),
    "queue_time": (NoBackfill(), QueueTimeAware(counts="all")),
    "queue_time median": (NoBackfill(), QueueTimeAware(counts="all", queue_time="median")),
    "lpa": (FirstFit(), LocalAllocation()),
    "fair": (FirstFit(), Fair()),
}
PLANNED = {
    "iterative, depth 32": (REPLAN, Iterative(depth=32)),
    "iterative, depth 40": (REPLAN, Iterative(depth=40)),
    "iterative, depth 100": (REPLAN, Iterative(depth=100)),
    "utilization, depth 32": (REPLAN, UtilizationBased(depth=32)),
    "utilization, depth 100": (REPLAN, UtilizationBased(depth=100)),
}
LIMITS = {"fair_share": 25.0, "iterative, depth 32": 20.0}
"""Times the floor; 40 for the other rules that look at jobs one by one."""


class Half:
    """Half of the request: the allocation of README, in Python."""

    def choose(self, job, view, outlook):
        """Return the count for a job that has just arrived."""
        counts = view.counts(job)
        half = view.requested_processors[job] // 2
        return int(counts[counts <= max(half, counts[0])][-1])


class Bench:
    """A trace with its truth, and how to replay it with a predictor, usually the truth."""

    def __init__(self, trace: Trace, predictor: Any = Oracle) -> None:
        self.trace = trace
        self.predictor = predictor
        self.truth = build_truth(trace, Downey(), Streams(SEED), MACHINE)

    def replay(self, rule):
        """Simulate under a rule and return the records."""
        predictor = self.predictor()
        if isinstance(predictor, Oracle):
            predictor.bind_truth(self.truth.runtimes, 0)
        policy = Policy(FirstComeFirstServed(), *rule)
        return simulate(Setup(self.trace, self.truth, policy, predictor, Dedicated(MACHINE)))


def measure(bench: Bench, name: str, rule, rounds: int, limit: float | str) -> dict:
    """Return a row: the ratio to the floor and the time a look."""
    submit = bench.trace.jobs["submit_time"].tolist()
    runtime = bench.trace.jobs["reference_runtime"].tolist()
    looks = bench.replay(rule).counters["looks"]
    floor, took = best_of(rounds, lambda: replay_bare(submit, runtime), lambda: bench.replay(rule))
    return {
        "rule": name,
        "us_per_job": round(took / len(submit) * 1e6, 1),
        "ratio": round(took / floor, 1),
        "us_per_look": round(took / looks * 1e6, 1),
        "limit": limit,
    }


def measure_long_queue(name: str, rule, jobs: int) -> dict:
    """Return a row: time a look while so many jobs wait (they arrive at once)."""
    trace = Lublin(types="all", jobs=jobs, load=None).trace(Streams(SEED), MACHINE)
    bench = Bench(replace(trace, jobs=trace.jobs.assign(submit_time=0.0)))
    began = time.process_time()
    looks = bench.replay(rule).counters["looks"]
    took = time.process_time() - began
    return {
        "rule": f"{name}, {jobs} at once",
        "us_per_job": round(took / jobs * 1e6, 1),
        "ratio": "",
        "us_per_look": round(took / looks * 1e6, 1),
        "limit": "",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    arguments = parser.parse_args()
    bench = Bench(Lublin(types="all", jobs=10_000, load=0.8).trace(Streams(SEED), MACHINE))
    rows = [
        measure(bench, n, rule, arguments.rounds, LIMITS.get(n, 40.0)) for n, rule in PLAIN.items()
    ]
    rows += [
        measure(bench, n, rule, arguments.rounds, LIMITS.get(n, "1000 us"))
        for n, rule in PLANNED.items()
    ]
    by_request = Bench(bench.trace, UserEstimate)
    for name, allocation, limit in (("EASY", Request(), 0.7), ("half, in Python", Half(), 5.7)):
        rows.append(measure(by_request, name, (Easy(), allocation), arguments.rounds, limit))
    for name, jobs in (("aggressive", 10_000), ("greedy", 10_000), ("fair_share", 2_000)):
        rows.append(measure_long_queue(name, PLAIN[name], jobs))
    for name in ("iterative, depth 32", "iterative, depth 40", "utilization, depth 32"):
        rows.append(measure_long_queue(name, PLANNED[name], 10_000))
    show(f"Moldable rules; numpy {np.__version__}", rows)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
