"""The closed part of the configuration: its schema, its limits, a run's identity; and ``--help``.

Workload, moldability, cluster, policy and predictor stay open: their YAML files
list every argument of the class they name, and its constructor is the schema.
"""

import difflib
import hashlib
import json
import math
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.errors import MissingConfigException, OverrideParseException
from omegaconf import MISSING

from sim.errors import ConfigError

CONFIG_FOLDER = Path(__file__).resolve().parents[1] / "conf"
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


WIDTH = 100
"""Columns of the page of ``--help``."""
COLUMN = 34
"""Where descriptions begin."""
LONGEST = 20
"""Of a default that is shown."""
PLACE = "{keys}"
"""Where in the text around them groups and keys stand."""
INTERNAL = ("former", "defaults_of")
"""Groups that nobody chooses from."""

_KEY = re.compile(r"^(?P<indent> *)(?P<name>\w+):(?P<value>[^#]*)(#\s*(?P<comment>.*))?$")
_MORE = re.compile(r"^ *#\s*(?P<comment>.*)$")


@dataclass(frozen=True)
class Key:
    """One key of a YAML file: its dotted name in the file, its default, what it means."""

    name: str
    default: str
    comment: str


@dataclass(frozen=True)
class Option:
    """One YAML file of a group: its name, what it is, and its keys."""

    name: str
    about: str
    keys: tuple[Key, ...]


def read_option(path: Path) -> Option:
    """Return what the comments of a YAML file say.

    The comment above the first key says what the option is; the one behind a key, and
    comment lines right below that, say what the key means.
    """
    about: list[str] = []
    keys: list[Key] = []
    within: list[tuple[int, str]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        more = _MORE.match(line)
        if more and not line.startswith("# @package"):
            if keys and keys[-1].comment and line.startswith(" " * 8):
                last = keys[-1]
                keys[-1] = Key(last.name, last.default, f"{last.comment} {more['comment']}")
            elif not keys and not within:
                about.append(more["comment"])
        found = _KEY.match(line)
        if not found:
            continue
        depth = len(found["indent"])
        within = [one for one in within if one[0] < depth]
        value, comment = found["value"].strip(), (found["comment"] or "").strip()
        name = ".".join([*(inner for _, inner in within), found["name"]])
        within.append((depth, found["name"]))
        is_key = (value or comment) and found["name"] != "_target_"
        if is_key and name.partition(".")[0] not in ("defaults", "hydra"):
            keys.append(Key(name, value.replace(", ", ","), comment))
    return Option(path.stem, " ".join(about), tuple(keys))


def options(folder: Path) -> list[Option]:
    """Return the options of a group, by name; their keys without those of groups inside it."""
    inside = {path.name for path in folder.iterdir() if path.is_dir()}
    found = (read_option(path) for path in sorted(folder.glob("*.yaml")))
    return [
        replace(one, keys=tuple(k for k in one.keys if k.name.partition(".")[0] not in inside))
        for one in found
    ]


def key_lines(group: str, found: list[Option]) -> Iterator[tuple[str, str]]:
    """Yield the keys of a group's options and what they mean, alike ones once.

    A key that not every option has, or that means something else in some, names its options.
    """
    meanings: dict[str, dict[str, list[Option]]] = {}
    defaults: dict[tuple[str, str], str] = {}
    for option in found:
        for key in option.keys:
            by_comment = meanings.setdefault(key.name, {})
            by_comment.setdefault(key.comment, []).append(option)
            defaults.setdefault((key.name, key.comment), key.default)
    for name, by_comment in meanings.items():
        said = {comment: has for comment, has in by_comment.items() if comment}
        silent = by_comment.get("", [])
        for comment, has in said.items():
            having = has + silent if len(said) == 1 else has
            default = defaults[name, comment]
            shown = f"={default}" if default and len(default) <= LONGEST else ""
            whose = "" if len(having) == len(found) else _names(having) + ": "
            yield f"{group}{name}{shown}", whose + comment


def _names(having: list[Option], most: int = 4) -> str:
    names = [option.name for option in having]
    return ", ".join(names) if len(names) <= most else ", ".join([*names[:most], "…"])


def group_lines(folder: Path, root: Path) -> Iterator[tuple[str, str]]:
    """Yield a group, its options, its keys, then the groups inside it."""
    group = folder.relative_to(root).as_posix()
    found = options(folder)
    yield f"{group}=NAME", ""
    for option in found:
        yield f"    {option.name}", option.about
    if group != "experiment":
        yield from key_lines(group.replace("/", ".") + ".", found)
    for inner in sorted(path for path in folder.iterdir() if path.is_dir()):
        if any(inner.glob("*.yaml")):
            yield from group_lines(inner, root)


def columns(label: str, text: str) -> str:
    """Return a label and its meaning in two columns, wrapped.

    Examples
    --------
    >>> columns("seed=1", "every random stream derives from it").split()[:2]
    ['seed=1', 'every']
    """
    head = f"  {label}"
    gap = " " * max(COLUMN - len(head), 2)
    indent = head + gap, " " * COLUMN
    return textwrap.TextWrapper(WIDTH, *indent, break_on_hyphens=False).fill(text) if text else head


def page(root: Path = CONFIG_FOLDER) -> str:
    """Return the page of ``--help``: every group, option and key, from the comments of YAML files.

    Parameters
    ----------
    root : pathlib.Path
        The folder of the configuration; its ``help.txt`` is what stands around the keys.
    """
    around = (root / "help.txt").read_text(encoding="utf-8")
    top = (root / "config.yaml").read_text(encoding="utf-8")
    order = re.findall(r"^  - (\w+):", top, re.MULTILINE)
    groups = [root / name for name in order if name not in INTERNAL]
    parts = [
        "\n".join([folder.name.upper(), *(columns(*line) for line in group_lines(folder, root))])
        for folder in groups
    ]
    keys = key_lines("", [read_option(root / "config.yaml")])
    parts.append("\n".join(["RUN", *(columns(*line) for line in keys)]))
    return around.replace(PLACE, "\n\n".join(parts))


def known_keys() -> list[str]:
    """Return every group and key that a command line may set."""
    groups = [path for path in sorted(CONFIG_FOLDER.iterdir()) if path.is_dir()]
    found = [one for folder in groups for one in group_lines(folder, CONFIG_FOLDER)]
    found += key_lines("", [read_option(CONFIG_FOLDER / "config.yaml")])
    return [label.partition("=")[0] for label, _ in found if not label.startswith(" ")]


def _meant(name: str, among: Sequence[str], otherwise: str) -> str:
    near = difflib.get_close_matches(name, among, 3, 0.65)
    return f"did you mean {' or '.join(near)}?" if near else otherwise


def no_such_key(override: str, key: str) -> str:
    """Return the message about an override of a key that there is not."""
    hint = _meant(key, known_keys(), "python -m sim --help lists all")
    return f"{override}: there is no such key; {hint}"


def refusal(error: BaseException, given: Sequence[str]) -> str:
    """Return in one line what Hydra refuses, with what was probably meant.

    Parameters
    ----------
    error : BaseException
        What Hydra or OmegaConf raised.
    given : sequence of str
        The overrides of the command line.
    """
    first, *_ = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    if isinstance(error, MissingConfigException) and error.missing_cfg_file and error.options:
        group, _, name = error.missing_cfg_file.rpartition("/")
        options = [str(option) for option in error.options]
        hint = _meant(name, options, f"there are {', '.join(options)}")
        return f"{group}={name}: there is no such option; {hint}"
    if isinstance(error, OverrideParseException):
        return f"{error.override}: cannot be read as KEY=VALUE ({first})"
    if unknown := re.match(r"Could not override '([^']+)'", first):
        key = unknown[1]
        mine = (one for one in given if one.lstrip("+~").partition("=")[0] == key)
        return no_such_key(next(mine, key), key)
    if merged := re.match(r"Error merging override (.*)", first):
        cause = str(error.__cause__ or "it has another type").splitlines()[0]
        return f"{merged[1]}: {cause}"
    if first.startswith("Config group override must be a string"):
        empty = (one for one in given if one.partition("=")[2] in ("null", ""))
        mine = (one for one in empty if (CONFIG_FOLDER / one.partition("=")[0]).is_dir())
        return f"{next(mine, 'a group')}: must be the name of an option"
    return first or type(error).__name__
