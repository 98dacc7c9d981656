"""Whoever watches a run: checks it, explains it, or tells a user how far it is."""

from collections.abc import Sequence
from typing import Any

from sim.state.decisions import Decision


class Watcher:
    """Someone who checks the engine's work, or tells a user how far it is; as it is, nobody.

    The engine that each is handed is a `sim.engine.engine.Engine`.

    Attributes
    ----------
    checks : bool
        Whether it needs every pass with the state on which its decisions are made.
    """

    checks = True

    def decided(self, engine: Any, decisions: Sequence[Decision]) -> None:
        """Be told what a policy decided, before any of it is done."""

    def progressed(self, now: float, ended: int, queued: int) -> None:
        """Be told at every 256th pass, once it is carried out, how many jobs ended and wait."""

    def finished(self, engine: Any) -> None:
        """Be told that nothing is left to happen."""
