"""Progress of a sweep: done, failed, running, time left; on the terminal and in a log file."""

import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

SECONDS = 5.0
"""Between two looks at the folders, at least."""
SHARE = 0.02
"""Of the time may be spent on looking, at most."""
LOG = "sweep.log"


class State(NamedTuple):
    """How far a sweep is."""

    done: int
    failed: int
    running: int
    total: int


def duration(seconds: float) -> str:
    """Return a duration as hours, minutes and seconds.

    Examples
    --------
    >>> duration(3725.0)
    '1:02:05'
    """
    whole = int(seconds)
    return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}"


class SweepProgress:
    """Watches the folders of runs from a thread of its own, whatever carries them out.

    A line goes to ``sweep.log`` in the sweep's folder, and to standard error
    (one line that is redrawn on a terminal), whenever the counts have changed.

    Parameters
    ----------
    folder : pathlib.Path
        The sweep's.
    runs : sequence of pathlib.Path
        Folders of the runs that are to be carried out; without any, nothing is shown.
    before : int
        Runs that were finished before.

    Examples
    --------
    >>> with SweepProgress(Path("nowhere"), []):
    ...     pass
    """

    def __init__(self, folder: Path, runs: Sequence[Path], before: int = 0) -> None:
        self._log = folder / LOG
        self._waiting = list(runs)
        self._total = len(runs) + before
        self._before = before
        self._done = self._failed = 0
        self._begun = time.time()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="sweep progress", daemon=True)
        self._last: State | None = None

    def look(self) -> State:
        """Return how far the sweep is; folders of runs that ended are not looked at again."""
        waiting, running = [], 0
        for run in self._waiting:
            if _is_new(run / "summary.json", self._begun):
                self._done += 1
            elif _is_new(run / "failure.json", self._begun):
                self._failed += 1
            else:
                waiting.append(run)
                running += _is_new(run / ".hydra" / "overrides.yaml", self._begun)
        self._waiting = waiting
        return State(self._before + self._done, self._failed, running, self._total)

    def line(self, state: State) -> str:
        """Return the state as text."""
        ended = self._done + self._failed
        rest = state.total - state.done - state.failed
        spent = time.time() - self._begun
        left = duration(spent * rest / ended) if ended else "-:--:--"
        return (
            f"{state.done:,} of {state.total:,} done, {state.failed:,} failed, "
            f"{state.running:,} running, {rest - state.running:,} waiting, "
            f"{duration(spent)} spent, {left} left"
        )

    def _watch(self) -> None:
        pause = SECONDS
        while not self._stop.wait(pause):
            began = time.perf_counter()
            self._show(self.look())
            pause = max(SECONDS, (time.perf_counter() - began) / SHARE)

    def _show(self, state: State, *, last: bool = False) -> None:
        if state == self._last and not last:
            return
        self._last = state
        line = self.line(state)
        with self._log.open("a", encoding="utf-8") as stream:
            stream.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\033[K{line}" + ("\n" if last else ""))
        else:
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    def __enter__(self) -> Self:
        if self._waiting:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._total - self._before and kind is None:
            self._show(self.look(), last=True)


def _is_new(path: Path, since: float) -> bool:
    """Return whether a file was written since an instant (2 s for clocks that differ)."""
    try:
        return path.stat().st_mtime > since - 2.0
    except OSError:
        return False
