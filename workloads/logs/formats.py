"""Which file is of which format."""

import os
from collections.abc import Mapping

from workloads.logs.batsim import BatsimWorkload
from workloads.logs.log import FileWorkload, SwfWorkload
from workloads.logs.sacct import NEEDED, SacctWorkload, delimiter_of, is_reckoned
from workloads.logs.swf import FIELDS, log_file, unpack
from workloads.logs.table import DELIMITERS, TableWorkload

FORMATS: Mapping[str, type[FileWorkload]] = {
    "swf": SwfWorkload,
    "sacct": SacctWorkload,
    "batsim": BatsimWorkload,
    "table": TableWorkload,
}
"""What a file may be."""
_OF_SACCT = ({"JobID"}, {"JobIDRaw"}, {"Submit", "State"})
"""Columns by which an accounting dump is known, all that it needs with another delimiter."""


def guess_format(path: str | os.PathLike[str]) -> str:
    """Return which of `FORMATS` a file has, by its first line that is no comment.

    Raises
    ------
    WorkloadError
        If the file cannot be read.
    """
    _, text = unpack(log_file(path), "a log")
    for line in text.split(b"\n", 1000):
        first = line.strip()
        if first.startswith(b";") or not first:
            continue
        return _of_line(first.decode("utf-8", "replace"))
    return "swf"


def _of_line(first: str) -> str:
    """Return the format of a file by its first line.

    Examples
    --------
    >>> [_of_line(line) for line in ('{"jobs": []}', "JobID|State|Start", "user,submit", "1 2 3")]
    ['batsim', 'sacct', 'table', 'swf']
    >>> [_of_line(f"JobID;Submit;Start;End;{last}") for last in ("NCPUS;State", "CPUs")]
    ['sacct', 'table']
    """
    if first.startswith(("{", "[")):
        return "batsim"
    delimiter = delimiter_of(first)
    names = set(first.split(delimiter))
    barred = delimiter == "|" and any(own <= names for own in _OF_SACCT)
    if barred or is_reckoned(names) or all(names & {*own} for own in NEEDED.values()):
        return "sacct"
    words = first.split()  # fields of a job of SWF, which some separate by tabs
    is_job = len(words) == len(FIELDS) and all(word[-1:].isdigit() for word in words)
    return "table" if not is_job and any(sign in first for sign in DELIMITERS) else "swf"
