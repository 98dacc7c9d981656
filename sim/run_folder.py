"""The folder of a run: whether it is finished, and how it is emptied."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from sim.artefacts import BASELINE, STEP, clear, is_finished, mean_summary, read_summary
from sim.job_metrics import Figures

MANIFEST = "manifest.json"
DIGEST = "config_sha256"
"""Under this key the manifest has the digest of the configuration."""


def is_finished_with(folder: Path, digest: str) -> bool:
    """Return whether a run with this very configuration is finished in the folder."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return is_finished(folder) and manifest.get(DIGEST) == digest


def summary_beside(run: Path, summary: Figures, name: str = BASELINE) -> Figures | None:
    """Return the summary of what a finished run was compared with, its mean over replications.

    Parameters
    ----------
    run : pathlib.Path
    summary : dict
        The run's own.
    name : str
        ``baseline`` or ``baseline_predictor``; None is returned where it was not played.
    """
    count = summary.get("replications")
    if not isinstance(count, int):
        return read_summary(run / name) if is_finished(run / name) else None
    folders = [run / f"replication={k}" / name for k in range(count)]
    if not folders or not all(map(is_finished, folders)):
        return None
    return mean_summary([read_summary(folder) for folder in folders])


def read_results(run: Path) -> tuple[Figures, Figures | None, Figures | None]:
    """Return the summaries of a finished run, of its baseline and of the step between."""
    summary = read_summary(run)
    return summary, summary_beside(run, summary), summary_beside(run, summary, STEP)


def _parts(folder: Path) -> Iterator[Path]:
    for run in (*sorted(folder.glob("replication=*")), folder):
        yield run / BASELINE
        yield run / STEP
        yield run


def clear_run(folder: Path) -> None:
    """Remove what an earlier or broken run left: its own files, and folders empty then.

    The run's own summary goes first, so that nothing looks finished on the way.
    """
    (folder / ".hydra" / "finished.json").unlink(missing_ok=True)
    clear(folder)
    for part in list(_parts(folder)):
        clear(part)
        if part != folder:
            with contextlib.suppress(OSError):
                part.rmdir()
