"""The machine: how many processors, and how fast work proceeds on them."""

from dataclasses import dataclass

from sim.errors import ConfigError
from sim.records import Ranges

MOST_PROCESSORS = 1_000_000_000
"""More than any machine has; areas of jobs stay exact enough below it."""


@dataclass(frozen=True)
class Dedicated:
    """A machine whose processors serve one job at a time, all alike and at full speed.

    Attributes
    ----------
    processors : int
        At least 1, at most `MOST_PROCESSORS`.
    processors_per_node : int
        Processor p sits on node p // processors_per_node.
    """

    processors: int
    processors_per_node: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.processors <= MOST_PROCESSORS:
            raise ConfigError(
                f"cluster.processors must be at least 1 and at most {MOST_PROCESSORS:,}, "
                f"got {self.processors}"
            )
        if self.processors_per_node < 1:
            raise ConfigError(
                f"cluster.processors_per_node must be at least 1, got {self.processors_per_node}"
            )

    def completion(self, start: float, runtime: float, nodes: Ranges) -> float:
        """Return when work of `runtime` seconds at full speed ends if it starts at `start`."""
        return start + runtime

    def progress(self, start: float, end: float, nodes: Ranges) -> float:
        """Return the work done from `start` to `end`, in seconds at full speed."""
        return end - start
