"""Everything that a comparison writes beside ``comparison.csv``."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from sim.artefacts import write_table
from sim.configurations import Configuration
from sim.report.details import details
from sim.report.figures import plots_of, save
from sim.report.page import page
from sim.report.samples import groups_of
from sim.report.tables import text_table

PAGE, PARQUET, PLOTS = "comparison.html", "comparison.parquet", "plots"


@dataclass(frozen=True)
class Wanted:
    """What a report may leave out or add.

    Attributes
    ----------
    page : bool
        Plots and the page.
    latex, markdown : bool
        The key table as ``comparison.tex`` and ``comparison.md``.
    gantt : tuple of str
        Runs whose schedules the page shows.
    detail : int
        Samples of each group whose tables are read.
    """

    page: bool = True
    latex: bool = False
    markdown: bool = False
    gantt: tuple[str, ...] = ()
    detail: int = 3


def common_values(configurations: Iterable[Configuration]) -> dict[str, object]:
    """Return the keys that have one value in all configurations."""
    common: dict[str, object] | None = None
    for each in configurations:
        mine = each.values
        common = dict(mine) if common is None else common
        common = {k: v for k, v in common.items() if k in mine and mine[k] == v}
    return common or {}


def write_parquet(table: pd.DataFrame, folder: Path) -> Path:
    """Write the comparison as Parquet; a key named like a figure gets a dot behind it."""
    names: list[str] = []
    for name in map(str, table.columns):
        names.append(f"{name}." if name in names else name)
    plain = table.set_axis(names, axis="columns")
    mixed = [c for c in plain.columns if plain[c].map(type).nunique() > 1 and plain[c].dtype == "O"]
    plain = plain.assign(**{c: plain[c].map(_text) for c in mixed})
    partial = folder / f".{PARQUET}.partial"
    write_table(plain, partial)
    partial.replace(folder / PARQUET)
    return folder / PARQUET


def _text(value: object) -> str | None:
    return None if value is None or value != value else str(value)


def write_report(
    folder: Path,
    table: pd.DataFrame,
    keys: Sequence[str],
    common: dict[str, object],
    wanted: Wanted,
) -> list[Path]:
    """Write plots, page and tables of a comparison, and return the files.

    Parameters
    ----------
    folder : pathlib.Path
        The compared one.
    table, keys
        As `sim.compare.gather` returns them.
    common : dict
        The configuration that all runs share.
    wanted : Wanted
    """
    groups = groups_of(folder, table, keys)
    written = [write_parquet(table, folder)]
    for form, name, asked in (
        ("latex", "comparison.tex", wanted.latex),
        ("markdown", "comparison.md", wanted.markdown),
    ):
        if asked:
            (folder / name).write_text(text_table(groups, form), encoding="utf-8")  # type: ignore[arg-type]
            written.append(folder / name)
    if not wanted.page or not groups:
        return written
    found = {g.label: d for g in groups if (d := details(g, wanted.detail)) is not None}
    plots = folder / PLOTS
    plots.mkdir(exist_ok=True)
    drawn = [(plot, save(plot, plots)) for plot in plots_of(groups, found)]
    name = folder.resolve().name
    text = page(f"Comparison of {name}", groups, drawn, found, table, common, wanted.gantt)
    partial = folder / f".{PAGE}.partial"
    partial.write_text(text, encoding="utf-8")
    partial.replace(folder / PAGE)
    return [*written, folder / PAGE, plots]
