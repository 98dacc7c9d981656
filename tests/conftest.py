"""Shared fixtures: where real logs and measurements lie, if anywhere."""

import os
from pathlib import Path

import pytest


def data_folder() -> Path | None:
    """Return the folder with ``traces/`` and ``scaling/``, or None.

    ``MOLDSIM_DATA`` names it; else a ``shared/data`` beside the checkout counts.
    """
    named = os.environ.get("MOLDSIM_DATA")
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(named) if named else beside
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def traces() -> Path:
    """Folder of real logs; the test skips where there is none."""
    folder = data_folder()
    if folder is None or not (folder / "traces").is_dir():
        pytest.skip("no real logs: set MOLDSIM_DATA")
    return folder / "traces"


@pytest.fixture(scope="session")
def scaling() -> Path:
    """Folder of measured scaling curves; the test skips where there is none."""
    folder = data_folder()
    if folder is None or not (folder / "scaling").is_dir():
        pytest.skip("no measured curves: set MOLDSIM_DATA")
    return folder / "scaling"
