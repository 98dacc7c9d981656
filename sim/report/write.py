"""Everything that a comparison writes beside ``comparison.csv``."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from sim.report.answer_tables import Answers, answers, difference_figures
from sim.report.answers import FIGURE, Curve, Difference
from sim.report.details import details
from sim.report.figures import (
    MARKERS,
    MOST_BARS,
    MOST_LINES,
    Plot,
    plots_of,
    save,
)
from sim.report.gathering import distinct
from sim.report.page import Report, page
from sim.report.samples import groups_of
from sim.report.tables import given_sentences, schedule_sentences, text_table
from sim.results.artefacts import write_table
from sim.results.plots.style import LINE_COLOURS, legend, line, tidy
from sim.statistics.intervals import Interval
from sim.sweeps.configurations import Configuration

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Labelled = Sequence[tuple[str, Interval]]


def interval_bars(
    rows: Labelled, label: str, scale: float = 0.01, mark: float = 0.0
) -> Callable[["Figure"], None]:
    """Return what draws means with whiskers, the first at the top, and a line at `mark`.

    Parameters
    ----------
    rows : sequence of (str, Interval)
    label : str
        Of the axis.
    scale : float
        One unit of the axis, in units of the intervals.
    mark : float
        In units of the axis.
    """

    def draw(figure: "Figure") -> None:
        axes = figure.add_subplot()
        places = np.arange(len(rows))
        means = np.array([interval.mean for _, interval in rows]) / scale
        low = np.nan_to_num(means - [i.low / scale for _, i in rows], posinf=0.0)
        high = np.nan_to_num([i.high / scale for _, i in rows] - means, posinf=0.0)
        low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)  # no width, but for rounding
        axes.errorbar(
            means, places, xerr=[low, high], fmt="o", markersize=5, color=LINE_COLOURS[0],
            elinewidth=1.4, capsize=3,
        )  # fmt: skip
        axes.axvline(mark, color="#555555", linewidth=1.0, linestyle="--")
        axes.set_yticks(places, [name for name, _ in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel(label)
        tidy(axes)

    return draw


def load_lines(curves: Sequence[Curve], label: str, scale: float) -> Callable[["Figure"], None]:
    """Return what draws figures over load, each up to saturation."""

    def draw(figure: "Figure") -> None:
        axes = figure.add_subplot()
        for number, one in enumerate(curves):
            loads = list(one.points)
            means = [interval.mean / scale for interval in one.points.values()]
            halves = np.nan_to_num([interval.half / scale for interval in one.points.values()])
            stop = one.saturates_at
            name = one.label if stop is None else f"{one.label} (saturated from {stop:g} on)"
            axes.errorbar(
                loads, means, yerr=halves, marker=MARKERS[number % len(MARKERS)], markersize=5,
                capsize=2.5, label=name, **line(number),
            )  # fmt: skip
            if stop is not None and loads:
                axes.plot(loads[-1], means[-1], marker="|", markersize=18, **line(number))
        axes.set(xlabel="offered load", ylabel=label)
        axes.set_ylim(bottom=0)
        legend(axes)
        tidy(axes)

    return draw


def answer_plots(
    found: Sequence[Difference], curves: Sequence[Curve], unit: tuple[str, float]
) -> list[Plot]:
    """Return the plots of the answers that a comparison has.

    Parameters
    ----------
    found : sequence of Difference
    curves : sequence of Curve
    unit : (str, float)
        Name of the figure that is compared with its unit, and one of that in
        the figure's own.
    """
    plots = []
    paired = "On the same jobs, replication by replication; whiskers are 95 % intervals."
    changes = [(one.group.label, one.change) for one in found]
    changes = [row for row in changes if np.isfinite(row[1].mean)][:MOST_BARS]
    if changes:
        against = " or ".join(dict.fromkeys(one.reference.label for one in found))
        points = "percentage points" if found[0].is_share else "%"
        draw = interval_bars(changes, f"change of {unit[0].partition(' (')[0]} ({points})")
        plots.append(Plot("change", f"Change against {against}", paired, draw))
    kept = [(one.group.label, one.kept) for one in found if one.kept is not None]
    rows = [(label, share) for label, share in kept if np.isfinite(share.mean)][:MOST_BARS]
    if rows:
        draw = interval_bars(rows, "share of the oracle's gain (%)", mark=100.0)
        title = "How much of the oracle's gain is kept"
        plots.append(Plot("gain_kept", title, f"{paired} 100 % is the oracle.", draw))
    if curves:
        some = curves[:MOST_LINES]
        title = f"{unit[0].partition(' (')[0].capitalize()} over load"
        caption = "Up to saturation, beyond which means depend on the run's length."
        plots.append(Plot("load_curves", title, caption, load_lines(some, *unit)))
    return plots


PAGE, PARQUET, PLOTS = "comparison.html", "comparison.parquet", "plots"
DIFFERENCES = "differences.csv"
ALL = "All have the {} {}."
UNITS = {"mean_response_time": ("mean response time (h)", 3600.0)}
"""Labels of axes and their units in seconds, of figures that are not shown as they are."""


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
    figure : str
        Key of the summary by which groups are compared.
    against : str or None
        Label of the group that others are compared with; None: a baseline or
        rigid jobs.
    """

    page: bool = True
    latex: bool = False
    markdown: bool = False
    gantt: tuple[str, ...] = ()
    detail: int = 3
    figure: str = FIGURE
    against: str | None = None


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
    plain = distinct(table)
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
    names: Mapping[str, str] = MappingProxyType({}),
) -> Report:
    """Write plots, page and tables of a comparison; return the files and the answers.

    Parameters
    ----------
    folder : pathlib.Path
        The compared one.
    table, keys
        As `sim.report.gathering.gather` returns them.
    common : dict
        The configuration that all runs share.
    wanted : Wanted
    names : mapping of str to str
        Policy and predictor, as far as all runs have the same.
    """
    groups = groups_of(folder, table, keys)
    found_answers = answers(groups, wanted.figure, wanted.against, wanted.detail)
    said = [ALL.format(key, name) for key, name in names.items()]
    said += [*given_sentences(groups), *schedule_sentences(groups)]
    written = [write_parquet(table, folder), *_write_differences(found_answers, folder)]
    for form, name, asked in (
        ("latex", "comparison.tex", wanted.latex),
        ("markdown", "comparison.md", wanted.markdown),
    ):
        if asked:
            (folder / name).write_text(text_table(groups, form, said), encoding="utf-8")  # type: ignore[arg-type]
            written.append(folder / name)
    report = Report(written, found_answers, said)
    if not wanted.page or not groups:
        return report
    found = {g.label: d for g in groups if (d := details(g, wanted.detail)) is not None}
    plots = folder / PLOTS
    plots.mkdir(exist_ok=True)
    unit = UNITS.get(wanted.figure, (wanted.figure.replace("_", " "), 1.0))
    answered = answer_plots(found_answers.differences, found_answers.curves, unit)
    drawn = [(plot, save(plot, plots)) for plot in [*answered, *plots_of(groups, found)]]
    name = folder.resolve().name
    title = f"Comparison of {name}"
    text = page(report, title, groups, drawn, found, table, common, wanted.gantt)
    partial = folder / f".{PAGE}.partial"
    partial.write_text(text, encoding="utf-8")
    partial.replace(folder / PAGE)
    written += [folder / PAGE, plots]
    return report


def _write_differences(found: Answers, folder: Path) -> list[Path]:
    """Write the differences in numbers, if there are any."""
    path = folder / DIFFERENCES
    path.unlink(missing_ok=True)
    if not found.differences:
        return []
    difference_figures(found.differences).to_csv(path, index=False, lineterminator="\n")
    return [path]
