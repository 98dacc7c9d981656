"""One process at a time in a run's folder, on one machine and on shared file systems.

The lock is the kernel's, on a file that stays in the folder: no name of a machine, no clock and
no link tells whether it is held, and that of a process that died is free at once.
"""

import contextlib
import fcntl
import itertools
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

from predictors.plain import shown_plainly
from sim.errors import SimError
from sim.results.artefacts import foreign
from sim.results.durable import LOCK

PAUSE = 0.1
"""Seconds between two tries to have a lock."""
TRIES = 3
"""Tries before a folder counts as taken: `holder` has the lock for a moment too."""
LONGEST = 4096
"""Bytes of a lock that are read."""


class BusyError(SimError):
    """Another process works in a folder."""


def _opened(folder: Path, how: int) -> int:
    return os.open(folder / LOCK, how | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


def _is_ours(handle: int, how: int, folder: Path) -> bool:
    """Take a lock if nobody else has it; return whether that succeeded."""
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise SimError(
            f"{folder}: its file system has no locks that keep other processes out "
            f"({error.strerror}); choose a folder on another one"
        ) from None
    return True


def _said(handle: int) -> str:
    """Return what a lock says of who has it."""
    text = os.pread(handle, LONGEST, 0).decode(errors="replace")
    return shown_plainly(" ".join(text.split())) or "another process"


def holder(folder: Path) -> str | None:
    """Return who works in a folder, such as "process 17 on host"; None if nobody does."""
    try:
        handle = _opened(folder, os.O_RDONLY)
    except OSError:
        return None
    try:
        return None if _is_ours(handle, fcntl.LOCK_SH, folder) else _said(handle)
    finally:
        os.close(handle)


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
    SimError
        If the file system has no locks.
    """
    handle = _opened(folder, os.O_RDWR | os.O_CREAT)
    try:
        for tries in itertools.count(1):
            if _is_ours(handle, fcntl.LOCK_EX, folder):
                break
            if not wait and tries == TRIES:
                raise BusyError(
                    f"{folder}: {_said(handle)} works there; wait for it, or choose "
                    "another folder (hydra.run.dir=DIR)"
                )
            time.sleep(PAUSE)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()} on {platform.node()}".encode(), 0)
        yield
    finally:
        os.close(handle)


def refuse_foreign(folder: Path) -> None:
    """Refuse a folder that is neither new, empty, nor a run's own; nothing in it is touched."""
    name = foreign(folder)
    if name is not None:
        raise SimError(
            f"{folder}: it holds {shown_plainly(name)}, which no run wrote; choose a new or an "
            "empty folder (hydra.run.dir=DIR), or that of a run"
        )


def refuse_foreign_sweep(folder: Path) -> None:
    """Refuse a sweep's folder that is neither new, empty, nor has runs or a sweep in it."""
    names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    began = folder / "multirun.yaml"
    if began.is_file():
        own = "moldsim" in began.read_text(encoding="utf-8", errors="replace")
    else:
        own = not names or any(folder.glob(f"*/{LOCK}"))
    links = [name for name in ("multirun.yaml", "sweep.log") if (folder / name).is_symlink()]
    if links or not own:
        raise SimError(
            f"{folder}: it holds {shown_plainly([*links, *names][0])}, which no sweep wrote; "
            "choose a new or an empty folder (hydra.sweep.dir=DIR), or that of a sweep"
        )


@contextlib.contextmanager
def own_folder(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Keep a folder for a run, as `locked` does; it is made if missing, refused if not its own."""
    refuse_foreign(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, wait=wait):
        refuse_foreign(folder)
        yield
