"""The folder of a run: whether it is finished, and how it is emptied."""

import contextlib
import platform
from collections.abc import Iterator
from pathlib import Path

from sim.help.versions import commit, installed, own_version
from sim.results.artefacts import BASELINE, STEP, clear, is_finished, mean_summary, read_summary
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
