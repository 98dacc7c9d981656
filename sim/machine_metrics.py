"""Figures over time: utilisation, loss of capacity, queue and stability."""

import numpy as np

from predictors.base import FloatArray, IntArray
from sim.job_metrics import Figures
from sim.steps import Steps

SATURATION_SLOPE = 0.01
"""Share of the machine by which queued work must grow to count as saturation."""
SATURATION_RISE = 0.5
"""Rise of queued work, over its mean, that counts as saturation.

Work that grows steadily from nothing rises by 2/3 of its mean in its last half.
"""


def _durations(state: Steps, begin: float, end: float) -> FloatArray:
    edges = np.clip(state.times, begin, end)
    return np.diff(edges, append=max(float(edges[-1]), begin))


def lost_capacity(idle: IntArray, least: IntArray, durations: FloatArray) -> float:
    """Return the idle processor-seconds while some waiting job could have used them.

    Parameters
    ----------
    idle, least : numpy.ndarray of int, shape (m,)
        Idle processors, and the fewest that any waiting job needs.
    durations : numpy.ndarray of float, shape (m,), seconds
    """
    return float((idle * durations)[least <= idle].sum())


def slope(values: FloatArray, times: FloatArray, begin: float, end: float) -> float | None:
    """Return the least-squares slope of a step function over [begin, end], per second.

    Parameters
    ----------
    values, times : numpy.ndarray of float, shape (m,)
        The function is values[i] from times[i] on.
    begin, end : float, seconds

    Notes
    -----
    The fit is over all time, not over the steps: ∫(t - t̄) f dt / (L³/12).
    """
    length = end - begin
    if length <= 0:
        return None
    middle = (begin + end) / 2
    left = np.clip(times, begin, end) - middle
    right = np.append(left[1:], np.clip(end, begin, end) - middle)
    moment = float((values * (right**2 - left**2)).sum()) / 2
    return moment / (length**3 / 12)


def stability(state: Steps, processors: int, begin: float, end: float) -> Figures:
    """Return the growth of queued work over the last half of the arrivals.

    Saturated is a queue whose work, fitted by a line over the last half of the
    time between first and last submit, grows by more than one hundredth of the
    machine and by more than half of its mean over that half.

    Parameters
    ----------
    state : Steps
    processors : int
    begin, end : float, seconds
        First and last submit.
    """
    middle = (begin + end) / 2
    growth = slope(state.queued_work, state.times, middle, end)
    if growth is None:
        return {"queued_work_slope": None, "saturated": None}
    average = float((state.queued_work * _durations(state, middle, end)).sum()) / (end - middle)
    rise = growth * (end - middle)
    grows = growth > SATURATION_SLOPE * processors and rise > SATURATION_RISE * average
    return {"queued_work_slope": growth / processors, "saturated": bool(grows)}


def machine_figures(state: Steps, processors: int, begin: float, end: float) -> Figures:
    """Return the figures of machine and queue between two instants.

    Parameters
    ----------
    state : Steps
    processors : int
        Size of the machine.
    begin, end : float, seconds

    Notes
    -----
    Loss of capacity is the share of the machine's time that is idle while some
    waiting job could start on as few processors: on its minimum, and (the
    twin ``_requested``) on its request. Failed nodes are not idle.
    """
    durations = _durations(state, begin, end)
    total = processors * (end - begin)
    seen = durations > 0
    figures: Figures = {
        "max_queued_jobs": int(state.queued_jobs[seen].max(initial=0)),
        "max_queued_processors": int(state.queued_processors[seen].max(initial=0)),
    }
    if total <= 0:
        keys = ("utilization", "loss_of_capacity", "loss_of_capacity_requested", "mean_queued_jobs")
        return figures | dict.fromkeys(keys)
    idle = processors - state.busy - state.down
    return figures | {
        "utilization": float((state.busy * durations).sum()) / total,
        "loss_of_capacity": lost_capacity(idle, state.least, durations) / total,
        "loss_of_capacity_requested": lost_capacity(idle, state.least_requested, durations) / total,
        "mean_queued_jobs": float((state.queued_jobs * durations).sum()) / (end - begin),
    }
