"""Print the tables of docs/reliability.md from what was tried: python -m tests.soak.page."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.soak.readers import LINES

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results" / "soak.json"
RUNS = "long runs"


def row(cells: Iterable[object]) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def trials(report: dict[str, Any]) -> list[str]:
    """Return a row for each kind of trial."""
    rows = [
        row(["trials", "tried", "found", "how they ended", "commits"]),
        "| --- | ---: | ---: | --- | --- |",
    ]
    for kind in sorted(report.keys() - {RUNS}):
        pieces, ends = report[kind], Counter[str]()
        for piece in pieces:
            ends.update(piece["ends"])
        tried = sum(piece["tried"] for piece in pieces)
        shown = f"{tried:,}" + (f" ({tried * LINES:,} lines)" if kind == "files" else "")
        said = ", ".join(f"{end} {ends[end]:,}" for end in sorted(ends) if end != "FOUND")
        commits = " ".join(sorted({piece["commit"] for piece in pieces}))
        rows.append(row([kind, shown, sum(len(piece["found"]) for piece in pieces), said, commits]))
    return rows


def memory(report: dict[str, Any]) -> list[str]:
    """Return a row for each long run."""
    heads = ["machine", "jobs ended", "at the start", "a tenth", "a half", "nine tenths", "commit"]
    rows = [row(heads), "| --- |" + " ---: |" * 5 + " --- |"]
    for run in report[RUNS]:
        mb = [f"{run['memory_mb_by_tenth'][tenth]:.0f} MB" for tenth in (0, 1, 5, 9)]
        ended = ", ".join(f"{number:,} {state}" for state, number in run["ends"].items())
        rows.append(row([run["run"], ended, *mb, run["commit"]]))
    return rows


def tables(report: dict[str, Any]) -> list[str]:
    """Return the page's tables."""
    return ["\n".join(part(report)) for part in (trials, memory)]


if __name__ == "__main__":
    print("\n\n".join(tables(json.loads(RESULTS.read_text(encoding="utf-8")))))
