"""What the comments of YAML files say: the page of ``--help``, and its parts by topic.

They also tell what was probably meant: misspelt keys, groups, options and commands, in one line.
"""

import argparse
import difflib
import os
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import yaml

CONFIG_FOLDER = Path(__file__).resolve().parents[2] / "conf"
WIDTH = 100
"""Columns of the page of ``--help``."""
COLUMN = 34
"""Where descriptions begin."""
LONGEST = 20
"""Of a default that is shown."""
CONFIG_DIRS: list[Path] = []
"""Folders that ``--config-dir`` names."""
PLUGINS = "moldsim.plugins"
"""Entry points of packages that bring configuration."""
PLACE = "{keys}"
"""Where in the text around them groups and keys stand."""

_KEY = re.compile(r"^(?P<indent> *)(?P<name>\w+):(?P<value>[^#]*)(#\s*(?P<comment>.*))?$")
_TAKEN_OVER = re.compile(r"^  - (?!_self_)(\w+)$", re.M)
"""Another option of the group, of which one takes keys over."""
_MORE = re.compile(r"^ *#\s*(?P<comment>.*)$")


@dataclass(frozen=True)
class Key:
    """One key of a YAML file: its dotted name in the file, its default, what it means."""

    name: str
    default: str
    comment: str


@dataclass(frozen=True)
class Option:
    """One YAML file of a group: its name, what it is, its keys, and facts about it.

    The facts are on a line ``# reads: curves | source: Downey 1997 | page: ...`` below what it is.
    """

    name: str
    path: Path
    about: str
    keys: tuple[Key, ...]
    facts: Mapping[str, str] = field(default_factory=dict)


def words_of(prog: str, given: Sequence[str]) -> list[str]:
    """Return a command's words but for ``--config-dir``, in whose folders options are found."""
    more = argparse.ArgumentParser(prog=prog, add_help=False, allow_abbrev=False)
    more.add_argument("--config-dir", type=Path, action="append", default=[])
    asked, words = more.parse_known_args(given)
    CONFIG_DIRS[:] = asked.config_dir
    return words


def read_option(path: Path) -> Option:
    """Return what the comments of a YAML file say.

    The comment above the first key says what the option is; the one behind a key, and
    comment lines right below that, say what the key means.
    """
    about: list[str] = []
    facts: dict[str, str] = {}
    keys: list[Key] = []
    within: list[tuple[int, str]] = []
    text = path.read_text(encoding="utf-8")
    for line in text.splitlines():
        more = _MORE.match(line)
        if more and not line.startswith("# @package"):
            if keys and keys[-1].comment and line.startswith(" " * 8):
                keys[-1] = replace(keys[-1], comment=f"{keys[-1].comment} {more['comment']}")
            elif not within and " | " in line:
                parts = (one.partition(":") for one in more["comment"].split(" | "))
                facts = {name: text.strip() for name, _, text in parts}
            elif not within:
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
    own = {key.name for key in keys}
    for other in (path.with_name(f"{name}.yaml") for name in _TAKEN_OVER.findall(text)):
        if other.is_file():
            keys += [key for key in read_option(other).keys if key.name not in own]
    return Option(path.stem, path, " ".join(about), tuple(keys), facts)


def options(group: str) -> list[Option]:
    """Return the options of a group, by name; their keys without those of groups inside it."""
    folders = [one / group for one in roots()]
    inside = {path.name for folder in folders for path in folder.glob("*") if path.is_dir()}
    files: dict[str, Path] = {}
    for path in (path for folder in folders for path in sorted(folder.glob("*.yaml"))):
        files.setdefault(path.name, path)
    found = (read_option(files[name]) for name in sorted(files))
    return [
        replace(one, keys=tuple(k for k in one.keys if k.name.partition(".")[0] not in inside))
        for one in found
    ]


def default_parts(path: Path) -> dict[str, str]:
    """Return which option of each group inside it an option takes, by its file."""
    found = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    named = (one for one in found.get("defaults", ()) if isinstance(one, dict))
    return {str(part): str(chosen) for one in named for part, chosen in one.items()}


def key_lines(group: str, found: list[Option]) -> Iterator[tuple[str, str]]:
    """Yield the keys of a group's options and what they mean, alike ones once.

    A key that not every option has, or that means something else in some, names its options.
    """
    meanings: dict[str, dict[str, list[tuple[str, Key]]]] = {}
    for option in found:
        for key in option.keys:
            by_comment = meanings.setdefault(key.name, {})
            by_comment.setdefault(key.comment, []).append((option.name, key))
    for name, by_comment in meanings.items():
        said = {comment: has for comment, has in by_comment.items() if comment}
        silent = by_comment.get("", [])
        for comment, has in said.items():
            having = has + silent if len(said) == 1 else has
            default = has[0][1].default
            shown = f"={default}" if default and len(default) <= LONGEST else ""
            whose = "" if len(having) == len(found) else _names(having) + ": "
            yield f"{group}{name}{shown}", whose + comment


def _names(having: list[tuple[str, Key]], most: int = 4) -> str:
    names = [name for name, _ in having]
    return ", ".join(names) if len(names) <= most else ", ".join([*names[:most], "…"])


def group_lines(group: str) -> Iterator[tuple[str, str]]:
    """Yield a group, its options, its keys, then the groups inside it."""
    found = options(group)
    yield f"{group}=NAME", ""
    for option in found:
        yield f"    {option.name}", option.about
    if group != "experiment":
        yield from key_lines(group.replace("/", ".") + ".", found)
    for inner in inner_groups(group):
        yield from group_lines(inner)


def every_line() -> Iterator[tuple[str, str]]:
    """Yield the keys that are in no group, then all groups with theirs."""
    yield from key_lines("", [read_option(CONFIG_FOLDER / "config.yaml")])
    for group in inner_groups(""):
        yield from group_lines(group)


def inner_groups(group: str) -> list[str]:
    """Return the groups right inside a group, or at the top for ``""``."""
    folders = [path for one in roots() for path in (one / group).glob("*")]
    names = {path.name for path in folders if path.is_dir() and any(path.glob("*.yaml"))}
    return [f"{group}/{name}" if group else name for name in sorted(names)]


def roots() -> list[Path]:
    """Return the folders of configuration: the program's, of installed packages, and asked for."""
    return [CONFIG_FOLDER, *plugin_folders().values(), *CONFIG_DIRS]


def package_spec(name: str) -> ModuleSpec | None:
    """Return where a package or module is, None where it cannot be found."""
    try:
        return find_spec(name)
    except (ImportError, ValueError):
        return None


@cache
def plugin_folders() -> dict[str, Path]:
    """Return the folders of configuration of installed packages, by their dotted names.

    A package names its own by an entry point of the group ``moldsim.plugins``.
    """
    found = {}
    for point in entry_points(group=PLUGINS):
        spec = package_spec(point.value)
        for place in (spec.submodule_search_locations or []) if spec else []:
            found[point.value] = Path(place)
    return found


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


def page() -> str:
    """Return the page of ``--help``: every group, option and key, from the comments of YAML files.

    What stands around the keys is in ``conf/help.txt``.
    """
    around = (CONFIG_FOLDER / "help.txt").read_text(encoding="utf-8")
    top = (CONFIG_FOLDER / "config.yaml").read_text(encoding="utf-8")
    order = re.findall(r"^  - (\w+):", top, re.MULTILINE)
    parts = [
        "\n".join([name.upper(), *(columns(*line) for line in group_lines(name))]) for name in order
    ]
    keys = key_lines("", [read_option(CONFIG_FOLDER / "config.yaml")])
    parts.append("\n".join(["RUN", *(columns(*line) for line in keys)]))
    return around.replace(PLACE, "\n\n".join(parts))


SEE = "moldsim help keys lists all"


def known_keys() -> list[str]:
    """Return every group and key that a command line may set."""
    names = (label.partition("=")[0] for label, _ in every_line() if not label.startswith(" "))
    return list(dict.fromkeys(names))


NAME = re.compile(r"=(?!(?:null|true|false)$)[A-Za-z_][^=]*$", re.IGNORECASE)
"""The end of an override that names an option, not a value of YAML."""
LEAST, NEAR, MOST = 0.65, 0.06, 3
"""Likeness below which nothing is offered, how much less than the best is, and how many are."""


def meant(name: str, among: Iterable[str], otherwise: str) -> str:
    """Return a question that offers the nearest names, or something else without any.

    Examples
    --------
    >>> meant("esy", ["easy", "sa"], "see help")
    'did you mean easy?'
    >>> meant("policy.ordr", ["policy.order", "policy.worth", "policy"], "see help")
    'did you mean policy.order?'
    """
    rated = sorted(((_likeness(name, one), one) for one in dict.fromkeys(among)), reverse=True)
    best = rated[0][0] if rated else 0.0
    near = [one for rate, one in rated if rate >= max(LEAST, best - NEAR)][:MOST]
    return f"did you mean {' or '.join(near)}?" if near else otherwise


def _likeness(name: str, other: str) -> float:
    """Return how alike two names are, from 0 to 1; those below the same key are nearer."""
    (above, _, own), (other_above, _, last) = (
        one.replace("/", ".").rpartition(".") for one in (name, other)
    )
    if above and above == other_above:
        return (1.0 + difflib.SequenceMatcher(None, own, last).ratio()) / 2
    return difflib.SequenceMatcher(None, name, other).ratio()


def no_such_key(override: str, key: str, given: Sequence[str] = ()) -> str:
    """Return the message about an override of a key that there is not, or not with all `given`."""
    known = known_keys()
    if key not in known:
        return f"{override}: there is no such key; {meant(key, known, SEE)}"
    group = next((g for g in sorted(groups(), key=len, reverse=True) if _within(key, g)), "")
    inside = {o.name: {*default_parts(o.path), *(k.name for k in o.keys)} for o in options(group)}
    having = [name for name, inner in inside.items() if key[len(group) + 1 :] in inner]
    if not having:
        return f"{override}: no option of {group or 'a group'} has this key; {SEE}"
    have = "has this key" if len(having) == 1 else "have this key"
    above, _, part = group.rpartition("/")
    chosen = dict(one.partition("=")[::2] for one in given).get(above, "").split(",")
    mine = (one for one in options(above) if one.name in chosen)
    lack = [one.name for one in mine if default_parts(one.path).get(part) not in having]
    without = f"{above}={', '.join(lack)}" if lack else f"the chosen {group}"
    some = "; sweep each apart, into one hydra.sweep.dir" if 0 < len(lack) < len(chosen) else ""
    return f"{override}: not with {without}; {group}={', '.join(having[:6])} {have}{some}"


def _within(key: str, group: str) -> bool:
    return key.replace("/", ".").startswith(group.replace("/", ".") + ".")


UNKNOWN = re.compile(r"Could not (?:override|delete|append).*?'([^']*)'")
"""What Hydra says of a key, or group, that there is not."""


def with_key_swept(error: BaseException, given: Sequence[str]) -> list[str] | None:
    """Return a command line that sweeps over a key's only value; None unless that helps.

    Hydra looks for a key of one value among the defaults, whatever options of a group above
    it the sweep names; for one that is swept over it looks in each of these.
    """
    unknown = UNKNOWN.search(str(error))
    key = unknown[1].partition("=")[0] if unknown else ""
    values = dict(one.partition("=")[::2] for one in given)
    swept = [group for group, value in values.items() if "," in value and _within(key, group)]
    if not swept or re.search(r",|^choice\(", values.get(key, ",")):
        return None
    return [f"{key}=choice({values[key]})" if one.startswith(f"{key}=") else one for one in given]


MUST_BE = {"Integer": "must be a whole number", "Float": "must be a number"}
"""What OmegaConf could not convert a value to, the last word of its refusal, in our words."""


def groups(above: str = "") -> list[str]:
    """Return all groups of options, such as ``policy`` and ``policy/order``."""
    return [each for one in inner_groups(above) for each in (one, *groups(one))]


def refusal(error: BaseException, given: Sequence[str]) -> str:
    """Return in one line what Hydra or OmegaConf refuses of a command line, and what was meant."""
    first, *_ = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    kind = type(error).__name__
    if (mark := getattr(error, "problem_mark", None)) is not None:  # of YAML
        return f"{mark.name}, line {mark.line + 1}: {first}"
    if kind == "MissingConfigException" and (missing := getattr(error, "missing_cfg_file", None)):
        group, _, name = str(missing).rpartition("/")
        known = getattr(error, "options", None) or [one.name for one in options(group)]
        if not known:
            return f"{group}={name}: there is no such group; {meant(group, groups(), SEE)}"
        names = list(map(str, known))
        hint = meant(name, names, f"there are {', '.join(names)}")
        return f"{group}={name}: there is no such option; {hint}"
    if kind == "OverrideParseException":
        if os.path.isfile(word := getattr(error, "override", "")):  # noqa: PTH113 - any word
            from workloads.logs.formats import guess_format  # most errors need no pandas

            return f"{word}: a log is workload={guess_format(word)} workload.path={word}"
        return f"{word}: cannot be read as KEY=VALUE ({first})"
    if several := re.match(r"Ambiguous value for argument '(.*)'", first):
        return f"{several[1]}: several values make a multirun: moldsim sweep"
    if unknown := UNKNOWN.search(first):
        key = unknown[1].lstrip("+~").partition("=")[0]
        mine = (one for one in given if re.split("[=@]", one.lstrip("+~"))[0] == key)
        return no_such_key(re.sub(r"=choice\((.*)\)$", r"=\1", next(mine, key)), key, given)
    if first.startswith("Error resolving interpolation") and any(o[0] == "~" for o in given):
        return f"{next(o for o in given if o[0] == '~')}: cannot be left out"
    if merged := re.match(r"Error merging override (.*)", first):
        cause = str(error.__cause__ or "it has another type").splitlines()[0]
        return f"{merged[1]}: {MUST_BE.get(cause.rpartition(' ')[2], cause)}"
    if first.startswith("Config group override must be a string"):
        chosen = (one.partition("=") for one in given if not NAME.search(one))
        mine = (f"{group}={name}" for group, _, name in chosen if group in groups())
        return f"{next(mine, 'a group')}: must be the name of an option"
    return first or kind
