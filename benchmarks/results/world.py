"""The default run at several lengths and medians of efficiency, and what its estimates cost."""

from pathlib import Path
from typing import Any

import sim
from benchmarks.results.regions import change, data, figures, lines, one, table

LENGTHS, SEEDS = (1000, 5000, 20_000, 50_000), 10
MEDIANS = (0.5, 0.6, 0.7, 0.8)
MEDIANS_AT = 5000
RIGID = ("policy=easy", "predictor=user_estimate")
RUNS = {
    "default": (),
    "oracle": ("predictor=oracle",),
    "easy": RIGID,
    "exact": (*RIGID, "workload.estimates=exact"),
}
"""What is asked of each, by name."""
FIGURES = ("mean_response_time", "system_efficiency", "steady")


def world(_: Path, toy: bool) -> dict[str, Any]:
    """Return a row for each run at each length, and at each median at one length."""
    lengths, seeds = ((60,), 2) if toy else (LENGTHS, SEEDS)
    settings = [(jobs, 0.7) for jobs in lengths]
    settings += [(MEDIANS_AT, median) for median in MEDIANS if not toy and median != 0.7]
    rows = []
    for jobs, median in settings:
        for name, asked in RUNS.items():
            keys = (f"workload.jobs={jobs}", f"moldability.efficiency={median}", "baseline=null")
            found = [sim.run(*keys, *asked, seed=seed).summary for seed in range(1, seeds + 1)]
            row: dict[str, Any] = {"run": name, "jobs": str(jobs), "median": str(median)}
            rows.append(row | {key: [one.get(key) for one in found] for key in FIGURES})
    return {"rows": rows}


def _cells(jobs: int, median: float) -> list[str]:
    """Return what a table says of a setting."""
    found = {
        name: one(data("world")["rows"], run=name, jobs=str(jobs), median=str(median))
        for name in RUNS
    }
    easy = found["easy"]
    changes = [change(found[name], easy) for name in ("default", "oracle")]
    efficiency = 100 * figures(easy, "system_efficiency").mean()
    steady = sum(map(bool, easy["steady"]))
    return [*changes, change(easy, found["exact"]), f"{efficiency:.0f} %", str(steady)]


HEAD = ("by ADEPT", "by an oracle", "EASY's estimates against exact", "system efficiency of EASY",
        "steady of ten")  # fmt: skip


@table("world/lengths")
def world_lengths() -> list[str]:
    rows = [[f"{jobs:,}", *_cells(jobs, 0.7)] for jobs in LENGTHS]
    return lines(["jobs", *HEAD], rows)


@table("world/medians")
def world_medians() -> list[str]:
    rows = [[f"{median:g}", *_cells(MEDIANS_AT, median)] for median in MEDIANS]
    return lines(["median efficiency", *HEAD], rows)
