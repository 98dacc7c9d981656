"""Long runs with all checks on, and their memory as jobs end: python -m tests.soak.long_runs.

A run's name and its number of jobs may be given; what was measured is printed, and added to
the file that --report names.
"""

import argparse
import gc
import json
import os
from pathlib import Path
from time import monotonic, process_time

from sim.simulation.scene import play, set_scene
from sim.warm import configuration
from tests.soak.__main__ import add, version

RUNS = {
    "failing": (300_000, ("cluster=failing", "workload.load=0.6")),
    "shared": (50_000, ("cluster=shared", "workload.load=0.5")),
}
"""Of each run how many jobs, and its machine; all choose by SA and believe in ADEPT."""
PARTS = ("policy=sa", "predictor=adept", "baseline=null", "sim.check=true", "sim.progress=false")
PAGE = os.sysconf("SC_PAGE_SIZE")


def resident() -> float:
    """Return the memory that this process holds, in MB."""
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * PAGE / 1e6


class Samples:
    """Memory each time that another tenth of the jobs has ended; stands where progress is shown."""

    def __init__(self) -> None:
        self.mb: list[float] = []

    def update(self, now: float, done: int, total: int, queued: int) -> None:
        """Look at the memory at each tenth."""
        if 10 * done >= len(self.mb) * total:
            gc.collect()
            self.mb.append(round(resident(), 1))


def long_run(name: str, jobs: int) -> dict[str, object]:
    """Play a long run; any violation of an invariant is an error."""
    config = configuration([*PARTS, *RUNS[name][1], f"workload.jobs={jobs}"])
    began, cpu, samples = monotonic(), process_time(), Samples()
    played = play(config, config, set_scene(config, 0), samples)  # type: ignore[arg-type]
    samples.mb.append(round(resident(), 1))
    states = played.outcome.tables.jobs["status"].value_counts()
    return {
        **version(), "run": name, "jobs": jobs, "settings": [*PARTS, *RUNS[name][1]],
        "ends": {str(state): int(number) for state, number in states.items()},
        "memory_mb_by_tenth": samples.mb, "seconds": round(monotonic() - began, 1),
        "processor_seconds": round(process_time() - cpu, 1)}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.long_runs", description=__doc__)
    parser.add_argument("runs", nargs="*", default=list(RUNS))
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--report", type=Path)
    asked = parser.parse_args()
    for name in asked.runs:
        piece = long_run(name, asked.jobs or RUNS[name][0])
        print(json.dumps(piece), flush=True)
        if asked.report:
            add(asked.report, "long runs", piece)


if __name__ == "__main__":
    main()
