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
from typing import Any, NoReturn

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

from sim.errors import ConfigError
from sim.help.meanings import meanings
from sim.help.pages import CONFIG_FOLDER as CONFIG_FOLDER
from sim.help.pages import no_such_key

Settings = Mapping[str, Any]
"""A run's configuration, or a part of it, as plain data."""
PARTS = ("workload", "moldability", "cluster", "evolving", "policy", "predictor")
"""Open groups, whose classes say what they accept."""
BASELINE_PREDICTOR = "user_estimate"
"""What baselines believe."""
SMALLEST, LARGEST = 1e-20, 1e20
"""No quantity of a run is nearer to 0 without being 0, or farther from it."""
ENDLESS = ".q"
"""How the keys end that may be infinite: ADEPT's, which then leans on all runs alike."""
BETWEEN: Mapping[str, tuple[str, float, float]] = {
    "seed": ("a whole number", 0, 2**63 - 1),
    "replications": ("a whole number", 1, 10**5),
    "most_replications": ("a whole number", 1, 10**5),
    "sim.stall_events": ("a whole number", 1, 10**15),
    "sim.stall_time": ("null or a number", 1, 10**15),
    "sensor_noise": ("a number", 0, 10),
}
ONE_OF: Mapping[str, tuple[str | bool | None, ...]] = {
    "baseline_predictor": (True, False, None),
    "sim.check": (True, False),
    "sim.assumptions": (True, False),
    "sim.progress": (True, False, None),
    "menu": ("powers_of_two", "all", None),
    "overrun": ("extend", "kill"),
    "objective_of": ("run", "change"),
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
    """How a simulation is carried out, and what is played besides; none changes a schedule.

    OmegaConf takes any number for a switch; `ONE_OF` does not.
    """

    check: Any = False
    assumptions: Any = False
    progress: Any = None
    stall_events: int = 1_000_000
    stall_time: float | None = None


@dataclass
class Config:
    """The schema of ``conf/config.yaml`` (not frozen: overrides must reach it)."""

    workload: Any = MISSING
    moldability: Any = MISSING
    cluster: Any = MISSING
    evolving: Any = MISSING
    policy: Any = MISSING
    predictor: Any = MISSING
    baseline: str | None = "easy"
    baseline_predictor: Any = None
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


def register() -> None:
    """Make the schema known to Hydra under the name that ``conf/config.yaml`` lists first.

    With it come the options of ``predictor/before``, every predictor that a wrapper may
    wrap, and the overlays by which ``given=`` reaches the learned predictors, and no
    others: a file for each would say nothing more.
    """
    store = ConfigStore.instance()
    store.store(name="schema", node=Config)
    for path in sorted((CONFIG_FOLDER / "predictor").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        if not re.search(r"^  - before:", text, re.MULTILINE):  # as much changed as alone
            changed = {"optional /given/predictor@_here_": f"${{given}}_{path.stem}"}
            wrapped = {"defaults": [{"/predictor@_here_": path.stem}, changed]}
            store.store(group="predictor/before", name=path.stem, node=wrapped)
        if re.search(r"^charge:", text, re.MULTILINE):
            for name, (runs, charge) in GIVEN.items():
                node = {"charge": charge, "calibration": runs}
                store.store(group="given/predictor", name=f"{name}_{path.stem}", node=node)


def _refuse(key: str, value: object, allowed: str) -> NoReturn:
    shown = "null" if value is None else value
    raise ConfigError(f"{key}={shown}: must be {allowed}")


def _at(config: Mapping[str, Any], key: str) -> Any:
    above, _, last = key.rpartition(".")
    return (config[above] if above else config)[last]


def check_sizes(key: str, value: object) -> None:
    """Refuse numbers that are no quantity of a run, in lists and mappings too.

    Raises
    ------
    ConfigError
        If one is not finite, but for an `ENDLESS` key, or is beyond `SMALLEST` or `LARGEST`.

    Examples
    --------
    >>> check_sizes("policy.worth", 1e300)
    Traceback (most recent call last):
    ...
    sim.errors.ConfigError: policy.worth=1e+300: must be 0, or between 1e-20 and 1e+20 in magnitude
    """
    if isinstance(value, Mapping):
        for name, inner in value.items():
            check_sizes(f"{key}.{name}".lstrip("."), inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            check_sizes(key, inner)
    elif isinstance(value, int | float) and value != 0 and not SMALLEST <= abs(value) <= LARGEST:
        if value == math.inf and key.endswith(ENDLESS):
            return
        _refuse(key, value, f"0, or between {SMALLEST:g} and {LARGEST:g} in magnitude")


def check_values(config: Mapping[str, Any]) -> None:
    """Check the values of the closed part.

    Raises
    ------
    ConfigError
        If one is out of range; the message has key, value and what is allowed.
    """
    from sim.machine.base import MOST_PROCESSORS  # late: --help must not wait for arrays

    for name in sorted(config.keys() - {one.name for one in fields(Config)}):
        raise ConfigError(no_such_key(f"+{name}={config[name]}", name))
    for key in PARTS:
        if not isinstance(config.get(key, {}), Mapping):
            _refuse(key, config[key], "the name of an option")
    for key, (kind, least, most) in BETWEEN.items():
        value = _at(config, key)
        if value is not None and not least <= value <= most:
            _refuse(key, value, f"{kind}, at least {least} and at most {most:,}")
    for key, accepted in ONE_OF.items():
        value = _at(config, key)
        if not any(value == one and type(value) is type(one) for one in accepted):
            names = ", ".join(str(one).lower() for one in accepted if one is not None)
            _refuse(key, value, f"{names} or null" if None in accepted else f"one of {names}")
    asked = config["precision"]
    if asked is not None and not SMALLEST <= asked < 1:
        _refuse("precision", asked, "a number between 0 and 1, or null")
    if not any(place.startswith("summary") for place, _ in meanings(config["objective"])):
        _refuse("objective", config["objective"], "a key of summary.json, such as mean_wait_time")
    check_sizes("", {key: config[key] for key in config.keys() - {*PARTS, "seed"}})
    processors = config["cluster"].get("processors")
    whole = type(processors) is int and 1 <= processors <= MOST_PROCESSORS
    if processors is not None and not whole:
        allowed = f"a whole number, at least 1 and at most {MOST_PROCESSORS:,}, or null"
        _refuse("cluster.processors", processors, allowed)


def digest(config: Mapping[str, Any]) -> str:
    """Return the SHA-256 of all settings that results depend on, the baseline's among them."""
    settings = {key: value for key, value in config.items() if key not in UNLIKE}
    settings["sim"] = {k: v for k, v in config["sim"].items() if k not in _NOT_RESULTS}
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()
