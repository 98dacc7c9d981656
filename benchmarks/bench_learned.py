"""Simulations under SA whose predictor learns online, against one that only errs by 20 %.

    python -m benchmarks.bench_learned [--jobs N] [--rounds N] [--output FILE.json]

All run in one process, in turn; times are processor time, the best of several rounds, without
generating the workload. The predictor's own share is that of the calls to it, timed in one
more run: to be told of runs, to fit, to answer and to grade.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

from benchmarks.floor import best_of, show
from scripts.composing import composed
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.simulation.scene import prepare, set_scene

LIMITS = {"adept": 1.3, "consensus": 3.0, "regression": 1.5, "focused": 1.5}
"""How many times the reference a predictor may take."""
REFERENCE = "noisy_oracle"
CALLS = ("observe", "curve", "explain", "offered")


def own_seconds(setup: Setup) -> float:
    """Run once and return the seconds that the calls to the predictor took."""
    spent = [0.0]

    def clocked(inner):
        def call(*arguments):
            began = time.process_time()
            try:
                return inner(*arguments)
            finally:
                spent[0] += time.process_time() - began

        return call

    for name in CALLS:
        if hasattr(setup.predictor, name):
            setattr(setup.predictor, name, clocked(getattr(setup.predictor, name)))
    simulate(setup)
    return spent[0]


def measure(jobs: int, rounds: int) -> list[dict[str, Any]]:
    """Return a row a predictor: µs a job, the predictor's own, and times the reference."""
    shared = ("policy=sa", f"workload.jobs={jobs}", "baseline=null")
    configs = {name: composed(*shared, f"predictor={name}") for name in (REFERENCE, *LIMITS)}
    scene = set_scene(configs[REFERENCE], 0)
    own = {name: own_seconds(prepare(config, config, scene)) for name, config in configs.items()}
    setups = [prepare(config, config, scene) for config in configs.values()]
    actions = [lambda setup=setup: simulate(setup) for setup in setups]
    took = dict(zip(configs, best_of(rounds, *actions), strict=True))
    own = {
        name: min(own[name], own_seconds(prepare(configs[name], configs[name], scene)))
        for name in configs
    }
    return [
        {
            "rule": f"SA with {name}",
            "us_per_job": round(took[name] / jobs * 1e6, 1),
            "own_us_per_job": round(own[name] / jobs * 1e6, 1),
            "ratio": round(took[name] / took[REFERENCE], 2),
            "limit": LIMITS.get(name, ""),
        }
        for name in configs
    ]


def main() -> None:
    """Measure, print and, where asked to, write the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path)
    chosen = parser.parse_args()
    rows = measure(chosen.jobs, chosen.rounds)
    show(f"Learned predictors, {chosen.jobs:,} jobs", rows)
    if chosen.output:
        chosen.output.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
