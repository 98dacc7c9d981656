"""What may differ between two runs of one configuration: versions, host, wall time."""

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from workloads.base import Trace

PACKAGES = (
    *("moldsim", "numpy", "scipy", "pandas", "pyarrow", "simpy", "numba"),
    *("matplotlib", "hydra-core", "rich"),
)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def commit() -> str | None:
    """Return the commit of the checkout that this module lies in, None outside of one."""
    root = Path(__file__).resolve().parents[1]
    if not (root / ".git").exists():
        return None
    try:
        asked = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return asked.stdout.strip()


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
        "versions": {package: _version(package) for package in PACKAGES},
        "wall_seconds": wall_seconds,
    }
