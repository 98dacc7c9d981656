"""Which file is of which format."""

import os
from collections.abc import Mapping
from pathlib import Path

from workloads.logs.batsim import BatsimWorkload
from workloads.logs.log import FileWorkload, SwfWorkload
from workloads.logs.sacct import SacctWorkload
from workloads.logs.swf_text import unpack

FORMATS: Mapping[str, type[FileWorkload]] = {
    "swf": SwfWorkload,
    "sacct": SacctWorkload,
    "batsim": BatsimWorkload,
}
"""What a file may be."""


def guess_format(path: str | os.PathLike[str]) -> str:
    """Return which of `FORMATS` a file has, by its first line that is no comment.

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
