"""Backtests and advice on real logs, what each distance is made of, and how advice fares.

    python -m scripts.study_site backtest FOLDER --out docs/results/backtest.json
    python -m scripts.study_site advice FOLDER --out docs/results/advice.json [--curves FOLDER]

FOLDER holds the logs. Scaling advice is judged by time on Lublin's jobs with measured curves.
"""

import argparse
import datetime
import json
import logging
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sim.advise import Options as AdviseOptions
from sim.advise import advise, read_jobs
from sim.backtest import backtest, options
from sim.results.run_folder import commit
from sim.results.sentences import distance
from sim.simulation.scene import play, set_scene
from sim.site.site_logs import composed, of_log
from sim.site.site_pages import change_lines

LOGS = {
    "SDSC-SP2": ("SDSC-SP2-1998-4.2-cln.swf.gz",),
    "Theta 2022": ("ALCF-Theta-2022.swf.gz",),
    "Cirrus 2024-09": ("Cirrus-CPU-2024-09.csv.gz", "cluster.processors=13248"),
    "Kabré 2024": ("kabre-sacct-2024.csv.gz", "workload.timezone=America/Costa_Rica"),
    "Slurm sample": ("slurm-micro-sacct-2021.txt.gz", "cluster.processors=120"),
}
JUDGED = ("SDSC-SP2-1998-4.2-cln.swf.gz", "LLNL-Atlas-2006-2.1-cln.swf.gz",
          "ALCF-Theta-2022.swf.gz", "NASA-iPSC-1993-3.1-cln.swf.gz")  # fmt: skip


def backtests(folder: Path) -> list[dict[str, Any]]:
    rows = []
    for name, (file, *more) in LOGS.items():
        own = options(["backtest.changes=true"])
        figures = backtest(of_log([str(folder / file), *more]), own).figures()
        del figures["classes"], figures["outages"], figures["checksum"]
        rows.append({"name": name, **figures})
        print(name, distance(figures), *change_lines(figures), sep="\n  ")
    return rows


def walltime_rows(folder: Path) -> list[dict[str, Any]]:
    rows = []
    for file in JUDGED:
        done = advise(read_jobs([str(folder / file)]), AdviseOptions(until=0.7, starts=False))
        rows.append({"log": file, **done.figures})
        print(file, done.figures)
    return rows


def scaling_rows(curves: Path) -> list[dict[str, Any]]:
    """Return errors of predicted times at the recommended counts, and regret, by seed."""
    rows = []
    for size, seed in ((size, seed) for size in ("known", "hidden") for seed in range(1, 6)):
        given = ["moldability=measured", f"moldability.path={curves}", "policy=easy",
                 "predictor=user_estimate", "workload.jobs=4000", "workload.applications=30",
                 f"seed={seed}", "cluster.processors=256"]  # fmt: skip
        given += ["workload.size=known"] if size == "known" else ["workload.sizes=3"]
        config = composed(given)
        scene = set_scene(config, 0)
        table = play(config, config, scene).outcome.tables.jobs
        rows.append({"sizes": size, "seed": seed, **judge(table, scene.truth, size == "known")})
        print(rows[-1])
    return rows


def judge(table: Any, truth: Any, known: bool) -> dict[str, Any]:
    """Advise from the first 70 % of the jobs; judge by the true times of the later ones."""
    job = np.arange(len(table))
    if not known:
        label = truth.application * 3 + truth.size_class
        table = table.assign(application=label, size=np.nan)
    cut = int(0.7 * len(table))
    with tempfile.TemporaryDirectory() as folder:
        table.iloc[:cut].to_parquet(Path(folder) / "jobs.parquet")
        jobs = replace(read_jobs([folder]), processors=256)
    done = advise(jobs, AdviseOptions(starts=False))
    error, fast, efficient, covered = [], [], [], []
    for one in done.rows:
        if one.fastest is None or one.efficient is None:
            continue
        label = int(one.application.removeprefix("application "))
        past = table.iloc[:cut][table["application"].iloc[:cut] == label]
        for later in job[cut:][(table["application"].iloc[cut:] == label).to_numpy()]:
            counts = np.arange(1, 257)
            time = truth.runtimes(int(later), counts)
            ratio = table["size"].iloc[later] / past["size"].median() if known else 1.0
            for choice in (one.fastest, one.efficient):
                true = time[choice.count - 1]
                error.append(abs(choice.predicted * ratio - true) / true)
                covered.append(choice.low * ratio <= true <= choice.high * ratio)
            fast.append(time[one.fastest.count - 1] / np.nanmin(time) - 1)
            least = min(one.counts)
            own = time[least - 1] * least / (time * counts)
            fit = counts[(own >= 0.5) & (counts >= least)]
            best = np.nanmin(time[fit - 1])
            efficient.append(time[one.efficient.count - 1] / best - 1)
    return {
        "with_scaling": done.figures["with_scaling"],
        "judged_jobs": len(fast),
        "median_error": float(np.median(error)) if error else None,
        "within_range": float(np.mean(covered)) if covered else None,
        "fastest_median_regret": float(np.median(fast)) if fast else None,
        "fastest_p90_regret": float(np.percentile(fast, 90)) if fast else None,
        "efficient_median_regret": float(np.median(efficient)) if efficient else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("backtest", "advice"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--curves", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    found: dict[str, Any] = {"date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"}
    curves = " --curves CURVES" if asked.curves else ""
    found["command"] = f"python -m scripts.study_site {asked.part} LOGS{curves} --out {asked.out}"
    found["commit"] = commit()
    if asked.part == "backtest":
        found["logs"] = backtests(asked.folder)
    else:
        found["walltimes"] = walltime_rows(asked.folder)
        found["scaling"] = [] if asked.curves is None else scaling_rows(asked.curves)
    text = json.dumps(found, indent=1, sort_keys=True, default=float, allow_nan=False)
    asked.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
