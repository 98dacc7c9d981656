"""What a comparison answers, and how sure: changes, shares of the oracle's gain, load curves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from predictors.base import FloatArray
from sim.errors import StatisticsError
from sim.report.regret import regret_by, regret_of_jobs
from sim.report.samples import Group, Sample, oracle_of, references, step_among
from sim.results.rows import SHARES
from sim.statistics.intervals import LEVEL, Interval, t_interval
from sim.statistics.paired import Comparison, compare_paired, holm, share_of_gain

SATURATED_SHARE = 0.5
"""A load is beyond saturation if more than this share of its replications saturate."""


@dataclass(frozen=True)
class Point:
    """A load below saturation.

    Attributes
    ----------
    load : float
        Offered.
    interval : Interval
        Of the figure over replications.
    saturated : float
        Share of replications whose queue kept growing.
    """

    load: float
    interval: Interval
    saturated: float


@dataclass(frozen=True)
class LoadCurve:
    """A figure over load.

    Attributes
    ----------
    points : tuple of Point
        In order of load, all below saturation.
    saturates_at : float or None
        The first load at which most replications saturate; the curve stops
        before it. None if none of the loads does.
    """

    points: tuple[Point, ...]
    saturates_at: float | None

    def says(self) -> str:
        """Return in words where the curve stops.

        Examples
        --------
        >>> LoadCurve((), 0.9).says()
        'saturated from load 0.9 on'
        """
        if self.saturates_at is not None:
            return f"saturated from load {self.saturates_at:g} on"
        last = f" up to load {self.points[-1].load:g}" if self.points else ""
        return f"not saturated{last}"


Samples = Sequence[tuple[float, bool]]
"""A figure and whether the queue kept growing, for each replication."""


def load_curve(
    simulate: Callable[[float], Samples], loads: Sequence[float], level: float = LEVEL
) -> LoadCurve:
    """Carry out simulations by rising load until they saturate.

    Parameters
    ----------
    simulate : callable
        From an offered load to figure and saturation of each replication; it is
        not called for loads beyond the first that saturates.
    loads : sequence of float
        In any order.
    level : float

    Raises
    ------
    StatisticsError
        If a load repeats or has no replication.

    Examples
    --------
    >>> curve = load_curve(lambda load: [(1 / (1 - load), load > 0.8)] * 2, [0.9, 0.5, 0.7])
    >>> [point.load for point in curve.points], curve.says()
    ([0.5, 0.7], 'saturated from load 0.9 on')
    """
    rising = sorted(loads)
    if len(set(rising)) < len(rising):
        raise StatisticsError(f"loads must differ, got {rising}")
    points: list[Point] = []
    for load in rising:
        found = simulate(load)
        if not found:
            raise StatisticsError(f"load {load:g} has no replication")
        share = float(np.mean([saturated for _, saturated in found]))
        if share > SATURATED_SHARE:
            return LoadCurve(tuple(points), load)
        points.append(Point(load, t_interval([value for value, _ in found], level), share))
    return LoadCurve(tuple(points), None)


FIGURE = "mean_response_time"
LOAD = "workload.load"
CERTAIN = 0.05

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
    """A group's figure over the offered load."""

    label: str
    curve: LoadCurve


def load_curves(groups: Sequence[Group], figure: str = FIGURE) -> list[Curve]:
    """Return each group's figure over load up to saturation; none where load is one."""
    series: dict[str, dict[float, Group]] = {}
    for group in groups:
        load = group.setting.get(LOAD)
        if isinstance(load, int | float) and not isinstance(load, bool):
            rest = {k: v for k, v in group.setting.items() if k != LOAD}
            label = Group(rest, group.role).label
            series.setdefault(label, {})[float(load)] = group
    curves = []
    for label, by_load in series.items():
        points = {load: _points(group, figure) for load, group in by_load.items()}
        known = {load: found for load, found in points.items() if found}
        if len(known) > 1:
            curves.append(Curve(label, load_curve(known.__getitem__, list(known))))
    return curves


def _points(group: Group, figure: str) -> list[tuple[float, bool]]:
    found = [(s.summary.get(figure), bool(s.summary.get("saturated"))) for s in group.samples]
    return [(float(value), full) for value, full in found if isinstance(value, int | float)]


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
        `sim.report.regret.regret_by` has them.
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
