"""Time long runs as whole processes, against bare SimPy, and take their largest memory.

Usage: python -m benchmarks.bench_long [--jobs 1000000 10000000]

Lublin jobs at load 0.8 on 256 processors under EASY by requested times, all artefacts
written; the first number of jobs with the picture, the others without. The floor is taken
with a million jobs in the same minutes.
"""

import argparse
import os
import subprocess
import sys
import tempfile

from benchmarks.floor import best_of, replay_bare, show
from benchmarks.processes import command_environment
from workloads.models.lublin import Lublin
from workloads.streams import Streams

RUN = (
    *("policy=easy", "predictor=user_estimate", "moldability=none", "cluster.processors=256"),
    *("baseline=null", "hydra.run.dir=run"),
)
FLOOR_JOBS = 1_000_000
LIMITS = {1_000_000: (7.0, 1.0), 10_000_000: (8.0, 4.0)}
"""Floors and 10^9 bytes that so many jobs may take."""


def resources(jobs: int, picture: str) -> tuple[float, float]:
    """Return the processor seconds of a run and its largest memory, 10^9 bytes."""
    command = [sys.executable, "-m", "sim", *RUN, f"workload.jobs={jobs}", f"picture={picture}"]
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.Popen(
            command,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=command_environment(),
        )
        _, status, used = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
    if run.returncode:
        raise RuntimeError(f"{' '.join(command)}: ended with {run.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, nargs="+", default=list(LIMITS))
    asked = parser.parse_args().jobs
    jobs = Lublin(jobs=FLOOR_JOBS).trace(Streams(1), 256).jobs
    times = jobs["submit_time"].tolist(), jobs["reference_runtime"].tolist()
    floor = best_of(1, lambda: replay_bare(*times))[0] / FLOOR_JOBS
    rows = []
    for place, number in enumerate(asked):
        seconds, memory = resources(number, "none" if place else "first")
        most_floors, most_memory = LIMITS.get(number, ("", ""))
        trace = f"{number:,} jobs, {'no picture' if place else 'picture'}"
        for rule, ratio, limit in (
            (
                f"{seconds:.1f} s, in floors of {1e6 * floor:.2f} us",
                seconds / number / floor,
                most_floors,
            ),
            ("memory, 10^9 bytes", memory, most_memory),
        ):
            rows.append({"trace": trace, "rule": rule, "ratio": round(ratio, 2), "limit": limit})
    show("Long runs, whole processes", rows)


if __name__ == "__main__":
    main()
