"""One table of all runs below a folder: ``python -m sim.compare DIR``."""

import argparse
import difflib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from predictors.cli.terminal import PlainConsole
from sim.errors import SimError, one_line
from sim.report.gathering import FIXED, Summaries, distinct, gather
from sim.results.durable import SUMMARY, output, write_csv
from sim.results.rows import MOLDED, Row, molded_text, texts
from sim.sweeps.configurations import (
    read_configuration,
    shared_names,
)

if TYPE_CHECKING:
    from sim.report.answer_tables import Answers
    from sim.report.page import Report


COMPARISON = "comparison.csv"
COMMON_RUNS = 200
"""So many runs say which configuration all share."""
SHOWN = (
    Row("mean_response_time", "mean response", "s"),
    Row("p95_response_time", "p95 response", "s"),
    Row("mean_wait_time", "mean wait", "s"),
    Row("mean_bounded_slowdown", "bounded slowdown", ""),
    Row("utilization", "utilisation", "%"),
    Row("system_efficiency", "efficiency", "%"),
    Row("prediction_median_error", "median error", "e"),
    Row("prediction_p90_error", "90th p. error", "e"),
    Row("prediction_within_20", "within 20 %", "%"),
    Row("share_own_predictions", "own predictions", "%"),
    Row("fallback_median_error", "requests' error", "e"),
)
LISTED = 500
"""Rows of runs that are printed; all are in the file."""
UNFOLDED = 400
"""Columns of a line that goes to a file or a program, where nothing needs folding."""


LEAST = 14
"""Columns to which a column of words may shrink before others are left out."""
GAP = 2
"""Columns between two of a table."""


def fitting_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int, words: int, title: str = ""
) -> tuple[Table, list[str]]:
    """Return a table within a width, and the headings of the columns left out for it.

    Parameters
    ----------
    head : sequence of str
        Those of columns of words first, then others by rank.
    rows : sequence of sequence of str
    width : int
        Of the terminal, in characters.
    words : int
        How many columns hold words, which fold where they must.

    Examples
    --------
    >>> fitting_table(["runs", "change", "pairs"], [["sa", "-47.0 %", "4"]], 14, 1)[1]
    ['pairs']
    """
    longest = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
    needed = [min(size, LEAST) if k < words else size for k, size in enumerate(longest)]
    shown = len(head)
    while shown > words + 1 and sum(needed[:shown]) + GAP * (shown - 1) > width:
        shown -= 1
    spare = width - GAP * (shown - 1) - sum(needed[words:shown])
    if sum(needed[:words]) > spare:  # nothing is left to leave out: words fold more
        needed[:words] = [max(min(size, spare // words), 1) for size in needed[:words]]
    spare -= sum(needed[:words])
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for k, name in enumerate(head[:shown]):
        if k < words:
            more = max(min(longest[k] - needed[k], spare), 0)
            spare -= more
            table.add_column(escape(name), overflow="fold", width=needed[k] + more)
        else:
            table.add_column(escape(name), justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(escape, row[:shown]))
    return table, list(head[shown:])


def left_out(names: Sequence[str]) -> str:
    """Return in words which columns did not fit."""
    return f"Not shown, for want of width: {', '.join(names)}."


def write_comparison(table: pd.DataFrame, folder: Path) -> Path:
    """Write the comparison as CSV, whole or not at all, and return its path."""
    path = folder / COMPARISON
    write_csv(distinct(table), path)
    return path


def _names(finished: pd.DataFrame, keys: Sequence[str]) -> list[str]:
    """Return the columns that name a row: its folder only where keys do not tell rows apart."""
    if not keys or finished[finished["role"] == "run"].duplicated(list(keys)).any():
        return ["run", *keys]
    return [*keys, "role"] if (finished["role"] != "run").any() else list(keys)


def comparison_table(
    table: pd.DataFrame, keys: Sequence[str], width: int
) -> tuple[Table, list[str]]:
    """Return the finished rows, what tells them apart and main figures; and what did not fit.

    A baseline that several runs share, such as runs with other predictors, is shown once. No
    more rows than `LISTED` are there.
    """
    finished = table[table["status"] == "finished"]
    known = len(FIXED) + len(keys)  # a key may have the name of a figure
    labels, numbers = finished.iloc[:, :known], finished.iloc[:, known:]
    shown = [row for row in SHOWN if row.key in numbers.columns]
    names = _names(labels, keys)
    if "menu" in numbers.columns and "menu" not in names and numbers["menu"].notna().any():
        labels = labels.assign(menu=numbers["menu"])
        names.append("menu")
    both = pd.concat([labels[names], numbers[[row.key for row in shown]]], axis=1)
    again = both.duplicated() & (labels["role"] != "run")
    labels, numbers = labels[~again].iloc[:LISTED], numbers[~again].iloc[:LISTED]
    columns = [[molded_text([dict(one)]) for _, one in numbers.iterrows()]]
    for row in shown:
        values = [None if pd.isna(value) else value for value in numbers[row.key]]
        columns.append(texts(values, row.kind))
    rows = []
    for position, (_, line) in enumerate(labels.iterrows()):
        left = [_cell(line[name]) for name in names]
        if names[0] == "run" and line["role"] != "run":
            left[0] += f" {line['role']}"
        rows.append([*left, *(column[position] for column in columns)])
    head = [*names, MOLDED, *(row.label for row in shown)]
    return fitting_table(head, rows, width, len(names))


def _cell(value: object) -> str:
    return "–" if pd.isna(value) else str(value)  # type: ignore[call-overload]


def print_comparison(
    console: Console, table: pd.DataFrame, keys: Sequence[str], said: Sequence[str] = ()
) -> None:
    """Print the table of finished runs, what else must be known of it, and a line for the rest.

    Parameters
    ----------
    console : rich.console.Console
    table, keys
        As `gather` returns them.
    said : sequence of str
        Sentences below the table: names that all runs share, what predictors were given.
    """
    printed, missing = comparison_table(table, keys, console.width)
    console.print(printed)
    cut = (
        f"The first {LISTED} rows; all are in {COMPARISON}." if printed.row_count == LISTED else ""
    )
    for sentence in [*filter(None, [cut, left_out(missing) if missing else ""]), *said]:
        console.print(sentence, style="dim", markup=False, highlight=False)
    for _, row in table[table["status"] != "finished"].iterrows():
        console.print(
            f"[red]{row['status']}[/] {escape(str(row['run']))}: {escape(row['message'])}"
        )


def print_answers(console: Console, found: "Answers") -> None:
    """Print the tables of what the comparison answers, but for those of single jobs."""
    from sim.report.answer_tables import ON_PAGE, SHOWN

    for title, table in found.tables().items():
        if title in ON_PAGE:
            continue
        rows = [[str(value) for value in row] for row in table.iloc[:SHOWN].to_numpy().tolist()]
        words = list(table.columns).index("pairs") if "pairs" in table.columns else 1
        printed, missing = fitting_table(list(table.columns), rows, console.width, words, title)
        console.print()
        console.print(printed)
        if len(table) > SHOWN:
            console.print(f"… and {len(table) - SHOWN} more on the page", style="dim")
        if missing:
            console.print(left_out(missing), style="dim", markup=False, highlight=False)


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m sim.compare",
        description="Tables, plots and one page of all runs below a folder.",
    )
    parser.add_argument("folder", type=Path, help="folder of a run or a multirun")
    parser.add_argument("--table", action="store_true", help="tables only, no plots and no page")
    parser.add_argument("--latex", action="store_true", help="write comparison.tex too")
    parser.add_argument("--markdown", action="store_true", help="write comparison.md too")
    parser.add_argument(
        "--gantt", action="append", default=[], metavar="RUN",
        help="show this run's schedule on the page (its folder below FOLDER); may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--detail", type=int, default=3, metavar="N",
        help="simulations of each group whose tables are read for the plots (default 3)",
    )  # fmt: skip
    parser.add_argument(
        "--figure", default="mean_response_time", metavar="KEY",
        help="figure of summary.json by which groups are compared (default mean_response_time)",
    )  # fmt: skip
    parser.add_argument(
        "--against", metavar="LABEL",
        help="group that others are compared with, or KEY=VALUE[,KEY=VALUE] in which the "
        "reference of each differs from it (default: a baseline, else rigid jobs)",
    )  # fmt: skip
    return parser


def main(given: Sequence[str] | None = None) -> int:
    """Compare the runs below a folder; return the exit status."""
    asked = arguments().parse_args(given)
    folder: Path = asked.folder
    try:
        known: Summaries = {}
        table, keys = gather(folder, known)
        path = write_comparison(table, folder)
        report = _report(folder, (table, keys, known), asked)
    except (SimError, OSError) as error:
        PlainConsole(stderr=True).print(f"error: {one_line(error)}", markup=False, soft_wrap=True)
        return 2
    console = PlainConsole() if sys.stdout.isatty() else PlainConsole(width=UNFOLDED)
    for sentence in report.verdict.sentences:
        console.print(sentence, markup=False, highlight=False)
    console.print()
    print_comparison(console, table, keys, report.said)
    print_answers(console, report.answers)
    console.print(f"{len(table)} rows in {path}", highlight=False, soft_wrap=True)
    for one in report.written:
        console.print(f"wrote {one}", highlight=False, soft_wrap=True)
    return 0


def _check_asked(table: pd.DataFrame, keys: Sequence[str], asked: argparse.Namespace) -> None:
    """Refuse a figure that no run has, and a number of simulations below 1.

    Raises
    ------
    SimError
        Naming the option, its value and what is accepted.
    """
    if asked.detail < 1:
        raise SimError(f"--detail {asked.detail}: must be at least 1")
    numbers = table.iloc[:, len(FIXED) + len(keys) :].select_dtypes("number").columns.tolist()
    if numbers and asked.figure not in numbers:
        near = difflib.get_close_matches(asked.figure, numbers, 3) or sorted(numbers)[:3]
        raise SimError(
            f"--figure {asked.figure}: there is no such figure in {SUMMARY}; "
            f"there are {', '.join(near)} and others"
        )


def _report(
    folder: Path, gathered: tuple[pd.DataFrame, list[str], Summaries], asked: argparse.Namespace
) -> "Report":
    from sim.report.write import Wanted, common_values, write_report

    table, keys, _ = gathered
    _check_asked(table, keys, asked)
    unknown = [run for run in asked.gantt if not (folder / run / SUMMARY).is_file()]
    if unknown:
        raise SimError(f"--gantt {unknown[0]}: there is no finished run of that name in {folder}")
    known = table.loc[table["status"] != "damaged", "run"].unique()[:COMMON_RUNS]
    runs = [read_configuration(folder / name) for name in known]
    wanted = Wanted(
        not asked.table,
        asked.latex,
        asked.markdown,
        tuple(asked.gantt),
        asked.detail,
        asked.figure,
        asked.against,
    )
    names = shared_names(runs, keys)
    return write_report(folder, gathered, common_values(runs), wanted, names)


if __name__ == "__main__":
    status = 0
    with output():
        status = main()
    sys.exit(status)
