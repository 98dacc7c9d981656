"""The terminal, for tables and sentences that name what files hold."""

from collections.abc import Iterable
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
