"""Time how the cost of a job grows with the number of jobs and with the machine.

Usage: python -m benchmarks.bench_growth [PRESET ...] [--rounds 3] [--json FILE]

Lublin jobs at load 0.7 under an oracle. A cost is processor time from jobs to finished records
over their number, the best of so many rounds, in the mean over seeds where jobs are few. The
presets of `BOUND` go from 1,000 to 100,000 jobs on 256 processors, and from 256 to 100,000
processors with 5,000 jobs; all others from 1,000 to 10,000 jobs, and from 256 to 4,096
processors with 1,000 jobs. A row has the costs, their ratio and the exponent: the slope between
both ends in logarithms.
"""

import argparse
import json
import logging
import math
import time
from pathlib import Path
from typing import Any

from benchmarks.floor import show
from scripts.composing import composed
from sim.config import CONFIG_FOLDER
from sim.engine.run import simulate
from sim.simulation.scene import prepare, set_scene

BOUND = ("fcfs", "easy", "conservative", "sa", "fair_share", "iterative", "equi")
"""Presets whose cost a job may grow by half at most."""
LIMIT = 1.5
MACHINE = 256
ENDS = {
    True: {
        "jobs": ((1_000, MACHINE), (100_000, MACHINE)),
        "processors": ((5_000, MACHINE), (5_000, 100_000)),
    },
    False: {
        "jobs": ((1_000, MACHINE), (10_000, MACHINE)),
        "processors": ((1_000, MACHINE), (1_000, 4_096)),
    },
}
"""By whether a preset is bound, and by what grows: (jobs, processors) of both ends."""
LEAST_JOBS = 5_000
"""Where a run has fewer jobs, so many seeds are taken that there are as many in all."""


def one_cost(preset: str, jobs: int, processors: int, seed: int, rounds: int) -> float:
    """Return seconds a job of one run, the best of some."""
    config = composed(
        f"policy={preset}", "predictor=oracle", "baseline=null", f"workload.jobs={jobs}",
        "workload.load=0.7", f"cluster.processors={processors}", f"seed={seed}",
    )  # fmt: skip
    scene = set_scene(config, 0)
    best = math.inf
    for _ in range(rounds):
        setup = prepare(config, config, scene)
        began = time.process_time()
        simulate(setup)
        best = min(best, time.process_time() - began)
    return best / jobs


def cost(preset: str, jobs: int, processors: int, rounds: int) -> float:
    """Return seconds a job in the mean over seeds."""
    seeds = max(1, LEAST_JOBS // jobs)
    rounds = rounds if jobs <= LEAST_JOBS else 1
    costs = [one_cost(preset, jobs, processors, seed, rounds) for seed in range(1, seeds + 1)]
    return sum(costs) / seeds


def measure(preset: str, grown: str, rounds: int) -> dict[str, Any]:
    """Return a row: what grows, the costs at both ends, their ratio and the exponent."""
    bound = preset in BOUND
    few, many = ENDS[bound][grown]
    before, after = (cost(preset, *end, rounds) for end in (few, many))
    place = 0 if grown == "jobs" else 1
    return {
        "rule": preset,
        "grown": grown,
        "from": few[place],
        "to": many[place],
        "us_per_job": round(before * 1e6, 1),
        "us_per_job_then": round(after * 1e6, 1),
        "ratio": round(after / before, 2),
        "exponent": round(math.log(after / before) / math.log(many[place] / few[place]), 2),
        "limit": LIMIT if bound else "",
    }


def presets() -> list[str]:
    """Return the policy presets that schedule, those of `BOUND` first."""
    others = sorted(path.stem for path in (CONFIG_FOLDER / "policy").glob("*.yaml"))
    return [*BOUND, *(name for name in others if name not in (*BOUND, "recorded"))]


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a table of Markdown, a line a preset."""
    lines = ["| preset | µs a job, few jobs | many | ratio | exponent "
             "| small machine | large | ratio | exponent |", "| --- |" + " ---: |" * 8]  # fmt: skip
    for jobs, processors in zip(rows[::2], rows[1::2], strict=True):
        cells = [jobs["rule"]]
        for row in (jobs, processors):
            cells += [row[key] for key in ("us_per_job", "us_per_job_then", "ratio", "exponent")]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("presets", nargs="*", default=presets())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    asked = parser.parse_args()
    logging.disable(logging.WARNING)
    rows = []
    for preset in asked.presets:
        one_cost(preset, 100, MACHINE, 1, 1)  # compiled code is warm from here on
        rows += [measure(preset, grown, asked.rounds) for grown in ("jobs", "processors")]
    show("Growth of the cost of a job", rows)
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
