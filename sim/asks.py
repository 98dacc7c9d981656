"""What evolving jobs ask of the scheduler (``evolving.asks``); see `sim.asking`."""

from dataclasses import dataclass
from math import inf

from sim.errors import ConfigError


@dataclass(frozen=True)
class Asks:
    """What an evolving job asks for while it runs; nothing by default.

    Parameters
    ----------
    memory : bool
        Ask for processors on which the cells to come are predicted to fit
        (``evolving.memory``).
    efficiency : float, optional
        Ask for the most processors that are predicted to keep this efficiency,
        T(1) / (n T(n)), and give back those beyond.
    walltime : bool
        Under ``overrun=kill``: ask for a longer limit once the rest of the run is
        predicted not to fit it.
    every : float, seconds
        Least time between two looks of a job at itself.

    Raises
    ------
    ConfigError
        If a value is out of range.

    Examples
    --------
    >>> Asks().any, Asks(walltime=True).any
    (False, True)
    """

    memory: bool = False
    efficiency: float | None = None
    walltime: bool = False
    every: float = 600.0

    def __post_init__(self) -> None:
        if self.efficiency is not None and not 0.0 < self.efficiency <= 1.0:
            raise ConfigError(f"efficiency must be above 0 and at most 1, got {self.efficiency}")
        if not 0.0 < self.every < inf:
            raise ConfigError(f"every must be positive and finite, got {self.every}")

    @property
    def for_processors(self) -> bool:
        """Whether jobs ask for other processors."""
        return self.memory or self.efficiency is not None

    @property
    def any(self) -> bool:
        """Whether jobs ask for anything."""
        return self.for_processors or self.walltime
