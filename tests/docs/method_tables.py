"""Make the data of the tables in docs/methods/: python -m tests.docs.method_tables [--seeds 10].

Errors of the rational polynomial and of the cycle predictors on simulated runs of their papers'
experiments, in percent, as `tests/rational_runs.py` and `tests/sage_errors.py` have them.
"""

import argparse
import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sim.statistics.intervals import t_interval
from tests import rational_runs, sage_errors

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results" / "methods"
COLUMNS = {
    "size alone": ("min_avg_avail", "size alone", "nnls", "measured"),
    "least average, measured": ("min_avg_avail", "rational", "nnls", "measured"),
    "effective, measured": ("effective", "rational", "nnls", "measured"),
    "effective, forecast": ("effective", "rational", "nnls", "forecast"),
    "plain least squares": ("effective", "rational", "ols", "measured"),
}
"""Of each column: the figure of the load, model, method, and which load is known."""


def settings() -> Iterator[tuple[rational_runs.Case, str]]:
    """Yield the cases with the lengths of their runs."""
    for case in rational_runs.CASES:
        yield from ((case, one) for one in (("any",) if case.constant else rational_runs.LENGTHS))


def rational_row(case: rational_runs.Case, length: str, seeds: int) -> dict[str, Any]:
    """Return mean errors in percent and half-widths of 95 % intervals over seeds, by column."""
    seconds = rational_runs.LENGTHS.get(length, 120.0)
    found = {}
    for form in ("min_avg_avail", "effective"):
        formed = replace(case, form=form)
        models = ("rational", "size alone")
        tables = [
            rational_runs.errors(formed, seconds, seed, models) for seed in range(1, seeds + 1)
        ]
        found[form] = pd.concat(tables)
    row: dict[str, Any] = {"case": case.name, "runs": length, "paper": case.paper}
    for column, (form, model, method, load) in COLUMNS.items():
        errors = 100 * rational_runs.by_seed(found[form], model=model, method=method, load=load)
        half = t_interval(errors).half if len(errors) > 1 else float("nan")
        row[column] = [round(float(np.mean(errors)), 1), round(float(half), 1)]
    return row


def write(name: str, command: str, data: object, began: float) -> None:
    """Write a results file with where it came from."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    made = {"command": command, "date": time.strftime("%Y-%m-%d"), "commit": commit}
    made["seconds"] = round(time.time() - began)
    RESULTS.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**made, "rows": data}, indent=1, ensure_ascii=False)
    (RESULTS / name).write_text(text + "\n", encoding="utf-8")


def main() -> None:
    """Make both files anew."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10, help="of the rational polynomial's runs")
    seeds = parser.parse_args().seeds
    command = f"python -m tests.docs.method_tables --seeds {seeds}"
    began = time.time()
    tables = {
        machine: sage_errors.error_figures(machine, runs=50).round(1).tolist()
        for machine in sage_errors.PRINTED
    }
    write("cycles.json", command, tables, began)
    began = time.time()
    rows = [rational_row(case, length, seeds) for case, length in settings()]
    write("rational.json", command, rows, began)


if __name__ == "__main__":
    main()
