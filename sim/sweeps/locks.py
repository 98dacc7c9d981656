"""One process at a time in a run's folder, on one machine and on shared file systems.

A lock is a file that appears by a link, which file systems do at once or not at all. Its
process touches it while it lives; one whose process is dead, or that nobody has touched
for long, is taken away.
"""

import contextlib
import json
import os
import platform
import stat
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from sim.errors import SimError
from sim.results.durable import PARTIAL

LOCK = ".moldsim.lock"
BEAT = 15.0
"""Seconds between two touches of a lock."""
STALE = 600.0
"""Seconds untouched after which the lock of another machine counts as forgotten."""
PAUSE = 0.2
"""Seconds between two looks at a lock that is waited for."""
LONGEST = 4096
"""Bytes of a lock that are read."""


class BusyError(SimError):
    """Another process works in a folder."""


def _started(pid: int) -> str:
    """Return when a process of this machine began, by its kernel; empty where it does not say."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    except (OSError, IndexError, ValueError):
        return ""


def _own_words() -> str:
    pid = os.getpid()
    own = {"host": platform.node(), "pid": pid, "started": _started(pid), "token": uuid.uuid4().hex}
    return json.dumps(own)


def _read(lock: Path) -> str | None:
    """Return what a lock says, None where there is none; links and other things say nothing."""
    try:
        if not stat.S_ISREG(lock.lstat().st_mode):
            return ""
        with lock.open(encoding="utf-8", errors="replace") as stream:
            return stream.read(LONGEST)
    except FileNotFoundError:
        return None


def _words(text: str) -> tuple[str, int, str]:
    try:
        content = json.loads(text)
        return str(content["host"]), int(content["pid"]), str(content["started"])
    except (ValueError, KeyError, TypeError):
        return "", 0, ""


def _is_alive(text: str, age: float) -> bool:
    """Return whether a lock's process still works, as far as this machine can tell."""
    host, pid, started = _words(text)
    if not host:
        return False
    if host != platform.node():
        return abs(age) < STALE
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError, ValueError):
        return False
    except PermissionError:
        pass
    return started in ("", _started(pid))


def holder(folder: Path) -> str | None:
    """Return who works in a folder, such as "process 17 on host"; None if nobody does."""
    lock = folder / LOCK
    text = _read(lock)
    if text is None:
        return None
    with contextlib.suppress(OSError):
        if _is_alive(text, time.time() - lock.lstat().st_mtime):
            host, pid, _ = _words(text)
            return f"process {pid} on {host}"
    return None


def _place(own: Path, lock: Path) -> bool:
    """Make the lock if there is none; return whether that succeeded."""
    try:
        os.link(own, lock)
    except FileExistsError:
        return own.stat().st_nlink == 2  # a server's answer may have been lost
    except OSError:  # a file system without links
        try:
            with lock.open("x", encoding="utf-8") as stream:
                stream.write(own.read_text(encoding="utf-8"))
        except FileExistsError:
            return False
    return True


def _take_away(lock: Path, text: str) -> None:
    """Remove the lock that says this; one that was made meanwhile is put back."""
    aside = lock.with_name(f"{PARTIAL}-{uuid.uuid4().hex}")
    with contextlib.suppress(FileNotFoundError):
        lock.rename(aside)
        if _read(aside) != text:
            with contextlib.suppress(OSError):
                os.link(aside, lock)
        aside.unlink()


def _beat(lock: Path, text: str, ended: threading.Event) -> None:
    while not ended.wait(BEAT):
        with contextlib.suppress(OSError):
            if _read(lock) == text:
                os.utime(lock)


@contextlib.contextmanager
def locked(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Keep other processes out of a folder, which must exist.

    Parameters
    ----------
    folder : pathlib.Path
    wait : bool
        For another process to end, instead of refusing.

    Raises
    ------
    BusyError
        If another process works there.
    """
    lock, text = folder / LOCK, _own_words()
    handle, name = tempfile.mkstemp(prefix=f"{PARTIAL}-", dir=folder)
    own = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        while not _place(own, lock):
            found = _read(lock)
            if found is None:
                continue
            os.utime(own)  # by the clock of the file system
            with contextlib.suppress(FileNotFoundError):
                if not _is_alive(found, own.stat().st_mtime - lock.lstat().st_mtime):
                    _take_away(lock, found)
                    continue
            if not wait:
                host, pid, _ = _words(found)
                raise BusyError(
                    f"{folder}: process {pid} on {host} works there; wait for it, or choose "
                    "another folder (hydra.run.dir=DIR)"
                )
            time.sleep(PAUSE)
    finally:
        own.unlink(missing_ok=True)
    ended = threading.Event()
    threading.Thread(target=_beat, args=(lock, text, ended), daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        if _read(lock) == text:
            lock.unlink(missing_ok=True)
