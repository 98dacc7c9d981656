"""A simulation that learns with ADEPT online, against the same with the oracle.

    python -m benchmarks.bench_adept_in_loop [--jobs N] [--rounds N] [--output FILE.json]

Both run in one process, in turn; times are processor time, the best of several
rounds, in seconds, without generating the workload.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.floor import judge
from predictors import Adept
from predictors.base import RuntimePredictor
from predictors.in_loop.learned import CurvePerApplication
from predictors.in_loop.oracle import Oracle
from sim.engine.engine import Setup, simulate
from sim.machine.base import Dedicated
from sim.policies.allocation.sa import SmallestTurnaround
from sim.policies.backfill.conservative import Conservative
from sim.policies.base import Policy
from sim.policies.order import FirstComeFirstServed
from sim.simulation.calibration import observations, plan_calibration
from workloads.models.lublin import Lublin
from workloads.shapes.analytic import Downey
from workloads.streams import Streams
from workloads.truth.build import build_truth

LIMIT = 3.0
"""How many times the oracle's time ADEPT may take."""
PROCESSORS = 256


def measure(jobs: int, rounds: int, seed: int = 1) -> dict[str, float]:
    """Return seconds under both predictors, their ratio and mean response times."""
    streams = Streams(seed)
    trace = Lublin(types="all", jobs=jobs, load=0.8).trace(streams, PROCESSORS)
    truth = build_truth(trace, Downey(), streams, PROCESSORS, applications=200)
    known = observations(plan_calibration(truth, 3, PROCESSORS, streams), 0.0)
    policy = Policy(FirstComeFirstServed(), Conservative(), SmallestTurnaround())
    oracle = Oracle()
    oracle.bind_truth(truth.runtimes, 0)
    adept = CurvePerApplication(Adept(q=float("inf")), "adept")
    predictors: dict[str, RuntimePredictor] = {"oracle": oracle, "adept": adept}
    found: dict[str, float] = {}
    for _ in range(rounds):
        for name, predictor in predictors.items():
            begin = time.process_time()
            records = simulate(
                Setup(
                    trace,
                    truth,
                    policy,
                    predictor,
                    Dedicated(PROCESSORS),
                    known=known if name == "adept" else (),
                )
            )
            seconds = time.process_time() - begin
            found[name] = min(found.get(name, np.inf), seconds)
            found[f"{name}_mean_response"] = float(np.mean(records.end_time - records.submit_time))
    return found | {"ratio": found["adept"] / found["oracle"], "limit": LIMIT, "jobs": jobs}


def main() -> None:
    """Measure, print and, where asked to, write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--output", type=Path)
    chosen = parser.parse_args()
    found = measure(chosen.jobs, chosen.rounds)
    judge([{"rule": "SA with ADEPT", **found}])
    text = json.dumps(found, indent=2)
    Console().print(text)
    if chosen.output:
        chosen.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
