"""Time the simulation alone, from job table to finished records, against bare SimPy.

Usage: python -m benchmarks.bench_engine [--json FILE] [--rounds 5] [--data FOLDER]

Logs are read from the folder (else from MOLDSIM_DATA); without them a generated
trace of the same kind stands in. Ratios are taken within one process, the floor
and the engine in turn, best of so many rounds.
"""

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np

from benchmarks.floor import best_of, replay_bare, show
from predictors.base import RuntimePredictor
from predictors.in_loop.oracle import Oracle
from predictors.in_loop.user_estimate import UserEstimate
from sim.engine.loop import INSTANTS
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.policies.allocation.iterative import Iterative
from sim.policies.allocation.rigid import Request
from sim.policies.allocation.sa import SmallestTurnaround
from sim.policies.backfill.conservative import Conservative
from sim.policies.backfill.easy import Easy
from sim.policies.backfill.none import NoBackfill
from sim.policies.base import Allocation, Backfill, OpenAllocation, Policy
from sim.policies.order import FirstComeFirstServed, Order, ShortestFirst
from workloads.base import Trace
from workloads.logs.log import SwfWorkload
from workloads.models.lublin import Lublin
from workloads.shapes.analytic import Downey
from workloads.shapes.family import NoMoldability, ShapeFamily
from workloads.streams import Streams
from workloads.truth.build import build_truth

SEED = 1
EACH = ", each instant an event"
"""Of SimPy: Python has a chance after each pass."""
BACKFILLS: dict[str, Backfill] = {
    "fcfs": NoBackfill(),
    "easy": Easy(),
    "easy, 4 reservations": Easy(reservations=4),
    "conservative": Conservative(),
    "sa": Conservative(),
    "sjf": Easy(),
    "iterative": Conservative(replan=True),
    "replan": Conservative(replan=True),
}
MOLDED: dict[str, Allocation | OpenAllocation] = {
    "sa": SmallestTurnaround(),
    "iterative": Iterative(),
}
BACKLOGS = [
    ("fcfs", "loose", 20_000, 2.0),
    ("easy", "loose", 20_000, 2.0),
    ("sjf", "loose", 20_000, 2.0),
    ("iterative", "loose", 20_000, 4.0),
    ("conservative", "exact", 20_000, 2.0),
    ("replan", "exact", 20_000, 4.0),
    ("replan", "loose", 20_000, 4.0),
    ("conservative", "loose", 4_000, 2.0),
]
"""Rule, estimates, jobs, and times the cost of a job of 2,000 at most."""


def loose(trace: Trace) -> Trace:
    """Give jobs estimates of runtime x (1 + exponential of mean 2), 15 % exact, whole minutes."""
    rng = Streams(SEED)("benchmark.estimates")
    jobs = trace.jobs.copy()
    runtime = jobs["reference_runtime"].to_numpy()
    guess = runtime * (1.0 + rng.exponential(2.0, runtime.size))
    exact = rng.random(runtime.size) < 0.15
    jobs["requested_time"] = np.ceil(np.where(exact, runtime, guess) / 60.0) * 60.0
    return replace(trace, jobs=jobs)


def exact(trace: Trace) -> Trace:
    """Give jobs their runtimes as estimates."""
    return replace(trace, jobs=trace.jobs.assign(requested_time=trace.jobs["reference_runtime"]))


def burst(jobs: int) -> Trace:
    """Let so many jobs arrive at once."""
    trace = Lublin(types="all", jobs=jobs, load=None).trace(Streams(SEED), 256)
    return replace(trace, jobs=trace.jobs.assign(submit_time=0.0))


def log(folder: Path | None, name: str, processors: int, stand_in: float) -> Trace:
    """Read a log, or generate a Lublin trace at the load `stand_in` in its place."""
    if folder is not None and (folder / "traces" / f"{name}.swf.gz").is_file():
        path = folder / "traces" / f"{name}.swf.gz"
        return SwfWorkload(path).trace(Streams(SEED), processors)
    return Lublin(types="all", jobs=10_000, load=stand_in).trace(Streams(SEED), processors)


def run(trace: Trace, processors: int, rule: str) -> Callable[[], object]:
    """Return an action that simulates the trace under a rule."""
    family: ShapeFamily = Downey() if rule in MOLDED else NoMoldability()
    truth = build_truth(trace, family, Streams(SEED), processors)
    allocation: Allocation | OpenAllocation = MOLDED.get(rule, Request())
    order: Order = ShortestFirst() if rule == "sjf" else FirstComeFirstServed()
    policy = Policy(order, BACKFILLS[rule.removesuffix(EACH)], allocation)
    instants = 1 if rule.endswith(EACH) else INSTANTS

    def action() -> object:
        predictor: RuntimePredictor = UserEstimate()
        if rule in MOLDED:
            predictor = Oracle()
            predictor.bind_truth(truth.runtimes, 0)
        with patch("sim.engine.event_manager.INSTANTS", instants):
            return simulate(Setup(trace, truth, policy, predictor, Dedicated(processors)))

    return action


def measure(name: str, trace: Trace, processors: int, rule: str, limit: float, rounds: int) -> dict:
    """Return a row: microseconds a job, the floor's, and the ratio."""
    submit = trace.jobs["submit_time"].tolist()
    runtime = trace.jobs["reference_runtime"].tolist()
    action = run(trace, processors, rule)
    action()  # compiled code is warm from here on
    floor, engine = best_of(rounds, lambda: replay_bare(submit, runtime), action)
    return {
        "trace": name,
        "rule": rule,
        "jobs": len(submit),
        "floor_us_per_job": round(floor / len(submit) * 1e6, 3),
        "us_per_job": round(engine / len(submit) * 1e6, 2),
        "ratio": round(engine / floor, 2),
        "limit": limit,
    }


def measure_backlog(rule: str, estimates: str, jobs: int, limit: float, rounds: int) -> dict:
    """Return a row: the cost per job of so many at once against that of 2,000."""
    traces = [burst(number) for number in (2_000, jobs)]
    small, large = (
        run(exact(trace) if estimates == "exact" else trace, 256, rule) for trace in traces
    )
    small()
    few, many = best_of(rounds, small, large)
    return {
        "trace": f"{jobs:,} at once against 2,000, {estimates}",
        "rule": rule,
        "jobs": jobs,
        "floor_us_per_job": round(few / 2_000 * 1e6, 3),
        "us_per_job": round(many / jobs * 1e6, 2),
        "ratio": round(many / few / (jobs / 2_000), 2),
        "limit": limit,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", type=Path, default=os.environ.get("MOLDSIM_DATA"))
    arguments = parser.parse_args()
    folder = None if arguments.data is None else Path(arguments.data)
    sdsc = log(folder, "SDSC-SP2-1998-4.2-cln", 128, 0.83)
    lublin = exact(log(folder, "lublin_256", 256, 1.06))
    cases = [
        ("SDSC-SP2", sdsc, 128, "fcfs", 0.7),
        ("SDSC-SP2", sdsc, 128, "easy", 0.7),
        ("SDSC-SP2", sdsc, 128, "easy, 4 reservations", 4.0),
        ("SDSC-SP2", sdsc, 128, "conservative", 2.5),
        ("SDSC-SP2", sdsc, 128, "sa", 6.0),
        ("lublin_256, exact", lublin, 256, "fcfs", 0.7),
        ("lublin_256, exact", lublin, 256, "easy", 0.7),
        ("lublin_256, exact", lublin, 256, "conservative", 2.5),
        ("lublin_256, exact", lublin, 256, f"fcfs{EACH}", 2.5),
        ("lublin_256, exact", lublin, 256, f"easy{EACH}", 2.5),
        ("lublin_256, loose", loose(lublin), 256, "easy", 0.7),
        ("lublin_256, loose", loose(lublin), 256, "easy, 4 reservations", 4.0),
        ("lublin_256, loose", loose(lublin), 256, "conservative", 6.5),
    ]
    rows = [measure(*case, arguments.rounds) for case in cases]
    rows += [measure_backlog(*case, arguments.rounds) for case in BACKLOGS]
    show("Simulation alone against bare SimPy", rows)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
