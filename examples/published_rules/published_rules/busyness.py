"""One number for how busy a machine is: by its queue, by its past, or by a forecast."""

import math
from collections import deque
from dataclasses import dataclass
from typing import Literal, Protocol

from predictors.base import IntArray
from predictors.compiling import compiled
from sim.errors import POSITIVE, check_choice
from sim.policies.molding.base import OpenCounts
from sim.state.view import View


class Meter(Protocol):
    """A load signal at work in one run."""

    def watch(self) -> None:
        """Take in what happened since the last pass; called once a pass."""
        ...

    def read(self, waiting: IntArray) -> float:
        """Return the load now; called in a pass, any number of times."""
        ...


Kind = Literal["queued", "smoothed", "forecast"]


@dataclass(frozen=True, kw_only=True)
class ByLoad(OpenCounts):
    """What rules have in common that go by the load.

    It is about 0 on an idle machine, 1 on a full one, more beyond.

    Parameters
    ----------
    load : {"queued", "smoothed", "forecast"}
        ``queued``: what the waiting jobs request over the machine's size, Q·n̄/P.
        ``smoothed``: the share of busy processors, exponentially smoothed.
        ``forecast``: what arrivals of the recent past offer, λ·E[n·T(n)]/P.
    time : float, seconds
        ``smoothed``: what lies so far back counts 1/e; positive.
    window : float, seconds
        ``forecast``: how far back arrivals count; positive.
    """

    load: Kind = "queued"
    time: float = 3600.0
    window: float = 86_400.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(("queued", "smoothed", "forecast"), load=self.load)
        POSITIVE.check(time=self.time, window=self.window)

    def meter(self, view: View) -> Meter:
        """Begin a run."""
        if self.load == "queued":
            return QueueMeter(view)
        if self.load == "smoothed":
            return UtilizationMeter(view, self.time)
        return ForecastMeter(view, self.window)


@compiled
def total_at(values: IntArray, places: IntArray) -> int:
    """Return the sum of the values at places."""
    total = 0
    for k in places:
        total += values[k]
    return total


class QueueMeter:
    """Sums up the requests of the waiting jobs."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._requested = view.jobs.requested_processors  # which are known as jobs arrive

    def watch(self) -> None:
        """Remember nothing."""

    def read(self, waiting: IntArray) -> float:
        """Return requested processors over processors."""
        return float(total_at(self._requested, waiting)) / self._view.processors


class UtilizationMeter:
    """Remembers how busy the machine was since the last pass."""

    def __init__(self, view: View, time: float) -> None:
        self._view = view
        self._time = time
        self._since: float | None = None
        self._level = 0.0

    def watch(self) -> None:
        """Take in the time since the last pass: what runs or has just ended was held in it."""
        view = self._view
        if self._since is not None and view.now > self._since:
            held = sum(run.processors for run in (*view.running.values(), *view.ended))
            kept = math.exp(-(view.now - self._since) / self._time)
            self._level = kept * self._level + (1 - kept) * held / view.processors
        self._since = view.now

    def read(self, waiting: IntArray) -> float:
        """Return the smoothed share of busy processors."""
        return self._level


class ForecastMeter:
    """Remembers the areas that arrived within the window.

    Parameters
    ----------
    view : View
    window : float, seconds
        What lies before the first arrival counts as idle time.
    """

    def __init__(self, view: View, window: float) -> None:
        self._view = view
        self._window = window
        self._areas: deque[tuple[float, float]] = deque()
        self._total = 0.0

    def watch(self) -> None:
        """Take in the areas that have just arrived, by request and belief; forget old ones."""
        view = self._view
        for job in view.arrived:
            count = view.requested_processors[job]
            area = count * view.predictor.runtime(job, count)
            self._areas.append((view.now, area))
            self._total += area
        while self._areas and self._areas[0][0] < view.now - self._window:
            self._total -= self._areas.popleft()[1]

    def read(self, waiting: IntArray) -> float:
        """Return λ·E[n·T(n)] / P."""
        return max(self._total, 0.0) / (self._window * self._view.processors)
