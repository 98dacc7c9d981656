"""Compiled reservations of waiting jobs on the availability profile, in queue order."""

import numpy as np

from predictors.compiling import compiled
from sim.state.availability import Profile, nothing_found, place_next
from sim.state.waiting_queue import Waiting


@compiled(inline="always")
def reserve_rest(profile: Profile, now: float, waiting: Waiting, first: int, last: int) -> None:
    """Reserve, in queue order, for every waiting job whose start is infinite."""
    counts, runtimes, starts = waiting
    found = nothing_found(last - first)
    for k in range(first, last):
        if counts[k] > 0 and starts[k] == np.inf:
            starts[k] = place_next(profile, now, counts[k], runtimes[k], found)
