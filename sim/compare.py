"""One table of all runs below a folder: ``moldsim compare DIR``."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.markup import escape

from predictors.cli.terminal import Display, PlainConsole, fitting_tables
from sim.report.gathering import LEFT_OUT, NOT_THERE, Group, distinct, gather
from sim.report.page import PAGE, TABLES, write_report
from sim.report.tables import BY_WHAT, INFORMATION, key_table
from sim.results.durable import answering, table_console, write_csv

COMPARISON = "comparison.csv"
LISTED = 500
"""Groups of runs that are printed; all are in the file."""
SHOWN = 15
"""Rows of an answer that are printed where a page has all."""


def print_comparison(
    console: Console, table: pd.DataFrame, groups: Sequence[Group], said: Sequence[str] = ()
) -> None:
    """Print a row for each group of runs, the sentences below the table, a line for the rest."""
    if groups:
        console.print(fitting_tables(*key_table(groups[:LISTED]), console.width))
    cut = [f"The first {LISTED} of {len(groups)} groups; all are in {COMPARISON}."]
    for sentence in [*(cut if len(groups) > LISTED else []), *said]:
        console.print(sentence, style="dim", markup=False, highlight=False)
    for _, row in table[(table["status"] != "finished") | (table["message"] != "")].iterrows():
        console.print(
            f"[red]{row['status']}[/] {escape(str(row['run']))}: {escape(row['message'])}"
        )


def print_answers(
    console: Console, tables: Mapping[str, pd.DataFrame], most: int | None = None
) -> None:
    """Print the tables of what the comparison answers, but for those of single jobs.

    What is the same in all rows is said once, below; beyond `most` rows the page has them.
    """
    for title, table in tables.items():
        once = [name for name in table.columns[1:] if len(table) > 1 and table[name].nunique() == 1]
        shown = table.drop(columns=once)
        rows = shown.iloc[:most].astype(str).to_numpy().tolist()
        words = 2 if "against" in shown.columns else 1
        console.print()
        console.print(fitting_tables(list(shown.columns), rows, console.width, words, title))
        if len(table) > len(rows):
            console.print(f"… and {len(table) - len(rows)} more; --table has all", style="dim")
        same = [f"{name} {value}" for name in once if (value := table[name].iloc[0]) != "–"]
        if same:
            console.print(
                f"In all rows: {'; '.join(same)}.", style="dim", markup=False, highlight=False
            )
        if any(name.startswith(INFORMATION) for name in shown.columns):
            console.print(BY_WHAT, style="dim", markup=False, highlight=False)


@answering
def main(given: Sequence[str] | None = None) -> int:
    """Compare the runs below a folder; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="moldsim compare", description="Tables, plots and one page of all runs below a folder."
    )
    parser.add_argument("folder", type=Path, help="folder of a run or a multirun")
    parser.add_argument(
        "--table", dest="page", action="store_false", help="tables only, no plots and no page"
    )
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
        help="group that others are compared with, or its policy; or KEY=VALUE[,KEY=VALUE]: each "
        "with the group of these values that is otherwise alike (default: a baseline, or rigid)",
    )  # fmt: skip
    parser.add_argument(
        "--subject", metavar="LABEL",
        help="group whose losers (jobs, users) are named first (default: the best)",
    )  # fmt: skip
    wanted = parser.parse_args(given)
    folder: Path = wanted.folder
    former = {*folder.glob("*")}
    with Display(PlainConsole(stderr=True), "compare") as progress:
        with progress.part(0, 2):
            gathered = gather(folder, progress)
        table = gathered[0]
        path = folder / COMPARISON
        write_csv(distinct(table), path)
        with progress.part(1, 2):
            report = write_report(gathered, wanted, progress)
    console = table_console()
    left = [f"Runs {one}." for one in (table.attrs[NOT_THERE],) if one]
    if bad := table.loc[table["status"] != "finished", "run"].nunique():
        left.append(f"Runs left out, named below the first table: {bad}.")
    for sentence in [*left, *report.verdict.sentences.values(), *report.loses]:
        console.print(sentence, markup=False, highlight=False)
    console.print()
    print_comparison(console, table, report.verdict.order, report.said)
    print_answers(console, report.tables(), SHOWN if wanted.page else None)
    left_out = f"; {LEFT_OUT}: {n:,}" if (n := table.attrs[LEFT_OUT]) else ""
    console.print(f"{len(table):,} rows in {path}{left_out}", highlight=False, soft_wrap=True)
    for one in report.written:
        verb = "replaced" if one in former else "wrote"
        console.print(f"{verb} {one}", highlight=False, soft_wrap=True)
    for path in (folder / name for name in (PAGE, *TABLES.values())):
        if path.exists() and path not in report.written:
            console.print(f"{path} is of an earlier comparison", highlight=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
