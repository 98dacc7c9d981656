"""What tells runs apart: their overrides, filled up from their configurations, name folders."""

import hashlib
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import count
from pathlib import Path
from sys import intern
from typing import Any

import yaml

from predictors.plain import shown_plainly
from sim.errors import SimError

OVERLAYS = ("hydra/", "given/", "former/")
"""Groups whose options follow from those of others, or tell nothing of a run; the last one stands
in folders of earlier versions alone."""
Setting = dict[str, str | int | float | bool | None]
"""Values of configuration keys."""


class SharedNames(Mapping[str, Any]):
    """A mapping that may have many like it: names are kept once for all, floats side by side."""

    __slots__ = ("_floats", "_others", "_places")

    def __init__(self, content: Mapping[str, object]) -> None:
        floats = {name: value for name, value in content.items() if isinstance(value, float)}
        self._floats = array("d", floats.values())
        self._others = tuple([value for name, value in content.items() if name not in floats])
        self._places = _places(tuple(content), tuple(floats))

    def __getitem__(self, name: str) -> Any:
        place = self._places[name]
        return self._floats[place] if place >= 0 else self._others[~place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


@cache
def _places(names: tuple[str, ...], floats: tuple[str, ...]) -> Mapping[str, int]:
    """Return where each value stands: among the floats, or, inverted, among the others."""
    first, others = count(), count()
    return {name: next(first) if name in floats else ~next(others) for name in names}


@dataclass(frozen=True)
class Configuration:
    """A run's configuration as Hydra left it in ``.hydra/``.

    Attributes
    ----------
    overrides : mapping of str to value
        What was given on the command line, by key, without signs of addition.
    choices : mapping of str to str
        The chosen option of each configuration group.
    values : mapping of str to value
        Every value of the composed configuration by its dotted key.
    """

    overrides: Setting = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)

    def value(self, key: str) -> str | int | float | bool | None:
        """Return what a key was, whether it was given or not; None if there is none."""
        if key in self.overrides:
            return self.overrides[key]
        return self.choices.get(key, self.values.get(key))


LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class PlainLoader(LOADER):  # type: ignore[misc, valid-type]
    """Reads YAML; text in it is shown plainly, and trees too deep for Python are refused."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.deep_construct = True


PlainLoader.add_constructor(
    "tag:yaml.org,2002:str", lambda loader, node: shown_plainly(loader.construct_scalar(node))
)
UNREADABLE = (ValueError, RecursionError, yaml.YAMLError)
"""What reading YAML that is none raises."""
LARGEST_YAML = 2**22
"""Bytes of a run's configuration that is read."""


def _text(path: Path) -> str | None:
    """Return the text of a YAML file, None where there is no such file."""
    try:
        with path.open(encoding="utf-8") as stream:
            text = stream.read(LARGEST_YAML + 1)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        raise SimError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise _unreadable(path, error) from None
    if len(text) > LARGEST_YAML:
        raise SimError(f"{path}: a configuration has at most {LARGEST_YAML:,} bytes")
    return text


def _unreadable(path: Path, error: BaseException) -> SimError:
    words = " ".join(str(error).split())[:200]
    return SimError(f"{path}: it is not valid YAML ({words})")


def load_yaml(path: Path) -> Any:
    """Return what a YAML file of a run's folder holds, None where there is no such file.

    Raises
    ------
    SimError
        If it is too large or no plain YAML: what Hydra writes has no aliases, by which
        a few lines can stand for more than any memory holds.
    """
    text = _text(path)
    if text is None:
        return None
    try:
        aliases = "*" in text and any(
            isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, LOADER)
        )
        content = None if aliases else yaml.load(text, PlainLoader)
    except UNREADABLE as error:
        raise _unreadable(path, error) from None
    if aliases:
        raise SimError(f"{path}: it has aliases, which no run writes")
    return content


def _load(path: Path, kind: type) -> Any:
    """Return the content of such a file, checked to be of a kind; empty where there is none."""
    content = load_yaml(path)
    if content is None:
        return kind()
    if not isinstance(content, kind):
        raise SimError(f"{path}: it is not a configuration that a run writes")
    return content


PIECES = re.compile(r"^(?=\w)", re.MULTILINE)
"""Between the keys of a configuration that are below no other."""
CHOICES = re.compile(
    r"^  runtime:\n(?:    .*\n)*?    choices:\n((?: {6}[\w/@.]+: [\w.+-]+\n)+)(?! {5})",
    re.MULTILINE | re.ASCII,
)
"""Where the options are that a run chose, as Hydra writes them."""


@lru_cache(4096)
def _leaves(piece: str) -> Setting:
    """Return the leaves of a piece of YAML, which runs share; of no mapping one without a key."""
    return flatten(yaml.load(piece, PlainLoader))


def _values(path: Path) -> Setting:
    """Return the leaves of a run's configuration; pieces alike are read once."""
    text = _text(path) or ""
    pieces = [] if "*" in text else [piece for piece in PIECES.split(text) if piece]
    try:
        with suppress(*UNREADABLE):  # which is told with its file below
            leaves = {key: leaf for piece in pieces for key, leaf in _leaves(piece).items()}
            if pieces and "" not in leaves:
                return leaves
        return flatten(_load(path, dict))
    except RecursionError:
        raise SimError(f"{path}: it is nested too deeply") from None


def _telling(choices: Mapping[str, object]) -> dict[str, str]:
    """Return those options that tell something of a run."""
    named = {key: value for key, value in choices.items() if isinstance(value, str)}
    return {key: value for key, value in named.items() if not key.startswith(OVERLAYS)}


@lru_cache(256)
def _told(piece: str) -> Mapping[str, str]:
    """Return the chosen options of a piece of YAML that tell something of a run."""
    return _telling(_leaves(piece))


def _choices(path: Path) -> Mapping[str, str]:
    """Return the option that a run chose of each group."""
    found = CHOICES.findall(_text(path) or "")
    if len(found) == 1:
        with suppress(*UNREADABLE):
            return _told(found[0])
    choices = _load(path, dict)
    for name in ("hydra", "runtime", "choices"):
        inner = choices.get(name)
        choices = inner if isinstance(inner, dict) else {}
    return _telling({str(key): value for key, value in choices.items()})


def flatten(tree: object, prefix: str = "") -> Setting:
    """Return the leaves of nested mappings by dotted key; lists stay whole, as text.

    Examples
    --------
    >>> flatten({"a": {"b": 1, "c": [1, 2]}})
    {'a.b': 1, 'a.c': '[1, 2]'}
    """
    if not isinstance(tree, dict):
        plain = tree is None or isinstance(tree, str | int | float | bool)
        return {prefix: tree if plain else str(tree)}  # type: ignore[dict-item]
    leaves: Setting = {}
    for key, branch in tree.items():
        leaves |= flatten(branch, intern(f"{prefix}.{key}" if prefix else str(key)))
    return leaves


def key_of(override: str) -> str:
    """Return the key of an override without signs.

    Examples
    --------
    >>> key_of("+workload.load=0.8"), key_of("policy/order@x=sjf")
    ('workload.load', 'policy/order')
    """
    return re.split("[=@]", override.lstrip("+~"))[0]


@lru_cache(4096)  # runs of a sweep share most of theirs
def parse_override(text: str) -> tuple[str, str | int | float | bool | None]:
    """Return key and value of an override.

    Examples
    --------
    >>> parse_override("+workload.load=0.8"), parse_override("~baseline")
    (('workload.load', 0.8), ('baseline', None))
    """
    key, _, value = text.partition("=")
    try:
        parsed = yaml.load(value, LOADER) if value else None
    except UNREADABLE:
        parsed = value
    plain = parsed is None or isinstance(parsed, str | int | float | bool)
    return key.lstrip("+~").split("@")[0], parsed if plain else value


def read_configuration(run: Path) -> Configuration:
    """Return the configuration of a run; empty where Hydra left none.

    Raises
    ------
    SimError
        If a file is no plain YAML of the kind that Hydra writes; the message names it.
    """
    folder = run / ".hydra"
    given = [parse_override(str(one)) for one in _load(folder / "overrides.yaml", list)]
    choices, values = _choices(folder / "hydra.yaml"), _values(folder / "config.yaml")
    return Configuration(dict(given), choices, SharedNames(values))


def _varying(settings: Sequence[Setting]) -> list[Setting]:
    """Return the settings without the keys whose value is the same in all."""
    keys = sorted({key for setting in settings for key in setting})
    differ = [key for key in keys if len({repr(s.get(key)) for s in settings}) > 1]
    return [{key: setting.get(key) for key in differ} for setting in settings]


HOW = ("sim.progress", "reuse", "picture")
"""Keys of how runs are done, not of what they are; names of folders leave them out."""


LONGEST_NAME = 120
"""Characters; with its hash a name stays below what file systems allow (255 bytes)."""


def override_dirname(overrides: Sequence[str], excluded: Sequence[str]) -> str:
    """Return what Hydra calls ``hydra.job.override_dirname``.

    Examples
    --------
    >>> override_dirname(["seed=2", "policy=sa", "sim.progress=true"], ["sim.progress"])
    'policy=sa,seed=2'
    """
    return ",".join(sorted(one for one in overrides if key_of(one) not in excluded))


def folder_name(overrides: str) -> str:
    """Return the name of a run's folder from its overrides, never from its job number.

    Characters that do not belong in a name are replaced and long names cut; a
    hash of the overrides then keeps the name unique.

    Parameters
    ----------
    overrides : str
        As Hydra's ``hydra.job.override_dirname`` has them, sorted.

    Examples
    --------
    >>> folder_name("policy=easy,seed=2")
    'policy=easy,seed=2'
    >>> folder_name("workload.path=logs/a.swf")
    'workload.path=logs_a.swf-5cbece51'
    >>> folder_name("")
    'defaults'
    """
    safe = re.sub(r"[^A-Za-z0-9_=.,+-]", "_", overrides)[:LONGEST_NAME]
    if not overrides:
        return "defaults"
    if safe == overrides and safe.strip("."):
        return overrides
    return f"{safe}-{hashlib.sha256(overrides.encode()).hexdigest()[:8]}"


def distinguishing(runs: Sequence[Configuration]) -> list[Setting]:
    """Return, for each run, the keys that differ between runs with their values.

    Keys that stood on a command line come first: a run that left one alone has
    the value that it took. Where runs are alike in all of these, those chosen
    options, and then values, join in that tell such runs apart.
    """
    given = sorted({key for run in runs for key in run.overrides if key not in HOW})
    settings = _varying([{key: run.value(key) for key in given} for run in runs])
    for more in ("choices", "values"):
        alike: dict[str, list[Mapping[str, Any]]] = {}
        for setting, run in zip(settings, runs, strict=True):
            alike.setdefault(repr(setting), []).append(getattr(run, more))
        several = (list(map(dict, same)) for same in alike.values() if len(same) > 1)
        telling = sorted({key for same in several for key in _varying(same)[0]})
        extra = ({key: getattr(run, more).get(key) for key in telling} for run in runs)
        settings = [own | new | own for own, new in zip(settings, extra, strict=True)]
    return settings


OWN_PREDICTOR = "predictor@policy.predictor"
"""The choice of a policy that asks a predictor of its own, whatever the run's is."""
NAMED = ("policy", "predictor")
"""What every table names of the runs that it compares."""


def with_names(setting: Setting, run: Configuration) -> Setting:
    """Return the setting with the run's policy and predictor, where they are known."""
    names = {key: run.value(key) for key in NAMED}
    return {key: value for key, value in names.items() if value is not None} | setting


def shared_names(runs: Sequence[Configuration], keys: Sequence[str]) -> dict[str, str]:
    """Return policy and predictor as far as all runs have the same and no key names them."""
    found = {key: {run.value(key) for run in runs} for key in NAMED if key not in keys}
    if "predictor" in found:
        found["predictor"] = {r.choices.get(OWN_PREDICTOR, r.value("predictor")) for r in runs}
    shared = {key: values.pop() for key, values in found.items() if len(values) == 1}
    return {key: str(name) for key, name in shared.items() if name is not None}


def group_of(key: str) -> str:
    """Return the configuration group that a key belongs to.

    Examples
    --------
    >>> group_of("policy/backfill"), group_of("predictor.calibration"), group_of("seed")
    ('policy', 'predictor', 'seed')
    """
    return key.replace("/", ".").partition(".")[0]


def with_options(setting: Setting, named: Setting) -> Setting:
    """Return a setting with other options of some groups, of whose own keys nothing is known."""
    return {k: named.get(k) if group_of(k) in named else v for k, v in setting.items()}


def of_baseline(setting: Setting, run: Configuration, with_predictor: bool = False) -> Setting:
    """Return the setting of a run's baseline: the same jobs under the preset that it names.

    Its predictor is the user's estimate, or the run's own `with_predictor`; parameters
    of the run's policy, and of its predictor, do not reach it.
    """
    named = {"policy": run.value("baseline")}
    if not with_predictor:
        named["predictor"] = "user_estimate"
    return with_options(setting, named)
