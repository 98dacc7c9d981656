"""Replications of a run: so many as asked, or as many as a wanted precision takes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal, TypeVar

from sim.errors import ConfigError
from sim.results.job_metrics import Figures
from sim.statistics.intervals import LEVEL, Interval, t_interval

Pair = Sequence[Figures | None]
"""Summaries of one replication: the run's, its baseline's, and others beside them."""
P = TypeVar("P", bound=Pair)


LEAST = 10
"""Replications before the first decision: with fewer, a small spread by chance stops too early."""


@dataclass(frozen=True)
class Precision:
    """When replications are enough: the interval of a mean reaches out no further than asked.

    Parameters
    ----------
    relative : float
        Largest half-width of the interval over the size of the mean: 0.05 is
        plus or minus 5 %; between 0 and 1.
    least : int
        Replications before the first decision, at least 2.
    most : int
        Replications after which it stops in any case.
    level : float
        Of the interval, by Student's t.

    Raises
    ------
    ConfigError
        If there may not be so many as come before the first decision.

    References
    ----------
    Law, Simulation Modeling and Analysis (5th ed., 2015), section 9.4.1 (the
    sequential procedure); Chow & Robbins, Ann. Math. Statist. 36 (1965), for its
    coverage as the asked width shrinks.

    Examples
    --------
    >>> asked = Precision(0.05, least=3)
    >>> asked.enough([100.0, 101.0]), asked.enough([100.0, 101.0, 99.5])
    (False, True)
    """

    relative: float
    least: int = LEAST
    most: int = 100
    level: float = LEVEL

    def __post_init__(self) -> None:
        if self.most < self.least:
            raise ConfigError(
                f"most_replications={self.most}: must be at least the {self.least} replications "
                f"that come before the first decision"
            )

    def interval(self, values: Sequence[float]) -> Interval:
        """Return the interval of the replications so far."""
        return t_interval(values, self.level)

    def met(self, values: Sequence[float]) -> bool:
        """Return whether the interval is as narrow as asked."""
        return len(values) >= self.least and self.interval(values).relative <= self.relative

    def enough(self, values: Sequence[float]) -> bool:
        """Return whether to stop: as narrow as asked, or as many as allowed."""
        return len(values) >= self.most or self.met(values)


@dataclass(frozen=True)
class Objective:
    """The figure that precision is asked for and that tuning minimises or maximises.

    Attributes
    ----------
    figure : str
        Key of the summary.
    of : str
        ``run``, or ``change``: the ratio of the run's figure to its baseline's
        on the same jobs, which takes far fewer replications.

    Examples
    --------
    >>> Objective("wait", "change").value(({"wait": 3.0}, {"wait": 4.0}))
    0.75
    """

    figure: str
    of: Literal["run", "change"]

    def value(self, pair: Pair) -> float:
        """Return the objective of one replication, or of the means of several.

        Raises
        ------
        ConfigError
            If it is undefined or no number, or there is no baseline to compare with.
        """
        own, base = pair[0], pair[1]
        assert own is not None
        value = _number(own, self.figure)
        if self.of == "run":
            return value
        if base is None:
            raise ConfigError("objective_of=change: needs a baseline; baseline is null here")
        reference = _number(base, self.figure)
        if reference == 0:
            raise ConfigError(f"objective_of=change: {self.figure} of the baseline is 0")
        return value / reference


def _number(summary: Figures, key: str) -> float:
    if key not in summary:
        close = ", ".join(sorted(k for k in summary if k.startswith("mean_"))[:6])
        raise ConfigError(f"objective={key}: must be a key of summary.json, such as {close}")
    value = summary[key]
    if isinstance(value, bool | str) or value is None:
        raise ConfigError(f"objective={key}: must be a number, is {value!r} in this run")
    return float(value)


@dataclass(frozen=True)
class Stopping:
    """When the replications of a run are enough.

    Attributes
    ----------
    precision : Precision
    objective : Objective
        Whose mean is to be so precise.
    """

    precision: Precision
    objective: Objective

    def figures(self, pairs: Sequence[Pair]) -> Figures:
        """Return what the summary says of the precision."""
        values = [self.objective.value(pair) for pair in pairs]
        if len(values) > 1 and len(set(values)) == 1:  # the same again and again is no precision
            return {"precision_reached": None, "precision_met": None}
        reached = self.precision.interval(values).relative
        return {
            "precision_reached": reached if isfinite(reached) else None,  # a mean of 0
            "precision_met": self.precision.met(values),
        }


def objective_of(config: Mapping[str, Any]) -> Objective:
    """Return the objective that a configuration names."""
    return Objective(config["objective"], config["objective_of"])


def stopping_rule(config: Mapping[str, Any]) -> Stopping | None:
    """Return when the replications of a configured run are enough; None: when done.

    Raises
    ------
    ConfigError
        If a value is out of range, or a change is asked for without a baseline.
    """
    asked = config["precision"]
    if asked is None:
        return None
    if config["objective_of"] == "change" and config["baseline"] is None:
        raise ConfigError("objective_of=change: needs a baseline; baseline is null here")
    least = config["replications"] if config["replications"] > 1 else LEAST
    return Stopping(Precision(asked, least, config["most_replications"]), objective_of(config))


def replicated(simulate: Callable[[int], P], number: int, rule: Stopping | None) -> list[P]:
    """Carry out replications 0, 1, … and return their summaries.

    Parameters
    ----------
    simulate : callable
        Carries out one by its number.
    number : int
        How many there are without a rule.
    rule : Stopping or None

    Examples
    --------
    >>> rule = Stopping(Precision(0.05, least=2), Objective("wait", "run"))
    >>> len(replicated(lambda k: ({"wait": 10.0 + k % 2}, None), 1, rule))
    7
    """
    pairs: list[P] = []
    values: list[float] = []
    while not (len(pairs) >= number if rule is None else rule.precision.enough(values)):
        pairs.append(simulate(len(pairs)))
        if rule is not None:
            values.append(rule.objective.value(pairs[-1]))
    return pairs
