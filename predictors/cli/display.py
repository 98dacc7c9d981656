"""How far something is that takes long: a line on a terminal or in a notebook, lines elsewhere."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, Self, TypeVar

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

T = TypeVar("T")

PATIENCE_SECONDS = 1.0
"""Shorter runs show nothing; a quarter of it tells how fast shares are done."""
LEAST_BAR, LONGEST_BAR = 6, 24
"""Columns of the bar; it is left out where there is less room."""
LINE_SECONDS, NOTEBOOK_SECONDS, TERMINAL_SECONDS = 10.0, 0.5, 0.1
"""Between plain lines where the output is neither, and between changes of the line there."""


def duration(seconds: float) -> str:
    """Return a duration as hours, minutes and seconds.

    Examples
    --------
    >>> duration(3725.0)
    '1:02:05'
    """
    whole = int(seconds)
    return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}"


class Display:
    """Shows how far something is that takes long.

    On a terminal one line is redrawn and vanishes at the end, in a notebook it stays; elsewhere
    a plain line is printed every ten seconds.

    Parameters
    ----------
    console : rich.console.Console
    label : str
        What is running, such as the policy's name.

    Examples
    --------
    >>> with Display(Console(quiet=True), "sa") as display:
    ...     display.show("reads the log")
    """

    def __init__(self, console: Console, label: str = "") -> None:
        self._console = console
        self._label = label
        self._drawn = console.is_jupyter or (console.is_terminal and not console.is_dumb_terminal)
        self._begun = time.monotonic()
        drawn = NOTEBOOK_SECONDS if console.is_jupyter else TERMINAL_SECONDS
        self._period = drawn if self._drawn else LINE_SECONDS
        self._line_at = self._begun + self._period
        self._live: Live | None = None
        self._page: Any = None
        self._part = (0.0, 1.0)
        self._first: tuple[float, float] | None = None

    @contextlib.contextmanager
    def part(self, place: int, parts: float, label: str = "") -> Iterator[None]:
        """Take what is shown for one of several parts of the whole, of about the same length."""
        before = self._part, self._label
        begin, share = self._part
        self._part = begin + share * place / parts, share / parts
        self._label = " · ".join(filter(None, (self._label, label)))
        yield
        self._part, self._label = before

    @contextlib.contextmanager
    def ahead(self) -> Iterator[None]:
        """Take what is shown for a whole by itself, ahead of the parts that follow."""
        before = self._part, self._first
        self._part, self._first = (0.0, 1.0), None
        yield
        self._part, self._first = before

    def is_due(self) -> bool:
        """Return whether it is time to show something, or to look for the first time."""
        wall = time.monotonic()
        if wall - self._begun < PATIENCE_SECONDS or self._console.quiet:
            return False
        return self._first is None or wall >= self._line_at

    def show(self, text: str, done: float | None = None) -> None:
        """Show what is done, and what time is left if that much of the part is done.

        Time is counted from the first share on: what is loaded and compiled before is no measure.
        """
        wall, share = time.monotonic(), self._part[0] + self._part[1] * (done or 0.0)
        if done is None:
            if self._drawn and not self._console.quiet:
                self._redraw(text, share)
            return
        self._first = self._first or (wall, share)
        spent, gained = wall - self._first[0], share - self._first[1]
        known = spent >= PATIENCE_SECONDS / 4 and gained > 0 and share < 1
        left = duration(spent * (1 - share) / gained) if known else "-:--:--"
        text = f"{text} · {left} left" if text else f"{left} left"
        if not (self._drawn or wall >= self._line_at):
            return
        self._line_at = wall + self._period
        if self._drawn:
            self._redraw(text, share)
        else:
            self._console.print(f"{self._label}: {text}", highlight=False, soft_wrap=True)

    def each(self, things: Sequence[T], text: str) -> Iterator[T]:
        """Yield one thing after the other, and show how many are done."""
        for place, one in enumerate(things):
            if place == 0 or self.is_due():
                self.show(f"{text}, {place + 1} of {len(things)}", place / len(things))
            yield one

    def _redraw(self, text: str, share: float) -> None:
        if self._console.is_jupyter:
            bar = "█" * round(share * LONGEST_BAR)
            shown = {"text/plain": f"{self._label} {bar:░<{LONGEST_BAR}} {text}"}
            if self._page is None:
                display = import_module("IPython.display").display  # a notebook has it
                self._page = display(shown, raw=True, display_id=True)
            else:
                self._page.update(shown, raw=True)
            return
        row = Table.grid(padding=(0, 1))
        cells: list[RenderableType] = [Text(self._label), Text(text)]
        room = self._console.width - sum(cell_len(one) for one in (self._label, text)) - 3
        if room >= LEAST_BAR:
            cells.insert(1, ProgressBar(1.0, share, width=min(room, LONGEST_BAR)))
        for _ in cells:
            row.add_column(no_wrap=True)
        row.add_row(*cells)
        if self._live is None:
            self._live = Live(row, console=self._console, transient=True, auto_refresh=False)
            self._live.start()
        self._live.update(row, refresh=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self._page is not None:
            took = duration(time.monotonic() - self._begun)
            self._page.update({"text/plain": f"{self._label} ended after {took}".strip()}, raw=True)


SILENT = Display(Console(quiet=True))
"""Shows nothing."""
