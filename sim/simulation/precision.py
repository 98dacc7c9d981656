"""How many replications a run takes: as many as asked, or as a wanted precision takes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from sim.config import Settings
from sim.errors import ConfigError
from sim.results.artefacts import BASELINE, RUN
from sim.results.job_metrics import Figures
from sim.statistics import t_interval

Results = Mapping[str, Figures]
"""Summaries of a run and of what it is compared with, by role."""
RESPONSE = "mean_response_time"


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
    >>> Objective("wait", "change").value({RUN: {"wait": 3.0}, BASELINE: {"wait": 4.0}})
    0.75
    """

    figure: str
    of: Literal["run", "change"]

    def value(self, results: Results) -> float:
        """Return the objective of one replication, or of the means of several.

        Raises
        ------
        ConfigError
            If it is undefined or no number, or there is no baseline to compare with.
        """
        value = _number(results[RUN], self.figure)
        if self.of == "run":
            return value
        if BASELINE not in results:
            raise ConfigError("objective_of=change: needs a baseline; baseline is null here")
        reference = _number(results[BASELINE], self.figure)
        if reference == 0:
            raise ConfigError(f"objective_of=change: {self.figure} of the baseline is 0")
        return value / reference


def _number(summary: Figures, key: str) -> float:
    if key not in summary:
        close = ", ".join(sorted(k for k in summary if k.startswith("mean_"))[:6])
        raise ConfigError(f"objective={key}: must be a key of summary.json, such as {close}")
    value = summary[key]
    if isinstance(value, bool | str) or value is None:
        raise ConfigError(f"objective={key}: is {value!r} in this run; must be a number")
    return float(value)


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
    objective : Objective
        Whose mean is to be so precise.

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
    objective: Objective = Objective(RESPONSE, "run")

    def __post_init__(self) -> None:
        if self.most < self.least:
            raise ConfigError(
                f"most_replications={self.most}: must be at least the {self.least} replications "
                f"that come before the first decision"
            )

    def met(self, values: Sequence[float]) -> bool:
        """Return whether the interval by Student's t is as narrow as asked."""
        return len(values) >= self.least and t_interval(values).relative <= self.relative

    def enough(self, values: Sequence[float]) -> bool:
        """Return whether to stop: as narrow as asked, or as many as allowed."""
        return len(values) >= self.most or self.met(values)

    def figures(self, every: Sequence[Results]) -> Figures:
        """Return what the summary says of the precision."""
        values = [self.objective.value(results) for results in every]
        if len(values) > 1 and len(set(values)) == 1:  # the same again and again is no precision
            return {"precision_reached": None, "precision_met": None}
        reached = t_interval(values).relative
        return {
            "precision_reached": reached if isfinite(reached) else None,  # a mean of 0
            "precision_met": self.met(values),
        }


def stopping_rule(config: Settings) -> Precision | None:
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
    objective = Objective(config["objective"], config["objective_of"])
    return Precision(asked, least, config["most_replications"], objective)


def replicated(
    simulate: Callable[[int], Results], number: int, rule: Precision | None
) -> list[Results]:
    """Carry out replications 0, 1, … and return their summaries: so many, or as a rule says.

    Examples
    --------
    >>> rule = Precision(0.05, least=2, objective=Objective("wait", "run"))
    >>> len(replicated(lambda k: {RUN: {"wait": 10.0 + k % 2}}, 1, rule))
    7
    """
    every: list[Results] = []
    values: list[float] = []
    while not (len(every) >= number if rule is None else rule.enough(values)):
        every.append(simulate(len(every)))
        if rule is not None:
            values.append(rule.objective.value(every[-1]))
    return every
