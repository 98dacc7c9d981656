"""Everything that a comparison writes beside ``comparison.csv``."""

import difflib
import math
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from predictors.cli.terminal import Display
from sim.errors import SimError
from sim.report.answers import Difference, differences, load_curves, losers, regrets
from sim.report.figures import answer_plots, axis_of, details, plots_of, save
from sim.report.gathering import FIXED, Gathered, Group, distinct, groups_of, shared
from sim.report.page import Report, page, schedules
from sim.report.tables import (
    Form,
    changed,
    difference_figures,
    given_sentences,
    schedule_sentences,
    text_table,
)
from sim.report.verdict import best_of, machine_sentence, subject_of, verdict
from sim.results.artefacts import has_tables, read_tables, write_table
from sim.results.durable import SUMMARY, real_folder, replaced, write_csv, write_whole
from sim.results.plots.explorer import explorer_page
from sim.results.plots.pictures import RunFolder
from sim.results.rows import weighing_notes
from sim.results.sentences import backtest_sentences, distrusted
from sim.results.steady_state import windows_sentences
from sim.statistics import Family
from sim.sweeps.configurations import Configuration, read_configuration, shared_names

PAGE, PARQUET, PLOTS = "comparison.html", "comparison.parquet", "plots"
EXPLORER = "explorer.html"
MOST_EXPLORED = 2000
"""Jobs up to which the best and its reference are laid side by side to look into."""
COMMON_RUNS = 200
"""So many runs say which configuration all share."""
DIFFERENCES = "differences.csv"
TABLES: dict[Form, str] = {"latex": "comparison.tex", "markdown": "comparison.md"}
"""The key table in other forms, by the names of their options."""
JOINT = (
    "Of several comparisons quote the intervals that hold together (simultaneous ones); what is "
    "read alone is for one comparison that was chosen before anybody saw the results."
)
KEPT_APART = {
    "code": "Runs by different versions of the code are not paired. To do older ones again, start "
    "the sweep again by its command, which is in sweep.log.",
    "input": "Runs with other input files, or by other code of a package, are not paired: see the "
    "columns of comparison.csv whose names end in input. To do older ones again, start the sweep "
    "again by its command, which is in sweep.log.",
}
"""What is said of runs that such a key tells apart."""
MOST_ASKED = 20
"""Groups beside the one that is asked about of which it is told who loses."""
ALL = "All have the {} {}."


def common_values(configurations: Iterable[Configuration]) -> dict[str, object]:
    """Return the keys that have one value in all configurations."""
    every = [one.values for one in configurations]
    first = dict(every[0]) if every else {}
    return {k: v for k, v in first.items() if all(k in one and one[k] == v for one in every)}


def write_parquet(table: pd.DataFrame, folder: Path) -> Path:
    """Write the comparison as Parquet; a key named like a figure gets a dot behind it."""
    plain = distinct(table)
    mixed = [c for c in plain.columns if plain[c].map(type).nunique() > 1 and plain[c].dtype == "O"]
    plain = plain.assign(**{c: plain[c].map(str, na_action="ignore") for c in mixed})
    with replaced(folder / PARQUET) as made:
        write_table(plain, made)
    return folder / PARQUET


def _sentences(groups: Sequence[Group], names: Mapping[str, str], family: Family) -> list[str]:
    """Return what a reader must know beside the figures of groups, a sentence each."""
    own = {group.label: group.summaries for group in groups}
    return [
        *backtest_sentences(sample.folder for group in groups for sample in group.samples[:1]),
        *(ALL.format(key, name) for key, name in names.items()),
        *given_sentences(groups),
        *weighing_notes(max(map(len, own.values()), default=0)),
        *([JOINT] if family.intervals > 1 else []),
        *schedule_sentences(groups),
        *machine_sentence(groups),
        *windows_sentences(own, family.block, family.correlation),
    ]


def _check(folder: Path, figures: pd.DataFrame, wanted: Namespace) -> None:
    """Refuse what is asked for and is not there."""
    if wanted.detail < 1:
        raise SimError(f"--detail {wanted.detail}: must be at least 1")
    numbers = figures.select_dtypes("number").columns.tolist()
    if numbers and wanted.figure not in numbers:
        near = difflib.get_close_matches(wanted.figure, numbers, 3) or sorted(numbers)[:3]
        raise SimError(
            f"--figure {wanted.figure}: there is no such figure in {SUMMARY}; "
            f"there are {', '.join(near)} and others"
        )
    unknown = [run for run in wanted.gantt if not (folder / run / SUMMARY).is_file()]
    if unknown:
        raise SimError(f"--gantt {unknown[0]}: there is no finished run of that name in {folder}")


def write_report(gathered: Gathered, wanted: Namespace, progress: Display) -> Report:
    """Write plots, page and tables of a comparison; return the files and what was found.

    What is gathered is what `sim.report.gathering.gather` returns, wanted what the command line
    asks for, as `sim.compare.main` reads it.

    Raises
    ------
    SimError
        If there is no such figure or run, or a number is below 1: naming the option, its value
        and what is accepted.
    """
    table, keys, known = gathered
    folder: Path = wanted.folder
    _check(folder, table.iloc[:, len(FIXED) + len(keys) :], wanted)
    there = table.loc[table["status"] != "damaged", "run"].unique()[:COMMON_RUNS]
    runs = [read_configuration(folder / name) for name in there]
    progress.show("compares the groups")
    groups = groups_of(folder, table, keys, known)
    labels = {group.label.replace(", ", ","): group.label for group in groups}
    against, subject = (
        labels.get((asked or "").replace(", ", ","), asked)
        for asked in (wanted.against, wanted.subject)
    )
    every, family = differences(groups, wanted.figure, against)
    said = _sentences(groups, shared_names(runs, keys), family)
    written, apart = [write_parquet(table, folder)], folder / DIFFERENCES
    apart.unlink(missing_ok=True)
    if every:
        write_csv(difference_figures(every), apart)
        written.append(apart)
    for form, name in TABLES.items():
        if getattr(wanted, form):
            changes = {one.group.label: changed(one) for one in every}
            write_whole(folder / name, text_table(groups, form, said, changes))
            written.append(folder / name)
    best = best_of(every)
    asked = best if subject is None else subject_of(every, groups, subject)
    told_of = [] if asked is None else [asked, *(one for one in every if one is not asked)]
    who = [losers(one) for one in told_of[: 1 + MOST_ASKED]]
    first = distrusted(said)
    said_first = verdict(groups, every, who[0] if who else None, asked, first)
    said = [one for one in said if one not in first]
    loses = [one.sentence() for one in who[:1] if one is not None]
    ends = {key.rpartition(".")[2] for key in keys}
    loses += [said for key, said in KEPT_APART.items() if key in ends]
    unit = axis_of(wanted.figure, groups)
    curves = load_curves(groups, wanted.figure)
    lost = regrets(groups, wanted.detail) if wanted.page else {}
    words, told = unit[0].partition(" (")[0], [one for one in who if one is not None]
    key = wanted.figure
    report = Report(written, key, words, every, curves, lost, said, said_first, told, loses)
    if not wanted.page or not groups:
        return report
    found = {g.label: d for g in groups if (d := details(g, wanted.detail)) is not None}
    plots = folder / PLOTS
    real_folder(plots)
    drawn, drawings = [], [*answer_plots(every, curves, unit), *plots_of(groups, found)]
    with progress.part(0, 2):
        for place, plot in enumerate(drawings):
            drawing = f"draws {plot.name}, {place + 1} of {len(drawings)}"
            progress.show(drawing, place / len(drawings))
            drawn.append((plot, save(plot, plots)))
    explorer = plots / EXPLORER
    explorer.unlink(missing_ok=True)
    if best is not None and (text := _explored(best)):
        write_whole(explorer, text)
        report.explorer = f"{PLOTS}/{EXPLORER}"
    title = f"Comparison of {folder.resolve().name}"
    with progress.part(1, 2):
        shown = schedules(said_first.order, wanted.gantt, progress)
        text = page(report, title, drawn, found, table, common_values(runs), shown)
    write_whole(folder / PAGE, text)
    written += [folder / PAGE, plots]
    return report


def _explored(best: Difference) -> str:
    """Return a page to look into the best and its reference; nothing of large or bare runs."""
    groups, runs = (best.group, best.reference), []
    pairs = shared(*groups)
    if not pairs:
        return ""
    for sample, group in zip(pairs[0], groups, strict=True):
        jobs = float(sample.summary.get("jobs") or math.inf)
        known = has_tables(sample.folder) and sample.summary.get("processors")
        if not known or jobs > MOST_EXPLORED:
            return ""
        runs.append(RunFolder(read_tables(sample.folder), dict(sample.summary), group.label))
    try:
        return explorer_page(runs)
    except (SimError, KeyError):
        return ""  # no Plotly, or tables of other columns
