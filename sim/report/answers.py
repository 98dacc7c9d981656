"""What a comparison answers, and how sure: changes, who loses, regret, load curves."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from predictors.base import FloatArray
from sim.errors import StatisticsError
from sim.report.gathering import Group, grouped, jobs_of, oracle_of, references, shared, step_among
from sim.results.artefacts import read_table, same_schedule
from sim.results.metrics import count_bin, job_class, narrow_processors
from sim.results.rows import MORE, PERCENT, POINTS, SHARES, TOO_WIDE, changes_of, duration, tells
from sim.results.steady_state import in_order, in_windows, unsteady
from sim.statistics import LEAST_PAIRS, Comparison, Family, Interval, compare, ratio_of_means

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
    own: str, base: str, pairs: Sequence[tuple[Jobs, Jobs]], anew: bool = False, steady: bool = True
) -> Winners | None:
    """Return who wins and who loses; None without tables of the same jobs.

    A pair are the jobs of one simulation of what is asked about, and the same ones of the other.
    """
    read: list[pd.DataFrame] = []
    narrow, overruns = 0, []
    for pair in pairs:
        if sum(map(len, read)) >= MOST_JOBS:
            break
        with suppress(OSError, StatisticsError):  # no table, one of other columns or jobs
            mine, theirs = (read_table(t) if isinstance(t, Path) else t for t in pair)
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


FIGURE = "mean_response_time"
LOAD = "workload.load"
NO_GAIN = "oracle's gain not certain"
NO_EFFECT = "predictions have no effect"
"""Why no share of it can be told."""


@dataclass(frozen=True, eq=False)
class Difference:
    """How a group differs from the reference on the same jobs.

    Attributes
    ----------
    group, reference : Group
    figure : str
        Key of what is compared.
    pairs : int
        Simulations that both have; weeks drawn again beside windows of a log do not count.
    comparison : Comparison
        Read together with all of its set.
    set : str
        Names the intervals that hold together; empty where it has none.
    kept : Interval or str
        Share of the oracle's gain over the reference under the same policy; empty where there
        is no oracle, or why it cannot be told.
    step : Difference or None
        How the reference's policy with this group's predictor differs from the reference.
    alone : Comparison or None
        Against the reference's policy with this group's predictor, that is by the
        policy alone; None where one of them is the same, or that was not played.
    """

    group: Group
    reference: Group
    figure: str
    pairs: int
    comparison: Comparison
    set: str
    kept: Interval | str = ""
    step: "Difference | None" = None
    alone: Comparison | None = None

    @property
    def change(self) -> Interval:
        """The relative change, or the difference of shares."""
        return self.comparison.change

    @property
    def span(self) -> Interval:
        """The change with its interval, or with the range of pairs too few for one."""
        one, few = self.comparison, 1 < self.change.count < LEAST_PAIRS
        return replace(one.change, low=one.least, high=one.most) if few else one.change

    @property
    def loss(self) -> float:
        """By how much the group is worse than its reference."""
        return -self.change.mean if self.figure in MORE else self.change.mean

    @property
    def unit(self) -> str:
        """What its changes are told in: percentage points of a share, else percent."""
        return POINTS if self.figure in SHARES else PERCENT

    @property
    def refused(self) -> bool:
        """Whether either queue does not settle, so that nothing is told of their means."""
        return self.group.is_refused or self.reference.is_refused

    @property
    def unsettled(self) -> int:
        """Of how many pairs either queue does not settle."""
        pairs = shared(self.group, self.reference)
        return sum(bool(unsteady([one.summary for one in pair])) for pair in pairs)


def losers(one: Difference) -> Winners | None:
    """Return who wins and who loses by a difference, of all its simulations."""
    anew = any(each.get("given_applications") == "invented" for each in one.group.summaries)
    pairs = _tables_of_jobs(one.group, one.reference)
    return winners(one.group.label, one.reference.label, pairs, anew, not one.refused)


def _tables_of_jobs(own: Group, base: Group) -> list[tuple[Path, Path]]:
    """Return where the tables of jobs lie of the simulations that two groups have."""
    name = "jobs.parquet"
    return [(one.folder / name, other.folder / name) for one, other in shared(own, base)]


def differences(
    groups: Sequence[Group], figure: str = FIGURE, against: str | None = None
) -> tuple[list[Difference], Family]:
    """Return how every group differs from its reference, paired by random numbers.

    Parameters
    ----------
    groups : sequence of Group
    figure : str
        Key of the summary, of which less is better.
    against : str, optional
        See `sim.report.gathering.references`.

    Returns
    -------
    list of Difference
    Family
        All that is read with them, those by the policy alone too.

    Raises
    ------
    SimError
        If no group has the label or the values.
    """
    found = [(*one, step_among(*one)) for one in references(groups, against)]
    pairs = [(group, reference) for group, reference, _, _ in found]
    pairs += [(group, step) for group, _, _, step in found if step is not None]
    jobs = [jobs_of(own) for own, _ in pairs]
    orders = {one: _windows(same) for one, same in grouped(groups, jobs_of).items()}
    columns = [_column(*pair, orders[one], figure) for pair, one in zip(pairs, jobs, strict=True)]
    ordered = any(in_windows(group.summaries) for group in groups)
    family = compare(columns, shares=[figure in SHARES] * len(jobs), ordered=ordered, jobs=jobs)
    told = dict(zip(pairs, family.comparisons, strict=True))
    made: dict[tuple[Group | None, Group], Difference] = {}
    for group, reference, _, step in found:
        own, order = told[group, reference], orders[jobs_of(group)]
        count = sum(sample.drawn in order for sample, _ in shared(group, reference))
        is_single = np.isnan(own.change.low) or family.intervals == 1
        named = "" if is_single else f"{family.intervals} intervals of {figure}"
        alone = None if step is None else told[group, step]
        made[group, reference] = Difference(
            group, reference, figure, count, own, named, alone=alone
        )
    whole = []
    for one, (_, base, same, step) in zip(made.values(), found, strict=True):
        ideal = made.get((oracle_of(one.group, same), base))
        if one.pairs:
            whole.append(replace(one, kept=_kept(one, ideal), step=made.get((step, base))))
    return whole, family


def _windows(groups: Sequence[Group]) -> list[tuple[Any, int]]:
    """Return whose simulations count, windows of a log in its order."""
    every = {one.drawn: one.summary for group in reversed(groups) for one in group.samples}
    return [list(every)[place] for place in in_order(list(every.values()))]


def _column(
    own: Group, reference: Group, order: Sequence[tuple[Any, int]], figure: str
) -> FloatArray:
    """Return paired changes in an order, NaN where a pair lacks or nothing is to be told."""
    if own.is_refused or reference.is_refused:
        return np.full(len(order), np.nan)
    pairs = {one.drawn: (one.summary, other.summary) for one, other in shared(own, reference)}
    return changes_of([pairs.get(place, ({}, {})) for place in order], figure)


def _kept(one: Difference, oracle: Difference | None) -> Interval | str:
    if oracle is None or oracle is one or np.isnan(one.change.mean):
        return ""
    every = [[s.summary for s in each] for each in shared(one.group, oracle.group, one.reference)]
    if every and all(same_schedule(each[:2]) for each in every):
        return NO_EFFECT
    if not oracle.comparison.certain or oracle.loss >= 0.0:
        return NO_GAIN
    pairs = [[(each[place], each[2]) for each in every] for place in (0, 1)]
    own, best = (changes_of(some, one.figure) for some in pairs)
    known = ~np.isnan(own + best)
    kept = ratio_of_means(own[known], best[known])
    return kept if tells(kept) else TOO_WIDE


@dataclass(frozen=True)
class LoadCurve:
    """A group's figure over the offered load.

    Points are by load in rising order, all at which the queue settles. At the load
    `unsteady_at` it does not, so that the curve stops before it; None if it settles at all.
    """

    label: str
    points: dict[float, Interval]
    unsteady_at: float | None

    def says(self) -> str:
        """Return in words how far the curve goes.

        Examples
        --------
        >>> LoadCurve("sa", {}, 0.9).says()
        'does not settle from load 0.9 on'
        """
        if self.unsteady_at is not None:
            return f"does not settle from load {self.unsteady_at:g} on"
        return f"goes up to load {max(self.points):g}"


def load_curves(groups: Sequence[Group], figure: str = FIGURE) -> list[LoadCurve]:
    """Return each group's figure over load as far as it settles; none where load is one."""
    series: dict[str, dict[float, Group]] = {}
    for group in groups:
        load = group.setting.get(LOAD)
        known = [s for s in group.samples if isinstance(s.summary.get(figure), int | float)]
        if known and isinstance(load, int | float) and not isinstance(load, bool):
            rest = {k: v for k, v in group.setting.items() if k != LOAD}
            label = Group(rest, group.role).label
            series.setdefault(label, {})[float(load)] = replace(group, samples=known)
    return [_curve(label, by_load, figure) for label, by_load in series.items() if len(by_load) > 1]


def _curve(label: str, by_load: Mapping[float, Group], figure: str) -> LoadCurve:
    points: dict[float, Interval] = {}
    for load in sorted(by_load):
        if by_load[load].is_refused:
            return LoadCurve(label, points, load)
        points[load] = by_load[load].interval(figure)
    return LoadCurve(label, points, None)


def regret_by(read: Sequence[pd.DataFrame], key: str) -> pd.DataFrame:
    """Return where regret is felt, of each simulation as `regret_of_jobs` returns it.

    Returns
    -------
    pandas.DataFrame
        By ``class`` or ``count`` of jobs: ``jobs``, their share; ``regret``, ``waiting``,
        ``running``, their sums over all jobs of the run, so that the column adds up to the
        difference of mean response times; ``median_error`` of prediction. All are
        means over the simulations; a group that one lacks adds nothing there.

    Notes
    -----
    This says which jobs bear the regret, not whose errors cause it: one job's
    wrong belief makes others wait. For causes, mend the errors of a group with
    `predictors.in_loop.oracle.PartialOracle` and see what regret is left.
    """
    groups = [regret.assign(jobs=1).groupby(key, sort=False) for regret in read]
    sums = [
        group[["jobs", "regret", "waiting", "running"]].sum() / len(regret)
        for group, regret in zip(groups, read, strict=True)
    ]
    mean = pd.concat(sums).groupby(level=0, sort=False).sum() / len(read)
    errors = pd.concat([group["error"].median() for group in groups])
    mean["median_error"] = errors.groupby(level=0).mean()
    return mean.sort_values("regret", ascending=False, kind="stable")


def regrets(groups: Sequence[Group], most: int) -> dict[str, dict[str, pd.DataFrame]]:
    """Return where regret against the oracle is felt, by label and by ``class``, ``count``.

    They are means, as `regret_by` has them, over at most so many simulations of each group.
    """
    found: dict[str, dict[str, pd.DataFrame]] = {}
    for group in groups:
        oracle = oracle_of(group, groups)
        if oracle is None or oracle is group:
            continue
        read = []
        for paths in _tables_of_jobs(group, oracle)[:most]:
            with suppress(OSError, StatisticsError):  # no table, or one of other jobs
                read.append(regret_of_jobs(*map(read_table, paths)))
        if read:
            found[group.label] = {key: regret_by(read, key) for key in ("class", "count")}
    return found
