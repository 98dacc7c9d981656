"""One self-contained page that works offline: tables, plots, schedules, configuration."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import pandas as pd
import yaml

from sim.report.answer_tables import Answers, verdict
from sim.report.details import Details
from sim.report.figures import Plot, losses_of
from sim.report.samples import SUFFIXES, Estimate, Group
from sim.report.tables import COLUMNS, Column, halves, heading, key_rows, number, size

TEMPLATE = Path(__file__).with_name("page.html")
MOST_GANTT = 8
MOST_RUNS = 2000
"""So many runs are listed on the page; comparison.csv has all."""
NAMING = ("runs", "against", "jobs", "")
"""Columns of answers that hold words, not numbers."""


@dataclass(frozen=True)
class Report:
    """What a report wrote and found.

    Attributes
    ----------
    written : list of pathlib.Path
    answers : Answers
    said : list of str
        Sentences that belong to every table of it.
    """

    written: list[Path]
    answers: Answers
    said: list[str]


def page(
    report: Report,
    title: str,
    groups: Sequence[Group],
    plots: Sequence[tuple[Plot, str]],
    found: Mapping[str, Details],
    table: pd.DataFrame,
    common: Mapping[str, object],
    gantt: Sequence[str] = (),
) -> str:
    """Return the page.

    Parameters
    ----------
    report : Report
        Its answers, and the sentences below the key table.
    title : str
    groups : sequence of Group
    plots : sequence of (Plot, str)
        With the text of their SVG.
    found : mapping of str to Details
        By the groups' labels.
    table : pandas.DataFrame
        All runs, as `sim.report.gathering.gather` returns them.
    common : mapping
        The configuration that all runs share, by dotted key.
    gantt : sequence of str
        Folders of runs whose schedules are shown; without it, the first of each group.
    """
    keys = list(dict.fromkeys(key for group in groups for key in group.setting))
    samples = sum(len(group.samples) for group in groups)
    states = table["status"].value_counts()
    counted = ", ".join(f"{count:,} {escape(str(state))}" for state, count in states.items())
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=escape(title),
        subtitle=f"{counted}; {samples:,} simulations in {len(groups):,} groups.",
        selects=_selects(groups, keys),
        table=_key_table(groups, keys),
        said="".join(f"<p>{escape(sentence)}</p>" for sentence in report.said),
        answers=_answers(report.answers),
        figures="".join(_figure(plot, svg, groups, found) for plot, svg in plots),
        gantt=_gantt(groups, gantt),
        runs=_runs(table),
        configuration=_configuration(common),
    )


def _answers(answers: Answers | None) -> str:
    """Return the verdict and a table of each answer; a note where nothing can be compared."""
    tables = {} if answers is None else answers.tables()
    if answers is None or not tables:
        return "<p>No runs on the same jobs to compare: see <code>baseline=</code>.</p>"
    parts = [f"<p>{escape(sentence)}</p>" for sentence in verdict(answers.differences)]
    for title, table in tables.items():
        parts.append(f"<h3>{escape(title)}</h3>{_text_table(table)}")
    return "".join(parts)


def _text_table(table: pd.DataFrame) -> str:
    sides = [' class="text"' if name in NAMING else "" for name in table.columns]
    head = "".join(
        f'<th scope="col"{side}>{escape(str(name))}</th>'
        for name, side in zip(table.columns, sides, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(f"<td{side}>{escape(str(v))}</td>" for v, side in zip(row, sides, strict=True))
        + "</tr>"
        for row in table.itertuples(index=False)
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


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
    heads = [(key, "text") for key in [*keys, "menu", "role"]]
    heads += [(heading(column), "") for column in COLUMNS] + [("simulations", "")]
    head = "".join(
        f'<th scope="col" class="{kind}"><button type="button">{escape(name)}</button></th>'
        for name, kind in heads
    )
    rows = []
    for group, estimates in key_rows(groups):
        role = SUFFIXES.get(group.role, group.role)
        left = [*(str(group.setting[key]) for key in keys), group.menu or "–", role]
        cells = [f'<td class="text">{escape(value)}</td>' for value in left]
        cells += [_cell(e, c) for e, c in zip(estimates, COLUMNS, strict=True)]
        cells.append(f'<td data-value="{len(group.samples)}">{size(group)}</td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<table id="figures"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    )


def _cell(found: Estimate, column: Column) -> str:
    if found.mean != found.mean:  # NaN
        return '<td data-value="">–</td>'
    mean, half = halves(found, column)
    width = f" <small>± {half}</small>" if half else ""
    return f'<td data-value="{found.mean!r}">{mean}{width}</td>'


def _image(content: bytes, kind: str, alternative: str) -> str:
    data = base64.b64encode(content).decode()
    return f'<img src="data:image/{kind};base64,{data}" alt="{escape(alternative)}">'


def _figure(plot: Plot, svg: str, groups: Sequence[Group], found: Mapping[str, Details]) -> str:
    alternative = f"{plot.title}. {plot.caption}"
    numbers = _numbers(plot, groups, found)
    below = f"<details><summary>In numbers</summary>{numbers}</details>" if numbers else ""
    return (
        f'<figure id="plot-{plot.name}">{_image(svg.encode(), "svg+xml", alternative)}<figcaption>'
        f"<strong>{escape(plot.title)}.</strong> {escape(plot.caption)}{below}"
        "</figcaption></figure>"
    )


def _numbers(plot: Plot, groups: Sequence[Group], found: Mapping[str, Details]) -> str:
    """Return a plot's figures as a table, in place of the picture."""
    drawn = [(group.label, found[group.label]) for group in groups if group.label in found]
    if plot.name in ("error_by_count", "error_by_history"):
        column = plot.name.removeprefix("error_")
        series = {label: 100 * getattr(details, column) for label, details in drawn}
        return _plain_table(pd.DataFrame(series).T, "median error (%) from this many on")
    if plot.name == "slowdown":
        rows: dict[str, Any] = {
            label: d.slowdown[[50, 100, 150, 180, 190, 200]] for label, d in drawn
        }
        columns = ["25 %", "50 %", "75 %", "90 %", "95 %", "100 %"]
        return _plain_table(pd.DataFrame(rows, index=columns).T, "bounded slowdown at or below")
    if plot.name == "losses":
        names = {name: label for name, label, _, _ in losses_of(d for _, d in drawn)}
        names |= {"misprediction": "planned wrongly"}
        rows = {
            label: [100 * getattr(details.losses, name) for name in names]
            for label, details in drawn
        }
        return _plain_table(pd.DataFrame(rows, index=list(names.values())).T, "share (%)")
    if plot.name == "load":
        rows = {label: [100 * d.busy.mean(), d.queued.mean(), d.queued.max()] for label, d in drawn}
        columns = ["mean busy (%)", "mean waiting jobs", "most waiting jobs"]
        return _plain_table(pd.DataFrame(rows, index=columns).T, "runs")
    return ""


def _plain_table(frame: pd.DataFrame, corner: str) -> str:
    head = "".join(f'<th scope="col">{escape(str(name))}</th>' for name in frame.columns)
    rows = "".join(
        f'<tr><th scope="row" class="text">{escape(str(name))}</th>'
        + "".join(f"<td>{number(float(value))}</td>" for value in row)
        + "</tr>"
        for name, row in zip(frame.index, frame.to_numpy(float), strict=True)
    )
    return (
        f'<div class="scroll"><table><thead><tr><th class="text">{escape(corner)}</th>{head}</tr>'
        f"</thead><tbody>{rows}</tbody></table></div>"
    )


def _gantt(groups: Sequence[Group], asked: Sequence[str]) -> str:
    samples = [sample for group in groups for sample in group.samples]
    labels = {sample.name: group.label for group in groups for sample in group.samples}
    if asked:
        chosen = [sample for sample in samples if sample.name in asked]
    else:
        chosen = [group.samples[0] for group in groups if group.samples]
    chosen = [s for s in chosen if (s.folder / "schedule.png").exists()][:MOST_GANTT]
    if not chosen:
        return "<p>No run has a picture of its schedule.</p>"
    options = "".join(
        f'<option value="{place}">{escape(labels[sample.name])}: {escape(sample.name)}</option>'
        for place, sample in enumerate(chosen)
    )
    figures = "".join(
        f'<figure data-gantt="{place}"{" hidden" if place else ""}>'
        + _image(
            (sample.folder / "schedule.png").read_bytes(),
            "png",
            f"Gantt chart of {sample.name}: processors over time, utilisation and queue below. "
            f"{sample.summary.get('jobs')} jobs on {sample.summary.get('processors')} processors.",
        )
        + f"<figcaption><strong>{escape(labels[sample.name])}</strong> ({escape(sample.name)})"
        "</figcaption></figure>"
        for place, sample in enumerate(chosen)
    )
    pick = f'<p class="pick"><label>Run <select id="pick">{options}</select></label></p>'
    return pick + figures


def _runs(table: pd.DataFrame) -> str:
    rows = []
    for row in table.iloc[:MOST_RUNS][["run", "role", "status", "message"]].itertuples(index=False):
        kind = ' class="failed"' if row.status != "finished" else ""
        cells = "".join(f'<td class="text">{escape(str(value))}</td>' for value in row)
        rows.append(f"<tr{kind}>{cells}</tr>")
    more = (
        f"<p>{len(table) - MOST_RUNS:,} more are in comparison.csv.</p>"
        if (len(table) > MOST_RUNS)
        else ""
    )
    head = "".join(
        f'<th scope="col" class="text">{n}</th>' for n in ("run", "role", "status", "message")
    )
    body = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    bad = int((table["status"] != "finished").sum())
    state = "" if not bad else f'<p class="failed">{bad:,} did not finish.</p>'
    listed = f"<details><summary>All {len(table):,} rows</summary>{body}{more}</details>"
    return f'{state}<div class="scroll">{listed}</div>'


def _configuration(common: Mapping[str, object]) -> str:
    text = yaml.safe_dump(dict(common), sort_keys=True, allow_unicode=True, width=100)
    return f"<pre>{escape(text)}</pre>"
