"""Who wins and who loses: the jobs of one group against the same jobs of its reference."""

from dataclasses import dataclass

import pandas as pd

from sim.errors import StatisticsError
from sim.report.answers import Difference, identified, regret_of_jobs

KINDS = ("class", "user", "application")
"""By what jobs are told apart."""
MOST_ROWS = 10
"""Users, or applications, that a table shows: those with most jobs."""
SAME = 0.5
"""Seconds by which a response must differ to count as longer or shorter."""


@dataclass(frozen=True)
class Winners:
    """What happened to whom.

    Attributes
    ----------
    difference : Difference
        Whose jobs are compared.
    longer, shorter : float
        Shares of the jobs whose response time is longer, or shorter, than under the reference.
    tables : dict of str to pandas.DataFrame
        By ``class``, ``user`` and ``application``, where jobs have several: ``jobs`` and
        ``longer`` (shares), ``before``, ``change`` and its part ``waiting`` (means over the
        group's jobs, seconds).
    read : int
        Simulations read.
    """

    difference: Difference
    longer: float
    shorter: float
    tables: dict[str, pd.DataFrame]
    read: int


def winners(one: Difference, most: int) -> Winners | None:
    """Return who wins and who loses by a difference; None without tables of jobs.

    Parameters
    ----------
    one : Difference
    most : int
        Simulations whose job tables are read.
    """
    own, base = identified(one.group), identified(one.reference)
    read = []
    for identity in [known for known in own if known in base][:most]:
        paths = [drawn[identity].folder / "jobs.parquet" for drawn in (own, base)]
        if all(path.is_file() for path in paths):
            mine, theirs = map(pd.read_parquet, paths)
            try:
                regret = regret_of_jobs(mine, theirs)
            except StatisticsError:
                continue  # a table of other columns, or other jobs
            kept = mine[mine["job_id"] >= 0].reset_index(drop=True)
            named = {kind: kept[kind] for kind in KINDS[1:] if kind in kept.columns}
            read.append(regret.assign(**named, before=kept["response_time"] - regret["regret"]))
    if not read:
        return None
    every = pd.concat(read, ignore_index=True)
    tables = {kind: _by(every, kind) for kind in KINDS if kind in every.columns}
    return Winners(
        one,
        float((every["regret"] > SAME).mean()),
        float((every["regret"] < -SAME).mean()),
        {kind: table for kind, table in tables.items() if len(table) > 1},
        len(read),
    )


def _by(every: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Return the table of one kind, the largest groups of jobs, dearest first."""
    parts = every.assign(longer=every["regret"] > SAME).groupby(kind, sort=False)
    table = parts[["longer", "before", "regret", "waiting"]].mean()
    table = table.rename(columns={"regret": "change"})
    table.insert(0, "jobs", parts.size() / len(every))
    largest = table.sort_values("jobs", ascending=False, kind="stable").iloc[:MOST_ROWS]
    return largest.sort_values("change", ascending=False, kind="stable")
