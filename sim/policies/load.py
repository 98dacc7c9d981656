"""One number for how busy a machine is: by its queue, by its past, or by a forecast."""

import math
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from predictors.base import IntArray
from sim.view import View


class Meter(Protocol):
    """A load signal at work in one run."""

    def read(self, waiting: IntArray) -> float:
        """Return the load now; called at a look, any number of times.

        Parameters
        ----------
        waiting : numpy.ndarray of int
            Indices of the waiting jobs, those that have just arrived included.
        """
        ...


class LoadSignal(Protocol):
    """A way to tell the load: about 0 on an idle machine, 1 on a full one, more beyond."""

    def begin(self, view: View) -> Meter:
        """Begin a run."""
        ...


@dataclass(frozen=True)
class QueuedLoad:
    """Instantaneous: what the waiting jobs request over the machine's size, Q·n̄/P."""

    def begin(self, view: View) -> "QueueMeter":
        """Begin a run."""
        return QueueMeter(view)


class QueueMeter:
    """Sums up the requests of the waiting jobs."""

    def __init__(self, view: View) -> None:
        self._view = view

    def read(self, waiting: IntArray) -> float:
        """Return requested processors over processors."""
        requested = self._view.requested_processors
        return float(sum(requested[job] for job in waiting.tolist())) / self._view.processors


@dataclass(frozen=True)
class SmoothedUtilization:
    """The share of busy processors, exponentially smoothed over time.

    Parameters
    ----------
    time : float, seconds
        What lies so far back counts 1/e; positive.
    """

    time: float = 3600.0

    def __post_init__(self) -> None:
        if not self.time > 0:
            raise ValueError(f"time must be positive, got {self.time}")

    def begin(self, view: View) -> "UtilizationMeter":
        """Begin a run."""
        return UtilizationMeter(view, self.time)


class UtilizationMeter:
    """Remembers how busy the machine was since the last look."""

    def __init__(self, view: View, time: float) -> None:
        self._view = view
        self._time = time
        self._since: float | None = None
        self._busy = 0.0
        self._level = 0.0

    def read(self, waiting: IntArray) -> float:
        """Return the smoothed share of busy processors."""
        view = self._view
        if self._since is not None:
            kept = math.exp(-(view.now - self._since) / self._time)
            self._level = kept * self._level + (1 - kept) * self._busy
        self._since = view.now
        held = sum(run.processors for run in view.running.values())
        self._busy = held / view.processors
        return self._level


@dataclass(frozen=True)
class ForecastLoad:
    """The load that arrivals of the recent past offer: their rate times their mean area.

    Parameters
    ----------
    window : float, seconds
        How far back arrivals count; positive.
    """

    window: float = 86_400.0

    def __post_init__(self) -> None:
        if not self.window > 0:
            raise ValueError(f"window must be positive, got {self.window}")

    def begin(self, view: View) -> "ForecastMeter":
        """Begin a run."""
        return ForecastMeter(view, self.window)


class ForecastMeter:
    """Remembers the areas that arrived within the window."""

    def __init__(self, view: View, window: float) -> None:
        self._view = view
        self._window = window
        self._areas: deque[tuple[float, float]] = deque()
        self._total = 0.0
        self._first: float | None = None
        self._last: float | None = None

    def read(self, waiting: IntArray) -> float:
        """Return λ·E[n·T(n)] / P, by requested counts and believed runtimes there."""
        view = self._view
        for job in view.arrived if view.now != self._last else ():
            count = view.requested_processors[job]
            area = count * view.belief_at(job, count)
            self._areas.append((view.now, area))
            self._total += area
        self._last = view.now
        if self._first is None:
            self._first = view.now
        while self._areas and self._areas[0][0] < view.now - self._window:
            self._total -= self._areas.popleft()[1]
        span = min(view.now - self._first, self._window)
        if span <= 0:
            return 0.0
        return max(self._total, 0.0) / (span * view.processors)
