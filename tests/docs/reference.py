"""Write the pages of docs/reference/ from the code: python -m tests.docs.reference."""

import re
from collections.abc import Iterator
from pathlib import Path

import predictors
import sim
import workloads
from sim.command.main import there_are
from sim.help.meanings import COLUMNS, FIGURES
from sim.help.misspellings import groups
from sim.help.pages import CONFIG_FOLDER, key_lines, options, read_option
from sim.results.artefacts import UNITS

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference"
MADE = "Made from the code by `python -m tests.docs.reference`; a test compares the two."
SECTIONS = (
    ("Simulations", "sim.library"),
    ("Parts of a simulation", "sim."),
    ("Predictors", "predictors."),
    ("Workloads", "workloads."),
)


def row(*cells: str) -> str:
    """Return a row of a Markdown table."""
    inside = (re.sub(r"`[^`]*`|\*", _plain, cell.replace("|", "\\|")).strip() for cell in cells)
    return f"| {' | '.join(inside)} |".replace("|  |", "| |")


def _plain(found: re.Match[str]) -> str:
    """Return a star as text; code stays as it is."""
    return "\\*" if found[0] == "*" else found[0]


def code(text: str) -> str:
    """Return a text as code of a table's cell."""
    return f"`{text}`"


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Yield the lines of a table and an empty one; nothing without rows."""
    if rows:
        yield row(*heads)
        yield f"|{' --- |' * len(heads)}"
        yield from (row(*one) for one in rows)
        yield ""


def keys() -> Iterator[str]:
    """Yield the page of commands, groups and keys."""
    yield from ("# Commands and keys", "", MADE, "")
    yield from ("`moldsim help NAME` shows any part of it. A group's option is swapped by name",)
    yield from ("(`policy=easy`); its keys follow it (`policy.backfill.replan=true`).", "")
    yield from ("## Commands", "")
    told = [(code(f"moldsim {name}"), one.text) for name, one in there_are().items()]
    yield from table(("command", "what for"), told)
    yield from ("## Of a run", "")
    closed = key_lines("", [read_option(CONFIG_FOLDER / "config.yaml")])
    yield from table(("key", "meaning"), [(code(k), text) for k, text in closed if text])
    for group in sorted(groups()):
        found = options(group, CONFIG_FOLDER)
        yield from (f"## {group}", "")
        yield from table(("option", "what it is"), [(code(o.name), o.about) for o in found])
        if group != "experiment":
            lines = key_lines(group.replace("/", ".") + ".", found)
            yield from table(("key", "meaning"), [(code(key), text) for key, text in lines])


def columns() -> Iterator[str]:
    """Yield the page of columns and figures."""
    yield from ("# Columns and figures", "", MADE, "")
    yield from ("Times are seconds from the origin of the trace, shares and errors plain numbers.",)
    yield from ("Columns that need an option are there with it alone.", "")
    for file, meanings in COLUMNS.items():
        yield from (f"## {file}", "")
        rows = [(code(name), UNITS.get(name, ""), text) for name, text in meanings.items()]
        yield from table(("column", "unit", "meaning"), rows)
    yield from ("## summary.json", "")
    yield from (
        "A `*` stands for any part of a name. `python -m sim.compare` makes columns of them.",
        "",
    )
    kinds = [(", ".join(map(code, one.patterns)), one.meaning, one.source) for one in FIGURES]
    yield from table(("keys", "meaning", "source"), kinds)


def functions() -> Iterator[str]:
    """Yield the page of public names, for mkdocstrings to fill in."""
    yield from ("# Public names", "", MADE, "")
    yield from (
        "`help(sim.run)` in Python shows the same. From version 0.2.0 on these names follow",
    )
    yield from ("semantic versioning.", "")
    packages = (sim, predictors, workloads)
    left = [f"{one._MODULES[name]}.{name}" for one in packages for name in one.__all__]
    errors = [name for name in left if ".errors." in name]
    left = [name for name in left if name not in errors]
    for title, start in SECTIONS:
        mine = [name for name in left if name.startswith(start)]
        left = [name for name in left if name not in mine]
        yield from (f"## {title}", "", *(f"::: {name}" for name in mine), "")
    yield from ("## Errors", "", *(f"::: {name}" for name in errors), "")


PAGES = {"keys.md": keys, "columns.md": columns, "functions.md": functions}


def main() -> None:
    """Write all pages."""
    FOLDER.mkdir(exist_ok=True)
    for name, lines in PAGES.items():
        (FOLDER / name).write_text("\n".join(lines()), encoding="utf-8")


if __name__ == "__main__":
    main()
