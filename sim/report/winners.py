"""Who loses: the jobs of one run against the same jobs of what it is compared with."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from sim.errors import StatisticsError
from sim.results.job_metrics import count_bin, job_class, narrow_processors
from sim.results.rows import duration

KINDS = ("class", "user", "application")
"""By what jobs are told apart."""
CLASSES = ("class", "classes")
MOST_ROWS = 10
"""Users, or applications, that a table shows: half that lose most in total, half that gain most."""
MOST_JOBS = 1_000_000
"""Jobs after which no further simulation is read."""
OVERRUN = 0.1
"""Share of its request that a job runs longer by if it is counted: sites leave a grace period."""
SAME = 0.5
"""Seconds by which a response must differ to count as longer or shorter."""
NEEDED = (
    *("job_id", "wait_time", "response_time", "requested_processors", "reference_runtime"),
    *("allocated_processors", "believed_runtime", "runtime"),
)

Jobs = Path | pd.DataFrame
"""A table of jobs, or where its ``jobs.parquet`` lies."""


@dataclass(frozen=True)
class Winners:
    """What happened to whom.

    Attributes
    ----------
    own, base : str
        Names of what is asked about and of what it is compared with.
    longer, shorter : float
        Shares of the jobs whose response time is longer, or shorter, than under the reference.
    tables : dict of str to pandas.DataFrame
        By ``class``, ``user`` and ``application``, where jobs have several: ``jobs`` and
        ``longer`` (shares), ``before``, ``change`` and its part ``waiting`` (means over the
        group's jobs, seconds).
    read, there : int
        Simulations that count, and how many there are.
    anew : bool
        Whether each draws users and applications of its own, so that tables by these are
        of the first alone.
    most : float
        By how much one job's response is longer at most, seconds.
    losing : tuple of int
        Users of each simulation that respond later in the mean.
    narrow : int
        Processors above which jobs are wide.
    overruns : tuple of (int, int)
        Jobs that ran for much longer than they asked for, in the one and in the other.
    steady : bool
        Whether means may be told, as the queue settles.
    nobody : bool
        Whether no job has a user.
    """

    own: str
    base: str
    longer: float
    shorter: float
    tables: dict[str, pd.DataFrame]
    read: int
    there: int
    anew: bool = False
    most: float = 0.0
    losing: tuple[int, ...] = ()
    narrow: int = 0
    overruns: tuple[int, int] = (0, 0)
    steady: bool = True
    nobody: bool = False

    @property
    def meaning(self) -> str:
        """What classes are."""
        return f" (wide: more than {self.narrow} processors; long: more than an hour)"

    def sentence(self) -> str:
        """Return who loses in a sentence."""
        said = (
            f"Who loses: {100 * self.longer:.3g} % of the jobs respond later under {self.own} "
            f"than under {self.base}"
            f"{f' (at most by {duration(self.most)})' if self.longer else ''}, "
            f"{100 * self.shorter:.3g} % sooner"
        )
        for kind, many in (CLASSES,) if self.anew else (("user", "users"), CLASSES):
            if not self.steady or kind not in self.tables:
                continue
            table = self.tables[kind]
            later = table.loc[table["change"] > SAME, "change"]
            if later.size:
                part = 100 * table.loc[later.index[0], "longer"]
                worst = f"{kind} {later.index[0]}, by {duration(later.iloc[0])} a job"
                worst += f" ({part:.3g} % of them later){self.meaning * (kind == 'class')}"
                do = "does" if later.size == 1 else "do"
                said += f"; so {do} {later.size:,} of {len(table):,} {many} in the mean, "
                said += f"most in total {worst}"
                break
            said += f"; no {kind} does in the mean"
        if self.steady and self.anew and self.losing:
            said += f"; in each simulation {min(self.losing)} to {max(self.losing)} users do"
        said += f" (simulations: {self.read} of {self.there}"
        if self.read < self.there:
            said += f", as others have no table of the same jobs, or {MOST_JOBS:,} jobs are enough"
        said += f").{' The log names no users.' * self.nobody}"
        more, fewer = self.overruns
        if more > fewer:
            said += f" Jobs that exceed the time asked for by more than {100 * OVERRUN:g} %: "
            said += f"{more:,} under {self.own}, {fewer:,} under {self.base}."
        return said


def winners(
    own: str,
    base: str,
    pairs: Sequence[tuple[Jobs, Jobs]],
    anew: bool = False,
    steady: bool = True,
) -> Winners | None:
    """Return who wins and who loses; None without tables of the same jobs.

    Parameters
    ----------
    own, base : str
        Names for sentences.
    pairs : sequence of (Jobs, Jobs)
        Of each simulation the jobs of what is asked about, and the same ones of the other.
    anew, steady : bool
        See `Winners`.
    """
    read: list[pd.DataFrame] = []
    narrow, overruns = 0, []
    for pair in pairs:
        if sum(map(len, read)) >= MOST_JOBS:
            break
        with suppress(OSError, StatisticsError):  # no table, one of other columns or jobs
            mine, theirs = (pd.read_parquet(t) if isinstance(t, Path) else t for t in pair)
            regret = regret_of_jobs(mine, theirs)
            kept = mine[mine["job_id"] >= 0].reset_index(drop=True)
            narrow = narrow or narrow_processors(kept)
            named = {kind: kept[kind] for kind in KINDS[1:] if kind in kept.columns}
            named |= {k: kept[f"{k}_name"] for k in named if f"{k}_name" in kept.columns}
            before = kept["response_time"] - regret["regret"]
            overruns.append([_overruns(table) for table in (mine, theirs)])
            read.append(regret.assign(**named, before=before, simulation=len(read)))
    if not read:
        return None
    every = pd.concat(read, ignore_index=True)
    first = every[every["simulation"] == 0] if anew else every
    kinds = [kind for kind in KINDS if kind in every.columns]
    tables = {kind: _by(every if kind == "class" else first, kind) for kind in kinds}
    return Winners(
        own,
        base,
        float((every["regret"] > SAME).mean()),
        float((every["regret"] < -SAME).mean()),
        {kind: table for kind, table in tables.items() if len(table) > 1},
        len(read),
        len(pairs),
        anew and len(read) > 1,
        float(every["regret"].max()),
        tuple(int((_by(one, "user")["change"] > SAME).sum()) for one in read if "user" in one),
        narrow,
        (sum(own for own, _ in overruns), sum(other for _, other in overruns)),
        steady,
        "user" in tables and tables["user"].empty,
    )


def _overruns(jobs: pd.DataFrame) -> int:
    """Return how many jobs ran for much longer than they asked for."""
    past = jobs["runtime"] > (1.0 + OVERRUN) * jobs.get("requested_time", math.inf)
    return int((past & (jobs["job_id"] >= 0)).sum())


def most_affected(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of those that lose most, and that gain most, of a table of one kind."""
    half = MOST_ROWS // 2
    losing, gaining = table["change"] > SAME, table["change"] < -SAME
    return pd.concat([table[losing].head(half), table[gaining].tail(half)])


def _by(every: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Return the table of one kind, those that lose most in total first."""
    parts = every.assign(longer=every["regret"] > SAME).groupby(kind, sort=False)
    table = parts[["longer", "before", "regret", "waiting"]].mean()
    table = table.rename(columns={"regret": "change"})
    table.insert(0, "jobs", parts.size() / len(every))
    lost = parts["regret"].sum().sort_values(ascending=False, kind="stable")
    return table.loc[lost.index].drop(index=-1, errors="ignore")  # users unknown


def regret_of_jobs(own: pd.DataFrame, oracle: pd.DataFrame) -> pd.DataFrame:
    """Return by how much each job's times exceed those of the same job under the oracle.

    Parameters
    ----------
    own, oracle : pandas.DataFrame
        ``jobs.parquet`` of two runs of one policy on the same jobs; calibration
        jobs (negative ``job_id``) are left out.

    Returns
    -------
    pandas.DataFrame
        A row a job in the order of `own`: ``job_id, class, count`` (bin of the
        allocated processors), ``regret`` of its response time, its parts
        ``waiting`` and ``running``, in seconds, and ``error``,
        |believed - actual| / actual of its runtime.

    Raises
    ------
    StatisticsError
        If a column is missing or the jobs are not the same.
    """
    for name, frame in (("own", own), ("oracle", oracle)):
        missing = [column for column in NEEDED if column not in frame.columns]
        if missing:
            raise StatisticsError(f"{name}: column {missing[0]} is missing")
    own = own[own["job_id"] >= 0].reset_index(drop=True)
    other = oracle[oracle["job_id"] >= 0].set_index("job_id")
    if len(own) != len(other) or not own["job_id"].isin(other.index).all():
        raise StatisticsError("regret compares runs of the same jobs; these differ")
    best = other.loc[own["job_id"]].reset_index(drop=True)
    regret = own["response_time"] - best["response_time"]
    waiting = own["wait_time"] - best["wait_time"]
    return pd.DataFrame(
        {
            "job_id": own["job_id"],
            "class": job_class(own),
            "count": count_bin(own["allocated_processors"]),
            "regret": regret,
            "waiting": waiting,
            "running": regret - waiting,
            "error": (own["believed_runtime"] - own["runtime"]).abs() / own["runtime"],
        }
    )
