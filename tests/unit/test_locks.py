"""Locks of folders: one process at a time, dead ones forgotten, links not followed."""

import os
import platform
import subprocess
import sys

import pytest

from sim.errors import SimError
from sim.sweeps import locks
from sim.sweeps.locks import LOCK, BusyError, holder, locked

pytestmark = pytest.mark.fast


def test_a_folder_is_locked_and_free_afterwards(tmp_path):
    assert holder(tmp_path) is None
    with locked(tmp_path):
        assert holder(tmp_path) == f"process {os.getpid()} on {platform.node()}"
        with pytest.raises(BusyError, match=r"process \d+ on .* works there; wait for it"), \
             locked(tmp_path):  # fmt: skip
            pass
    assert [path.name for path in tmp_path.iterdir()] == [LOCK]
    assert holder(tmp_path) is None


def begun(folder):
    """Start a process that has a folder to itself."""
    code = (
        "import sys, time; from pathlib import Path; from sim.sweeps.locks import locked\n"
        "with locked(Path(sys.argv[1])):\n    print('in', flush=True)\n    time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True,
        cwd=locks.__file__.partition("/sim/")[0],
    )  # fmt: skip
    assert process.stdout.readline() == "in\n"
    return process


def test_locks_of_killed_processes_are_free(tmp_path):
    with begun(tmp_path) as other:
        with pytest.raises(BusyError, match=f"process {other.pid} on "), locked(tmp_path):
            pass
        other.kill()
    assert holder(tmp_path) is None
    with locked(tmp_path):
        pass


def test_neither_names_of_machines_nor_clocks_tell_who_has_a_lock(tmp_path, monkeypatch):
    with begun(tmp_path) as other:
        for name in ("elsewhere", platform.node()):
            monkeypatch.setattr(platform, "node", lambda name=name: name)
            for moment in (1.0, 2e9):  # as if touched at any time
                os.utime(tmp_path / LOCK, (moment, moment))
                assert holder(tmp_path) is not None
                with pytest.raises(BusyError), locked(tmp_path):
                    pass
        (tmp_path / LOCK).write_text(f"process {os.getpid()} on {platform.node()}")
        with pytest.raises(BusyError), locked(tmp_path):
            pass
        other.kill()


def test_a_planted_link_is_not_followed(tmp_path):
    mine, folder = tmp_path / "mine", tmp_path / "run"
    mine.write_text("kept")
    folder.mkdir()
    (folder / LOCK).symlink_to(mine)
    with pytest.raises(OSError, match="symbolic links"), locked(folder):
        pass
    assert mine.read_text() == "kept"
    (folder / LOCK).unlink()
    (folder / LOCK).write_bytes(b"\xff\x1b[2J" * 10_000)
    with locked(folder):
        pass


def test_links_are_not_needed_and_without_locks_a_folder_is_refused(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("os.link", refused)
    with locked(tmp_path), pytest.raises(BusyError), locked(tmp_path):
        pass
    monkeypatch.setattr("fcntl.flock", refused)
    with pytest.raises(SimError, match="its file system has no locks"), locked(tmp_path):
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


def test_processes_take_turns(tmp_path):
    command = [sys.executable, "-c", WAITER, str(tmp_path)]
    running = [subprocess.Popen(command, cwd=locks.__file__.partition("/sim/")[0]) for _ in "abc"]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert [path.name for path in tmp_path.iterdir()] == [LOCK]
