"""Time and memory of `sim.dataset` and `sim.compare` on many finished runs.

Usage: python -m benchmarks.bench_sweeps [--runs 10000]

The runs are four, of 20 jobs, copied with other seeds. Each command is a process of its own,
its processor seconds without those of the disk; limits hold for 10,000 runs where a floor
(`benchmarks.floor`) takes 1.8 microseconds a job, and seconds scale with it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path

import sim
from benchmarks.floor import best_of, replay_bare, show
from benchmarks.processes import command_environment

LIMITS = {"sim.dataset": (25.0, 300), "sim.compare": (20.0, 300)}
"""Seconds and MB of each command on 10,000 runs."""


def copy_run(run: Path, target: Path, seed: int) -> None:
    """Copy a finished run as that of another seed; tables are shared, checksums hold."""
    (target / ".hydra").mkdir(parents=True)
    for table in run.glob("*.parquet"):
        os.link(table, target / table.name)
    summary = (run / "summary.json").read_text().replace('"seed": 1,', f'"seed": {seed},')
    (target / "summary.json").write_text(summary)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["artefacts"]["summary.json"] = sha256(summary.encode()).hexdigest()
    (target / "manifest.json").write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")
    os.link(run / ".hydra" / "hydra.yaml", target / ".hydra" / "hydra.yaml")
    config = (run / ".hydra" / "config.yaml").read_text()
    (target / ".hydra" / "config.yaml").write_text(
        config.replace("\nseed: 1\n", f"\nseed: {seed}\n")
    )
    overrides = (run / ".hydra" / "overrides.yaml").read_text()
    (target / ".hydra" / "overrides.yaml").write_text(f"{overrides}- seed={seed}\n")


def make_runs(folder: Path, number: int) -> None:
    """Make so many finished runs below a folder: two policies, two predictors, many seeds."""
    first = folder / "first"
    sim.sweep(
        "policy=easy,sa", "predictor=user_estimate,noisy_oracle", "workload.jobs=20", folder=first
    )
    for run in first.iterdir():
        for seed in range(1, number // 4 + 1):
            copy_run(run, folder / "sweep" / f"{run.name},seed={seed}", seed)


def measured(command: str, folder: Path) -> tuple[float, float]:
    """Return processor seconds and peak MB of a command on the sweep of a folder."""
    more = [str(folder / "dataset")] if command == "sim.dataset" else []
    process = subprocess.Popen(
        [sys.executable, "-m", command, str(folder / "sweep"), *more],
        env=command_environment(), stdout=subprocess.DEVNULL,
    )  # fmt: skip
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def slowness(jobs: int = 20_000) -> float:
    """Return how many times as long as where limits hold a floor takes on this machine."""
    times = [float(job) for job in range(jobs)]
    return best_of(5, lambda: replay_bare(times, times))[0] / (1.8e-6 * jobs)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    runs = parser.parse_args().runs
    rows = []
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:
        with ProcessPoolExecutor(1, get_context("spawn")) as process:  # a child's memory is at
            process.submit(make_runs, Path(scratch), runs).result()  # least its parent's
        for command, (most, room) in LIMITS.items():
            before = slowness()
            seconds, memory = measured(command, Path(scratch))
            most *= min(before, slowness())
            for what, value, limit in (("s", seconds, most), ("MB", memory, room)):
                rows.append({"trace": f"{runs:,} runs", "rule": f"{command}, {what}",
                             "ratio": round(value, 1), "limit": round(limit, 1)})  # fmt: skip
    show("Finished runs", rows)


if __name__ == "__main__":
    main()
