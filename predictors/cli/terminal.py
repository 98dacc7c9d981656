"""The terminal: for names that files hold, for tables that fit it, and for how far something is.

In a table figures stay whole; what has no room follows below. How far something is stands on one
line of a terminal or in a notebook, in lines elsewhere. Warnings wait until what they are of is
shown.
"""

import contextlib
import logging
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Self, TypeVar

from rich.box import SIMPLE
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from predictors.plain import shown_plainly


class PlainConsole(Console):
    """A console whose terminal obeys its own colours and moves alone, and none of a text."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render something; see `rich.console.Console.render`."""
        for text, *rest in super().render(renderable, options):
            more: list[Any] = rest
            yield Segment(text if more[-1] else shown_plainly(text), *more)


@contextmanager
def warnings_last() -> Iterator[None]:
    """Hold warnings back from the terminal until what they are of has been shown."""
    held: list[logging.LogRecord] = []

    def keep(record: logging.LogRecord) -> bool:
        if record.levelno == logging.WARNING:
            held.append(record)
        return record.levelno != logging.WARNING

    own = [one for one in logging.getLogger().handlers if not isinstance(one, logging.FileHandler)]
    for handler in own:
        handler.addFilter(keep)
    try:
        yield
    finally:
        for handler in own:
            handler.removeFilter(keep)
        for record in dict.fromkeys(held):
            for handler in own:
                handler.emit(record)


GAP = 2
"""Columns between two of a table."""
LEAST = 18
"""Columns to which words are folded at most; where a table needs several blocks, a third."""

Cell = str | Text


def fitting_tables(
    head: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    width: int,
    words: int = 1,
    title: str = "",
    ends: Collection[int] = (),
) -> Group:
    """Return a table within a width: as few blocks below each other as hold all columns.

    Parameters
    ----------
    head, rows : sequence
        Columns of words come first. A cell with a digit stays in one line; others, and
        headings, break between words where room is short.
    width : int
        Of the terminal, in characters.
    words : int
        How many columns hold words; each block begins with them.
    title : str
    ends : collection of int
        Rows after which a section ends.

    Examples
    --------
    >>> found = fitting_tables(["runs", "change", "pairs"], [["sa", "-47.0 %", "4"]], 14)
    >>> [[column.header.plain for column in one.columns] for one in found.renderables if one]
    [['runs', 'change'], ['runs', 'pairs']]
    """
    cells = [[one if isinstance(one, Text) else Text(one) for one in row] for row in [head, *rows]]
    columns = list(zip(*cells, strict=True))
    wanted = [max(one.cell_len for one in column) for column in columns]
    figures = wanted[words:]
    if sum(wanted) + GAP * (len(head) - 1) > width:
        figures = [max(_longest_word(one[0]), *map(_whole, one[1:]), 0) for one in columns[words:]]
    for share in (0, width // (3 * words)):
        folded = (max(min(max(map(_longest_word, one)), LEAST), share) for one in columns[:words])
        least = list(map(min, wanted, folded))
        room = width - sum(least) - GAP * (words - 1)
        needs = [*least, *figures]
        blocks: list[list[int]] = []
        for place in range(words, len(head)):
            if not blocks or sum(needs[one] + GAP for one in (*blocks[-1], place)) > room:
                blocks.append([])
            blocks[-1].append(place)
        if len(blocks) < 2:
            break
    parts: list[RenderableType] = []
    for block in blocks or [[]]:
        spare = width - sum(needs[one] + GAP for one in block) - GAP * (words - 1)
        sizes = [*_shared(least, wanted[:words], spare), *(needs[one] for one in block)]
        table = Table(
            title=Text(title, "italic") if title and not parts else None, title_justify="left",
            box=SIMPLE, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0),
        )  # fmt: skip
        shown = [*range(words), *block]
        for place, size in zip(shown, sizes, strict=True):
            justify = "left" if place < words else "right"
            table.add_column(cells[0][place], justify=justify, width=size, overflow="fold")  # type: ignore[arg-type]
        for number, row in enumerate(cells[1:]):
            table.add_row(*(row[place] for place in shown), end_section=number in ends)
        parts += ["", table] if parts else [table]
    return Group(*parts)


def _longest_word(cell: Text) -> int:
    return max((Text(one).cell_len for one in cell.plain.split()), default=0)


def _whole(cell: Text) -> int:
    """Return the columns that a cell takes at least."""
    return cell.cell_len if any(map(str.isdigit, cell.plain)) else _longest_word(cell)


def _shared(least: Sequence[int], wanted: Sequence[int], spare: int) -> list[int]:
    """Return the widths of columns of words, the first as wide as it likes if it can be."""
    sizes = list(least)
    if sum(sizes) > spare:  # words fold more
        return [max(min(one, spare // len(sizes)), 1) for one in sizes]
    for place, size in enumerate(wanted):
        sizes[place] += min(max(size - sizes[place], 0), spare - sum(sizes))
    return sizes


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
