"""How fast workloads are read, written and generated, on one core.

Usage: ``python benchmarks/bench_workloads.py [FILE.json] [--jobs N] [--log FILE.swf.gz ...]``.
Prints a table and, where a file is named, writes the same as JSON.
"""

import argparse
import gc
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from workloads.logs.cleaning import screen
from workloads.logs.log import SwfWorkload
from workloads.logs.swf import log_of_trace, read_swf, write_swf
from workloads.models.downey import Downey
from workloads.models.lublin import Lublin
from workloads.streams import Streams


def best_of(repeats: int, work: Callable[[], object]) -> float:
    times = []
    for _ in range(repeats):
        gc.collect()
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def generators(jobs: int) -> dict[str, Callable[[], object]]:
    streams = Streams(seed=1)
    return {
        "lublin, exact estimates": lambda: Lublin(jobs, types="all", estimates="exact").trace(
            streams
        ),
        "lublin, both types": lambda: Lublin(jobs, types="both", estimates="exact").trace(streams),
        "lublin, tsafrir estimates": lambda: Lublin(jobs, types="all").trace(streams),
        "downey, tsafrir estimates": lambda: Downey(jobs).trace(streams),
    }


def files(path: Path, folder: Path) -> dict[str, Callable[[], object]]:
    log = read_swf(path)
    copy = folder / "copy.swf"
    return {
        "read": lambda: read_swf(path),
        "clean": lambda: screen(log).take(0, None),
        "read, clean, scale": lambda: SwfWorkload(path, load=0.8).trace(Streams(seed=1)),
        "write": lambda: write_swf(copy, log),
    }


def measure(jobs: int, logs: list[Path], repeats: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []

    def add(subject: str, count: int, tasks: dict[str, Callable[[], object]]) -> None:
        for task, work in tasks.items():
            seconds = best_of(repeats, work)
            rows.append({"subject": subject, "task": task, "jobs": count, "seconds": seconds})

    add("model", jobs, generators(jobs))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for suffix in (".swf", ".swf.gz"):
            path = folder / f"lublin{suffix}"
            write_swf(
                path,
                log_of_trace(Lublin(jobs, types="all", estimates="exact").trace(Streams(seed=1))),
            )
            add(path.name, jobs, files(path, folder))
        for path in logs:
            add(path.name, len(read_swf(path).jobs), files(path, folder))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", nargs="?", type=Path)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--log", type=Path, action="append", default=[])
    arguments = parser.parse_args()
    rows = measure(arguments.jobs, arguments.log, arguments.repeats)
    print(f"{'subject':32} {'task':28} {'jobs':>9} {'seconds':>8} {'us/job':>7}")
    for row in rows:
        seconds, jobs = float(str(row["seconds"])), int(str(row["jobs"]))
        print(
            f"{row['subject']:32} {row['task']:28} {jobs:9} {seconds:8.3f} "
            f"{seconds / jobs * 1e6:7.2f}"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(f"peak memory {peak:.2f} GiB", file=sys.stderr)
    if arguments.output:
        text = json.dumps({"rows": rows, "peak_gib": peak}, indent=2, sort_keys=True)
        arguments.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
