"""Runtimes under load that returns from what it is at present to what is usual, compiled."""

from collections.abc import Callable
from math import exp, expm1, log2
from typing import NamedTuple

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.compiling import compiled
from predictors.under_load.load_aware import ASKED, LOOKED_UP, Parts, look_up, search_of

UNKNOWN, NONE = -1, -2
"""Instead of a place among `Ranks`: not reckoned yet; nobody picks the fastest."""
DOUBLINGS = 1100
"""More than there are of one second."""


class Course(NamedTuple):
    """How load returns to what is usual.

    Attributes
    ----------
    memory, link_memory : float
        As `share_left` has it, of processors and of links, seconds.
    delay : float
        After how many seconds from now the job starts.
    longer : float
        How many times as long it lasts as the averages say, where nothing is left of the present.
    """

    memory: float
    link_memory: float
    delay: float = 0.0
    longer: float = 1.0


class Ranks(NamedTuple):
    """What is believed of the fastest free processors, by the time over which they are.

    Attributes
    ----------
    places : numpy.ndarray of int, shape (DOUBLINGS,)
        Where those for so many doublings of one second stand; `UNKNOWN` or `NONE`.
    sizes : numpy.ndarray of int, shape (ranks,)
    swings : numpy.ndarray, shape (ranks, 2, processors)
        What the least of the first, the first two, ... usually is, and is at present.
    """

    places: IntArray
    sizes: IntArray
    swings: FloatArray


def no_ranks(known: int) -> Ranks:
    """Return ranks that are all `UNKNOWN`, or where there are `NONE`."""
    return Ranks(np.full(DOUBLINGS, known), np.zeros(0, np.int64), np.zeros((0, 2, 0)))


def with_rank(ranks: Ranks, doubled: int, swings: FloatArray) -> Ranks:
    """Return ranks with those over so many doublings of a second, shape (2, free processors)."""
    number, size = len(ranks.sizes), swings.shape[1]
    grown = np.zeros((number + 1, 2, max(size, ranks.swings.shape[2])))
    grown[:number, :, : ranks.swings.shape[2]] = ranks.swings
    grown[number, :, :size] = swings
    ranks.places[doubled] = number
    return Ranks(ranks.places, np.append(ranks.sizes, size), grown)


@compiled
def share_left(memory: float, horizon: float, delay: float = 0.0) -> float:
    """Return which share of a deviation lasts, averaged over the horizon after a delay.

    Parameters
    ----------
    memory : float
        Seconds after which 1/e of it is left; negative: it lasts.
    horizon, delay : float
        Seconds.
    """
    if memory < 0.0:
        return 1.0
    span = max(horizon / memory, 1e-9)
    return exp(-delay / memory) * -expm1(-span) / span


@compiled
def doublings(seconds) -> int:  # type: ignore[no-untyped-def]
    """Return how many doublings of one second these seconds are, to the nearest."""
    return int(np.rint(log2(max(seconds, 1.0))))


@compiled
def _met(i, horizon, counts, swings, course, ranks) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    """Return CPU and bandwidth of job i over a horizon; NaN where ranks are missing."""
    usual, present = swings[0, i], swings[1, i]
    place = ranks.places[doublings(horizon)]
    if place == UNKNOWN:
        return np.nan, np.nan
    if place >= 0 and counts[i] <= ranks.sizes[place]:
        usual = ranks.swings[place, 0, counts[i] - 1]
        present = ranks.swings[place, 1, counts[i] - 1]
    own = share_left(course.memory, horizon, course.delay)
    shared = share_left(course.link_memory, horizon, course.delay)
    slower = 1.0 + (course.longer - 1.0) * (1.0 - own)
    cpu = usual + (present - usual) * own
    link = swings[2, i] + (swings[3, i] - swings[2, i]) * shared
    return cpu / slower, link / slower


@compiled
def _settle(counts, parts, search, swings, course, ranks) -> float:  # type: ignore[no-untyped-def]
    """Find runtimes by `look_up`; return the horizon of a missing rank, or 0."""
    for i in range(len(counts)):
        while search[LOOKED_UP, i] < np.inf:
            cpu, bandwidth = _met(i, search[ASKED, i], counts, swings, course, ranks)
            answer = parts[0, i] + parts[1, i] / cpu + parts[2, i] / bandwidth
            if np.isnan(answer):
                return float(search[ASKED, i])
            look_up(search, i, answer)
    return 0.0


def runtimes_under(
    counts: IntArray,
    parts: Parts,
    swings: FloatArray,
    course: Course,
    ranks: Ranks,
    rank: Callable[[int], Ranks],
) -> FloatArray:
    """Return the runtimes of a job as `runtime_under` finds them, in one compiled call.

    Parameters
    ----------
    counts : numpy.ndarray of int, shape (n,)
    parts : Parts
    swings : numpy.ndarray, shape (4, n)
        CPU as it usually is and as it is at present, and the same of the bandwidth.
    course : Course
    ranks : Ranks
    rank : callable
        Doublings of one second to ranks that have them, for those that `ranks` lacks.
    """
    search, seconds = search_of(parts), np.array(parts)
    while missing := _settle(counts, seconds, search, swings, course, ranks):
        ranks = rank(doublings(missing))
    return np.asarray(search[ASKED])
