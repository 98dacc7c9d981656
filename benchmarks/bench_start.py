"""Time how long the program takes to begin, against the imports that it cannot do without.

Usage: python -m benchmarks.bench_start [--rounds 9]

Processor seconds of whole processes, the best of some rounds, with compiled code there.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

import sim
from benchmarks.floor import best_of, replay_bare, show
from benchmarks.processes import command_environment
from sim.engine.run import simulate
from sim.engine.setup import Setup
from sim.simulation import scene
from sim.state.records import Records
from workloads.models.lublin import Lublin
from workloads.streams import Streams

NUMPY, FIVE = "import numpy", "import numpy, pandas, pyarrow, numba, hydra"
MOLDSIM = "import sys; from sim.command.main import main; sys.exit(main())"
RUN = ("run", "workload.jobs=10", "picture=none", "baseline=null", "hydra.run.dir=run")
FCFS = (
    *("run", "policy=fcfs", "predictor=user_estimate", "moldability=none", "workload.types=all"),
    *("workload.jobs=10000", "workload.load=1.06", "cluster.processors=256", "picture=none"),
    *("baseline=null", "hydra.run.dir=run"),
)
"""The trace lublin_256 of `benchmarks.bench_engine`, as a command."""
CASES = {
    "import sim": ("import sim", (), NUMPY, 1.3),
    "moldsim --help": (MOLDSIM, ("--help",), NUMPY, 3.0),
    "moldsim run, 10 jobs": (MOLDSIM, RUN, FIVE, 1.5),
    "FCFS on lublin_256": (MOLDSIM, FCFS, FIVE, 1.5),
}
"""What is timed: code, arguments, what it is compared with, and the limit of the ratio.

The last may take six floors more.
"""


def processor_seconds(code: str, *arguments: str) -> float:
    """Return the processor seconds of a process in an empty folder."""
    before = os.times()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-c", code, *arguments],
            check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=command_environment(),
        )  # fmt: skip
    after = os.times()
    user = after.children_user - before.children_user
    return user + after.children_system - before.children_system


def six_floors(rounds: int) -> float:
    """Return the seconds of six floors of lublin_256."""
    jobs = Lublin(types="all", jobs=10_000, load=1.06).trace(Streams(1), 256).jobs
    times = jobs["submit_time"].tolist(), jobs["reference_runtime"].tolist()
    return 6 * best_of(rounds, lambda: replay_bare(*times))[0]


def beside_simulation(rounds: int) -> float:
    """Return the least milliseconds of a 20-job run, composing included, beside its simulation."""
    simulated: list[float] = []

    def timed(setup: Setup) -> Records:
        began = time.process_time()
        records = simulate(setup)
        simulated.append(time.process_time() - began)
        return records

    least = float("inf")
    asked = ("workload.jobs=20", "policy=easy", "predictor=user_estimate", "picture=none")
    with tempfile.TemporaryDirectory() as scratch, patch.object(scene, "simulate", timed):
        for seed in range(rounds + 1):  # one to warm
            began = time.process_time()
            sim.run(*asked, baseline=None, seed=seed, folder=Path(scratch, str(seed)))
            least = min(least, 1e3 * (time.process_time() - began - simulated.pop()))
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    rows = []
    for case, (code, arguments, against, limit) in CASES.items():
        own, other = [], []
        for _ in range(rounds):  # in turn, so that a busy machine is as busy for both
            own.append(processor_seconds(code, *arguments))
            other.append(processor_seconds(against))
        more = six_floors(rounds) if arguments == FCFS else 0.0
        times = (min(own) - more) / min(other)
        rows.append({
            "rule": case, "s": f"{min(own):.2f}", "against": against.removeprefix("import "),
            "against_s": f"{min(other):.2f}", "ratio": round(times, 2), "limit": limit,
        })  # fmt: skip
    show("To begin, processor seconds of whole processes", rows)
    beside = {
        "rule": "20-job run beside its simulation, ms",
        "ratio": round(beside_simulation(rounds)),
    }
    show("A run in a process that has run before", [beside | {"limit": 50.0}])


if __name__ == "__main__":
    main()
