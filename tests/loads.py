"""How long jobs last under a background load."""

import numpy as np

from sim.background.prospect import SetLoad
from sim.background.swings import _met, doublings


def end_of(load, own, start, computation, communication, work=1.0):
    """Return when a job on these processors ends that has so much of its work left."""
    return load.advance(np.array(own), start, np.inf, work, computation, communication)[0]


def done_by(load, own, start, end, computation, communication):
    """Return the share of a job that is done by an instant."""
    return 1.0 - load.advance(np.array(own), start, end, 1.0, computation, communication)[1]


def conditions(outlook, counts, horizon):
    """Return CPU and bandwidth that jobs without processors are believed to meet over horizons."""
    believed = outlook._of("effective")
    if isinstance(believed, SetLoad):
        return believed.expected(counts, horizon)
    swings, ranks = believed._of_any(counts), believed._begun()
    if outlook.is_usual:
        return swings[0], swings[2]
    for seconds in horizon.tolist():
        ranks = believed._ranked(doublings(seconds))
    known = counts, swings, believed._course(), ranks
    return np.array([_met(i, seconds, *known) for i, seconds in enumerate(horizon)]).T
