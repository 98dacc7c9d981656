"""One fitted Downey instance with a unit of time."""

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from predictors import downey
from predictors.base import FloatArray


@dataclass(frozen=True)
class DowneyCurve:
    """A Downey instance whose times are seconds.

    Attributes
    ----------
    A, sigma : float
        Average parallelism and its variance.
    serial_time : float
        Runtime on one processor, seconds.
    declines_after : float
        Count beyond which measured runtimes rise: what is useful ends there.

    Examples
    --------
    >>> curve = DowneyCurve(A=60, sigma=1, serial_time=1200)
    >>> curve.runtime([1, 200]).tolist(), curve.knee, round(curve.largest_at_efficiency(0.9), 2)
    ([1200.0, 20.0], 119.0, 14.33)
    """

    A: float
    sigma: float
    serial_time: float
    declines_after: float = inf

    def runtime(self, nprocs: ArrayLike) -> FloatArray:
        """Return seconds at each count."""
        return np.asarray(self.serial_time * downey.relative_time(nprocs, self.A, self.sigma))

    def speedup(self, nprocs: ArrayLike) -> FloatArray:
        """Return T(1)/T(n)."""
        return downey.speedup(nprocs, self.A, self.sigma)

    @property
    def largest_useful(self) -> float:
        """Count beyond which nothing is gained, real-valued."""
        return min(float(downey.largest_useful(self.A, self.sigma)), self.declines_after)

    @property
    def knee(self) -> float:
        """Processor working set: the count that maximises S(n)^2/n, real-valued."""
        return min(float(downey.knee(self.A, self.sigma)), self.declines_after)

    def largest_at_efficiency(self, least: float) -> float:
        """Return the largest count, real-valued, with at least this efficiency."""
        largest = float(downey.largest_at_efficiency(least, self.A, self.sigma))
        return min(largest, self.declines_after)
