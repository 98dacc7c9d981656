"""How long jobs last under a background load."""

import numpy as np


def end_of(load, own, start, computation, communication, work=1.0):
    """Return when a job on these processors ends that has so much of its work left."""
    return load.advance(np.array(own), start, np.inf, work, computation, communication)[0]


def done_by(load, own, start, end, computation, communication):
    """Return the share of a job that is done by an instant."""
    return 1.0 - load.advance(np.array(own), start, end, 1.0, computation, communication)[1]


def conditions(forecast, counts, horizon):
    """Return CPU and bandwidth that jobs without processors are believed to meet over horizons."""
    return forecast._conditions(counts, "effective")(horizon)
