"""Any file of jobs as a log: SWF, Slurm's accounting or a workload of Batsim."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from workloads.batsim import Communication, read_batsim
from workloads.sacct import read_sacct
from workloads.swf import SwfLog, read_swf
from workloads.swf_text import unpack

Format = Literal["swf", "sacct", "batsim"]


def guess_format(path: str | os.PathLike[str]) -> Format:
    """Return the format of a file by its first line that is no comment.

    Raises
    ------
    WorkloadError
        If the file cannot be read.
    """
    _, text = unpack(Path(path).expanduser(), "a log")
    for line in text.split(b"\n", 1000):
        first = line.strip()
        if first.startswith(b";") or not first:
            continue
        if first.startswith((b"{", b"[")):
            return "batsim"
        return "sacct" if b"|" in first else "swf"
    return "swf"


@dataclass(frozen=True)
class Reading:
    """What a file does not say about itself.

    Attributes
    ----------
    timezone, unit : str
        As for `workloads.sacct.read_sacct`.
    speed, communication : float or None, str
        As for `workloads.batsim.read_batsim`.
    """

    timezone: str = "UTC"
    unit: Literal["cpus", "nodes"] = "cpus"
    speed: float | None = None
    communication: Communication = "error"


def read_log(
    path: str | os.PathLike[str], kind: Format | None = None, reading: Reading | None = None
) -> SwfLog:
    """Read a log in any format.

    Parameters
    ----------
    path : path-like
    kind : str, optional
        ``swf``, ``sacct`` or ``batsim``; guessed without it.
    reading : Reading, optional
        What an accounting dump or a workload of Batsim leaves open.

    Raises
    ------
    WorkloadError
        If the file cannot be read.
    """
    kind = kind or guess_format(path)
    given = reading or Reading()
    if kind == "sacct":
        return read_sacct(path, given.timezone, given.unit)
    if kind == "batsim":
        return read_batsim(path, given.speed, given.communication)
    return read_swf(path)
