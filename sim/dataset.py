"""One partitioned Parquet data set of all runs below a folder: ``moldsim dataset``.

pandas, Polars and DuckDB read it in place, and only the parts that they need.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd

from sim.errors import SimError
from sim.report.gathering import Summaries, gather
from sim.report.samples import Group, Sample, groups_of
from sim.results.durable import answering, new_partial, write_csv
from sim.results.frames import TABLES

FILE_ROWS = 5_000_000
"""Rows after which a partition goes on in a further file."""
GROUP_ROWS = 2**16
"""Rows of a row group, those of whole simulations; so many are in memory."""
MERGED = 200
"""Tables that wait to be put into one."""
NUMBERS = ("seed", "replication")
"""Marks that are whole numbers; others are text."""
Marks = dict[str, Any]
"""What tells a simulation's rows from those of others."""


class _Partition:
    """The file of one partition, written in row groups of many runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = 0
        self.rows = 0
        self.writer: Any = None
        self.pending: list[tuple[Marks, Any]] = []
        self.merged: list[Any] = []
        self.waiting = 0

    def add(self, marks: Marks, table: Any) -> None:
        """Take in a simulation's table and what tells its rows from those of others."""
        self.pending.append((marks, table))
        self.waiting += table.num_rows
        if len(self.pending) >= MERGED:
            self._merge()
        if self.waiting >= GROUP_ROWS:
            self.flush()

    def _merge(self) -> None:
        """Put pending tables into one, which takes less memory than many small ones."""
        if self.pending:
            self.merged.append(_marked(self.pending))
            self.pending = []

    def flush(self) -> None:
        """Write what is pending as one row group."""
        self._merge()
        if not self.merged:
            return
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = self.merged[0].schema
        table = pa.concat_tables([one.cast(schema) for one in self.merged])
        self.merged, self.waiting = [], 0
        if self.writer is not None and self.rows + table.num_rows > FILE_ROWS:
            self.writer.close()
            self.writer = None
        if self.writer is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"part-{self.files}.parquet"
            self.writer = pq.ParquetWriter(path, table.schema, compression="zstd")
            self.files += 1
            self.rows = 0
        self.writer.write_table(table.cast(self.writer.schema))
        self.rows += table.num_rows

    def close(self) -> None:
        self.flush()
        if self.writer is not None:
            self.writer.close()


def _marked(parts: Sequence[tuple[Marks, Any]]) -> Any:
    """Return the tables one below the other, their marks as columns before the others."""
    import pyarrow as pa

    schema = parts[0][1].schema
    tables = [one if one.schema == schema else one.cast(schema) for _, one in parts]
    table = pa.concat_tables(tables)
    own = np.repeat(np.arange(len(parts)), [one.num_rows for _, one in parts])
    for key in reversed(parts[0][0]):
        kind = pa.int64() if key in NUMBERS else pa.string()
        column = pa.array([marks[key] for marks, _ in parts], kind).take(pa.array(own))
        label = f"{key}_" if key in table.column_names else key
        table = table.add_column(0, pa.field(label, kind), column)
    return table.combine_chunks()


def _marks(group: Group, sample: Sample, keys: Sequence[str]) -> Marks:
    """Return what tells a simulation's rows from others: its settings, seed and folder."""
    run, _, inner = sample.name.partition("/replication=")
    mine: Marks = {key: str(group.setting[key]) for key in keys}
    seed = sample.summary.get("seed")
    number = int(inner.partition("/")[0]) if inner else 0
    return mine | {"seed": seed, "replication": number, "run": run.removesuffix("/baseline")}


def _partition_of(group: Group, partitioned: Sequence[str]) -> tuple[str, ...]:
    """Return the folders of a group's rows."""
    values = [("role", group.role), *((k, str(group.setting.get(k))) for k in partitioned)]
    return tuple(f"{key}={quote(value, safe='')}" for key, value in values)


def write_dataset(source: Path, target: Path, partitioned: Sequence[str] | None = None) -> int:
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
    known: Summaries = {}
    table, keys = gather(source, known)
    chosen = (
        [k for k in ("policy", "predictor") if k in keys] if partitioned is None else partitioned
    )
    unknown = [key for key in chosen if key not in keys]
    if unknown:
        raise SimError(f"{unknown[0]}: does not differ between runs; {', '.join(keys)} do")
    groups = groups_of(source, table, keys, known)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = new_partial(target.parent)
    made = partial / "dataset"
    made.mkdir()
    try:
        for name in TABLES:
            _write_one(groups, name, chosen, made / name)
        rows = [{"run": s.name, "role": g.role, **g.setting} for g in groups for s in g.samples]
        write_csv(pd.DataFrame(rows).astype(str), made / "simulations.csv")
        made.replace(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return sum(len(group.samples) for group in groups)


def _write_one(groups: Sequence[Group], name: str, keys: Sequence[str], folder: Path) -> None:
    """Write one kind of table, a partition after the other: one file is open at a time."""
    import pyarrow.parquet as pq

    parts: dict[tuple[str, ...], list[Group]] = {}
    for group in groups:
        parts.setdefault(_partition_of(group, keys), []).append(group)
    for place, members in parts.items():
        partition = _Partition(folder.joinpath(*place))
        with closing(partition):
            for group in members:
                left = [key for key in group.setting if key not in keys]
                for sample in group.samples:
                    path = sample.folder / f"{name}.parquet"
                    if path.is_file():
                        with pq.ParquetFile(path) as file:
                            table = file.read(use_threads=False).replace_schema_metadata(None)
                        partition.add(_marks(group, sample, left), table)


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
    number = write_dataset(asked.source, asked.target, asked.by)
    sys.stdout.write(f"{number} simulations in {asked.target}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
