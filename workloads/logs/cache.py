"""Where files are kept between runs."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return where logs and checksums are kept: ``MOLDSIM_CACHE``, else the platform's place."""
    if named := os.environ.get("MOLDSIM_CACHE"):
        return Path(named).expanduser()
    if os.uname().sysname == "Darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "moldsim"
