"""One self-contained page that works offline: tables, plots, schedules, configuration."""

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
from sim.report.answer_tables import (
    BY_WHAT,
    LOSES,
    OVER_LOAD,
    STOPS,
    curve_rows,
    difference_rows,
    loss_rows,
    regret_rows,
)
from sim.report.answers import Curve, Difference
from sim.report.figures import Details, Plot, losses_of
from sim.report.forest import forest
from sim.report.gathering import LEFT_OUT, NOT_THERE
from sim.report.html import Cell, fold, image, table, text_table
from sim.report.samples import SUFFIXES, Group, Sample
from sim.report.tables import key_figures, number, size
from sim.report.verdict import Verdict
from sim.report.winners import MOST_ROWS, Winners, most_affected
from sim.results.artefacts import has_tables, read_tables
from sim.results.plots.schedule import schedule_figure
from sim.results.plots.style import picture
from sim.results.rows import MOLDED, molded_text
from sim.results.steady_state import EPOCH

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


@dataclass(frozen=True)
class Report:
    """What a report wrote and found.

    Attributes
    ----------
    written : list of pathlib.Path
    key : str
        Key of the summary by which groups are compared.
    figure : str
        That in words.
    differences : list of Difference
    curves : list of Curve
    regrets : dict
        Where regret against the oracle is felt, by label and by class and count.
    said : list of str
        Sentences that belong to every table of it.
    verdict : Verdict
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
    groups: Sequence[Group],
    plots: Sequence[tuple[Plot, str]],
    found: Mapping[str, Details],
    table: pd.DataFrame,
    common: Mapping[str, object],
    gantt: str,
) -> str:
    """Return the page.

    Parameters
    ----------
    report : Report
        What it found, and the sentences below the key table.
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
    gantt : str
        What `schedules` returns.
    """
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
    order = report.verdict.order
    drawn = [(group.label, found[group.label]) for group in order if group.label in found]
    figures = {plot.name: _figure(plot, svg, drawn) for plot, svg in plots}
    configuration = yaml.safe_dump(dict(common), sort_keys=True, allow_unicode=True, width=100)
    rest = [name for name in figures if name not in (ON_TOP, OF_FORESIGHT, *OF_BELIEFS)]
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=escape(title),
        subtitle=f"{counted}; simulations: {samples:,}, groups: {len(groups):,}{on}.",
        verdict=_verdict(report.verdict),
        forest=forest(order, report.differences, report.figure),
        selects=_selects(order, keys),
        table=_key_table(order, keys),
        said="".join(f"<p>{escape(sentence)}</p>" for sentence in report.said),
        foresight=_foresight(figures.get(OF_FORESIGHT, ""), report),
        gantt=_explorer(report.explorer) + gantt,
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
    samples = [sample for group in groups for sample in group.samples]
    labels = {sample.name: group.label for group in groups for sample in group.samples}
    if asked:
        chosen = [sample for sample in samples if sample.name in asked]
    else:
        chosen = [group.samples[0] for group in groups if group.samples]
    each = progress.each(chosen[:MOST_GANTT], "draws schedules")
    drawn = [(sample, _picture(sample)) for sample in each]
    pictures = [(sample, found) for sample, found in drawn if found is not None]
    if not pictures:
        return "<p>No run has the tables of its schedule.</p>"
    named = [f"{labels[sample.name]}: {sample.name}" for sample, _ in pictures]
    figures = "".join(
        f'<figure data-gantt="{place}"{" hidden" if place else ""}>'
        + image(
            picture,
            f"Gantt chart of {sample.name}: processors over time, utilisation and queue below. "
            f"{sample.summary.get('jobs')} jobs on {sample.summary.get('processors')} processors.",
        )
        + f"<figcaption><strong>{escape(labels[sample.name])}</strong> ({escape(sample.name)})"
        "</figcaption></figure>"
        for place, (sample, picture) in enumerate(pictures)
    )
    return _picker("pick", "gantt", named) + figures


def _explorer(place: str) -> str:
    if not place:
        return ""
    told = "Look into the best and its reference on one time axis"
    return f'<p><a href="{escape(place)}">{told}</a>: zoom, brush, hover over a job.</p>'


def _runs(listed: pd.DataFrame) -> str:
    names = ["run", "role", "status", "message"]
    shown = listed.iloc[:MOST_RUNS][names].astype(str)
    bad = int((listed["status"] != "finished").sum())
    state = "" if not bad else f'<p class="failed">{bad:,} did not finish.</p>'
    left = len(listed) - MOST_RUNS
    more = f"<p>{left:,} more are in comparison.csv.</p>" if left > 0 else ""
    return state + fold(f"All {len(listed):,} rows", text_table("Runs", shown, names) + more)
