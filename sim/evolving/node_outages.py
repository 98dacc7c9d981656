"""Nodes that fail and are repaired: when processors are out of service, and until when believed."""

from collections.abc import Callable, Iterator
from math import inf
from typing import Any

import numpy as np

from sim.engine.clock import EXPIRY, FAILURE, REPAIR, Occurrence
from sim.engine.engine import Engine
from sim.machine.failing import FailingMachine
from sim.machine.failures import NodeEvent
from sim.state.processors import count_processors
from sim.state.records import Outages


class NodeOutages:
    """Lets the nodes of a machine fail and come back, and keeps when they did.

    Parameters
    ----------
    engine : Engine
    machine : FailingMachine
    lose : callable
        Ends what runs on processors from a first to a last, or lets it go on without them.

    Attributes
    ----------
    failures : int
        Of nodes, so far.
    """

    def __init__(
        self, engine: Engine, machine: FailingMachine, lose: Callable[[int, int], None]
    ) -> None:
        self.failures = 0
        self._engine, self._machine, self._lose = engine, machine, lose
        self._ended: list[tuple[int, float, float]] = []
        self._failed_at: dict[int, float] = {}
        failures = machine.failures
        self._events: Iterator[NodeEvent] = iter(()) if failures is None else failures.events()

    def expect(self) -> None:
        """Wait for the next failure or repair."""
        event = next(self._events, None)
        if event is not None:
            priority = FAILURE if event.kind == "failure" else REPAIR
            Occurrence(self._engine.clock, event.time, priority, self._take_in, event)

    def until(self, end: float) -> Outages:
        """Return all outages; those that still last end then."""
        lasting = [(node, begin, end) for node, begin in self._failed_at.items() if begin < end]
        rows = [*self._ended, *lasting]
        width = [count_processors((self._machine.processors_of(row[0]),)) for row in rows]
        start, stop = (np.array([row[at] for row in rows], np.float64) for at in (1, 2))
        return Outages(start, np.minimum(stop, end), np.array(width, np.int64))

    def _take_in(self, occurrence: Any) -> None:
        """Let a node fail or come back; stop when no job is left, or none can start."""
        engine = self._engine
        all_ended = engine.log.ended == len(engine.submit)
        nothing_else = not (engine.clock._queue or engine.down or engine.books.following < inf)
        if all_ended or nothing_else:
            return
        event: NodeEvent = occurrence.subject
        engine.happened()
        if event.kind == "failure":
            self._fail(event.node)
        else:
            self._repair(event.node)
        self._disturb()
        self.expect()

    def _disturb(self) -> None:
        state = self._engine.state
        state.disturbed = state.outages_changed = True
        self._engine.ask_for_pass()

    def _fail(self, node: int) -> None:
        """End what runs on a node, and take its processors out of service."""
        engine, now = self._engine, self._engine.clock._now
        self.failures += 1
        first, last = self._machine.processors_of(node)
        self._lose(first, last)
        engine.down[node] = ((first, last),)
        self._failed_at[node] = now
        engine.state.take_named(engine.down[node])
        self._believe(node, now, max(self._machine.repair, 1.0))

    def _repair(self, node: int) -> None:
        engine, state = self._engine, self._engine.state
        ranges = engine.down.pop(node)
        self._ended.append((node, self._failed_at.pop(node), engine.clock._now))
        state.repair(node)
        state.give(ranges)

    def _believe(self, node: int, began: float, seconds: float) -> None:
        """Believe that a node is back after so many seconds."""
        # Once every job has ended nobody asks any more, and time may stop.
        engine, state = self._engine, self._engine.state
        is_over = engine.log.ended == len(engine.submit)
        end, width = inf if is_over else began + seconds, count_processors(engine.down[node])
        state.fail(node, end, width)
        if not is_over:
            Occurrence(engine.clock, end, EXPIRY, self._prolong, (node, began, end))

    def _prolong(self, occurrence: Any) -> None:
        """Double the believed length of an outage that has outlived it."""
        node, began, believed = occurrence.subject
        state = self._engine.state
        if node not in state.outages or state.outages[node][0] != believed:
            return
        state.repair(node)
        self._believe(node, began, 2.0 * (believed - began))
        self._disturb()
