"""How many replications a wanted precision takes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sim.errors import ConfigError
from sim.statistics.intervals import LEVEL, Interval, t_interval

LEAST = 10
"""Replications before the first decision: with fewer, a small spread by chance stops too early."""


@dataclass(frozen=True)
class Precision:
    """When replications are enough: the interval of a mean reaches out no further than asked.

    Parameters
    ----------
    relative : float
        Largest half-width of the interval over the size of the mean: 0.05 is
        plus or minus 5 %.
    least : int
        Replications before the first decision.
    most : int
        Replications after which it stops in any case.
    level : float
        Of the interval, by Student's t.

    Raises
    ------
    ConfigError
        If a value is out of range.

    References
    ----------
    Law, Simulation Modeling and Analysis (5th ed., 2015), section 9.4.1 (the
    sequential procedure); Chow & Robbins, Ann. Math. Statist. 36 (1965), for its
    coverage as the asked width shrinks.

    Examples
    --------
    >>> asked = Precision(0.05, least=3)
    >>> asked.enough([100.0, 101.0]), asked.enough([100.0, 101.0, 99.5])
    (False, True)
    """

    relative: float
    least: int = LEAST
    most: int = 100
    level: float = LEVEL

    def __post_init__(self) -> None:
        if not 0 < self.relative < 1:
            raise ConfigError(f"precision={self.relative}: must lie between 0 and 1, or be null")
        if self.least < 2:
            raise ConfigError(f"least={self.least}: must be at least 2")
        if self.most < self.least:
            raise ConfigError(
                f"most_replications={self.most}: must be at least the {self.least} replications "
                f"that come before the first decision"
            )

    def interval(self, values: Sequence[float]) -> Interval:
        """Return the interval of the replications so far."""
        return t_interval(values, self.level)

    def met(self, values: Sequence[float]) -> bool:
        """Return whether the interval is as narrow as asked."""
        return len(values) >= self.least and self.interval(values).relative <= self.relative

    def enough(self, values: Sequence[float]) -> bool:
        """Return whether to stop: as narrow as asked, or as many as allowed."""
        return len(values) >= self.most or self.met(values)

    def expected(self, mean: float, deviation: float) -> int:
        """Return how many replications figures of known mean and deviation should take.

        Examples
        --------
        >>> Precision(0.05).expected(100.0, 20.0)
        64
        """
        from scipy.special import stdtrit

        numbers = np.arange(self.least, self.most + 1)
        half = stdtrit(numbers - 1, (1 + self.level) / 2) * deviation / np.sqrt(numbers)
        right = numbers[half <= self.relative * abs(mean)]
        return int(right[0]) if len(right) else self.most
