"""One partitioned Parquet data set of all runs below a folder: ``moldsim dataset``.

pandas, Polars and DuckDB read it in place, and only the parts that they need.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from predictors.cli.terminal import SILENT, Display, PlainConsole
from sim.errors import SimError
from sim.report.gathering import Group, Sample, gather, grouped, groups_of
from sim.results.durable import PARTIAL, answering, write_csv
from sim.results.outcome import TABLES

FILE_ROWS = 5_000_000
"""Rows after which a partition goes on in a further file."""
GROUP_ROWS = 2**16
"""Rows of a row group, those of whole simulations; so many are in memory."""
GROUP_TABLES = 5000
"""So many tables are one row group even if they have few rows."""
NUMBERS = ("seed", "replication")
"""Marks that are whole numbers; others are text."""


def _marked(table: Any, group: Group, sample: Sample, keys: Sequence[str]) -> Any:
    """Return a simulation's table with its settings, seed and folder as columns before the others.

    They tell its rows from those of others.
    """
    marks: dict[str, Any] = {key: str(group.setting[key]) for key in keys}
    marks["seed"], marks["replication"] = sample.drawn
    marks["run"] = sample.name.partition("/replication=")[0].removesuffix("/baseline")
    for key in reversed(marks):
        kind = pa.int64() if key in NUMBERS else pa.string()
        label = f"{key}_" if key in table.column_names else key
        column = pa.repeat(pa.scalar(marks[key], kind), table.num_rows)
        table = table.add_column(0, pa.field(label, kind), column)
    return table


def write_dataset(
    source: Path, target: Path, partitioned: Sequence[str] | None = None, shown: Display = SILENT
) -> int:
    """Write the tables of all finished runs below `source` as partitioned Parquet.

    Parameters
    ----------
    source : pathlib.Path
        Folder of a run or a multirun.
    target : pathlib.Path
        Gets ``jobs/``, ``allocations/``, ``timeline/`` and ``predictions/``, each with
        ``role=…/policy=…/predictor=…/part-0.parquet``; must not exist.
    partitioned : sequence of str, optional
        Keys whose values become folders; ``policy`` and ``predictor`` where they differ.
    shown : Display, optional

    Returns
    -------
    int
        Simulations written.

    Raises
    ------
    SimError
        If there is no run, `target` exists, or a key does not differ between runs.

    Notes
    -----
    A row group is in memory at a time. The data set appears whole or not at all.
    """
    if target.exists():
        raise SimError(f"{target}: exists already; remove it or name another folder")
    with shown.part(0, 2):
        table, keys, known = gather(source, shown)
    usual = [key for key in ("policy", "predictor") if key in keys]
    chosen = usual if partitioned is None else partitioned
    unknown = [key for key in chosen if key not in keys]
    if unknown:
        raise SimError(f"--by {unknown[0]}: must be a key in which runs differ: {', '.join(keys)}")
    groups = groups_of(source, table, keys, known)

    def partition(group: Group) -> str:
        values = {"role": group.role, **{key: str(group.setting.get(key)) for key in chosen}}
        return "/".join(f"{key}={quote(value, safe='')}" for key, value in values.items())

    target.parent.mkdir(parents=True, exist_ok=True)
    begin = f"{PARTIAL}-"
    with TemporaryDirectory(None, begin, target.parent, ignore_cleanup_errors=True) as partial:
        made = Path(partial) / "dataset"
        made.mkdir()
        with shown.part(1, 2):
            for name in shown.each(TABLES, "writes the tables"):
                for place, members in grouped(groups, partition).items():
                    _write_files(_row_groups(_tables(members, name, chosen)), made / name / place)
        rows = [{"run": s.name, "role": g.role, **g.setting} for g in groups for s in g.samples]
        write_csv(pd.DataFrame(rows).astype(str), made / "simulations.csv")
        made.replace(target)
    return sum(len(group.samples) for group in groups)


def _tables(groups: Sequence[Group], name: str, keys: Sequence[str]) -> Iterator[Any]:
    """Yield one kind of table of each simulation, with what tells its rows from those of others."""
    for group in groups:
        left = [key for key in group.setting if key not in keys]
        for sample in group.samples:
            path = sample.folder / f"{name}.parquet"
            if path.is_file():
                with pq.ParquetFile(path) as file:
                    table = file.read(use_threads=False).replace_schema_metadata(None)
                yield _marked(table, group, sample, left)


def _row_groups(tables: Iterable[Any]) -> Iterator[Any]:
    """Yield what makes a row group each: the tables of whole simulations, one below the other."""
    waiting: list[Any] = []
    rows = 0
    for table in tables:
        waiting.append(table)
        rows += table.num_rows
        if rows >= GROUP_ROWS or len(waiting) >= GROUP_TABLES:
            yield pa.concat_tables(waiting, promote_options="permissive").combine_chunks()
            waiting, rows = [], 0
    if waiting:
        yield pa.concat_tables(waiting, promote_options="permissive").combine_chunks()


def _write_files(row_groups: Iterable[Any], folder: Path) -> None:
    """Write the files of a partition, of which one is open at a time; other columns, another."""
    files, rows, writer = 0, 0, None
    with ExitStack() as stack:
        for table in row_groups:
            full = rows + table.num_rows > FILE_ROWS
            if writer is None or full or table.schema != writer.schema:
                stack.close()
                folder.mkdir(parents=True, exist_ok=True)
                path = folder / f"part-{files}.parquet"
                made = pq.ParquetWriter(path, table.schema, compression="zstd")
                writer = stack.enter_context(made)
                files, rows = files + 1, 0
            writer.write_table(table)
            rows += table.num_rows


@answering
def main(given: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="moldsim dataset", description="One Parquet data set of all runs below a folder."
    )
    parser.add_argument("source", type=Path, help="folder of a run or a multirun")
    parser.add_argument("target", type=Path, help="folder to write")
    parser.add_argument("--by", nargs="*", metavar="KEY", help="keys that become folders")
    asked = parser.parse_args(given)
    with Display(PlainConsole(stderr=True), "dataset") as shown:
        number = write_dataset(asked.source, asked.target, asked.by, shown)
    sys.stdout.write(f"{number:,} simulations in {asked.target}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
