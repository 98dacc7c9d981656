"""A machine on whose nodes foreign processes run now and then."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from predictors.base import FloatArray
from sim.machine.base import Dedicated
from sim.machine.interference import NodeInterference
from sim.state.processors import nodes_of
from sim.state.records import Ranges


@dataclass(frozen=True)
class Disturbed(Dedicated):
    """A machine whose nodes are slowed in phases; a job waits for its slowest node.

    Attributes
    ----------
    phases : NodeInterference or None
        None where no node is ever slowed.

    Examples
    --------
    >>> phases = NodeInterference(quiet=100.0, disturbed=100.0, key=1)
    >>> machine = Disturbed(8, 4, phases=phases)
    >>> end = machine.completion(0.0, 1000.0, ((0, 7),))
    >>> 1000.0 < end < 2000.0, round(machine.progress(0.0, end, ((0, 7),)), 6)
    (True, 1000.0)
    """

    phases: NodeInterference | None = field(default=None, kw_only=True)

    def nodes_of(self, processors: Ranges) -> list[int]:
        """Return the numbers of the nodes on which some processors sit."""
        return sorted(nodes_of(processors, self.processors_per_node))

    def completion(
        self, start: float, runtime: float, nodes: Ranges, communication: float = 0.0
    ) -> float:
        """Return when work of `runtime` seconds at full speed ends if it starts at `start`."""
        return start + runtime if self.phases is None else float(self.walls(start, runtime, nodes))

    def walls(self, start: float, work: ArrayLike, nodes: Ranges) -> FloatArray:
        """Return when so many seconds of work at full speed are done, by the clock.

        Parameters
        ----------
        start : float, seconds
        work : array_like of float, seconds
            Such as the ends of a run's cycles.
        nodes : Ranges
            Processors that the job holds.
        """
        seconds = np.asarray(work, dtype=float)
        if self.phases is None:
            return start + seconds
        # No phase beyond this can matter: all of it would be done at the slowest.
        until = start + float(seconds.max(initial=0.0)) * self.phases.factor
        return self.phases.slowdown(self.nodes_of(nodes), start, until).wall(seconds)

    def progress(
        self, start: float, end: float, nodes: Ranges, communication: float = 0.0
    ) -> float:
        """Return the work done from `start` to `end`, in seconds at full speed."""
        if self.phases is None:
            return end - start
        return self.phases.slowdown(self.nodes_of(nodes), start, end).work(end)
