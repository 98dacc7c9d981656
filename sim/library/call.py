"""From the arguments of a call to the configuration that the command would run."""

import copy
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pandas as pd

from predictors.in_loop.learned import CurvePerApplication
from predictors.in_loop.per_application import PerApplication
from sim.composition import Composed, compose, quoted
from sim.config import Config
from sim.errors import ConfigError
from sim.help.pages import no_such_key
from sim.simulation.build import build
from sim.simulation.parts import OBJECT, fits_as, given_object, raised
from sim.simulation.scene import REPETITION
from sim.sweeps.configurations import key_of, parse_override
from workloads.frame import SOURCE, FrameWorkload
from workloads.logs.formats import guess_format
from workloads.logs.log import LogWorkload

KEYS = (*(one.name for one in fields(Config)), "given", "experiment")
"""Keywords beside those of their own meaning."""
PLAIN = re.compile(r"[A-Za-z_][\w./-]*")
NAME = re.compile(r"[\w.+-][\w .+-]*")
"""What an object may call itself."""
WORDS = ("null", "true", "false", "nan", "inf")
"""What plain text would not stay text as."""
FRAME = f"{FrameWorkload.__module__}.{FrameWorkload.__qualname__}"
NOT_OWN = ("builtins", "predictors", "sim")
"""Packages whose classes give an object no name."""
FILES, MODELS = "swf", "lublin"
"""Presets with the defaults of files and of models."""


def literal(value: object) -> str:
    """Return a Python value as an override spells it.

    Raises
    ------
    ConfigError
        If no override can say it.

    Examples
    --------
    >>> [literal(v) for v in (None, True, 0.5, "sa", "a b", [1, 2], {"k": "null"})]
    ['null', 'true', '0.5', 'sa', "'a b'", '[1,2]', "{k:'null'}"]
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, PathLike):
        value = fspath(value)
    if isinstance(value, str):
        if PLAIN.fullmatch(value) and value.lower() not in WORDS:
            return value
        return quoted(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{literal(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(literal, value))}]"
    if callable(getattr(value, "item", None)) and getattr(value, "shape", None) == ():
        return literal(value.item())  # type: ignore[attr-defined]
    raise ConfigError(f"{value!r:.60}: must be a number, text, truth value, None, list or dict")


def keyword(key: str, *values: object) -> str:
    """Return the override that a keyword with a value, or with several, stands for.

    Raises
    ------
    ConfigError
        If there is no such key, no value, or no override can say one.

    Examples
    --------
    >>> keyword("seed", 1, 2)
    'seed=1,2'
    """
    if not values:
        raise ConfigError(f"{key}=[]: needs at least one value")
    if key not in KEYS:
        raise ConfigError(no_such_key(f"{key}={values[0]}", key))
    try:
        return f"{key}=" + ",".join(map(literal, values))
    except ConfigError as error:
        raise ConfigError(f"{key}={error}") from None


@dataclass(frozen=True)
class Part:
    """A policy, predictor or workload that the caller handed over: its node and its name."""

    node: dict[str, Any]
    name: str

    @property
    def target(self) -> str:
        """Where its class is."""
        return str(self.node["_target_"])


def part(key: str, given: Any) -> str | Part | None:
    """Return the override of a part that has a name, or the part itself.

    Raises
    ------
    ConfigError
        If it is neither a name nor fit for its place.
    """
    if given is None or isinstance(given, Part):
        return given
    if isinstance(given, str) and "." not in given:
        return f"{key}={literal(given)}"
    if isinstance(given, str):
        node = {"_target_": given}
        return Part(node, type(build(node, key)).__name__)
    if inspect.isclass(given):
        given = instance(given, key)
    name = _name(given, key)
    if key == "predictor" and fits_as(given, "predictor.model") and not fits_as(given, key):
        method = type(given).__name__.lower()
        return Part(given_object(CurvePerApplication(given, method), key), name)
    return Part(given_object(given, key), name)


def _name(given: object, key: str) -> str:
    """Return what an object calls itself, else its class."""
    name = getattr(given, "name", None)
    if not isinstance(name, str):
        parts = vars(given).values() if hasattr(given, "allocation") else ()
        kinds = map(type, parts)
        own = [one.__name__ for one in kinds if one.__module__.partition(".")[0] not in NOT_OWN]
        return "+".join(own) or type(given).__name__
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"{key}.name={name!r:.60}: must be letters, digits, spaces and any of _.+-"
        )
    return name


def instance(kind: type, key: str, **arguments: object) -> object:
    """Return an object of a class, in the place of a key if there is one.

    Raises
    ------
    ConfigError
        If it cannot be made.
    """
    try:
        return kind(**arguments)
    except (Exception, SystemExit) as error:
        name = f"{key}={kind.__name__}" if key else kind.__name__
        way = "default values to its arguments" if key else "its arguments as KEY=VALUE"
        raise ConfigError(f"{name}: raised {raised(error)}; give an object, or {way}") from error


def several(key: str, given: object) -> list[Any]:
    """Return the values of an axis; objects that share a name get a number.

    Raises
    ------
    ConfigError
        If there is none, or one is no part.

    Examples
    --------
    >>> import sim
    >>> mine = sim.Policy(sim.FirstComeFirstServed(), sim.Easy(), sim.Request())
    >>> [getattr(one, "name", one) for one in several("policy", ["easy", mine, mine])]
    ['easy', 'Policy-1', 'Policy-2']
    """
    if not isinstance(given, list | tuple):
        return [given]
    if not given:
        raise ConfigError(f"{key}={given}: needs at least one value")
    found = [made if isinstance(made := part(key, one), Part) else one for one in given]
    names = [one.name if isinstance(one, Part) else str(one) for one in found]
    for k, one in enumerate(found):
        if isinstance(one, Part) and names.count(one.name) > 1:
            number = names[: k + 1].count(one.name)
            while (name := f"{one.name}-{number}") in names:
                number += 1
            found[k], names = replace(one, name=name), [*names, name]
    return found


def source(jobs: object, overrides: Sequence[str]) -> tuple[list[str], Part | None]:
    """Return the overrides of what a call says of its jobs, and the workload if it is one.

    Raises
    ------
    ConfigError
        If it is neither a DataFrame, a path nor a workload, or a workload is named too.
    """
    chosen = [one for one in overrides if key_of(one) == "workload"]
    if jobs is None:
        return [], None
    if isinstance(jobs, str | PathLike):
        path = Path(fspath(jobs)).expanduser()
        kind = [] if chosen else [f"workload={guess_format(path)}"]
        return [*kind, f"workload.path={literal(fspath(path))}"], None
    if chosen:
        raise ConfigError(f"{chosen[0]}: jobs= says already where jobs come from; leave one out")
    if isinstance(jobs, pd.DataFrame):
        return [f"workload={FILES}"], Part({"_target_": FRAME, "frame": jobs}, SOURCE)
    if not fits_as(jobs, "workload"):
        shown = " ".join(repr(jobs).split())
        raise ConfigError(f"jobs={shown:.60}: must be a DataFrame, a path or a workload")
    made = part("workload", jobs)
    assert isinstance(made, Part)
    return [f"workload={FILES if isinstance(jobs, LogWorkload) else MODELS}"], made


@dataclass(frozen=True)
class Call:
    """What a call asks for.

    Attributes
    ----------
    overrides : sequence of str
        The command line that it amounts to, parts that are objects left out.
    parts : mapping of str to Part
        Those parts.
    """

    overrides: Sequence[str]
    parts: Mapping[str, Part]

    @property
    def values(self) -> dict[str, Any]:
        """What was given, by key; of objects their names."""
        said = dict(map(parse_override, self.overrides))
        return said | {key: held.name for key, held in self.parts.items()}

    @property
    def said(self) -> list[str]:
        """The overrides, with the names of objects."""
        return [*self.overrides, *(f"{key}={held.name}" for key, held in self.parts.items())]

    def composed(self, multirun: bool) -> Composed:
        """Return the configuration, with the parts that are objects in their places.

        A learned predictor that names no runs before the start itself has those of ``given``.
        """
        made = compose(self.overrides, multirun)
        config, own, choices = made.settings, {**made.own}, {**made.choices}
        for key, held in self.parts.items():
            usual, told = config[key], held.node
            if key == "workload":
                kept = {*usual} - {"path"} if held.target == FRAME else REPETITION
                told = {k: v for k, v in usual.items() if k in kept} | told
            learned = told.get(OBJECT)
            if isinstance(learned, PerApplication) and learned.calibration is None:
                learned = copy.copy(learned)  # which is told what runs there are before the start
                learned.calibration = usual.get("calibration", 0)
                learned.charge = learned.charge and usual.get("charge", True)
                told = {**told, OBJECT: learned}
            config[key] = told
            own[key], choices[key] = {"_target_": held.target}, held.name
        return Composed(config, own, {"runtime": {"choices": choices}}, made.overrides)


def called(
    overrides: Sequence[str],
    jobs: object,
    processors: int | None,
    policy: object,
    predictor: object,
    keys: Mapping[str, object],
) -> Call:
    """Return what a call asks for, by the arguments of `sim.run`."""
    for one in overrides:
        if not isinstance(one, str):
            raise ConfigError(f"{one!r:.60}: must be an override such as 'policy=easy'")
        if re.match(r"[+~]*hydra[./]", one) and not one.startswith("hydra.searchpath="):
            raise ConfigError(f"{one}: is for the command; folder= says where artefacts go")
    own = [*overrides, *(keyword(key, value) for key, value in keys.items())]
    said, workload = source(jobs, own)
    parts: dict[str, Part] = {} if workload is None else {"workload": workload}
    for key, given in (("policy", policy), ("predictor", predictor)):
        found = part(key, given)
        if isinstance(found, Part):
            parts[key] = found
        elif found is not None:
            said.append(found)
    if processors is not None:
        said.append(f"cluster.processors={literal(processors)}")
    for one in own:  # of what an object has decided
        group, _, inner = key_of(one).replace("/", ".").partition(".")
        held = parts.get(group)
        if held is None or inner in REPETITION or (held.target == FRAME and inner != "path"):
            continue
        raise ConfigError(f"{one}: has no effect, as {group} is {held.name} here")
    return Call([*own, *said], parts)
