"""The closed part of the configuration: its schema, its limits, a run's identity.

Workload, moldability, cluster, policy and predictor stay open: their YAML files
list every argument of the class they name, and its constructor is the schema.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

from sim.errors import ConfigError
from sim.help.misspellings import no_such_key
from sim.help.pages import CONFIG_FOLDER as CONFIG_FOLDER

PRECISE = ("run", "change")
BASELINE_PREDICTOR = "user_estimate"
"""What baselines believe."""
WHOLE = (("seed", 0, 2**63 - 1), ("replications", 1, 10**5), ("most_replications", 1, 10**5))
ONE_OF: Mapping[str, tuple[str | None, ...]] = {
    "menu": ("powers_of_two", "all", None),
    "overrun": ("extend", "kill"),
    "picture": ("none", "first", "all", None),
    "reuse": ("inputs", None),
}
UNLIKE = ("reuse", "picture")
"""Keys that change no figure of a run."""
_NOT_RESULTS = ("progress", "stall_events", "stall_time")


@dataclass
class MetricsConfig:
    """Which jobs the trimmed twins of the metrics leave out."""

    warmup: float = 0.0
    cooldown: float = 0.0


@dataclass
class SimConfig:
    """How a simulation is carried out; none of it changes a result."""

    check: bool = False
    progress: bool | None = None
    stall_events: int = 1_000_000
    stall_time: float | None = None


@dataclass
class Config:
    """The schema of ``conf/config.yaml`` (not frozen: overrides must reach it)."""

    workload: Any = MISSING
    moldability: Any = MISSING
    cluster: Any = MISSING
    evolving: Any = MISSING
    growth: Any = MISSING
    policy: Any = MISSING
    predictor: Any = MISSING
    baseline: str | None = "easy"
    baseline_predictor: bool | None = None
    menu: str | None = None
    reuse: str | None = None
    picture: str | None = None
    seed: int = 1
    replications: int = 1
    precision: float | None = None
    objective: str = "mean_response_time"
    objective_of: str = "run"
    most_replications: int = 100
    sensor_noise: float = 0.05
    overrun: str = "extend"
    export: list[str] = field(default_factory=list)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    sim: SimConfig = field(default_factory=SimConfig)


GIVEN: Mapping[str, tuple[int | None, bool]] = {
    "charged": (3, True),
    "free": (3, False),
    "online": (0, True),
    "invented": (3, True),
    "recorded": (0, True),
}
"""What ``given=`` says of learned predictors: calibration runs, and whether they are charged.

The last two name all that predictors are told; the rest of it is in ``conf/given``.
"""
FORMERLY = "free"
"""What it was before there was a choice."""


def register() -> None:
    """Make the schema known to Hydra under the name that ``conf/config.yaml`` lists first.

    With it come the options of ``predictor/before``, every predictor that a wrapper may
    wrap, and the overlays by which ``given=`` and ``experiment=as_before`` reach the
    learned predictors, and no others: a file for each would say nothing more.
    """
    store = ConfigStore.instance()
    store.store(name="schema", node=Config)
    for path in sorted((CONFIG_FOLDER / "predictor").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        if not re.search(r"^  - before:", text, re.MULTILINE):
            store.store(group="predictor/before", name=path.stem, node=_wrapped(path.stem))
        if not re.search(r"^charge:", text, re.MULTILINE):
            continue
        for name, (runs, charge) in GIVEN.items():
            node = {"charge": charge, "calibration": runs}
            store.store(group="given/predictor", name=f"{name}_{path.stem}", node=node)
            if name == FORMERLY:
                store.store(group="former/predictor", name=f"before_{path.stem}", node=node)


def _wrapped(predictor: str) -> dict[str, Any]:
    """Return the option of a predictor that another wraps, as much changed as alone."""
    changed = [
        {"optional /given/predictor@_here_": f"${{given}}_{predictor}"},
        {"optional /former/predictor@_here_": f"${{defaults_of}}_{predictor}"},
    ]
    return {"defaults": [{"/predictor@_here_": predictor}, *changed]}


def _refuse(key: str, value: object, allowed: str) -> None:
    shown = "null" if value is None else value
    raise ConfigError(f"{key}={shown}: must be {allowed}")


def check_values(config: Mapping[str, Any]) -> None:
    """Check the values of the closed part.

    Raises
    ------
    ConfigError
        If one is out of range; the message has key, value and what is allowed.
    """
    from sim.machine.base import MOST_PROCESSORS  # late: --help must not wait for arrays

    for name in config.keys() - {one.name for one in fields(Config)}:
        raise ConfigError(no_such_key(f"+{name}={config[name]}", name))
    for key in ("workload", "moldability", "cluster", "evolving", "growth", "policy", "predictor"):
        if not isinstance(config.get(key, {}), Mapping):
            _refuse(key, config[key], "the name of an option")
    for key, least, most in WHOLE:
        if not least <= config[key] <= most:
            _refuse(key, config[key], f"a whole number, at least {least} and at most {most:,}")
    if not 0 <= config["sensor_noise"] < math.inf:
        _refuse("sensor_noise", config["sensor_noise"], "a number, at least 0")
    for key, accepted in ONE_OF.items():
        if config[key] not in accepted:
            names = ", ".join(name for name in accepted if name is not None)
            _refuse(key, config[key], f"{names} or null" if None in accepted else f"one of {names}")
    if config["sim"]["stall_events"] < 1:
        _refuse("sim.stall_events", config["sim"]["stall_events"], "a whole number, at least 1")
    if (longest := config["sim"]["stall_time"]) is not None and not 0 < longest < math.inf:
        _refuse("sim.stall_time", longest, "above 0 and finite, or null")
    _check_precision(config)
    processors = config["cluster"].get("processors")
    whole = type(processors) is int and 1 <= processors <= MOST_PROCESSORS
    if processors is not None and not whole:
        allowed = f"a whole number, at least 1 and at most {MOST_PROCESSORS:,}, or null"
        _refuse("cluster.processors", processors, allowed)


def _check_precision(config: Mapping[str, Any]) -> None:
    asked = config["precision"]
    if asked is not None and not 0 < asked < 1:
        _refuse("precision", asked, "a number between 0 and 1, or null")
    if config["objective_of"] not in PRECISE:
        _refuse("objective_of", config["objective_of"], f"one of {', '.join(PRECISE)}")


def digest(config: Mapping[str, Any]) -> str:
    """Return the SHA-256 of all settings that a run's results depend on.

    Parameters
    ----------
    config : mapping
        The resolved configuration, the baseline's parts included.

    Returns
    -------
    str
        64 hexadecimal digits.
    """
    settings = {key: value for key, value in config.items() if key not in UNLIKE}
    settings["sim"] = {k: v for k, v in config["sim"].items() if k not in _NOT_RESULTS}
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()
