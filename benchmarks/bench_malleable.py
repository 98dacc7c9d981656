"""Time reallocation of malleable jobs against bare SimPy.

Usage: python -m benchmarks.bench_malleable [RULE ...] [--json FILE] [--rounds 5] [--jobs 10000]

10,000 Lublin jobs at load 0.8 on 256 processors, all of them malleable, under an
oracle. Bare SimPy lets them arrive and end, but for the changes. Ratios are taken within
one process, the floor and the engine in turn, best of so many rounds.
"""

import argparse
import json
from pathlib import Path

from benchmarks.floor import best_of, replay_bare, show
from predictors.in_loop.oracle import Oracle
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.machine.base import Dedicated
from sim.policies.allocation.rigid import Request
from sim.policies.backfill.easy import Easy
from sim.policies.base import Policy, Reallocation
from sim.policies.order import FirstComeFirstServed, ShortestFirst
from sim.policies.reallocation.equi import DynamicEquipartition, Equipartition, GreedyExpansion
from sim.policies.reallocation.hesrpt import HeSrpt
from sim.policies.reallocation.marginal import MarginalEfficiency
from sim.policies.reallocation.pdpa import PerformanceDriven
from sim.policies.reallocation.pools import Pools
from sim.state.records import Records
from workloads.models.lublin import Lublin
from workloads.shapes.analytic import Downey
from workloads.streams import Streams
from workloads.truth.build import build_truth

SEED = 1
PROCESSORS = 256
LIMIT = 40.0
LIMITS = {"equi": 5.0}
"""Where it is another."""
RULES: dict[str, Reallocation] = {
    "equi": Equipartition(),
    "deq": DynamicEquipartition(),
    "hesrpt": HeSrpt(),
    "pools, min": Pools(strategy="min"),
    "pools, pref": Pools(strategy="pref"),
    "pools, average": Pools(strategy="average"),
    "greedy expansion": GreedyExpansion(),
    "marginal efficiency": MarginalEfficiency(),
    "pdpa": PerformanceDriven(),
}


def measure(name: str, rule: Reallocation, jobs: int, rounds: int) -> dict:
    """Return a row: changes, microseconds a job, and the ratio."""
    trace = Lublin(types="all", jobs=jobs, load=0.8).trace(Streams(SEED), PROCESSORS)
    truth = build_truth(trace, Downey(), Streams(SEED), PROCESSORS)
    order = ShortestFirst() if isinstance(rule, HeSrpt) else FirstComeFirstServed()  # its preset's
    policy = Policy(order, Easy(), Request(), rule)

    def engine() -> Records:
        predictor = Oracle()
        predictor.bind_truth(truth.runtimes, 0)
        return simulate(Setup(trace, truth, policy, predictor, Dedicated(PROCESSORS)))

    changes = len(engine().allocations.job) - jobs
    times = trace.jobs["submit_time"].tolist(), trace.jobs["reference_runtime"].tolist()
    bare, ours = best_of(rounds, lambda: replay_bare(*times), engine)
    return {
        "rule": name,
        "jobs": jobs,
        "changes": changes,
        "floor_us_per_job": round(bare / jobs * 1e6, 3),
        "us_per_job": round(ours / jobs * 1e6, 2),
        "ratio": round(ours / bare, 1),
        "limit": LIMITS.get(name, LIMIT),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rules", nargs="*", default=list(RULES), help=", ".join(RULES))
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=10_000)
    arguments = parser.parse_args()
    rows = [
        measure(name, RULES[name], arguments.jobs, arguments.rounds) for name in arguments.rules
    ]
    show("Reallocation against bare SimPy", rows)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
