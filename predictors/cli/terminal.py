"""The terminal: for sentences that name what files hold, and for tables that fit it.

In a table figures stay whole; what has no room follows below.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.box import SIMPLE
from rich.console import Console, ConsoleOptions, Group, RenderableType
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
    head : sequence of str
        Those of columns of words first.
    rows : sequence of sequence of (str or rich.text.Text)
        A cell with a digit stays in one line; others, and headings, break between words
        where room is short.
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
