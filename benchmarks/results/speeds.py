"""What the page of performance asks for: rows of benchmarks, as they print them."""

import importlib
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks import bench_site
from benchmarks.floor import SHOWN

Special = Callable[[Path, bool], dict[str, Any]]
SDSC = "traces/SDSC-SP2-1998-4.2-cln.swf.gz"
LUBLIN = "traces/lublin_256.swf.gz"
CIRRUS = "traces/Cirrus-CPU-2024-09.csv.gz"


def printed(name: str, *asked: str) -> Special:
    """Return what runs a benchmark and returns its rows; DATA names the folder of logs."""

    def special(data: Path, toy: bool) -> dict[str, Any]:
        given = [one.replace("DATA", str(data)) for one in asked]
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            rows = process.submit(rows_of, name, given).result()
        return {"benchmark": " ".join([f"python -m benchmarks.{name}", *asked]), "rows": rows}

    return special


def rows_of(name: str, asked: list[str]) -> list[dict[str, Any]]:
    """Run a benchmark and return its rows.

    In a process of its own: the largest memory of a child is at least what its parent has.
    """
    sys.argv = [name, *asked]
    importlib.import_module(f"benchmarks.{name}").main()
    return SHOWN


def backtests(data: Path, toy: bool) -> dict[str, Any]:
    """Return how long backtests take: of a model's schedule and of two logs."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = bench_site.made_log(folder, bench_site.JOBS)
        for title, log, more in (
            ("Lublin's model, load 0.7", made, [f"cluster.processors={bench_site.PROCESSORS}"]),
            ("Cirrus 2024-09", data / CIRRUS, ["cluster.processors=13248"]),
            ("SDSC-SP2", data / SDSC, []),
        ):
            found = bench_site.row(log, folder / "backtest", 2, more)
            rows.append({**found, "trace": title})
    return {"benchmark": "python -m benchmarks.bench_site", "rows": rows}


SPEEDS: dict[str, tuple[Special, tuple[str, ...]]] = {
    "engine": (printed("bench_engine", "--rounds", "3", "--data", "DATA"), (SDSC, LUBLIN)),
    "moldable": (printed("bench_moldable", "--rounds", "2"), ()),
    "backtests": (backtests, (CIRRUS, SDSC)),
    "learned": (printed("bench_learned"), ()),
    "shared": (printed("bench_shared"), ()),
    "malleable": (printed("bench_malleable"), ()),
    "evolving": (printed("bench_evolving"), ()),
    "long": (printed("bench_long"), ()),
    "growth": (printed("bench_growth", "--rounds", "2"), ()),
    "sweeps": (printed("bench_sweeps"), ()),
    "start": (printed("bench_start", "--rounds", "6"), ()),
}
"""What measures, and which logs it reads, by name."""
