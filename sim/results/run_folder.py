"""The folder of a run: whose it is, what is in it, and how new results replace former ones."""

import contextlib
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

from sim.help.interrupts import was_interrupted
from sim.help.versions import commit, installed, own_version
from sim.results.artefacts import (
    BASELINE,
    FILES,
    RUN,
    STEP,
    is_finished,
    mean_summary,
    read_summary,
)
from sim.results.durable import (
    CHECKSUMS,
    FAILURE,
    HYDRA,
    LOCK,
    MANIFEST,
    PARTIAL,
    SUMMARY,
    clear_partial,
    known_object,
    real_folder,
    sync,
)
from sim.results.job_metrics import Figures
from workloads.base import Trace

PACKAGES = (
    *("numpy", "scipy", "pandas", "pyarrow", "simpy", "numba"),
    *("matplotlib", "hydra-core", "rich"),
)


def manifest(trace: Trace, wall_seconds: float) -> dict[str, object]:
    """Return the content of ``manifest.json``.

    Parameters
    ----------
    trace : Trace
        Its source and checksum are kept.
    wall_seconds : float
        How long the run took.
    """
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

    Parameters
    ----------
    run : pathlib.Path
    summary : dict, optional
        The run's own, where it was read already. Of several replications it holds means, and so
        do those of the other roles that all replications have.
    """
    own = read_summary(run) if summary is None else summary
    count = own.get("replications")
    several = range(count) if isinstance(count, int) else None
    places = [run] if several is None else [run / f"replication={k}" for k in several]
    found = {RUN: own}
    for role in (BASELINE, STEP):
        if places and all(is_finished(place / role) for place in places):
            each = [read_summary(place / role) for place in places]
            found[role] = each[0] if several is None else mean_summary(each)
    return found


def known_names(folder: Path) -> set[str]:
    """Return the artefacts that a run wrote into a folder, as its manifest lists them.

    Where there is a manifest that cannot be read, every name of an artefact counts, and every
    folder below with a manifest.
    """
    if not (folder / MANIFEST).exists():
        return set()
    known = (known_object(folder / MANIFEST) or {}).get(CHECKSUMS)
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
    if names and LOCK not in names:
        manifest = known_object(folder / MANIFEST) or {}
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
    a run `goes_on`, the folder has what an interrupted one left there.
    """
    finish(folder)
    partial = folder / f"{PARTIAL}-run"
    clear_partial(folder, partial if goes_on else None)
    real_folder(partial)
    try:
        yield partial
        for path in [*partial.rglob("*"), partial]:
            sync(path)
    except BaseException as error:
        if not (goes_on and was_interrupted(error) and [*partial.glob(f"*/{SUMMARY}")]):
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
        sync(folder)


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
