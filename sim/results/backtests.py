"""Where backtests of logs lie, and what one says of the next simulation of its log."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sim.results.durable import MANIFEST, read_object

BACKTESTS = Path("backtests")
"""Below the working folder."""
BACKTEST = "backtest.json"
_NONE = (
    "No backtest of {log} in {folder}/: how far simulated schedules are from the recorded one is "
    "unknown (python -m sim.backtest)."
)


def backtest_folder(source: str, checksum: str | None) -> Path:
    """Return where the backtest of a log lies.

    Examples
    --------
    >>> backtest_folder("my log.swf.gz", "0123456789ab").as_posix()
    'backtests/my_log-01234567'
    """
    stem = re.sub(r"[^\w-]+", "_", source.split(".")[0]) or "log"
    return BACKTESTS / f"{stem}-{(checksum or '')[:8]}"


def read_backtest(path: Path) -> dict[str, Any] | None:
    """Return what a backtest found, None where the file is not there or not whole."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    whole = isinstance(found, dict) and {"nearest", "verdict", "candidates"} <= found.keys()
    return found if whole else None


def find_backtest(source: str, checksum: str) -> dict[str, Any] | None:
    """Return the backtest of a log with this text, in its usual place or one beside it."""
    usual = backtest_folder(source, checksum) / BACKTEST
    for path in (usual, *sorted(BACKTESTS.glob(f"*/{BACKTEST}"))):
        found = read_backtest(path)
        if found is not None and found.get("checksum") == checksum:
            return found
    return None


def distance(found: Mapping[str, Any]) -> str:
    """Return in a sentence how far the nearest candidate is from the recorded schedule.

    Examples
    --------
    >>> one = {"name": "easy", "mean_wait_difference": -0.11, "spearman_wait": 0.43}
    >>> distance({"nearest": "easy", "verdict": "care", "candidates": [one], "log": "my.swf"})
    "Backtest of my.swf: care. easy comes nearest to the recorded schedule: mean wait -11 %, \
Spearman's rank correlation of waits 0.43."
    """
    own = next(one for one in found["candidates"] if one["name"] == found["nearest"])
    return (
        f"Backtest of {found['log']}: {found['verdict']}. {found['nearest']} comes nearest to the "
        f"recorded schedule: mean wait {relative(own['mean_wait_difference'])}, Spearman's rank "
        f"correlation of waits {ranks(own['spearman_wait'])}."
    )


def relative(value: float | None) -> str:
    """Return a relative difference in percent, in factors where it is large.

    Examples
    --------
    >>> relative(-0.113), relative(59.6), relative(None)
    ('-11 %', '61 times', 'not comparable')
    """
    if value is None or not math.isfinite(value):
        return "not comparable"
    return f"{100 * value:+.0f} %" if value < 5 else f"{1 + value:,.0f} times"


def ranks(value: float | None) -> str:
    """Return a rank correlation in two digits."""
    return "undefined" if value is None else f"{value:.2f}"


def backtest_sentences(runs: Iterable[Path]) -> list[str]:
    """Return a line for each log that runs replayed: its backtest, or that there is none.

    Parameters
    ----------
    runs : iterable of pathlib.Path
        Folders of simulations; those of models say nothing.
    """
    logs: dict[tuple[Any, Any], None] = {}
    for run in runs:
        for folder in (run, run / "replication=0"):
            if (folder / MANIFEST).is_file():
                made = read_object(folder / MANIFEST)
                logs[made.get("source"), made.get("checksum")] = None
    said = []
    for source, checksum in logs:
        if source and checksum:
            found = find_backtest(source, checksum)
            none = _NONE.format(log=source, folder=BACKTESTS)
            said.append(none if found is None else distance(found))
    return said
