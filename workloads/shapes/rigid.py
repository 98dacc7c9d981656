"""No moldability: every job runs at its reference count, and nothing else is known."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from workloads.shapes.base import FloatArray, IntArray, Shapes, check_draw


@dataclass(frozen=True)
class UnknownCurve:
    """A curve of which no point but the recorded one is known."""

    fixed_end: bool = True

    def relative_time(self, application: IntArray, n: ArrayLike) -> FloatArray:
        """Return NaN, even at n = 1."""
        return np.full(np.broadcast(application, n).shape, np.nan)

    def largest_useful(self, application: IntArray, processors: int) -> IntArray:
        """Return 1: the reference count decides."""
        return np.ones(len(application), np.int64)

    def communication(self, application: IntArray, n: ArrayLike) -> FloatArray:
        """Return NaN."""
        return self.relative_time(application, n)


class NoMoldability:
    """Keeps every job rigid; T(1), and with it every efficiency, is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> NoMoldability().draw(np.random.default_rng(1), 2, processors=64).known
    False
    """

    def draw(self, rng: np.random.Generator, applications: int, processors: int) -> Shapes:
        """Return shapes without curves; nothing is drawn."""
        check_draw(applications, processors)
        rule = np.zeros(applications, np.int64)
        return Shapes(UnknownCurve(), processors, rules=("any",), rule=rule, known=False)
