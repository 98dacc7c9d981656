"""Run the studies behind docs/results, and write the tables and pictures of the pages.

    python -m benchmarks.results [STUDY ...] [--quick] [--data FOLDER] [--out FOLDER]
    python -m benchmarks.results --tables [--check]

Studies whose code and inputs are those of their data are left as they are, and one that was
interrupted goes on where it stopped. Those whose logs are not in FOLDER (MOLDSIM_DATA) are skipped.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.results import (  # noqa: F401 - tables register themselves
    claims,
    guide_tables,
    logs,
    other_tables,
    site_tables,
    speed_tables,
    tables,
    world,
)
from benchmarks.results.pictures import draw_all
from benchmarks.results.regions import differing
from benchmarks.results.running import DATA, RESULTS, ROOT, make
from benchmarks.results.studies import STUDIES


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("studies", nargs="*", help=f"of {', '.join(STUDIES)}; all")
    parser.add_argument("--quick", action="store_true", help="at toy size, below /tmp")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of logs and curves")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--working", type=Path, default=ROOT / "outputs" / "results")
    parser.add_argument("--tables", action="store_true", help="write the tables, run nothing")
    parser.add_argument("--check", action="store_true", help="say which tables differ, and stop")
    asked = parser.parse_args()
    if asked.check or asked.tables:
        return report(write=not asked.check)
    unknown = [name for name in asked.studies if name not in STUDIES]
    if unknown:
        parser.error(f"{unknown[0]}: must be one of {', '.join(STUDIES)}")
    working = asked.working
    if asked.quick:
        working = Path(tempfile.mkdtemp(prefix="moldsim-results-"))
    out = asked.out or (working / "results" if asked.quick else RESULTS)
    make(asked.studies or list(STUDIES), asked.data.resolve(), out, working, asked.quick)
    return 0 if asked.quick or asked.out else report(write=True)


def report(write: bool) -> int:
    """Say which pages' tables are not those of their data, or were not before."""
    if write:
        draw_all()
    found = differing(write)
    for page in found:
        print(f"{page}: {'tables written' if write else 'tables differ from their data'}")
    return 0 if write else bool(found)


if __name__ == "__main__":
    sys.exit(main())
