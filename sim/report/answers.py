"""What a comparison answers, and how sure: changes, shares of the oracle's gain, load curves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from predictors.base import FloatArray
from sim.errors import StatisticsError
from sim.report.samples import Group, Sample, oracle_of, references, step_among
from sim.results.job_metrics import count_bin, job_class
from sim.results.rows import SHARES
from sim.statistics.intervals import Interval, t_interval
from sim.statistics.paired import Comparison, compare_paired, holm, share_of_gain

SATURATED_SHARE = 0.5
"""A load is beyond saturation if more than this share of its replications saturate."""


FIGURE = "mean_response_time"
LOAD = "workload.load"
CERTAIN = 0.05

NEEDED = (
    *("job_id", "wait_time", "response_time", "requested_processors", "reference_runtime"),
    *("allocated_processors", "believed_runtime", "runtime"),
)

Samples = Sequence[tuple[float, bool]]
"""A figure and whether the queue kept growing, for each replication."""
Identity = tuple[object, int]
Drawn = dict[Identity, Sample]


@dataclass(frozen=True)
class Difference:
    """How a group differs from the reference on the same jobs.

    Attributes
    ----------
    group, reference : Group
    pairs : int
        Simulations that both have.
    comparison : Comparison
    corrected : float
        The p value, corrected by Holm's rule for all differences of the report.
    kept : Interval or None
        Share of the oracle's gain over the reference under the same policy; None
        where there is no oracle to compare with.
    alone : Interval or None
        Change against the reference's policy with this group's predictor, that is by
        the policy alone; None where one of them is the same, or that was not played.
    is_share : bool
        Whether the figure is a share, whose changes are plain differences.
    worst : float
        The largest ratio to the reference among the pairs; NaN of a share, and where
        a value of the reference is 0.
    """

    group: Group
    reference: Group
    pairs: int
    comparison: Comparison
    corrected: float
    kept: Interval | None
    alone: Interval | None = None
    is_share: bool = False
    worst: float = np.nan

    @property
    def change(self) -> Interval:
        """The relative change, or the difference of shares."""
        return _change(self.comparison, self.is_share)

    @property
    def certain(self) -> bool:
        """Whether it differs at 5 %, corrected for the number of comparisons."""
        return bool(self.corrected <= CERTAIN)


def _change(comparison: Comparison, is_share: bool) -> Interval:
    return comparison.difference if is_share else comparison.change


def identified(group: Group) -> Drawn:
    """Return a group's simulations by seed and replication."""
    found: Drawn = {}
    for sample in group.samples:
        _, marked, rest = sample.name.rpartition("replication=")
        number = int(rest.partition("/")[0]) if marked else 0
        found.setdefault((sample.summary.get("seed"), number), sample)
    return found


def paired_values(groups: Sequence[Group], figure: str) -> list[FloatArray]:
    """Return a figure of the simulations that all groups have, in the same order."""
    drawn = [identified(group) for group in groups]
    rows = []
    for identity in drawn[0]:
        if all(identity in one for one in drawn):
            values = [one[identity].summary.get(figure) for one in drawn]
            if all(isinstance(v, int | float) for v in values):
                rows.append(values)
    return list(np.array(rows, np.float64).reshape(-1, len(groups)).T)


def differences(
    groups: Sequence[Group], figure: str = FIGURE, against: str | None = None
) -> list[Difference]:
    """Return how every group differs from its reference, paired by random numbers.

    Parameters
    ----------
    groups : sequence of Group
    figure : str
        Key of the summary, of which less is better.
    against : str, optional
        See `sim.report.samples.references`.

    Raises
    ------
    SimError
        If no group has the label or the values.
    """
    found = [_difference(*one, figure) for one in references(groups, against)]
    found = [one for one in found if one.pairs > 0]
    corrected = holm([one.comparison.p_value for one in found])
    return [replace(d, corrected=float(p)) for d, p in zip(found, corrected, strict=True)]


def _difference(group: Group, reference: Group, same: Sequence[Group], figure: str) -> Difference:
    own, base = paired_values([group, reference], figure)
    kept = None
    oracle = oracle_of(group, same)
    if oracle is not None and oracle is not group:
        mine, best, theirs = paired_values([group, oracle, reference], figure)
        kept = share_of_gain(mine, best, theirs) if len(mine) else None
    alone, step, is_share = None, step_among(group, reference, same), figure in SHARES
    if step is not None:
        mine, like = paired_values([group, step], figure)
        alone = _change(compare_paired(mine, like), is_share) if len(mine) else None
    defined = len(own) and not is_share and (base > 0).all()
    worst = float((own / base).max()) if defined else np.nan
    compared = compare_paired(own, base)
    return Difference(group, reference, len(own), compared, np.nan, kept, alone, is_share, worst)


@dataclass(frozen=True)
class Curve:
    """A group's figure over the offered load.

    Attributes
    ----------
    label : str
    points : dict of float to Interval
        By load in rising order, all below saturation.
    saturates_at : float or None
        The first load at which most replications saturate; the curve stops
        before it. None if none of the loads does.
    """

    label: str
    points: dict[float, Interval]
    saturates_at: float | None

    def says(self) -> str:
        """Return in words where the curve stops.

        Examples
        --------
        >>> Curve("sa", {}, 0.9).says()
        'saturated from load 0.9 on'
        """
        if self.saturates_at is not None:
            return f"saturated from load {self.saturates_at:g} on"
        last = f" up to load {max(self.points):g}" if self.points else ""
        return f"not saturated{last}"


def load_curves(groups: Sequence[Group], figure: str = FIGURE) -> list[Curve]:
    """Return each group's figure over load up to saturation; none where load is one."""
    series: dict[str, dict[float, Samples]] = {}
    for group in groups:
        load = group.setting.get(LOAD)
        if isinstance(load, int | float) and not isinstance(load, bool):
            rest = {k: v for k, v in group.setting.items() if k != LOAD}
            found = [
                (s.summary.get(figure), bool(s.summary.get("saturated"))) for s in group.samples
            ]
            known = [
                (float(value), full) for value, full in found if isinstance(value, int | float)
            ]
            if known:
                series.setdefault(Group(rest, group.role).label, {})[float(load)] = known
    return [_curve(label, by_load) for label, by_load in series.items() if len(by_load) > 1]


def _curve(label: str, by_load: Mapping[float, Samples]) -> Curve:
    points: dict[float, Interval] = {}
    for load, found in sorted(by_load.items()):
        if np.mean([full for _, full in found]) > SATURATED_SHARE:
            return Curve(label, points, load)
        points[load] = t_interval([value for value, _ in found])
    return Curve(label, points, None)


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
        allocated processors), ``choice`` (``fewer``, ``same``, ``more``
        processors than under the oracle), ``regret`` of its response time,
        its parts ``waiting`` and ``running``, in seconds, and ``error``,
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
    apart = own["allocated_processors"] - best["allocated_processors"]
    regret = own["response_time"] - best["response_time"]
    waiting = own["wait_time"] - best["wait_time"]
    return pd.DataFrame(
        {
            "job_id": own["job_id"],
            "class": job_class(own),
            "count": count_bin(own["allocated_processors"]),
            "choice": np.array(["fewer", "same", "more"], object)[
                (np.sign(apart.to_numpy()) + 1).astype(np.int64)
            ],
            "regret": regret,
            "waiting": waiting,
            "running": regret - waiting,
            "error": (own["believed_runtime"] - own["runtime"]).abs() / own["runtime"],
        }
    )


def regret_by(regret: pd.DataFrame, key: str | Sequence[str]) -> pd.DataFrame:
    """Return where regret is felt: sums over groups of jobs, per job of the whole run.

    Parameters
    ----------
    regret : pandas.DataFrame
        As `regret_of_jobs` returns it.
    key : str or sequence of str
        ``class``, ``count``, ``choice``, or several.

    Returns
    -------
    pandas.DataFrame
        By group: ``jobs``, their share; ``regret``, ``waiting``, ``running``,
        their sums over all jobs of the run, so that the column adds up to the
        difference of mean response times; ``share`` of the whole regret (NaN
        where that is 0); ``median_error`` of prediction.

    Notes
    -----
    This says which jobs bear the regret, not whose errors cause it: one job's
    wrong belief makes others wait. For causes, mend the errors of a group with
    `predictors.in_loop.partial_oracle.PartialOracle` and see what regret is left.
    """
    groups = regret.groupby([key] if isinstance(key, str) else list(key), sort=False)
    number = max(len(regret), 1)
    table = groups[["regret", "waiting", "running"]].sum() / number
    whole = float(regret["regret"].sum()) / number
    table.insert(0, "jobs", groups.size() / number)
    table["share"] = table["regret"] / whole if whole else np.nan
    table["median_error"] = groups["error"].median()
    return table.sort_values("regret", ascending=False, kind="stable")


def regrets(groups: Sequence[Group], most: int) -> dict[str, dict[str, pd.DataFrame]]:
    """Return where regret against the oracle is felt, by class and by count.

    Parameters
    ----------
    groups : sequence of Group
    most : int
        Simulations of each group whose job tables are read.

    Returns
    -------
    dict of str to dict of str to pandas.DataFrame
        By label and by ``class``, ``count``; means over the simulations read, as
        `regret_by` has them.
    """
    found: dict[str, dict[str, pd.DataFrame]] = {}
    for group in groups:
        oracle = oracle_of(group, groups)
        if oracle is None or oracle is group:
            continue
        tables = _regret_tables(identified(group), identified(oracle), most)
        if tables:
            found[group.label] = {
                key: _mean_table([table[key] for table in tables]) for key in ("class", "count")
            }
    return found


def _regret_tables(own: Drawn, oracle: Drawn, most: int) -> list[dict[str, pd.DataFrame]]:
    tables = []
    for identity in [one for one in own if one in oracle][:most]:
        paths = [drawn[identity].folder / "jobs.parquet" for drawn in (own, oracle)]
        if all(path.is_file() for path in paths):
            try:
                regret = regret_of_jobs(*map(pd.read_parquet, paths))
            except StatisticsError:
                continue  # other jobs under the same seed: the settings differ elsewhere
            tables.append({key: regret_by(regret, key) for key in ("class", "count")})
    return tables


def _mean_table(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the mean over simulations; a group that one lacks adds nothing there."""
    every = pd.concat(tables)
    sums = ["jobs", "regret", "waiting", "running"]
    mean = every[sums].groupby(level=0, sort=False).sum() / len(tables)
    whole = float(mean["regret"].sum())
    mean["share"] = mean["regret"] / whole if whole else np.nan
    mean["median_error"] = every["median_error"].groupby(level=0).mean()
    return mean.sort_values("regret", ascending=False, kind="stable")
