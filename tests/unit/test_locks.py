"""Locks of folders: one process at a time, dead ones forgotten, links not followed."""

import json
import os
import platform
import subprocess
import sys

import pytest

from sim.sweeps import locks
from sim.sweeps.locks import LOCK, BusyError, holder, locked

pytestmark = pytest.mark.fast


def written(folder, **more):
    """A lock as another process leaves it."""
    lock = {"host": platform.node(), "pid": os.getpid(), "started": "", "token": "x"} | more
    (folder / LOCK).write_text(json.dumps(lock))


def test_a_folder_is_locked_and_clean_afterwards(tmp_path):
    with locked(tmp_path):
        assert holder(tmp_path) == f"process {os.getpid()} on {platform.node()}"
        with pytest.raises(BusyError, match=r"process \d+ on .* works there; wait for it"), \
             locked(tmp_path):  # fmt: skip
            pass
        assert [path.name for path in tmp_path.iterdir()] == [LOCK]
    assert list(tmp_path.iterdir()) == []
    assert holder(tmp_path) is None


def dead():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.parametrize(
    "left",
    [
        {"pid": 0x7FFFFFF0},
        {"started": "1"},  # another process has the number now
        {"pid": "9" * 400},
        {"host": 7, "pid": []},
    ],
)
def test_locks_of_dead_processes_are_forgotten(tmp_path, left):
    written(tmp_path, **left)
    assert holder(tmp_path) is None
    with locked(tmp_path):
        pass
    written(tmp_path, pid=dead())
    with locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_locks_of_other_machines_count_while_they_are_touched(tmp_path):
    written(tmp_path, host="elsewhere")
    assert holder(tmp_path) is not None
    with pytest.raises(BusyError, match="on elsewhere"), locked(tmp_path):
        pass
    for past in (locks.STALE + 60, -locks.STALE - 60):
        written(tmp_path, host="elsewhere")
        then = (tmp_path / LOCK).stat().st_mtime - past
        os.utime(tmp_path / LOCK, (then, then))
        with locked(tmp_path):
            pass


def test_a_planted_link_is_not_followed(tmp_path):
    mine, folder = tmp_path / "mine", tmp_path / "run"
    mine.write_text("kept")
    folder.mkdir()
    (folder / LOCK).symlink_to(mine)
    with locked(folder):
        pass
    assert mine.read_text() == "kept"
    (folder / LOCK).write_bytes(b"\xff" * 10_000)
    with locked(folder):
        pass


def test_a_file_system_without_links_has_locks_too(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refused)
    with locked(tmp_path), pytest.raises(BusyError), locked(tmp_path):
        pass


WAITER = """
import sys, time
from pathlib import Path
from sim.sweeps.locks import locked
for _ in range(20):
    with locked(Path(sys.argv[1]), wait=True):
        place = Path(sys.argv[1], "inside")
        place.mkdir()  # fails if another is inside
        time.sleep(0.001)
        place.rmdir()
"""


def test_processes_take_turns(tmp_path, monkeypatch):
    command = [sys.executable, "-c", WAITER, str(tmp_path)]
    written(tmp_path, pid=dead())
    running = [subprocess.Popen(command, cwd=locks.__file__.partition("/sim/")[0]) for _ in "abc"]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert list(tmp_path.iterdir()) == []
