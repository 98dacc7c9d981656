"""What a predictor needs to know of load, and what it says of a job's parts in return."""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from predictors.base import FloatArray, IntArray

ROUNDS = 3
"""Times that the load is looked up again for the runtime it led to."""


class Parts(NamedTuple):
    """Seconds of a job on an idle machine, at each count.

    Attributes
    ----------
    fixed, computation, communication : numpy.ndarray of float, shape (n,)
        What no load slows down; what waits for the slowest processor; what
        waits for the most loaded link.
    """

    fixed: FloatArray
    computation: FloatArray
    communication: FloatArray

    def under(self, cpu: FloatArray, bandwidth: FloatArray) -> FloatArray:
        """Return the runtimes with these fractions available, seconds."""
        return np.asarray(self.fixed + self.computation / cpu + self.communication / bandwidth)


class ExpectedLoad(Protocol):
    """What is believed of the load to come."""

    def expected(self, counts: IntArray, horizon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the CPU and bandwidth that a job will meet that has no processors yet.

        Parameters
        ----------
        counts : numpy.ndarray of int, shape (n,)
        horizon : numpy.ndarray of float, shape (n,)
            How long it would run at each count, seconds.
        """
        ...


@runtime_checkable
class NeedsLoad(Protocol):
    """A predictor that tells a job's parts apart, and so predicts it under any load."""

    def bind_load(self, load: ExpectedLoad) -> None:
        """Take the handle on what is believed of the load."""
        ...

    def parts(self, job: int, counts: IntArray) -> Parts | None:
        """Return the parts of a job at each count; None if too little was seen."""
        ...


Conditions = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Runtimes to the CPU and bandwidth believed to be available over them."""


def runtime_under(parts: Parts, conditions: Conditions) -> FloatArray:
    """Return the runtimes of a job under load that depends on how long it runs.

    Examples
    --------
    >>> parts = Parts(np.array([5.0]), np.array([60.0]), np.array([10.0]))
    >>> half = np.array([0.5])
    >>> runtime_under(parts, lambda horizon: (half, half)).tolist()
    [145.0]
    """
    horizon = np.asarray(parts.fixed + parts.computation + parts.communication)
    for _ in range(ROUNDS):
        horizon = parts.under(*conditions(horizon))
    return horizon
