"""One self-contained page that works offline: tables, plots, schedules, configuration."""

import base64
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path
from string import Template
from typing import Any

import pandas as pd
import yaml

from predictors.cli.terminal import Display
from sim.report.answers import MOST_ROWS, Curve, Difference, Winners, most_affected
from sim.report.figures import Details, Plot, losses_of
from sim.report.gathering import LEFT_OUT, NOT_THERE, SUFFIXES, Group, Sample
from sim.report.tables import (
    BY_WHAT,
    LOSES,
    OVER_LOAD,
    STOPS,
    changed,
    curve_rows,
    difference_rows,
    key_figures,
    loss_rows,
    number,
    reference_names,
    regret_rows,
    size,
)
from sim.report.verdict import Verdict
from sim.results.artefacts import has_tables, read_tables
from sim.results.plots.pictures import schedule_figure
from sim.results.plots.style import picture
from sim.results.rows import MOLDED, molded_text
from sim.results.steady_state import EPOCH
from sim.statistics import LEAST_PAIRS, Interval

NUMBER = re.compile(r"^\s*[<±]?\s*(-?[\d,]*\.?\d+(?:e[+-]?\d+)?)")
"""A figure at the begin of a cell, by which its column is sorted."""


@dataclass(frozen=True)
class Cell:
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


def text_table(caption: str, frame: pd.DataFrame, words: Sequence[str] = ()) -> str:
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
NAMING = ("runs", "against", "jobs", STOPS)
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
Drawn = Sequence[tuple[str, Details]]
"""What tables of jobs say of a group, by its label."""
DIFFERENCES = (
    "Differences on the same jobs: mean paired log ratio as a change; simultaneous 95 % intervals "
    "from eight pairs on"
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
        one = by_group.get(group)
        if one is None:
            if group in references:
                nothing = Interval(0.0, math.nan, math.nan, 0)
                rows.append([Cell(group.label), Cell("reference", value="0"),
                             Cell("", html=bar(nothing, ends), value="0")])  # fmt: skip
            continue
        text, _, span = changed(one).partition(" [")
        mark = (f"[{span}" if span else "") + (" *" if one.comparison.certain else "")
        rows.append([Cell(group.label), Cell(text, mark),
                     Cell("", html=bar(one.span, ends), value=str(one.change.mean))])  # fmt: skip
    if not rows:
        return ""
    against = " or ".join(dict.fromkeys(reference_names(found).values()))
    unit = "pp" if found[0].is_share else "%"
    spans = "simultaneous 95 % intervals; * excludes 0"
    if all(math.isnan(one.change.low) for one in found):
        spans = f"ranges of the pairs (intervals need at least {LEAST_PAIRS})"
    caption = f"Change of {figure} against {against}: {spans}"
    axis = f"{100 * ends[0]:.0f} to {100 * ends[1]:.0f} {unit}"
    return table(caption, ["runs", "change", axis], rows, ["runs"], "forest")


@dataclass
class Report:
    """What a report wrote and found.

    Attributes
    ----------
    written : list of pathlib.Path
    key, figure : str
        Key of the summary by which groups are compared, and that in words.
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
    explorer : str
        Where the page to look into the best and its reference lies, if there is one.
    """

    written: list[Path]
    key: str
    figure: str
    differences: list[Difference]
    curves: list[Curve]
    regrets: dict[str, dict[str, pd.DataFrame]]
    said: list[str]
    verdict: Verdict
    winners: Sequence[Winners]
    loses: list[str]
    explorer: str = ""

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of a terminal that have rows, as text, by title."""
        found = {
            "Differences on the same jobs": difference_rows(self.differences),
            OVER_LOAD: curve_rows(self.curves, self.key),
            LOSES: loss_rows(self.winners if len(self.winners) > 1 else ()),
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
        By the groups' labels.
    table : pandas.DataFrame
        All runs, as `sim.report.gathering.gather` returns them.
    common : mapping
        The configuration that all runs share, by dotted key.
    gantt : str
        What `schedules` returns.
    """
    groups = report.verdict.order
    keys = list(dict.fromkeys(key for group in groups for key in group.setting))
    samples = sum(len(group.samples) for group in groups)
    states = table["status"].value_counts()
    counted = ", ".join(f"{count:,} {escape(str(state))}" for state, count in states.items())
    if table.attrs.get(LEFT_OUT):
        counted += f" ({LEFT_OUT}: {table.attrs[LEFT_OUT]:,})"
    if table.attrs.get(NOT_THERE):
        counted += f", {escape(table.attrs[NOT_THERE])}"
    sizes = sorted({int(size) for group in groups for size in group.values("processors")})
    machine = " or ".join(f"{size:,}" for size in sizes)
    on = f" on {machine} processors" if machine else ""
    drawn = [(group.label, found[group.label]) for group in groups if group.label in found]
    figures = {plot.name: _figure(plot, svg, drawn) for plot, svg in plots}
    configuration = yaml.safe_dump(dict(common), sort_keys=True, allow_unicode=True, width=100)
    rest = [name for name in figures if name not in (ON_TOP, OF_FORESIGHT, *OF_BELIEFS)]
    look = report.explorer and (
        f'<p><a href="{escape(report.explorer)}">Look into the best and its reference on one time '
        "axis</a>: zoom, brush, hover over a job.</p>"
    )
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=escape(title),
        subtitle=f"{counted}; simulations: {samples:,}, groups: {len(groups):,}{on}.",
        verdict=_verdict(report.verdict),
        forest=forest(groups, report.differences, report.figure),
        selects=_selects(groups, keys),
        table=_key_table(groups, keys),
        said="".join(f"<p>{escape(sentence)}</p>" for sentence in report.said),
        foresight=_foresight(figures.get(OF_FORESIGHT, ""), report),
        gantt=look + gantt,
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
    regret = regret_rows(report.regrets)
    lost = text_table(
        "Who bears the regret against the oracle: per job of the first simulations, whose tables "
        "are read for plots (--detail)",
        regret,
        NAMING,
    )
    return f'{note}<div class="figures">{kept}</div>' + (
        fold("Where predictors lose", lost) if len(regret) else ""
    )


def _winners(found: Sequence[Winners]) -> str:
    """Return who gains and who loses by a run of choice, by class, user and application."""
    if not found:
        return "<p>No run has its tables of jobs and its reference's.</p>"
    parts = [_picker("whom", "whose", [who.own for who in found])]
    for place, who in enumerate(found):
        shown = "" if place == 0 else " hidden"
        parts.append(f'<div data-whose="{place}"{shown}>{_loss_tables(who)}</div>')
    return "".join(parts)


def _picker(name: str, picks: str, labels: Sequence[str]) -> str:
    """Return a choice of a run, which shows what has its place as ``data-`` `picks`."""
    options = "".join(f'<option value="{k}">{escape(one)}</option>' for k, one in enumerate(labels))
    select = f'<select id="{name}" data-picks="{picks}">{options}</select>'
    return f'<p class="pick"><label>Run {select}</label></p>'


def _loss_tables(who: Winners) -> str:
    """Return who gains and who loses by one run."""
    parts = [f"<p>{escape(who.sentence())}</p>"]
    for kind, frame in who.tables.items():
        cut = len(frame) > MOST_ROWS
        shown = most_affected(frame) if cut else frame
        names = [str(name).replace("_", " ") if kind == "class" else name for name in shown.index]
        figures = {head: list(map(number, shown[key] / unit)) for key, head, unit in OF_LOSERS}
        rows = pd.DataFrame({kind: names} | figures)
        most = who.meaning
        if kind != "class":
            most = f" (of {len(frame):,} those that lose and gain most in total)" if cut else ""
            most += " in the first simulation; each draws its own" if who.anew else ""
        parts.append(text_table(f"Mean response by {kind}{most}", rows, [kind]))
    return "".join(parts)


def _differences(report: Report) -> str:
    """Return the tables of differences and of load curves."""
    parts = []
    if report.differences:
        parts.append(text_table(DIFFERENCES, difference_rows(report.differences), NAMING))
        parts.append(f"<p>{escape(BY_WHAT)}</p>")
    if report.curves:
        parts.append(text_table(OVER_LOAD, curve_rows(report.curves, report.key), NAMING))
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
    menus = len({group.menu for group in groups}) > 1
    roles = len({group.role for group in groups}) > 1
    words = [*keys, *(["allocation choices"] if menus else []), *(["role"] if roles else [])]
    headings, found = key_figures(groups)
    rows = []
    for group, figures in zip(groups, found, strict=True):
        left = [str(group.setting[key]) for key in keys]
        left += [group.menu or "–"] if menus else []
        left += [SUFFIXES.get(group.role, group.role)] if roles else []
        cells = [Cell(value, value=value) for value in left]
        cells.append(Cell(molded_text(group.summaries), value=""))
        cells += [
            Cell(mean, half and f"± {half}", repr(value) if value == value else "")  # NaN is not
            for mean, half, value in figures
        ]
        rows.append([*cells, Cell(size(group), value=str(len(group.samples)))])
    head = [*words, MOLDED, *headings, "simulations"]
    caption = "Means over repetitions (seeds and replications), with 95 % intervals"
    return table(caption, head, rows, words, "figures")


def _figure(plot: Plot, svg: str, drawn: Drawn) -> str:
    said = f"{plot.caption} {plot.left_out}".rstrip()
    shown = picture(svg, f"{plot.title}. {said}")
    below = fold("In numbers", _numbers(plot, drawn))
    return (
        f'<figure id="plot-{plot.name}">{shown}<figcaption>'
        f"<strong>{escape(plot.title)}.</strong> {escape(said)}{below}"
        "</figcaption></figure>"
    )


def _numbers(plot: Plot, drawn: Drawn) -> str:
    """Return a plot's figures as a table, in place of the picture."""
    rows: dict[str, Any]
    corner, columns = plot.title, None
    if plot.name in OF_BELIEFS:
        column = plot.name.removeprefix("error_")
        rows = {label: 100 * getattr(details, column) for label, details in drawn}
        corner += ": median error (%) from this many on"
    elif plot.name == "slowdown":
        rows = {label: d.slowdown[[50, 100, 150, 180, 190, 200]] for label, d in drawn}
        corner, columns = "bounded slowdown at or below", SHARES_BELOW
    elif plot.name == "losses":
        names = {name: label for name, label, _, _ in losses_of(d for _, d in drawn)}
        names |= {"misprediction": "planned wrongly (beside the others)"}
        rows = {label: [100 * d.losses[name] for name in names] for label, d in drawn}
        corner, columns = "share (%)", list(names.values())
    elif plot.name == "load":
        rows = {label: [100 * d.busy.mean(), d.queued.mean(), d.queued.max()] for label, d in drawn}
        columns = ["mean busy (%)", "mean waiting jobs", "most waiting jobs"]
    else:
        return ""
    frame = pd.DataFrame(rows, index=columns).T
    return text_table(corner, frame.map(number).rename_axis("runs").reset_index(), ["runs"])


def _picture(sample: Sample) -> bytes | None:
    """Return a run's picture, drawn if it has none yet; None where its tables are missing."""
    if (sample.folder / "schedule.png").exists():
        return (sample.folder / "schedule.png").read_bytes()
    if not has_tables(sample.folder):
        return None
    drawn, processors = BytesIO(), int(sample.summary.get("processors") or 1)
    tables, epoch = read_tables(sample.folder), sample.summary.get(EPOCH)
    schedule_figure(tables, processors, epoch=epoch).savefig(drawn, metadata={"Software": None})
    return drawn.getvalue()


def schedules(groups: Sequence[Group], asked: Sequence[str], progress: Display) -> str:
    """Return the schedules of the runs that are asked for; without it, the first of each group."""
    labels = {sample.name: group.label for group in groups for sample in group.samples}
    chosen = [one for group in groups for one in group.samples if one.name in asked]
    if not asked:
        chosen = [group.samples[0] for group in groups if group.samples]
    each = progress.each(chosen[:MOST_GANTT], "draws schedules")
    drawn = [(sample, _picture(sample)) for sample in each]
    pictures = [(sample, found) for sample, found in drawn if found is not None]
    if not pictures:
        return "<p>No run has the tables of its schedule.</p>"
    named = [f"{labels[sample.name]}: {sample.name}" for sample, _ in pictures]
    parts = [_picker("pick", "gantt", named)]
    for place, (sample, png) in enumerate(pictures):
        jobs, processors = (sample.summary.get(key) for key in ("jobs", "processors"))
        told = f"Gantt chart of {sample.name}: processors over time, utilisation and queue below. "
        parts.append(
            f'<figure data-gantt="{place}"{" hidden" if place else ""}>'
            f'<img src="data:image/png;base64,{base64.b64encode(png).decode()}" '
            f'alt="{escape(f"{told}{jobs} jobs on {processors} processors.")}">'
            f"<figcaption><strong>{escape(labels[sample.name])}</strong> ({escape(sample.name)})"
            "</figcaption></figure>"
        )
    return "".join(parts)


def _runs(listed: pd.DataFrame) -> str:
    names = ["run", "role", "status", "message"]
    shown = listed.iloc[:MOST_RUNS][names].astype(str)
    bad = int((listed["status"] != "finished").sum())
    state = "" if not bad else f'<p class="failed">{bad:,} did not finish.</p>'
    left = len(listed) - MOST_RUNS
    more = f"<p>{left:,} more are in comparison.csv.</p>" if left > 0 else ""
    return state + fold(f"All {len(listed):,} rows", text_table("Runs", shown, names) + more)
