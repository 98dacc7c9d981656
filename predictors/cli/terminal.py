"""The terminal, for tables and sentences that name what files hold."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

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
