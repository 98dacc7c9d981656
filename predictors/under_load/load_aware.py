"""What a predictor needs to know of load, and what it says of a job's parts in return."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled, direct
from predictors.under_load.observed_load import LoadForm

ROUNDS = 3
"""Times that the load is looked up again for the runtime it led to."""
SETTLED = 0.05
"""Share by which a runtime and the one it leads to may differ."""
MOST_ROUNDS = 23
"""Times for runtimes that do not settle."""


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


@compiled
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

    def parts(self, job: int, counts: IntArray) -> Parts | None:
        """Return the parts of a job at each count; None if too little was seen."""


ASKED, LOW, HIGH, LOOKED_UP = range(4)
"""Rows of a search: the runtime to ask of, at last the answer; its bounds; how often it was."""


Conditions = Callable[[FloatArray], FloatArray]
"""Runtimes to the CPU and bandwidth believed to be available over them, shape (2, n)."""


@compiled
def _looked_up(search, parts, conditions) -> bool:  # type: ignore[no-untyped-def]
    """Take in which runtimes the load over those asked for leads to; say whether to ask again.

    The load is looked up for the runtime that it led to, and again. Where load is
    about to change that can swing between two answers for ever: one too short, for
    the load of the first moments, and one too long. Such runtimes are halved in
    on (in logarithms) until the load over a runtime leads to that runtime.
    """
    again = False
    for i in range(search.shape[1]):
        if search[LOOKED_UP, i] == np.inf:
            continue
        answer = parts[0, i] + parts[1, i] / conditions[0, i] + parts[2, i] / conditions[1, i]
        asked, times = search[ASKED, i], search[LOOKED_UP, i] + 1.0
        if answer > asked:
            search[LOW, i] = max(search[LOW, i], asked)
        else:
            search[HIGH, i] = min(search[HIGH, i], asked)
        settled = times >= (MOST_ROUNDS if abs(answer / asked - 1.0) > SETTLED else ROUNDS)
        halve = times >= ROUNDS and search[HIGH, i] < np.inf and not settled
        search[ASKED, i] = np.sqrt(search[LOW, i] * search[HIGH, i]) if halve else answer
        search[LOOKED_UP, i] = np.inf if settled else times
        again = again or not settled
    return again


_look_up: Any = direct(_looked_up)


def runtime_under(parts: Parts, conditions: Conditions) -> FloatArray:
    """Return the runtimes of a job under load that depends on how long it runs.

    Examples
    --------
    >>> parts = Parts(np.array([5.0]), np.array([60.0]), np.array([10.0]))
    >>> runtime_under(parts, lambda horizon: np.full((2, 1), 0.5)).tolist()
    [145.0]
    """
    seconds = np.array(parts, float)
    search = np.zeros((4, seconds.shape[1]))
    search[ASKED] = search[LOW] = parts.fixed + parts.computation + parts.communication
    search[HIGH] = np.inf
    while _look_up(search, seconds, conditions(search[ASKED])):
        pass
    return np.asarray(search[ASKED])
