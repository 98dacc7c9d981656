"""The machine: how many processors, and how fast work proceeds on them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sim.errors import AT_LEAST_1, up_to
from sim.state.records import Ranges

if TYPE_CHECKING:
    from sim.background.load_forecast import LoadForecast

MOST_PROCESSORS = 20_000_000
"""Twice as many as any machine has: counts up to it are kept in tables, areas exact enough."""


class Machine:
    """What the engine needs of a machine: its size, and how fast work proceeds on it.

    Work is counted in seconds at full speed. Of each such second a share is
    spent communicating, the rest computing. As it is, all proceeds at full speed.

    Attributes
    ----------
    processors : int
        How many there are.
    processors_per_node : int
        Processor p sits on node p // processors_per_node.
    splits_work : bool
        Whether it matters how much of a job is communication.
    """

    processors: int
    processors_per_node: int
    splits_work = False

    def completion(
        self, start: float, runtime: float, nodes: Ranges, communication: float = 0.0
    ) -> float:
        """Return when work of `runtime` seconds at full speed ends if it starts at `start`."""
        return start + runtime

    def progress(
        self, start: float, end: float, nodes: Ranges, communication: float = 0.0
    ) -> float:
        """Return the work done from `start` to `end`, in seconds at full speed."""
        return end - start

    def forecast(self) -> "LoadForecast | None":
        """Return what may be believed of background load; None without any."""
        return None

    def measured(self, nodes: Ranges, start: float, end: float) -> Mapping[str, float]:
        """Return what a monitor saw of load during a run, as predictors are told."""
        return {}


@dataclass(frozen=True)
class Dedicated(Machine):
    """A machine whose processors serve one job at a time, all alike and at full speed.

    Attributes
    ----------
    processors : int
        At least 1, at most `MOST_PROCESSORS`.
    processors_per_node : int
        Processor p sits on node p // processors_per_node.

    Examples
    --------
    >>> Dedicated(16, processors_per_node=4).completion(5.0, 60.0, ((0, 3),))
    65.0
    """

    processors: int
    processors_per_node: int = 1

    def __post_init__(self) -> None:
        up_to(MOST_PROCESSORS).check(processors=self.processors)
        AT_LEAST_1.check(processors_per_node=self.processors_per_node)
