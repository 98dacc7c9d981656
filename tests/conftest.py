"""What all tests share: where real logs and measurements lie, and which tests are fast."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("any_machine", deadline=None)  # others may be at work on it
settings.load_profile("any_machine")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts it so in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # commands under test hear of it


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


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile everything once before all tests are run where nothing is compiled yet.

    Else each process of the tests compiles the same code by itself.
    """
    config, root = session.config, Path(__file__).resolve().parents[1]
    everything = config.args == config.getini("testpaths") and not config.getoption("markexpr")
    if not everything or hasattr(config, "workerinput"):
        return
    from predictors.compiling import kernel_folder  # late: the compiler takes long to import

    if not any(kernel_folder().rglob("*.nbi")):
        subprocess.run([sys.executable, "-m", "sim.warm"], cwd=root, check=False)


FAST = "pytest.mark.fast"
"""What stands in a file of which some tests belong to ``pytest -m fast``."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave other files of tests unread where the fast ones alone are wanted."""
    if config.getoption("markexpr") != "fast" or not collection_path.name.startswith("test_"):
        return None
    return None if FAST in collection_path.read_text(encoding="utf-8") else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Count examples in docstrings among the fast tests, and leave out those marked slow."""
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            item.add_marker(pytest.mark.fast)
    if config.getoption("markexpr") == "fast":
        config.hook.pytest_deselected(items=[one for one in items if is_slow(one)])
        items[:] = [one for one in items if not is_slow(one)]


def is_slow(item: pytest.Item) -> bool:
    """Say whether a test is left out though others of its file are fast."""
    return item.get_closest_marker("slow") is not None
