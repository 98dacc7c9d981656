"""The runs below a folder, one row each: what comparisons, reports and data sets read."""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from predictors.cli.terminal import SILENT, Display
from sim.errors import SimError
from sim.results.artefacts import STEP, figures_of, read_results
from sim.results.durable import (
    CHECKSUMS,
    FAILURE,
    MANIFEST,
    SUMMARY,
    read_failure,
    read_object,
    unlike_manifest,
)
from sim.results.job_metrics import Figures
from sim.results.provenance import CODE, INPUTS
from sim.results.sentences import is_recorded
from sim.sweeps.configurations import (
    NAMED,
    OWN_PREDICTOR,
    Configuration,
    Setting,
    SharedNames,
    distinguishing,
    group_of,
    of_baseline,
    read_configuration,
    with_names,
    with_options,
)

MARKED = 8
"""Digits of a checksum that mark a row."""
ABREAST = 32
"""Columns that are made at a time; all at once take four times the memory of the table."""
LEFT_OUT = "runs left out, as they differ from another in a predictor that changes nothing"
"""How many rows a table lacks, in its ``attrs``."""
NOT_THERE = "runs that are not there"
"""What `missing_runs` says of a table's folder, in its ``attrs``."""
FIXED = ("run", "role", "status", "message")
"""First columns of every row, before the keys that tell runs apart."""


def _natural(path: str) -> list[tuple[int, str]]:
    """Return a key that sorts numbers within names by value."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", path)]


def find_runs(folder: Path) -> list[Path]:
    """Return the folders of runs below a folder or at it, finished or not, in natural order.

    What lies inside a run (its baseline, its replications) is part of it.

    Raises
    ------
    SimError
        If there is no such folder, or no run in it.
    """
    if not folder.is_dir():
        raise SimError(f"{folder}: there is no such folder")
    found = []
    for place, inner, _ in os.walk(folder):
        if any((Path(place) / name).exists() for name in (".hydra", SUMMARY, FAILURE)):
            found.append(Path(place))
            inner.clear()
    if not found:
        raise SimError(f"{folder}: there is no run below it (a folder with {SUMMARY} or .hydra/)")
    return sorted(found, key=lambda path: _natural(path.relative_to(folder).as_posix()))


def missing_runs(folder: Path, begun: Collection[Path]) -> str:
    """Return how many runs that sweeps at or below a folder were asked for are not there.

    Parameters
    ----------
    folder : pathlib.Path
    begun : collection of pathlib.Path
        Folders of the runs that are there.

    Returns
    -------
    str
        With the names of the files that ask for them; empty if all are there.
    """
    from sim.sweeps.resume import asked_of

    asked = {plan: asked_of(plan) for plan in sorted(folder.rglob("multirun*.yaml"))}
    every: set[Path] = set().union(*asked.values())
    left = every.difference(begun)
    files = ", ".join(str(plan.relative_to(folder)) for plan, runs in asked.items() if runs & left)
    return f"not there: {len(left)} of {len(every)} asked for in {files}" if left else ""


Summaries = dict[tuple[str, str], Mapping[str, Any]]
"""Summaries of finished simulations by run and role."""
Gathered = tuple[pd.DataFrame, list[str], Summaries]
"""What `gather` returns."""
Origin = tuple[str | None, dict[str, str]]
"""Of a run: its code and its input files, as manifests have them; None without a manifest."""


class _Row(NamedTuple):
    """A simulation: its folder, role and state, and its figures if it has ended."""

    state: dict[str, object]
    figures: Mapping[str, Any]


def _read(root: Path, run: Path) -> tuple[list[_Row], Configuration, Origin]:
    """Return the rows of a run, its own and its baseline's, what it is and its origin.

    Each file is read once. Where the configuration cannot be read the run counts as damaged.
    """
    summary: Figures | None = None
    manifest: dict[str, Any] | None = None
    wrong = None
    ended = (run / SUMMARY).exists()
    try:
        if ended:
            summary = figures_of(read_object(run / SUMMARY))
        if (run / MANIFEST).exists():
            manifest = read_object(run / MANIFEST)
        if ended:
            wrong = unlike_manifest(run, manifest or {}, complete=False)
    except ValueError as error:
        wrong = str(error) if ended else None
    rows = list(_rows(root, run, summary, wrong))
    known = (manifest or {}).get(CHECKSUMS, ()) if rows[0].state["status"] == "finished" else ()
    gone = [name for name in known if name.startswith("replication=") and not (run / name).exists()]
    if gone:
        rows[0].state["message"] = f"{', '.join(gone)} is missing; what is there is compared"
    configuration = Configuration()
    try:
        configuration = read_configuration(run)
    except SimError as error:
        rows = [_Row(rows[0].state | {"status": "damaged", "message": str(error)}, {})]
    if manifest is None:
        return rows, configuration, (None, {})
    inputs = manifest.get(INPUTS)
    files = inputs.items() if isinstance(inputs, dict) else ()
    code = str(manifest.get(CODE) or "")
    return rows, configuration, (code, {str(key): str(value) for key, value in files})


def _rows(root: Path, run: Path, summary: Figures | None, wrong: str | None) -> Iterator[_Row]:
    """Yield the rows of a run: its own and its baseline's."""
    name = run.relative_to(root).as_posix()
    own: dict[str, object] = {"run": name, "role": "run", "message": ""}
    if wrong is not None:
        yield _Row(own | {"status": "damaged", "message": wrong}, {})
    elif summary is not None:
        for role, figures in read_results(run, summary).items():
            named = {"role": role or "run", "status": "finished"}
            yield _Row(own | named, SharedNames(figures))
    if (run / FAILURE).exists():  # beside results of an earlier run, which stay
        yield _Row(own | {"status": "failed", "message": read_failure(run)}, {})
    elif wrong is None and summary is None:
        yield _Row(own | {"status": "unfinished", "message": "it wrote no summary"}, {})


def with_origins(
    settings: Sequence[Setting], runs: Sequence[Configuration], origins: Sequence[Origin]
) -> list[Setting]:
    """Return the settings, with ``code`` and ``input`` where runs differ in them unasked.

    Runs of another code, or of another file under the same name, are no pairs; so they
    differ in a key: of the files of a policy, or predictor, in one of that group.
    """
    found = [dict(setting) for setting in settings]
    if len({code for code, _ in origins} - {None}) > 1:
        for setting, (code, _) in zip(found, origins, strict=True):
            setting["code"] = (code or "")[:MARKED] or "unknown"
    files: dict[tuple[str, object], set[str]] = {}
    for run, (_, inputs) in zip(runs, origins, strict=True):
        for key, checksum in inputs.items():
            files.setdefault((key, run.value(key.partition("/")[0])), set()).add(checksum)
    for part in sorted({_input_of(key) for (key, _), sums in files.items() if len(sums) > 1}):
        for setting, (_, inputs) in zip(found, origins, strict=True):
            own = (sums[:MARKED] for key, sums in inputs.items() if _input_of(key) == part)
            setting[part] = " ".join(own) or None
    return found


def _input_of(key: str) -> str:
    """Return the key by which an input file tells runs apart."""
    return f"{group_of(key)}.input" if group_of(key) in NAMED else "input"


def gather(folder: Path, progress: Display = SILENT) -> Gathered:
    """Return one row for each run and baseline below a folder, and what tells them apart.

    Parameters
    ----------
    folder : pathlib.Path
    progress : Display, optional

    Returns
    -------
    table : pandas.DataFrame
        Columns ``run`` (its folder), ``role``, ``status``, ``message``, then the
        keys that differ, then all figures in order of their names.
    keys : list of str
        The configuration keys that differ between runs. A log's own schedule, which
        asks no predictor, and a policy that brings its own are one row whatever the
        predictors beside them.
    summaries : dict
        Of finished simulations by run and role.

    Raises
    ------
    SimError
        If the folder does not exist or holds no run.
    """
    runs = find_runs(folder)
    read = [_read(folder, run) for run in progress.each(runs, "reads the runs")]
    found, configurations, origins = zip(*read, strict=True)
    settings = distinguishing(configurations)
    settings = with_origins(settings, configurations, origins)
    asked = [configuration.choices.get(OWN_PREDICTOR) for configuration in configurations]
    if any(len(own) > 1 for own in found) or any(asked):  # policies or predictors differ
        settings = list(map(with_names, settings, configurations))
    keys = sorted({key for setting in settings for key in setting})
    rows: list[tuple[_Row, Setting]] = []
    alike: list[Setting] = []
    repeated = 0
    whole = zip(found, configurations, settings, asked, strict=True)
    for every, configuration, setting, predictor in whole:
        for row in every:
            own, is_run = setting, row.state["role"] == "run"
            if not is_run:
                own = of_baseline(setting, configuration, row.state["role"] == STEP)
            if is_recorded(row.figures) or (is_run and predictor is not None):
                own = with_options(own, {"predictor": predictor})  # that of its policy, or nobody
                if is_run and own in alike:
                    repeated += 1
                    continue  # the same schedule beside another predictor
                alike.append(own)
            rows.append((row, own))
    ended = [row for row, _ in rows if row.state["status"] == "finished"]
    known = {(str(row.state["run"]), str(row.state["role"])): row.figures for row in ended}
    table = _table(rows, keys)
    table.attrs |= {LEFT_OUT: repeated, NOT_THERE: missing_runs(folder, runs)}
    return table, keys, known


def _table(rows: Sequence[tuple[_Row, Setting]], keys: Sequence[str]) -> pd.DataFrame:
    """Return the rows as a table: state, keys, then figures in order of their names."""
    first = [[*map(row.state.get, FIXED), *map(own.get, keys)] for row, own in rows]
    rest = sorted({name for row, _ in rows for name in row.figures} - {*FIXED})
    parts = [pd.DataFrame(first, columns=[*FIXED, *keys])]
    for begin in range(0, len(rest), ABREAST):
        names = rest[begin : begin + ABREAST]
        values = [[row.figures.get(name, np.nan) for name in names] for row, _ in rows]
        parts.append(pd.DataFrame(values, columns=names))
    return pd.concat(parts, axis="columns")


def distinct(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with a dot behind figures that are named like a key, such as ``seed``."""
    names: list[str] = []
    for name in map(str, table.columns):
        names.append(f"{name}." if name in names else name)
    return table.set_axis(names, axis="columns")
