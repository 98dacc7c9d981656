"""What a predictor needs to know of load, and what it says of a job's parts in return."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled, direct
from predictors.under_load.observed_load import LoadForm

ROUNDS = 3
"""Times that the load is looked up again for the runtime it led to."""
SETTLED = 0.05
"""Share by which a runtime and the one it leads to may differ."""
MOST_ROUNDS = 20
"""Further times for runtimes that have not settled."""


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

    def scaled(self, factors: FloatArray) -> "Parts":
        """Return the parts times a factor a count."""
        return Parts(self.fixed * factors, self.computation * factors, self.communication * factors)


@compiled(makes_arrays=True, error_model="numpy")
def _seconds_of_parts(
    spread: tuple[FloatArray, FloatArray], scaled: FloatArray, coefficients: FloatArray,
    part: IntArray,
) -> FloatArray:  # fmt: skip
    """Return what no load slows down, computation and communication, seconds on an idle machine.

    Parameters
    ----------
    spread : tuple of numpy.ndarray of float, shape (n,)
        What computation and communication are multiplied by at each count.
    scaled : numpy.ndarray of float, shape (terms, n) or (terms, 1)
        What each term is at each job's size, or at one for all.
    coefficients : numpy.ndarray of float, shape (terms,)
    part : numpy.ndarray of int, shape (terms,)
        What each belongs to: init, computation, communication, messages.

    Returns
    -------
    numpy.ndarray of float, shape (3, n)
    """
    share, exchange = spread
    found, one = np.zeros((4, share.size)), scaled.shape[1] == 1
    for i in range(share.size):
        for k in range(part.size):
            factor = (1.0, share[i], exchange[i], exchange[i])[part[k]]
            found[part[k], i] += scaled[k, 0 if one else i] * factor * coefficients[k]
        found[0, i] += found[3, i]
    return found[:3]


seconds_of_parts: Any = direct(_seconds_of_parts)


class ExpectedLoad(Protocol):
    """What is believed of the load to come."""

    def runtimes(self, counts: IntArray, parts: Parts, form: LoadForm) -> FloatArray:
        """Return how long a job that has no processors yet will take under it, seconds.

        Parameters
        ----------
        counts : numpy.ndarray of int, shape (n,)
        parts : Parts
            Seconds on an idle machine at each count.
        form : {"effective", "min_avg_avail", "min_avail"}
            What is meant by the load of several processors.
        """
        ...


@runtime_checkable
class NeedsLoad(Protocol):
    """A predictor that tells a job's parts apart, and so predicts it under any load.

    Attributes
    ----------
    load_form : {"effective", "min_avg_avail", "min_avail"}
        Which figure of the load of several processors its parts go with.
    """

    load_form: LoadForm

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

    The load is looked up for the runtime that it led to, and again. Where load is
    about to change that can swing between two answers for ever: one too short, for
    the load of the first moments, and one too long. Such runtimes are halved in
    on (in logarithms) until the load over a runtime leads to that runtime.

    Examples
    --------
    >>> parts = Parts(np.array([5.0]), np.array([60.0]), np.array([10.0]))
    >>> half = np.array([0.5])
    >>> runtime_under(parts, lambda horizon: (half, half)).tolist()
    [145.0]
    """
    path = [np.asarray(parts.fixed + parts.computation + parts.communication)]
    for _ in range(ROUNDS):
        path.append(parts.under(*conditions(path[-1])))
    asked = path[-1]
    swings = np.abs(asked / path[-2] - 1.0) > SETTLED
    if not swings.any():
        return asked
    low, high = path[0], np.full_like(asked, np.inf)
    for before, after in pairwise(path):
        low, high = _bracket(low, high, before, after)
    for _ in range(MOST_ROUNDS):
        middle = np.where(swings & np.isfinite(high), np.sqrt(low * high), asked)
        answer = parts.under(*conditions(middle))
        low, high = _bracket(low, high, middle, answer)
        asked = np.where(swings, answer, asked)
        swings &= np.abs(answer / middle - 1.0) > SETTLED
        if not swings.any():
            break
    return asked


def _bracket(
    low: FloatArray, high: FloatArray, asked: FloatArray, answer: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the runtime that leads to itself, from what `asked` led to."""
    longer = answer > asked
    return np.where(longer, np.maximum(low, asked), low), np.where(
        longer, high, np.minimum(high, asked)
    )
