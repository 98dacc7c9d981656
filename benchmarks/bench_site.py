"""Time a backtest, reading the log, tables and page included, against the floor.

Run as ``python -m benchmarks.bench_site [--rounds 2] [--log FILE [KEY=VALUE ...]]``: 60,000 jobs
of Lublin's model that EASY scheduled, or a real log. The ratio is that of one candidate.
"""

import argparse
import contextlib
import io
import tempfile
from pathlib import Path

import pandas as pd

from benchmarks.floor import best_of, replay_bare, show
from sim.backtest import USUAL, main
from sim.simulation.scene import play, set_scene
from sim.site.site_logs import composed

JOBS, PROCESSORS, LIMIT = 60_000, 256, 60.0


def made_log(folder: Path, jobs: int) -> Path:
    """Write the schedule of a model's jobs by EASY as a site's table."""
    config = composed(
        [
            "policy=easy",
            "workload.load=0.7",
            f"workload.jobs={jobs}",
            f"cluster.processors={PROCESSORS}",
        ]
    )
    table = play(config, config, set_scene(config, 0)).outcome.tables.jobs
    names = {"submit_time": "submit", "start_time": "start", "end_time": "end",
             "requested_processors": "cpus", "requested_time": "walltime"}  # fmt: skip
    path = folder / f"jobs_{jobs}.csv"
    table[list(names)].rename(columns=names).to_csv(path, index=False)
    return path


def backtest_quietly(log: Path, folder: Path, *more: str) -> None:
    """Run the command on a log."""
    with contextlib.redirect_stdout(io.StringIO()):
        status = main([str(log), *more, f"backtest.folder={folder}"])
    if status != 0:
        raise RuntimeError(f"the backtest of {log} ended with {status}")


def row(log: Path, folder: Path, rounds: int, more: list[str]) -> dict:
    """Return the row of one log."""
    backtest_quietly(log, folder, *more)
    played = pd.read_parquet(folder / "backtest_jobs.parquet")
    one = played[played["candidate"] == played["candidate"].iloc[0]].sort_values("submit_time")
    submit = one["submit_time"].tolist()
    number, jobs = played["candidate"].nunique(), len(submit)
    floor, own = best_of(
        rounds,
        lambda: replay_bare(submit, [3600.0] * jobs),
        lambda: backtest_quietly(log, folder, *more),
    )
    return {
        "trace": log.name,
        "jobs": jobs,
        "candidates": number,
        "floor s": f"{floor:.3f}",
        "s": f"{own:.2f}",
        "ratio": round(own / number / floor, 1),
        "limit": LIMIT,
    }


def measure() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--log", nargs="+", default=None)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log, *more = asked.log or [made_log(folder, JOBS), f"cluster.processors={PROCESSORS}"]
        found = row(Path(log), folder / "backtest", asked.rounds, list(more))
    show(f"backtest under {', '.join(USUAL)}; floors a candidate", [found])


if __name__ == "__main__":
    measure()
