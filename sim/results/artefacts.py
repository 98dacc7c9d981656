"""The folder of a run: its artefacts, how they are read again, and how new ones replace former."""

import contextlib
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Any

import pandas as pd

from sim.errors import SimError
from sim.help.interrupts import was_interrupted
from sim.help.versions import commit, installed, own_version
from sim.results import durable
from sim.results.durable import CHECKSUMS, FAILURE, HYDRA, MANIFEST, SUMMARY
from sim.results.outcome import RECOVERY_PARTS, TABLES, Table, Tables
from sim.results.steady_state import Figures
from workloads.base import Trace

if TYPE_CHECKING:
    import pyarrow as pa

GROUP_ROWS = 65_536
"""Rows of a row group of Parquet."""
REQUESTS = "requests.parquet"
EXPORTS = ("jobs.csv", "schedule.swf", REQUESTS)
"""What is written where it is asked for."""
PICTURES = tuple(
    f"{one}.{end}" for end in ("svg", "dark.svg", "png") for one in ("cycles", "checkpoints")
)
"""Pictures of evolving jobs, light and dark; PNG are of former versions."""
FILES = (
    *(SUMMARY, FAILURE, MANIFEST, "schedule.png", *PICTURES, *EXPORTS),
    *(f"{t}.parquet" for t in TABLES),
)

IN_SECONDS = (
    *("submit_time", "start_time", "end_time", "wait_time", "response_time", "time"),
    *("requested_time", "reference_runtime", "runtime", "believed_runtime"),
    *("recorded_start_time", "predicted", "actual"),
    *("wanted_seconds", "answered_time", "denied_time"),
)
UNITS = dict.fromkeys(IN_SECONDS, "s")
UNITS |= dict.fromkeys(("held_area", *RECOVERY_PARTS), "processor-seconds")
"""Units of columns, kept in the Parquet schema as field metadata ``unit``."""


RUN, BASELINE, STEP = "", "baseline", "baseline_predictor"
"""Roles of simulations: the run itself, its baseline, and the step between, which is the
baseline's policy with the run's predictor; each is the name of a folder within the run's."""


@dataclass(frozen=True)
class Artefacts:
    """Everything that one run writes.

    The manifest is what may differ between two runs of the same configuration; `write_more`
    writes pictures and further files (`EXPORTS`) into the folder that it is given.
    """

    tables: Tables
    summary: Figures
    manifest: Mapping[str, object]
    write_more: Callable[[Path], None] | None = None


def is_finished(folder: Path) -> bool:
    """Return whether the run in this folder ended: its summary, written last, can be read."""
    return durable.known_object(folder / SUMMARY) is not None


def place_of(folder: Path) -> tuple[str, Path, Path]:
    """Return a simulation's role, its replication's folder and its run's.

    A run without several replications is its own.
    """
    role = folder.name if folder.name in (BASELINE, STEP) else RUN
    own = folder.parent if role else folder
    return role, own, own if (own / HYDRA).is_dir() else own.parent


def tables_folder(folder: Path) -> Path:
    """Return where the tables of a run are: of several replications those of the first.

    Raises
    ------
    SimError
        If the folder holds no finished run.
    """
    first = replication_folder(folder, 0)
    place = first if first.is_dir() else folder
    if not is_finished(place) or not (place / "jobs.parquet").is_file():
        raise SimError(f"{folder}: there is no finished run with its tables")
    return place


def write_table(table: Table, path: Path) -> None:
    """Write a table as Parquet: NaN as null, units of columns in the schema.

    The same table gives the same bytes; neither index nor time is stored. It is written
    piece by piece, each a row group. Numbers with fractions hardly repeat: no dictionaries.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with contextlib.ExitStack() as stack:
        writer = None
        for first in range(0, max(len(table), 1), GROUP_ROWS):
            piece = table[first : min(first + GROUP_ROWS, len(table))]
            frame = pd.DataFrame({str(name): piece[str(name)] for name in piece}, copy=False)
            part = pa.Table.from_pandas(frame, preserve_index=False)
            if writer is None:
                schema = pa.schema([_described(field) for field in part.schema])
                repeated = [one.name for one in schema if not pa.types.is_floating(one.type)]
                made = pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=repeated)
                writer = stack.enter_context(made)
            writer.write_table(part.cast(schema))


def _described(field: "pa.Field") -> "pa.Field":
    """Return a field of a schema with its unit; words are such although a piece has none."""
    import pyarrow as pa

    worded = pa.types.is_large_string(field.type) or pa.types.is_null(field.type)
    unit = {"unit": UNITS[field.name]} if field.name in UNITS else None
    return pa.field(field.name, pa.string() if worded else field.type, metadata=unit)


def write_ends(
    folder: Path, summary: Figures, manifest: Mapping[str, object], below: Sequence[Path]
) -> None:
    """Write the summary, and the manifest with the checksums of all else, of folders below too."""
    (folder / SUMMARY).write_text(durable.as_json(summary), encoding="utf-8")
    whole = {**manifest, CHECKSUMS: durable.checksums(folder, below)}
    if (folder / HYDRA).is_dir():
        whole[durable.CONFIGURED] = durable.checksums(folder / HYDRA)
    (folder / MANIFEST).write_text(durable.as_json(whole), encoding="utf-8")


def write_run(folder: Path, simulated: Mapping[str, Artefacts]) -> None:
    """Write the artefacts of a run, and by role those that it is compared with in folders below.

    The folder is made if missing; `replacing` gives one in which nothing is yet.
    """
    others = [role for role in simulated if role != RUN]
    for role in (*others, RUN):
        one, place = simulated[role], folder / role
        place.mkdir(parents=True, exist_ok=True)
        for name in TABLES:
            write_table(one.tables.columns(name), place / f"{name}.parquet")
        if one.write_more is not None:
            one.write_more(place)
        below = [folder / other for other in others] if role == RUN else []
        write_ends(place, one.summary, one.manifest, below)


def replication_folder(folder: Path, replication: int) -> Path:
    """Return where replication k, from 0, of several lies."""
    return folder / f"replication={replication}"


SCHEDULE = ("mean_response_time", "mean_wait_time", "mean_bounded_slowdown", "makespan", "jobs")
"""Figures in which two schedules agree to the last bit only if they are the same."""


def same_schedule(summaries: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether simulations, two or more, are the same schedule to the last bit.

    Random numbers that nobody looked at, such as curves under a rule that sees
    none, make no repetition.

    Examples
    --------
    >>> once = {"mean_response_time": 2.5, "noise_spread": 0.1}
    >>> same_schedule([once, once | {"noise_spread": 0.2}]), same_schedule([once])
    (True, False)
    """
    seen = {repr([summary.get(key) for key in SCHEDULE]) for summary in summaries}
    known = all(summary.get(SCHEDULE[0]) is not None for summary in summaries)
    return known and len(summaries) > 1 and len(seen) == 1


def mean_summary(summaries: Sequence[Figures]) -> Figures:
    """Return the means over replications under the same keys, plus ``replications``.

    Undefined figures are left out of a mean, and the mean is None where none is
    defined. Figures that are equal in all replications stay as they are; text
    that differs becomes None; truth values that differ become a share.

    Examples
    --------
    >>> mean_summary([{"jobs": 3, "wait": 1.0}, {"jobs": 3, "wait": None}])
    {'jobs': 3, 'replications': 2, 'wait': 1.0}
    """
    keys = sorted({key for summary in summaries for key in summary})
    means = {key: _mean([summary.get(key) for summary in summaries]) for key in keys}
    return dict(sorted((means | {"replications": len(summaries)}).items()))


def _mean(values: list[float | int | bool | str | None]) -> float | int | bool | str | None:
    known = [value for value in values if value is not None]
    if not known or all(value == known[0] for value in known):
        return known[0] if known else None
    numbers = [float(value) for value in known if not isinstance(value, str)]
    return sum(numbers) / len(numbers) if len(numbers) == len(known) else None


def read_summary(folder: Path) -> Figures:
    """Return the summary of a finished run."""
    return figures_of(durable.read_object(folder / SUMMARY))


def figures_of(content: Mapping[str, Any]) -> Figures:
    """Return the figures of what a summary holds; many summaries share the names' memory."""
    return {
        intern(key): None if isinstance(value, float) and not isfinite(value) else value
        for key, value in content.items()
        if not isinstance(value, dict | list)
    }


def mean_of_replications(parts: Sequence[Figures], more: Figures) -> Figures:
    """Return the summary of a run of several replications: means, and `more` figures of it."""
    same = {"replications_identical": True} if same_schedule(parts) else {}
    return dict(sorted((mean_summary(parts) | more | same).items()))


def _files(folder: Path) -> list[Path]:
    return [folder / f"{name}.parquet" for name in TABLES]


def has_tables(folder: Path) -> bool:
    """Say whether all tables of a simulation are in a folder."""
    return all(path.is_file() for path in _files(folder))


def read_table(path: Path) -> pd.DataFrame:
    """Return a table as its file has it; what names of folders say, as ``seed=1``, is not read.

    Raises
    ------
    FileNotFoundError
    SimError
        If the file is no table.
    """
    path.stat()  # says which file is missing, as pyarrow does not
    try:
        return pd.read_parquet(path, partitioning=None)
    except (OSError, ValueError) as error:
        raise SimError(f"{path}: not a table that can be read; see moldsim verify") from error


def read_tables(folder: Path, shown: Any = None) -> Tables:
    """Return the tables of a simulation as its folder has them; a display shows how far it is."""
    files = _files(folder) if shown is None else shown.each(_files(folder), "reads tables")
    return Tables(*map(read_table, files))


PACKAGES = (
    *("numpy", "scipy", "pandas", "pyarrow", "simpy", "numba"),
    *("matplotlib", "hydra-core", "rich"),
)


def manifest(trace: Trace, wall_seconds: float) -> dict[str, object]:
    """Return the content of ``manifest.json`` of a run on a trace that took so many seconds."""
    return {
        "checksum": trace.checksum,
        "commit": commit(),
        "host": platform.node(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "source": trace.source,
        "versions": {"moldsim": own_version(), **{name: installed(name) for name in PACKAGES}},
        "wall_seconds": wall_seconds,
    }


def read_results(run: Path, summary: Figures | None = None) -> dict[str, Figures]:
    """Return by role the summaries of a finished run and of what it was compared with.

    Of several replications they are means, of the other roles where all replications have them.
    The run's own is not read again where it is given.
    """
    own = read_summary(run) if summary is None else summary
    count, places = own.get("replications"), [run]
    if isinstance(count, int):
        places = [replication_folder(run, k) for k in range(count)]
    found = {RUN: own}
    for role in (BASELINE, STEP):
        if places and all(is_finished(place / role) for place in places):
            each = [read_summary(place / role) for place in places]
            found[role] = mean_summary(each) if isinstance(count, int) else each[0]
    return found


def known_names(folder: Path) -> set[str]:
    """Return the artefacts that a run wrote into a folder, as its manifest lists them.

    Where there is a manifest that cannot be read, every name of an artefact counts, and every
    folder below with a manifest.
    """
    if not (folder / MANIFEST).exists():
        return set()
    known = (durable.known_object(folder / MANIFEST) or {}).get(CHECKSUMS)
    if not isinstance(known, dict):
        below = [one.parent.name for one in folder.glob(f"*/{MANIFEST}")]
        known = [*FILES, *(f"{name}/{MANIFEST}" for name in below if not name.startswith("."))]
    return {*known, MANIFEST}


def foreign(folder: Path) -> str | None:
    """Return a name in a folder for which no run may write there; None if one may.

    A folder is a run's own if a manifest with checksums or a lock tells that one was there; then
    what is called like an artefact must be in a manifest, and nothing of a run's is a link.
    """
    if not folder.exists():
        return None
    names = sorted(path.name for path in folder.iterdir())
    if names and durable.LOCK not in names:
        manifest = durable.known_object(folder / MANIFEST) or {}
        if not isinstance(manifest.get(CHECKSUMS), dict):
            return names[0]
    return _unknown(folder, {FAILURE, *known_names(folder)})


def _unknown(folder: Path, known: set[str]) -> str | None:
    """Return a name of a run's that is not among the known ones, or a link."""
    for path in sorted(folder.iterdir()):
        is_folder = path.name in (BASELINE, STEP, HYDRA) or path.name.startswith("replication=")
        is_own = is_folder or path.name in FILES or path.name.endswith(".log")
        if is_own and (path.is_symlink() or path.is_dir() != is_folder):
            return path.name
        if path.name in FILES and path.name not in known:
            return path.name
        if is_folder:
            is_listed = f"{path.name}/{MANIFEST}" in known
            below = known_names(path) or {*FILES} if is_listed else set()
            inner = _unknown(path, below)
            if inner is not None:
                return f"{path.name}/{inner}"
    return None


COMPLETE = ".moldsim-complete"
"""Folder of results that are whole, from when on the former ones are given up."""
MARK = f"{HYDRA}/finished.json"
"""What a sweep notes of a finished run."""


@contextlib.contextmanager
def replacing(folder: Path, *, goes_on: bool = False) -> Iterator[Path]:
    """Give a folder whose content takes the place of a run's former results at the end.

    Until all is written and on the disk the former results stay as they are, whatever happens. A
    process that dies while files are moved leaves no summary, and `finish` moves the rest. Where
    a run `goes_on`, the folder has what one left there that was interrupted, or ended because
    nobody reads its output any more.
    """
    finish(folder)
    partial = folder / f"{durable.PARTIAL}-run"
    durable.clear_partial(folder, partial if goes_on else None)
    durable.real_folder(partial)
    try:
        yield partial
        for path in [*partial.rglob("*"), partial]:
            durable.sync(path)
    except BaseException as error:
        is_cut_off = isinstance(error, SystemExit | BrokenPipeError) or was_interrupted(error)
        if not (goes_on and is_cut_off and [*partial.glob(f"*/{SUMMARY}")]):
            shutil.rmtree(partial, ignore_errors=True)
        raise
    partial.rename(folder / COMPLETE)
    try:
        finish(folder)
    except KeyboardInterrupt:
        finish(folder)
        raise


def finish(folder: Path) -> None:
    """Move results that are whole to their place, if there are such."""
    if (folder / COMPLETE).is_dir():
        (folder / MARK).unlink(missing_ok=True)
        _move(folder / COMPLETE, folder)
        durable.sync(folder)


def _move(whole: Path, folder: Path) -> None:
    """Move files to their place, the summary last; what their manifest does not list is removed."""
    folder.mkdir(exist_ok=True)
    if (whole / MANIFEST).exists():
        _forget(folder, known_names(whole))
    last = (MANIFEST, SUMMARY)
    for path in sorted(whole.iterdir(), key=lambda path: (path.name in last, path.name)):
        if path.is_dir():
            _move(path, folder / path.name)
        else:
            path.replace(folder / path.name)
    whole.rmdir()


def _forget(folder: Path, kept: set[str]) -> None:
    """Remove a run's own files, the summary first, and folders empty then; some are kept."""
    known = known_names(folder) or {*FILES}
    for name in [SUMMARY, *sorted(known - kept - {SUMMARY})]:
        path = folder / name
        if path.parent == folder:
            path.unlink(missing_ok=True)
        else:
            _forget(path.parent, set())
    if not kept:
        with contextlib.suppress(OSError):
            folder.rmdir()
