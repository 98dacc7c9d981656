"""Time a whole run whose jobs evolve against the same jobs with fixed runtimes.

Usage: python -m benchmarks.bench_evolving [--jobs 10000] [--cycles 10000] [--rounds 1]

The whole process is timed, from the command to its last artefact: processor
seconds of ``python -m sim``. The limit is 10 times.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

from rich.console import Console
from rich.table import Table

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--cycles", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    table = Table(title=f"{arguments.jobs} jobs of {arguments.cycles} cycles, whole process")
    for heading in ("case", "processor s", "wall s", "times", "limit"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    fixed = None
    for case, overrides in CASES.items():
        more = (f"evolving.cycles={arguments.cycles}",) if overrides else ()
        asked = (*RIGID, f"workload.jobs={arguments.jobs}", *overrides, *more)
        best = min(processor_seconds(*asked) for _ in range(arguments.rounds))
        fixed = best[0] if fixed is None else fixed
        ratio = f"{best[0] / fixed:.1f}"
        table.add_row(case, f"{best[0]:.1f}", f"{best[1]:.1f}", ratio, "10" if overrides else "")
    Console().print(table)


if __name__ == "__main__":
    main()
