"""Small SWF logs for the tests of workloads."""

from pathlib import Path

from workloads.logs.cleaning import Cleaned, screen
from workloads.logs.swf import FIELDS, SwfLog

UNKNOWN = dict.fromkeys(FIELDS, -1)


def job_line(**values: object) -> str:
    """Return a job's line: a run of 60 s on 4 processors at time 0, changed by `values`."""
    usual = {
        "job_number": 1,
        "submit_time": 0,
        "run_time": 60,
        "allocated_processors": 4,
        "requested_processors": 4,
        "requested_time": 100,
        "status": 1,
    }
    record = UNKNOWN | usual | values
    return " ".join(str(record[name]) for name in FIELDS)


def write_log(folder: Path, *lines: str, name: str = "log.swf") -> Path:
    """Write lines to a file and return its path."""
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def clean(
    log: SwfLog,
    processors: int | None = None,
    actions: dict[str, str] | None = None,
    limit: int | None = None,
) -> Cleaned:
    """Return the first `limit` jobs of a log that can run."""
    return screen(log, processors, actions).take(0, limit)
