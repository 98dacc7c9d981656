"""Playback of recorded load: reading and checking the files, and handing the series out."""

import csv
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, count, pairwise, repeat
from math import isfinite
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.random import Generator

from predictors.base import FloatArray
from sim.background.models import BatchedCpu, LinkRow
from sim.errors import SimError, check_choices

CPU_COLUMNS = ("start_time", "end_time", "node", "available_cpu")
NETWORK_COLUMNS = ("start_time", "end_time", "source", "destination", "available_bandwidth")
TOUCH = 1e-6
AT_ONCE = 64
"""Segments that are handed out together, at least."""


class LoadFileError(SimError):
    """A file of recorded load that cannot be played; the message names file, line and field."""


Series = dict[tuple[int, ...], FloatArray]
"""Rows (start, end, available) of each place, a node or an ordered pair of nodes, in order."""
LoadRow = tuple[int, tuple[int, ...], float, float, float]
"""Line, place, start, end and available fraction."""


def read_load(path: Path, nodes: int, columns: tuple[str, ...]) -> tuple[Series, float, float]:
    """Read a CSV file of recorded load and check every row.

    Parameters
    ----------
    path : pathlib.Path
        A row for each stretch of constant load. Each node (or link) that the file
        names must cover the whole span of the file, stretch after stretch;
        those that it does not name are free.
    nodes : int
        Nodes of the machine, numbered from 0.
    columns : tuple of str
        `CPU_COLUMNS` or `NETWORK_COLUMNS`.

    Returns
    -------
    series : dict
        Without gap or overlap.
    start, end : float
        The span that the file covers, seconds.

    Raises
    ------
    LoadFileError
        For a missing column, a field that is not a number, a value outside
        (0, 1], an unknown node, a gap or an overlap.
    """
    lines = _lines(path)
    head = [name.strip() for name in lines[0][1]] if lines else []
    twice = sorted({name for name in columns if head.count(name) > 1})
    if twice:
        raise LoadFileError(f"{path.name}: line 1 names {', '.join(twice)} more than once")
    missing = [name for name in columns if name not in head]
    if missing:
        raise LoadFileError(
            f"{path.name}: line 1 lacks {', '.join(missing)}; needed are {', '.join(columns)}"
        )
    rows = []
    for line, fields in lines[1:]:
        if len(fields) != len(head):
            raise LoadFileError(
                f"{path.name}: line {line}: {len(head)} fields are needed, got {len(fields)}"
            )
        named = dict(zip(head, fields, strict=True))
        rows.append(_row(path.name, line, {name: named[name] for name in columns}, nodes))
    if not rows:
        raise LoadFileError(f"{path.name}: has no row of load below its header")
    return _collect(path.name, rows)


def _lines(path: Path) -> list[tuple[int, list[str]]]:
    """Return the lines of a CSV file that are not empty, numbered from 1."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, skipinitialspace=True, strict=True)
            return [(reader.line_num, fields) for fields in reader if fields]
    except csv.Error as error:
        where = f"{path.name}: line {reader.line_num}"
        raise LoadFileError(f"{where}: not well-formed CSV ({error})") from error
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise LoadFileError(f"{path}: cannot be read as CSV ({why})") from error


def _row(file: str, line: int, fields: dict[str, str], nodes: int) -> LoadRow:
    """Check one line, and return it."""
    numbers: dict[str, float] = {}

    def check(name: str, wanted: str, holds: bool) -> None:
        if not holds:
            raise LoadFileError(
                f"{file}: line {line}: {name} must be {wanted}, got {fields[name]!r}"
            )

    for name, text in fields.items():
        with suppress(ValueError):
            numbers[name] = float(text.replace("_", "?"))  # Python's digit groups are not CSV
        check(name, "a number", name in numbers)
        check(name, "a finite number", isfinite(numbers[name]))
    *where, value = list(fields)[2:]
    for name in where:
        check(name, f"a node of this machine, 0 to {nodes - 1}", numbers[name] in range(nodes))
    place = tuple(int(numbers[name]) for name in where)
    check(name, "a node other than the source", len(set(place)) == len(place))
    check(value, "in (0, 1]", 0 < numbers[value] <= 1)
    start, end = numbers["start_time"], numbers["end_time"]
    check("end_time", f"later than start_time, {fields['start_time']}", start < end)
    return line, place, start, end, numbers[value]


def _collect(file: str, rows: list[LoadRow]) -> tuple[Series, float, float]:
    """Sort rows by place and time; refuse gaps and overlaps."""
    start, end = min(row[2] for row in rows), max(row[3] for row in rows)
    series: Series = {}
    for place in sorted({row[1] for row in rows}):
        own = sorted((row for row in rows if row[1] == place), key=lambda row: row[2])
        name = "node " + str(place[0]) if len(place) == 1 else f"link {place[0]} -> {place[1]}"
        for (earlier, _, _, until, _), (line, _, begin, _, _) in pairwise(own):
            said = f"{file}: line {line}: {name}"
            if begin < until - TOUCH:
                raise LoadFileError(
                    f"{said} overlaps line {earlier}: "
                    f"start_time {begin:g} lies before its end_time {until:g}"
                )
            if begin > until + TOUCH:
                raise LoadFileError(f"{said} has a gap from {until:g} to {begin:g} s")
        (_, _, begin, _, _), (line, _, _, until, _) = own[0], own[-1]
        if begin > start + TOUCH or until < end - TOUCH:
            raise LoadFileError(
                f"{file}: line {line}: {name} has a gap: it covers {begin:g} to {until:g} s, "
                f"the file {start:g} to {end:g} s"
            )
        series[place] = np.array([row[2:] for row in own])
    return series, start, end


@dataclass(frozen=True)
class RecordedLoad:
    """Playback of a recorded series, from its own beginning at the origin of the load.

    Parameters
    ----------
    path : str
        A CSV file with columns ``start_time, end_time, node, available_cpu`` for
        processors (all processors of a node alike), or ``start_time, end_time,
        source, destination, available_bandwidth`` for links.
    beyond : {"repeat", "free"}
        What follows the end of the recording: the same again, or no load.

    Raises
    ------
    LoadFileError
        When the load begins, if the file cannot be played.
    """

    path: str
    beyond: Literal["repeat", "free"] = "repeat"

    def __post_init__(self) -> None:
        check_choices(self)

    def cpu(self, processors: int, per_node: int, rng: Generator, origin: float) -> BatchedCpu:
        """Begin the load of the processors."""
        series, start, end = read_load(Path(self.path), -(-processors // per_node), CPU_COLUMNS)
        node_of = np.arange(processors) // per_node
        changes = np.unique(np.concatenate([rows[:, 0] for rows in series.values()]) - start)
        values = np.ones((processors, len(changes)))
        for (node,), rows in series.items():
            which = np.searchsorted(rows[:, 0] - start, changes, side="right") - 1
            values[node_of == node] = rows[which, 2]
        lap = np.diff(changes, append=end - start)[None, :], values
        several = -(-AT_ONCE // len(changes))
        after = np.tile(lap[0], several), np.tile(lap[1], several)
        if self.beyond == "free":
            after = np.full((1, 1), np.inf), np.ones((processors, 1))
        laps = chain([lap], repeat(after))
        return BatchedCpu(processors, np.array([origin]), lambda: next(laps))

    def links(self, nodes: int, rng: Generator, origin: float) -> Iterator[LinkRow]:
        """Begin the load of the links between nodes."""
        series, first, last = read_load(Path(self.path), nodes, NETWORK_COLUMNS)
        rows = sorted(
            (start, end, *link, available)
            for link, own in series.items()
            for start, end, available in own.tolist()
            if available < 1
        )
        laps = count() if self.beyond == "repeat" and rows else range(1)
        return (
            (start + shift, end + shift, *link, available)
            for shift in (origin - first + lap * (last - first) for lap in laps)
            for start, end, *link, available in rows
        )
