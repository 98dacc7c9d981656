"""Whoever watches a run: checks it, explains it, or tells a user how far it is."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sim.engine.run_log import RunLog
from sim.state.decisions import Decision
from sim.state.view import View
from workloads.base import BoolArray


class RunSoFar(NamedTuple):
    """What is seen of an engine at a pass, which tells of nothing to come.

    Attributes
    ----------
    view : View
    scheduler : Scheduler
    log : RunLog
        What has happened.
    records : Records or None
        What happened, once nothing is left to happen.
    """

    view: View
    scheduler: Any
    log: RunLog
    records: Any = None


class Watcher:
    """Someone who checks the engine's work, or tells a user how far it is; as it is, nobody.

    Attributes
    ----------
    needs_passes : bool
        Whether it needs every pass, compiled or not, with the state that it leaves.
    explained : int
        Index of the job of which passes write down what it weighs; -1 of none.
    """

    needs_passes = False
    explained = -1

    def decided(self, seen: RunSoFar, decisions: Sequence[Decision]) -> None:
        """Be told what a policy decided in Python, before any of it is done."""

    def passed(self, seen: RunSoFar) -> None:
        """Be told that a pass was carried out."""

    def is_due(self) -> bool:
        """Say, at every 256th pass, whether to be told how far the run is."""
        return False

    def progressed(self, now: float, queued: int, over: BoolArray) -> None:
        """Be told how many jobs wait and which are over."""

    def finished(self, seen: RunSoFar) -> None:
        """Be told that nothing is left to happen."""
