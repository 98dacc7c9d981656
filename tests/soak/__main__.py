"""Make all trials: python -m tests.soak [--share 1] [--seconds 3600] [--report FILE].

A whole soak is 1,000 legal configurations, 1,000 wrong ones, 10 million lines of odd files,
100 kills, 50 pairs of processes and 100 faults; --share makes a part of each. The time is
dealt to the kinds in shares; what was tried and found is printed, and written as JSON. The
status is 1 where anything was found.
"""

import argparse
import json
import sys
from datetime import date
from pathlib import Path
from time import monotonic

from tests.soak.configurations import try_legal, try_wrong
from tests.soak.processes import try_fault, try_kill, try_pair
from tests.soak.readers import LINES, try_reader
from tests.soak.trials import series

KINDS = {
    "legal configurations": (try_legal, 1000, 0.3),
    "wrong configurations": (try_wrong, 1000, 0.2),
    "files": (try_reader, 10_000_000 // LINES, 0.15),
    "kills": (try_kill, 100, 0.2),
    "pairs of processes": (try_pair, 50, 0.1),
    "faults of the disk": (try_fault, 100, 0.05),
}
"""Of each kind the trial, how many, and the share of the time."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="part of the trials to make")
    parser.add_argument("--seconds", type=float, default=3600.0, help="time at most")
    parser.add_argument("--report", type=Path, help="write what was tried and found as JSON")
    parser.add_argument("--only", choices=sorted(KINDS), help="one kind alone")
    asked = parser.parse_args()
    trials = {kind: trial for kind, (trial, _, _) in KINDS.items()}
    report, bad = {"date": str(date.today()), "lines a file": LINES}, 0
    for kind, (_, number, share) in KINDS.items():
        if asked.only not in (None, kind):
            continue
        began = monotonic()
        seconds = asked.seconds * (1.0 if asked.only else share)
        found = series(trials, kind, max(1, round(asked.share * number)), seconds)
        took = round(monotonic() - began, 1)
        report[kind] = {"tried": found.ends.total(), "ends": dict(sorted(found.ends.items())),
                        "found": found.findings, "seconds": took}  # fmt: skip
        print(f"{kind}: {found.ends.total()} in {took} s: {dict(sorted(found.ends.items()))}")
        print(*found.findings, sep="\n", end="\n" * bool(found.findings), flush=True)
        bad += len(found.findings)
    if asked.report:
        asked.report.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
