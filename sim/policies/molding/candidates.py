"""Jobs whose count is still open: each has candidate counts and believed runtimes."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled, record

SPAN = record(
    [
        ("begin", "i8"),
        ("low", "i8"),
        ("high", "i8"),
        ("number", "i4"),
        ("at_once", "i1"),
    ]
)
"""What a job may choose from: where its counts begin, from where to before where a rule allows them
in this pass, and how many they are (0 where that is settled already); 1 where only those count on
which it can start at once."""
Spans = NDArray[Any]
"""An array of `SPAN`."""


class OpenMemory(NamedTuple):
    """What a rule for open counts keeps of a run.

    Attributes
    ----------
    depth : int
    by_time, fills_idle : bool
        As of `sim.policies.allocation.iterative`.
    scale : float
    shares : numpy.ndarray of float, shape (n, 2)
        As of `sim.policies.allocation.fair_share`.
    reservations : int
    strict : bool
        As of `sim.policies.molding.scheduler.OpenKeeper`.
    serial : numpy.ndarray of float, shape (n,), seconds
        Believed T(1) of each job.
    """

    depth: int = 0
    by_time: bool = False
    fills_idle: bool = False
    scale: float = 0.0
    shares: FloatArray = np.zeros((0, 2))
    reservations: int = 0
    strict: bool = False
    serial: FloatArray = np.zeros(0)


CLOSED = OpenMemory()
"""Of a run in which no count is open."""


class Candidates(NamedTuple):
    """What all who wait may choose from.

    Attributes
    ----------
    owner : numpy.ndarray of int, shape (places,)
        Whose candidates are those of each place.
    spans : numpy.ndarray of SPAN, shape (n,)
        Where in `counts` those of each owner stand.
    counts : numpy.ndarray of int, shape (c,)
        The counts of an owner ascend.
    runtimes : numpy.ndarray of float, shape (c,), seconds
        Believed on each of these counts.
    """

    owner: IntArray
    spans: Spans
    counts: IntArray
    runtimes: FloatArray


@compiled
def single_candidates(counts: IntArray, runtimes: FloatArray) -> Candidates:
    """Return those of places that have one each."""
    owner = np.arange(counts.size)
    spans = np.zeros(counts.size, SPAN)
    for k in range(counts.size):
        own = spans[k]
        own.begin, own.low, own.high, own.number = k, k, k + 1, 1
    return Candidates(owner, spans, counts, runtimes)
