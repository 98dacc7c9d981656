"""How many tables of equals call any better: the same rule with other seeds, in each column.

    python -m benchmarks.equals OUT [--tables 200] [--runs 5200]

Each table compares twelve groups of ten runs with a thirteenth by what `moldsim compare` uses;
all runs are EASY's on jobs of their own seeds, so that every difference is chance. The runs of a
table are drawn without replacement from all.
"""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from scripts.composing import composed
from sim.report.answers import differences
from sim.report.gathering import Group, Sample
from sim.report.verdict import verdict
from sim.results.steady_state import Figures
from sim.simulation.scene import play, set_scene

ROWS, PAIRS, JOBS, LOAD = 12, 10, 100, 0.5
FIGURE = "mean_response_time"
ASKED = ("policy=easy", "predictor=user_estimate", "baseline=null", "moldability=none")


def runs(number: int) -> list[Figures]:
    """Return the figures of runs of one rule, each on jobs of its own."""
    config = composed(*ASKED, f"workload.jobs={JOBS}", f"workload.load={LOAD}")
    found: list[Figures] = []
    for replication in range(number):
        records = play(config, config, set_scene(config, replication)).outcome.records
        mean = float((records.end_time - records.submit_time).mean())
        found.append({FIGURE: mean, "steady": True})
    return found


def table_of(own: list[Figures]) -> list[Group]:
    """Return groups of a table, the first of which is the reference."""
    groups = []
    for row in range(ROWS + 1):
        part = own[row * PAIRS : (row + 1) * PAIRS]
        samples = [Sample(Path(), f"replication={k}", one) for k, one in enumerate(part)]
        groups.append(Group({"policy": "easy" if row == 0 else f"rule {row}"}, "run", samples))
    return groups


def main() -> None:
    """Write how many tables name a better or a worse one, and how many a best."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5200)
    asked = parser.parse_args()
    size = (ROWS + 1) * PAIRS
    every, rng = runs(asked.runs), np.random.default_rng(4711)
    better = either = best = 0
    for _ in range(asked.tables):
        groups = table_of([every[k] for k in rng.permutation(asked.runs)[:size]])
        found, _ = differences(groups, FIGURE)
        assert len(found) == ROWS
        better += any(one.comparison.certain and one.change.mean < 0 for one in found)
        either += any(one.comparison.certain for one in found)
        said = verdict(groups, found, None).sentences["best-sentence"]
        best += said.startswith("Best: rule")
    row = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "tables": asked.tables, "rows": ROWS}
    row |= {"runs": asked.runs, "pairs": PAIRS, "jobs": JOBS, "load": LOAD, "false_better": better}
    row |= {"false_better_or_worse": either, "named_best": best}
    asked.out.write_text(json.dumps(row, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
