"""The simulation's clock: SimPy's event queue with absolute times and priorities."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import heappush
from math import inf
from typing import Any

import simpy
from simpy.events import Event

# What SimPy has to tell at one instant is taken in by this order, before what `sim.engine.loop`
# takes in; an END is where that is to take in ends before all else.
END, FAILURE, REPAIR, EXPIRY, ARRIVAL, WAKE = range(6)


class EventNotice(Event):
    """An event that is already triggered, at an absolute time.

    Parameters
    ----------
    clock : Clock
    time : float
        Absolute simulated time in seconds, not before now.
    priority : int
        One of `END`, `FAILURE`, `REPAIR`, `EXPIRY`, `ARRIVAL`, `WAKE`.
    callback : callable
        Called with the occurrence when its time comes.
    subject : object
        What it is about.
    """

    _value = None
    _ok = True

    def __init__(
        self,
        clock: "Clock",
        time: float,
        priority: int,
        callback: Callable[[Any], None],
        subject: Any = None,
    ) -> None:
        self.env = clock
        self.callbacks = [callback]
        self.subject = subject
        self.time = time
        heappush(clock._queue, (time, priority, next(clock._eid), self))  # type: ignore[misc]


class Clock(simpy.Environment):
    """A SimPy environment that runs one instant at a time.

    SimPy's own timeouts are relative; adding a distance to the current time can
    miss an absolute time by a rounding error, and instants must not be missed.
    """

    def run_instants(self, then: Callable[[float, float], None]) -> None:
        """Take in all that happens at an instant, then call `then`, until nothing is left.

        It is called with this instant and with the next of which the clock knows, or infinity.
        """
        queue = self._queue
        while queue:
            now = queue[0][0]
            while queue and queue[0][0] == now:
                self.step()
            then(now, queue[0][0] if queue else inf)


@contextmanager
def gc_paused() -> Iterator[None]:
    """Put off the search for reference cycles: an event loop makes records, not cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
