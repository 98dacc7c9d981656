"""Files whose every line may be odd, for every reader: rows, or one line that says why not."""

import random
import tempfile
from collections.abc import Callable
from pathlib import Path

from predictors import read as read_measurements
from predictors.errors import PredictorError
from workloads.errors import WorkloadError
from workloads.logs.log import SwfWorkload
from workloads.logs.sacct import SacctWorkload
from workloads.logs.table import TableWorkload
from workloads.streams import Streams

LINES = 5000
ODD = ("-1", "0", "1e3", "1e30", "-1e30", "9" * 20, "9" * 400, str(2**62), str(2**63 - 1), "nan",
       "inf", "0.5", "-0", "1.", "x", "", "1e-300", "٣", "+7", "\x00", '"', "'", ";", "#", "é",
       "2024-13-45", "9999-12-31T23:59:59", "99999-00:00:00", "1-02:03:04", "null")  # fmt: skip
SHARES = (0.0002, 0.0002, 0.01)
"""Of the lines that are odd."""
ODD_BYTES = (
    b"\xff\xfe",
    b"\x1f\x8b",
    b"\r",
    b"\r\n\r\n",
    b"\x00",
    b"\n;",
    b"\t",
    b" " * 50,
    b",",
    b"|",
)


def disturbed(dice: random.Random, rows: list[list[str]], between: str, share: float) -> bytes:
    """Return the rows as text with odd cells, lost and doubled ones, and odd bytes."""
    for _ in range(max(1, int(share * len(rows)))):
        row = dice.choice(rows)
        place, kind = dice.randrange(len(row)), dice.random()
        if kind < 0.8:
            row[place] = dice.choice(ODD)
        elif kind < 0.9:
            del row[place:]
            row.append("")
        else:
            row.insert(place, row[place])
    text = "\n".join(map(between.join, rows)).encode("utf-8", "surrogatepass")
    for _ in range(dice.choice([0, 0, 0, 1, 3])):
        place = dice.randrange(len(text))
        text = text[:place] + dice.choice(ODD_BYTES) + text[place:]
    return text


def swf(dice: random.Random, folder: Path) -> object:
    """Read a disturbed log in the Standard Workload Format."""
    rows = [[str(k), str(10 * k), "5", "60", "4", "-1", "-1", "4", "90", "-1", "1", "3", "1", "2",
             "1", "-1", "-1", "-1"] for k in range(1, LINES)]  # fmt: skip
    rows.insert(0, ["; MaxProcs: 64"])
    (folder / "log.swf").write_bytes(disturbed(dice, rows, " ", dice.choice(SHARES)))
    return SwfWorkload(folder / "log.swf", load=dice.choice([None, 0.5])).trace(Streams(1))


def sacct(dice: random.Random, folder: Path) -> object:
    """Read a disturbed export of Slurm's accounting."""
    rows = [["JobIDRaw", "User", "Submit", "Start", "ElapsedRaw", "TimelimitRaw", "AllocCPUS",
             "State", "JobName"]]  # fmt: skip
    for k in range(1, LINES):
        hour = f"2024-01-{1 + k % 28:02d}T{k % 24:02d}:"
        rows.append(
            [str(k), f"u{k % 9}", f"{hour}00:00", f"{hour}20:00", "60", "5", "4", "COMPLETED", "a"]
        )
    (folder / "jobs.txt").write_bytes(disturbed(dice, rows, "|", dice.choice(SHARES)))
    return SacctWorkload(folder / "jobs.txt", timezone="UTC").trace(Streams(1))


def table(dice: random.Random, folder: Path) -> object:
    """Read a disturbed table of jobs."""
    rows = [["submit", "start", "end", "cpus", "limit", "who"]]
    rows += [
        [str(10 * k), str(10 * k + 5), str(10 * k + 65), "4", "90", f"u{k % 9}"]
        for k in range(1, LINES)
    ]
    between = dice.choice([",", ";", "\t"])
    (folder / "jobs.csv").write_bytes(disturbed(dice, rows, between, dice.choice(SHARES)))
    columns = {"submit": "submit", "start": "start", "end": "end", "processors": "cpus",
               "requested_time": "limit", "user": "who"}  # fmt: skip
    return TableWorkload(folder / "jobs.csv", columns=columns).trace(Streams(1))


def measurements(dice: random.Random, folder: Path) -> object:
    """Read disturbed measurements of runtimes."""
    rows = [["problem", "nprocs", "runtime"]]
    rows += [[f"p{k % 7}", str(1 << (k % 11)), str(100.0 / (1 + k % 11))] for k in range(1, LINES)]
    between = dice.choice([",", ";", "\t"])
    (folder / "runs.csv").write_bytes(disturbed(dice, rows, between, dice.choice(SHARES)))
    return read_measurements(folder / "runs.csv")


READERS: tuple[Callable[[random.Random, Path], object], ...] = (
    swf,
    swf,
    sacct,
    table,
    measurements,
)


def try_reader(dice: random.Random) -> str:
    """Read a file of `LINES` lines, some of them odd; say how that ended."""
    reader = dice.choice(READERS)
    with tempfile.TemporaryDirectory() as scratch:
        try:
            reader(dice, Path(scratch))
        except (WorkloadError, PredictorError) as error:
            said = str(error)
            one_line = 0 < len(said) < 1000 and "\n" not in said
            return f"refused {reader.__name__}" if one_line else f"FOUND: {said[:200]!r}"
    return f"read {reader.__name__}"
