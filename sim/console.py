"""What the terminal shows: tables that fit, and at the end of a run one with its baseline."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console, Group
from rich.markup import escape
from rich.text import Text

from predictors.cli.terminal import Cell, fitting_tables
from sim.results import rows, sentences
from sim.results.rows import BEYOND, EASY_PLUS, ERROR, Row, change_text, read_together, texts
from sim.results.sentences import NOBODY
from sim.results.steady_state import Figures, partly_unsteady, unsteady_sentence, windows_sentences


def _words(name: str) -> str:
    """Return the name of an option so that a narrow column breaks it between words."""
    return name.replace("_", " ")


@dataclass(frozen=True)
class Side:
    """One column of results: whose schedule it is.

    Attributes
    ----------
    figures : dict
        A summary.
    policy, predictor : str
        Names of the presets; without a name of the predictor there is no line of it.
    is_baseline : bool
    parts : sequence of dict
        The summary of each replication, where there are several.
    jobs : sequence of pathlib.Path or pandas.DataFrame
        The table of jobs of each simulation, or where it lies.
    """

    figures: Figures
    policy: str
    predictor: str = ""
    is_baseline: bool = False
    parts: Sequence[Figures] = ()
    jobs: Sequence[Path | pd.DataFrame] = ()

    @property
    def samples(self) -> Sequence[Figures]:
        """The summary of each simulation."""
        return self.parts or (self.figures,)

    @property
    def heading(self) -> str:
        """What stands above the column."""
        return _words(f"baseline {self.policy}" if self.is_baseline else self.policy)

    @property
    def name(self) -> str:
        """Policy and predictor in a sentence."""
        return f"{self.policy} by {self.predictor}" if self.predictor else self.policy


RESPONSE, MEDIAN = "mean_response_time", "median_response_time"
ROOMY = 100
"""Columns of a terminal from which on all cells of a first row say of how many jobs they are."""


def recorded(sides: Sequence[Side]) -> list[Side]:
    """Return the log's own schedule, where the run kept its times and no side shows it already."""
    run = sides[0].figures
    if run.get("recorded_times_kept") is not True or any(s.policy == NOBODY for s in sides):
        return []
    found = {row.key: run.get(f"recorded_{row.key}") for row in rows.ROWS}
    known: Figures = {key: value for key, value in found.items() if value is not None}
    return [Side(known, NOBODY)] if known else []


def easy_plus(sides: Sequence[Side]) -> list[Side]:
    """Return EASY++ on the same jobs, where the run has figures of it."""
    run, *parts = (
        {key.removeprefix(f"{EASY_PLUS}_"): one[key] for key in one if key.startswith(EASY_PLUS)}
        for one in (sides[0].figures, *sides[0].parts)
    )
    return [Side(run, EASY_PLUS, "last_two", parts=parts)] if run else []


@dataclass(frozen=True)
class DifferenceColumn:
    """A column of differences between two columns of results."""

    heading: str
    own: Side
    other: Side

    def text(self, row: Row) -> Cell:
        """Return the change of a figure as a cell."""
        values = [side.figures.get(row.key) for side in (self.own, self.other)]
        own, other = self.own.samples, self.other.samples
        part = read_together(own, other, [row.key]).comparisons[0].change.mean
        if np.isnan(part) or (row.kind == ERROR and BEYOND in texts(values, ERROR)):
            return "–"
        text = f"{100 * part:+.1f} {rows.POINTS if row.key in rows.SHARES else '%'}"
        if row.better == 0 or abs(part) < 0.0005:
            return text
        return Text(text, "green" if part * row.better > 0 else "red")


def compared(sides: Sequence[Side]) -> list[DifferenceColumn]:
    """Return which columns are compared: those that differ in one thing, where there are such.

    Parameters
    ----------
    sides : sequence of Side
        The run; its baseline last, if there is one; between them the baseline's
        policy with the run's predictor, if that was played.
    """
    if len(sides) < 2:
        return []
    if len(sides) == 2:
        return [DifferenceColumn("difference", *sides)]
    run, step, base = sides
    return [
        DifferenceColumn("change by policy", run, step),
        DifferenceColumn("change by runtime information", step, base),
    ]


def result_table(sides: Sequence[Side], width: int) -> Group:
    """Return the final table; lower bounds stand in a column of their own where there is room."""
    columns = [*sides, *easy_plus(sides), *recorded(sides)]
    apart = compared(sides)
    bounds = len(columns) < 3
    head = [
        "",
        *(side.heading for side in columns),
        *(one.heading for one in apart),
        *(["lower bound"] if bounds else []),
    ]
    body: list[Sequence[Cell]] = [
        [*cells, *[""] * (len(head) - len(cells))]
        for cells in _named(columns, len(columns) > 2 and width < ROOMY)
    ]
    ends = []
    may_ask = any("requests" in side.figures for side in sides)
    for section in (*rows.SECTIONS, *([rows.REQUEST_SECTION] if may_ask else [])):
        ends.append(len(body) - 1)
        body += [_cells(row, columns, apart, bounds) for row in section]
    return fitting_tables(head, body, width, ends=ends)


def _named(columns: Sequence[Side], briefly: bool) -> list[list[str]]:
    """Return how many jobs of each column were molded, and lines that name predictor and menu."""
    molded = [rows.molded_text(side.samples) for side in columns]
    of = {text.partition(" of ")[2] for text in molded} - {""}
    lines = [[rows.MOLDED, *molded]]
    if briefly and len(of) == 1:
        lines = [[f"{rows.MOLDED} of {of.pop()}", *(text.partition(" of ")[0] for text in molded)]]
    if any(side.predictor for side in columns):
        lines.append(["predictor", *(_words(side.predictor) or "–" for side in columns)])
    menus = [str(side.figures.get("menu") or "–") for side in columns]
    if set(menus) != {"–"}:
        lines.append(["allocation choices", *map(_words, menus)])
    return lines


def _cells(
    row: Row, columns: Sequence[Side], apart: Sequence[DifferenceColumn], bounds: bool
) -> list[Cell]:
    values = [side.figures.get(row.key) for side in columns]
    if row.bounded and bounds:
        values.append(columns[0].figures.get(f"bound_{row.key}"))
    shown = texts(values, row.kind)
    changes = [one.text(row) for one in apart]
    last = [Text(one, "dim") for one in shown[len(columns) :] or [""]]
    return [row.label, *shown[: len(columns)], *changes, *(last if bounds else [])]


def compared_notes(sides: Sequence[Side]) -> list[str]:
    """Return what the columns of differences compare, a sentence each.

    Examples
    --------
    >>> run, base = Side({}, "sa", "adept"), Side({}, "easy", "user_estimate", True)
    >>> compared_notes([run, Side({}, "easy", "adept"), base])
    ['Change by policy: sa by adept against easy by adept. Change by runtime information: \
easy by adept against easy by user_estimate. Shares and errors differ by percentage points (pp).']
    """
    apart = compared(sides)
    if not apart or not sides[0].predictor:
        return []
    said = [f"{d.heading.capitalize()}: {d.own.name} against {d.other.name}." for d in apart]
    first, last = sides[0], sides[-1]
    unlike = first.policy != last.policy and first.predictor != last.predictor
    if unlike and len(sides) == 2 and last.predictor:
        said.append("Both differ: baseline_predictor=true simulates the step between.")
    said.append(f"Shares and errors differ by percentage points ({rows.POINTS}).")
    return [" ".join(said)]


def _counted(run: Figures, prefix: str) -> str:
    parts = [
        f"{_words(key.removeprefix(prefix))}: {_number(count)}"
        for key in run
        if key.startswith(prefix) and (count := rows.number_of(run, key))
    ]
    return f" ({'; '.join(parts)})" if parts else ""


def _number(count: float) -> str:
    """Return a count, or a mean of counts.

    Examples
    --------
    >>> _number(5681), _number(13.6666667)
    ('5,681', '13.7')
    """
    return f"{count:,.0f}" if float(count).is_integer() else f"{count:,.1f}"


def warnings(run: Figures) -> list[str]:
    """Return what a reader must know before believing a summary, a sentence each."""
    lines = []
    for key, text in (("dropped_jobs", "Jobs dropped"), ("repaired_values", "Values repaired")):
        if count := rows.number_of(run, key):
            mean = " on average" if isinstance(run.get("replications"), int) else ""
            lines.append(f"{text}{mean}: {_number(count)}{_counted(run, f'{key}_')}.")
    if run.get("replications_identical"):
        lines.append(
            f"The {run.get('replications')} replications are identical: no interval can be given."
        )
    if run.get("precision_met") is False:
        lines.append(
            f"The precision asked for was not reached: ± {sentences.precision_reached(run)} after "
            f"{run.get('replications')} replications, as many as most_replications allows."
        )
    if run.get("steady_batches_correlated"):
        lines.append("Batches of jobs are correlated: the run is too short for its intervals.")
    if share := rows.number_of(run, "share_assumed_serial_time"):
        lines.append(f"T(1) was not measured, but assumed, for {100 * share:.1f} % of the jobs.")
    return lines


def verdict_lines(sides: Sequence[Side]) -> list[str]:
    """Return what changed, how jobs were treated, and on what that rests: three lines at most."""
    run, base = sides[0], sides[-1]
    treated = sentences.treated_sentence(run.samples, base.samples if base is not run else ())
    rests = "" if run.policy == NOBODY else sentences.rests_sentence(run.figures)
    return [line for line in (*_changed(sides), treated, rests) if line]


def _changed(sides: Sequence[Side]) -> list[str]:
    """Return whose queue does not settle, else how a run does against its baseline."""
    unsteady = unsteady_sentence({side.name: side.samples for side in sides})
    run, base = sides[0], sides[-1]
    if unsteady or len(sides) < 2:
        return [unsteady] if unsteady else []
    found, median = (
        read_together(run.samples, base.samples, [key]).comparisons[0] for key in (RESPONSE, MEDIAN)
    )
    if np.isnan(found.change.mean):
        return []
    told, _ = texts([side.figures.get(RESPONSE) for side in (run, base)], rows.SECONDS)
    other = median.change.mean * found.change.mean < 0
    change = change_text(found) + (f" (median {100 * median.change.mean:+.1f} %)" if other else "")
    said = f"{run.name}: mean response {told}, {change} against {base.name}."
    if base.policy == NOBODY:
        said += (
            " That includes all in which the simulated machine differs from the recorded one: "
            "policy=easy shows how much."
        )
    return [said]


def _without_molding(sides: Sequence[Side]) -> list[str]:
    """Return in a sentence what EASY++ would change, which molds no job."""
    base = sides[-1]
    for rival in easy_plus(sides):
        unsteady = unsteady_sentence({one.name: one.samples for one in (rival, base)})
        (found,) = read_together(rival.samples, base.samples, [RESPONSE]).comparisons
        if not unsteady and not np.isnan(found.change.mean):
            change = f"mean response {change_text(found)} against {base.name}"
            return [f"Without molding, {rival.name}: {change}."]
    return []


def _losers(sides: Sequence[Side]) -> list[str]:
    """Return in a sentence who loses against the baseline, where tables of jobs tell it."""
    from sim.report.answers import winners

    run, base = sides[0], sides[-1]
    pairs = list(zip(run.jobs, base.jobs, strict=False)) if base is not run else []
    anew = run.figures.get("given_applications") == "invented"
    unsteady = unsteady_sentence({side.name: side.samples for side in (run, base)})
    who = winners(run.name, base.name, pairs, anew, not unsteady)
    return [] if who is None else [who.sentence()]


def print_results(console: Console, sides: Sequence[Side], folder: Path | None = None) -> None:
    """Print the verdict, the final table, reasons for its dashes, warnings, where artefacts lie.

    That is shown from the working folder on where they lie below it.
    """
    run, base = sides[0].figures, sides[-1].figures
    named = {side.name: side.samples for side in sides}
    alone = run.get(RESPONSE) != base.get(RESPONSE) and len(sides[0].samples) == 1
    doubts = [f"({rows.ONE_PAIR.capitalize()}.)"] if alone else []
    doubts += [] if folder is None else sentences.backtest_sentences([folder])
    first = sentences.distrusted(doubts)
    for line in [*first, *verdict_lines(sides)]:
        console.print(line, style="bold", markup=False, highlight=False)
    for line in [one for one in doubts if one not in first]:
        console.print(line, markup=False, highlight=False)
    console.print(result_table(sides, console.width))
    bounds = rows.bound_notes(run) if len(sides) > 2 or recorded(sides) else []
    weighed = rows.weighing_notes(len(sides[0].samples) if len(sides) > 1 else 0)
    said = [*compared_notes(sides), *weighed, *sentences.few_predictions(named)]
    if run.get("given_charged") and not all(side.figures.get("given_runs") for side in sides[1:]):
        said += ["The baseline replays no runs before the start: the run alone bears their cost."]
    said += [*sentences.notes(run), *bounds, *rows.reasons(run)]
    for line in [*_without_molding(sides), *_losers(sides), *said]:
        console.print(f"[dim]{escape(line)}[/]")
    shown = [side.figures for side in sides if sentences.is_recorded(side.figures)]
    told = bool(recorded(sides)) or any(side.policy == NOBODY for side in sides)
    told = told and isinstance(run.get("replications"), int)
    family = read_together(sides[0].samples, sides[-1].samples, [RESPONSE])
    warned = [*sentences.killed_sentence(named), *partly_unsteady(named)]
    warned += windows_sentences(named, family.block, family.correlation)
    for line in [*warned, *sentences.recorded_sentences(shown, told), *warnings(run)]:
        console.print(f"[yellow]Warning:[/] {escape(line)}")
    if folder is not None:
        here = Path.cwd()
        place = folder.relative_to(here) if folder.is_relative_to(here) else folder
        console.print(f"Artefacts: {place}", markup=False, highlight=False, soft_wrap=True)
