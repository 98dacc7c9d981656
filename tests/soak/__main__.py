"""Make all trials: python -m tests.soak [--share 1] [--seconds 3600] [--report FILE].

A whole soak is 1,000 legal configurations, 1,000 wrong ones, 1,000 odd values
of all keys, 10 million lines of odd files,
100 kills, 50 pairs of processes, 100 faults, and a sweep of 200 runs shared by four processes
of which two are killed; --share makes a part of each, --first begins at another seed. The
time is dealt to the kinds in shares; what was tried and found is printed, and added to a
JSON file. The status is 1 where anything was found.
"""

import argparse
import json
import math
import subprocess
import sys
from datetime import date
from pathlib import Path
from time import monotonic

from tests.soak.configurations import try_legal, try_odd, try_wrong
from tests.soak.processes import try_fault, try_four, try_kill, try_pair
from tests.soak.readers import LINES, try_reader
from tests.soak.trials import series

KINDS = {
    "legal configurations": (try_legal, 1000, 0.3, 300.0),
    "wrong configurations": (try_wrong, 1000, 0.2, 300.0),
    "odd values": (try_odd, 1000, 0.2, 300.0),
    "files": (try_reader, 10_000_000 // LINES, 0.1, 300.0),
    "kills": (try_kill, 100, 0.2, 900.0),
    "pairs of processes": (try_pair, 50, 0.1, 900.0),
    "faults of the disk": (try_fault, 100, 0.05, 300.0),
    "four processes on 200 runs": (try_four, 1, 0.05, 1800.0),
}
"""Of each kind the trial, how many, the share of the time, and seconds for one trial."""


def version() -> dict[str, str]:
    """Return the date, the commit and the Python of these trials."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    python = ".".join(map(str, sys.version_info[:3]))
    return {"date": str(date.today()), "commit": commit.stdout.strip(), "python": python}


def add(path: Path, kind: str, piece: dict[str, object]) -> None:
    """Add a piece of a soak to a report."""
    report = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    report.setdefault(kind, []).append(piece)
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="part of the trials to make")
    parser.add_argument("--seconds", type=float, default=3600.0, help="time at most")
    parser.add_argument("--first", type=int, default=0, help="seed of the first trial of a kind")
    parser.add_argument("--report", type=Path, help="add what was tried and found to a JSON file")
    parser.add_argument("--only", choices=sorted(KINDS), help="one kind alone")
    asked = parser.parse_args()
    trials = {kind: one[0] for kind, one in KINDS.items()}
    bad = 0
    for kind, (_, number, share, limit) in KINDS.items():
        if asked.only not in (None, kind):
            continue
        began = monotonic()
        seconds = asked.seconds * (1.0 if asked.only else share)
        seeds = range(asked.first, asked.first + math.ceil(asked.share * number))
        found = series(trials, kind, seeds, seconds, limit)
        took = round(monotonic() - began, 1)
        if asked.report:
            add(asked.report, kind, {
                **version(), "first_seed": asked.first, "tried": found.ends.total(),
                "ends": dict(sorted(found.ends.items())), "found": found.findings,
                "seconds": took})  # fmt: skip
        print(f"{kind}: {found.ends.total()} in {took} s: {dict(sorted(found.ends.items()))}")
        print(*found.findings, sep="\n", end="\n" * bool(found.findings), flush=True)
        bad += len(found.findings)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
