"""An availability profile on which tests put reservations one by one."""

import numpy as np

from sim.state import availability
from sim.state.availability import earliest_of, lay, occupy


class Profile:
    """An availability profile of so many processors, with room to grow."""

    def __init__(self, processors):
        self.processors = processors
        self.times = np.zeros(256)
        self.free = np.full(256, processors, np.int64)
        self.span = np.array([0, 1])

    @property
    def holes(self):
        """Its arrays, for compiled code."""
        return availability.Profile(self.times, self.free, self.span)

    def grow(self, jobs):
        """Make room for the breakpoints of so many running and waiting jobs."""
        wanted = 4 * jobs + 64
        if wanted > self.times.size:
            extra = 2 * wanted - self.times.size
            self.times = np.concatenate([self.times, np.zeros(extra)])
            self.free = np.concatenate([self.free, np.zeros(extra, np.int64)])

    def lay(self, now, ends):
        """Begin anew from what is held now."""
        self.grow(ends.end.size)
        idle = self.processors - ends.processors.sum()
        lay(self.holes, now, idle, ends.end, ends.processors)

    def occupy(self, start, end, processors):
        """Take processors in [start, end); a negative number gives them back."""
        occupy(self.holes, start, end, processors)

    def earliest_of(self, now, counts, runtimes):
        """Return the earliest start of each (count, runtime), none of them reserved."""
        starts = earliest_of(self.holes, now, counts, runtimes)
        return starts
