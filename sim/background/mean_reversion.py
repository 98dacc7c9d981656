"""Load that returns from what it is at present to what is usual, compiled."""

from math import exp, expm1, log2

import numpy as np

from predictors.compiling import compiled

UNKNOWN = -1
"""Instead of a place among rankings: not reckoned yet."""
DOUBLINGS = 1100
"""More than there are of one second."""


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
def reverting(horizon, course, counts, usual_and_present, places, rankings):  # type: ignore[no-untyped-def]
    """Return what jobs meet over their horizons, and how many doublings of a second are unknown.

    Parameters
    ----------
    horizon : numpy.ndarray of float, shape (n,)
        Seconds.
    course : tuple of float
        The memory of processors and of links, as `share_left` has it; after how many seconds
        the jobs start; and how many times as long they last as the averages say, where
        nothing is left of the present.
    counts : numpy.ndarray of int, shape (n,)
    usual_and_present : numpy.ndarray, shape (4, n)
        CPU as it usually is and as it is at present, and the same of the bandwidth.
    places : numpy.ndarray of int, shape (DOUBLINGS,)
        Which of the rankings is that over so many doublings of a second; or `UNKNOWN`.
    rankings : numpy.ndarray, shape (rankings, 2, processors + 1)
        What the CPU of the first so many processors of a ranking usually is and is at
        present; NaN where there are fewer, or no ranking.

    Returns
    -------
    numpy.ndarray of float, shape (2, n)
        CPU and bandwidth.
    int
        The doublings of a ranking that is missing, or `UNKNOWN`.
    """
    (memory, link_memory, delay, longer), found = course, np.empty((2, len(counts)))
    for i in range(len(counts)):
        doublings = int(np.rint(log2(max(horizon[i], 1.0))))
        if places[doublings] == UNKNOWN:
            return found, doublings
        usual, present = rankings[places[doublings], :, counts[i]]
        if np.isnan(usual):
            usual, present = usual_and_present[0, i], usual_and_present[1, i]
        own = share_left(memory, horizon[i], delay)
        slower = 1.0 + (longer - 1.0) * (1.0 - own)
        found[0, i] = (usual + (present - usual) * own) / slower
        usual, present = usual_and_present[2, i], usual_and_present[3, i]
        shared = share_left(link_memory, horizon[i], delay)
        found[1, i] = (usual + (present - usual) * shared) / slower
    return found, UNKNOWN
