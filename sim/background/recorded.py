"""Playback of recorded load: reading and checking the files, and handing the series out."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.random import Generator

from sim.background.models import BatchedCpu, LinkRow
from sim.errors import SimError, check_choice

CPU_COLUMNS = ("start_time", "end_time", "node", "available_cpu")
NETWORK_COLUMNS = ("start_time", "end_time", "source", "destination", "available_bandwidth")
TOUCH = 1e-6
AT_ONCE = 64
"""Segments that are handed out together, at least."""


class LoadFileError(SimError):
    """A file of recorded load that cannot be played; the message names file, line and field."""


@dataclass(frozen=True)
class Recorded:
    """Recorded intervals of each place: a node, or an ordered pair of nodes.

    Attributes
    ----------
    series : dict
        Place to rows (start, end, available), without gap or overlap.
    start, end : float
        The span that the file covers, seconds.
    """

    series: dict[tuple[int, ...], list[tuple[float, float, float]]]
    start: float
    end: float


def read_load(path: Path, nodes: int, columns: tuple[str, ...]) -> Recorded:
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
            try:
                return [(reader.line_num, fields) for fields in reader if fields]
            except csv.Error as error:
                where = f"{path.name}: line {reader.line_num}"
                raise LoadFileError(f"{where}: not well-formed CSV ({error})") from error
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise LoadFileError(f"{path}: cannot be read as CSV ({why})") from error


Row = tuple[int, tuple[int, ...], float, float, float]


def _row(file: str, line: int, fields: dict[str, str], nodes: int) -> Row:
    """Check one line; return it as line, place, start, end, available."""

    def fail(name: str, wanted: str) -> LoadFileError:
        return LoadFileError(f"{file}: line {line}: {name} must be {wanted}, got {fields[name]!r}")

    numbers = {}
    for name, text in fields.items():
        try:
            numbers[name] = float(text.replace("_", "?"))  # Python's digit groups are not CSV
        except ValueError as error:
            raise fail(name, "a number") from error
        if not np.isfinite(numbers[name]):
            raise fail(name, "a finite number")
    *where, value = list(fields)[2:]
    for name in where:
        if numbers[name] not in range(nodes):
            raise fail(name, f"a node of this machine, 0 to {nodes - 1}")
    place = tuple(int(numbers[name]) for name in where)
    if len(place) == 2 and place[0] == place[1]:
        raise fail("destination", "a node other than the source")
    if not 0 < numbers[value] <= 1:
        raise fail(value, "in (0, 1]")
    if not numbers["start_time"] < numbers["end_time"]:
        raise fail("end_time", f"later than start_time, {fields['start_time']}")
    return line, place, numbers["start_time"], numbers["end_time"], numbers[value]


def _collect(file: str, rows: list[Row]) -> Recorded:
    """Sort rows by place and time; refuse gaps and overlaps."""
    start, end = min(row[2] for row in rows), max(row[3] for row in rows)
    series: dict[tuple[int, ...], list[tuple[float, float, float]]] = {}
    for place in sorted({row[1] for row in rows}):
        own = sorted((row for row in rows if row[1] == place), key=lambda row: row[2])
        name = "node " + str(place[0]) if len(place) == 1 else f"link {place[0]} -> {place[1]}"
        for before, after in pairwise(own):
            if after[2] < before[3] - TOUCH:
                raise LoadFileError(
                    f"{file}: line {after[0]}: {name} overlaps line {before[0]}: "
                    f"start_time {after[2]:g} lies before its end_time {before[3]:g}"
                )
            if after[2] > before[3] + TOUCH:
                raise LoadFileError(
                    f"{file}: line {after[0]}: {name} has a gap "
                    f"from {before[3]:g} to {after[2]:g} s"
                )
        if own[0][2] > start + TOUCH or own[-1][3] < end - TOUCH:
            raise LoadFileError(
                f"{file}: line {own[-1][0]}: {name} has a gap: it covers {own[0][2]:g} to "
                f"{own[-1][3]:g} s, the file {start:g} to {end:g} s"
            )
        series[place] = [(row[2], row[3], row[4]) for row in own]
    return Recorded(series, start, end)


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
        check_choice(("repeat", "free"), beyond=self.beyond)

    def cpu(self, processors: int, per_node: int, rng: Generator, origin: float) -> BatchedCpu:
        """Begin the load of the processors."""
        recorded = read_load(Path(self.path), -(-processors // per_node), CPU_COLUMNS)
        node_of, first = np.arange(processors) // per_node, recorded.start
        begins = {node: [row[0] - first for row in rows] for node, rows in recorded.series.items()}
        changes = np.unique(np.concatenate(list(begins.values())))
        values = np.ones((processors, len(changes)))
        for place, rows in recorded.series.items():
            which = np.searchsorted(begins[place], changes, side="right") - 1
            values[node_of == place[0]] = np.array([row[2] for row in rows])[which]
        lap = np.diff(changes, append=recorded.end - first)[None, :], values
        several = -(-AT_ONCE // len(changes))
        after = np.tile(lap[0], several), np.tile(lap[1], several)
        if self.beyond == "free":
            after = np.full((1, 1), np.inf), np.ones((processors, 1))
        laps = chain([lap], repeat(after))
        return BatchedCpu(processors, np.array([origin]), lambda: next(laps))

    def links(self, nodes: int, rng: Generator, origin: float) -> Iterator[LinkRow]:
        """Begin the load of the links between nodes."""
        recorded = read_load(Path(self.path), nodes, NETWORK_COLUMNS)
        return self._link_rows(recorded, origin)

    def _link_rows(self, recorded: Recorded, origin: float) -> Iterator[LinkRow]:
        span, lap = recorded.end - recorded.start, 0
        rows = sorted(
            (start, end, source, destination, available)
            for (source, destination), series in recorded.series.items()
            for start, end, available in series
            if available < 1
        )
        while rows and (lap == 0 or self.beyond == "repeat"):
            shift = origin - recorded.start + lap * span
            for start, end, source, destination, available in rows:
                yield start + shift, end + shift, source, destination, available
            lap += 1
