"""The size of a machine that its log does not state."""

import numpy as np
import pandas as pd

from workloads.base import FloatArray, IntArray

DIGITS = 6
"""Decimals of seconds within which an end and a start are the same instant: sums round."""


def most_held(start: FloatArray, end: FloatArray, held: IntArray | FloatArray) -> int:
    """Return the most processors that are held at an instant; ends come before starts.

    Examples
    --------
    >>> most_held(np.array([0.0, 5.0, 10.0]), np.array([10.0, 10.0, 11.0]), np.array([2, 3, 4]))
    5
    """
    times = np.round(np.concatenate([end, start]), DIGITS)
    change = np.concatenate([-np.asarray(held), held])
    return int(np.cumsum(change[np.argsort(times, kind="stable")]).max(initial=0))


def size_by_use(records: pd.DataFrame, width: FloatArray) -> int:
    """Return the most processors that a log's jobs held at once, at least those of the widest.

    Jobs without a recorded wait, of which nobody knows when they ran, count by their width alone.

    Parameters
    ----------
    records : pandas.DataFrame
        Those that can run, with the fields of the Standard Workload Format.
    width : numpy.ndarray of float, shape (records,)
        Processors of each.
    """
    submit, wait, runtime = (
        records[name].to_numpy(float) for name in ("submit_time", "wait_time", "run_time")
    )
    count, ran = np.ceil(width), wait >= 0
    start = (submit + wait)[ran]
    return max(most_held(start, start + runtime[ran], count[ran]), int(count.max(initial=0.0)))
