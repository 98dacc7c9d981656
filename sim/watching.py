"""Tell a user how far a simulation is, without slowing it down."""

from bisect import bisect_right
from collections.abc import Sequence

from sim.decisions import Decision
from sim.engine import Engine
from sim.progress import Progress

LOOKS_BETWEEN = 256
"""Looks of the policy between two updates."""


class ProgressWatcher:
    """Pass the state of an engine on to a progress display, now and then.

    Parameters
    ----------
    progress : Progress
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def looked(self, engine: Engine, decisions: Sequence[Decision]) -> None:
        """Update the display at every 256th look."""
        if engine.looks % LOOKS_BETWEEN:
            return
        now, ended, running = engine.view.now, engine.log.ended, len(engine.view.running)
        queued = max(bisect_right(engine.submit, now) - ended - running, 0)
        self._progress.update(now, ended, len(engine.submit), queued)

    def finished(self, engine: Engine) -> None:
        """Do nothing: the display goes away by itself."""
