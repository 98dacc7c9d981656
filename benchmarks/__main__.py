"""Run every benchmark in turn: python -m benchmarks [--check].

With --check the status is 1 where a ratio is above its limit.
"""

import argparse
import runpy
import sys
from pathlib import Path

from benchmarks.floor import OVER

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="end with 1 above a limit")
    asked = parser.parse_args()
    sys.argv[1:] = []
    for path in sorted(Path(__file__).parent.glob("bench_*.py")):
        runpy.run_module(f"benchmarks.{path.stem}", run_name="__main__")
    sys.exit("\n".join(OVER) if asked.check and OVER else 0)
