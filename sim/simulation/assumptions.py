"""What would come of a run under other assumptions."""

from collections.abc import Iterator
from math import expm1, inf, log
from typing import Any

import yaml

from predictors.cli.terminal import SILENT, Display
from sim.config import CONFIG_FOLDER, Settings
from sim.results.metrics import summarise
from sim.results.rows import number_of
from sim.results.steady_state import STEADY, Figures
from sim.simulation.precision import RESPONSE
from sim.simulation.scene import play, set_scene
from workloads.truth.options import TRUTH_KEYS

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
