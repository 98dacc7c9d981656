"""What a comparison answers, and how sure: changes, shares of the oracle's gain, load curves."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from predictors.base import FloatArray
from sim.errors import StatisticsError
from sim.report.samples import Group, Sample, jobs_of, oracle_of, references, step_among
from sim.report.winners import Winners, regret_of_jobs, winners
from sim.results.artefacts import same_schedule
from sim.results.rows import MORE, SHARES, TOO_WIDE, changes_of, tells
from sim.results.steady_state import in_order, in_windows, unsteady
from sim.statistics import (
    LEAST_PAIRS,
    Comparison,
    Family,
    Interval,
    compare,
    ratio_of_means,
    share_of_gain,
    t_interval,
)

FIGURE = "mean_response_time"
LOAD = "workload.load"
NO_GAIN = "oracle's gain not certain"
NO_EFFECT = "predictions have no effect"
"""Why no share of it can be told."""

Identity = tuple[object, int]
Drawn = dict[Identity, Sample]


@dataclass(frozen=True)
class Difference:
    """How a group differs from the reference on the same jobs.

    Attributes
    ----------
    group, reference : Group
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
    is_share : bool
        Whether the figure is a share, whose changes are plain differences.
    refused : bool
        Whether either queue does not settle, so that nothing is told of their means.
    unsettled : int
        Of how many pairs either queue does not settle.
    """

    group: Group
    reference: Group
    pairs: int
    comparison: Comparison
    set: str
    kept: Interval | str = ""
    alone: Comparison | None = None
    is_share: bool = False
    refused: bool = False
    step: "Difference | None" = None
    unsettled: int = 0

    @property
    def change(self) -> Interval:
        """The relative change, or the difference of shares."""
        return self.comparison.change

    @property
    def span(self) -> Interval:
        """The change with its interval, or with the range of pairs too few for one."""
        one, few = self.comparison, 1 < self.change.count < LEAST_PAIRS
        return replace(one.change, low=one.least, high=one.most) if few else one.change


def identified(group: Group) -> Drawn:
    """Return a group's simulations by seed and replication."""
    return {sample.drawn: sample for sample in group.samples}


def losers(one: Difference) -> Winners | None:
    """Return who wins and who loses by a difference, of all its simulations."""
    anew = any(each.get("given_applications") == "invented" for each in one.group.summaries)
    pairs = _tables_of_jobs(one.group, one.reference)
    return winners(one.group.label, one.reference.label, pairs, anew, not one.refused)


def _tables_of_jobs(own: Group, base: Group) -> list[tuple[Path, Path]]:
    """Return where the tables of jobs lie of the simulations that two groups have."""
    mine, theirs = identified(own), identified(base)
    both = [(mine[known].folder, theirs[known].folder) for known in mine if known in theirs]
    return [(one / "jobs.parquet", other / "jobs.parquet") for one, other in both]


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
        See `sim.report.samples.references`.

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
    found = list(references(groups, against))
    steps = [step_among(*one) for one in found]
    pairs = [(one[0], one[1]) for one in found]
    pairs += [(one[0], step) for one, step in zip(found, steps, strict=True) if step is not None]
    jobs = [jobs_of(own) for own, _ in pairs]
    orders = {one: _windows([g for g in groups if jobs_of(g) == one]) for one in jobs}
    columns = [_column(*pair, orders[one], figure) for pair, one in zip(pairs, jobs, strict=True)]
    is_share, ordered = figure in SHARES, any(in_windows(group.summaries) for group in groups)
    family = compare(columns, shares=[is_share] * len(columns), ordered=ordered, jobs=jobs)
    alone = iter(family.comparisons[len(found) :])
    made: list[Difference] = []
    for (group, reference, _), step, one in zip(found, steps, family.comparisons, strict=False):
        by_policy = None if step is None else next(alone)
        own, base = identified(group), identified(reference)
        both = own.keys() & base.keys()
        pairs_of = len(both.intersection(orders[jobs_of(group)]))
        refused = group.is_refused or reference.is_refused
        is_single = np.isnan(one.change.low) or family.intervals == 1
        named = "" if is_single else f"{family.intervals} intervals of {figure}"
        unsettled = sum(bool(unsteady([own[k].summary, base[k].summary])) for k in both)
        about = (group, reference, pairs_of, one, named, "", by_policy, is_share, refused)
        made.append(Difference(*about, unsettled=unsettled))
    by_pair = {(id(one.group), id(one.reference)): one for one in made}
    told = []
    for each, (_, _, same), step in zip(made, found, steps, strict=True):
        beside, oracle = (
            by_pair.get((id(other), id(each.reference)))
            for other in (step, oracle_of(each.group, same))
        )
        if each.pairs:
            told.append(replace(each, kept=_kept(each, oracle, figure), step=beside))
    return told, family


def _windows(groups: Sequence[Group]) -> list[Identity]:
    """Return whose simulations count, windows of a log in its order."""
    every: Drawn = {}
    for group in groups:
        every = identified(group) | every
    places = in_order([sample.summary for sample in every.values()])
    return [list(every)[place] for place in places]


def _column(own: Group, reference: Group, order: Sequence[Identity], figure: str) -> FloatArray:
    """Return paired changes in an order, NaN where a pair lacks or nothing is to be told."""
    if own.is_refused or reference.is_refused:
        return np.full(len(order), np.nan)
    drawn, nothing = [identified(group) for group in (own, reference)], Sample(Path(), "", {})
    mine, theirs = ([one.get(place, nothing).summary for place in order] for one in drawn)
    return changes_of(list(zip(mine, theirs, strict=True)), figure)


def _kept(one: Difference, oracle: Difference | None, figure: str) -> Interval | str:
    if oracle is None or oracle is one or np.isnan(one.change.mean):
        return ""
    drawn = [identified(group) for group in (one.group, oracle.group, one.reference)]
    shared = [known for known in drawn[0] if all(known in each for each in drawn)]
    if shared and all(same_schedule([each[k].summary for each in drawn[:2]]) for k in shared):
        return NO_EFFECT
    if not oracle.comparison.certain or (oracle.change.mean > 0.0) != (figure in MORE):
        return NO_GAIN
    rows = [[each[known].summary.get(figure) for each in drawn] for known in shared]
    whole = [row for row in rows if all(isinstance(value, int | float) for value in row)]
    own, best, base = np.array(whole, np.float64).reshape(-1, 3).T
    is_share = figure in SHARES
    kept = ratio_of_means(own - base, best - base) if is_share else share_of_gain(own, best, base)
    return kept if tells(kept) else TOO_WIDE


@dataclass(frozen=True)
class Curve:
    """A group's figure over the offered load.

    Attributes
    ----------
    label : str
    points : dict of float to Interval
        By load in rising order, all at which the queue settles.
    unsteady_at : float or None
        The first load at which it does not; the curve stops before it. None if
        it settles at all loads.
    """

    label: str
    points: dict[float, Interval]
    unsteady_at: float | None

    def says(self) -> str:
        """Return in words how far the curve goes.

        Examples
        --------
        >>> Curve("sa", {}, 0.9).says()
        'does not settle from load 0.9 on'
        """
        if self.unsteady_at is not None:
            return f"does not settle from load {self.unsteady_at:g} on"
        return f"goes up to load {max(self.points):g}"


def load_curves(groups: Sequence[Group], figure: str = FIGURE) -> list[Curve]:
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


def _curve(label: str, by_load: Mapping[float, Group], figure: str) -> Curve:
    points: dict[float, Interval] = {}
    for load in sorted(by_load):
        if by_load[load].is_refused:
            return Curve(label, points, load)
        points[load] = t_interval(by_load[load].values(figure))
    return Curve(label, points, None)


def regret_by(read: Sequence[pd.DataFrame], key: str) -> pd.DataFrame:
    """Return where regret is felt: sums over groups of jobs, per job of the whole run.

    Parameters
    ----------
    read : sequence of pandas.DataFrame
        Of each simulation, as `regret_of_jobs` returns it.
    key : {"class", "count"}

    Returns
    -------
    pandas.DataFrame
        By group: ``jobs``, their share; ``regret``, ``waiting``, ``running``,
        their sums over all jobs of the run, so that the column adds up to the
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
        read = []
        for paths in _tables_of_jobs(group, oracle)[:most]:
            with suppress(OSError, StatisticsError):  # no table, or one of other jobs
                read.append(regret_of_jobs(*map(pd.read_parquet, paths)))
        if read:
            found[group.label] = {key: regret_by(read, key) for key in ("class", "count")}
    return found
