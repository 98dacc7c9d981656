"""A run played more than once: its replications, and at other loads or under other assumptions.

There are as many replications as asked, or as a wanted precision takes. Which assumption
changes the outcome most is found by runs under others.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import expm1, inf, isfinite, log
from typing import Any, Literal

import yaml

from predictors.cli.display import SILENT, Display
from sim.config import CONFIG_FOLDER, Settings
from sim.errors import ConfigError
from sim.results.artefacts import BASELINE, RUN
from sim.results.job_metrics import Figures
from sim.results.metrics import history_figures, summarise
from sim.results.rows import number_of
from sim.results.steady_state import STEADY
from sim.simulation.recorded_schedule import is_recorded
from sim.simulation.scene import Scene, play, set_scene
from sim.statistics import t_interval
from workloads.arrivals import offered_load, scale_load
from workloads.truth.options import TRUTH_KEYS

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


def objective_of(config: Settings) -> Objective:
    """Return the objective that a configuration names."""
    return Objective(config["objective"], config["objective_of"])


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
    return Precision(asked, least, config["most_replications"], objective_of(config))


def replicated(
    simulate: Callable[[int], Results], number: int, rule: Precision | None
) -> list[Results]:
    """Carry out replications 0, 1, … and return their summaries.

    Parameters
    ----------
    simulate : callable
        Carries out one by its number.
    number : int
        How many there are without a rule.
    rule : Precision or None

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


ASSUMPTION, CHANGE = "assumption", "assumption_change"
OTHERS: tuple[tuple[str, str, Settings], ...] = (
    ("requests independent of the curves", "moldability", {"requests": "independent"}),
    ("efficiencies of 0.5 in the median at the request", "moldability", {"efficiency": 0.5}),
    ("efficiencies of 0.8 in the median at the request", "moldability", {"efficiency": 0.8}),
    ("hidden sizes", "workload", {"size": "hidden"}),
    ("exact requested times", "workload", {"estimates": "exact"}),
)
"""What else may be true: in words, the group of the configuration, and its keys."""


def others(config: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield configurations whose jobs differ in one assumption, each with its name in words."""
    curves = config["moldability"]
    for name, group, keys in OTHERS:
        if any(key in config[group] and config[group][key] != keys[key] for key in keys):
            yield name, {**config, group: {**config[group], **keys}}
    if "share" in curves:
        half = {**curves, "share": curves["share"] / 2}
        yield "half as many moldable jobs", {**config, "moldability": half}
        amdahl = yaml.safe_load((CONFIG_FOLDER / "moldability" / "amdahl.yaml").read_text())
        kept = {key: curves[key] for key in TRUTH_KEYS if key in curves}
        if amdahl["_target_"] != curves["_target_"]:
            yield "curves by Amdahl's law", {**config, "moldability": amdahl | kept}


def change(config: Settings, progress: Display, name: str) -> float | None:
    """Return ln of the mean response over the baseline's; None where a queue does not settle."""
    scene = set_scene(config, 0)
    means = []
    for parts in (config, config["baseline"]):
        if progress.is_due():
            progress.show(name, 0.0)
        figures = summarise(play(config, parts, scene).outcome)
        response = number_of(figures, RESPONSE)
        if figures[STEADY] is False or not response:
            return None
        means.append(response)
    return log(means[0] / means[1])


def decisive(config: Settings, progress: Display = SILENT) -> Figures:
    """Return which of `others` changes the first replication of a run most, and what it makes it.

    Parameters
    ----------
    config : mapping
        The run's whole configuration, with a baseline.
    progress : Display, optional

    Returns
    -------
    dict
        ``assumption``, in words, and ``assumption_change``: the change of the mean response
        against the baseline under it, a fraction, None where a queue does not settle then.
        Empty where the run's own queue or its baseline's does not.
    """
    own = change(config, progress, "as assumed")
    if own is None:
        return {}
    found, every = {}, list(others(config))
    for place, (name, other) in enumerate(every):
        with progress.part(place, len(every)):
            found[name] = change(other, progress, name)
    most = max(found, key=lambda name: abs((inf if (c := found[name]) is None else c) - own))
    told = found[most]
    return {ASSUMPTION: most, CHANGE: None if told is None else expm1(told)}


LOADS = tuple(tenth / 10 for tenth in range(1, 10))


def steady_load(
    config: Settings,
    parts: Settings,
    scene: Scene,
    progress: Display = SILENT,
) -> float | None:
    """Return the largest load of `LOADS` at which the jobs of a scene settle; None if none is.

    Parameters
    ----------
    config : mapping
        The run's whole configuration.
    parts : mapping
        The ``policy`` and ``predictor`` that do not settle them as they come.
    scene : Scene
    progress : Display, optional

    Notes
    -----
    It is sought by bisection: a load below one that settles is taken to settle too.
    """
    jobs, machine = scene.trace.jobs, scene.machine.processors
    below = [load for load in LOADS if load < offered_load(jobs, machine)]

    def grows(load: float) -> bool:
        """Say whether the queue does not settle."""
        slower = replace(scene.trace, jobs=scale_load(jobs, machine, load))
        if progress.is_due():
            progress.show(f"does the queue settle at load {load:g}?", 1.0)
        played = play(config, parts, replace(scene, trace=slower))
        return not history_figures(played.outcome)[STEADY]

    steady = 0 if is_recorded(parts["policy"]) else bisect_left(below, True, key=grows)
    return below[steady - 1] if steady else None


def easy_plus_of(config: Settings) -> dict[str, Any] | None:
    """Return policy and predictor of `easy_plus`, which a site could take instead of molding.

    They are made of those of the baseline; None where that is not `easy`, or the run has them.
    """
    base = config["baseline"]
    if base["name"] != "easy":
        return None
    last_two = yaml.safe_load((CONFIG_FOLDER / "predictor" / "last_two.yaml").read_text())
    shortest = {**base["policy"]["backfill"], "candidates": "shortest"}
    policy = {**base["policy"], "backfill": shortest, "predictor": last_two}
    return None if config["policy"] == policy else {**base, "policy": policy}
