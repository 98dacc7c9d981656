"""Backtests and advice on real logs, what each distance is made of, and how advice fares.

    python -m scripts.study_site backtest FOLDER --out docs/results/backtest.json
    python -m scripts.study_site advice FOLDER --out docs/results/advice.json [--curves FOLDER]

FOLDER holds the logs. Scaling advice is judged by time on Lublin's jobs with measured curves.
"""

import argparse
import datetime
import json
import logging
import warnings
from pathlib import Path
from typing import Any

from benchmarks.scaling_advice import scaling_rows
from sim.advise import Options, advise, read_jobs
from sim.backtest import backtest, options
from sim.results.run_folder import commit
from sim.results.sentences import distance
from sim.site.site_logs import of_log
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
        given, own = of_log([str(folder / file), *more]), ["backtest.changes=true"]
        figures = backtest(given, options(own)).figures()
        easy = backtest(given, options([*own, "backtest.candidates=[easy]"])).figures()
        figures["changes_of_easy"] = easy["changes"]
        del figures["classes"], figures["outages"], figures["checksum"]
        rows.append({"name": name, **figures})
        print(name, distance(figures), *change_lines(figures), *change_lines(easy), sep="\n  ")
    return rows


def walltime_rows(folder: Path) -> list[dict[str, Any]]:
    rows = []
    for file in JUDGED:
        done = advise(read_jobs([str(folder / file)]), Options(until=0.7, starts=False))
        rows.append({"log": file, **done.figures})
        print(file, done.figures)
    return rows


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
