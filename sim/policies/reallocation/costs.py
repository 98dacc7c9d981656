"""What a change of processors costs: seconds without progress on all processors held.

Data volumes are those of a whole job, and the same for all jobs; bandwidths are
in the same unit per second.
"""

from sim.errors import FINITE, POSITIVE_AND_FINITE


class CostModel:
    """Seconds of lost progress, none by default."""

    @property
    def free(self) -> bool:
        """Whether both a growth and a shrink are free."""
        return self.change(1, 2) == self.change(2, 1) == 0.0

    def change(self, before: int, after: int) -> float:
        """Return what it costs a run to go from one count to another."""
        return 0.0

    def start(self, processors: int) -> float:
        """Return what the start of a malleable job costs."""
        return 0.0


class NoCost(CostModel):
    """Changes are free, as theory has it."""


FREE = NoCost()


class Constant(CostModel):
    """Every change costs the same.

    Parameters
    ----------
    seconds : float
    """

    def __init__(self, seconds: float = 10.0) -> None:
        FINITE.check(seconds=seconds)
        self.seconds = seconds

    def change(self, before: int, after: int) -> float:
        """Return the constant."""
        return self.seconds


class ProcessManagement(CostModel):
    """Processes are created or removed one by one: c0 + c1·|m - n|.

    Parameters
    ----------
    seconds : float
        Of any change.
    expand, shrink : float
        Seconds for each processor gained, or given up.
    """

    def __init__(self, seconds: float = 1.0, expand: float = 0.1, shrink: float = 0.02) -> None:
        FINITE.check(seconds=seconds, expand=expand, shrink=shrink)
        self.seconds, self.expand, self.shrink = seconds, expand, shrink

    def change(self, before: int, after: int) -> float:
        """Return c0 + c1·|m - n|, c1 by direction."""
        each = self.expand if after > before else self.shrink
        return self.seconds + each * abs(after - before)


class Redistribution(CostModel):
    """Block-distributed data move: c0 + V·(1 - min/max) / (bandwidth·min).

    Parameters
    ----------
    seconds : float
        Of any change.
    volume : float
        V, the job's data.
    bandwidth : float
        Of one processor.
    """

    def __init__(self, seconds: float = 1.0, volume: float = 64.0, bandwidth: float = 1.0) -> None:
        FINITE.check(seconds=seconds, volume=volume)
        POSITIVE_AND_FINITE.check(bandwidth=bandwidth)
        self.seconds, self.volume, self.bandwidth = seconds, volume, bandwidth

    def change(self, before: int, after: int) -> float:
        """Return the time to move what changes its place."""
        few, many = min(before, after), max(before, after)
        return self.seconds + self.volume * (1.0 - few / many) / (self.bandwidth * few)


class CheckpointRestart(CostModel):
    """The job is written out, started again and read in: V/B + restart + V/B.

    Parameters
    ----------
    volume : float
        V, the size of a checkpoint.
    bandwidth : float
        B, of the file system, whatever the count.
    restart : float
        Seconds.
    """

    def __init__(self, volume: float = 64.0, bandwidth: float = 8.0, restart: float = 10.0) -> None:
        FINITE.check(volume=volume, restart=restart)
        POSITIVE_AND_FINITE.check(bandwidth=bandwidth)
        self.volume, self.bandwidth, self.restart = volume, bandwidth, restart

    def change(self, before: int, after: int) -> float:
        """Return the time to write, restart and read."""
        return 2.0 * self.volume / self.bandwidth + self.restart


class Phases(CostModel):
    """Phases of an application: once at start, at each change, and at expansion.

    All processors held wait for the new ones to get ready.

    Parameters
    ----------
    initial : float
        Seconds at the start.
    reconfigure : float
        Seconds at each change, on all processors.
    prepare : float
        Seconds that new processors need at an expansion.
    """

    def __init__(
        self, initial: float = 5.0, reconfigure: float = 5.0, prepare: float = 5.0
    ) -> None:
        FINITE.check(initial=initial, reconfigure=reconfigure, prepare=prepare)
        self.initial, self.reconfigure, self.prepare = initial, reconfigure, prepare

    def change(self, before: int, after: int) -> float:
        """Return the phases of a change."""
        return self.reconfigure + (self.prepare if after > before else 0.0)

    def start(self, processors: int) -> float:
        """Return the initial phase."""
        return self.initial
