"""What a run's tables and its summary hold: what ``meanings.yaml`` says of columns and figures."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TOLD: Any = yaml.load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"), _LOADER)
COLUMNS: Mapping[str, Mapping[str, str]] = _TOLD["columns"]
"""Meaning of each column by table; the units are in `sim.results.artefacts.UNITS`."""
FIGURES: Mapping[str, str] = _TOLD["figures"]
"""Kinds of keys of ``summary.json``, each by patterns of names, and their meaning."""


def column_names() -> list[str]:
    """Return "columns", the files, and the names of all columns, each once."""
    names = (name for columns in COLUMNS.values() for name in columns)
    return list(dict.fromkeys(["columns", *COLUMNS, "summary.json", *names]))


def meanings(name: str) -> Iterator[tuple[str, str]]:
    """Yield where a column or figure stands, and what it means; all for "columns" or a file.

    Examples
    --------
    >>> list(meanings("wait_time"))
    [('jobs.parquet: wait_time', 'start - submit')]
    >>> list(meanings("makespan"))[0][0]
    'summary.json: makespan'
    """
    for file, columns in COLUMNS.items():
        for column, meaning in columns.items():
            if name in (column, file, "columns"):
                yield f"{file}: {column}", meaning
    exact = any(name in patterns.split() for patterns in FIGURES)
    for patterns, meaning in FIGURES.items():
        every, parts = patterns.split(), meaning.split("; ")
        own = [one for one in every if name == one or (not exact and fnmatchcase(name, one))]
        if name in ("summary.json", "columns"):
            yield f"summary.json: {', '.join(every)}", meaning
        elif own:  # what it means by itself, where each of its kind has a part
            of_one = parts[every.index(own[-1])] if len(parts) == len(every) else meaning
            yield f"summary.json: {name}", of_one
