"""Carry out a multirun of toy runs and say what it took: time, memory, overhead.

Usage: python scripts/measure_sweep.py serial|joblib|slurm FOLDER [--runs 12] [--jobs 60]
       [--workers 2] [--runs-per-job 1] [--like FOLDER]

Overhead is what is not spent within runs: the command's time, times the workers, less the
time from when Hydra has composed a run to when the run is marked as finished. `--like`
compares all artefacts, byte for byte, with those of another multirun of the same runs.
Without submitit's launcher or Slurm it says so and ends with status 0.
"""

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

KINDS = (".parquet", ".png", "summary.json")


def command(asked: argparse.Namespace) -> list[str]:
    """Return the multirun's command."""
    overrides = [
        f"workload.jobs={asked.jobs}",
        "policy=easy,sa",
        f"seed=range(1,{asked.runs // 2 + 1})",
        f"hydra.sweep.dir={asked.folder}",
    ]
    if asked.launcher == "joblib":
        overrides += ["hydra/launcher=joblib", f"hydra.launcher.n_jobs={asked.workers}"]
    if asked.launcher == "slurm":
        overrides += [
            "hydra/launcher=submitit_slurm",
            "hydra.launcher.timeout_min=120",
            "hydra.launcher.cpus_per_task=1",
            f"hydra.launcher.array_parallelism={asked.workers}",
            f"hydra.sweeper.runs_per_job={asked.runs_per_job}",
        ]
    return [sys.executable, "-m", "sim", "-m", *overrides]


def resident(process: int) -> float:
    """Return a process' resident memory in MB, 0 if it is gone."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]
    except (OSError, IndexError):
        return 0.0
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


def watched(words: list[str]) -> tuple[float, list[float]]:
    """Carry out a command; return its seconds and the memory of its process, sampled."""
    began, memory = time.monotonic(), []
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, env=environment) as running:
        while running.poll() is None:
            memory.append(resident(running.pid))
            time.sleep(0.5)
    if running.returncode:
        raise SystemExit(f"{' '.join(words)} ended with status {running.returncode}")
    return time.monotonic() - began, memory


def within_runs(folder: Path) -> list[float]:
    """Return the seconds of each finished run, from its composed configuration to its mark."""
    marks = folder.glob("*/.hydra/finished.json")
    return [m.stat().st_mtime - m.with_name("config.yaml").stat().st_mtime for m in marks]


def artefacts(folder: Path) -> dict[Path, bytes]:
    """Return the content of all artefacts that must be reproducible."""
    files = (path for path in folder.rglob("*") if path.name.endswith(KINDS))
    return {path.relative_to(folder): path.read_bytes() for path in files}


def compare(one: Path, other: Path) -> None:
    """Stop if two multiruns differ in a byte."""
    mine, theirs = artefacts(one), artefacts(other)
    differing = sorted(str(k) for k in mine | theirs if mine.get(k) != theirs.get(k))
    if differing or not mine:
        raise SystemExit(f"{len(differing)} of {len(mine)} artefacts differ: {differing[:9]}")
    print(f"{len(mine)} artefacts, byte for byte those in {other.name}")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("launcher", choices=("serial", "joblib", "slurm"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--jobs", type=int, default=60)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--runs-per-job", type=int, default=1)
    parser.add_argument("--like", type=Path)
    asked = parser.parse_args()
    if asked.launcher == "serial":
        asked.workers = 1
    if asked.launcher == "slurm" and (
        shutil.which("sbatch") is None
        or importlib.util.find_spec("hydra_plugins.hydra_submitit_launcher") is None
    ):
        print("skipped: Slurm or hydra-submitit-launcher is not installed")
        return
    seconds, memory = watched(command(asked))
    spent = within_runs(asked.folder)
    if len(spent) != asked.runs:
        raise SystemExit(f"{len(spent)} of {asked.runs} runs are finished")
    whole = seconds * asked.workers
    tenth = max(len(memory) // 10, 1)
    print(
        f"{asked.launcher}, {asked.runs} runs of {asked.jobs} jobs, {asked.workers} at once, "
        f"{asked.runs_per_job} a job: {seconds:.0f} s; {sum(spent) / asked.runs:.2f} s within a "
        f"run, {(whole - sum(spent)) / asked.runs:.2f} s ({1 - sum(spent) / whole:.0%}) beside it; "
        f"the command holds {max(memory[:tenth]):.0f} MB after a tenth of the time, "
        f"{max(memory):.0f} MB at most"
    )
    if asked.like:
        compare(asked.folder, asked.like)


if __name__ == "__main__":
    main()
