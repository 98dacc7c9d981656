"""Ctrl-C: a command ends within two seconds, with one line and status 130, wherever it is.

First the main thread is told, between two of its steps, so that it puts away what it was writing.
A thread that waits for signals ends the process if that takes too long; compiled functions let
it run (`predictors.compiling.compiled`), and so do those of other libraries that take long.
"""

import _thread
import atexit
import contextlib
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import NoReturn

INTERRUPTED = 130
SAID = "interrupted: no unfinished result was saved\n"
GRACE = 1.0
"""Seconds that the main thread has."""
LATER = 0.01
"""Seconds until it is told again, where it cannot be told at once."""
GO_ON = "MOLDSIM_GO_ON"
"""Variable of the environment that names the command which goes on, for commands below it."""
_going_on: list[str] = []
_noted: list[int] = []
_watched: list[bool] = []


def _is_boxing(frame: FrameType | None) -> bool:
    """Return whether compiled code makes its answer Python's: it takes no exception then."""
    while frame is not None:
        named_tuple = str(frame.f_globals.get("__name__")).startswith("namedtuple_")
        if named_tuple or frame.f_code.co_name == "_numba_unpickle":
            return True
        frame = frame.f_back
    return False


def _note(number: int, frame: FrameType | None) -> None:
    _noted.append(number)
    if _is_boxing(frame):
        threading.Timer(LATER, _thread.interrupt_main).start()
        return
    if _watched:
        sys.unraisablehook = lambda _: None  # what it meets within a finaliser says nothing more
    signal.default_int_handler(number, frame)


def was_interrupted(error: BaseException) -> bool:
    """Return whether the user's interrupt is behind an error.

    Modules that are being loaded turn it into errors of their own, some without its trace.
    """
    if _noted:
        return True
    behind: BaseException | None = error
    while behind is not None and not isinstance(behind, KeyboardInterrupt):
        behind = behind.__cause__ or behind.__context__
    return behind is not None


def goes_on(words: Sequence[str], said: str = "what is finished stays; go on with") -> None:
    """Let an interrupt say from now on with which command line to go on, or to start again."""
    _going_on[:] = [f"{said}: {os.environ.get(GO_ON) or shlex.join(words)}\n"]


def _is_free() -> bool:
    """Return whether Python's own handler would meet an interrupt here."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler


@contextlib.contextmanager
def noting_interrupts() -> Iterator[None]:
    """Remember interrupts by the user while something is done within a process of others."""
    if not _is_free():
        yield
        return
    _noted.clear()
    signal.signal(signal.SIGINT, _note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def watch() -> None:
    """Let an interrupt end this process, which is a command's, from now on."""
    if not _is_free():
        return
    _watched.append(True)
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, _note)
    sys.excepthook = _told
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # all is done by then
    threading.Thread(target=_wait, args=(read,), name="interrupts", daemon=True).start()


def _wait(read: int) -> None:
    """End the process a while after an interrupt, if it has not ended."""
    while os.read(read, 1) != bytes([signal.SIGINT]):
        pass
    time.sleep(GRACE)
    end()


def _told(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if was_interrupted(error):
        end()
    sys.__excepthook__(kind, error, trace)


def end() -> NoReturn:
    """End an interrupted command: at once where the process is its own, which its threads share.

    Python's own end, while other threads are at work, can be a segmentation fault.
    """
    if not _watched:
        sys.stderr.write("".join((SAID, *_going_on)))
        # An interrupt that met code made from text would be the end of Python whatever
        # status is asked for; the next such code, which is this, lets it be forgotten.
        exec("")
        raise SystemExit(INTERRUPTED)
    with contextlib.suppress(BaseException):
        for one in Path("/proc/self/task").glob("*/children"):  # workers of a sweep
            for child in one.read_text(encoding="ascii").split():
                os.kill(int(child), signal.SIGKILL)
    show_cursor = "\x1b[?25h" if sys.stderr.isatty() else ""
    os.write(2, "".join((show_cursor, SAID, *_going_on)).encode())
    os._exit(INTERRUPTED)
