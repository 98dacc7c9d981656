"""What a comparison writes: one self-contained page that works offline, tables and plots."""

import base64
import difflib
import math
import re
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import pandas as pd
import yaml

from predictors.cli.terminal import Display
from sim.errors import SimError
from sim.report import answers, gathering, tables
from sim.report.answers import Difference, LoadCurve, Winners
from sim.report.figures import Details, Plot, answer_plots, details, losses_of, plots_of, save
from sim.report.gathering import Group, Sample
from sim.report.verdict import Verdict, best_of, machine_sentence, subject_of, verdict
from sim.results import artefacts, durable, sentences, steady_state
from sim.results.plots.explorer import explorer_page
from sim.results.plots.pictures import SCHEDULE, RunFolder, figure_of
from sim.results.plots.style import picture
from sim.results.rows import MOLDED, molded_text, weighing_notes
from sim.statistics import LEAST_PAIRS, Family, Interval
from sim.sweeps.configurations import Configuration, read_configuration, shared_names

NUMBER = re.compile(r"^\s*[<±]?\s*(-?[\d,]*\.?\d+(?:e[+-]?\d+)?)")
"""A figure at the begin of a cell, by which its column is sorted."""


class Cell(NamedTuple):
    """A cell of a table: plain text, what stands below it, smaller, and by what it is sorted.

    That is the figure that the text begins with where there is no value. HTML stands in place of
    the text where there is some.
    """

    text: str
    small: str = ""
    value: str | None = None
    html: str = ""


def sort_value(text: str) -> str:
    """Return the figure that a text begins with, else the text; nothing for a dash.

    Examples
    --------
    >>> sort_value("-47.0 % [-60.0, -30.0]"), sort_value("1,234"), sort_value("–"), sort_value("sa")
    ('-47.0', '1234', '', 'sa')
    """
    found = NUMBER.match(text)
    return found[1].replace(",", "") if found else "" if text == "–" else text


def breaking(text: str) -> str:
    """Return a text that may break behind the signs within names and settings.

    Examples
    --------
    >>> breaking("user_estimate, workload.load=0.6")
    'user_<wbr>estimate, workload.<wbr>load=<wbr>0.6'
    """
    return re.sub(r"(?<=[A-Za-z])([_.=/])(?=\w)", r"\1<wbr>", escape(text))


def _cell(cell: Cell, side: str) -> str:
    value = sort_value(cell.text) if cell.value is None else cell.value
    small = f" <small>{escape(cell.small)}</small>" if cell.small else ""
    inner = cell.html or breaking(cell.text)
    return f'<td data-value="{escape(value)}"{side}>{inner}{small}</td>'


def table(
    caption: str,
    head: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    words: Sequence[str] = (),
    name: str = "",
) -> str:
    """Return a table that sorts by a click on a heading and scrolls within itself.

    Words are the headings of columns that hold words, not numbers; its name is its id.
    """
    sides = [' class="text"' if one in words else "" for one in head]
    heads = "".join(
        f'<th scope="col"{side}><button type="button">{breaking(one)}</button></th>'
        for one, side in zip(head, sides, strict=True)
    )
    body = "".join(
        f"<tr>{''.join(_cell(c, side) for c, side in zip(row, sides, strict=True))}</tr>"
        for row in rows
    )
    marked = f' id="{name}"' if name else ""
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}">'
        f"<table{marked}><caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def frame_table(caption: str, frame: pd.DataFrame, words: Sequence[str] = ()) -> str:
    """Return a table of text as a table of a page."""
    rows = [[Cell(str(value)) for value in row] for row in frame.itertuples(index=False)]
    return table(caption, list(map(str, frame.columns)), rows, words)


def fold(title: str, content: str) -> str:
    """Return what is shown when its title is opened."""
    return f"<details><summary>{escape(title)}</summary>{content}</details>" if content else ""


TEMPLATE = Path(__file__).with_name("page.html")
MOST_GANTT = 8
MOST_RUNS = 2000
"""So many runs are listed on the page; comparison.csv has all."""
NAMING = ("runs", "against", "jobs", tables.STOPS)
"""Columns of answers that hold words, not numbers."""
ON_TOP = "change"
"""The plot whose place the forest plot takes."""
OF_FORESIGHT, OF_BELIEFS = "gain_kept", ("error_by_count", "error_by_history")
"""Plots by what they are about."""
OF_LOSERS = (
    ("jobs", "of all jobs (%)", 0.01),
    ("longer", "later (%)", 0.01),
    ("before", "response before (h)", 3600.0),
    ("change", "change (min)", 60.0),
    ("waiting", "of it waiting (min)", 60.0),
)
"""Columns of a table of those that gain and lose, their headings, and one of their units."""
SHARES_BELOW = ["25 %", "50 %", "75 %", "90 %", "95 %", "100 %"]
CAPTION = (
    "Differences on the same jobs: mean paired log ratio as a change; simultaneous 95 % intervals "
    "from eight pairs on"
)
WHO_PAYS = (
    "Who bears the regret against the oracle: per job of the first simulations, whose tables are "
    "read for plots (--detail)"
)
WIDTH, HEIGHT = 200.0, 12.0
"""Of a bar within a table, in its own units."""


def limits(found: Sequence[Difference]) -> tuple[float, float]:
    """Return the ends of the axis: 0, all means, and the ends of intervals within four spans."""
    means = [one.change.mean for one in found if math.isfinite(one.change.mean)]
    low, high = min([0.0, *means]), max([0.0, *means])
    ends = [v for one in found for v in (one.span.low, one.span.high) if math.isfinite(v)]
    room = 3.0 * max(high - low, 1e-9)
    low = max(min([low, *ends]), low - room)
    high = min(max([high, *ends]), high + room)
    return (low, high) if high - low > 1e-9 else (-0.01, 0.01)


def bar(interval: Interval, ends: tuple[float, float]) -> str:
    """Return mean and interval as a picture in a line of text, zero dashed."""
    low, high = ends

    def x(value: float) -> float:
        share = (min(max(value, low), high) - low) / (high - low)
        return round(2.0 + share * (WIDTH - 4.0), 1)

    middle = HEIGHT / 2
    parts = [f'<line class="zero" x1="{x(0.0)}" x2="{x(0.0)}" y1="0" y2="{HEIGHT:g}"/>']
    if not math.isnan(interval.low):
        left, right = x(interval.low), x(interval.high)
        parts.append(
            f'<line class="span" x1="{left}" x2="{right}" y1="{middle:g}" y2="{middle:g}"/>'
        )
        beyond = [(left, 5.0)] * (interval.low < low) + [(right, -5.0)] * (interval.high > high)
        for at, back in beyond:  # an arrow where the interval goes on
            parts.append(
                f'<path fill="none" d="M{at + back:g} {middle - 4:g} '
                f'L{at:g} {middle:g} L{at + back:g} {middle + 4:g}"/>'
            )
    if math.isfinite(interval.mean):
        at = x(interval.mean)
        parts.append(f'<line class="mean" x1="{at}" x2="{at}" y1="1" y2="{HEIGHT - 1:g}"/>')
    return (
        f'<svg class="bar" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" preserveAspectRatio="none" '
        f'aria-hidden="true">{"".join(parts)}</svg>'
    )


def forest(order: Sequence[Group], found: Sequence[Difference], figure: str) -> str:
    """Return the changes of a figure, in words, as a table with bars, in the order of groups."""
    by_group = {one.group: one for one in found}
    references = {one.reference for one in found}
    ends = limits(found)
    rows = []
    for group in order:
        cell, span = Cell("reference", value="0"), Interval(0, math.nan, math.nan, 0)
        if one := by_group.get(group):
            text, _, limits_text = tables.changed(one).partition(" [")
            mark = (f"[{limits_text}" if limits_text else "") + " *" * one.comparison.certain
            cell, span = Cell(text, mark), one.span
        elif group not in references:
            continue
        bars = Cell("", html=bar(span, ends), value=str(span.mean))
        rows.append([Cell(group.label), cell, bars])
    if not rows:
        return ""
    against = " or ".join(dict.fromkeys(tables.reference_names(found).values()))
    spans = "simultaneous 95 % intervals; * excludes 0"
    if all(math.isnan(one.change.low) for one in found):
        spans = f"ranges of the pairs (intervals need at least {LEAST_PAIRS})"
    caption = f"Change of {figure} against {against}: {spans}"
    axis = f"{100 * ends[0]:.0f} to {100 * ends[1]:.0f} {found[0].unit}"
    return table(caption, ["runs", "change", axis], rows, ["runs"], "forest")


@dataclass
class Report:
    """What a report wrote and found.

    Attributes
    ----------
    written : list of pathlib.Path
    key : str
        Key of the summary by which groups are compared.
    differences, curves
        As `sim.report.answers` has them.
    regrets : dict
        Where regret against the oracle is felt, by label and by class and count.
    said : list of str
        Sentences that belong to every table of it.
    verdict : Verdict
        What is said first.
    winners : sequence of Winners
        Who gains and who loses by each run, the one that is asked about first.
    loses : str
        That of the latter in a sentence; empty without tables of jobs.
    """

    written: list[Path]
    key: str
    differences: list[Difference]
    curves: list[LoadCurve]
    regrets: dict[str, dict[str, pd.DataFrame]]
    said: list[str]
    verdict: Verdict
    winners: Sequence[Winners]
    loses: list[str]

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of a terminal that have rows, as text, by title."""
        found = {
            "Differences on the same jobs": tables.difference_rows(self.differences),
            tables.OVER_LOAD: tables.curve_rows(self.curves, self.key),
            tables.LOSES: tables.loss_rows(self.winners if len(self.winners) > 1 else ()),
        }
        return {title: table for title, table in found.items() if len(table)}


def page(
    report: Report,
    title: str,
    plots: Sequence[tuple[Plot, str]],
    found: Mapping[str, Details],
    table: pd.DataFrame,
    common: Mapping[str, object],
    gantt: str,
) -> str:
    """Return the page.

    Parameters
    ----------
    report, title
        What was found, and of what.
    plots : sequence of (Plot, str)
        With the text of their SVG.
    found : mapping of str to Details
        By the groups' labels, in the order of the verdict.
    table : pandas.DataFrame
        All runs, as `sim.report.gathering.gather` returns them.
    common : mapping
        The configuration that all runs share, by dotted key.
    gantt : str
        The schedules, and where to look into them.
    """
    groups = report.verdict.order
    keys = list(dict.fromkeys(key for group in groups for key in group.setting))
    samples = sum(len(group.samples) for group in groups)
    states = table["status"].value_counts()
    counted = ", ".join(f"{count:,} {escape(str(state))}" for state, count in states.items())
    if table.attrs.get(gathering.LEFT_OUT):
        counted += f" ({gathering.LEFT_OUT}: {table.attrs[gathering.LEFT_OUT]:,})"
    if table.attrs.get(gathering.NOT_THERE):
        counted += f", {escape(table.attrs[gathering.NOT_THERE])}"
    sizes = sorted({int(count) for group in groups for count in group.values("processors")})
    machine = " or ".join(f"{count:,}" for count in sizes)
    on = f" on {machine} processors" if machine else ""
    figures = {plot.name: _figure(plot, svg, found) for plot, svg in plots}
    configuration = yaml.safe_dump(dict(common), sort_keys=True, allow_unicode=True, width=100)
    rest = [name for name in figures if name not in (ON_TOP, OF_FORESIGHT, *OF_BELIEFS)]
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=escape(title),
        subtitle=f"{counted}; simulations: {samples:,}, groups: {len(groups):,}{on}.",
        verdict=_verdict(report.verdict),
        forest=forest(groups, report.differences, report.key.replace("_", " ")),
        selects=_selects(groups, keys),
        table=_key_table(groups, keys),
        said="".join(f"<p>{escape(sentence)}</p>" for sentence in report.said),
        foresight=_foresight(figures.get(OF_FORESIGHT, ""), report),
        gantt=gantt,
        winners=_winners(report.winners),
        beliefs="".join(figures.get(name, "") for name in OF_BELIEFS)
        or "<p>No predictor was asked.</p>",
        figures="".join(figures[name] for name in rest),
        differences=_differences(report),
        runs=_runs(table),
        configuration=f'<pre tabindex="0">{escape(configuration)}</pre>',
    )


def _verdict(verdict: Verdict) -> str:
    """Return the sentences and the three figures of the first screen."""
    parts = [f'<p id="{name}">{escape(one)}</p>' for name, one in verdict.sentences.items()]
    tiles = []
    for tile in verdict.tiles:
        value, _, span = tile.value.partition(" [")
        inner = f"{escape(value)}" + (f" <small>[{escape(span)}</small>" if span else "")
        tiles.append(
            f'<div class="tile" id="tile-{tile.name}"><dd>{inner}</dd>'
            f"<dt>{escape(tile.text)}</dt></div>"
        )
    return "".join(parts) + (f'<dl class="tiles">{"".join(tiles)}</dl>' if tiles else "")


def _foresight(kept: str, report: Report) -> str:
    """Return the share of the oracle's gain by predictor, and below it, folded, who pays."""
    if not kept:
        why = {one.kept for one in report.differences if isinstance(one.kept, str)} - {""}
        if why:
            return f"<p>No share of the oracle's gain is known: {', '.join(sorted(why))}.</p>"
        return "<p>No policy has runs both with predictor=oracle and with another predictor.</p>"
    note = (
        "<p>100 % is what the oracle of runtimes gains under the same policy. A predictor may gain "
        "more, and the oracle may do worse than the reference: rules decide job by job, and what "
        "is best for one job is not for those behind it. Intervals are Fieller's.</p>"
    )
    regret = tables.regret_rows(report.regrets)
    lost = frame_table(WHO_PAYS, regret, NAMING) if len(regret) else ""
    return f'{note}<div class="figures">{kept}</div>{fold("Where predictors lose", lost)}'


def _winners(found: Sequence[Winners]) -> str:
    """Return who gains and who loses by a run of choice, by class, user and application."""
    if not found:
        return "<p>No run has its tables of jobs and its reference's.</p>"
    return _picked("whom", "whose", "div", [(who.own, _loss_tables(who)) for who in found])


def _picked(name: str, picks: str, tag: str, parts: Sequence[tuple[str, str]]) -> str:
    """Return a choice of a run by its label, and the elements of runs, the first one shown."""
    options = shown = ""
    for k, (label, content) in enumerate(parts):
        options += f'<option value="{k}">{escape(label)}</option>'
        shown += f'<{tag} data-{picks}="{k}"{" hidden" if k else ""}>{content}</{tag}>'
    select = f'<select id="{name}" data-picks="{picks}">{options}</select>'
    return f'<p class="pick"><label>Run {select}</label></p>{shown}'


def _loss_tables(who: Winners) -> str:
    """Return who gains and who loses by one run."""
    parts = [f"<p>{escape(who.sentence())}</p>"]
    for kind, frame in who.tables.items():
        cut = len(frame) > answers.MOST_ROWS
        shown = answers.most_affected(frame) if cut else frame
        names = [str(name).replace("_", " ") if kind == "class" else name for name in shown.index]
        figures = {
            head: list(map(tables.number, shown[key] / unit)) for key, head, unit in OF_LOSERS
        }
        rows = pd.DataFrame({kind: names} | figures)
        most = who.meaning
        if kind != "class":
            most = f" (of {len(frame):,} those that lose and gain most in total)" if cut else ""
            most += " in the first simulation; each draws its own" if who.anew else ""
        parts.append(frame_table(f"Mean response by {kind}{most}", rows, [kind]))
    return "".join(parts)


def _differences(report: Report) -> str:
    """Return the tables of differences and of load curves."""
    parts = []
    if report.differences:
        parts.append(frame_table(CAPTION, tables.difference_rows(report.differences), NAMING))
        parts.append(f"<p>{escape(tables.BY_WHAT)}</p>")
    if report.curves:
        over_load = tables.curve_rows(report.curves, report.key)
        parts.append(frame_table(tables.OVER_LOAD, over_load, NAMING))
    return "".join(parts) or "<p>No runs on the same jobs to compare.</p>"


def _selects(groups: Sequence[Group], keys: Sequence[str]) -> str:
    parts = []
    for column, key in enumerate(keys):
        values = sorted({str(group.setting[key]) for group in groups})
        if 1 < len(values) <= 100:
            options = "".join(f"<option>{escape(value)}</option>" for value in values)
            parts.append(
                f'<label>{escape(key)} <select data-column="{column}">'
                f'<option value="">all</option>{options}</select></label>'
            )
    return "".join(parts)


def _key_table(groups: Sequence[Group], keys: Sequence[str]) -> str:
    """Return the key figures, a row a group; menu and role where they tell rows apart."""
    headings, found = tables.key_figures(groups)
    columns = {key: [str(group.setting[key]) for group in groups] for key in keys}
    columns["allocation choices"] = [group.menu or "–" for group in groups]
    columns["role"] = [gathering.SUFFIXES.get(group.role, group.role) for group in groups]
    words = [name for name, own in columns.items() if name in keys or len({*own}) > 1]
    rows = []
    for place, (group, figures) in enumerate(zip(groups, found, strict=True)):
        cells = [Cell(columns[name][place], value=columns[name][place]) for name in words]
        cells.append(Cell(molded_text(group.summaries), value=""))
        cells += [
            Cell(mean, half and f"± {half}", repr(value) if value == value else "")  # NaN is not
            for mean, half, value in figures
        ]
        rows.append([*cells, Cell(tables.size(group), value=str(len(group.samples)))])
    head = [*words, MOLDED, *headings, "simulations"]
    caption = "Means over repetitions (seeds and replications), with 95 % intervals"
    return table(caption, head, rows, words, "figures")


def _figure(plot: Plot, svg: str, found: Mapping[str, Details]) -> str:
    said = f"{plot.caption} {plot.left_out}".rstrip()
    shown = picture(svg, f"{plot.title}. {said}")
    below = fold("In numbers", _numbers(plot, found))
    return (
        f'<figure id="plot-{plot.name}">{shown}<figcaption>'
        f"<strong>{escape(plot.title)}.</strong> {escape(said)}{below}"
        "</figcaption></figure>"
    )


def _numbers(plot: Plot, found: Mapping[str, Details]) -> str:
    """Return a plot's figures as a table, in place of the picture."""
    rows: dict[str, Any]
    corner, columns = plot.title, None
    if plot.name in OF_BELIEFS:
        column = plot.name.removeprefix("error_")
        rows = {label: 100 * getattr(one, column) for label, one in found.items()}
        corner += ": median error (%) from this many on"
    elif plot.name == "slowdown":
        rows = {label: d.slowdown[[50, 100, 150, 180, 190, 200]] for label, d in found.items()}
        corner, columns = "bounded slowdown at or below", SHARES_BELOW
    elif plot.name == "losses":
        names = {name: label for name, label, _, _ in losses_of(found.values())}
        names |= {"misprediction": "planned wrongly (beside the others)"}
        rows = {label: [100 * one.losses[name] for name in names] for label, one in found.items()}
        corner, columns = "share (%)", list(names.values())
    elif plot.name == "load":
        rows = {
            label: [100 * one.busy.mean(), one.queued.mean(), one.queued.max()]
            for label, one in found.items()
        }
        columns = ["mean busy (%)", "mean waiting jobs", "most waiting jobs"]
    else:
        return ""
    frame = pd.DataFrame(rows, index=columns).T
    return frame_table(corner, frame.map(tables.number).rename_axis("runs").reset_index(), ["runs"])


def _picture(sample: Sample) -> bytes | None:
    """Return a run's picture, drawn if it has none yet; None where its tables are missing."""
    if (sample.folder / "schedule.png").exists():
        return (sample.folder / "schedule.png").read_bytes()
    if not artefacts.has_tables(sample.folder):
        return None
    drawn, run = BytesIO(), RunFolder(artefacts.read_tables(sample.folder), sample.summary)
    figure_of(run, SCHEDULE).savefig(drawn, metadata={"Software": None})
    return drawn.getvalue()


def schedules(groups: Sequence[Group], asked: Sequence[str], progress: Display) -> str:
    """Return the schedules of the runs that are asked for; without it, the first of each group."""
    labels = {sample.name: group.label for group in groups for sample in group.samples}
    chosen = [one for group in groups for one in group.samples if one.name in asked]
    if not asked:
        chosen = [group.samples[0] for group in groups if group.samples]
    each = progress.each(chosen[:MOST_GANTT], "draws schedules")
    parts = []
    for sample in each:
        if (png := _picture(sample)) is None:
            continue
        jobs, processors = (sample.summary.get(key) for key in ("jobs", "processors"))
        told = f"Gantt chart of {sample.name}: processors over time, utilisation and queue below. "
        label = labels[sample.name]
        shown = (
            f'<img src="data:image/png;base64,{base64.b64encode(png).decode()}" '
            f'alt="{escape(f"{told}{jobs} jobs on {processors} processors.")}">'
            f"<figcaption><strong>{escape(label)}</strong> ({escape(sample.name)})</figcaption>"
        )
        parts.append((f"{label}: {sample.name}", shown))
    if not parts:
        return "<p>No run has the tables of its schedule.</p>"
    return _picked("pick", "gantt", "figure", parts)


def _runs(listed: pd.DataFrame) -> str:
    names = ["run", "role", "status", "message"]
    shown = listed.iloc[:MOST_RUNS][names].astype(str)
    bad = int((listed["status"] != "finished").sum())
    state = "" if not bad else f'<p class="failed">{bad:,} did not finish.</p>'
    left = len(listed) - MOST_RUNS
    more = f"<p>{left:,} more are in comparison.csv.</p>" if left > 0 else ""
    return state + fold(f"All {len(listed):,} rows", frame_table("Runs", shown, names) + more)


PAGE, PARQUET, PLOTS = "comparison.html", "comparison.parquet", "plots"
EXPLORER = "explorer.html"
LOOK = (
    f'<p><a href="{PLOTS}/{EXPLORER}">Look into the best and its reference on one time axis</a>: '
    "zoom, brush, hover over a job.</p>"
)
MOST_EXPLORED = 2000
"""Jobs up to which the best and its reference are laid side by side to look into."""
COMMON_RUNS = 200
"""So many runs say which configuration all share."""
DIFFERENCES = "differences.csv"
TABLES: dict[tables.Form, str] = {"latex": "comparison.tex", "markdown": "comparison.md"}
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
    plain = gathering.distinct(table)
    mixed = [c for c in plain.columns if plain[c].map(type).nunique() > 1 and plain[c].dtype == "O"]
    plain = plain.assign(**{c: plain[c].map(str, na_action="ignore") for c in mixed})
    with durable.replaced(folder / PARQUET) as made:
        artefacts.write_table(plain, made)
    return folder / PARQUET


def _sentences(groups: Sequence[Group], names: Mapping[str, str], family: Family) -> list[str]:
    """Return what a reader must know beside the figures of groups, a sentence each."""
    own = {group.label: group.summaries for group in groups}
    return [
        *sentences.backtest_sentences(
            sample.folder for group in groups for sample in group.samples[:1]
        ),
        *(ALL.format(key, name) for key, name in names.items()),
        *tables.given_sentences(groups),
        *weighing_notes(max(map(len, own.values()), default=0)),
        *([JOINT] if family.intervals > 1 else []),
        *tables.schedule_sentences(groups),
        *machine_sentence(groups),
        *steady_state.windows_sentences(own, family.block, family.correlation),
    ]


def _check(folder: Path, figures: pd.DataFrame, wanted: Namespace) -> None:
    """Refuse what is asked for and is not there."""
    if wanted.detail < 1:
        raise SimError(f"--detail {wanted.detail}: must be at least 1")
    numbers = figures.select_dtypes("number").columns.tolist()
    if numbers and wanted.figure not in numbers:
        near = difflib.get_close_matches(wanted.figure, numbers, 3) or sorted(numbers)[:3]
        raise SimError(
            f"--figure {wanted.figure}: there is no such figure in {durable.SUMMARY}; "
            f"there are {', '.join(near)} and others"
        )
    unknown = [run for run in wanted.gantt if not (folder / run / durable.SUMMARY).is_file()]
    if unknown:
        raise SimError(f"--gantt {unknown[0]}: there is no finished run of that name in {folder}")


def write_report(gathered: gathering.Gathered, wanted: Namespace, progress: Display) -> Report:
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
    _check(folder, table.iloc[:, len(gathering.FIXED) + len(keys) :], wanted)
    there = table.loc[table["status"] != "damaged", "run"].unique()[:COMMON_RUNS]
    runs = [read_configuration(folder / name) for name in there]
    progress.show("compares the groups")
    groups = gathering.groups_of(folder, table, keys, known)
    labels = {group.label.replace(", ", ","): group.label for group in groups}
    against, subject = (
        labels.get((asked or "").replace(", ", ","), asked)
        for asked in (wanted.against, wanted.subject)
    )
    every, family = answers.differences(groups, wanted.figure, against)
    said = _sentences(groups, shared_names(runs, keys), family)
    written, apart = [write_parquet(table, folder)], folder / DIFFERENCES
    apart.unlink(missing_ok=True)
    if every:
        durable.write_csv(tables.difference_figures(every), apart)
        written.append(apart)
    for form, name in TABLES.items():
        if getattr(wanted, form):
            changes = {one.group.label: tables.changed(one) for one in every}
            durable.write_whole(folder / name, tables.text_table(groups, form, said, changes))
            written.append(folder / name)
    best = best_of(every)
    asked = best if subject is None else subject_of(every, groups, subject)
    told_of = [] if asked is None else [asked, *(one for one in every if one is not asked)]
    who = [answers.losers(one) for one in told_of[: 1 + MOST_ASKED]]
    first = sentences.distrusted(said)
    said_first = verdict(groups, every, who[0] if who else None, asked, first)
    said = [one for one in said if one not in first]
    loses = [one.sentence() for one in who[:1] if one is not None]
    ends = {key.rpartition(".")[2] for key in keys}
    loses += [said for key, said in KEPT_APART.items() if key in ends]
    curves = answers.load_curves(groups, wanted.figure)
    lost = answers.regrets(groups, wanted.detail) if wanted.page else {}
    told = [one for one in who if one is not None]
    report = Report(written, wanted.figure, every, curves, lost, said, said_first, told, loses)
    if not wanted.page or not groups:
        return report
    order = said_first.order
    found = {g.label: d for g in order if (d := details(g, wanted.detail)) is not None}
    plots = folder / PLOTS
    durable.real_folder(plots)
    asked_for = answer_plots(every, curves, groups, wanted.figure)
    drawn, drawings = [], [*asked_for, *plots_of(groups, found)]
    with progress.part(0, 2):
        for place, plot in enumerate(drawings):
            drawing = f"draws {plot.name}, {place + 1} of {len(drawings)}"
            progress.show(drawing, place / len(drawings))
            drawn.append((plot, save(plot, plots)))
    explorer = plots / EXPLORER
    explorer.unlink(missing_ok=True)
    if best is not None and (text := _explored(best)):
        durable.write_whole(explorer, text)
    title = f"Comparison of {folder.resolve().name}"
    with progress.part(1, 2):
        shown = LOOK * explorer.is_file() + schedules(order, wanted.gantt, progress)
        text = page(report, title, drawn, found, table, common_values(runs), shown)
    durable.write_whole(folder / PAGE, text)
    written += [folder / PAGE, plots]
    return report


def _explored(best: Difference) -> str:
    """Return a page to look into the best and its reference; nothing of large or bare runs."""
    groups, runs = (best.group, best.reference), []
    for sample, group in zip(gathering.shared(*groups)[0], groups, strict=True):
        jobs = float(sample.summary.get("jobs") or math.inf)
        known = artefacts.has_tables(sample.folder) and sample.summary.get("processors")
        if not known or jobs > MOST_EXPLORED:
            return ""
        runs.append(RunFolder(artefacts.read_tables(sample.folder), sample.summary, group.label))
    try:
        return explorer_page(runs)
    except (SimError, KeyError):
        return ""  # no Plotly, or tables of other columns
