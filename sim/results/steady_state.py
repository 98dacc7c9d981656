"""The steady state of a run: which jobs count in it, and batch means of those that do."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from sim.errors import ConfigError, StatisticsError
from sim.statistics import Interval, neighbours, samples, t_interval

Value = float | int | bool | str | None
Figures = dict[str, Value]
"""Flat figures by key; None where a figure is undefined."""
Summary = Mapping[str, Any]

STEADY, STEADY_LOAD = "steady", "steady_load"
"""Keys of the summary: whether the queue settles; where not, up to which load it does."""
MOST_LISTED, MOST_NAMED = 8, 4
"""Groups that a sentence lists, and names beside more."""
WINDOW = "window_begin"
"""Key of the summary: the first submit of a window of a log, null of models and drawn weeks."""
EPOCH = "unix_start_time"
"""Key of the summary: seconds since 1970 at time 0, null where nothing has dates."""


def _count(value: float, jobs: int) -> int:
    return int(value) if float(value).is_integer() else int(value * jobs)


@dataclass(frozen=True)
class Trim:
    """How many of the first and last submitted jobs the ``steady_*`` figures leave out.

    Jobs are left out in submit order. Figures of the machine and the queue run
    over the time from the first to the last submit of the jobs that stay, so
    that neither the filling nor the draining of the machine counts.

    Parameters
    ----------
    warmup, cooldown : int or float
        A number of jobs (0, 1, 2, ...) or a fraction of the jobs between 0 and 1.

    Raises
    ------
    ConfigError
        If a value is negative, or is neither whole nor below 1.

    Examples
    --------
    >>> Trim(warmup=0.25, cooldown=1).window(8)
    slice(2, 7, None)
    """

    warmup: float = 0
    cooldown: float = 0

    def __post_init__(self) -> None:
        for key in ("warmup", "cooldown"):
            value = getattr(self, key)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not (0 <= value < 1 or (value >= 1 and float(value).is_integer())):
                raise ConfigError(
                    f"metrics.{key} must be a number of jobs (0, 1, 2, ...) or a fraction of "
                    f"them (0 <= fraction < 1), got {value!r}"
                )

    def window(self, jobs: int) -> slice:
        """Return the slice, in submit order, of the jobs that stay.

        Raises
        ------
        ConfigError
            If fewer than two jobs would stay.
        """
        first, last = _count(self.warmup, jobs), jobs - _count(self.cooldown, jobs)
        if last - first < 2:
            raise ConfigError(
                f"metrics.warmup={self.warmup} and metrics.cooldown={self.cooldown} leave "
                f"{max(last - first, 0)} of {jobs} jobs; at least 2 must stay"
            )
        return slice(first, last)


NUMBERS = (30, 20, 10)
"""Numbers of batches that are tried: more hardly narrow an interval, and correlate sooner."""
LEAST_BATCH = 10
FEWEST = LEAST_BATCH * NUMBERS[-1]
"""Observations of which there are batches."""
INDEPENDENT = 0.05
"""A p value above this one calls batches uncorrelated."""


class BatchMeans(NamedTuple):
    """The mean of a long run in steady state.

    Attributes
    ----------
    interval : Interval
        Over the batches' means.
    batches : int
        How many.
    correlated : bool
        Whether means of neighbouring batches correlate by more than chance; the interval
        is then too narrow, and the run too short.
    """

    interval: Interval
    batches: int
    correlated: bool


def batch_means(values: ArrayLike) -> BatchMeans:
    """Return the mean of one long run with its 95 % interval.

    Parameters
    ----------
    values : array_like of float, shape (n,)
        Such as the response times of the jobs of one trace, in submit order, without those
        while the machine filled. They are cut into the largest of `NUMBERS` whose
        neighbouring batches are uncorrelated, by von Neumann's ratio; the least of them if
        none are.

    Raises
    ------
    StatisticsError
        If there are less than 10 observations a batch.

    References
    ----------
    Law, Simulation Modeling and Analysis (5th ed., 2015), section 9.5.3; Fishman,
    Grouping observations in digital simulation, Management Science 24 (1978).

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(1).normal(5.0, 1.0, 2100)
    >>> found = batch_means(noise[100:])
    >>> found.batches, found.interval.contains(5.0), found.correlated
    (20, True, False)
    """
    kept = samples(values)
    numbers = [n for n in NUMBERS if len(kept) >= LEAST_BATCH * n]
    if not numbers:
        raise StatisticsError(f"{len(kept)} observations; at least {FEWEST} are needed")
    for number in numbers:
        size = len(kept) // number
        means = kept[len(kept) - number * size :].reshape(number, size).mean(axis=1)
        _, probability = neighbours(means)
        if probability > INDEPENDENT:
            break
    return BatchMeans(t_interval(means), number, probability <= INDEPENDENT)


MOST_UNSTEADY = 0.5
"""Where more than this share of its simulations do not settle, a group does not."""


def in_windows(summaries: Sequence[Summary]) -> bool:
    """Return whether simulations are several windows of one log."""
    return len({one.get(WINDOW) for one in summaries} - {None}) > 1


SAME_JOBS = "redraws of curves and loads on the same jobs of a log"
"""What replications are that replay one part of a log."""
WEEKS = "weeks of a log, drawn again"
"""What they are beside the whole log."""
NO_MORE_DATA = {
    SAME_JOBS: "their intervals say nothing of other weeks",
    WEEKS: "with more of them intervals get narrower on the same data",
}


def replications_of(summaries: Sequence[Summary]) -> str:
    """Return in words what tells the replications of a simulation apart.

    Examples
    --------
    >>> replications_of([{"window_begin": 0.0}, {"window_begin": 9.0}])
    'windows of a log'
    >>> replications_of([{"window_begin": None}])
    'draws of a model'
    """
    begins = {one.get(WINDOW) for one in summaries}
    if len(begins - {None}) > 1:
        return "windows of a log"
    if None not in begins:
        return SAME_JOBS
    return "draws of a model" if begins == {None} else WEEKS


def in_order(summaries: Sequence[Summary]) -> list[int]:
    """Return the places of simulations that count, windows in the order of the log.

    Weeks of a log that were drawn again are no windows and do not count beside such.
    """
    places = range(len(summaries))
    if not in_windows(summaries):
        return list(places)
    kept = [place for place in places if summaries[place].get(WINDOW) is not None]
    return sorted(kept, key=lambda place: float(summaries[place][WINDOW]))


def unsteady(summaries: Sequence[Summary]) -> int:
    """Return in how many simulations the queue does not settle."""
    return sum(one.get(STEADY) is False for one in summaries)


def is_refused(summaries: Sequence[Summary]) -> bool:
    """Return whether the means of simulations tell of their length, so that no change is told.

    Windows of a log are what they are; of them it is said how many do not settle.
    """
    known = sum(one.get(STEADY) is not None for one in summaries)
    return not in_windows(summaries) and unsteady(summaries) > MOST_UNSTEADY * known


def listed(names: Sequence[str], most: int = MOST_LISTED) -> str:
    """Return names in a sentence, the first of many."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return "; ".join(names[:most]) + more


def _settling_load(summaries: Sequence[Summary]) -> str:
    known = [float(one[STEADY_LOAD]) for one in summaries if one.get(STEADY_LOAD) is not None]
    return f" (its jobs settle up to load {min(known):g})" if known else ""


def unsteady_sentence(named: Mapping[str, Sequence[Summary]]) -> str:
    """Return whose queue does not settle, so that nothing is told of its means; else nothing.

    Examples
    --------
    >>> run = {"steady": False, "steady_load": 0.6}
    >>> print(unsteady_sentence({"easy": [run], "sa": [{"steady": True}]}).partition(":")[0])
    The queue does not settle under easy (its jobs settle up to load 0.6)
    """
    told = [f"{name}{_settling_load(own)}" for name, own in named.items() if is_refused(own)]
    means = "means depend on the run's length, and no percentage of them is given"
    return f"The queue does not settle under {listed(told, MOST_NAMED)}: {means}." if told else ""


def windows_sentences(
    named: Mapping[str, Sequence[Summary]], block: int = 1, correlation: float = math.nan
) -> list[str]:
    """Return what windows of a log are, of the summaries of named groups.

    So many neighbouring windows are a block, read as one; their changes may correlate.

    Examples
    --------
    >>> windows = [{"window_begin": 0.0, "steady": False}, {"window_begin": 9.0, "steady": True}]
    >>> for one in windows_sentences({"easy": [*windows, {"window_begin": None}]}):
    ...     print(one[:58])
    Windows of one log are not independent draws of a site.
    Replications that draw weeks of the log again do not count
    """
    lines = []
    if any(in_windows(own) for own in named.values()):
        known = not math.isnan(correlation)
        how = f"; neighbours' changes correlate by {correlation:.2f}" if known else ""
        blocks = f" and are read in blocks of {block}" if block > 1 else ""
        lines.append(f"Windows of one log are not independent draws of a site{how}{blocks}.")
    several = {name: replications_of(own) for name, own in named.items() if len(own) > 1}
    for kind, lack in NO_MORE_DATA.items():
        if same := [name for name, own in several.items() if own == kind]:
            lines.append(
                f"Replications of {listed(same, MOST_NAMED)} are {kind}: {lack} "
                "(workload.jobs=500 replications=10 replays windows)."
            )
    again = max((len(own) - len(in_order(own)) for own in named.values()), default=0)
    if again:
        lines.append(
            f"Replications that draw weeks of the log again do not count as windows: {again}."
        )
    return lines


def partly_unsteady(named: Mapping[str, Sequence[Summary]]) -> list[str]:
    """Return in how many simulations a queue does not settle of which changes are told.

    Examples
    --------
    >>> own = [{"steady": False}, {"steady": True}]
    >>> print(partly_unsteady({"easy": own})[0][:61])
    The queue does not settle in 1 of 2 simulations of easy: they
    """
    shown = {name: [own[k] for k in in_order(own)] for name, own in named.items()}
    some = [
        f"{unsteady(own)} of {len(own)} simulations of {name}{_settling_load(own)}"
        for name, own in shown.items()
        if unsteady(own) and not is_refused(own)
    ]
    if not some:
        return []
    told = listed(some, MOST_NAMED).replace(" more", " other groups")
    told = told.replace("and 1 other groups", "and 1 other group")
    return [f"The queue does not settle in {told}: they count, but changes depend on their length."]
