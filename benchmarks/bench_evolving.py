"""Time a whole run whose jobs evolve against fixed runtimes, and failing nodes of two machines.

Usage: python -m benchmarks.bench_evolving [--jobs 10000] [--cycles 10000] [--rounds 1]

Of evolving jobs the whole process is timed, from the command to its last artefact: processor
seconds of ``python -m sim``. The limit is 10 times. Of failing nodes the simulation is, under
EASY with an oracle, where nodes of both machines together fail equally often.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from benchmarks.floor import best_of, show
from scripts.composing import composed
from sim.evolving.recovery import simulate_recovering
from sim.simulation.build import build, with_menu
from sim.simulation.scene import prepare, set_scene

RIGID = ("policy=easy", "predictor=user_estimate", "baseline=null", "moldability=none")
CASES = {
    "fixed runtimes": (),
    "evolving": ("evolving=adaptive",),
    "evolving, nodes fail": ("evolving=adaptive", "cluster=failing"),
    "evolving, limits": ("evolving=adaptive", "overrun=kill"),
    "evolving, renewed beliefs": ("evolving=adaptive", "predictor=dynamic"),
}


def processor_seconds(*overrides: str) -> tuple[float, float]:
    """Return processor and wall seconds of one run of the command."""
    before, began = os.times(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "sim", *overrides, f"hydra.run.dir={folder}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after, wall = os.times(), time.perf_counter() - began
    user = after.children_user - before.children_user
    return user + after.children_system - before.children_system, wall


FAILING_JOBS = 1_000
FEW, MANY = 256, 16_384
"""Processors of the two machines."""
BETWEEN = 2_592_000.0
"""Mean seconds between two failures of a node, where nodes are few."""


def failing(processors: int) -> Callable[[], object]:
    """Return the simulation of jobs on a machine whose nodes fail as often, all together."""
    config = composed(
        "policy=easy", "predictor=oracle", "baseline=null", f"workload.jobs={FAILING_JOBS}",
        "workload.load=0.7", "cluster=failing", f"cluster.processors={processors}",
        f"cluster.mtbf={BETWEEN * processors / FEW}",
    )  # fmt: skip
    scene = set_scene(config, 0)
    policy = build(with_menu(config["policy"], config["menu"]), "policy")
    setup = prepare(config, config, scene, policy)
    return lambda: simulate_recovering(setup)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--cycles", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    rows: list[dict[str, object]] = []
    fixed = None
    for case, overrides in CASES.items():
        more = (f"evolving.cycles={arguments.cycles}",) if overrides else ()
        asked = (*RIGID, f"workload.jobs={arguments.jobs}", *overrides, *more)
        best = min(processor_seconds(*asked) for _ in range(arguments.rounds))
        fixed = best[0] if fixed is None else fixed
        rows.append({
            "rule": case, "processor_s": round(best[0], 1), "wall_s": round(best[1], 1),
            "ratio": round(best[0] / fixed, 1), "limit": 10 if overrides else "",
        })  # fmt: skip
    show(f"{arguments.jobs} jobs of {arguments.cycles} cycles, whole process", rows)
    took = best_of(max(arguments.rounds, 2), failing(FEW), failing(MANY))
    rows = [
        {"rule": f"{size:,} processors", "us_per_job": round(seconds / FAILING_JOBS * 1e6, 1),
         "ratio": round(seconds / took[0], 2)}
        for size, seconds in zip((FEW, MANY), took, strict=True)
    ]  # fmt: skip
    show(f"Failing nodes, {FAILING_JOBS:,} jobs", rows)


if __name__ == "__main__":
    main()
