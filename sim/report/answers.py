"""What a comparison answers, and how sure: changes, shares of the oracle's gain, load curves."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from predictors.base import FloatArray
from sim.errors import SimError, StatisticsError
from sim.report.samples import Group, Sample
from sim.statistics.intervals import Interval
from sim.statistics.load_curves import LoadCurve, load_curve
from sim.statistics.paired import Comparison, compare_paired, holm, share_of_gain
from sim.statistics.regret import regret_by, regret_of_jobs

FIGURE = "mean_response_time"
RIGID = ("easy", "conservative", "fcfs")
"""Policies that count as the reference, the first that there is."""
LOAD = "workload.load"
UNLIKE = ("policy", "predictor")
"""Keys in which what is compared on the same jobs may differ."""
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
    """

    group: Group
    reference: Group
    pairs: int
    comparison: Comparison
    corrected: float
    kept: Interval | None
    alone: Interval | None = None

    @property
    def certain(self) -> bool:
        """Whether it differs at 5 %, corrected for the number of comparisons."""
        return bool(self.corrected <= CERTAIN)


def _is_unlike(key: str) -> bool:
    return key.replace("/", ".").partition(".")[0] in UNLIKE


def jobs_of(group: Group) -> str:
    """Return what identifies the jobs that a group replays, apart from random numbers."""
    return repr({key: value for key, value in group.setting.items() if not _is_unlike(key)})


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


def reference_among(groups: Sequence[Group], named: str | None = None) -> Group | None:
    """Return the group that others are compared with, of those on the same jobs.

    Parameters
    ----------
    groups : sequence of Group
        On the same jobs.
    named : str, optional
        A label; without it a baseline, else rigid jobs by users' estimates, else
        rigid jobs. None if there is none of these.
    """
    if named is not None:
        return next((group for group in groups if group.label == named), None)
    for group in groups:
        if group.role == "baseline":
            return group
    for predictor in ("user_estimate", None):
        for policy in RIGID:
            for group in groups:
                asked = predictor is None or group.predictor in ("", predictor)
                if group.policy == policy and asked:
                    return group
    return None


def oracle_of(group: Group, groups: Sequence[Group]) -> Group | None:
    """Return the group of the oracle with the same policy on the same jobs."""
    own = {key: value for key, value in group.setting.items() if not key.startswith("predictor")}
    for other in groups:
        theirs = {k: v for k, v in other.setting.items() if not k.startswith("predictor")}
        if other.predictor == "oracle" and theirs == own and other.role == group.role:
            return other
    return None


def _same_keys(group: Group, other: Group, part: str) -> bool:
    """Return whether two groups have the same policy, or predictor, with all its parameters."""
    keys = [k for k in group.setting | other.setting if k.replace("/", ".").startswith(part)]
    return all(group.setting.get(key) == other.setting.get(key) for key in keys)


def step_among(group: Group, reference: Group, groups: Sequence[Group]) -> Group | None:
    """Return the reference's policy with a group's predictor, where both differ between them."""
    if any(_same_keys(group, reference, part) for part in UNLIKE):
        return None
    for other in groups:
        if _same_keys(other, reference, "policy") and _same_keys(other, group, "predictor"):
            return other
    return None


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
        Label of the reference; see `reference_among`.

    Raises
    ------
    SimError
        If no group has the label `against`.
    """
    if against is not None and all(group.label != against for group in groups):
        labels = "; ".join(group.label for group in groups[:8])
        raise SimError(f"--against {against}: there is no such group; there are {labels}")
    alike: dict[str, list[Group]] = {}
    for group in groups:
        alike.setdefault(jobs_of(group), []).append(group)
    found = []
    for same in alike.values():
        reference = reference_among(same, against)
        if reference is not None:
            others = [group for group in same if group is not reference]
            found += [_difference(group, reference, same, figure) for group in others]
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
    alone, step = None, step_among(group, reference, same)
    if step is not None:
        mine, like = paired_values([group, step], figure)
        alone = compare_paired(mine, like).change if len(mine) else None
    return Difference(group, reference, len(own), compare_paired(own, base), np.nan, kept, alone)


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
        `sim.statistics.regret.regret_by` has them.
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
