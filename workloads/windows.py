"""Replications of a log: windows of so many jobs each, and weeks drawn again."""

import numpy as np
import pandas as pd

from workloads.base import IntArray

PERIODS = (("weeks", 604800.0), ("days", 86400.0), ("hours", 3600.0))
"""What is drawn again: the longest of which a log has at least two."""


def radical_inverse(number: int) -> float:
    """Return the binary digits of a number mirrored at the point (van der Corput).

    Examples
    --------
    >>> [radical_inverse(number) for number in range(5)]
    [0.0, 0.5, 0.25, 0.75, 0.125]
    """
    digits = f"{number:b}"[::-1]
    return int(digits, 2) / float(1 << len(digits))


def window_of(replication: int, windows: int) -> int | None:
    """Return which window a replication takes, None when none is left.

    Windows come in van der Corput order: the first, then always one that lies far
    from those before, whatever the number of replications.

    Examples
    --------
    >>> [window_of(replication, 5) for replication in range(6)]
    [0, 2, 1, 3, 4, None]
    """
    if replication >= windows:
        return None
    taken: list[int] = []
    number = 0
    while len(taken) <= replication:
        place = int(radical_inverse(number) * windows)
        number += 1
        if place not in taken:
            taken.append(place)
    return taken[-1]


def resample(
    jobs: pd.DataFrame, wanted: int, rng: np.random.Generator
) -> tuple[pd.DataFrame, str | None]:
    """Return so many jobs of whole weeks that are drawn with replacement.

    Each week drawn follows the one before; jobs keep their instant in the week,
    and get fresh numbers. A job follows its predecessor only where both are in
    one week.

    Parameters
    ----------
    jobs : pandas.DataFrame
        A job table in submit order.
    wanted : int
        How many jobs.
    rng : numpy.random.Generator

    Returns
    -------
    jobs : pandas.DataFrame
    period : str or None
        ``weeks``; ``days`` or ``hours`` where the log is shorter than two weeks
        or two days; None where it is too short for these, and comes as it is.
    """
    submit = jobs["submit_time"].to_numpy(float)
    since = submit - submit[0]
    fitting = [(name, length) for name, length in PERIODS if since[-1] >= 2 * length]
    if not fitting:
        return jobs.iloc[:wanted], None
    period, seconds = fitting[0]
    whole = int(since[-1] // seconds)
    rows, drawn, place = _draw(np.searchsorted(since, np.arange(whole + 1) * seconds), wanted, rng)
    table = jobs.iloc[rows].reset_index(drop=True)
    table["submit_time"] = submit[rows] + (place - drawn) * seconds
    table["preceding_job"] = _predecessors(table, place)
    table["job_id"] = np.arange(1, len(table) + 1)
    return table, period


def _draw(
    edges: IntArray, wanted: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray, IntArray]:
    """Return rows, and for each the period that it is of and the place where that comes."""
    rows: list[IntArray] = []
    drawn: list[int] = []
    total = 0
    while total < wanted:
        chosen = int(rng.integers(len(edges) - 1))
        rows.append(np.arange(edges[chosen], edges[chosen + 1]))
        drawn.append(chosen)
        total += len(rows[-1])
    lengths = [len(part) for part in rows]
    place = np.repeat(np.arange(len(drawn)), lengths)
    return np.concatenate(rows)[:wanted], np.repeat(drawn, lengths)[:wanted], place[:wanted]


def _predecessors(table: pd.DataFrame, place: IntArray) -> IntArray:
    """Return the fresh number of each job's predecessor in its week, -1 without one."""
    own = pd.MultiIndex.from_arrays([place, table["job_id"]])
    asked = pd.MultiIndex.from_arrays([place, table["preceding_job"]])
    found = own.get_indexer(asked)
    return np.where((table["preceding_job"] > 0) & (found >= 0), found + 1, -1)
