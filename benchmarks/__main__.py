"""Run every benchmark in turn: python -m benchmarks."""

import runpy
from pathlib import Path

if __name__ == "__main__":
    for path in sorted(Path(__file__).parent.glob("bench_*.py")):
        runpy.run_module(f"benchmarks.{path.stem}", run_name="__main__")
