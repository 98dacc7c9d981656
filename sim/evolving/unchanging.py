"""Jobs that stay as they are, apart: a run of such jobs imports nothing of evolving ones."""

from dataclasses import dataclass

from predictors.base import IntArray
from sim.machine.base import Dedicated
from workloads.streams import Streams


@dataclass(frozen=True)
class NoEvolving:
    """No job changes while it runs.

    Examples
    --------
    >>> import numpy as np
    >>> NoEvolving().scene(np.array([4, 8]), Streams(1, 0), Dedicated(8)) is None
    True
    """

    def scene(self, processors: IntArray, streams: Streams, machine: Dedicated) -> None:
        """Return None: nothing evolves."""
        return
