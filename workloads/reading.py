"""Any file of jobs as a log: SWF, Slurm's accounting or a workload of Batsim."""

import os
from pathlib import Path
from typing import Literal

from workloads.batsim import read_batsim
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


def read_log(
    path: str | os.PathLike[str], kind: Format | None = None, timezone: str = "UTC"
) -> SwfLog:
    """Read a log in any format.

    Parameters
    ----------
    path : path-like
    kind : str, optional
        ``swf``, ``sacct`` or ``batsim``; guessed without it.
    timezone : str
        Of an accounting dump's times without an offset.

    Raises
    ------
    WorkloadError
        If the file cannot be read.
    """
    kind = kind or guess_format(path)
    if kind == "sacct":
        return read_sacct(path, timezone)
    return read_batsim(path) if kind == "batsim" else read_swf(path)
