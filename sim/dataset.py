"""One partitioned Parquet data set of all runs below a folder: ``python -m sim.dataset``.

pandas, Polars and DuckDB read it in place, and only the parts that they need.
"""

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from sim.errors import SimError
from sim.report.gathering import gather
from sim.report.samples import Group, Sample, groups_of
from sim.results.artefacts import TABLES
from sim.results.durable import new_partial, write_csv

FILE_ROWS = 5_000_000
"""Rows after which a partition goes on in a further file."""


class _Partition:
    """The open file of one partition, a row group a run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = 0
        self.rows = 0
        self.writer: Any = None

    def write(self, table: Any) -> None:
        import pyarrow.parquet as pq

        if self.writer is not None and self.rows + table.num_rows > FILE_ROWS:
            self.close()
        if self.writer is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"part-{self.files}.parquet"
            self.writer = pq.ParquetWriter(path, table.schema, compression="zstd")
            self.files += 1
            self.rows = 0
        self.writer.write_table(table.cast(self.writer.schema))
        self.rows += table.num_rows

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.writer = None


def _columns(group: Group, sample: Sample, keys: Sequence[str]) -> dict[str, Any]:
    """Return what tells a simulation's rows from others: its settings, seed and folder."""
    run, _, inner = sample.name.partition("/replication=")
    mine = {key: str(group.setting[key]) for key in keys}
    seed = sample.summary.get("seed")
    number = int(inner.partition("/")[0]) if inner else 0
    return mine | {"seed": seed, "replication": number, "run": run.removesuffix("/baseline")}


def _tables(
    groups: Sequence[Group], name: str, partitioned: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield partition and table of each simulation, one at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for group in groups:
        keys = [key for key in group.setting if key not in partitioned]
        values = [("role", group.role), *((k, str(group.setting.get(k))) for k in partitioned)]
        partition = tuple(f"{key}={quote(value, safe='')}" for key, value in values)
        for sample in group.samples:
            path = sample.folder / f"{name}.parquet"
            if path.is_file():
                table = pq.read_table(path).replace_schema_metadata(None)
                for key, value in reversed(_columns(group, sample, keys).items()):
                    kind = pa.int64() if isinstance(value, int) else pa.string()
                    column = pa.repeat(pa.scalar(value, kind), table.num_rows)
                    label = f"{key}_" if key in table.column_names else key
                    table = table.add_column(0, pa.field(label, kind), column)
                yield partition, table


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
    One simulation is in memory at a time. The data set appears whole or not at all.
    """
    if target.exists():
        raise SimError(f"{target}: exists already; remove it or name another folder")
    table, keys = gather(source)
    chosen = (
        [k for k in ("policy", "predictor") if k in keys] if partitioned is None else partitioned
    )
    unknown = [key for key in chosen if key not in keys]
    if unknown:
        raise SimError(f"{unknown[0]}: does not differ between runs; {', '.join(keys)} do")
    groups = groups_of(source, table, keys)
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
    open_ones: dict[tuple[str, ...], _Partition] = {}
    try:
        for partition, table in _tables(groups, name, keys):
            open_ones.setdefault(partition, _Partition(folder.joinpath(*partition))).write(table)
    finally:
        for one in open_ones.values():
            one.close()


def main(given: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m sim.dataset", description="One Parquet data set of all runs below a folder."
    )
    parser.add_argument("source", type=Path, help="folder of a run or a multirun")
    parser.add_argument("target", type=Path, help="folder to write")
    parser.add_argument("--by", nargs="*", metavar="KEY", help="keys that become folders")
    asked = parser.parse_args(given)
    try:
        number = write_dataset(asked.source, asked.target, asked.by)
    except (SimError, OSError) as error:
        sys.stderr.write(f"error: {' '.join(str(error).split())}\n")
        return 2
    sys.stdout.write(f"{number} simulations in {asked.target}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
