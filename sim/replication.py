"""Replications of a run: so many as asked, or as many as a wanted precision takes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

from sim.errors import ConfigError
from sim.job_metrics import Figures
from sim.statistics.precision import LEAST, Precision

Pair = tuple[Figures, Figures | None]
"""Summaries of one replication: the run's and its baseline's."""


@dataclass(frozen=True)
class Stopping:
    """When the replications of a run are enough.

    Attributes
    ----------
    precision : Precision
    figure : str
        Key of the summary whose mean is to be so precise.
    of : str
        ``run``, or ``change``: the ratio of the run's figure to its baseline's
        on the same jobs, which takes far fewer replications.
    """

    precision: Precision
    figure: str
    of: Literal["run", "change"]

    def value(self, pair: Pair) -> float:
        """Return the figure of one replication.

        Raises
        ------
        ConfigError
            If it is undefined or no number.
        """
        own, base = pair
        value = _number(own, self.figure)
        if self.of == "run":
            return value
        assert base is not None
        reference = _number(base, self.figure)
        if reference == 0:
            raise ConfigError(f"precision_of=change: {self.figure} of the baseline is 0")
        return value / reference

    def figures(self, pairs: list[Pair]) -> Figures:
        """Return what the summary says of the precision."""
        values = [self.value(pair) for pair in pairs]
        reached = self.precision.interval(values).relative
        return {
            "precision_reached": reached if isfinite(reached) else None,  # a mean of 0
            "precision_met": self.precision.met(values),
        }


def _number(summary: Figures, key: str) -> float:
    if key not in summary:
        close = ", ".join(sorted(k for k in summary if k.startswith("mean_"))[:6])
        raise ConfigError(f"precision_figure={key}: must be a key of summary.json, such as {close}")
    value = summary[key]
    if isinstance(value, bool | str) or value is None:
        raise ConfigError(f"precision_figure={key}: must be a number, is {value!r} in this run")
    return float(value)


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
    if config["precision_of"] == "change" and config["baseline"] is None:
        raise ConfigError("precision_of=change: needs a baseline; baseline is null here")
    least = config["replications"] if config["replications"] > 1 else LEAST
    precision = Precision(asked, least, config["most_replications"])
    return Stopping(precision, config["precision_figure"], config["precision_of"])


def replicated(simulate: Callable[[int], Pair], number: int, rule: Stopping | None) -> list[Pair]:
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
    >>> rule = Stopping(Precision(0.05, least=2), "wait", "run")
    >>> len(replicated(lambda k: ({"wait": 10.0 + k % 2}, None), 1, rule))
    7
    """
    pairs: list[Pair] = []
    values: list[float] = []
    while not (len(pairs) >= number if rule is None else rule.precision.enough(values)):
        pairs.append(simulate(len(pairs)))
        if rule is not None:
            values.append(rule.value(pairs[-1]))
    return pairs
